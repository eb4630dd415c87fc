//! Content codings.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::HeaderValue;

/// Answers shorter than this are sent without a coding.
pub(crate) const WORTH: u64 = 1 << 10;
/// The quickest level: elements are on their way, and the next answer is another one.
const ZSTD_LEVEL: i32 = 1;

/// A content coding (RFC 9110, section 8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// None.
    Identity,
    /// Zstandard.
    Zstd,
    /// Gzip.
    Gzip,
}

/// Compresses blocks one after the other.
pub(crate) enum Coder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Coding {
    /// The value of `Content-Encoding`; `None` where there is no coding.
    pub(crate) fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Identity => None,
            Self::Zstd => Some(HeaderValue::from_static("zstd")),
            Self::Gzip => Some(HeaderValue::from_static("gzip")),
        }
    }
}

impl Coder {
    /// Begins; `None` for no coding.
    pub(crate) fn new(coding: Coding) -> io::Result<Option<Self>> {
        Ok(match coding {
            Coding::Identity => None,
            Coding::Zstd => Some(Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?)),
            Coding::Gzip => Some(Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast()))),
        })
    }

    /// The next bytes, made of this block and those before; may be none.
    pub(crate) fn next(&mut self, block: &[u8]) -> io::Result<Bytes> {
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

    /// The last bytes.
    pub(crate) fn end(self) -> io::Result<Bytes> {
        match self {
            Self::Zstd(encoder) => encoder.finish().map(Bytes::from),
            Self::Gzip(encoder) => encoder.finish().map(Bytes::from),
        }
    }
}

/// Compresses an answer that is there as a whole, where that is worth it.
pub(crate) fn whole(all: Bytes, coding: Coding) -> io::Result<(Bytes, Coding)> {
    if (all.len() as u64) < WORTH {
        return Ok((all, Coding::Identity));
    }
    let Some(mut coder) = Coder::new(coding)? else { return Ok((all, coding)) };
    let begun = coder.next(&all)?;
    let end = coder.end()?;
    Ok((if begun.is_empty() { end } else { [begun, end].concat().into() }, coding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn coded(coding: Coding, blocks: &[&[u8]]) -> Vec<u8> {
        let mut coder = Coder::new(coding).unwrap().unwrap();
        let mut out: Vec<u8> = blocks.iter().flat_map(|block| coder.next(block).unwrap()).collect();
        out.extend(coder.end().unwrap());
        out
    }

    #[test]
    fn there_and_back() {
        let blocks: [&[u8]; 3] = [&[7; 100_000], b"", b"the end"];
        let plain = blocks.concat();
        let zstd = coded(Coding::Zstd, &blocks);
        assert_eq!(zstd::stream::decode_all(&zstd[..]).unwrap(), plain);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&coded(Coding::Gzip, &blocks)[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, plain);
        assert!(Coder::new(Coding::Identity).unwrap().is_none());
        let long = Bytes::from(plain.clone());
        let (coded, coding) = whole(long.clone(), Coding::Zstd).unwrap();
        assert_eq!((zstd::stream::decode_all(&coded[..]).unwrap(), coding), (plain, Coding::Zstd));
        assert_eq!(whole(long.clone(), Coding::Identity).unwrap(), (long, Coding::Identity));
        let short = Bytes::from_static(b"short");
        assert_eq!(whole(short.clone(), Coding::Gzip).unwrap(), (short, Coding::Identity));
    }
}
