//! The clients of the services.

use std::{str::FromStr, sync::Arc, time::Duration};

use object_store::{
    ClientConfigKey, GetOptions, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    client::HttpConnector,
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    list::PaginatedListStore,
};

use crate::{
    client::boolean,
    error::OpenError,
    http::Connector,
    location::{Location, Service},
    options::Options,
    profile,
};

/// A bucket: an [`ObjectStore`] that lists in pages.
pub trait Bucket: ObjectStore + PaginatedListStore {}

impl<B: ObjectStore + PaginatedListStore> Bucket for B {}

/// The parts of variables' names whose values may be shown in errors: all others may be secret.
const PUBLIC: [&str; 12] = [
    "REGION",
    "ENDPOINT",
    "ALLOW",
    "TIMEOUT",
    "VIRTUAL_HOSTED",
    "UNSIGNED",
    "SKIP_SIGNATURE",
    "HTTP1",
    "HTTP2",
    "POOL",
    "ACCOUNT_NAME",
    "EMULATOR",
];

/// Makes the client of a bucket.
pub(crate) fn connect(location: &Location, options: &Options) -> Result<Arc<dyn Bucket>, OpenError> {
    let mut options = options.clone();
    if location.service == Service::S3 {
        let profile = profile::variables(&options.variables);
        let profile = profile.map_err(|source| OpenError::Profile { url: location.to_string(), source })?;
        options.variables.extend(profile);
    }
    let misconfigured = |problem| OpenError::Configuration {
        url: location.to_string(),
        variables: location.service.variables(),
        problem,
    };
    check_endpoint(location.service, &options.variables).map_err(misconfigured)?;
    let built = match location.service {
        Service::S3 => s3(location, &options),
        Service::Google => google(location, &options),
        Service::Azure => azure(location, &options),
    };
    built.map_err(|error| misconfigured(redact(error.to_string(), &options.variables)))
}

/// A name for a prefix of a bucket that no other one has: its URL, with all variables that choose the service. It may have
/// secrets, so only its hash is stored.
pub(crate) fn service_name(location: &Location, options: &Options) -> String {
    const CHOOSING: [&str; 5] = ["ENDPOINT", "BASE_URL", "ACCOUNT_NAME", "EMULATOR", "REGION"];
    let mut variables = options.variables.clone();
    if location.service == Service::S3 {
        // A profile that cannot be read is an error of opening the bucket.
        variables.extend(profile::variables(&options.variables).unwrap_or_default());
    }
    let prefix = location.service.variables().trim_end_matches('*');
    let is_choosing = |name: &str| name.starts_with(prefix) && CHOOSING.iter().any(|part| name.contains(part));
    variables.retain(|(name, _)| is_choosing(name));
    variables.sort();
    let variables = variables.into_iter().map(|(name, value)| format!("\n{name}={value}"));
    format!("{location}{}", variables.collect::<String>())
}

/// Rejects an endpoint without encryption that is not allowed to be one: no request would be made, and the error of the
/// first would not say why.
fn check_endpoint(service: Service, variables: &[(String, String)]) -> Result<(), String> {
    let (endpoints, allowance) = service.endpoints();
    // A value that is neither true nor false is an error of the client.
    let is_allowed = variables.iter().any(|(name, value)| name == allowance && boolean(value).unwrap_or(true));
    let is_plain = |value: &str| value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let plain = variables.iter().find(|(name, value)| endpoints.contains(&name.as_str()) && is_plain(value));
    match plain {
        Some((name, _)) if !is_allowed => {
            Err(format!("the endpoint, {name}, is http:// and not encrypted, which {allowance}=true allows"))
        }
        _ => Ok(()),
    }
}

fn s3(location: &Location, options: &Options) -> object_store::Result<Arc<dyn Bucket>> {
    let mut builder = AmazonS3Builder::new();
    for (key, value) in settings::<AmazonS3ConfigKey>(options, "AWS_", AmazonS3ConfigKey::Client) {
        builder = builder.with_config(key, value);
    }
    let builder = builder
        .with_bucket_name(&location.bucket)
        .with_retry(no_retries())
        .with_http_connector(connector(location, options));
    Ok(Arc::new(builder.build()?))
}

fn google(location: &Location, options: &Options) -> object_store::Result<Arc<dyn Bucket>> {
    let mut builder = GoogleCloudStorageBuilder::new();
    if let Some((_, path)) = options.variables.iter().find(|(name, _)| name == "SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(path);
    }
    for (key, value) in settings::<GoogleConfigKey>(options, "GOOGLE_", GoogleConfigKey::Client) {
        builder = builder.with_config(key, value);
    }
    let builder = builder
        .with_bucket_name(&location.bucket)
        .with_retry(no_retries())
        .with_http_connector(connector(location, options));
    Ok(Arc::new(builder.build()?))
}

