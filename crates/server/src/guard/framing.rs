//! Where a request's body ends, and in what form it came.

use http::{HeaderMap, header::TRANSFER_ENCODING};
use wire::problem::{Members, Problem, ProblemType};

use crate::error::ApiError;

/// Refuses bodies with a transfer coding other than `chunked`, which would be stored undecoded (RFC 9112, 6.1).
///
/// What contradicts itself, such as two lengths, does not come so far.
pub(crate) fn check_framing(headers: &HeaderMap) -> Result<(), ApiError> {
    let lines = headers.get_all(TRANSFER_ENCODING).iter();
    let codings: Vec<&[u8]> =
        lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii).collect();
    if codings.iter().any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"chunked")) {
        let members = Members { header: Some("Transfer-Encoding".to_owned()), ..Members::default() };
        return Err(ApiError::new(Problem::new(ProblemType::UnsupportedTransferEncoding).with_members(members)));
    }
    match codings.len() {
        0 | 1 => Ok(()),
        _ => Err(ApiError::invalid_header("Transfer-Encoding", "a body is chunked once")),
    }
}

/// True if the body came in chunks. Such a request may have had a length too, which is no longer seen here; whoever sends both may want what follows
/// to be taken for another request, so the connection has to end with it (RFC 9112, 6.1).
pub(crate) fn is_chunked(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
}
