//! The answers of a web server for files.

use bytes::Bytes;
use parking_lot::Mutex;

use super::server::{Answer, Bucket, Objects, Request};

/// The kinds of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// One with entity tags and ranges, such as nginx.
    Complete,
    /// One with times only, which ignores ranges, such as `python -m http.server`.
    Simple,
}

/// The answer to a request.
pub(crate) async fn answer(dialect: Dialect, request: &Request, bucket: &Mutex<Bucket>) -> Answer {
    file(dialect, request, &bucket.lock().objects)
}

fn file(dialect: Dialect, request: &Request, objects: &Objects) -> Answer {
    let name = request.path.trim_start_matches('/');
    let Some(object) = objects.get(name) else {
        let directory = format!("{name}/");
        if !name.is_empty() && objects.keys().any(|name| name.starts_with(&directory)) {
            let location = request.path.rsplit('/').next().unwrap().to_owned() + "/";
            return Answer { status: 301, headers: vec![("Location", location)], body: Bytes::new() };
        }
        return Answer { status: 404, headers: html(), body: "<html>Not found</html>".into() };
    };
    let mut headers = vec![("Last-Modified", httpdate::fmt_http_date(object.modified))];
    if dialect == Dialect::Simple {
        let date = object.modified + std::time::Duration::from_secs(10);
        headers.push(("Date", httpdate::fmt_http_date(date)));
        return Answer { status: 200, headers, body: object.bytes.clone() };
    }
    let etag = format!("\"{}\"", object.etag);
    if request.header("if-match").is_some_and(|wanted| wanted != etag) {
        return Answer { status: 412, headers: html(), body: "<html>Changed</html>".into() };
    }
    headers.push(("ETag", etag));
    let size = object.bytes.len();
    let Some(range) = request.header("range") else {
        return Answer { status: 200, headers, body: object.bytes.clone() };
    };
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let range = match (first, last) {
        ("", count) => size.saturating_sub(count.parse().unwrap())..size,
        (first, "") => first.parse().unwrap()..size,
        (first, last) => first.parse().unwrap()..(last.parse::<usize>().unwrap() + 1).min(size),
    };
    if range.is_empty() {
        let content_range = vec![("Content-Range", format!("bytes */{size}"))];
        return Answer { status: 416, headers: content_range, body: Bytes::new() };
    }
    headers.push(("Content-Range", format!("bytes {}-{}/{size}", range.start, range.end - 1)));
    Answer { status: 206, headers, body: object.bytes.slice(range) }
}

fn html() -> Vec<(&'static str, String)> {
    vec![("Content-Type", "text/html".to_owned())]
}
