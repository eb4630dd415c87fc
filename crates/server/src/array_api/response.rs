//! Responses with elements: limits, headers and bodies.

mod buffered;
mod head;
mod limits;

use std::{ops::Range, sync::Arc};

use axum::{body::Body, response::Response};
use futures::{StreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE},
};
use tracing::trace_span;
use xxhash_rust::xxh3::Xxh3;
use zarrd_array::{ArrayError, ArrayResult, ReadMetrics};
use zarrd_executor::{Cost, STEPS, Work};
use zarrd_meta::{
    Dialect, NodePath,
    selection::{ReadRequest, Selection},
};
use zarrd_store::Version;
use zarrd_wire::{
    array::{self as wire_array, CsvHeader, Format},
    etag,
    headers::{
        CF, CONSISTENCY, DATA_TYPE, DIALECT, DIALECTS_DIFFER, DIMENSION_NAMES, NORTHWARD_ROWS, READ, SELECTED,
        SERVER_TIMING, SHAPE, UNDECODED,
    },
    problem::{Members, Problem, ProblemType},
    query::{CHANNELS, Channels, ElementsQuery, HEADER, PictureAnswer, PictureQuery, QueryError, THRESHOLDS},
    range::{ContentRange, RangeRequest},
};

pub(super) use self::head::VARY_ACCEPT;
use self::{
    buffered::buffered_body,
    head::{ResponseHead, accept_ranges, validators},
};
use super::{
    block_stream::{
        BodyError, BodyStart, ElementInput, MetricsGuard, buffer_start, compress, encode_elements, passthrough,
    },
    byte_range, content_disposition,
    encode::{self, AnswerLabels, ArraySlice, BufferedFormat, ColumnNames, ResponseEncoding, ShownChannel},
    image::PictureChannels,
    steps::Steps,
};
use crate::{
    app::App,
    content_encoding::{self, ContentEncoding, MIN_COMPRESS_SIZE},
    engine::Engine,
    error::ApiError,
    extract::{ConditionOutcome, ContentNegotiation, TagConditions},
    headers::{consistency, dialects_differ},
    response_body::{empty_body_of_unknown_length, sized_body},
};

/// The requested form of a response.
#[derive(Clone)]
pub(super) struct ResponseSpec {
    format: Format,
    picture: PictureQuery,
    header: Option<CsvHeader>,
    encoding: ContentEncoding,
    conditions: TagConditions,
    steps: Steps,
    notes: CoordinateNotes,
    channels: Option<Arc<PictureChannels>>,
}

/// What coordinates add to a response.
#[derive(Clone, Default)]
pub(super) struct CoordinateNotes {
    /// The labels of the elements, for xarray and CSV with labels.
    pub(super) labels: Option<Arc<AnswerLabels>>,
    /// The dimension along which the rows of a picture go north.
    pub(super) northward_rows: Option<String>,
    /// The channels of a picture that shows several, in the order of the elements.
    pub(super) channels: Option<Arc<[ShownChannel]>>,
}

