//! Conditional and range requests (RFC 9110, sections 13 and 14).

use std::time::SystemTime;

use axum::extract::FromRequestParts;
use http::{
    HeaderMap, HeaderName, Method,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE},
    request::Parts,
};
use zarrd_store::{Key, Precondition, StoreError, ValueMeta, Version, VersionMatch};
use zarrd_wire::{
    dav::IfHeader,
    etag::{self, EtagError},
    problem::{Problem, ProblemType},
    range::{self, RangeRequest},
    routes::StoreTarget,
    time,
};

use crate::{app::App, destination, error::ApiError};

/// The conditions and the range of a request for a value.
pub(crate) struct ReadConditions {
    /// `If-Match` and `If-None-Match`.
    precondition: Precondition,
    modified_since: Option<SystemTime>,
    unmodified_since: Option<SystemTime>,
    range: RangeRequest,
    if_range: Option<IfRange>,
    plain: bool,
    /// The time of the request, taken before any lookup.
    now: SystemTime,
}

/// The conditions and the range of a request for a resource that has an entity tag but no date.
#[derive(Clone)]
pub(crate) struct TagConditions {
    precondition: Precondition,
    /// Only `GET` supports ranges (RFC 9110, section 14.2).
    range: RangeRequest,
    if_range: Option<IfRange>,
    /// The outcome if `If-None-Match` matches.
    on_match: ConditionOutcome,
}

/// The conditions of a request that changes a resource.
pub(crate) struct WriteConditions {
    /// `If-Match` and `If-None-Match`.
    pub(crate) precondition: Precondition,
    /// `If-Unmodified-Since`, if `If-Match` is absent.
    pub(crate) unmodified_since: Option<SystemTime>,
    /// `If`.
    pub(crate) states: Option<StateConditions>,
}

/// The header `If` of WebDAV.
pub(crate) struct StateConditions {
    header: IfHeader,
    /// The URLs in it that name a key here.
    keys: Vec<(String, Key)>,
}

impl StateConditions {
    fn from_parts(parts: &Parts, app: &App) -> Result<Option<Self>, ApiError> {
        let header = IfHeader::from_headers(&parts.headers);
        let header = header.map_err(|error| ApiError::invalid_header("If", error.to_string()))?;
        let Some(header) = header else { return Ok(None) };
        let key = |url: &str| match destination::of_url(app, url, &parts.headers, &parts.uri, &parts.extensions) {
            Ok(StoreTarget::Key(key)) => Some((url.to_owned(), key)),
            _ => None,
        };
        let keys = header.resources().filter_map(key).collect();
        Ok(Some(Self { header, keys }))
    }

    /// Fails unless the conditions hold. `current` is the version of the request's key, and `others` has the other keys
    /// that the request changes with their versions. Of the rest nothing is known.
    pub(crate) fn check(
        &self,
        key: &Key,
        current: Option<Version>,
        others: &[(&Key, Option<Version>)],
    ) -> Result<(), StoreError> {
        let version = |url: &str| {
            let (_, tagged) = self.keys.iter().find(|(known, _)| known == url)?;
            if tagged == key {
                return Some(current);
            }
            others.iter().find(|(other, _)| *other == tagged).map(|(_, version)| *version)
        };
        match self.header.is_met_by(current, version) {
            true => Ok(()),
            false => Err(StoreError::PreconditionFailed { key: key.clone(), current }),
        }
    }

    /// Fails unless the conditions hold of a prefix, which has no version.
    pub(crate) fn check_prefix(&self) -> Result<(), ApiError> {
        match self.header.is_met_by(None, |_| None) {
            true => Ok(()),
            false => Err(ApiError::new(Problem::new(ProblemType::PreconditionFailed).with_detail("If does not hold"))),
        }
    }
}

/// The outcome of evaluating conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionOutcome {
    /// All conditions hold.
    Proceed,
    /// The client has the current representation.
    NotModified,
    /// A precondition does not hold.
    PreconditionFailed,
}

