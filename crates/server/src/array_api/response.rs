//! The answer to a reading: its headers, and which way its bytes go.

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
    headers::{DATA_TYPE, DIALECT, DIMENSION_NAMES, SERVER_TIMING, SHAPE},
    problem::{Members, Problem, ProblemType},
    query::{ElementsQuery, HEADER, MAX, MIN, QueryError},
    range::{ContentRange, RangeRequest},
};
use xxhash_rust::xxh3::Xxh3;

use super::{
    block_stream::{BlockError, Counted, Gathered, Source, coded, encoded, gather, verbatim},
    byte_range, content_disposition,
    encode::{self, Answer, Contrast, Header, Whole, WholeError, Writing},
};
use crate::{
    app::App,
    blocking::blocking,
    content_encoding::{self, Coding, WORTH},
    engine::Engine,
    error::Refusal,
    extract::{Condition, Forms, TagConditions},
    headers::REVALIDATE,
    response_body::sized_body,
};

/// What an element of variable length counts at the least.
const NOMINAL: u64 = 16;
/// How many bytes of text there may be for each byte that the limit counts in memory.
const TEXT_PER_BYTE: u64 = 4;
/// Answers up to this size are compressed in one go.
const AT_ONCE: usize = 128 << 10;
const VARIES: HeaderValue = HeaderValue::from_static("accept, accept-encoding");

/// How an answer is wanted.
pub(super) struct Asked {
    format: Format,
    contrast: Contrast,
    header: Option<CsvHeader>,
    coding: Coding,
    conditions: TagConditions,
}

/// What is known of an answer before any of it is made.
struct Made {
    answer: Answer,
    /// How many bytes it has without a coding, where that is known.
    length: Option<u64>,
    /// What its entity tag shows.
    version: Option<Version>,
    /// The headers that say what the elements are.
    headers: HeaderMap,
}

/// Why an answer would be too much.
struct TooMuch {
    size: Option<u64>,
    limit: u64,
    detail: String,
}

impl Asked {
    /// The format is that of the query, or the one that is accepted best.
    pub(super) fn new(query: &ElementsQuery, forms: &Forms, conditions: TagConditions) -> Result<Self, Refusal> {
        let format = query.format.or_else(|| forms.format()).ok_or_else(Refusal::not_acceptable)?;
        let contrast = Contrast { min: query.min, max: query.max };
        if format != Format::Png && contrast != Contrast::default() {
            let name = if query.min.is_some() { MIN } else { MAX };
            return Err(QueryError::Invalid { name, expected: "is for the format png alone" }.into());
        }
        if format != Format::Csv && query.header.is_some() {
            return Err(QueryError::Invalid { name: HEADER, expected: "is for the format csv alone" }.into());
        }
        // A range is one of the elements' own bytes, which those of a coding are not; and an image is compressed already.
        let ranged = conditions.range() != RangeRequest::Whole && matches!(format, Format::Raw | Format::Npy);
        let coding = match format == Format::Png || ranged && forms.takes_identity() {
            true => Coding::Identity,
            false => forms.coding(),
        };
        Ok(Self { format, contrast, header: query.header, coding, conditions })
    }

    /// Makes ready to read, if that is not too much for the format.
    pub(super) async fn read(
        &self,
        engine: &Engine,
        path: &NodePath,
        dialect: Option<Dialect>,
        request: &ReadRequest,
    ) -> Result<ArrayRead, Refusal> {
        let (limit, flag) = self.limit(&engine.app);
        let error = match engine.arrays.read(path, dialect, request, limit).await {
            Err(error @ ArrayError::SelectionTooLarge { .. }) => error,
            read => return Ok(read?),
        };
        let detail = format!("{error} (`{flag}`)");
        let ArrayError::SelectionTooLarge { size, limit, smaller } = error else { return Err(error.into()) };
        let smaller = match smaller {
            Some(smaller) => self.fitting(engine, path, dialect, smaller).await,
            None => None,
        };
        Err(Refusal::too_much(Some(u64::try_from(size).unwrap_or(u64::MAX)), limit, smaller.as_ref(), detail))
    }

