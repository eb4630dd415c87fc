//! Checksums of bodies.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest as Crc};
use http::{HeaderMap, HeaderName};
use md5::Md5;
use s3s::{S3Error, s3_error};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use zarrd_store::{Checksum, ChecksumAlgorithm, ChecksumKind};

use crate::{
    aws_chunked::Trailers,
    body::BodyError,
    headers::{CONTENT_MD5, CONTENT_SHA256, TRAILER},
};

/// The headers with the name of the algorithm, of which SDKs of different ages send one.
const NAMED_ALGORITHM: [HeaderName; 2] =
    [HeaderName::from_static("x-amz-sdk-checksum-algorithm"), HeaderName::from_static("x-amz-checksum-algorithm")];

/// Computes what a request announces of its body, and compares it at the end.
#[derive(Debug, Default)]
pub struct Verifier {
    hashers: Vec<(Hasher, Expected)>,
}

/// The origin of an expected hash.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    Checksum(Checksum),
    Trailer(ChecksumAlgorithm),
    /// Nothing is expected, but the checksum is wanted.
    Computed(ChecksumAlgorithm),
    Md5(Vec<u8>),
    ContentSha256(Vec<u8>),
}

enum Hasher {
    Crc(ChecksumAlgorithm, Box<Crc>),
    Sha1(Box<Sha1>),
    Sha256(Box<Sha256>),
    Md5(Box<Md5>),
}

/// The header or trailer with a checksum of an algorithm.
pub fn checksum_header(algorithm: ChecksumAlgorithm) -> &'static HeaderName {
    static CRC32: HeaderName = HeaderName::from_static("x-amz-checksum-crc32");
    static CRC32C: HeaderName = HeaderName::from_static("x-amz-checksum-crc32c");
    static CRC64_NVME: HeaderName = HeaderName::from_static("x-amz-checksum-crc64nvme");
    static SHA1: HeaderName = HeaderName::from_static("x-amz-checksum-sha1");
    static SHA256: HeaderName = HeaderName::from_static("x-amz-checksum-sha256");
    match algorithm {
        ChecksumAlgorithm::Crc32 => &CRC32,
        ChecksumAlgorithm::Crc32c => &CRC32C,
        ChecksumAlgorithm::Crc64Nvme => &CRC64_NVME,
        ChecksumAlgorithm::Sha1 => &SHA1,
        ChecksumAlgorithm::Sha256 => &SHA256,
    }
}

