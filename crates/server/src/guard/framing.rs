//! Message framing (RFC 9112).

use http::{HeaderMap, header::TRANSFER_ENCODING};
use zarrd_wire::problem::{Members, Problem, ProblemType};

use crate::error::ApiError;

/// Rejects transfer codings other than `chunked`, which would be stored undecoded (RFC 9112, section 6.1).
///
/// hyper rejects contradictions such as two lengths before.
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
        _ => Err(ApiError::invalid_header("Transfer-Encoding", "chunked may be applied only once")),
    }
}

/// True if the body is chunked.
///
/// Such a request may also have carried a `Content-Length`, which hyper removes. Since a sender of both may be
/// smuggling a second request, the connection is closed after the response (RFC 9112, section 6.1).
pub(crate) fn is_chunked(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
}
