//! Errors of stores.

use std::time::SystemTime;

use http::{
    HeaderValue,
    header::{CONTENT_RANGE, ETAG, LAST_MODIFIED, RETRY_AFTER},
};
use zarrd_store::{BackendErrorKind, BoxError, IntentError, MountFailure, StoreError, UploadError};
use zarrd_wire::{
    etag,
    headers::MODIFIED,
    problem::{Members, Problem, ProblemType},
    range::ContentRange,
    time,
};

use super::{ApiError, RightsLost};

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::PreconditionFailed { key, current } => {
                let members =
                    Members { key: Some(key.to_string()), current: current.map(etag::text), ..Members::default() };
                Self::new(Problem::new(ProblemType::PreconditionFailed).with_members(members))
            }
            StoreError::PartlyApplied { .. } => Self::partly_applied(error),
            StoreError::NotEmpty { ref prefix, ref key } => Self::prefix_not_empty(prefix, key, error.to_string()),
            StoreError::NameConflict { ref key, ref existing } => {
                let keys = vec![key.to_string(), existing.clone()];
                let members = Members { key: Some(key.to_string()), keys, ..Members::default() };
                let problem = Problem::new(ProblemType::NameConflict).with_detail(error.to_string());
                Self::new(problem.with_members(members))
            }
            StoreError::RangeNotSatisfiable { meta } => {
                let problem = Problem::new(ProblemType::RangeNotSatisfiable)
                    .with_detail(format!("the value has {} bytes", meta.size))
                    .with_members(Members { size: Some(meta.size), ..Members::default() });
                let content_range = ContentRange { range: None, size: meta.size };
                let texts = [
                    (CONTENT_RANGE, content_range.render()),
                    (ETAG, etag::text(meta.version)),
                    (LAST_MODIFIED, time::http_date(time::last_modified(meta.modified, SystemTime::now()))),
                    (MODIFIED, time::rfc3339(meta.modified)),
                ];
                let header = |(name, text)| Some((name, HeaderValue::try_from(text).ok()?));
                Self::build(problem, texts.into_iter().filter_map(header).collect(), None)
            }
            StoreError::Corrupt { ref key, .. } => {
                let members = Members { key: Some(key.to_string()), ..Members::default() };
                let problem = Problem::new(ProblemType::CorruptValue).with_members(members);
                Self::build(problem, Vec::new(), Some(error.into()))
            }
            StoreError::OutcomeUnknown { ref key, .. } => {
                let members = Members { key: Some(key.to_string()), ..Members::default() };
                let problem = Problem::new(ProblemType::OutcomeUnknown).with_detail(error.to_string());
                Self::build(problem.with_members(members), Vec::new(), Some(error.into()))
            }
            StoreError::Changed { ref key } => {
                let members = Members { key: Some(key.to_string()), ..Members::default() };
                let problem = Problem::new(ProblemType::ValueChanged).with_detail(error.to_string());
                Self::with_header(problem.with_members(members), RETRY_AFTER, HeaderValue::from(1))
            }
            StoreError::Unsupported { what } => {
                let members = Members { unsupported: Some(what.to_owned()), ..Members::default() };
                let problem = Problem::new(ProblemType::Unsupported).with_detail(error.to_string());
                Self::new(problem.with_members(members))
            }
            StoreError::OutOfSpace => Self::with_cause(ProblemType::OutOfSpace, error),
            StoreError::ReadOnly => Self::with_cause(ProblemType::ReadOnlyStore, error),
            StoreError::Closed => Self::with_cause(ProblemType::ShuttingDown, error),
            StoreError::InvalidCursor => Self::new(Problem::new(ProblemType::InvalidCursor)),
            StoreError::Upload(error) => error.into(),
            StoreError::Busy { retry_after } => Self::busy(retry_after),
            StoreError::SnapshotExpired | StoreError::Intent(IntentError::TooMany { .. }) => Self::busy(None),
            StoreError::TooManyChanges { .. }
            | StoreError::Intent(_)
            | StoreError::DuplicateKey { .. }
            | StoreError::InvalidStaged
            | StoreError::NotInSnapshot { .. }
            | StoreError::Io { .. } => Self::with_cause(ProblemType::Internal, error),
            StoreError::Backend { kind, .. } => Self::backend(kind, error),
        }
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        let detail = error.to_string();
        let (kind, members) = match error {
            UploadError::TooLarge { limit } => {
                (ProblemType::ValueTooLarge, Members { limit: Some(limit), ..Members::default() })
            }
            UploadError::LengthMismatch { announced, received } => {
                let members = Members { announced: Some(announced), received: Some(received), ..Members::default() };
                (ProblemType::LengthMismatch, members)
            }
            UploadError::DigestMismatch => (ProblemType::DigestMismatch, Members::default()),
            UploadError::TimedOut => (ProblemType::BodyTimeout, Members::default()),
            UploadError::Aborted(cause) => {
                return match cause.downcast::<RightsLost>() {
                    Ok(lost) => (*lost).into(),
                    Err(cause) => Self::with_cause(ProblemType::IncompleteBody, cause),
                };
            }
        };
        Self::new(Problem::new(kind).with_detail(detail).with_members(members))
    }
}

impl ApiError {
    /// A change was not made as a whole, in a store that is written key by key.
    fn partly_applied(error: StoreError) -> Self {
        let detail = error.to_string();
        let StoreError::PartlyApplied { source, .. } = error else { return error.into() };
        let (kind, key) = match &*source {
            StoreError::PreconditionFailed { key, .. } => (ProblemType::ChangedWhileWritten, Some(key.to_string())),
            _ => (ProblemType::PartlyWritten, None),
        };
        Self::partly(kind, Members { key, ..Members::default() }, detail, source)
    }

    /// A change was not made as a whole: since something else was changed meanwhile, or since the store failed.
    pub(super) fn partly(kind: ProblemType, members: Members, detail: String, source: BoxError) -> Self {
        Self::build(Problem::new(kind).with_detail(detail).with_members(members), Vec::new(), Some(source))
    }

    /// A store failed. Its details are for the log, unless it says that clients may have them; one that fails at a key,
    /// or is mounted, is another service.
    fn backend(class: BackendErrorKind, error: StoreError) -> Self {
        let prefix = error.backend_source::<MountFailure>().map(|failure| failure.prefix().to_string());
        let members = Members { key: error.failed_at().map(str::to_owned), prefix, ..Members::default() };
        let (kind, headers) = match class {
            _ if members.key.is_none() && members.prefix.is_none() => (ProblemType::Internal, Vec::new()),
            BackendErrorKind::Connection => (ProblemType::StoreUnavailable, vec![(RETRY_AFTER, HeaderValue::from(1))]),
            BackendErrorKind::Timeout => (ProblemType::StoreTimeout, Vec::new()),
            _ => (ProblemType::StoreFailed, Vec::new()),
        };
        let problem = match kind {
            ProblemType::Internal => Problem::new(kind),
            _ => Problem::new(kind).with_detail(error.reason().map_or_else(|| class.to_string(), str::to_owned)),
        };
        Self::build(problem.with_members(members), headers, Some(error.into()))
    }
}
