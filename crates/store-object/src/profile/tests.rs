//! The variables that profiles add to an environment.

use std::fs;

use tempfile::TempDir;

use super::*;

struct Home(TempDir);

impl Home {
    fn new(config: &str, credentials: &str) -> Self {
        let home = Self(TempDir::new().unwrap());
        fs::create_dir(home.0.path().join(".aws")).unwrap();
        for (name, text) in [("config", config), ("credentials", credentials)] {
            fs::write(home.0.path().join(".aws").join(name), text).unwrap();
        }
        home
    }

    fn resolve(&self, variables_of_environment: &[(&str, &str)]) -> Result<String, ProfileError> {
        let home = ("HOME", self.0.path().to_str().unwrap());
        let all = variables_of_environment.iter().copied().chain([home]);
        let all: Vec<_> = all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let added = variables(&all)?.into_iter().map(|(name, value)| format!("{name}={value}"));
        Ok(added.collect::<Vec<_>>().join(" "))
    }

    #[track_caller]
    fn check(&self, variables: &[(&str, &str)], expected: &str) {
        assert_eq!(self.resolve(variables).unwrap(), expected, "{variables:?}");
    }
}

const CONFIG: &str = "\
[default]
region = eu-west-1
[profile lab]
region = eu-central-1
services = ours
endpoint_url = https://all.example
s3 =
    addressing_style = virtual
[services ours]
ec2 =
    endpoint_url = https://ec2.example
s3 =
    endpoint_url = https://s3.example
[profile role]
role_arn = arn:aws:iam::1:role/r
web_identity_token_file = /run/token
role_session_name = zarrd
[profile other]
role_arn = arn:aws:iam::1:role/r
source_profile = default
[profile sso]
sso_session = lab
";
const CREDENTIALS: &str = "\
[default]
aws_access_key_id = ID
aws_secret_access_key = secret
[lab]
aws_access_key_id = LAB
aws_secret_access_key = of the lab
aws_session_token = token
[other]
aws_access_key_id = ID
aws_secret_access_key = secret
[half]
aws_access_key_id = ID
";

#[test]
fn profiles_are_chosen_by_variables() {
    let home = Home::new(CONFIG, CREDENTIALS);
    home.check(&[], "AWS_REGION=eu-west-1 AWS_ACCESS_KEY_ID=ID AWS_SECRET_ACCESS_KEY=secret");
    let lab = "AWS_REGION=eu-central-1 AWS_ENDPOINT_URL=https://s3.example AWS_VIRTUAL_HOSTED_STYLE_REQUEST=true \
               AWS_ACCESS_KEY_ID=LAB AWS_SECRET_ACCESS_KEY=of the lab AWS_SESSION_TOKEN=token";
    home.check(&[("AWS_PROFILE", "lab")], lab);
    home.check(&[("AWS_DEFAULT_PROFILE", "lab")], lab);
    home.check(&[("AWS_PROFILE", ""), ("AWS_DEFAULT_PROFILE", "lab")], lab);
    home.check(
        &[("AWS_PROFILE", "role"), ("AWS_REGION", "r")],
        "AWS_ROLE_ARN=arn:aws:iam::1:role/r AWS_WEB_IDENTITY_TOKEN_FILE=/run/token AWS_ROLE_SESSION_NAME=zarrd",
    );
    // Both files may be elsewhere.
    let moved = Home::new("", "");
    let at = |name| home.0.path().join(".aws").join(name).to_str().unwrap().to_owned();
    let (config, credentials) = (at("config"), at("credentials"));
    let files = [("AWS_CONFIG_FILE", &*config), ("AWS_SHARED_CREDENTIALS_FILE", &*credentials), ("AWS_PROFILE", "lab")];
    moved.check(&files, lab);
    moved.check(&[], "");
}

#[test]
fn variables_go_before_profiles() {
    let home = Home::new(CONFIG, CREDENTIALS);
    home.check(&[("AWS_ACCESS_KEY_ID", "MINE"), ("AWS_SECRET_ACCESS_KEY", "s")], "AWS_REGION=eu-west-1");
    home.check(&[("AWS_SKIP_SIGNATURE", "true"), ("AWS_DEFAULT_REGION", "r")], "");
    home.check(&[("AWS_WEB_IDENTITY_TOKEN_FILE", "/run/token"), ("AWS_DEFAULT_REGION", "r")], "");
    let lab = |name, value| [("AWS_PROFILE", "lab"), ("AWS_SKIP_SIGNATURE", "true"), (name, value)];
    let virtual_style = "AWS_REGION=eu-central-1 AWS_VIRTUAL_HOSTED_STYLE_REQUEST=true";
    home.check(&lab("AWS_ENDPOINT_URL", "https://mine"), virtual_style);
    home.check(&lab("AWS_ENDPOINT_URL_S3", "https://mine"), virtual_style);
    home.check(&lab("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"), virtual_style);
    home.check(
        &lab("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "false"),
        "AWS_REGION=eu-central-1 AWS_ENDPOINT_URL=https://s3.example",
    );
}

#[test]
fn profiles_that_cannot_be_used_say_why() {
    let home = Home::new(CONFIG, CREDENTIALS);
    let error = |profile| home.resolve(&[("AWS_PROFILE", profile)]).unwrap_err();
    assert!(error("absent").to_string().starts_with("AWS_PROFILE names the profile \"absent\", which is in none of "));
    assert!(matches!(error("half"), ProfileError::HalfOfAPair { .. }));
    let text = error("sso").to_string();
    assert!(text.contains("sso_session") && text.contains("--profile sso --format env"), "{text}");
    // Its key pair is for taking the role, and not for buckets.
    assert!(matches!(error("other"), ProfileError::Unsupported { setting: "source_profile", .. }));
    // None of it matters to those who bring credentials of their own.
    for profile in ["half", "sso", "other"] {
        let own = [("AWS_PROFILE", profile), ("AWS_ACCESS_KEY_ID", "MINE"), ("AWS_SECRET_ACCESS_KEY", "s")];
        home.check(&own, "");
    }
    let damaged = Home::new("[default]\nregion\n", "");
    let text = damaged.resolve(&[]).unwrap_err().to_string();
    assert!(text.starts_with("line 2 of "), "{text}");
}
