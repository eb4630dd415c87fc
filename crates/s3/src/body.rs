//! Errors of bodies.

use s3s::{S3Error, S3ErrorCode};

/// The reason why a body is refused while it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The framing of `aws-chunked` is malformed.
    #[error("the aws-chunked framing of the body is malformed")]
    Framing,
    /// The body ends within its framing, or before its announced length.
    #[error("the body ends before its announced length")]
    Incomplete,
    /// The body has more bytes than announced.
    #[error("the body is longer than x-amz-decoded-content-length")]
    TooLong,
    /// The signature of a chunk or of the trailers does not match.
    #[error("the signature of a chunk of the body does not match")]
    Signature,
    /// The trailers do not have the checksum that `x-amz-trailer` announces, or are malformed.
    #[error("the trailers of the body do not have the checksum that x-amz-trailer announces")]
    Trailer,
    /// The body does not match `Content-MD5` or a checksum.
    #[error("the body does not match its {name}")]
    Digest {
        /// The name of the header or trailer.
        name: &'static str,
    },
    /// The body does not match `x-amz-content-sha256`.
    #[error("the body does not match x-amz-content-sha256")]
    ContentSha256,
}

impl BodyError {
    /// The code of the error.
    pub fn code(self) -> S3ErrorCode {
        match self {
            Self::Framing => S3ErrorCode::InvalidRequest,
            Self::Incomplete | Self::TooLong => S3ErrorCode::IncompleteBody,
            Self::Signature => S3ErrorCode::SignatureDoesNotMatch,
            Self::Trailer => S3ErrorCode::Custom("MalformedTrailerError".into()),
            Self::Digest { .. } => S3ErrorCode::BadDigest,
            Self::ContentSha256 => S3ErrorCode::Custom("XAmzContentSHA256Mismatch".into()),
        }
    }
}

impl From<BodyError> for S3Error {
    fn from(error: BodyError) -> Self {
        let mut answer = Self::with_message(error.code(), error.to_string());
        if answer.status_code().is_none() {
            answer.set_status_code(http::StatusCode::BAD_REQUEST);
        }
        answer
    }
}
