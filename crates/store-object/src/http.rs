//! The HTTP client, which checks answers before the library does.
//!
//! The library would read error bodies of any size and put them and the URL into its errors. Bodies repeat session
//! tokens, and URLs have signatures. It would also fail on a listing with one name that it does not like, and tell no
//! `a` from `a/`. So listings are parsed here as well, and the library gets an empty one. So it is with answers to the
//! deletion of several objects.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{HeaderMap, Method, StatusCode, header, response};
use object_store::{
    ClientConfigKey, ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    },
};

use tokio::time::timeout;
use zarrd_store_remote::Attempts;

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

/// The maximum number of bytes of other answers in XML: of 1,000 deletes, and about uploads in parts.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// The longest code or region that is taken from an answer.
const MAX_CODE_LEN: usize = 64;

/// The slowest upload that is waited for, in bytes a second.
pub(crate) const MIN_UPLOAD_RATE: u64 = 64 << 10;

/// The time in which an upload of parts is completed, which takes some services minutes.
const COMPLETION_TIME: Duration = Duration::from_secs(300);

/// The time in which a part of an upload has to arrive, with its retries.
const PART_DEADLINE: Duration = Duration::from_secs(600);

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Object,
    Listing,
    /// A part of an upload, which may be sent again.
    Part,
    /// The start or the end of an upload in parts.
    Upload,
    /// The deletion of several objects.
    Deletes,
}

/// Makes the clients of a service.
#[derive(Debug)]
pub(crate) struct Connector {
    pub(crate) service: Service,
    /// The time in which the next bytes of an answer have to arrive.
    pub(crate) read_timeout: Duration,
    /// The number of times that a part is sent again.
    pub(crate) retries: usize,
}

#[derive(Debug)]
struct Client {
    inner: HttpClient,
    /// The client for requests with a body, whose time depends on its size.
    uploads: HttpClient,
    service: Service,
    read_timeout: Duration,
    retries: usize,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let Self { service, read_timeout, retries } = *self;
        let inner = HttpClient::new(client::connect(options)?);
        // The client would count the time of sending as well.
        let unhurried = options.clone().with_config(ClientConfigKey::ReadTimeout, "7days");
        let uploads = HttpClient::new(client::connect(&unhurried)?);
        Ok(HttpClient::new(Client { inner, uploads, service, read_timeout, retries }))
    }
}

impl Purpose {
    /// The purpose of a request; `None` if it is for credentials.
    ///
    /// It travels with the request if the library lets it. The others have a method or a parameter that no request for
    /// credentials has.
    fn of(request: &HttpRequest) -> Option<Self> {
        let query = request.uri().query().unwrap_or_default();
        let pairs = || query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let has = |name: &str| pairs().any(|(found, _)| found == name);
        let comp = |value: &str| pairs().any(|pair| pair == ("comp", value));
        match *request.method() {
            Method::POST if has("delete") || comp("batch") => Some(Self::Deletes),
            Method::POST if has("uploads") || has("uploadId") => Some(Self::Upload),
            Method::PUT if has("partNumber") || comp("block") => Some(Self::Part),
            Method::DELETE => Some(Self::Object),
            _ => request.extensions().get::<Self>().copied(),
        }
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let purpose = Purpose::of(&request);
        if purpose != Some(Purpose::Part) {
            return self.send(request, purpose).await.map_err(failed);
        }
        let mut attempts = Attempts::new(PART_DEADLINE, self.retries);
        loop {
            let failure = match self.send(request.clone(), purpose).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            attempts.wait(failure).await.map_err(failed)?;
        }
    }
}

impl Client {
    async fn send(&self, request: HttpRequest, purpose: Option<Purpose>) -> Result<HttpResponse, Failure> {
        let is_range = request.headers().contains_key(header::RANGE);
        let deletes = request.body().as_bytes().filter(|_| purpose == Some(Purpose::Deletes)).cloned();
        let response = match self.execute(request, purpose).await {
            Ok(response) => response,
            Err(detail) if purpose.is_none() => return Err(Failure::Credentials(detail)),
            Err(detail) => return Err(Failure::Connection(detail)),
        };
        let Some(purpose) = purpose else { return credentials(response) };
        if !response.status().is_success() {
            return Err(Failure::Refused(refusal(response).await));
        }
        match purpose {
            Purpose::Object if is_range && response.status() != StatusCode::PARTIAL_CONTENT => Err(Failure::Whole),
            Purpose::Object | Purpose::Part => Ok(response),
            Purpose::Listing => self.listing(response).await,
            Purpose::Upload => upload(response).await,
            Purpose::Deletes if self.service == Service::Azure => {
                azure_deletes(&deletes.unwrap_or_default(), response).await
            }
            Purpose::Deletes => s3_deletes(response).await,
        }
    }

