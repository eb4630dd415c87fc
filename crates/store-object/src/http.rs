//! The HTTP client, which checks answers before the library does.
//!
//! The library would read error bodies of any size and put them and the URL into its errors. Bodies repeat session
//! tokens, and URLs have signatures. It would also fail on a listing with one name that it does not like, and tell no
//! `a` from `a/`. So listings are parsed here as well, and the library gets an empty one.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{HeaderMap, StatusCode, header};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    },
};

use crate::{
    client,
    failure::{Failure, Refusal, describe},
    location::Service,
    xml::{self, Listed},
};

/// The maximum number of bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// The maximum number of bytes of a page of a listing.
const MAX_LISTING_BYTES: usize = 32 << 20;

/// The longest code or region that is taken from an answer.
const MAX_CODE_LEN: usize = 64;

/// The purpose of a request, which travels with it. Requests without one are for credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Object,
    Listing,
}

/// Makes the clients of a service.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) service: Service,
}

#[derive(Debug)]
struct Client {
    inner: HttpClient,
    service: Service,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = HttpClient::new(client::connect(options)?);
        Ok(HttpClient::new(Client { inner, service: self.service }))
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let purpose = request.extensions().get::<Purpose>().copied();
        let is_range = request.headers().contains_key(header::RANGE);
        let response = match self.inner.execute(request).await {
            Ok(response) => response,
            Err(error) if purpose.is_none() => return Err(failed(Failure::Credentials(describe(&error)))),
            Err(error) => return Err(failed(Failure::Connection(describe(&error)))),
        };
        let Some(purpose) = purpose else { return credentials(response) };
        if !response.status().is_success() {
            return Err(failed(Failure::Refused(refusal(response).await)));
        }
        match purpose {
            Purpose::Object if is_range && response.status() != StatusCode::PARTIAL_CONTENT => {
                Err(failed(Failure::Whole))
            }
            Purpose::Object => Ok(response),
            Purpose::Listing => self.listing(response).await,
        }
    }
}

impl Client {
    /// Replaces a listing by an empty one, and adds what it lists to the extensions of the response.
    async fn listing(&self, response: HttpResponse) -> Result<HttpResponse, HttpError> {
        let (mut parts, body) = response.into_parts();
        let mut stream = body.bytes_stream();
        let mut bytes = BytesMut::new();
        while let Some(chunk) = stream.next().await {
            bytes.extend_from_slice(&chunk.map_err(|error| failed(Failure::Connection(describe(&error))))?);
            if bytes.len() > MAX_LISTING_BYTES {
                return Err(failed(Failure::Listing(format!("it has more than {MAX_LISTING_BYTES} bytes"))));
            }
        }
        let listed = xml::parse_listing(&bytes, self.service).map_err(failed)?;
        parts.extensions.insert(Arc::<Listed>::new(listed));
        parts.headers.remove(header::CONTENT_LENGTH);
        let empty = match self.service {
            Service::S3 | Service::Google => &b"<ListBucketResult></ListBucketResult>"[..],
            Service::Azure => b"<EnumerationResults><Blobs></Blobs></EnumerationResults>",
        };
        Ok(HttpResponse::from_parts(parts, body_of(Bytes::from_static(empty))))
    }
}

/// Passes the answer of a service that hands out credentials. The library uses some of their errors.
fn credentials(response: HttpResponse) -> Result<HttpResponse, HttpError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    if status == StatusCode::FORBIDDEN {
        let (parts, _) = response.into_parts();
        return Ok(HttpResponse::from_parts(parts, body_of(Bytes::new())));
    }
    Err(failed(Failure::Credentials(format!("the service of credentials answered {}", status.as_u16()))))
}

/// Reads what an answer says about its status.
async fn refusal(response: HttpResponse) -> Refusal {
    let (parts, body) = response.into_parts();
    let mut stream = body.bytes_stream();
    let mut bytes = BytesMut::new();
    while bytes.len() < MAX_ERROR_BYTES {
        let Some(Ok(chunk)) = stream.next().await else { break };
        bytes.extend_from_slice(chunk.get(..MAX_ERROR_BYTES).unwrap_or(&chunk));
    }
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).and_then(plain);
    let (code, region) = xml::parse_error(&bytes);
    Refusal {
        status: parts.status.as_u16(),
        code: text("x-ms-error-code").or_else(|| code.as_deref().and_then(plain)),
        region: text("x-amz-bucket-region").or_else(|| region.as_deref().and_then(plain)),
        retry_after: retry_after(&parts.headers),
    }
}

/// A code or region, if it looks like one.
fn plain(text: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_CODE_LEN && text.bytes().all(is_plain)).then(|| text.to_owned())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn body_of(bytes: Bytes) -> HttpResponseBody {
    bytes.into()
}

/// An error that the library does not retry, and that has the failure as its source.
fn failed(failure: Failure) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, failure)
}