fn azure(location: &Location, options: &Options) -> object_store::Result<Arc<dyn Bucket>> {
    let mut builder = MicrosoftAzureBuilder::new();
    for (key, value) in settings::<AzureConfigKey>(options, "AZURE_", AzureConfigKey::Client) {
        builder = builder.with_config(key, value);
    }
    if let Some((_, endpoint)) = options.variables.iter().find(|(name, _)| name == "IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    let builder = builder
        .with_container_name(&location.bucket)
        .with_retry(no_retries())
        .with_http_connector(connector(location, options));
    Ok(Arc::new(builder.build()?))
}

fn connector(location: &Location, options: &Options) -> impl HttpConnector {
    let Options { read_timeout, retries, .. } = *options;
    Connector { service: location.service, read_timeout, retries }
}

/// Requests are repeated by the store: the library does not resume a value with `If-Match`, and ignores `Retry-After`.
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The settings of a service: the timeouts of the options, and all variables that begin with a prefix, which go before.
fn settings<K: FromStr>(options: &Options, prefix: &str, client: fn(ClientConfigKey) -> K) -> Vec<(K, String)> {
    let text = |duration: Duration| humantime::format_duration(duration).to_string();
    // A value of any size is read at its reader's pace.
    const UNLIMITED: Duration = Duration::from_secs(7 * 24 * 3600);
    let timeouts = [
        (client(ClientConfigKey::ConnectTimeout), text(options.connect_timeout)),
        (client(ClientConfigKey::ReadTimeout), text(options.read_timeout)),
        (client(ClientConfigKey::Timeout), text(UNLIMITED)),
    ];
    let variables = options.variables.iter().filter(|(name, _)| name.starts_with(prefix));
    let variables =
        variables.filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.clone())));
    timeouts.into_iter().chain(variables).collect()
}

/// Removes the values of variables that may be secret, and quotations of parts of them.
fn redact(text: String, variables: &[(String, String)]) -> String {
    const SHORTEST_QUOTATION: usize = 4;
    let may_be_secret = |name: &str| {
        ["AWS_", "GOOGLE_", "AZURE_", "SERVICE_ACCOUNT"].iter().any(|prefix| name.starts_with(prefix))
            && !PUBLIC.iter().any(|public| name.contains(public))
    };
    let secrets: Vec<_> =
        variables.iter().filter(|(name, value)| may_be_secret(name) && !value.trim().is_empty()).collect();
    let mut shown = text;
    for (name, value) in &secrets {
        shown = shown.replace(value.as_str(), &format!("(the value of {name})"));
    }
    let quotations = shown.split_inclusive(['"', '`']).map(|part| {
        let quoted = part.trim_end_matches(['"', '`']);
        let is_secret = quoted.len() >= SHORTEST_QUOTATION && secrets.iter().any(|(_, value)| value.contains(quoted));
        if is_secret { part.replace(quoted, "(hidden)") } else { part.to_owned() }
    });
    quotations.collect::<String>().chars().filter(|c| !c.is_control()).take(500).collect()
}

/// The options of a request for an object.
pub(crate) fn get_options() -> GetOptions {
    let mut options = GetOptions::default();
    options.extensions.insert(crate::http::Purpose::Object);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_buckets_depend_on_the_service() {
        let name = |url: &str, variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let url: crate::BucketUrl = url.parse().unwrap();
            service_name(&url.location, &Options::with_variables(variables))
        };
        let first = name("s3://b/p", &[("AWS_ENDPOINT_URL", "http://a"), ("AWS_SECRET_ACCESS_KEY", "hunter2")]);
        assert_eq!(name("s3://b/p/?recheck=0", &[("AWS_ENDPOINT_URL", "http://a"), ("HOME", "/x")]), first);
        assert!(!first.contains("hunter2"), "{first}");
        for (url, variables) in [
            ("s3://b/p", &[][..]),
            ("s3://b/p", &[("AWS_ENDPOINT_URL", "http://b")]),
            ("s3://b/q", &[("AWS_ENDPOINT_URL", "http://a")]),
            ("s3://c/p", &[("AWS_ENDPOINT_URL", "http://a")]),
            ("gs://b/p", &[("AWS_ENDPOINT_URL", "http://a")]),
        ] {
            assert_ne!(name(url, variables), first, "{url} {variables:?}");
        }
        let account = |account| name("az://b/", &[("AZURE_STORAGE_ACCOUNT_NAME", account)]);
        assert_ne!(account("one"), account("other"));
    }

    #[test]
    fn texts_have_no_values_of_variables_that_may_be_secret_nor_quotations_of_them() {
        let variables = [
            ("AWS_SECRET_ACCESS_KEY", "s3cr3t-value"),
            ("AWS_REGION", "eu-west-1"),
            ("GOOGLE_SERVICE_ACCOUNT_KEY", "{\"private_key\": \"pr1vate\", \"type\": \"x\"}"),
            ("AZURE_STORAGE_KEY", ""),
            ("HOME", "/root"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (text, shown) in [
            ("failed to parse \"s3cr3t-value\"", "failed to parse \"(the value of AWS_SECRET_ACCESS_KEY)\""),
            ("unknown variant `pr1vate`, expected `a`", "unknown variant `(hidden)`, expected `a`"),
            ("invalid region \"eu-west-1\" in /root", "invalid region \"eu-west-1\" in /root"),
            ("a\nb", "ab"),
        ] {
            assert_eq!(redact(text.to_owned(), &variables), shown);
        }
        assert_eq!(redact("x".repeat(1_000), &variables).len(), 500);
    }
}
