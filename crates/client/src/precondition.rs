//! Preconditions as request headers.

use reqwest::{
    RequestBuilder,
    header::{IF_MATCH, IF_NONE_MATCH},
};
use zarrd_store::Precondition;
use zarrd_wire::etag;

use crate::retry::Idempotency;

/// Adds `If-Match` and `If-None-Match` to a request.
pub(crate) fn conditional(mut request: RequestBuilder, precondition: &Precondition) -> RequestBuilder {
    if let Some(wanted) = &precondition.if_match {
        request = request.header(IF_MATCH, etag::render_list(wanted));
    }
    if let Some(unwanted) = &precondition.if_none_match {
        request = request.header(IF_NONE_MATCH, etag::render_list(unwanted));
    }
    request
}

/// The idempotency of a change that is idempotent without a precondition.
///
/// With a precondition it is not: if the response to the first attempt was lost, that attempt may itself have made the
/// precondition false for the second.
pub(crate) fn idempotency(precondition: &Precondition) -> Idempotency {
    if *precondition == Precondition::none() { Idempotency::Idempotent } else { Idempotency::NotIdempotent }
}
