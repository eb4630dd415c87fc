//! Profiles of AWS: settings of the files in `~/.aws`, as variables of the environment.

use std::path::{Path, PathBuf};

use crate::{
    aws_config::{ConfigFileError, Section, Sections},
    client::boolean,
};

/// Settings by which a profile obtains credentials by methods that zarrd does not have.
const UNSUPPORTED: [&str; 8] = [
    "sso_session",
    "sso_start_url",
    "sso_account_id",
    "credential_process",
    "login_session",
    "source_profile",
    "credential_source",
    "role_arn",
];

/// The reason why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A file of profiles cannot be used.
    #[error(transparent)]
    File(#[from] ConfigFileError),
    /// The profile does not exist.
    #[error("AWS_PROFILE names the profile {profile:?}, which is in none of the files {files:?}")]
    Missing {
        /// The profile.
        profile: String,
        /// The files of settings and credentials.
        files: Vec<PathBuf>,
    },
    /// The profile has one half of a key pair.
    #[error("the profile {profile:?} has only one of aws_access_key_id and aws_secret_access_key")]
    HalfOfAPair {
        /// The profile.
        profile: String,
    },
    /// The profile obtains credentials in another way.
    #[error(
        "the profile {profile:?} has its credentials from {setting}, which zarrd cannot use; `aws configure export-credentials --profile {profile} --format env` prints them as variables"
    )]
    Unsupported {
        /// The profile.
        profile: String,
        /// The setting.
        setting: &'static str,
    },
}

/// The variables of an environment that have a value.
struct Environment<'e>(&'e [(String, String)]);

/// A profile: its settings in both files.
struct Profile<'s> {
    name: &'s str,
    settings: Section,
    /// The settings of the section that its setting `services` names.
    services: Option<&'s Section>,
}

/// The settings of the profile that an environment chooses, as variables. What the environment itself has goes before,
/// and is not among them.
pub(crate) fn variables(environment: &[(String, String)]) -> Result<Vec<(String, String)>, ProfileError> {
    let environment = Environment(environment);
    let named = environment.first(["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]);
    let name = named.unwrap_or("default");
    let files = [("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")];
    let files = files.map(|(variable, file)| environment.file(variable, file));
    let read = |file: &Option<PathBuf>| file.as_deref().map_or_else(|| Ok(Sections::default()), Sections::read);
    let [config, credentials] = files.each_ref().map(read);
    let (config, credentials) = (config?, credentials?);
    let configured = config.get(&format!("profile {name}"));
    let configured = configured.or_else(|| config.get(name).filter(|_| name == "default"));
    let found = [configured, credentials.get(name)];
    if named.is_some() && found.iter().all(Option::is_none) {
        return Err(ProfileError::Missing { profile: name.to_owned(), files: files.into_iter().flatten().collect() });
    }
    let settings: Section = found.into_iter().flatten().flat_map(Section::clone).collect();
    let services = settings.get("services").and_then(|services| config.get(&format!("services {services}")));
    let profile = Profile { name, settings, services };
    let mut added = profile.location(&environment);
    added.extend(profile.credentials(&environment)?);
    Ok(added.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

impl<'e> Environment<'e> {
    fn get(&self, name: &str) -> Option<&'e str> {
        let (_, value) = self.0.iter().find(|(other, _)| other == name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// The value of the first of several variables that has one.
    fn first<const N: usize>(&self, names: [&str; N]) -> Option<&'e str> {
        names.into_iter().find_map(|name| self.get(name))
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| boolean(value).unwrap_or(false))
    }

    /// The file that a variable names, or one in `~/.aws`; none without a home.
    fn file(&self, variable: &str, name: &str) -> Option<PathBuf> {
        match self.get(variable) {
            Some(file) => Some(file.into()),
            None => Some(Path::new(self.get("HOME")?).join(".aws").join(name)),
        }
    }
}

impl Profile<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Region, endpoint, and the way to name buckets.
    fn location(&self, environment: &Environment<'_>) -> Vec<(&'static str, &str)> {
        let mut added = Vec::new();
        if environment.first(["AWS_REGION", "AWS_DEFAULT_REGION"]).is_none() {
            added.extend(self.get("region").map(|region| ("AWS_REGION", region)));
        }
        let has_endpoint = environment.first(["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]).is_some();
        if !has_endpoint && !environment.is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") {
            let of_s3 = self.services.and_then(|services| services.get("s3.endpoint_url")).map(String::as_str);
            let endpoint = of_s3.or_else(|| self.get("s3.endpoint_url")).or_else(|| self.get("endpoint_url"));
            added.extend(endpoint.map(|endpoint| ("AWS_ENDPOINT_URL", endpoint)));
        }
        if self.get("s3.addressing_style") == Some("virtual")
            && environment.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST").is_none()
        {
            added.push(("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true"));
        }
        added
    }

    /// A key pair, or the file of a token for a role.
    fn credentials(&self, environment: &Environment<'_>) -> Result<Vec<(&'static str, &str)>, ProfileError> {
        let has_credentials = environment.first(["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"]).is_some();
        if has_credentials || environment.is_true("AWS_SKIP_SIGNATURE") {
            return Ok(Vec::new());
        }
        if let (Some(role), Some(token)) = (self.get("role_arn"), self.get("web_identity_token_file")) {
            let session = self.get("role_session_name").map(|name| ("AWS_ROLE_SESSION_NAME", name));
            let pair = [("AWS_ROLE_ARN", role), ("AWS_WEB_IDENTITY_TOKEN_FILE", token)];
            return Ok(pair.into_iter().chain(session).collect());
        }
        // A role is another identity than the key pair that may be used to take it.
        let pair = [self.get("aws_access_key_id"), self.get("aws_secret_access_key")];
        match pair {
            [Some(id), Some(secret)] if self.get("role_arn").is_none() => {
                let token = self.get("aws_session_token").map(|token| ("AWS_SESSION_TOKEN", token));
                let pair = [("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", secret)];
                return Ok(pair.into_iter().chain(token).collect());
            }
            [Some(_), None] | [None, Some(_)] => {
                return Err(ProfileError::HalfOfAPair { profile: self.name.to_owned() });
            }
            _ => {}
        }
        match UNSUPPORTED.into_iter().find(|setting| self.get(setting).is_some()) {
            Some(setting) => Err(ProfileError::Unsupported { profile: self.name.to_owned(), setting }),
            None => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests;