impl ResponseSpec {
    /// Takes the format from the query, or negotiates it.
    pub(super) fn new(
        query: &ElementsQuery,
        negotiation: &ContentNegotiation,
        conditions: TagConditions,
    ) -> Result<Self, ApiError> {
        let mut picture = query.picture;
        if query.channels.is_some() {
            if let Some(name) = picture.first_given() {
                return Err(QueryError::Invalid { name, expected: "has no meaning for \"channels\"" }.into());
            }
            picture.channels = Channels::Added;
        }
        let format = match (picture.answer, query.format) {
            (PictureAnswer::Thresholds, None) => Format::Json,
            (_, format) => format.or_else(|| negotiation.format()).ok_or_else(ApiError::not_acceptable)?,
        };
        if picture.answer == PictureAnswer::Thresholds && format != Format::Json {
            return Err(QueryError::Invalid { name: THRESHOLDS, expected: "is supported by format=json only" }.into());
        }
        if picture.answer == PictureAnswer::Pixels
            && format != Format::Png
            && let Some(name) = picture.first_given()
        {
            let expected = "is supported by format=png and \"thresholds\" only";
            return Err(QueryError::Invalid { name, expected }.into());
        }
        if format != Format::Png && query.channels.is_some() {
            return Err(QueryError::Invalid { name: CHANNELS, expected: "is supported by format=png only" }.into());
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
        let steps = Steps::new(query)?;
        Ok(Self {
            format,
            picture,
            header: query.header,
            encoding,
            conditions,
            steps,
            notes: CoordinateNotes::default(),
            channels: None,
        })
    }

    /// The response with the channels of a picture.
    pub(super) fn with_channels(self, channels: Option<Arc<PictureChannels>>) -> Self {
        Self { channels, ..self }
    }

    /// The channels of a picture that shows several.
    pub(super) fn channels(&self) -> Option<&PictureChannels> {
        self.channels.as_deref()
    }

    /// The conditions of the request.
    pub(super) fn conditions(&self) -> &TagConditions {
        &self.conditions
    }

    /// The steps from selected elements to those of the response.
    pub(super) fn steps(&self) -> &Steps {
        &self.steps
    }

    /// The format.
    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// The maximum number of dimensions that the format can have.
    pub(super) fn max_rank(&self) -> usize {
        match (self.format, self.picture.channels) {
            (Format::Png, Channels::Rgb | Channels::Added) => 3,
            (Format::Png, Channels::Mapped) | (Format::Csv, _) => 2,
            (Format::Json | Format::Raw | Format::Npy | Format::Xarray, _) => usize::MAX,
        }
    }

    /// True if the response has labels, which [`with_notes`](Self::with_notes) adds.
    pub(super) fn has_labels(&self) -> bool {
        self.format == Format::Xarray || self.header == Some(CsvHeader::Labels)
    }

    /// True if the response is a picture of rows and columns.
    pub(super) fn is_picture(&self) -> bool {
        self.format == Format::Png
    }

    /// The response with what coordinates add.
    pub(super) fn with_notes(&self, notes: CoordinateNotes) -> Self {
        Self { notes, ..self.clone() }
    }

    /// Plans the read, and checks it against the limit of the format.
    pub(super) async fn read(
        &self,
        engine: &Engine,
        path: &NodePath,
        dialect: Option<Dialect>,
        request: &ReadRequest,
    ) -> Result<ArrayResult, ApiError> {
        let (limit, flag) = self.limit(&engine.app);
        let mut error = match self.steps.plan(engine, (path, dialect), request, limit).await {
            Ok(result) if self.colors_undecoded(&result) => return Err(ArrayError::DecodeUnspecified.into()),
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let smaller = match &mut error {
            ArrayError::SelectionTooLarge { smaller, .. } => smaller.take(),
            _ => None,
        };
        let smaller = match smaller {
            Some(smaller) => self.acceptable_selection(engine, path, dialect, smaller).await,
            None => None,
        };
        Err(ApiError::of_limited_read(error, flag, smaller.as_ref()))
    }

    /// True if the limits of a picture would be those of stored elements that have to be decoded, and the request does
    /// not say whether they are.
    fn colors_undecoded(&self, result: &ArrayResult) -> bool {
        let is_picture = self.format == Format::Png || self.picture.answer == PictureAnswer::Thresholds;
        is_picture && encode::takes_limits(&self.picture) && self.steps.leaves_decoding_open() && result.is_undecoded()
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
        let result = ArrayResult::from(engine.arrays.read(path, dialect, &request, limit).await.ok()?);
        let text = engine.app.settings().limits.text_selection;
        match self.check_size(text, &self.slice_of(&result)) {
            Ok(()) => Some(selection),
            Err(_) => self.leading_part(text, &result),
        }
    }

    /// Responds without elements.
    pub(super) fn head_response(&self, app: &App, result: &ArrayResult) -> Result<Response, ApiError> {
        let head = self.build_head(app, result)?;
        if let Some(response) = self.check_conditions(&head)? {
            return Ok(response);
        }
        let length = head.length;
        let mut response = head.response(empty_body_of_unknown_length());
        let headers = response.headers_mut();
        match length {
            Some(length) if self.encoding == ContentEncoding::Identity || length < MIN_COMPRESS_SIZE => {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            Some(_) => headers.extend(self.encoding.header().map(|encoding| (CONTENT_ENCODING, encoding))),
            None => {}
        }
        headers.extend(server_timing(&result.metrics()));
        Ok(response)
    }

    /// Responds with the elements, or 304 if the client has them.
    pub(super) async fn respond(&self, engine: &Engine, result: ArrayResult) -> Result<Response, ApiError> {
        let app = &engine.app;
        let head = self.build_head(app, &result)?;
        if let Some(response) = self.check_conditions(&head)? {
            return Ok(response);
        }
        let range = self.requested_range(&head)?;
        let metrics = result.metrics();
        let guard = MetricsGuard::new(app, metrics.clone());
        let start = match self.response_encoding(&head.slice) {
            ResponseEncoding::Buffered(format) => {
                BodyStart::Complete(buffered_body(engine, format, head.slice.clone(), result, guard).await?)
            }
            ResponseEncoding::Passthrough(head) => {
                buffer_start(match range.clone() {
                    Some(range) => byte_range::bytes(head, result, range, guard),
                    None => passthrough(head, result.into_stream().boxed(), guard),
                })
                .await?
            }
            ResponseEncoding::PerElement(encoder) => {
                let source = match self.placeholders(&head.slice) {
                    Some(count) => ElementInput::Placeholders(count),
                    None => ElementInput::Stream(result.into_stream().boxed()),
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

    fn response_encoding(&self, slice: &ArraySlice) -> ResponseEncoding {
        match &self.notes.channels {
            Some(channels) => ResponseEncoding::Buffered(BufferedFormat::Channels(channels.clone())),
            None => encode::response_encoding(self.format, slice, &self.picture),
        }
    }

    fn slice_of(&self, result: &ArrayResult) -> ArraySlice {
        let column_names = match (self.format, &self.notes.labels) {
            (Format::Csv, Some(labels)) => Some(ColumnNames::of_labels(labels)),
            (Format::Csv, None) => ColumnNames::of(result, self.header),
            (Format::Json | Format::Raw | Format::Npy | Format::Png | Format::Xarray, _) => None,
        };
        let labels = self.notes.labels.clone();
        ArraySlice { shape: result.shape().to_vec(), data_type: result.data_type().clone(), column_names, labels }
    }

    /// Builds the head, after all checks that need no decoding.
    fn build_head(&self, app: &App, result: &ArrayResult) -> Result<ResponseHead, ApiError> {
        let slice = self.slice_of(result);
        if let Some(reason) = encode::unsupported_reason(self.format, &slice, &self.picture) {
            return Err(ApiError::format_not_supported(self.format, &reason, &encode::supported_formats(&slice)));
        }
        self.check_limits(app.settings().limits.text_selection, &slice, result)?;
        let length = match self.response_encoding(&slice) {
            ResponseEncoding::Passthrough(head) => result.byte_len().and_then(|len| len.checked_add(head.len() as u64)),
            ResponseEncoding::PerElement(_) | ResponseEncoding::Buffered(_) => None,
        };
        let encoding = match length {
            Some(length) if length < MIN_COMPRESS_SIZE => ContentEncoding::Identity,
            _ => self.encoding,
        };
        let version = result.fingerprint().map(|fingerprint| self.version(fingerprint, encoding, &slice));
        // With those that every response has, there are up to 24 headers.
        let mut headers = HeaderMap::with_capacity(24);
        validators(version, &mut headers);
        let content_type = match &slice.column_names {
            Some(_) => CsvHeader::Present.content_type(),
            None => self.format.content_type(),
        };
        headers.insert(CONTENT_TYPE, content_type);
        headers.extend(accept_ranges(length, encoding).map(|accept_ranges| (ACCEPT_RANGES, accept_ranges)));
        headers.extend(content_disposition::header(result.path(), self.format).map(|name| (CONTENT_DISPOSITION, name)));
        headers.insert(DIALECT, HeaderValue::from_static(result.model().dialect.name()));
        headers.insert(CONSISTENCY, consistency(app, result.path()));
        headers.extend(dialects_differ(result.relation()).map(|differ| (DIALECTS_DIFFER, differ)));
        if self.steps.leaves_decoding_open() && result.is_undecoded() {
            headers.insert(UNDECODED, CF);
        }
        let northward_rows = self.notes.northward_rows.as_deref().and_then(wire_array::dimension_name);
        headers.extend(northward_rows.map(|name| (NORTHWARD_ROWS, name)));
        let cost = result.cost();
        let stored = cost.stored.map(|stored| (stored.chunks, stored.bytes));
        headers.insert(READ, wire_array::read_cost(cost.chunks, stored));
        headers.extend(wire_array::data_type(&slice.data_type.name()).map(|name| (DATA_TYPE, name)));
        headers.extend(wire_array::shape(&slice.shape).map(|shape| (SHAPE, shape)));
        headers.extend(wire_array::dimension_names(&result.dimension_names()).map(|names| (DIMENSION_NAMES, names)));
        headers.extend(wire_array::selected(result.selected_dimensions()).map(|selected| (SELECTED, selected)));
        Ok(ResponseHead { slice, length, version, headers })
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
        hash.update(&[u8::from(slice.column_names.is_some()), u8::from(slice.labels.is_some())]);
        hash.update(self.picture.render().as_bytes());
        for ShownChannel { color, window } in self.notes.channels.iter().flat_map(|channels| channels.iter()) {
            let (start, end) = window.unwrap_or((f64::NAN, f64::NAN));
            [start, end].iter().for_each(|limit| hash.update(&limit.to_bits().to_le_bytes()));
            hash.update(color);
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
                validators(head.version, response.headers_mut());
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
        let _step = trace_span!(target: STEPS, "encode").entered();
        let blocks = match start {
            BodyStart::Complete(all)
                if self.encoding == ContentEncoding::Identity
                    || Cost::of(Work::Compression, all.len() as u64).is_at_once() =>
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

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Array(error) => error.into(),
            BodyError::Compression(_) => Self::with_cause(ProblemType::Internal, error),
        }
    }
}

/// Returns the time spent so far in each phase, in milliseconds.
pub(super) fn server_timing(metrics: &ReadMetrics) -> Option<(HeaderName, HeaderValue)> {
    let work = metrics.stats();
    let [plan, fetch, decode] = [work.plan, work.fetch, work.decode].map(|time| time.as_secs_f64() * 1000.0);
    let text = format!("plan;dur={plan:.3}, fetch;dur={fetch:.3}, decode;dur={decode:.3}");
    Some((SERVER_TIMING, HeaderValue::try_from(text).ok()?))
}
