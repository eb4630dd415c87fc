//! Rights on parts of a request; the table of rights has the others.

use http::{Method, StatusCode};

use super::client::{Keys, S3Request, Site, code, refused};
use crate::common::tokens::ServerWithTokens;

#[tokio::test]
async fn each_key_of_one_request_requires_its_right() {
    let server = ServerWithTokens::closed();
    let keys = Keys::of_token(&server, &["write:lab/exp1/", "read:lab/exp2/"]);
    let site = Site::of(&server);
    for key in ["lab/exp1/a", "lab/exp2/a", "lab/exp3/a"] {
        site.api.set(key, b"value").await;
    }
    let objects = ["exp1/a", "exp2/a", "exp3/a"].map(|key| format!("<Object><Key>{key}</Key></Object>")).concat();
    let body = &format!("<Delete>{objects}</Delete>");
    let sum = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        <sha2::Sha256 as sha2::Digest>::digest(body),
    );
    let request = S3Request::new(Method::POST, "/lab?delete", body).header("x-amz-checksum-sha256", &sum);
    let answer = site.send(request.signed(&keys)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.text().contains("<Deleted><Key>exp1/a</Key>"), "{}", answer.text());
    assert!(site.api.value("lab/exp1/a").await.is_none());
    for refused in ["exp2/a", "exp3/a"] {
        let error = format!("<Code>AccessDenied</Code><Key>{refused}</Key>");
        assert!(answer.text().contains(&error), "{}", answer.text());
        assert!(site.api.value(&format!("lab/{refused}")).await.is_some());
    }
}

#[tokio::test]
async fn upload_belongs_to_the_credential_that_began_it() {
    let server = ServerWithTokens::closed();
    let (ada, eve) = (Keys::of_token(&server, &["write:lab/"]), Keys::of_token(&server, &["write:lab/"]));
    let site = Site::of(&server);
    let created = site.send(S3Request::new(Method::POST, "/lab/a?uploads", "").signed(&ada)).await;
    let id = created.text().split("<UploadId>").nth(1).unwrap().split('<').next().unwrap();
    let part = || S3Request::new(Method::PUT, &format!("/lab/a?partNumber=1&uploadId={id}"), "x");
    assert_eq!(code(&site.send(part().signed(&eve)).await), refused(404, "NoSuchUpload"));
    let listed = |keys: &Keys| S3Request::new(Method::GET, "/lab?uploads", "").signed(keys);
    assert!(!site.send(listed(&eve)).await.text().contains(id));
    assert!(site.send(listed(&ada)).await.text().contains(id));
    assert_eq!(site.send(part().signed(&ada)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn listings_above_a_right_show_the_way_to_it() {
    let server = ServerWithTokens::closed();
    let keys = Keys::of_token(&server, &["read:lab/exp1/"]);
    let site = Site::of(&server);
    for key in ["lab/exp1/a", "lab/exp2/a", "lab/a", "other/a"] {
        site.api.set(key, b"value").await;
    }
    let get = async |target: &str| site.send(S3Request::new(Method::GET, target, "").signed(&keys)).await;
    let buckets = get("/").await;
    assert!(buckets.text().contains("<Name>lab</Name>") && !buckets.text().contains("other"), "{}", buckets.text());
    let listed = get("/lab?delimiter=/&list-type=2").await;
    assert!(listed.text().contains("<Prefix>exp1/</Prefix>"), "{}", listed.text());
    assert!(!listed.text().contains("exp2") && !listed.text().contains("<Key>"), "{}", listed.text());
}
