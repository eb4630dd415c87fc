//! The operations of S3: of each object, of its bucket, and of what is listed above it.

use http::Method;
use zarrd_server::Surface;

use super::{
    Cell, CountedServer, NAMES, Outcome,
    callers::{Caller, CallerKind, Credential},
    has,
};
use crate::{
    common::TestResponse,
    s3::client::{Keys, S3Request, open_keys},
};

/// Names that the other surfaces do not have: a key that exists, one far below, and one in a public prefix.
const MORE_NAMES: [&str; 3] = ["lab/exp1/zarr.json", "lab/x/deep/a", "lab/inbox/a"];
const UPLOAD: &str = "00000000000000000000000000000000";
const PARTS: &str =
    "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>";

/// An operation on a name.
pub(super) struct S3Cell {
    method: Method,
    target: String,
    headers: Vec<(&'static str, String)>,
    body: &'static str,
    needs: Needs,
    signer: Signer,
}

/// The place of the signature of a caller without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signer {
    /// None.
    Nobody,
    /// The pair that everyone knows.
    OpenPair,
}

/// The rights that an operation requires.
#[derive(Clone, Debug)]
enum Needs {
    /// A name that is no key, whatever the rights on it; of a copy, after the right to read the source.
    Invalid(Option<String>),
    /// To read a key, or everything below a prefix.
    Read(String),
    /// To change a key, or everything below a prefix.
    Write(String),
    /// To read something below a prefix.
    ReadSome(String),
    /// To read one key, and to change another one.
    Copy(String, String),
    /// Nothing: what is shown depends on the rights.
    Nothing,
}