/// The validator in `If-Range`.
#[derive(Clone)]
enum IfRange {
    Version(Version),
    Modified(SystemTime),
    /// A weak, foreign or malformed validator, which matches no representation.
    Unmatchable,
}

impl IfRange {
    /// True if the validator is this version, or the current `Last-Modified` date.
    fn applies_to(&self, current: Option<Version>, is_date: impl FnOnce(SystemTime) -> bool) -> bool {
        match self {
            Self::Version(version) => Some(*version) == current,
            Self::Modified(date) => is_date(*date),
            Self::Unmatchable => false,
        }
    }
}

impl ReadConditions {
    /// The conditions and the range in the headers of a request.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, EtagError> {
        const ALL: [HeaderName; 6] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];
        let plain = Self {
            precondition: Precondition::none(),
            modified_since: None,
            unmodified_since: None,
            range: RangeRequest::Whole,
            if_range: None,
            plain: true,
            now: SystemTime::now(),
        };
        if !ALL.iter().any(|name| headers.contains_key(name)) {
            return Ok(plain);
        }
        Ok(Self {
            precondition: etag::precondition(headers)?,
            modified_since: date_header(headers, IF_MODIFIED_SINCE),
            unmodified_since: date_header(headers, IF_UNMODIFIED_SINCE),
            range: parse_range(headers),
            if_range: parse_if_range(headers),
            plain: false,
            ..plain
        })
    }

    /// True if the request has neither conditions nor a range.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// The requested range.
    pub(crate) fn range(&self) -> RangeRequest {
        self.range
    }

    /// The `Last-Modified` date of a value.
    pub(crate) fn last_modified(&self, meta: &ValueMeta) -> SystemTime {
        time::last_modified(meta.modified, self.now)
    }

    /// True if `If-Range` allows the range for this value; otherwise the full value is sent.
    pub(crate) fn range_applies_to(&self, meta: &ValueMeta) -> bool {
        let is_date = |date| time::is_last_modified(meta.modified, date, self.now);
        self.if_range.as_ref().is_none_or(|if_range| if_range.applies_to(Some(meta.version), is_date))
    }

    /// Evaluates the conditions in the order of RFC 9110, section 13.2.2.
    pub(crate) fn evaluate(&self, meta: &ValueMeta) -> ConditionOutcome {
        let current = Some(meta.version);
        let unmodified = |since| time::is_unmodified_since(meta.modified, since, self.now);
        let expected = match (&self.precondition.if_match, self.unmodified_since) {
            (Some(expected), _) => expected.matches(current),
            (None, Some(since)) => unmodified(since),
            (None, None) => true,
        };
        let unchanged = match (&self.precondition.if_none_match, self.modified_since) {
            (Some(rejected), _) => rejected.matches(current),
            (None, Some(since)) => unmodified(since),
            (None, None) => false,
        };
        match (expected, unchanged) {
            (false, _) => ConditionOutcome::PreconditionFailed,
            (true, true) => ConditionOutcome::NotModified,
            (true, false) => ConditionOutcome::Proceed,
        }
    }
}

impl TagConditions {
    /// The requested range, before `If-Range`.
    pub(crate) fn range(&self) -> RangeRequest {
        self.range
    }

    /// True if `If-Range` allows the range for this version; otherwise the full response is sent.
    pub(crate) fn range_applies_to(&self, current: Option<Version>) -> bool {
        self.if_range.as_ref().is_none_or(|if_range| if_range.applies_to(current, |_| false))
    }

    /// Evaluates the conditions against the current version; `None` is matched by `*` only.
    pub(crate) fn evaluate(&self, current: Option<Version>) -> ConditionOutcome {
        let meets = |expected: &VersionMatch| *expected == VersionMatch::Any || expected.matches(current);
        if !self.precondition.if_match.as_ref().is_none_or(meets) {
            return ConditionOutcome::PreconditionFailed;
        }
        if self.precondition.if_none_match.as_ref().is_some_and(meets) {
            self.on_match
        } else {
            ConditionOutcome::Proceed
        }
    }
}

