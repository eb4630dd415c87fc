//! The answers of the services.

use std::{collections::BTreeSet, fmt::Write};

use bytes::Bytes;

use parking_lot::Mutex;

use super::{
    changes,
    server::{Answer, Bucket, Objects, Request},
};

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// S3, and the XML protocol of Google Cloud Storage.
    S3,
    Azure,
}

/// The answer to a request.
pub(crate) async fn answer(dialect: Dialect, request: &Request, bucket: &Mutex<Bucket>) -> Answer {
    if changes::checks_before(request, bucket) {
        // The condition is checked, and the write made a moment later without it.
        if let Some(refused) = changes::check(dialect, request, &bucket.lock()) {
            return refused;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let mut unconditional = request.clone();
        changes::CONDITIONS.iter().for_each(|name| drop(unconditional.headers.remove(*name)));
        return answer_at_once(dialect, &unconditional, &mut bucket.lock());
    }
    answer_at_once(dialect, request, &mut bucket.lock())
}

fn answer_at_once(dialect: Dialect, request: &Request, bucket: &mut Bucket) -> Answer {
    let path = request.path.trim_start_matches('/');
    let path = if dialect == Dialect::Azure { path.strip_prefix("account/").unwrap_or(path) } else { path };
    let (named, name) = path.split_once('/').unwrap_or((path, ""));
    if named != "b" {
        let code = if dialect == Dialect::Azure { "ContainerNotFound" } else { "NoSuchBucket" };
        return error(404, code);
    }
    let flaws = bucket.flaws;
    match request.method.as_str() {
        "PUT" | "POST" | "DELETE" => changes::change(dialect, request, bucket, name),
        _ if request.is_list() && flaws.forbids_listings => error(403, "AccessDenied"),
        _ if request.is_list() => list(dialect, request, &bucket.objects),
        _ if flaws.forbids_gets => error(403, "AccessDenied"),
        _ => get(dialect, request, &bucket.objects, name),
    }
}

pub(super) fn error(status: u16, code: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>");
    Answer { status, headers: vec![("Content-Type", "application/xml".to_owned())], body: body.into() }
}

fn get(dialect: Dialect, request: &Request, objects: &Objects, name: &str) -> Answer {
    let Some(object) = objects.get(name) else {
        return error(404, if dialect == Dialect::Azure { "BlobNotFound" } else { "NoSuchKey" });
    };
    let etag = format!("\"{}\"", object.etag);
    if request.header("if-match").is_some_and(|wanted| wanted != etag) {
        return error(412, "PreconditionFailed");
    }
    let modified = ("Last-Modified", httpdate::fmt_http_date(object.modified));
    let mut headers = vec![("ETag", etag), modified, ("x-goog-generation", changes::generation(&object.etag))];
    if let Some(id) = object.metadata.get("zarrdwriteid") {
        let names = ["x-amz-meta-zarrdwriteid", "x-goog-meta-zarrdwriteid", "x-ms-meta-zarrdwriteid"];
        headers.extend(names.map(|name| (name, id.clone())));
    }
    let Some(range) = request.header("range") else {
        return Answer { status: 200, headers, body: object.bytes.clone() };
    };
    let size = object.bytes.len();
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let range = match (first, last) {
        ("", _) if dialect == Dialect::Azure => panic!("Azure has no suffixes"),
        ("", count) => size.saturating_sub(count.parse().unwrap())..size,
        (first, "") => first.parse().unwrap()..size,
        (first, last) => first.parse().unwrap()..(last.parse::<usize>().unwrap() + 1).min(size),
    };
    if range.is_empty() {
        return error(416, "InvalidRange");
    }
    let content_range = ("Content-Range", format!("bytes {}-{}/{size}", range.start, range.end - 1));
    Answer { status: 206, headers: [headers, vec![content_range]].concat(), body: object.bytes.slice(range) }
}

fn list(dialect: Dialect, request: &Request, objects: &Objects) -> Answer {
    let text = |name: &str| request.query.get(name).map(String::as_str);
    let prefix = text("prefix").unwrap_or_default();
    let most = text("max-keys").or(text("maxresults")).map_or(1_000, |most| most.parse().unwrap()).min(1_000);
    let token = text("continuation-token").or(text("marker"));
    let after = token.or(text("start-after")).unwrap_or_default();
    let (mut found, mut prefixes, mut next, mut last) = (Vec::new(), BTreeSet::new(), None, "");
    for (name, object) in objects.iter().filter(|(name, _)| name.starts_with(prefix) && name.as_str() > after) {
        let rest = name.get(prefix.len()..).unwrap();
        let rolled =
            text("delimiter").and_then(|_| rest.find('/')).map(|at| format!("{prefix}{}", rest.get(..=at).unwrap()));
        if rolled.as_ref().is_some_and(|rolled| prefixes.contains(rolled)) {
            last = name;
            continue;
        }
        if found.len() + prefixes.len() == most {
            next = Some(last.to_owned());
            break;
        }
        match rolled {
            Some(rolled) => drop(prefixes.insert(rolled)),
            None => found.push((name, object)),
        }
        last = name;
    }
    let mut body = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    match dialect {
        Dialect::S3 => {
            body.push_str("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
            for (name, object) in found {
                let (name, time) = (escape(name), humantime::format_rfc3339_millis(object.modified));
                let (etag, size) = (&object.etag, object.bytes.len());
                write!(body, "<Contents><Key>{name}</Key><LastModified>{time}</LastModified><ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size></Contents>").unwrap();
            }
            for prefix in prefixes {
                write!(body, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escape(&prefix)).unwrap();
            }
            write!(body, "<IsTruncated>{}</IsTruncated>", next.is_some()).unwrap();
            if let Some(next) = next {
                write!(body, "<NextContinuationToken>{}</NextContinuationToken>", escape(&next)).unwrap();
            }
            body.push_str("</ListBucketResult>");
        }
        Dialect::Azure => {
            body.push_str("<EnumerationResults><Blobs>");
            for (name, object) in found {
                let (name, time) = (escape(name), httpdate::fmt_http_date(object.modified));
                let (etag, size) = (&object.etag, object.bytes.len());
                write!(body, "<Blob><Name>{name}</Name><Properties><Last-Modified>{time}</Last-Modified><Etag>{etag}</Etag><Content-Length>{size}</Content-Length></Properties></Blob>").unwrap();
            }
            for prefix in prefixes {
                write!(body, "<BlobPrefix><Name>{}</Name></BlobPrefix>", escape(&prefix)).unwrap();
            }
            write!(body, "</Blobs><NextMarker>{}</NextMarker></EnumerationResults>", escape(&next.unwrap_or_default()))
                .unwrap();
        }
    }
    Answer { status: 200, headers: vec![("Content-Type", "application/xml".to_owned())], body: Bytes::from(body) }
}

pub(super) fn escape(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            character if character.is_control() => write!(text, "&#x{:x};", u32::from(character)).unwrap(),
            character => text.push(character),
        }
    }
    text
}
