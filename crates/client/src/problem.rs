//! Problem documents as errors of the store, the reverse of what the server does.

use reqwest::StatusCode;
use store::{Corruption, Key, StoreError, UploadError};
use wire::{
    etag,
    problem::{Problem, ProblemType},
};

use crate::answer::Refusal;

/// What the server said of a content that did not reach it whole.
#[derive(Debug, thiserror::Error)]
#[error("the server says: {0}")]
struct Said(String);

/// The error that a refusal of a request that concerned `key` stands for.
pub(crate) fn into_error(refusal: Refusal, key: Option<&Key>) -> StoreError {
    match refusal.problem {
        Some(problem) => of_problem(Refusal { problem: None, ..refusal }, problem, key),
        None => of_status(refusal, key),
    }
}

/// Every type is named, so that a new one has to be thought of here.
fn of_problem(refusal: Refusal, problem: Problem, key: Option<&Key>) -> StoreError {
    let named = problem.members.key.as_deref().and_then(|text| Key::parse(text).ok());
    let key = named.or_else(|| key.cloned());
    match problem.kind {
        ProblemType::PreconditionFailed => match key {
            Some(key) => StoreError::PreconditionFailed { key, current: current(&problem) },
            None => remote(refusal),
        },
        ProblemType::DamagedValue => match key {
            Some(key) => StoreError::Corrupt { key, cause: Corruption::Remote { request: refusal.request } },
            None => remote(refusal),
        },
        ProblemType::InvalidCursor => StoreError::InvalidCursor,
        ProblemType::LengthMismatch => match (problem.members.announced, problem.members.received) {
            (Some(announced), Some(received)) => UploadError::Length { announced, received }.into(),
            _ => UploadError::Aborted(Box::new(Said(said(problem)))).into(),
        },
        ProblemType::DigestMismatch => UploadError::Digest.into(),
        ProblemType::BodyAborted => UploadError::Aborted(Box::new(Said(said(problem)))).into(),
        ProblemType::BodyTimeout => UploadError::TimedOut.into(),
        ProblemType::ValueTooLarge => match problem.members.limit {
            Some(limit) => UploadError::TooLarge { limit }.into(),
            None => remote(refusal),
        },
        ProblemType::OutOfSpace => StoreError::OutOfSpace,
        ProblemType::StoreReadOnly => StoreError::ReadOnly,
        ProblemType::Busy | ProblemType::Stopping => StoreError::Busy { retry_after: refusal.retry_after },
        ProblemType::ForbiddenHost | ProblemType::ForbiddenOrigin | ProblemType::ReadOnlyAccess => {
            StoreError::Forbidden { detail: said(problem) }
        }
        // The reading of a value knows these by itself, and elsewhere they make no sense.
        ProblemType::NoSuchKey | ProblemType::RangeNotSatisfiable => remote(refusal),
        // This client does not make such requests, so what they mean is between here and the server.
        ProblemType::InvalidKey
        | ProblemType::InvalidHeader
        | ProblemType::UnknownParameter
        | ProblemType::RepeatedParameter
        | ProblemType::InvalidParameter
        | ProblemType::UnknownListing
        | ProblemType::ConfirmationNeeded
        | ProblemType::MissingHost
        | ProblemType::NotFound
        | ProblemType::MethodNotAllowed
        | ProblemType::EncodedBody
        | ProblemType::Internal => remote(refusal),
    }
}

/// The answer of a server that has other types, or of something that stands before it.
fn of_status(refusal: Refusal, key: Option<&Key>) -> StoreError {
    match (refusal.status, key) {
        (StatusCode::UNAUTHORIZED, _) => StoreError::Unauthorized,
        (StatusCode::FORBIDDEN, _) => StoreError::Forbidden { detail: "it gave no reason".into() },
        (StatusCode::PRECONDITION_FAILED, Some(key)) => {
            StoreError::PreconditionFailed { key: key.clone(), current: None }
        }
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, _) => {
            StoreError::Busy { retry_after: refusal.retry_after }
        }
        _ => remote(refusal),
    }
}

fn remote(refusal: Refusal) -> StoreError {
    StoreError::Remote { status: refusal.status.as_u16(), request: refusal.request }
}

fn current(problem: &Problem) -> Option<store::Version> {
    problem.members.current.as_deref().and_then(etag::parse)
}

fn said(problem: Problem) -> String {
    if problem.detail.is_empty() { problem.title } else { problem.detail }
}
