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

use crate::{app::App, error::Refusal};

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
    known: Condition,
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
pub(crate) enum Condition {
    /// They hold.
    Holds,
    /// The client has this value.
    NotModified,
    /// They do not hold.
    Fails,
}

/// The value that a range is meant for.
enum IfRange {
    Version(Version),
    Modified(SystemTime),
    /// A weak tag, a tag that is not ours, or no tag at all: no value is meant.
    Nothing,
}

impl IfRange {
    /// True if it names this version, or the date on which the value was last modified.
    fn is_for(&self, current: Option<Version>, is_date: impl FnOnce(SystemTime) -> bool) -> bool {
        match self {
            Self::Version(version) => Some(*version) == current,
            Self::Modified(date) => is_date(*date),
            Self::Nothing => false,
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
    pub(crate) fn range_is_for(&self, info: &Info) -> bool {
        let is_date = |date| time::is_last_modified(info.modified, date, self.now);
        self.if_range.as_ref().is_none_or(|if_range| if_range.is_for(Some(info.version), is_date))
    }

    /// Judges the conditions in the order of RFC 9110, section 13.2.2.
    pub(crate) fn judge(&self, info: &Info) -> Condition {
        let current = Some(info.version);
        let unmodified = |since| time::is_unmodified_since(info.modified, since, self.now);
        let expected = match (&self.precondition.matches, self.unmodified_since) {
            (Some(wanted), _) => wanted.matches(current),
            (None, Some(since)) => unmodified(since),
            (None, None) => true,
        };
        let known = match (&self.precondition.none_matches, self.modified_since) {
            (Some(unwanted), _) => unwanted.matches(current),
            (None, Some(since)) => unmodified(since),
            (None, None) => false,
        };
        match (expected, known) {
            (false, _) => Condition::Fails,
            (true, true) => Condition::NotModified,
            (true, false) => Condition::Holds,
        }
    }
}

impl TagConditions {
    /// The part that is asked for, whatever it is meant for.
    pub(crate) fn range(&self) -> RangeRequest {
        self.range
    }

    /// True if the range is meant for what has this tag, or none; anything else is sent whole.
    pub(crate) fn range_is_for(&self, current: Option<Version>) -> bool {
        self.if_range.as_ref().is_none_or(|if_range| if_range.is_for(current, |_| false))
    }

    /// Judges the conditions; `None` where there is no tag, which only `*` matches.
    pub(crate) fn judge(&self, current: Option<Version>) -> Condition {
        let meets = |wanted: &VersionMatch| *wanted == VersionMatch::Any || wanted.matches(current);
        if !self.precondition.matches.as_ref().is_none_or(meets) {
            return Condition::Fails;
        }
        if self.precondition.none_matches.as_ref().is_some_and(meets) { self.known } else { Condition::Holds }
    }
}

impl WriteConditions {
    /// True if there are any.
    pub(crate) fn are_there(&self) -> bool {
        self.precondition != Precondition::none() || self.unmodified_since.is_some()
    }

    /// The precondition of a change, given what `If-Unmodified-Since` found: that very value must still be there.
    pub(crate) fn pinned(self, version: Version) -> Precondition {
        Precondition { matches: Some(VersionMatch::OneOf(vec![version])), ..self.precondition }
    }
}

impl FromRequestParts<App> for ReadConditions {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        let headers = &parts.headers;
        const ALL: [HeaderName; 6] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];
        let plain = !ALL.iter().any(|name| headers.contains_key(name));
        Ok(Self {
            precondition: etag::precondition(headers)?,
            modified_since: date(headers, IF_MODIFIED_SINCE),
            unmodified_since: date(headers, IF_UNMODIFIED_SINCE),
            range: range_of(headers),
            if_range: if_range_of(headers),
            plain,
            now: SystemTime::now(),
        })
    }
}

impl FromRequestParts<App> for TagConditions {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        // Only these two methods have an answer for what did not change (RFC 9110, section 13.1.2).
        let known = if parts.method.is_safe() { Condition::NotModified } else { Condition::Fails };
        let headers = &parts.headers;
        let range = if parts.method == Method::GET { range_of(headers) } else { RangeRequest::Whole };
        Ok(Self { precondition: etag::precondition(headers)?, range, if_range: if_range_of(headers), known })
    }
}

impl FromRequestParts<App> for WriteConditions {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        let precondition = etag::precondition(&parts.headers)?;
        let since = date(&parts.headers, IF_UNMODIFIED_SINCE).filter(|_| precondition.matches.is_none());
        Ok(Self { precondition, unmodified_since: since })
    }
}

fn range_of(headers: &HeaderMap) -> RangeRequest {
    only(headers, RANGE).map_or(RangeRequest::Whole, range::parse)
}

fn if_range_of(headers: &HeaderMap) -> Option<IfRange> {
    headers.get(IF_RANGE).map(|_| only(headers, IF_RANGE).map_or(IfRange::Nothing, if_range))
}

fn if_range(text: &str) -> IfRange {
    let date = || time::parse_http_date(text).map(IfRange::Modified);
    etag::parse(text).map(IfRange::Version).or_else(date).unwrap_or(IfRange::Nothing)
}

/// A date that cannot be read is ignored, as RFC 9110 asks.
fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    only(headers, name).and_then(time::parse_http_date)
}

/// The header's text, if there is exactly one.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut lines = headers.get_all(name).iter();
    let (first, second) = (lines.next()?, lines.next());
    if second.is_some() { None } else { first.to_str().ok() }
}
