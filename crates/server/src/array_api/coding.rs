//! Content codings.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use crate::extract::Coding;

/// Answers shorter than this are sent without a coding.
pub(super) const WORTH: u64 = 1 << 10;
/// The quickest level: elements are on their way, and the next answer is another one.
const ZSTD_LEVEL: i32 = 1;

/// Compresses blocks one after the other.
pub(super) enum Coder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Coder {
    /// Begins; `None` for no coding.
    pub(super) fn new(coding: Coding) -> io::Result<Option<Self>> {
        Ok(match coding {
            Coding::Identity => None,
            Coding::Zstd => Some(Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?)),
            Coding::Gzip => Some(Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast()))),
        })
    }

    /// The next bytes, made of this block and those before; may be none.
    pub(super) fn next(&mut self, block: &[u8]) -> io::Result<Bytes> {
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
    pub(super) fn end(self) -> io::Result<Bytes> {
        match self {
            Self::Zstd(encoder) => encoder.finish().map(Bytes::from),
            Self::Gzip(encoder) => encoder.finish().map(Bytes::from),
        }
    }
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
    }
}
