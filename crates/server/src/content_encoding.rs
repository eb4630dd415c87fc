//! Content codings of responses.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::HeaderValue;

/// The minimum size of a compressed response, in bytes.
pub(crate) const MIN_COMPRESS_SIZE: u64 = 1 << 10;
/// The fastest level, since responses are compressed while they are sent.
const ZSTD_LEVEL: i32 = 1;

/// A content coding (RFC 9110, section 8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentEncoding {
    /// No compression.
    Identity,
    /// Zstandard.
    Zstd,
    /// Gzip.
    Gzip,
}

/// Compresses blocks as a stream.
pub(crate) enum Compressor {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl ContentEncoding {
    /// Returns the value of `Content-Encoding`; `None` for the identity.
    pub(crate) fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Identity => None,
            Self::Zstd => Some(HeaderValue::from_static("zstd")),
            Self::Gzip => Some(HeaderValue::from_static("gzip")),
        }
    }
}

impl Compressor {
    /// Starts a stream; `None` for the identity.
    pub(crate) fn new(encoding: ContentEncoding) -> io::Result<Option<Self>> {
        Ok(match encoding {
            ContentEncoding::Identity => None,
            ContentEncoding::Zstd => Some(Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?)),
            ContentEncoding::Gzip => Some(Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast()))),
        })
    }

    /// Compresses a block and returns the output so far, which may be empty.
    pub(crate) fn push(&mut self, block: &[u8]) -> io::Result<Bytes> {
        let out = match self {
            Self::Zstd(encoder) => {
                encoder.write_all(block)?;
                encoder.get_mut()
            }
            Self::Gzip(encoder) => {
                encoder.write_all(block)?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(out).into())
    }

    /// Ends the stream and returns the rest of the output.
    pub(crate) fn finish(self) -> io::Result<Bytes> {
        match self {
            Self::Zstd(encoder) => encoder.finish().map(Bytes::from),
            Self::Gzip(encoder) => encoder.finish().map(Bytes::from),
        }
    }
}

/// Compresses a complete response if it is large enough.
pub(crate) fn compress(bytes: Bytes, encoding: ContentEncoding) -> io::Result<(Bytes, ContentEncoding)> {
    if (bytes.len() as u64) < MIN_COMPRESS_SIZE {
        return Ok((bytes, ContentEncoding::Identity));
    }
    let Some(mut compressor) = Compressor::new(encoding)? else { return Ok((bytes, encoding)) };
    let start = compressor.push(&bytes)?;
    let end = compressor.finish()?;
    Ok((if start.is_empty() { end } else { [start, end].concat().into() }, encoding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn compressed(encoding: ContentEncoding, blocks: &[&[u8]]) -> Vec<u8> {
        let mut compressor = Compressor::new(encoding).unwrap().unwrap();
        let mut out: Vec<u8> = blocks.iter().flat_map(|block| compressor.push(block).unwrap()).collect();
        out.extend(compressor.finish().unwrap());
        out
    }

    #[test]
    fn compressed_blocks_decompress() {
        let blocks: [&[u8]; 3] = [&[7; 100_000], b"", b"the end"];
        let plain = blocks.concat();
        let zstd = compressed(ContentEncoding::Zstd, &blocks);
        assert_eq!(zstd::stream::decode_all(&zstd[..]).unwrap(), plain);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&compressed(ContentEncoding::Gzip, &blocks)[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, plain);
        assert!(Compressor::new(ContentEncoding::Identity).unwrap().is_none());
        let long = Bytes::from(plain.clone());
        let (compressed, encoding) = compress(long.clone(), ContentEncoding::Zstd).unwrap();
        assert_eq!((zstd::stream::decode_all(&compressed[..]).unwrap(), encoding), (plain, ContentEncoding::Zstd));
        assert_eq!(compress(long.clone(), ContentEncoding::Identity).unwrap(), (long, ContentEncoding::Identity));
        let short = Bytes::from_static(b"short");
        assert_eq!(compress(short.clone(), ContentEncoding::Gzip).unwrap(), (short, ContentEncoding::Identity));
    }
}