/// The checksum of all of some bytes.
pub fn checksum_of(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Option<Checksum> {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(bytes);
    Checksum::new(algorithm, ChecksumKind::FullObject, &hasher.finish()).ok()
}

/// The text of a checksum in headers and XML.
pub fn checksum_text(checksum: &Checksum) -> String {
    let value = STANDARD.encode(checksum.as_bytes());
    match checksum.kind() {
        ChecksumKind::FullObject => value,
        ChecksumKind::Composite { parts } => format!("{value}-{parts}"),
    }
}

/// Parses the checksum of all bytes.
pub fn parse_checksum(algorithm: ChecksumAlgorithm, text: &[u8]) -> Option<Checksum> {
    Checksum::new(algorithm, ChecksumKind::FullObject, &STANDARD.decode(text).ok()?).ok()
}

/// The CRC that an algorithm is; `None` for hashes.
pub(crate) fn crc_algorithm(algorithm: ChecksumAlgorithm) -> Option<CrcAlgorithm> {
    match algorithm {
        ChecksumAlgorithm::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
        ChecksumAlgorithm::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
        ChecksumAlgorithm::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
        ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => None,
    }
}

/// The bytes of a CRC.
pub(crate) fn crc_bytes(algorithm: ChecksumAlgorithm, sum: u64) -> Vec<u8> {
    let bytes = sum.to_be_bytes();
    bytes.get(bytes.len().saturating_sub(algorithm.bytes())..).unwrap_or_default().to_vec()
}

impl Verifier {
    /// What the headers of a request announce of its body.
    pub fn new(headers: &HeaderMap) -> Result<Self, S3Error> {
        let may_announce = |name: &HeaderName| name.as_str().starts_with("x-amz-") || *name == CONTENT_MD5;
        if !headers.keys().any(may_announce) {
            return Ok(Self::default());
        }
        let mut expected: Vec<Expected> = announced_checksum(headers)?.into_iter().collect();
        if let Some(line) = headers.get(CONTENT_MD5) {
            let md5 = STANDARD.decode(line.as_bytes()).ok().filter(|md5| md5.len() == 16);
            expected.push(Expected::Md5(
                md5.ok_or_else(|| s3_error!(InvalidDigest, "Content-MD5 is not the base64 of 16 bytes"))?,
            ));
        }
        if let Some(line) = headers.get(CONTENT_SHA256) {
            let mut hash = [0; 32];
            if hex::decode_to_slice(line.as_bytes(), &mut hash).is_ok() {
                expected.push(Expected::ContentSha256(hash.to_vec()));
            }
        }
        Ok(Self { hashers: expected.into_iter().map(|expected| (expected.hasher(), expected)).collect() })
    }

    /// True if the request announces a checksum of its body, or its MD5.
    pub fn has_checksum(&self) -> bool {
        let is_announced =
            |expected: &Expected| !matches!(expected, Expected::ContentSha256(_) | Expected::Computed(_));
        self.hashers.iter().any(|(_, expected)| is_announced(expected))
    }

    /// The algorithm of the checksum that the request announces.
    pub fn algorithm(&self) -> Option<ChecksumAlgorithm> {
        self.hashers.iter().find_map(|(_, expected)| match expected {
            Expected::Checksum(checksum) => Some(checksum.algorithm()),
            Expected::Trailer(algorithm) | Expected::Computed(algorithm) => Some(*algorithm),
            Expected::Md5(_) | Expected::ContentSha256(_) => None,
        })
    }

    /// Computes a checksum of this algorithm, unless the request announces one.
    pub fn compute(&mut self, algorithm: ChecksumAlgorithm) {
        if self.algorithm().is_none() {
            self.hashers.push((Hasher::new(algorithm), Expected::Computed(algorithm)));
        }
    }

    /// Continues with a piece of the body.
    pub fn update(&mut self, data: &Bytes) {
        self.hashers.iter_mut().for_each(|(hasher, _)| hasher.update(data));
    }

    /// Compares at the end of the body. Returns the checksum, if one was announced.
    pub fn finish(self, trailers: &Trailers) -> Result<Option<Checksum>, BodyError> {
        let mut checksum = None;
        for (hasher, expected) in self.hashers {
            let computed = hasher.finish();
            match expected {
                Expected::Checksum(sent) if sent.as_bytes() == computed => checksum = Some(sent),
                Expected::Trailer(algorithm) => {
                    let name = checksum_header(algorithm).as_str();
                    let sent = trailers.get(name).ok_or(BodyError::Trailer)?;
                    let sent = parse_checksum(algorithm, sent.as_bytes()).ok_or(BodyError::Trailer)?;
                    if sent.as_bytes() != computed {
                        return Err(BodyError::Digest { name });
                    }
                    checksum = Some(sent);
                }
                Expected::Computed(algorithm) => {
                    checksum = Checksum::new(algorithm, ChecksumKind::FullObject, &computed).ok();
                }
                Expected::Md5(value) if value == computed => {}
                Expected::ContentSha256(value) if value == computed => {}
                Expected::Checksum(sent) => {
                    return Err(BodyError::Digest { name: checksum_header(sent.algorithm()).as_str() });
                }
                Expected::Md5(_) => return Err(BodyError::Digest { name: "Content-MD5" }),
                Expected::ContentSha256(_) => return Err(BodyError::ContentSha256),
            }
        }
        Ok(checksum)
    }
}

/// The checksum that a request announces in a header or as a trailer. Fails if there are several.
fn announced_checksum(headers: &HeaderMap) -> Result<Option<Expected>, S3Error> {
    let invalid = |name: &HeaderName| s3_error!(InvalidRequest, "the value of {name} is no checksum of this algorithm");
    let mut found = Vec::new();
    for algorithm in ChecksumAlgorithm::ALL {
        let name = checksum_header(algorithm);
        for line in headers.get_all(name) {
            let checksum = parse_checksum(algorithm, line.as_bytes()).ok_or_else(|| invalid(name))?;
            found.push((algorithm, Expected::Checksum(checksum)));
        }
    }
    for name in headers.get_all(TRAILER).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b',')) {
        let name = str::from_utf8(name).unwrap_or_default().trim();
        let algorithm = ChecksumAlgorithm::ALL
            .into_iter()
            .find(|known| checksum_header(*known).as_str().eq_ignore_ascii_case(name));
        let algorithm =
            algorithm.ok_or_else(|| s3_error!(InvalidRequest, "{TRAILER} names no checksum that is supported"))?;
        found.push((algorithm, Expected::Trailer(algorithm)));
    }
    if found.len() > 1 {
        return Err(s3_error!(InvalidRequest, "a request has at most one checksum x-amz-checksum-*"));
    }
    let named = named_algorithm(headers)?;
    match (found.pop(), named) {
        (Some((algorithm, _)), Some(named)) if algorithm != named => {
            Err(s3_error!(InvalidRequest, "the checksum is not of the algorithm that the request names"))
        }
        (found, _) => Ok(found.map(|(_, expected)| expected)),
    }
}

/// The algorithm of checksums that a request names.
pub fn named_algorithm(headers: &HeaderMap) -> Result<Option<ChecksumAlgorithm>, S3Error> {
    let Some(line) = NAMED_ALGORITHM.iter().find_map(|name| headers.get(name)) else { return Ok(None) };
    let named = line.to_str().ok().and_then(|name| name.parse().ok());
    named.map(Some).ok_or_else(|| s3_error!(InvalidRequest, "the named algorithm of checksums is not supported"))
}