    /// Sends a request. Fails with a description, without the URL.
    async fn execute(&self, request: HttpRequest, purpose: Option<Purpose>) -> Result<HttpResponse, String> {
        let len = request.body().content_length() as u64;
        if len == 0 {
            return self.inner.execute(request).await.map_err(|error| describe(&error));
        }
        let sending = Duration::from_secs(len.div_ceil(MIN_UPLOAD_RATE));
        let answering = match purpose {
            Some(Purpose::Upload) => self.read_timeout.max(COMPLETION_TIME),
            _ => self.read_timeout,
        };
        match timeout(answering.saturating_add(sending), self.uploads.execute(request)).await {
            Ok(result) => result.map_err(|error| describe(&error)),
            Err(_) => Err("no answer arrived in time".to_owned()),
        }
    }

    /// Replaces a listing by an empty one, and adds what it lists to the extensions of the response.
    async fn listing(&self, response: HttpResponse) -> Result<HttpResponse, Failure> {
        let (mut parts, body) = response.into_parts();
        let bytes = read_body(body, MAX_LISTING_BYTES).await?;
        let listed = xml::parse_listing(&bytes, self.service)?;
        parts.extensions.insert(Arc::<Listed>::new(listed));
        let empty = match self.service {
            Service::S3 | Service::Google => &b"<ListBucketResult></ListBucketResult>"[..],
            Service::Azure => b"<EnumerationResults><Blobs></Blobs></EnumerationResults>",
        };
        Ok(with_body(parts, Bytes::from_static(empty)))
    }
}

/// Bounds an answer about an upload in parts. An error may follow the status of success.
async fn upload(response: HttpResponse) -> Result<HttpResponse, Failure> {
    let (parts, body) = response.into_parts();
    let bytes = read_body(body, MAX_ANSWER_BYTES).await?;
    match xml::parse_error(&bytes).0 {
        Some(code) => Err(Failure::Refused(Refusal { status: 500, code: plain(&code), ..Refusal::default() })),
        None => Ok(with_body(parts, bytes)),
    }
}

/// Replaces the answer to deletes by one without names. The library takes some names for errors, and panics at others.
async fn s3_deletes(response: HttpResponse) -> Result<HttpResponse, Failure> {
    let (parts, body) = response.into_parts();
    let bytes = read_body(body, MAX_ANSWER_BYTES).await?;
    if let Some(code) = xml::parse_deletes(&bytes)? {
        let status = match code.as_str() {
            "AccessDenied" => 403,
            "InternalError" => 500,
            "SlowDown" | "ServiceUnavailable" => 503,
            _ => 409,
        };
        return Err(Failure::Refused(Refusal { status, code: plain(&code), ..Refusal::default() }));
    }
    let done = &b"<DeleteResult><Deleted><Key>-</Key></Deleted></DeleteResult>"[..];
    Ok(with_body(parts, Bytes::from_static(done)))
}

/// Checks the answers to deletes of Azure, which are one message for each object. The library panics if one is about an
/// object that it did not name.
async fn azure_deletes(request: &[u8], response: HttpResponse) -> Result<HttpResponse, Failure> {
    let (parts, body) = response.into_parts();
    let bytes = read_body(body, MAX_ANSWER_BYTES).await?;
    let ids = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
        text.lines().filter_map(|line| Some(line.strip_prefix("content-id:")?.trim().to_owned())).collect()
    };
    let named = ids(request);
    if ids(&bytes).iter().any(|id| !named.contains(id)) {
        return Err(Failure::Answer("it is about an object that was not named".to_owned()));
    }
    let text = String::from_utf8_lossy(&bytes);
    let statuses = text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse::<u16>().ok());
    match statuses.into_iter().find(|status| !matches!(status, 200..=299 | 404)) {
        Some(status) => Err(Failure::Refused(Refusal { status, ..Refusal::default() })),
        None => Ok(with_body(parts, bytes)),
    }
}

/// Reads a body up to a limit.
async fn read_body(body: HttpResponseBody, limit: usize) -> Result<Bytes, Failure> {
    let mut stream = body.bytes_stream();
    let mut bytes = BytesMut::new();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk.map_err(|error| Failure::Connection(describe(&error)))?);
        if bytes.len() > limit {
            return Err(Failure::Answer(format!("it has more than {limit} bytes")));
        }
    }
    Ok(bytes.freeze())
}

/// A response with another body.
fn with_body(mut parts: response::Parts, body: Bytes) -> HttpResponse {
    parts.headers.remove(header::CONTENT_LENGTH);
    HttpResponse::from_parts(parts, body_of(body))
}

/// Passes the answer of a service that hands out credentials. The library uses some of their errors.
fn credentials(response: HttpResponse) -> Result<HttpResponse, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    if status == StatusCode::FORBIDDEN {
        let (parts, _) = response.into_parts();
        return Ok(HttpResponse::from_parts(parts, body_of(Bytes::new())));
    }
    Err(Failure::Credentials(format!("the service of credentials answered {}", status.as_u16())))
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