/// All operations with all names.
pub(super) fn requests() -> Vec<S3Cell> {
    let mut all = Vec::new();
    let mut add = |method: &Method, target: String, headers: &[(&'static str, String)], body, needs: Needs| {
        for signer in [Signer::Nobody, Signer::OpenPair] {
            let (method, target, headers, needs) = (method.clone(), target.clone(), headers.to_vec(), needs.clone());
            all.push(S3Cell { method, target, headers, body, needs, signer });
        }
    };
    for sent in NAMES.into_iter().chain(MORE_NAMES) {
        let name = sent.replace("%6c", "l").replace("%2F", "/");
        let Some((bucket, key)) = name.split_once('/') else {
            for (method, query, needs) in of_bucket(&name, "") {
                add(&method, format!("/{sent}{query}"), &[], "", needs);
            }
            continue;
        };
        let is_valid = key.split('/').all(|segment| !["", ".", ".."].contains(&segment));
        let needs = |needs: Needs| if is_valid { needs } else { Needs::Invalid(None) };
        for (method, query, body, wanted) in of_object(&name) {
            add(&method, format!("/{sent}{query}"), &[], body, needs(wanted));
        }
        let attributes = ("x-amz-object-attributes", "ETag".to_owned());
        add(&Method::GET, format!("/{sent}?attributes"), &[attributes], "", needs(Needs::Read(name.clone())));
        for query in ["", &format!("?partNumber=1&uploadId={UPLOAD}")] {
            for (from, to) in [(name.as_str(), "lab/exp1/copy"), ("lab/exp1/a", name.as_str())] {
                let path = if to == name { sent } else { to };
                let source = ("x-amz-copy-source", from.to_owned());
                let copies = match is_valid || from == name {
                    true => needs(Needs::Copy(from.to_owned(), to.to_owned())),
                    false => Needs::Invalid(Some(from.to_owned())),
                };
                add(&Method::PUT, format!("/{path}{query}"), &[source], "", copies);
            }
        }
        // What is above the key.
        if is_valid {
            let below = key.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
            for (method, query, needs) in of_bucket(bucket, &below) {
                add(&method, format!("/{bucket}{query}"), &[], "", needs);
            }
        }
    }
    add(&Method::GET, "/".to_owned(), &[], "", Needs::Nothing);
    all
}

/// The operations of an object: method, query, body, and what is required.
fn of_object(name: &str) -> Vec<(Method, String, &'static str, Needs)> {
    let read = |method: Method, query: &str| (method, query.to_owned(), "", Needs::Read(name.to_owned()));
    let write = |method: Method, query: &str, body| (method, query.to_owned(), body, Needs::Write(name.to_owned()));
    let upload = format!("?uploadId={UPLOAD}");
    vec![
        read(Method::GET, ""),
        read(Method::HEAD, ""),
        read(Method::GET, "?acl"),
        read(Method::GET, "?tagging"),
        write(Method::PUT, "", ""),
        write(Method::DELETE, "", ""),
        write(Method::POST, "?uploads", ""),
        write(Method::PUT, &format!("?partNumber=1&uploadId={UPLOAD}"), ""),
        write(Method::GET, &upload, ""),
        write(Method::DELETE, &upload, ""),
        write(Method::POST, &upload, PARTS),
    ]
}

/// The operations of a bucket, and of a prefix in it: method, query, and what is required.
fn of_bucket(bucket: &str, below: &str) -> Vec<(Method, String, Needs)> {
    let (whole, prefix) = (format!("{bucket}/"), format!("{bucket}/{below}"));
    let of_whole = |query: &str| (Method::GET, query.to_owned(), Needs::ReadSome(whole.clone()));
    let mut all = vec![
        (Method::GET, format!("?list-type=2&prefix={below}"), Needs::Read(prefix.clone())),
        (Method::GET, format!("?list-type=2&delimiter=/&prefix={below}"), Needs::ReadSome(prefix.clone())),
        (Method::GET, format!("?prefix={below}"), Needs::Read(prefix.clone())),
        (Method::GET, format!("?versions&prefix={below}"), Needs::Read(prefix)),
        (Method::HEAD, String::new(), Needs::ReadSome(whole.clone())),
        (Method::PUT, String::new(), Needs::Write(whole.clone())),
        (Method::DELETE, String::new(), Needs::Write(whole.clone())),
    ];
    all.extend(["?location", "?uploads", "?uploads&delimiter=/", "?policy", "?versioning", "?acl"].map(of_whole));
    all
}

impl Cell for S3Cell {
    fn shown(&self) -> String {
        format!("S3 {:?} {} {} {:?}", self.signer, self.method, self.target, self.headers)
    }

    fn applies(&self, caller: &Caller) -> bool {
        match caller.credential {
            Credential::None => true,
            // They sign with their own keys, in headers or in the query; links have none.
            Credential::Bearer(_) | Credential::Basic(_) => self.signer == Signer::Nobody,
            Credential::Link(_) => false,
        }
    }

    fn expected(&self, caller: &Caller) -> Outcome {
        let (grants, is_anonymous) = match caller.kind {
            CallerKind::Refused | CallerKind::Link(_) => return Outcome::Forbidden,
            CallerKind::Anonymous(grants) => (grants, true),
            CallerKind::Token(grants) => (grants, false),
        };
        let is_allowed = match &self.needs {
            Needs::Invalid(source) => {
                return match source.as_deref().is_none_or(|source| has(grants, "read", source)) {
                    true => Outcome::Invalid,
                    false => Outcome::Forbidden,
                };
            }
            Needs::Read(name) => has(grants, "read", name),
            Needs::Write(name) => has(grants, "write", name),
            Needs::ReadSome(prefix) => {
                has(grants, "read", prefix) || grants.iter().any(|(_, granted)| granted.starts_with(prefix.as_str()))
            }
            Needs::Copy(from, to) => has(grants, "read", from) && has(grants, "write", to),
            Needs::Nothing => !is_anonymous || !grants.is_empty(),
        };
        if is_allowed { Outcome::Allowed } else { Outcome::Forbidden }
    }

    fn outcome(&self, answer: &TestResponse) -> Option<Outcome> {
        let has_code = |code: &str| answer.text().contains(&format!("<Code>{code}</Code>"));
        Some(match answer.status.as_u16() {
            403 => Outcome::Forbidden,
            // A response to HEAD has no code.
            400 if self.method == Method::HEAD => return None,
            400 if ["InvalidArgument", "InvalidBucketName"].into_iter().any(has_code) => Outcome::Invalid,
            _ => Outcome::Allowed,
        })
    }

    async fn send(&self, server: &CountedServer, caller: &Caller) -> TestResponse {
        let mut request = S3Request::new(self.method.clone(), &self.target, self.body).header("x-request-id", "r");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = match (&caller.credential, self.signer) {
            (Credential::Bearer(token), _) => request.signed(&Keys::of_text(token)),
            (Credential::Basic(token), _) => request.presigned(&Keys::of_text(token)),
            (_, Signer::OpenPair) => request.signed(&open_keys()),
            (_, Signer::Nobody) => request,
        };
        request.send(server.router(Surface::S3)).await
    }
}
