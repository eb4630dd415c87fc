//! Responses with elements: limits, headers and bodies.

use std::{ops::Range, sync::Arc};

use array::{ArrayError, ArrayRead, ReadMetrics};
use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
        CONTENT_TYPE, ETAG, VARY,
    },
};
use meta::{
    Dialect, NodePath,
    selection::{ReadRequest, Selection},
};
use store::Version;
use wire::{
    array::{self as wire_array, CsvHeader, Format},
    etag,
    headers::{CONSISTENCY, DATA_TYPE, DIALECT, DIMENSION_NAMES, SERVER_TIMING, SHAPE},
    problem::{Members, Problem, ProblemType},
    query::{ElementsQuery, HEADER, MAX, MIN, QueryError},
    range::{ContentRange, RangeRequest},
};
use xxhash_rust::xxh3::Xxh3;

use super::{
    block_stream::{
        BodyError, BodyStart, ElementInput, MetricsGuard, buffer_start, compress, encode_elements, passthrough,
    },
    byte_range, content_disposition,
    encode::{self, ArraySlice, BufferedFormat, ColumnNames, Contrast, EncodeError, ResponseEncoding},
};
use crate::{
    app::App,
    blocking::run_blocking,
    content_encoding::{self, ContentEncoding, MIN_COMPRESS_SIZE},
    engine::Engine,
    error::ApiError,
    extract::{ConditionOutcome, ContentNegotiation, TagConditions},
    headers::{REVALIDATE, consistency},
    response_body::sized_body,
};

/// The minimum size charged for an element of variable length, in bytes.
const VARIABLE_ELEMENT_COST: u64 = 16;
/// The factor from the limit of elements in memory to the limit of their text.
const TEXT_PER_BYTE: u64 = 4;
/// The largest response, in bytes, that is compressed in one step.
const INLINE_COMPRESS_LIMIT: usize = 128 << 10;
const VARY_ACCEPT: HeaderValue = HeaderValue::from_static("accept, accept-encoding");

/// The requested form of a response.
pub(super) struct ResponseSpec {
    format: Format,
    contrast: Contrast,
    header: Option<CsvHeader>,
    encoding: ContentEncoding,
    conditions: TagConditions,
}

/// The head of a response, known before anything is decoded.
struct ResponseHead {
    slice: ArraySlice,
    /// The length without content coding, in bytes, if known.
    length: Option<u64>,
    /// The version shown as entity tag.
    version: Option<Version>,
    /// Headers that describe the elements.
    headers: HeaderMap,
}

/// A limit that a response would exceed.
struct LimitExceeded {
    size: Option<u64>,
    limit: u64,
    detail: String,
}

impl ResponseSpec {
    /// Takes the format from the query, or negotiates it.
    pub(super) fn new(
        query: &ElementsQuery,
        negotiation: &ContentNegotiation,
        conditions: TagConditions,
    ) -> Result<Self, ApiError> {
        let format = query.format.or_else(|| negotiation.format()).ok_or_else(ApiError::not_acceptable)?;
        let contrast = Contrast { min: query.min, max: query.max };
        if format != Format::Png && contrast != Contrast::default() {
            let name = if query.min.is_some() { MIN } else { MAX };
            return Err(QueryError::Invalid { name, expected: "is supported by format=png only" }.into());
        }
        if format != Format::Csv && query.header.is_some() {
            return Err(QueryError::Invalid { name: HEADER, expected: "is supported by format=csv only" }.into());
        }
        // Ranges address the unencoded bytes, so a range is sent without content coding. Images are already compressed.
        let ranged = conditions.range() != RangeRequest::Whole && matches!(format, Format::Raw | Format::Npy);
        let encoding = match format == Format::Png || ranged && negotiation.accepts_identity() {
            true => ContentEncoding::Identity,
            false => negotiation.encoding(),
        };
        Ok(Self { format, contrast, header: query.header, encoding, conditions })
    }

    /// Plans the read, and checks it against the limit of the format.
    pub(super) async fn read(
        &self,
        engine: &Engine,
        path: &NodePath,
        dialect: Option<Dialect>,
        request: &ReadRequest,
    ) -> Result<ArrayRead, ApiError> {
        let (limit, flag) = self.limit(&engine.app);
        let error = match engine.arrays.read(path, dialect, request, limit).await {
            Err(error @ ArrayError::SelectionTooLarge { .. }) => error,
            read => return Ok(read?),
        };
        let detail = format!("{error} (`{flag}`)");
        let ArrayError::SelectionTooLarge { size, limit, smaller } = error else { return Err(error.into()) };
        let smaller = match smaller {
            Some(smaller) => self.acceptable_selection(engine, path, dialect, smaller).await,
            None => None,
        };
        Err(ApiError::selection_too_large(
            Some(u64::try_from(size).unwrap_or(u64::MAX)),
            limit,
            smaller.as_ref(),
            detail,
        ))
    }