    /// A selection that is not too large, or the part of it that is not too large for the format either.
    async fn fitting(
        &self,
        engine: &Engine,
        path: &NodePath,
        dialect: Option<Dialect>,
        selection: Selection,
    ) -> Option<Selection> {
        // A hint is nothing to wait for.
        engine.claim.never_wait();
        let (limit, _) = self.limit(&engine.app);
        let request = ReadRequest::Select(selection.clone());
        let reading = engine.arrays.read(path, dialect, &request, limit).await.ok()?;
        let text = engine.app.settings().limits.text_selection;
        match self.judge(text, &self.answer_of(&reading)) {
            Ok(()) => Some(selection),
            Err(_) => self.part(text, &reading),
        }
    }

    /// How many bytes of elements may be selected, and the flag that says so.
    fn limit(&self, app: &App) -> (u64, &'static str) {
        let limits = &app.settings().limits;
        match self.format {
            Format::Raw | Format::Npy => (limits.selection, "--max-selection"),
            Format::Json | Format::Csv | Format::Png => (limits.text_selection, "--max-text-selection"),
        }
    }

    /// What is said of the elements, without them.
    pub(super) fn describe(&self, app: &App, reading: &ArrayRead) -> Result<Response, Refusal> {
        let made = self.make(app, reading)?;
        if let Some(response) = self.settled(&made)? {
            return Ok(response);
        }
        // A length that is not known must not be told as 0.
        let length = made.length;
        let mut response = made.response(Body::from_stream(stream::empty::<Result<Bytes, BlockError>>()));
        let headers = response.headers_mut();
        match length {
            Some(length) if self.coding == Coding::Identity || length < WORTH => {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            Some(_) => headers.extend(self.coding.header().map(|coding| (CONTENT_ENCODING, coding))),
            None => {}
        }
        headers.extend(timing(&reading.metrics()));
        Ok(response)
    }

    /// The elements, or that the client has them.
    pub(super) async fn answer(&self, app: &App, reading: ArrayRead) -> Result<Response, Refusal> {
        let made = self.make(app, &reading)?;
        if let Some(response) = self.settled(&made)? {
            return Ok(response);
        }
        let part = self.asked_part(&made)?;
        let meter = reading.metrics();
        let counted = Counted::new(app, meter.clone());
        let gathered = match encode::writing(self.format, &made.answer, self.contrast) {
            Writing::Whole(how) => Gathered::All(whole(app, how, made.answer.clone(), reading, counted).await?),
            Writing::Verbatim(head) => {
                gather(match part.clone() {
                    Some(range) => byte_range::bytes(head, reading, range, counted),
                    None => verbatim(head, reading.into_stream().boxed(), counted),
                })
                .await?
            }
            Writing::Each(encoder) => {
                let source = match self.empties(&made.answer) {
                    Some(count) => Source::Empties(count),
                    None => Source::Pieces(reading.into_stream().boxed()),
                };
                gather(encoded(encoder, made.answer.data_type.fixed_size(), source, counted)).await?
            }
        };
        let sent = part.as_ref().map(|range| range.end.saturating_sub(range.start)).or(made.length);
        let (body, length, coding) = self.body(gathered, sent)?;
        let size = made.length;
        let mut response = made.response(body);
        if let (Some(range), Some(size)) = (part, size) {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let text = ContentRange { range: Some(range), size }.render();
            response.headers_mut().extend(HeaderValue::try_from(text).map(|range| (CONTENT_RANGE, range)));
        }
        let headers = response.headers_mut();
        headers.extend(length.map(|length| (CONTENT_LENGTH, HeaderValue::from(length))));
        headers.extend(coding.header().map(|coding| (CONTENT_ENCODING, coding)));
        headers.extend(timing(&meter));
        Ok(response)
    }

    /// The range of bytes that is sent; `None` for all of them.
    fn asked_part(&self, made: &Made) -> Result<Option<Range<u64>>, Refusal> {
        let Some(length) = made.length.filter(|_| self.coding == Coding::Identity) else { return Ok(None) };
        let range = match self.conditions.range() {
            RangeRequest::Whole => return Ok(None),
            _ if !self.conditions.range_is_for(made.version) => return Ok(None),
            RangeRequest::One(range) => range.resolve(length),
            RangeRequest::Unsatisfiable => None,
        };
        // The last bytes of an empty answer are that answer.
        let range = range.ok_or_else(|| Refusal::range_not_satisfiable(length, made.version))?;
        Ok((!range.is_empty()).then_some(range))
    }

    fn answer_of(&self, reading: &ArrayRead) -> Answer {
        let header = match self.format {
            Format::Csv => Header::of(reading, self.header),
            Format::Json | Format::Raw | Format::Npy | Format::Png => None,
        };
        Answer { shape: reading.shape().to_vec(), data_type: reading.model().data_type.clone(), header }
    }

    /// Judges what can be judged before anything is decoded.
    fn make(&self, app: &App, reading: &ArrayRead) -> Result<Made, Refusal> {
        let answer = self.answer_of(reading);
        if let Some(reason) = encode::obstacle(self.format, &answer) {
            return Err(Refusal::cannot_hold(self.format, &reason, &encode::able(&answer)));
        }
        self.check(app.settings().limits.text_selection, &answer, reading)?;
        let length = match encode::writing(self.format, &answer, self.contrast) {
            Writing::Verbatim(head) => reading.byte_len().and_then(|len| len.checked_add(head.len() as u64)),
            Writing::Each(_) | Writing::Whole(_) => None,
        };
        let coding = match length {
            Some(length) if length < WORTH => Coding::Identity,
            _ => self.coding,
        };
        let version = reading.fingerprint().map(|fingerprint| self.version(fingerprint, coding, &answer));
        let mut headers = HeaderMap::with_capacity(16);
        let content_type = match &answer.header {
            Some(_) => CsvHeader::Present.content_type(),
            None => self.format.content_type(),
        };
        headers.insert(CONTENT_TYPE, content_type);
        headers.extend(ranges(length, coding).map(|ranges| (ACCEPT_RANGES, ranges)));
        headers.extend(content_disposition::of(reading.path(), self.format).map(|name| (CONTENT_DISPOSITION, name)));
        headers.insert(DIALECT, HeaderValue::from_static(reading.model().dialect.name()));
        headers.extend(wire_array::data_type(&answer.data_type.name()).map(|name| (DATA_TYPE, name)));
        headers.extend(wire_array::shape(&answer.shape).map(|shape| (SHAPE, shape)));
        headers.extend(wire_array::dimension_names(&reading.dimension_names()).map(|names| (DIMENSION_NAMES, names)));
        Ok(Made { answer, length, version, headers })
    }

    /// Refuses what has few bytes in memory, and many as text.
    fn check(&self, limit: u64, answer: &Answer, reading: &ArrayRead) -> Result<(), Refusal> {
        self.judge(limit, answer).map_err(|TooMuch { size, limit: most, detail }| {
            Refusal::too_much(size, most, self.part(limit, reading).as_ref(), detail)
        })
    }

    /// A leading part of what is read that is not too much.
    fn part(&self, limit: u64, reading: &ArrayRead) -> Option<Selection> {
        let all = self.answer_of(reading);
        let part = |shape: &[u64]| Answer { shape: shape.to_vec(), ..all.clone() };
        reading.smaller(|shape| self.judge(limit, &part(shape)).is_ok())
    }

    fn judge(&self, limit: u64, answer: &Answer) -> Result<(), TooMuch> {
        if let Some(count) = self.empties(answer).filter(|&count| count > limit) {
            let detail = format!(
                "there are {count} elements or lists without any bytes, and the limit is {limit} (`--max-text-selection`)"
            );
            return Err(TooMuch { size: None, limit, detail });
        }
        self.judge_text(limit, answer)?;
        // Strings of NumPy's are made whole, so the limit is that of text.
        let strings = self.format == Format::Npy && answer.is_variable();
        let least = answer.elements().unwrap_or(u64::MAX).saturating_mul(NOMINAL);
        if strings && least > limit {
            let detail = format!(
                "the selection has {least} bytes, and the limit for strings in npy is {limit} (`--max-text-selection`)"
            );
            return Err(TooMuch { size: Some(least), limit, detail });
        }
        Ok(())
    }

    /// Refuses what would be too long as text: the widest elements of the type, with all brackets and commas around them.
    fn judge_text(&self, limit: u64, answer: &Answer) -> Result<(), TooMuch> {
        let limit = limit.saturating_mul(TEXT_PER_BYTE);
        let text = match self.format {
            Format::Json => answer.json_len(),
            Format::Csv => answer.csv_len(),
            Format::Raw | Format::Npy | Format::Png => return Ok(()),
        };
        if text <= limit {
            return Ok(());
        }
        let detail = format!(
            "the selection may have {text} bytes as {}, and the limit is {limit}, {TEXT_PER_BYTE} times `--max-text-selection`; raw and npy are shorter",
            self.format
        );
        Err(TooMuch { size: Some(text), limit, detail })
    }

    /// See [`Answer::empties`]; they matter only where elements are written one by one.
    fn empties(&self, answer: &Answer) -> Option<u64> {
        answer.empties().filter(|_| matches!(self.format, Format::Json | Format::Csv))
    }

    /// What the entity tag shows: all that the bytes depend on.
    fn version(&self, fingerprint: u128, coding: Coding, answer: &Answer) -> Version {
        let mut hash = Xxh3::new();
        hash.update(&fingerprint.to_le_bytes());
        hash.update(env!("CARGO_PKG_VERSION").as_bytes());
        let codings: &[u8] = match coding {
            Coding::Identity => b";",
            Coding::Zstd => b";zstd",
            Coding::Gzip => b";gzip",
        };
        hash.update(self.format.name().as_bytes());
        hash.update(codings);
        hash.update(&[u8::from(answer.header.is_some())]);
        for limit in [self.contrast.min, self.contrast.max] {
            // No limit is a NaN.
            hash.update(&limit.unwrap_or(f64::NAN).to_bits().to_le_bytes());
        }
        Version::from_u128(hash.digest128())
    }

    /// The answer where the conditions settle it.
    fn settled(&self, made: &Made) -> Result<Option<Response>, Refusal> {
        match self.conditions.judge(made.version) {
            Condition::Holds => Ok(None),
            Condition::NotModified => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                made.validators(response.headers_mut());
                Ok(Some(response))
            }
            Condition::Fails => {
                let members = Members { current: made.version.map(etag::text), ..Members::default() };
                Err(Refusal::new(Problem::new(ProblemType::PreconditionFailed).with_members(members)))
            }
        }
    }