impl WriteConditions {
    /// The conditions in the headers of a request, without the header `If` of WebDAV.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, EtagError> {
        let precondition = etag::precondition(headers)?;
        let since = date_header(headers, IF_UNMODIFIED_SINCE).filter(|_| precondition.if_match.is_none());
        Ok(Self { precondition, unmodified_since: since, states: None })
    }

    /// True if the request has any condition.
    pub(crate) fn is_conditional(&self) -> bool {
        self.precondition != Precondition::none() || self.unmodified_since.is_some()
    }

    /// Fails unless the conditions hold of a prefix: it has no version, so that it can have no other than `If`.
    pub(crate) fn check_prefix(&self) -> Result<(), ApiError> {
        if self.is_conditional() {
            return Err(ApiError::invalid_header("If-Match", "a prefix has no version to compare"));
        }
        self.states.as_ref().map_or(Ok(()), StateConditions::check_prefix)
    }

    /// Fails unless the conditions hold of a key with this metadata.
    pub(crate) fn check(
        &self,
        key: &Key,
        meta: Option<&ValueMeta>,
        others: &[(&Key, Option<Version>)],
    ) -> Result<(), StoreError> {
        let current = meta.map(|meta| meta.version);
        let is_newer =
            |since| meta.is_some_and(|meta| !time::is_unmodified_since(meta.modified, since, SystemTime::now()));
        if !self.precondition.is_met_by(current) || self.unmodified_since.is_some_and(is_newer) {
            return Err(StoreError::PreconditionFailed { key: key.clone(), current });
        }
        self.states.as_ref().map_or(Ok(()), |states| states.check(key, current, others))
    }

    /// Returns the precondition that the value still has the version for which `If-Unmodified-Since` was evaluated.
    pub(crate) fn pinned(self, version: Version) -> Precondition {
        Precondition { if_match: Some(VersionMatch::OneOf(vec![version])), ..self.precondition }
    }
}

impl FromRequestParts<App> for ReadConditions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        Ok(Self::from_headers(&parts.headers)?)
    }
}

impl FromRequestParts<App> for TagConditions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        // Only safe methods answer 304 (RFC 9110, section 13.1.2).
        let on_match =
            if parts.method.is_safe() { ConditionOutcome::NotModified } else { ConditionOutcome::PreconditionFailed };
        let headers = &parts.headers;
        let range = if parts.method == Method::GET { parse_range(headers) } else { RangeRequest::Whole };
        Ok(Self { precondition: etag::precondition(headers)?, range, if_range: parse_if_range(headers), on_match })
    }
}

impl FromRequestParts<App> for WriteConditions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self { states: StateConditions::from_parts(parts, app)?, ..Self::from_headers(&parts.headers)? })
    }
}

fn parse_range(headers: &HeaderMap) -> RangeRequest {
    single_value(headers, RANGE).map_or(RangeRequest::Whole, range::parse)
}

fn parse_if_range(headers: &HeaderMap) -> Option<IfRange> {
    headers.get(IF_RANGE).map(|_| single_value(headers, IF_RANGE).map_or(IfRange::Unmatchable, parse_if_range_value))
}

fn parse_if_range_value(text: &str) -> IfRange {
    let date = || time::parse_http_date(text).map(IfRange::Modified);
    etag::parse(text).map(IfRange::Version).or_else(date).unwrap_or(IfRange::Unmatchable)
}

/// An invalid date is ignored, as RFC 9110 requires.
fn date_header(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    single_value(headers, name).and_then(time::parse_http_date)
}

/// Returns the header's text if it occurs exactly once.
fn single_value(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut lines = headers.get_all(name).iter();
    let (first, second) = (lines.next()?, lines.next());
    if second.is_some() { None } else { first.to_str().ok() }
}