    /// Returns the selection if the format's limits allow it, or else a leading part that they allow.
    async fn acceptable_selection(
        &self,
        engine: &Engine,
        path: &NodePath,
        dialect: Option<Dialect>,
        selection: Selection,
    ) -> Option<Selection> {
        // The hint is not worth waiting for memory.
        engine.claim.never_wait();
        let (limit, _) = self.limit(&engine.app);
        let request = ReadRequest::Select(selection.clone());
        let array_read = engine.arrays.read(path, dialect, &request, limit).await.ok()?;
        let text = engine.app.settings().limits.text_selection;
        match self.check_size(text, &self.slice_of(&array_read)) {
            Ok(()) => Some(selection),
            Err(_) => self.leading_part(text, &array_read),
        }
    }

    /// The limit of selected bytes, and its flag.
    fn limit(&self, app: &App) -> (u64, &'static str) {
        let limits = &app.settings().limits;
        match self.format {
            Format::Raw | Format::Npy => (limits.selection, "--max-selection"),
            Format::Json | Format::Csv | Format::Png => (limits.text_selection, "--max-text-selection"),
        }
    }

    /// Responds without elements.
    pub(super) fn head_response(&self, app: &App, array_read: &ArrayRead) -> Result<Response, ApiError> {
        let head = self.build_head(app, array_read)?;
        if let Some(response) = self.check_conditions(&head)? {
            return Ok(response);
        }
        // An unknown length must not be sent as 0.
        let length = head.length;
        let mut response = head.response(Body::from_stream(stream::empty::<Result<Bytes, BodyError>>()));
        let headers = response.headers_mut();
        match length {
            Some(length) if self.encoding == ContentEncoding::Identity || length < MIN_COMPRESS_SIZE => {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            Some(_) => headers.extend(self.encoding.header().map(|encoding| (CONTENT_ENCODING, encoding))),
            None => {}
        }
        headers.extend(server_timing(&array_read.metrics()));
        Ok(response)
    }

    /// Responds with the elements, or 304 if the client has them.
    pub(super) async fn respond(&self, app: &App, array_read: ArrayRead) -> Result<Response, ApiError> {
        let head = self.build_head(app, &array_read)?;
        if let Some(response) = self.check_conditions(&head)? {
            return Ok(response);
        }
        let range = self.requested_range(&head)?;
        let metrics = array_read.metrics();
        let guard = MetricsGuard::new(app, metrics.clone());
        let start = match encode::response_encoding(self.format, &head.slice, self.contrast) {
            ResponseEncoding::Buffered(format) => {
                BodyStart::Complete(buffered_body(app, format, head.slice.clone(), array_read, guard).await?)
            }
            ResponseEncoding::Passthrough(head) => {
                buffer_start(match range.clone() {
                    Some(range) => byte_range::bytes(head, array_read, range, guard),
                    None => passthrough(head, array_read.into_stream().boxed(), guard),
                })
                .await?
            }
            ResponseEncoding::PerElement(encoder) => {
                let source = match self.placeholders(&head.slice) {
                    Some(count) => ElementInput::Placeholders(count),
                    None => ElementInput::Stream(array_read.into_stream().boxed()),
                };
                buffer_start(encode_elements(encoder, head.slice.data_type.fixed_size(), source, guard)).await?
            }
        };
        let length = range.as_ref().map(|range| range.end.saturating_sub(range.start)).or(head.length);
        let (body, length, encoding) = self.build_body(start, length)?;
        let size = head.length;
        let mut response = head.response(body);
        if let (Some(range), Some(size)) = (range, size) {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let text = ContentRange { range: Some(range), size }.render();
            response.headers_mut().extend(HeaderValue::try_from(text).map(|range| (CONTENT_RANGE, range)));
        }
        let headers = response.headers_mut();
        headers.extend(length.map(|length| (CONTENT_LENGTH, HeaderValue::from(length))));
        headers.extend(encoding.header().map(|encoding| (CONTENT_ENCODING, encoding)));
        headers.extend(server_timing(&metrics));
        Ok(response)
    }

    /// Returns the byte range to send; `None` for the full response.
    fn requested_range(&self, head: &ResponseHead) -> Result<Option<Range<u64>>, ApiError> {
        let Some(length) = head.length.filter(|_| self.encoding == ContentEncoding::Identity) else { return Ok(None) };
        let range = match self.conditions.range() {
            RangeRequest::Whole => return Ok(None),
            _ if !self.conditions.range_applies_to(head.version) => return Ok(None),
            RangeRequest::One(range) => range.resolve(length),
            RangeRequest::Unsatisfiable => None,
        };
        // A suffix range of an empty response is that response.
        let range = range.ok_or_else(|| ApiError::range_not_satisfiable(length, head.version))?;
        Ok((!range.is_empty()).then_some(range))
    }

    fn slice_of(&self, array_read: &ArrayRead) -> ArraySlice {
        let column_names = match self.format {
            Format::Csv => ColumnNames::of(array_read, self.header),
            Format::Json | Format::Raw | Format::Npy | Format::Png => None,
        };
        ArraySlice { shape: array_read.shape().to_vec(), data_type: array_read.model().data_type.clone(), column_names }
    }

    /// Builds the head, after all checks that need no decoding.
    fn build_head(&self, app: &App, array_read: &ArrayRead) -> Result<ResponseHead, ApiError> {
        let slice = self.slice_of(array_read);
        if let Some(reason) = encode::unsupported_reason(self.format, &slice) {
            return Err(ApiError::format_not_supported(self.format, &reason, &encode::supported_formats(&slice)));
        }
        self.check_limits(app.settings().limits.text_selection, &slice, array_read)?;
        let length = match encode::response_encoding(self.format, &slice, self.contrast) {
            ResponseEncoding::Passthrough(head) => {
                array_read.byte_len().and_then(|len| len.checked_add(head.len() as u64))
            }
            ResponseEncoding::PerElement(_) | ResponseEncoding::Buffered(_) => None,
        };
        let encoding = match length {
            Some(length) if length < MIN_COMPRESS_SIZE => ContentEncoding::Identity,
            _ => self.encoding,
        };
        let version = array_read.fingerprint().map(|fingerprint| self.version(fingerprint, encoding, &slice));
        let mut headers = HeaderMap::with_capacity(16);
        let content_type = match &slice.column_names {
            Some(_) => CsvHeader::Present.content_type(),
            None => self.format.content_type(),
        };
        headers.insert(CONTENT_TYPE, content_type);
        headers.extend(accept_ranges(length, encoding).map(|accept_ranges| (ACCEPT_RANGES, accept_ranges)));
        headers.extend(
            content_disposition::header(array_read.path(), self.format).map(|name| (CONTENT_DISPOSITION, name)),
        );
        headers.insert(DIALECT, HeaderValue::from_static(array_read.model().dialect.name()));
        headers.insert(CONSISTENCY, consistency(app, array_read.path()));
        headers.extend(wire_array::data_type(&slice.data_type.name()).map(|name| (DATA_TYPE, name)));
        headers.extend(wire_array::shape(&slice.shape).map(|shape| (SHAPE, shape)));
        headers
            .extend(wire_array::dimension_names(&array_read.dimension_names()).map(|names| (DIMENSION_NAMES, names)));
        Ok(ResponseHead { slice, length, version, headers })
    }

    /// Checks the limits that apply to the encoded response, and suggests a smaller selection in the error.
    fn check_limits(&self, limit: u64, slice: &ArraySlice, array_read: &ArrayRead) -> Result<(), ApiError> {
        self.check_size(limit, slice).map_err(|LimitExceeded { size, limit: max_size, detail }| {
            ApiError::selection_too_large(size, max_size, self.leading_part(limit, array_read).as_ref(), detail)
        })
    }

    /// Returns a leading part of the selection within the limits.
    fn leading_part(&self, limit: u64, array_read: &ArrayRead) -> Option<Selection> {
        let all = self.slice_of(array_read);
        let range = |shape: &[u64]| ArraySlice { shape: shape.to_vec(), ..all.clone() };
        array_read.smaller(|shape| self.check_size(limit, &range(shape)).is_ok())
    }

    fn check_size(&self, limit: u64, slice: &ArraySlice) -> Result<(), LimitExceeded> {
        if let Some(count) = self.placeholders(slice).filter(|&count| count > limit) {
            let detail =
                format!("{count} elements or lists without bytes exceed the limit of {limit} (`--max-text-selection`)");
            return Err(LimitExceeded { size: None, limit, detail });
        }
        self.check_text_size(limit, slice)?;
        // NumPy strings are encoded at once, so the limit of text applies.
        let strings = self.format == Format::Npy && slice.is_variable();
        let min_size = slice.elements().unwrap_or(u64::MAX).saturating_mul(VARIABLE_ELEMENT_COST);
        if strings && min_size > limit {
            let detail = format!(
                "the selection has {min_size} bytes, which exceeds the limit of {limit} for strings in npy (`--max-text-selection`)"
            );
            return Err(LimitExceeded { size: Some(min_size), limit, detail });
        }
        Ok(())
    }

    /// Checks the limit of text, assuming the longest text for each element.
    fn check_text_size(&self, limit: u64, slice: &ArraySlice) -> Result<(), LimitExceeded> {
        let limit = limit.saturating_mul(TEXT_PER_BYTE);
        let text = match self.format {
            Format::Json => slice.max_json_len(),
            Format::Csv => slice.max_csv_len(),
            Format::Raw | Format::Npy | Format::Png => return Ok(()),
        };
        if text <= limit {
            return Ok(());
        }
        let detail = format!(
            "the selection may have {text} bytes as {}, which exceeds the limit of {limit}, {TEXT_PER_BYTE} times `--max-text-selection`; raw and npy are shorter",
            self.format
        );
        Err(LimitExceeded { size: Some(text), limit, detail })
    }

    /// Returns [`ArraySlice::placeholders`] for formats that are encoded element by element.
    fn placeholders(&self, slice: &ArraySlice) -> Option<u64> {
        slice.placeholders().filter(|_| matches!(self.format, Format::Json | Format::Csv))
    }

    /// Hashes all inputs of the response's bytes into the version shown as entity tag.
    fn version(&self, fingerprint: u128, encoding: ContentEncoding, slice: &ArraySlice) -> Version {
        let mut hash = Xxh3::new();
        hash.update(&fingerprint.to_le_bytes());
        hash.update(env!("CARGO_PKG_VERSION").as_bytes());
        let suffix: &[u8] = match encoding {
            ContentEncoding::Identity => b";",
            ContentEncoding::Zstd => b";zstd",
            ContentEncoding::Gzip => b";gzip",
        };
        hash.update(self.format.name().as_bytes());
        hash.update(suffix);
        hash.update(&[u8::from(slice.column_names.is_some())]);
        for limit in [self.contrast.min, self.contrast.max] {
            // NaN stands for no limit.
            hash.update(&limit.unwrap_or(f64::NAN).to_bits().to_le_bytes());
        }
        Version::from_u128(hash.digest128())
    }

    /// Evaluates the conditions; returns a response if they decide it.
    fn check_conditions(&self, head: &ResponseHead) -> Result<Option<Response>, ApiError> {
        match self.conditions.evaluate(head.version) {
            ConditionOutcome::Proceed => Ok(None),
            ConditionOutcome::NotModified => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                head.validators(response.headers_mut());
                Ok(Some(response))
            }
            ConditionOutcome::PreconditionFailed => {
                let members = Members { current: head.version.map(etag::text), ..Members::default() };
                Err(ApiError::new(Problem::new(ProblemType::PreconditionFailed).with_members(members)))
            }
        }
    }

