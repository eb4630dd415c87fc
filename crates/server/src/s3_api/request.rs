//! The way of a request: guards, signature, body, and s3s.

use std::{
    sync::{Arc, LazyLock, OnceLock},
    time::SystemTime,
};

use axum::{
    body::Body,
    extract::{FromRequest, Request},
    response::Response,
};
use http::{
    HeaderMap, HeaderName, Method, StatusCode, Uri,
    header::{
        AUTHORIZATION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, EXPECT, HOST, IF_MATCH, IF_MODIFIED_SINCE,
        IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, TRANSFER_ENCODING,
    },
};
use http_body::Body as _;
use parking_lot::Mutex;
use s3s::{
    S3Error, S3Result,
    access::{S3Access, S3AccessContext},
    auth::{S3Auth, SecretKey},
    s3_error,
    service::{S3Service, S3ServiceBuilder},
    validation::NameValidation,
};
use zarrd_s3::{
    ChunkSigner, Framing, Guard, OPEN_ACCESS_KEY, OPEN_SECRET_KEY, ObjectRequest, Signature, SignedRequest, Trailers,
    Verifier, decode, rewrite_conditions, rewrite_copy_conditions,
};

use super::{
    content,
    context::{Context, ObjectBody, Parts},
    error::Failure,
    expectation::Expectation,
    objects,
    operations::{self, Operations},
    request_id,
};
use crate::{
    admission,
    app::App,
    authorization::{self, Session},
    error::ApiError,
    guard,
    headers::SANDBOX,
    request_body::S3Document,
    request_log::{OperationName, RouteName},
    request_scope::{self, Handled},
};

/// The headers that an operation finds in its context, and s3s would parse differently.
const OF_CONTEXT: [HeaderName; 6] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];
/// The headers that are handled before s3s.
const HANDLED: [HeaderName; 8] = [
    AUTHORIZATION,
    EXPECT,
    TRANSFER_ENCODING,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("x-amz-content-sha256"),
    HeaderName::from_static("x-amz-date"),
    HeaderName::from_static("x-amz-decoded-content-length"),
    HeaderName::from_static("x-amz-trailer"),
];

/// The router of s3s, for all requests.
static SERVICE: LazyLock<S3Service> = LazyLock::new(|| {
    let mut builder = S3ServiceBuilder::new(Operations);
    // Without both of them, every operation would be allowed.
    builder.set_auth(NoKeys);
    builder.set_access(Identified);
    builder.set_validation(AnyName);
    builder.build()
});

/// No key: s3s sees no signatures, since they are verified before it.
struct NoKeys;

/// Access for the operations that zarrd has, by requests that were identified.
struct Identified;

/// Any name of a bucket: operations parse it.
struct AnyName;

#[async_trait::async_trait]
impl S3Auth for NoKeys {
    async fn get_secret_key(&self, _: &str) -> S3Result<SecretKey> {
        Err(s3_error!(InvalidAccessKeyId))
    }
}

#[async_trait::async_trait]
impl S3Access for Identified {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let name = context.s3_op().name();
        if !operations::NAMES.contains(&name) {
            return Err(s3_error!(NotImplemented, "{name} is not supported"));
        }
        match context.extensions_mut().get::<Context>() {
            Some(_) => Ok(()),
            None => Err(s3_error!(AccessDenied, "the request was not identified")),
        }
    }
}

impl NameValidation for AnyName {
    fn validate_bucket_name(&self, name: &str) -> bool {
        !name.is_empty()
    }
}

/// Handles any request to the S3 surface.
pub(crate) async fn handle(app: App, request: Request) -> Response {
    let name = route_name(&request);
    let (expectation, request) = Expectation::of(request);
    let response = request_scope::run(app.clone(), request, name, |request| respond(app, request)).await;
    request_id::add(expectation.answered_by(response)).await
}

/// The name of a request's route and operation in the logs and the metrics.
fn route_name(request: &Request) -> RouteName {
    let path = request.uri().path().trim_start_matches('/');
    let template = match path.split_once('/') {
        _ if path.is_empty() => "s3:/",
        None | Some((_, "")) => "s3:/{bucket}",
        Some(_) => "s3:/{bucket}/{key}",
    };
    let is_unsafe = !request.method().is_safe();
    RouteName { template: Some(template), operation: Some(OperationName { selected_by: None, is_unsafe }) }
}

