//! The answers of the services to requests that change objects.

use std::{collections::BTreeMap, fmt::Write};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{
    answers::{Dialect, error, escape},
    server::{Answer, Bucket, Request, Upload},
};

/// The headers with conditions.
pub(super) const CONDITIONS: [&str; 3] = ["if-match", "if-none-match", "x-goog-if-generation-match"];

/// True if the service checks the conditions of this request before it writes.
pub(super) fn checks_before(request: &Request, bucket: &Mutex<Bucket>) -> bool {
    request.method == "PUT"
        && CONDITIONS.iter().any(|name| request.header(name).is_some())
        && bucket.lock().flaws.checks_before
}

/// The generation of an object, which Google's conditions are on.
pub(super) fn generation(etag: &str) -> String {
    u128::from_str_radix(etag, 16).unwrap().to_string()
}

/// The refusal of a request whose condition does not hold.
pub(super) fn check(dialect: Dialect, request: &Request, bucket: &Bucket) -> Option<Answer> {
    let path = request.path.trim_start_matches('/');
    let path = path.strip_prefix("account/").unwrap_or(path);
    let (_, name) = path.split_once('/').unwrap_or((path, ""));
    let current = bucket.objects.get(name).map(|object| object.etag.as_str());
    let flaws = bucket.flaws;
    let (generation_match, if_match) = (request.header("x-goog-if-generation-match"), request.header("if-match"));
    let creates = request.header("if-none-match") == Some("*") || generation_match == Some("0");
    if flaws.refuses_conditions && (creates || if_match.is_some() || generation_match.is_some()) {
        return Some(error(501, "NotImplemented"));
    }
    if creates && !flaws.ignores_create_only && current.is_some() {
        return Some(match dialect {
            Dialect::S3 => error(412, "PreconditionFailed"),
            Dialect::Azure => error(409, "BlobAlreadyExists"),
        });
    }
    let wanted = if_match.map(|etag| Some(etag.trim_matches('"').to_owned()));
    let wanted = wanted.or_else(|| {
        let generation = generation_match.filter(|generation| *generation != "0")?;
        Some(Some(format!("{:032x}", generation.parse::<u128>().unwrap())))
    });
    match wanted {
        Some(_) if flaws.ignores_if_match => None,
        Some(_) if current.is_none() && dialect == Dialect::S3 && if_match.is_some() => Some(error(404, "NoSuchKey")),
        Some(wanted) if wanted.as_deref() != current => Some(error(412, "PreconditionFailed")),
        _ => None,
    }
}