    /// Returns the body, its length if known, and its content coding.
    fn build_body(
        &self,
        start: BodyStart,
        length: Option<u64>,
    ) -> Result<(Body, Option<u64>, ContentEncoding), ApiError> {
        let blocks = match start {
            BodyStart::Complete(all)
                if self.encoding == ContentEncoding::Identity || all.len() <= INLINE_COMPRESS_LIMIT =>
            {
                let (all, encoding) = content_encoding::compress(all, self.encoding).map_err(BodyError::Compression)?;
                let length = all.len() as u64;
                return Ok((Body::from(all), Some(length), encoding));
            }
            BodyStart::Complete(all) => stream::iter([Ok(all)]).boxed(),
            BodyStart::Partial(blocks) => blocks,
        };
        match (self.encoding, length) {
            (ContentEncoding::Identity, Some(length)) => {
                Ok((sized_body(length, None, blocks), Some(length), ContentEncoding::Identity))
            }
            (encoding, _) => Ok((Body::from_stream(compress(blocks, encoding)?), None, encoding)),
        }
    }
}

impl ResponseHead {
    fn response(self, body: Body) -> Response {
        let mut response = Response::new(body);
        self.validators(response.headers_mut());
        response.headers_mut().extend(self.headers);
        response
    }

    /// Adds the headers that a 304 has too.
    fn validators(&self, headers: &mut HeaderMap) {
        headers.extend(self.version.map(|version| (ETAG, etag::render(version))));
        headers.insert(CACHE_CONTROL, REVALIDATE);
        headers.insert(VARY, VARY_ACCEPT);
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Array(error) => error.into(),
            BodyError::Compression(_) => Self::with_cause(ProblemType::Internal, error),
        }
    }
}