async fn respond(app: App, request: Request) -> Result<Handled, ApiError> {
    if request.method() == Method::OPTIONS {
        guard::check_host(&app, request.version(), request.uri(), request.headers())?;
        return Ok(guard::s3_preflight(&app, request.headers()).into());
    }
    let failure = Arc::new(OnceLock::new());
    let (parts, body) = request.into_parts();
    let identified = identified(&app, &parts).await;
    let request = Request::from_parts(parts, body);
    match identified {
        Ok((session, signer)) => {
            request_scope::record_principal(&request, &session);
            let response = match run(&app, request, &session, signer, &failure).await {
                Ok(response) => response,
                Err(error) => response_to(error, &failure),
            };
            Ok(Handled::new(sandboxed(response), session).with_rendered(failure.get().cloned()))
        }
        Err(error) => {
            let response = response_to(error, &failure);
            Ok(Handled::from(sandboxed(response)).with_rendered(failure.get().cloned()))
        }
    }
}

/// A response that a browser executes nothing of, whatever content type its value has.
fn sandboxed(mut response: Response) -> Response {
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, SANDBOX);
    response
}

/// The response to a failure before s3s.
fn response_to(failure: Failure, logged: &OnceLock<ApiError>) -> Response {
    let (error, cause) = failure.into_parts();
    if let Some(cause) = cause {
        // It is the first one.
        let _ = logged.set(cause);
    }
    match error.to_http_response() {
        Ok(response) => response.map(Body::new),
        Err(_) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

/// Checks a request and identifies its caller. Returns what verifies the chunks of its body.
async fn identified(app: &App, request: &http::request::Parts) -> Result<(Session, Option<ChunkSigner>), Failure> {
    let head = SignedRequest { method: &request.method, uri: &request.uri, headers: &request.headers };
    guard::check_host(app, request.version, head.uri, head.headers)?;
    guard::check_proxy_headers(&request.extensions, head.headers)?;
    guard::check_framing(head.headers)?;
    let (session, signer) = match Signature::of(head)? {
        None if Guard(head).overrides_response() => {
            return Err(s3_error!(InvalidRequest, "parameters response-* need a signed request").into());
        }
        None => (Session::anonymous(app), None),
        Some(signature) => {
            let (session, secret) = signer_of(app, signature.access_key()).await?;
            let signer = signature.verify(head, &secret, SystemTime::now())?;
            (session, Some(signer))
        }
    };
    Guard(head).check()?;
    if !head.method.is_safe() {
        guard::check_changes(app)?;
        guard::check_origin(app, &session, head.headers)?;
    }
    Ok((session, signer))
}

/// The session and the secret key of an access key.
async fn signer_of(app: &App, access_key: &str) -> Result<(Session, String), Failure> {
    if access_key == OPEN_ACCESS_KEY {
        // Everyone knows this pair, so that a page of any origin can sign with it: it proves no more than no signature.
        return Ok((Session::anonymous(app), OPEN_SECRET_KEY.to_owned()));
    }
    match authorization::identify_signer(app, access_key).await? {
        Some((session, secret)) => Ok((session, secret.secret_key().to_owned())),
        None => Err(s3_error!(
            InvalidAccessKeyId,
            "no token has this access key; without a token, send requests unsigned, or signed with the access key \
             {OPEN_ACCESS_KEY} and the secret key {OPEN_SECRET_KEY}"
        )
        .into()),
    }
}

/// Handles the request of a session.
async fn run(
    app: &App,
    mut request: Request,
    session: &Session,
    signer: Option<ChunkSigner>,
    failure: &Arc<OnceLock<ApiError>>,
) -> Result<Response, Failure> {
    admission::attach(app, session, None, &mut request);
    let uri = routed_uri(app, &request)?;
    let head = SignedRequest { method: request.method(), uri: request.uri(), headers: request.headers() };
    let source = Guard(head).copy_source()?;
    let object = ObjectRequest::parse(head.method, &uri, head.headers)?;
    let not_before = guard::asks_for_current(head.headers).then(tokio::time::Instant::now);
    let is_object = uri.path().trim_matches('/').contains('/');
    let method = request.method().clone();
    let headers = request.headers_mut();
    let framing = Framing::take(headers)?;
    let verifier = match is_completion(&uri, &method) {
        // Its checksums are of the object.
        true => Verifier::default(),
        false => Verifier::new(headers)?,
    };
    let source = source.map(|source| (source, rewrite_copy_conditions(headers)));
    let copied_range = source.as_ref().and_then(|_| headers.remove("x-amz-copy-source-range"));
    rewrite_conditions(headers);
    let conditions = take(headers, &OF_CONTEXT);
    let content = if method.is_safe() { HeaderMap::new() } else { content::take(headers) };
    if object.is_none() {
        take(headers, &HANDLED);
        Guard::hide_copy_source(headers);
    }
    let mut parts = Parts {
        app: app.clone(),
        session: session.clone(),
        conditions,
        content,
        source,
        copied_range,
        body: Mutex::default(),
        has_checksum: verifier.has_checksum(),
        memory: Mutex::default(),
        failure: failure.clone(),
    };
    let body = decoded_body(std::mem::take(request.body_mut()), framing, signer, verifier)?;
    let sent = if method == Method::PUT && is_object {
        *parts.body.get_mut() = Some(body);
        bytes::Bytes::new()
    } else {
        let (document, memory) = received(app, &mut request, body).await?;
        *parts.memory.get_mut() = memory;
        let length = http::HeaderValue::from(document.len());
        request.headers_mut().insert(CONTENT_LENGTH, length);
        document
    };
    *request.uri_mut() = uri;
    let handled = handled(request.map(|_| sent), Context::new(parts), object);
    zarrd_executor::run_request(zarrd_store::not_before(not_before, handled)).await
}

/// Reads or sets an object, or has s3s route the request to another operation.
async fn handled(
    mut request: http::Request<bytes::Bytes>,
    context: Context,
    object: Option<ObjectRequest>,
) -> Result<Response, Failure> {
    if let Some(object) = object {
        return objects::handle(&context, &object).await;
    }
    request.extensions_mut().insert(context);
    // The state of s3s is large, and would be moved with that of every request.
    match Box::pin(SERVICE.call(request.map(s3s::Body::from))).await {
        Ok(response) => Ok(response.map(Body::new)),
        Err(error) => {
            let error = std::io::Error::other(format!("{error:?}"));
            Err(ApiError::with_cause(zarrd_wire::problem::ProblemType::Internal, error).into())
        }
    }
}

/// The path and query for s3s, which begin with the bucket and have no signature.
fn routed_uri(app: &App, request: &Request) -> Result<Uri, Failure> {
    let uri = request.uri();
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or(uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
    let bucket = app.settings().s3.domain.as_ref().and_then(|domain| domain.bucket(host));
    if bucket.is_none() && uri.query().is_none() && uri.authority().is_none() {
        return Ok(uri.clone());
    }
    let path = match bucket {
        Some(bucket) => {
            bucket.parse::<zarrd_s3::Bucket>().map_err(S3Error::from)?;
            format!("/{bucket}{}", uri.path())
        }
        None => uri.path().to_owned(),
    };
    let query = Guard::query_to_route(uri.query().unwrap_or_default())?;
    let query = if query.is_empty() { query } else { format!("?{query}") };
    format!("{path}{query}").parse().map_err(|_| s3_error!(InvalidURI).into())
}

/// True for `CompleteMultipartUpload`.
fn is_completion(uri: &Uri, method: &Method) -> bool {
    *method == Method::POST && zarrd_wire::query::names(uri.query().unwrap_or_default(), "uploadId")
}

/// Removes headers; returns those that were there.
fn take(headers: &mut HeaderMap, names: &[HeaderName]) -> HeaderMap {
    names.iter().filter_map(|name| Some((name.clone(), headers.remove(name)?))).collect()
}

/// The body without its framing.
fn decoded_body(
    body: Body,
    framing: Option<Framing>,
    signer: Option<ChunkSigner>,
    verifier: Verifier,
) -> Result<ObjectBody, S3Error> {
    let trailers = Trailers::default();
    let Some(framing) = framing else {
        let length = body.size_hint().exact();
        return Ok(ObjectBody { body, length, verifier, trailers });
    };
    let stream = decode(body.into_data_stream(), framing, signer, trailers.clone())?;
    Ok(ObjectBody { body: Body::from_stream(stream), length: Some(framing.length), verifier, trailers })
}

/// Receives a body with XML, and verifies it.
async fn received(
    app: &App,
    request: &mut Request,
    body: ObjectBody,
) -> Result<(bytes::Bytes, Option<zarrd_array::Permit>), Failure> {
    if body.body.size_hint().exact() == Some(0) {
        body.verifier.finish(&body.trailers).map_err(S3Error::from)?;
        return Ok((bytes::Bytes::new(), None));
    }
    let mut receiving = Request::new(body.body);
    *receiving.extensions_mut() = request.extensions().clone();
    let S3Document(document) = S3Document::from_request(receiving, app).await?;
    let mut verifier = body.verifier;
    verifier.update(&document.bytes);
    verifier.finish(&body.trailers).map_err(S3Error::from)?;
    Ok((document.bytes, document.memory))
}
