//! The canonical form of requests, which is what is signed.

use std::borrow::Cow;

use http::{HeaderMap, Uri, header::HOST};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

use super::SignedRequest;

/// The characters that are encoded in names and values of a query.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The characters that are encoded in a path.
const PATH: &AsciiSet = &STRICT.remove(b'/');
/// The parameter that is not signed.
const SIGNATURE: &str = "X-Amz-Signature";

/// The canonical path of a request, and the path as it was sent, which some clients sign if it has characters that need no
/// encoding.
pub(super) fn paths(uri: &Uri) -> impl Iterator<Item = Cow<'_, str>> {
    let sent = uri.path();
    let decoded: Vec<u8> = percent_decode(sent.as_bytes()).collect();
    let canonical = percent_encode(&decoded, PATH).to_string();
    let other = (canonical != sent).then_some(Cow::Borrowed(sent));
    std::iter::once(Cow::Owned(canonical)).chain(other)
}

/// The canonical request with a path.
pub(super) fn request(request: SignedRequest<'_>, path: &str, signed: &[String], payload: &[u8]) -> Vec<u8> {
    let query = query(request.uri.query().unwrap_or_default());
    let mut text = format!("{}\n{path}\n{query}\n", request.method).into_bytes();
    for name in signed {
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        append_values(&mut text, request, name);
        text.push(b'\n');
    }
    text.push(b'\n');
    text.extend_from_slice(signed.join(";").as_bytes());
    text.push(b'\n');
    text.extend_from_slice(payload);
    text
}

/// The parameters of a query, decoded as forms are.
pub(super) fn parameters(query: &str) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    query.split('&').filter(|parameter| !parameter.is_empty()).map(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        (decode(name), decode(value))
    })
}

fn decode(text: &str) -> Cow<'_, [u8]> {
    match text.contains('+') {
        true => Cow::Owned(percent_decode(text.replace('+', " ").as_bytes()).collect()),
        false => Cow::from(percent_decode(text.as_bytes())),
    }
}

fn query(query: &str) -> String {
    let encode = |text: &[u8]| percent_encode(text, STRICT).to_string();
    let mut encoded: Vec<(String, String)> = parameters(query)
        .filter(|(name, _)| **name != *SIGNATURE.as_bytes())
        .map(|(name, value)| (encode(&name), encode(&value)))
        .collect();
    encoded.sort();
    let encoded: Vec<String> = encoded.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    encoded.join("&")
}

/// Appends the values of a header, separated by commas, with single spaces.
fn append_values(text: &mut Vec<u8>, request: SignedRequest<'_>, name: &str) {
    let headers: &HeaderMap = request.headers;
    // HTTP/2 has an authority in place of the header.
    let authority = request.uri.authority().filter(|_| name == HOST.as_str() && !headers.contains_key(HOST));
    if let Some(authority) = authority {
        text.extend_from_slice(authority.as_str().as_bytes());
    }
    for (number, value) in headers.get_all(name).iter().enumerate() {
        if number > 0 {
            text.push(b',');
        }
        let words = value.as_bytes().split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        for (number, word) in words.enumerate() {
            if number > 0 {
                text.push(b' ');
            }
            text.extend_from_slice(word);
        }
    }
}