/// Returns the value of `Accept-Ranges`. Ranges address the unencoded bytes, so compressed responses have none.
fn accept_ranges(length: Option<u64>, encoding: ContentEncoding) -> Option<HeaderValue> {
    match (length, encoding) {
        (None, _) => Some(HeaderValue::from_static("none")),
        (Some(_), ContentEncoding::Identity) => Some(HeaderValue::from_static("bytes")),
        (Some(_), ContentEncoding::Zstd | ContentEncoding::Gzip) => None,
    }
}

/// Encodes a response from all elements at once.
async fn buffered_body(
    app: &App,
    format: BufferedFormat,
    slice: ArraySlice,
    mut array_read: ArrayRead,
    guard: MetricsGuard,
) -> Result<Bytes, ApiError> {
    let limit = app.settings().limits.text_selection;
    let mut permit = array_read.reserve_with_extra(memory_needed(app, &array_read)).await?;
    let (mut buffers, mut stream, mut memory) = (Vec::new(), array_read.into_stream().boxed(), 0_u64);
    while let Some(elements) = stream.try_next().await? {
        memory = memory.saturating_add(elements.memory_size());
        buffers.push(elements);
        if slice.is_variable() && memory > limit {
            let detail = format!("the elements exceed the limit of {limit} bytes (`--max-text-selection`)");
            return Err(ApiError::selection_too_large(None, limit, None, detail));
        }
        permit.grow_to(memory).map_err(ArrayError::from)?;
    }
    drop((stream, guard));
    let (slice, buffers) = (Arc::new(slice), Arc::new(buffers));
    loop {
        let (slice, buffers) = (slice.clone(), buffers.clone());
        let max_size = limit.min(permit.bytes().saturating_sub(memory));
        let supported = encode::supported_formats(&slice);
        match run_blocking(move || encode::encode_buffered(format, &slice, &buffers, max_size)).await? {
            Ok(bytes) => return Ok(permit.attach_to(bytes)),
            // The size is within the limit, but needs a larger permit.
            Err(EncodeError::TooLong { size }) if size > max_size && size <= limit => {
                permit.grow_to(memory.saturating_add(size)).map_err(ArrayError::from)?;
            }
            Err(error @ EncodeError::TooLong { size }) => {
                return Err(ApiError::selection_too_large(Some(size), limit, None, error.to_string()));
            }
            Err(error @ EncodeError::TrailingNul) => {
                let others: Vec<_> = supported.into_iter().filter(|&format| format != Format::Npy).collect();
                return Err(ApiError::format_not_supported(Format::Npy, &error.to_string(), &others));
            }
            Err(error @ (EncodeError::Count { .. } | EncodeError::Png(_))) => {
                return Err(ApiError::with_cause(ProblemType::Internal, error));
            }
        }
    }
}

/// Estimates the memory for a response encoded at once, in addition to the read itself: the elements and two bytes for
/// each pixel, or twice the limit for strings of unknown length. Starts with a quarter of the memory per request if
/// that is less.
fn memory_needed(app: &App, array_read: &ArrayRead) -> u64 {
    match array_read.byte_len() {
        Some(len) => len.saturating_add(array_read.elements().saturating_mul(2)),
        None => app.settings().limits.text_selection.saturating_mul(2).min(app.memory().max_per_request() / 4),
    }
}

/// Returns the time spent so far in each phase, in milliseconds.
fn server_timing(metrics: &ReadMetrics) -> Option<(HeaderName, HeaderValue)> {
    let work = metrics.stats();
    let [plan, fetch, decode] = [work.plan, work.fetch, work.decode].map(|time| time.as_secs_f64() * 1000.0);
    let text = format!("plan;dur={plan:.3}, fetch;dur={fetch:.3}, decode;dur={decode:.3}");
    Some((SERVER_TIMING, HeaderValue::try_from(text).ok()?))
}