    /// The body, how many bytes it has where that is known, and its coding.
    fn body(&self, gathered: Gathered, length: Option<u64>) -> Result<(Body, Option<u64>, Coding), Refusal> {
        let blocks = match gathered {
            Gathered::All(all) if self.coding == Coding::Identity || all.len() <= AT_ONCE => {
                let (all, coding) = content_encoding::whole(all, self.coding).map_err(BlockError::Coding)?;
                let length = all.len() as u64;
                return Ok((Body::from(all), Some(length), coding));
            }
            Gathered::All(all) => stream::iter([Ok(all)]).boxed(),
            Gathered::Begun(blocks) => blocks,
        };
        match (self.coding, length) {
            (Coding::Identity, Some(length)) => Ok((sized_body(length, None, blocks), Some(length), Coding::Identity)),
            (coding, _) => Ok((Body::from_stream(coded(blocks, coding)?), None, coding)),
        }
    }
}

impl Made {
    fn response(self, body: Body) -> Response {
        let mut response = Response::new(body);
        self.validators(response.headers_mut());
        response.headers_mut().extend(self.headers);
        response
    }

    /// What is said also where the client has the answer already.
    fn validators(&self, headers: &mut HeaderMap) {
        headers.extend(self.version.map(|version| (ETAG, etag::render(version))));
        headers.insert(CACHE_CONTROL, REVALIDATE);
        headers.insert(VARY, VARIES);
    }
}

