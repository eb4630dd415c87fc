//! What S3 clients need to use a token: a key pair, a profile, and environments.

use zarrd_access::{CredentialId, Secret};

/// The profile and the environments of S3 clients for a token, at the URL of `--s3-listen`.
pub(super) fn render(url: &str, id: CredentialId, secret: &Secret) -> String {
    let secret = secret.secret_key();
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    let is_plain = !url.starts_with("https:");
    let (https, ssl) = if is_plain { ("NO", "false") } else { ("YES", "true") };
    format!(
        "\
# The access key and the secret key, as the profile `zarrd` in ~/.aws/credentials
[zarrd]
aws_access_key_id = {id}
aws_secret_access_key = {secret}

# In ~/.aws/config
[profile zarrd]
region = us-east-1
endpoint_url = {url}
s3 =
  addressing_style = path
  signature_version = s3v4

# The environment of boto3, s3fs and the AWS CLI
export AWS_ACCESS_KEY_ID={id} AWS_SECRET_ACCESS_KEY={secret}
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ENDPOINT_URL={url}
# obstore and icechunk, in addition
export AWS_ENDPOINT={url} AWS_ALLOW_HTTP={is_plain}
# GDAL, in addition
export AWS_S3_ENDPOINT={host} AWS_HTTPS={https} AWS_VIRTUAL_HOSTING=FALSE
# rclone, in addition: its remote is zarrd:
export RCLONE_CONFIG_ZARRD_TYPE=s3 RCLONE_CONFIG_ZARRD_PROVIDER=Other RCLONE_CONFIG_ZARRD_ENV_AUTH=true
export RCLONE_CONFIG_ZARRD_ENDPOINT={url}
# tensorstore, with the keys of the environment
#   {{\"driver\": \"s3\", \"endpoint\": \"{url}\", \"aws_region\": \"us-east-1\", \"host_header\": \"{host}\", \"bucket\": …}}
# DuckDB
#   CREATE SECRET (TYPE s3, KEY_ID '{id}', SECRET '{secret}', REGION 'us-east-1', ENDPOINT '{host}', URL_STYLE 'path', USE_SSL {ssl});"
    )
}

#[cfg(test)]
mod tests {
    use zarrd_access::{AccessDirectory, Grants, NewToken, Right};

    use super::*;

    #[test]
    fn clients_get_the_parts_of_the_token_and_the_kind_of_the_connection() {
        let temp = tempfile::tempdir().unwrap();
        let directory = AccessDirectory::open(temp.path().join("access")).unwrap();
        let new = NewToken { name: "Ada".into(), grants: Grants::everything(Right::Read), expires: None, maker: None };
        let (info, secret) = directory.create(new).unwrap();
        assert!(secret.expose().ends_with(&format!("{}_{}", info.id, secret.secret_key())));
        let text = render("http://127.0.0.1:8002", info.id, &secret);
        assert!(text.contains(&format!(
            "aws_access_key_id = {}\naws_secret_access_key = {}\n",
            info.id,
            secret.secret_key()
        )));
        assert!(text.contains("AWS_ENDPOINT=http://127.0.0.1:8002 AWS_ALLOW_HTTP=true"), "{text}");
        assert!(text.contains("ENDPOINT '127.0.0.1:8002', URL_STYLE 'path', USE_SSL false"), "{text}");
        let text = render("https://s3.example.org", info.id, &secret);
        assert!(
            text.contains("AWS_S3_ENDPOINT=s3.example.org AWS_HTTPS=YES") && text.contains("USE_SSL true"),
            "{text}"
        );
    }
}
