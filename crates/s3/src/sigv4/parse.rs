//! Parsing of signatures in headers and presigned URLs.

use std::{
    borrow::Cow,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, header::AUTHORIZATION};
use s3s::{S3Error, s3_error};

use super::{ALGORITHM, Place, Signature, SignedRequest, canonical::parameters};

/// The maximum length of an `Authorization` header, in bytes.
const MAX_AUTHORIZATION_LEN: usize = 4096;
/// The maximum number of signed headers.
const MAX_SIGNED_HEADERS: usize = 64;
/// The maximum length of an access key, and of a region, in bytes.
const MAX_NAME_LEN: usize = 64;
/// The maximum time for which a presigned URL is valid, in seconds.
const MAX_EXPIRES: u64 = 604_800;
/// The header with the time of signing.
const DATE: &str = "x-amz-date";
/// The parameters of presigned URLs.
const PARAMETERS: [&str; 6] =
    ["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", "X-Amz-Signature"];
/// The parameters of URLs that were presigned with version 2.
const OF_VERSION_2: [&str; 2] = ["AWSAccessKeyId", "Signature"];

/// The signature of a request, if it has one.
pub(super) fn signature(request: SignedRequest<'_>) -> Result<Option<Signature>, S3Error> {
    let query = request.uri.query().unwrap_or_default();
    let has = |names: &[&str]| parameters(query).any(|(name, _)| names.iter().any(|known| *name == *known.as_bytes()));
    if has(&OF_VERSION_2) {
        return Err(other_version());
    }
    let mut lines = request.headers.get_all(AUTHORIZATION).iter();
    match (lines.next(), has(&PARAMETERS)) {
        (None, false) => Ok(None),
        (Some(_), true) => Err(s3_error!(InvalidArgument, "the request is signed in its query and in Authorization")),
        (Some(_), false) if lines.next().is_some() => {
            Err(s3_error!(InvalidArgument, "Authorization occurs more than once"))
        }
        (Some(line), false) => from_header(line.to_str().unwrap_or_default(), request.headers).map(Some),
        (None, true) => from_query(query).map(Some),
    }
}

/// The time of signing, `YYYYMMDD'T'HHMMSS'Z'`.
pub(super) fn time(text: &str) -> Option<SystemTime> {
    let digits = |from: usize, to: usize| text.get(from..to).filter(|part| part.bytes().all(|b| b.is_ascii_digit()));
    if text.len() != 16 || text.get(8..9) != Some("T") || text.get(15..) != Some("Z") {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(4, 6)?, digits(6, 8)?);
    let (hour, minute, second) = (digits(9, 11)?, digits(11, 13)?, digits(13, 15)?);
    humantime::parse_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z")).ok()
}

pub(super) fn malformed_time() -> S3Error {
    s3_error!(AccessDenied, "the time of signing is missing or malformed: it has the form 20261128T214500Z")
}

fn from_header(line: &str, headers: &HeaderMap) -> Result<Signature, S3Error> {
    let malformed = || s3_error!(AuthorizationHeaderMalformed, "Authorization is malformed");
    if line.len() > MAX_AUTHORIZATION_LEN {
        return Err(malformed());
    }
    let (algorithm, rest) = line.split_once(' ').unwrap_or((line, ""));
    match algorithm {
        ALGORITHM => {}
        "AWS" => return Err(other_version()),
        _ => return Err(s3_error!(InvalidArgument, "the scheme of Authorization is not {ALGORITHM}")),
    }
    let mut parts: [Option<&str>; 3] = [None; 3];
    for part in rest.split(',') {
        let (name, value) = part.trim().split_once('=').ok_or_else(malformed)?;
        let at = ["Credential", "SignedHeaders", "Signature"].iter().position(|known| *known == name);
        let slot = at.and_then(|at| parts.get_mut(at)).ok_or_else(malformed)?;
        if slot.replace(value).is_some() {
            return Err(malformed());
        }
    }
    let [Some(credential), Some(signed), Some(signature)] = parts else { return Err(malformed()) };
    let time = headers.get(DATE).and_then(|time| time.to_str().ok()).ok_or_else(malformed_time)?;
    assemble(credential, signed, signature, time, Place::Header).ok_or_else(malformed)
}

fn from_query(query: &str) -> Result<Signature, S3Error> {
    let malformed =
        |name: &str| s3_error!(AuthorizationQueryParametersError, "{name} is missing, repeated or malformed");
    let one = |name: &'static str| -> Result<String, S3Error> {
        let mut values = parameters(query).filter(|(other, _)| **other == *name.as_bytes()).map(|(_, value)| value);
        match (values.next(), values.next()) {
            (Some(value), None) => String::from_utf8(Cow::into_owned(value)).map_err(|_| malformed(name)),
            _ => Err(malformed(name)),
        }
    };
    if one("X-Amz-Algorithm")? != ALGORITHM {
        return Err(malformed("X-Amz-Algorithm"));
    }
    let expires = one("X-Amz-Expires")?;
    let is_number = expires.len() <= 6 && expires.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = expires.parse::<u64>().ok().filter(|seconds| is_number && (1..=MAX_EXPIRES).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        s3_error!(AuthorizationQueryParametersError, "X-Amz-Expires is not a number of seconds from 1 to {MAX_EXPIRES}")
    })?;
    let (credential, signed) = (one("X-Amz-Credential")?, one("X-Amz-SignedHeaders")?);
    let (signature, signed_at) = (one("X-Amz-Signature")?, one("X-Amz-Date")?);
    let place = Place::Query(Duration::from_secs(seconds));
    assemble(&credential, &signed, &signature, &signed_at, place).ok_or_else(|| malformed("a parameter X-Amz-*"))
}

fn assemble(credential: &str, signed: &str, signature: &str, time: &str, place: Place) -> Option<Signature> {
    let mut parts = credential.split('/');
    let (access_key, day, region) = (parts.next()?, parts.next()?, parts.next()?);
    let (service, end) = (parts.next()?, parts.next()?);
    let is_name = |text: &str| {
        (1..=MAX_NAME_LEN).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    let is_scope = service == "s3" && end == "aws4_request" && parts.next().is_none();
    let is_signature = signature.len() == 64 && signature.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !is_scope
        || !is_signature
        || !is_name(access_key)
        || !is_name(region)
        || !time.starts_with(day)
        || day.len() != 8
    {
        return None;
    }
    let mut signed_headers: Vec<String> = signed.split(';').take(MAX_SIGNED_HEADERS + 1).map(str::to_owned).collect();
    let is_header = |name: &String| !name.is_empty() && *name == name.to_ascii_lowercase();
    if signed_headers.len() > MAX_SIGNED_HEADERS || !signed_headers.iter().all(is_header) {
        return None;
    }
    signed_headers.sort();
    let [access_key, day, region, time, signature] = [access_key, day, region, time, signature].map(str::to_owned);
    Some(Signature { access_key, day, region, time, signed_headers, signature, place })
}

fn other_version() -> S3Error {
    s3_error!(InvalidRequest, "the signature is of version 2; please use {ALGORITHM}, which is version 4")
}