impl Expected {
    fn hasher(&self) -> Hasher {
        match self {
            Self::Checksum(checksum) => Hasher::new(checksum.algorithm()),
            Self::Trailer(algorithm) | Self::Computed(algorithm) => Hasher::new(*algorithm),
            Self::Md5(_) => Hasher::Md5(Box::default()),
            Self::ContentSha256(_) => Hasher::new(ChecksumAlgorithm::Sha256),
        }
    }
}

impl Hasher {
    fn new(algorithm: ChecksumAlgorithm) -> Self {
        match (algorithm, crc_algorithm(algorithm)) {
            (_, Some(crc)) => Self::Crc(algorithm, Box::new(Crc::new(crc))),
            (ChecksumAlgorithm::Sha1, None) => Self::Sha1(Box::default()),
            (_, None) => Self::Sha256(Box::default()),
        }
    }

    fn update(&mut self, data: &[u8]) {
        match self {
            Self::Crc(_, crc) => crc.update(data),
            Self::Sha1(hasher) => hasher.update(data),
            Self::Sha256(hasher) => hasher.update(data),
            Self::Md5(hasher) => hasher.update(data),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Crc(algorithm, crc) => crc_bytes(algorithm, crc.finalize()),
            Self::Sha1(hasher) => hasher.finalize().to_vec(),
            Self::Sha256(hasher) => hasher.finalize().to_vec(),
            Self::Md5(hasher) => hasher.finalize().to_vec(),
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crc(algorithm, _) => algorithm.as_str(),
            Self::Sha1(_) => "SHA1",
            Self::Sha256(_) => "SHA256",
            Self::Md5(_) => "MD5",
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use s3s::S3ErrorCode;

    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn verified(lines: &[(&'static str, &str)], body: &str) -> Result<Option<Checksum>, BodyError> {
        let mut verifier = Verifier::new(&headers(lines)).unwrap();
        verifier.update(&Bytes::copy_from_slice(body.as_bytes()));
        verifier.finish(&Trailers::default())
    }

    #[test]
    fn checksums_are_those_of_other_implementations() {
        // `123456789`, as in the catalogue of CRCs; the hashes are of Python's hashlib.
        for (algorithm, expected) in [
            (ChecksumAlgorithm::Crc32, "cbf43926"),
            (ChecksumAlgorithm::Crc32c, "e3069283"),
            (ChecksumAlgorithm::Crc64Nvme, "ae8b14860a799888"),
            (ChecksumAlgorithm::Sha1, "f7c3bc1d808e04732adf679965ccc34ca7ae3441"),
            (ChecksumAlgorithm::Sha256, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
        ] {
            let checksum = checksum_of(algorithm, b"123456789").unwrap();
            assert_eq!(hex::encode(checksum.as_bytes()), expected);
            let (name, text) = (checksum_header(algorithm).as_str(), checksum_text(&checksum));
            assert_eq!(verified(&[(name, &text)], "123456789"), Ok(Some(checksum)));
            assert_eq!(verified(&[(name, &text)], "123456780"), Err(BodyError::Digest { name }));
        }
        let md5 = "JfnnlDI7RTiF9RgfG2JNCw==";
        assert_eq!(verified(&[("content-md5", md5)], "123456789"), Ok(None));
        assert_eq!(verified(&[("content-md5", md5)], "1"), Err(BodyError::Digest { name: "Content-MD5" }));
        let sha = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";
        assert_eq!(verified(&[("x-amz-content-sha256", sha)], "123456789"), Ok(None));
        assert_eq!(verified(&[("x-amz-content-sha256", sha)], "x"), Err(BodyError::ContentSha256));
        assert_eq!(verified(&[("x-amz-content-sha256", "UNSIGNED-PAYLOAD")], "x"), Ok(None));
        assert_eq!(verified(&[("x-amz-trailer", "x-amz-checksum-crc32")], "x"), Err(BodyError::Trailer));
    }

    #[test]
    fn malformed_and_conflicting_checksums_are_refused() {
        for (lines, code) in [
            (vec![("content-md5", "short")], S3ErrorCode::InvalidDigest),
            (vec![("content-md5", "AAAA")], S3ErrorCode::InvalidDigest),
            (vec![("x-amz-checksum-crc32", "AAAAAAA=")], S3ErrorCode::InvalidRequest),
            (
                vec![("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-checksum-crc32c", "AAAAAA==")],
                S3ErrorCode::InvalidRequest,
            ),
            (
                vec![("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-trailer", "x-amz-checksum-crc32")],
                S3ErrorCode::InvalidRequest,
            ),
            (vec![("x-amz-trailer", "x-amz-checksum-md5")], S3ErrorCode::InvalidRequest),
            (
                vec![("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-sdk-checksum-algorithm", "SHA1")],
                S3ErrorCode::InvalidRequest,
            ),
            (vec![("x-amz-sdk-checksum-algorithm", "MD4")], S3ErrorCode::InvalidRequest),
        ] {
            assert_eq!(*Verifier::new(&headers(&lines)).unwrap_err().code(), code, "{lines:?}");
        }
    }
}
