//! The table of rights of the S3 surface: every kind of caller, every operation, and names inside, at the edge of and outside a
//! prefix. Each answer is compared with a model that shares no code with the server.

use std::collections::BTreeSet;

use http::{Method, StatusCode};

use super::client::{Keys, S3Request, Site, code, open_keys, refused};
use crate::common::tokens::ServerWithTokens;

/// A caller with the prefixes that it may read and write.
struct Caller {
    name: &'static str,
    keys: Option<Keys>,
    reads: &'static [&'static str],
    writes: &'static [&'static str],
}

/// What an operation requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// To read a key.
    ReadKey(&'static str),
    /// To change a key.
    WriteKey(&'static str),
    /// To change everything below a prefix.
    WriteAll(&'static str),
    /// To read everything below a prefix.
    ReadAll(&'static str),
    /// To read something below a prefix.
    ReadSome(&'static str),
    /// To read one key, and to change another one.
    Copy(&'static str, &'static str),
}

impl Caller {
    fn may(&self, needs: Needs) -> bool {
        let within = |prefixes: &[&str], name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let reads = [self.reads, self.writes].concat();
        match needs {
            Needs::ReadKey(name) | Needs::ReadAll(name) => within(&reads, name),
            Needs::WriteKey(name) | Needs::WriteAll(name) => within(self.writes, name),
            Needs::ReadSome(prefix) => within(&reads, prefix) || reads.iter().any(|read| read.starts_with(prefix)),
            Needs::Copy(from, to) => within(&reads, from) && within(self.writes, to),
        }
    }
}

/// The requests for a key, and for the prefix above it.
fn requests(bucket: &'static str, key: &'static str) -> Vec<(S3Request, Needs)> {
    let target = format!("/{key}");
    let new = |method: Method, query: &str| S3Request::new(method, &format!("{target}{query}"), "");
    let of_bucket = |method: Method, query: &str| S3Request::new(method, &format!("/{bucket}{query}"), "");
    let parent: &'static str = key.get(..=key.rfind('/').unwrap()).unwrap();
    let whole: &'static str = key.get(..=key.find('/').unwrap()).unwrap();
    let below = parent.strip_prefix(whole).unwrap();
    let copy =
        |from: &str, to: &str| S3Request::new(Method::PUT, &format!("/{to}"), "").header("x-amz-copy-source", from);
    let body =
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>";
    let upload = "00000000000000000000000000000000";
    vec![
        (new(Method::GET, ""), Needs::ReadKey(key)),
        (new(Method::HEAD, ""), Needs::ReadKey(key)),
        (new(Method::GET, "?acl"), Needs::ReadKey(key)),
        (new(Method::GET, "?tagging"), Needs::ReadKey(key)),
        (new(Method::GET, "?attributes").header("x-amz-object-attributes", "ETag"), Needs::ReadKey(key)),
        (new(Method::PUT, ""), Needs::WriteKey(key)),
        (new(Method::DELETE, ""), Needs::WriteKey(key)),
        (new(Method::POST, "?uploads"), Needs::WriteKey(key)),
        (new(Method::PUT, &format!("?partNumber=1&uploadId={upload}")), Needs::WriteKey(key)),
        (new(Method::GET, &format!("?uploadId={upload}")), Needs::WriteKey(key)),
        (new(Method::DELETE, &format!("?uploadId={upload}")), Needs::WriteKey(key)),
        (S3Request::new(Method::POST, &format!("{target}?uploadId={upload}"), body), Needs::WriteKey(key)),
        (copy(key, "lab/exp1/copy"), Needs::Copy(key, "lab/exp1/copy")),
        (copy("lab/exp1/a", key), Needs::Copy("lab/exp1/a", key)),
        (of_bucket(Method::GET, &format!("?list-type=2&prefix={below}")), Needs::ReadAll(parent)),
        (of_bucket(Method::GET, &format!("?list-type=2&delimiter=/&prefix={below}")), Needs::ReadSome(parent)),
        (of_bucket(Method::GET, &format!("?prefix={below}")), Needs::ReadAll(parent)),
        (of_bucket(Method::GET, &format!("?versions&prefix={below}")), Needs::ReadAll(parent)),
        (of_bucket(Method::HEAD, ""), Needs::ReadSome(whole)),
        (of_bucket(Method::GET, "?location"), Needs::ReadSome(whole)),
        (of_bucket(Method::GET, "?uploads"), Needs::ReadSome(whole)),
        (of_bucket(Method::GET, "?policy"), Needs::ReadSome(whole)),
        (of_bucket(Method::PUT, ""), Needs::WriteAll(whole)),
        (of_bucket(Method::DELETE, ""), Needs::WriteAll(whole)),
    ]
}

const KEYS: [(&str, &str); 5] =
    [("lab", "lab/exp1/a"), ("lab", "lab/a"), ("lab", "lab/exp10/a"), ("lab2", "lab2/exp1/a"), ("LAB", "LAB/exp1/a")];

#[tokio::test]
async fn every_operation_requires_the_right_on_what_it_names() {
    let server = ServerWithTokens::closed();
    let token = |grants: &[&str]| Some(Keys::of_token(&server, grants));
    let callers = [
        Caller { name: "unsigned", keys: None, reads: &[], writes: &[] },
        Caller { name: "open pair", keys: Some(open_keys()), reads: &[], writes: &[] },
        Caller { name: "reader", keys: token(&["read:lab/exp1/"]), reads: &["lab/exp1/"], writes: &[] },
        Caller { name: "writer", keys: token(&["write:lab/exp1/"]), reads: &[], writes: &["lab/exp1/"] },
        Caller {
            name: "mixed",
            keys: token(&["read:lab/", "write:lab/exp1/"]),
            reads: &["lab/"],
            writes: &["lab/exp1/"],
        },
        Caller { name: "all", keys: token(&["write:/"]), reads: &[], writes: &[""] },
    ];
    let site = Site::of(&server);
    let mut outcomes = BTreeSet::new();
    for caller in &callers {
        for (bucket, key) in KEYS {
            for (name, _) in KEYS.iter().map(|(_, key)| (key, ())) {
                site.api.set(name, b"value").await;
            }
            for (request, needs) in requests(bucket, key) {
                let shown = format!("{} {} {} {:?}", caller.name, request.method, request.target, request.headers);
                let request = match &caller.keys {
                    Some(keys) => request.signed(keys),
                    None => request,
                };
                let answer = site.send(request).await;
                let denied = answer.status == StatusCode::FORBIDDEN;
                assert_eq!(denied, !caller.may(needs), "{shown}: {needs:?} {}", answer.text());
                assert!(!answer.status.is_server_error(), "{shown}: {}", answer.text());
                outcomes.insert((denied, answer.status.as_u16()));
            }
        }
    }
    assert!(outcomes.len() > 4, "{outcomes:?}");
}

#[tokio::test]
async fn each_key_of_one_request_requires_its_right() {
    let server = ServerWithTokens::closed();
    let keys = Keys::of_token(&server, &["write:lab/exp1/"]);
    let site = Site::of(&server);
    for key in ["lab/exp1/a", "lab/exp2/a"] {
        site.api.set(key, b"value").await;
    }
    let body = "<Delete><Object><Key>exp1/a</Key></Object><Object><Key>exp2/a</Key></Object></Delete>";
    let sum = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        <sha2::Sha256 as sha2::Digest>::digest(body),
    );
    let request = S3Request::new(Method::POST, "/lab?delete", body).header("x-amz-checksum-sha256", &sum);
    let answer = site.send(request.signed(&keys)).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.text().contains("<Deleted><Key>exp1/a</Key>"), "{}", answer.text());
    assert!(answer.text().contains("<Code>AccessDenied</Code><Key>exp2/a</Key>"), "{}", answer.text());
    assert!(site.api.value("lab/exp1/a").await.is_none() && site.api.value("lab/exp2/a").await.is_some());
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
