//! Conditional and partial requests (RFC 9110, sections 13 and 14).

use std::time::SystemTime;

use axum::extract::FromRequestParts;
use http::{
    HeaderMap, HeaderName, Method,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE},
    request::Parts,
};
use store::{Info, Precondition, Version, VersionMatch};
use wire::{
    etag,
    range::{self, RangeRequest},
    time,
};

use crate::{app::App, error::ApiError};

/// Under which conditions a value is read, and which part of it.
pub(crate) struct ReadConditions {
    /// `If-Match` and `If-None-Match`.
    precondition: Precondition,
    modified_since: Option<SystemTime>,
    unmodified_since: Option<SystemTime>,
    range: RangeRequest,
    if_range: Option<IfRange>,
    plain: bool,
    /// When the request came, before anything was looked up for it.
    now: SystemTime,
}

/// Under which conditions something is read that has an entity tag but no time, and which part of it.
pub(crate) struct TagConditions {
    precondition: Precondition,
    /// Only `GET` has ranges (RFC 9110, section 14.2).
    range: RangeRequest,
    if_range: Option<IfRange>,
    /// What it means that the client has it already.
    on_match: ConditionOutcome,
}

/// Under which conditions something is changed.
pub(crate) struct WriteConditions {
    /// `If-Match` and `If-None-Match`.
    pub(crate) precondition: Precondition,
    /// `If-Unmodified-Since`, where there is no `If-Match`.
    pub(crate) unmodified_since: Option<SystemTime>,
}

/// What the conditions come to for one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionOutcome {
    /// They hold.
    Proceed,
    /// The client has this value.
    NotModified,
    /// They do not hold.
    PreconditionFailed,
}

/// The value that a range is meant for.
enum IfRange {
    Version(Version),
    Modified(SystemTime),
    /// A weak tag, a tag that is not ours, or no tag at all: no value is meant.
    Unmatchable,
}

impl IfRange {
    /// True if it names this version, or the date on which the value was last modified.
    fn applies_to(&self, current: Option<Version>, is_date: impl FnOnce(SystemTime) -> bool) -> bool {
        match self {
            Self::Version(version) => Some(*version) == current,
            Self::Modified(date) => is_date(*date),
            Self::Unmatchable => false,
        }
    }
}

impl ReadConditions {
    /// True if the request has neither conditions nor a range.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// The part of the value that is asked for.
    pub(crate) fn range(&self) -> RangeRequest {
        self.range
    }

    /// The `Last-Modified` of this value.
    pub(crate) fn last_modified(&self, info: &Info) -> SystemTime {
        time::last_modified(info.modified, self.now)
    }

    /// True if the range is meant for this value; another one is sent whole.
    pub(crate) fn range_applies_to(&self, info: &Info) -> bool {
        let is_date = |date| time::is_last_modified(info.modified, date, self.now);
        self.if_range.as_ref().is_none_or(|if_range| if_range.applies_to(Some(info.version), is_date))
    }

    /// Judges the conditions in the order of RFC 9110, section 13.2.2.
    pub(crate) fn evaluate(&self, info: &Info) -> ConditionOutcome {
        let current = Some(info.version);
        let unmodified = |since| time::is_unmodified_since(info.modified, since, self.now);
        let expected = match (&self.precondition.matches, self.unmodified_since) {
            (Some(expected), _) => expected.matches(current),
            (None, Some(since)) => unmodified(since),
            (None, None) => true,
        };
        let unchanged = match (&self.precondition.none_matches, self.modified_since) {
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
    /// The part that is asked for, whatever it is meant for.
    pub(crate) fn range(&self) -> RangeRequest {
        self.range
    }

    /// True if the range is meant for what has this tag, or none; anything else is sent whole.
    pub(crate) fn range_applies_to(&self, current: Option<Version>) -> bool {
        self.if_range.as_ref().is_none_or(|if_range| if_range.applies_to(current, |_| false))
    }

    /// Judges the conditions; `None` where there is no tag, which only `*` matches.
    pub(crate) fn evaluate(&self, current: Option<Version>) -> ConditionOutcome {
        let meets = |expected: &VersionMatch| *expected == VersionMatch::Any || expected.matches(current);
        if !self.precondition.matches.as_ref().is_none_or(meets) {
            return ConditionOutcome::PreconditionFailed;
        }
        if self.precondition.none_matches.as_ref().is_some_and(meets) {
            self.on_match
        } else {
            ConditionOutcome::Proceed
        }
    }
}

impl WriteConditions {
    /// True if there are any.
    pub(crate) fn is_conditional(&self) -> bool {
        self.precondition != Precondition::none() || self.unmodified_since.is_some()
    }

    /// The precondition of a change, given what `If-Unmodified-Since` found: that very value must still be there.
    pub(crate) fn pinned(self, version: Version) -> Precondition {
        Precondition { matches: Some(VersionMatch::OneOf(vec![version])), ..self.precondition }
    }
}

impl FromRequestParts<App> for ReadConditions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let headers = &parts.headers;
        const ALL: [HeaderName; 6] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];
        let plain = !ALL.iter().any(|name| headers.contains_key(name));
        Ok(Self {
            precondition: etag::precondition(headers)?,
            modified_since: date_header(headers, IF_MODIFIED_SINCE),
            unmodified_since: date_header(headers, IF_UNMODIFIED_SINCE),
            range: parse_range(headers),
            if_range: parse_if_range(headers),
            plain,
            now: SystemTime::now(),
        })
    }
}

impl FromRequestParts<App> for TagConditions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        // Only these two methods have an answer for what did not change (RFC 9110, section 13.1.2).
        let on_match =
            if parts.method.is_safe() { ConditionOutcome::NotModified } else { ConditionOutcome::PreconditionFailed };
        let headers = &parts.headers;
        let range = if parts.method == Method::GET { parse_range(headers) } else { RangeRequest::Whole };
        Ok(Self { precondition: etag::precondition(headers)?, range, if_range: parse_if_range(headers), on_match })
    }
}

impl FromRequestParts<App> for WriteConditions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        let precondition = etag::precondition(&parts.headers)?;
        let since = date_header(&parts.headers, IF_UNMODIFIED_SINCE).filter(|_| precondition.matches.is_none());
        Ok(Self { precondition, unmodified_since: since })
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

/// A date that cannot be read is ignored, as RFC 9110 asks.
fn date_header(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    single_value(headers, name).and_then(time::parse_http_date)
}

/// The header's text, if there is exactly one.
fn single_value(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut lines = headers.get_all(name).iter();
    let (first, second) = (lines.next()?, lines.next());
    if second.is_some() { None } else { first.to_str().ok() }
}