pub(super) fn change(dialect: Dialect, request: &Request, bucket: &mut Bucket, name: &str) -> Answer {
    let text = |name: &str| request.query.get(name).map(String::as_str);
    let flaws = bucket.flaws;
    match request.method.as_str() {
        "POST" if text("comp") == Some("batch") => batch(request, bucket),
        "POST" if text("delete").is_some() => deletes(request, bucket),
        "DELETE" if text("uploadId").is_some() => {
            bucket.uploads.remove(text("uploadId").unwrap());
            status(204)
        }
        "DELETE" if flaws.forbids_deletes => error(403, "AccessDenied"),
        "DELETE" if flaws.ignores_deletes => status(204),
        "DELETE" if !bucket.remove(name) => error(404, "NoSuchKey"),
        "DELETE" => status(204),
        _ if flaws.forbids_puts => error(403, "AccessDenied"),
        "POST" if text("uploads").is_some() => {
            let id = format!("upload-{}", bucket.history.len() + bucket.uploads.len());
            bucket.uploads.insert(id.clone(), Upload { metadata: metadata(request), ..Upload::default() });
            let xml = format!(
                "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            );
            Answer { status: 200, headers: Vec::new(), body: xml.into() }
        }
        "POST" => complete(request, bucket, name),
        _ if text("comp") == Some("block") || text("partNumber").is_some() => part(request, bucket, name),
        _ if text("comp") == Some("blocklist") => block_list(request, bucket, name),
        _ => put(dialect, request, bucket, name),
    }
}

fn put(dialect: Dialect, request: &Request, bucket: &mut Bucket, name: &str) -> Answer {
    if let Some(refused) = check(dialect, request, bucket) {
        return refused;
    }
    let etag = bucket.put(name, request.body.clone(), metadata(request));
    stored(dialect, &etag)
}

fn stored(dialect: Dialect, etag: &str) -> Answer {
    let status = if dialect == Dialect::Azure { 201 } else { 200 };
    let headers = vec![("ETag", format!("\"{etag}\"")), ("x-goog-generation", generation(etag))];
    Answer { status, headers, body: Bytes::new() }
}

fn metadata(request: &Request) -> BTreeMap<String, String> {
    let prefixes = ["x-amz-meta-", "x-goog-meta-", "x-ms-meta-"];
    let field = |(name, value): (&String, &String)| {
        let name = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
        Some((name.to_owned(), value.clone()))
    };
    request.headers.iter().filter_map(field).collect()
}

fn status(status: u16) -> Answer {
    Answer { status, ..Answer::default() }
}

fn part(request: &Request, bucket: &mut Bucket, name: &str) -> Answer {
    let (id, part) = match request.query.get("uploadId") {
        Some(id) => (id.clone(), format!("{:0>8}", request.query.get("partNumber").unwrap())),
        None => (name.to_owned(), request.query.get("blockid").unwrap().clone()),
    };
    if request.query.contains_key("uploadId") && !bucket.uploads.contains_key(&id) {
        return error(404, "NoSuchUpload");
    }
    bucket.uploads.entry(id).or_default().parts.insert(part, request.body.clone());
    Answer { status: 200, headers: vec![("ETag", "\"part\"".to_owned())], body: Bytes::new() }
}

fn complete(request: &Request, bucket: &mut Bucket, name: &str) -> Answer {
    let Some(upload) = bucket.uploads.remove(request.query.get("uploadId").unwrap()) else {
        return error(404, "NoSuchUpload");
    };
    let value: Vec<u8> = upload.parts.into_values().flatten().collect();
    let etag = bucket.put(name, value.into(), upload.metadata);
    let xml = format!(
        "<CompleteMultipartUploadResult><Location>l</Location><Bucket>b</Bucket><Key>k</Key><ETag>\"{etag}\"</ETag></CompleteMultipartUploadResult>"
    );
    Answer { status: 200, headers: vec![("x-goog-generation", generation(&etag))], body: xml.into() }
}

fn block_list(request: &Request, bucket: &mut Bucket, name: &str) -> Answer {
    let upload = bucket.uploads.remove(name).unwrap_or_default();
    let text = String::from_utf8(request.body.to_vec()).unwrap();
    let ids = text.split("<Uncommitted>").skip(1).map(|rest| rest.split('<').next().unwrap());
    let value: Vec<u8> = ids.flat_map(|id| upload.parts.get(id).unwrap().clone()).collect();
    let etag = bucket.put(name, value.into(), metadata(request));
    stored(Dialect::Azure, &etag)
}

/// The deletes of S3.
fn deletes(request: &Request, bucket: &mut Bucket) -> Answer {
    let text = String::from_utf8(request.body.to_vec()).unwrap();
    let names = text.split("<Key>").skip(1).map(|rest| unescape(rest.split("</Key>").next().unwrap()));
    let mut xml = String::from("<DeleteResult>");
    for name in names {
        let shown = escape(&name);
        if bucket.flaws.forbids_deletes {
            write!(xml, "<Error><Key>{shown}</Key><Code>AccessDenied</Code><Message>no</Message></Error>").unwrap();
            continue;
        }
        if !bucket.flaws.ignores_deletes {
            bucket.remove(&name);
        }
        write!(xml, "<Deleted><Key>{shown}</Key></Deleted>").unwrap();
    }
    xml.push_str("</DeleteResult>");
    Answer { status: 200, headers: Vec::new(), body: xml.into() }
}

/// The deletes of Azure.
fn batch(request: &Request, bucket: &mut Bucket) -> Answer {
    let text = String::from_utf8(request.body.to_vec()).unwrap();
    let mut body = String::new();
    let targets = text.lines().filter_map(|line| line.strip_prefix("DELETE ")?.split(' ').next());
    for (number, target) in targets.enumerate() {
        let path = target.split('?').next().unwrap();
        let path = percent_encoding::percent_decode_str(path).decode_utf8().unwrap();
        let name = path.trim_start_matches('/').trim_start_matches("account/").strip_prefix("b/").unwrap();
        let answer = match bucket.flaws {
            flaws if flaws.forbids_deletes => "403 Forbidden",
            flaws if flaws.ignores_deletes => "202 Accepted",
            _ if bucket.remove(name) => "202 Accepted",
            _ => "404 NotFound",
        };
        write!(body, "--x\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 {answer}\r\n\r\n")
            .unwrap();
    }
    body.push_str("--x--\r\n");
    let headers = vec![("Content-Type", "multipart/mixed; boundary=x".to_owned())];
    Answer { status: 202, headers, body: body.into() }
}

fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'");
    text.replace("&amp;", "&")
}