impl From<BlockError> for Refusal {
    fn from(error: BlockError) -> Self {
        match error {
            BlockError::Array(error) => error.into(),
            BlockError::Coding(_) => Self::because(ProblemType::Internal, error),
        }
    }
}

/// The value of `Accept-Ranges`. Ranges are those of the elements' own bytes, so nothing is said of an answer with a coding.
fn ranges(length: Option<u64>, coding: Coding) -> Option<HeaderValue> {
    match (length, coding) {
        (None, _) => Some(HeaderValue::from_static("none")),
        (Some(_), Coding::Identity) => Some(HeaderValue::from_static("bytes")),
        (Some(_), Coding::Zstd | Coding::Gzip) => None,
    }
}

/// The bytes of an answer that is made of all elements at once.
async fn whole(
    app: &App,
    how: Whole,
    answer: Answer,
    mut reading: ArrayRead,
    counted: Counted,
) -> Result<Bytes, Refusal> {
    let limit = app.settings().limits.text_selection;
    let mut room = reading.reserve_with_extra(needed(app, &reading)).await?;
    let (mut pieces, mut stream, mut memory) = (Vec::new(), reading.into_stream().boxed(), 0_u64);
    while let Some(piece) = stream.try_next().await? {
        memory = memory.saturating_add(piece.memory());
        pieces.push(piece);
        if answer.is_variable() && memory > limit {
            let detail = format!("the elements take more than the limit of {limit} bytes (`--max-text-selection`)");
            return Err(Refusal::too_much(None, limit, None, detail));
        }
        room.grow_to(memory).map_err(ArrayError::from)?;
    }
    drop((stream, counted));
    let (answer, pieces) = (Arc::new(answer), Arc::new(pieces));
    loop {
        let (answer, pieces) = (answer.clone(), pieces.clone());
        let most = limit.min(room.bytes().saturating_sub(memory));
        let able = encode::able(&answer);
        match blocking(move || encode::whole(how, &answer, &pieces, most)).await? {
            Ok(bytes) => return Ok(room.attach_to(bytes)),
            // It may be as long, and there was no memory for it so far.
            Err(WholeError::TooLong { size }) if size > most && size <= limit => {
                room.grow_to(memory.saturating_add(size)).map_err(ArrayError::from)?;
            }
            Err(error @ WholeError::TooLong { size }) => {
                return Err(Refusal::too_much(Some(size), limit, None, error.to_string()));
            }
            Err(error @ WholeError::TrailingNul) => {
                let others: Vec<_> = able.into_iter().filter(|&format| format != Format::Npy).collect();
                return Err(Refusal::cannot_hold(Format::Npy, &error.to_string(), &others));
            }
            Err(error @ (WholeError::Count { .. } | WholeError::Png(_))) => {
                return Err(Refusal::because(ProblemType::Internal, error));
            }
        }
    }
}

/// How much memory is reserved for an answer that is made whole, beside what reading takes: for the elements, and for two bytes for a pixel, or strings of the limit, of which no
/// one knows yet how long they are. Where that is much of all that there is, a quarter of it is for a beginning.
fn needed(app: &App, reading: &ArrayRead) -> u64 {
    match reading.byte_len() {
        Some(len) => len.saturating_add(reading.elements().saturating_mul(2)),
        None => app.settings().limits.text_selection.saturating_mul(2).min(app.memory().max_per_request() / 4),
    }
}

/// How long it took so far, in milliseconds.
fn timing(meter: &ReadMetrics) -> Option<(HeaderName, HeaderValue)> {
    let work = meter.stats();
    let [plan, fetch, decode] = [work.plan, work.fetch, work.decode].map(|time| time.as_secs_f64() * 1000.0);
    let text = format!("plan;dur={plan:.3}, fetch;dur={fetch:.3}, decode;dur={decode:.3}");
    Some((SERVER_TIMING, HeaderValue::try_from(text).ok()?))
}
