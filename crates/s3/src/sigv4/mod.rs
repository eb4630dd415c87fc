//! Version 4 of Amazon's signatures.

mod canonical;
mod parse;

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use s3s::{S3Error, s3_error};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::{aws_chunked::ChunkSigner, headers::CONTENT_SHA256, mac::mac};

/// The access key of an open server, with which requests have the rights of anonymous ones.
pub const OPEN_ACCESS_KEY: &str = "zarrd";
/// The secret key that belongs to [`OPEN_ACCESS_KEY`].
pub const OPEN_SECRET_KEY: &str = "zarrd";

/// The algorithm that is accepted.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The hash of a body that is not signed.
const UNSIGNED: &[u8] = b"UNSIGNED-PAYLOAD";
/// The greatest difference of the clocks of client and server.
const MAX_SKEW: Duration = Duration::from_secs(15 * 60);

/// The head of a request, as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'r> {
    /// The method.
    pub method: &'r Method,
    /// The path and query.
    pub uri: &'r Uri,
    /// The headers.
    pub headers: &'r HeaderMap,
}

/// A signature, taken apart but not verified.
#[derive(Debug)]
pub struct Signature {
    access_key: String,
    /// The day, `YYYYMMDD`.
    day: String,
    region: String,
    /// The time of signing, `YYYYMMDD'T'HHMMSS'Z'`.
    time: String,
    /// The names of the signed headers, in lower case and sorted.
    signed_headers: Vec<String>,
    /// 64 hexadecimal digits.
    signature: String,
    place: Place,
}

/// The place of a signature in its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Header,
    /// A presigned URL, which is valid for this time.
    Query(Duration),
}

impl Signature {
    /// The signature of a request; `None` if it has none. Fails if it has another kind of signature, or several, or if a
    /// header that decides what the request means is not signed.
    pub fn of(request: SignedRequest<'_>) -> Result<Option<Self>, S3Error> {
        let Some(signature) = parse::signature(request)? else { return Ok(None) };
        signature.check_signed_headers(request.headers)?;
        Ok(Some(signature))
    }

    /// The id of the key that the request claims to be signed with.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// Verifies the signature with a secret key. Returns what verifies the chunks of the body.
    pub fn verify(&self, request: SignedRequest<'_>, secret: &str, now: SystemTime) -> Result<ChunkSigner, S3Error> {
        self.check_time(now)?;
        let key = self.signing_key(secret);
        let scope = format!("{}/{}/s3/aws4_request", self.day, self.region);
        let payload = self.payload_hash(request.headers)?;
        let matches = canonical::paths(request.uri).any(|path| {
            let canonical = canonical::request(request, &path, &self.signed_headers, payload.as_bytes());
            let hash = hex::encode(Sha256::digest(canonical));
            let text = format!("{ALGORITHM}\n{}\n{scope}\n{hash}", self.time);
            let expected = hex::encode(mac(&key, text.as_bytes()));
            expected.as_bytes().ct_eq(self.signature.as_bytes()).into()
        });
        match matches {
            true => Ok(ChunkSigner::new(key, self.time.clone(), scope, self.signature.clone())),
            false => Err(s3_error!(
                SignatureDoesNotMatch,
                "the signature does not match the request and the secret key of its access key"
            )),
        }
    }

    /// Fails unless the host is signed, and each header `x-amz-*` that the request has.
    fn check_signed_headers(&self, headers: &HeaderMap) -> Result<(), S3Error> {
        let is_signed = |name: &str| self.signed_headers.iter().any(|signed| signed == name);
        if !is_signed("host") {
            return Err(s3_error!(AccessDenied, "the signature does not cover the header host"));
        }
        let is_free = |name: &HeaderName| self.place != Place::Header && *name == CONTENT_SHA256;
        let unsigned = headers
            .keys()
            .find(|name| name.as_str().starts_with("x-amz-") && !is_signed(name.as_str()) && !is_free(name));
        if let Some(name) = unsigned {
            return Err(s3_error!(AccessDenied, "the signature does not cover the header {name}, which it has to"));
        }
        let missing = self.signed_headers.iter().find(|name| *name != "host" && !headers.contains_key(name.as_str()));
        match missing {
            Some(_) => Err(s3_error!(SignatureDoesNotMatch, "the request lacks a header that was signed")),
            None => Ok(()),
        }
    }

    fn check_time(&self, now: SystemTime) -> Result<(), S3Error> {
        let signed = parse::time(&self.time).ok_or_else(parse::malformed_time)?;
        let ahead = signed.duration_since(now).unwrap_or_default();
        let age = now.duration_since(signed).unwrap_or_default();
        match self.place {
            _ if ahead > MAX_SKEW => Err(s3_error!(RequestTimeTooSkewed, "the request was signed in the future")),
            Place::Header if age > MAX_SKEW => {
                Err(s3_error!(RequestTimeTooSkewed, "the request was signed more than 15 minutes ago"))
            }
            Place::Query(valid) if age > valid => Err(s3_error!(AccessDenied, "the presigned URL has expired")),
            _ => Ok(()),
        }
    }

    /// The hash of the body in the signed request.
    fn payload_hash(&self, headers: &HeaderMap) -> Result<HeaderValue, S3Error> {
        let unsigned = HeaderValue::from_bytes(UNSIGNED).unwrap_or(HeaderValue::from_static(""));
        let is_signed = self.signed_headers.iter().any(|name| name == CONTENT_SHA256.as_str());
        match (headers.get(CONTENT_SHA256), self.place) {
            (Some(hash), _) if is_signed => Ok(hash.clone()),
            (_, Place::Query(_)) => Ok(unsigned),
            _ => Err(s3_error!(MissingSecurityHeader, "the header x-amz-content-sha256 is missing")),
        }
    }

    fn signing_key(&self, secret: &str) -> [u8; 32] {
        let of_day = mac(format!("AWS4{secret}").as_bytes(), self.day.as_bytes());
        [self.region.as_str(), "s3", "aws4_request"].iter().fold(of_day, |key, part| mac(&key, part.as_bytes()))
    }
}

#[cfg(test)]
mod tests;
