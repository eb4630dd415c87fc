//! The `pcodec` codec: compresses numbers as a standalone pco file.
//!
//! - Kind: array to bytes (v3), bytes to bytes (v2, draft)
//! - Names: `numcodecs.pcodec` (v3), id `pcodec` (v2)
//! - Specification: [numcodecs.pcodec](https://numcodecs.readthedocs.io/en/stable/compression/pcodec.html), [pco
//!   format](https://github.com/pcodec/pcodec/blob/main/docs/format.md)
//!
//! ## Configuration
//!
//! ```json
//! {
//!   "level": 8, "mode_spec": "auto", "delta_spec": "auto", "paging_spec": "equal_pages_up_to",
//!   "delta_encoding_order": null, "equal_pages_up_to": 262144
//! }
//! ```
//!
//! These are the defaults. `level` is 0 to 12; `mode_spec` is `auto` or `classic`; `delta_spec` is `auto`, `no_op`,
//! `none` (the same), `try_consecutive` or `try_lookback`; `delta_encoding_order` is 0 to 7, for `auto` and
//! `try_consecutive`. All are for encoding only: wrong values stop no read.
//!
//! ## Encoded bytes
//!
//! One pco file of numbers of the type of the elements, which are little-endian. As in numcodecs, bytes after it are
//! ignored.
//!
//! ## Errors and limits
//!
//! Integers and floats of 16 to 64 bits are encoded, those of 8 bits only decoded. The number of elements that a file
//! or a page of it declares, and the lengths of a page's dictionary and of its window for matches, are compared with the
//! chunk before anything is allocated; the output grows as it is decoded.

use std::sync::Arc;

use bytes::Bytes;
use pco::{
    ChunkConfig, DeltaSpec, ModeSpec, PagingSpec,
    errors::PcoError,
    metadata::DeltaEncoding,
    standalone::{FileDecompressor, simple_compress},
    wrapped,
};
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, Number, StoredOrder},
};

use super::{
    bounded_output::{compressed_size_bound, initial_capacity, into_bytes},
    numbers::{Num, match_number},
};
use crate::{
    ArrayToBytes, BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, Elements,
    EncodedSizeBound, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "pcodec";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

/// The number of elements that are decoded at once; a multiple of pco's 256.
const BATCH: usize = 4096;

/// The memory of an encoder beyond a multiple of the chunk, in bytes: histograms and tables.
const ENCODER_OVERHEAD: u64 = 8 << 20;

/// The length in numbers of a window for matches that every page may have: the longest that pco writes.
const WINDOW: usize = 1 << 15;

/// The mode of a page that has a dictionary, in the lowest four bits of its metadata.
const DICTIONARY_MODE: u32 = 4;

#[derive(Debug)]
struct Pcodec {
    number: Number,
    /// The reason for refusing to encode, which continues the codec's name.
    config: Result<ChunkConfig, String>,
}

/// The codec of chunks of one size.
#[derive(Debug)]
struct PcodecOfArray {
    codec: Pcodec,
    /// The size of a chunk in bytes.
    len: u64,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Configuration {
    level: Option<i64>,
    mode_spec: Option<String>,
    delta_spec: Option<String>,
    paging_spec: Option<String>,
    delta_encoding_order: Option<i64>,
    equal_pages_up_to: Option<i64>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let config = parse_configuration::<Configuration>(spec)?.config();
    let of_numbers = |data_type: &DataType| {
        let number = data_type.number().filter(|number| number.is_real());
        number.ok_or_else(|| invalid_configuration(spec, format!("only supports integers and floats, not {data_type}")))
    };
    match input {
        CodecInput::Array(array) => {
            let number = of_numbers(array.data_type())?;
            let len = array.fixed_size().ok_or(ChainError::ChunkTooLarge)?;
            Ok(Codec::ArrayToBytes(Arc::new(PcodecOfArray { codec: Pcodec { number, config }, len })))
        }
        CodecInput::Bytes(bytes) => {
            let number = match &bytes.stored_elements {
                Some((_, StoredOrder::Big | StoredOrder::Mixed(_))) => {
                    return Err(invalid_configuration(spec, "does not support big-endian elements"));
                }
                Some((data_type, StoredOrder::Little)) => of_numbers(data_type)?,
                None => return Err(invalid_configuration(spec, "requires elements, not bytes of another codec")),
            };
            Ok(Codec::BytesToBytes(Arc::new(Pcodec { number, config })))
        }
    }
}

impl Configuration {
    fn config(&self) -> Result<ChunkConfig, String> {
        let level = self.level.unwrap_or(8);
        let level = usize::try_from(level).ok().filter(|level| *level <= 12);
        let level = level.ok_or_else(|| format!("does not encode with level {}", self.level.unwrap_or_default()))?;
        let mode = match self.mode_spec.as_deref().unwrap_or("auto") {
            "auto" => ModeSpec::Auto,
            "classic" => ModeSpec::Classic,
            _ => return Err("does not encode with this mode_spec".to_owned()),
        };
        let order = match self.delta_encoding_order.map(usize::try_from) {
            None => None,
            Some(Ok(order @ 0..=7)) => Some(order),
            Some(_) => return Err("has a delta_encoding_order beyond 0 to 7".to_owned()),
        };
        let delta = match (self.delta_spec.as_deref().unwrap_or("auto"), order) {
            ("auto" | "try_consecutive", Some(order)) => DeltaSpec::TryConsecutive(order),
            ("auto", None) => DeltaSpec::Auto,
            ("none" | "no_op", None) => DeltaSpec::NoOp,
            ("try_lookback", None) => DeltaSpec::TryLookback,
            _ => return Err("does not encode with this delta_spec".to_owned()),
        };
        let page = self.equal_pages_up_to.unwrap_or(pco::DEFAULT_MAX_PAGE_N as i64);
        let page = usize::try_from(page).ok().filter(|page| *page > 0);
        let (Some(page), "equal_pages_up_to") = (page, self.paging_spec.as_deref().unwrap_or("equal_pages_up_to"))
        else {
            return Err("does not encode with this paging_spec".to_owned());
        };
        let config = ChunkConfig::default().with_compression_level(level).with_mode_spec(mode);
        Ok(config.with_delta_spec(delta).with_paging_spec(PagingSpec::EqualPagesUpTo(page)))
    }
}

impl Pcodec {
    fn decode_numbers(&self, encoded: &[u8], limit: u64) -> Result<Bytes, CodecError> {
        match_number!(
            self.number,
            [Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 Float32 Float64],
            T => decode::<T>(encoded, limit),
            else Err(malformed("the elements are no numbers"))
        )
    }

    fn encode_numbers(&self, decoded: &[u8]) -> Result<Bytes, CodecError> {
        let refused = |reason: &String| CodecError::EncodingUnsupported { codec: NAME, reason: reason.clone() };
        let config = self.config.as_ref().map_err(refused)?;
        match_number!(
            self.number,
            [Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 Float32 Float64],
            T => {
                let numbers: Vec<T> = decoded.chunks_exact(T::SIZE).map(T::load).collect();
                simple_compress(&numbers, config).map(Bytes::from).map_err(library_error)
            },
            else Err(malformed("the elements are no numbers"))
        )
    }
}

/// Decodes a file to at most `limit` bytes.
fn decode<T: Num + pco::data_types::Number>(encoded: &[u8], limit: u64) -> Result<Bytes, CodecError> {
    let too_long = || CodecError::OutputTooLong { codec: NAME, limit };
    let size_of = |count: usize| (count as u64).saturating_mul(T::SIZE as u64);
    let (file, mut rest) = FileDecompressor::new(encoded).map_err(library_error)?;
    let declared = size_of(file.n_hint());
    if declared > limit {
        return Err(too_long());
    }
    if file.uniform_type().is_some_and(|number_type| number_type as u8 != T::NUMBER_TYPE_BYTE) {
        return Err(malformed("the numbers are of another type"));
    }
    let mut decoded = Vec::with_capacity(initial_capacity(encoded.len(), declared));
    let mut batch = vec![T::from_i64(0); BATCH];
    // The pages of a standalone file are those of pco's other API, which does not reserve a window before it can be asked
    // for its length.
    let version = [file.format_version().major, file.format_version().minor];
    let (pages, _) = wrapped::FileDecompressor::new(version.as_slice()).map_err(library_error)?;
    loop {
        let remaining = limit.saturating_sub(decoded.len() as u64);
        match rest.first() {
            Some(0) => return Ok(into_bytes(decoded)),
            Some(number_type) if *number_type == T::NUMBER_TYPE_BYTE => {}
            _ => return Err(malformed("a page is truncated or of another type")),
        }
        let (PageHeader { count, dictionary }, body) =
            page_header(rest).ok_or_else(|| malformed("a page is truncated"))?;
        if size_of(count) > remaining {
            return Err(too_long());
        }
        if dictionary > count {
            return Err(malformed("a dictionary has more entries than its page"));
        }
        let (mut decoder, body) = pages.chunk_decompressor::<T, _>(body).map_err(library_error)?;
        if let DeltaEncoding::Lookback { config, .. } = decoder.meta().delta_encoding
            && 1_usize.checked_shl(config.window_n_log).is_none_or(|window| window > count.max(WINDOW))
        {
            return Err(malformed("a window is longer than its page"));
        }
        let mut page = decoder.page_decompressor(body, count).map_err(library_error)?;
        loop {
            let progress = page.read(&mut batch).map_err(library_error)?;
            for number in batch.iter().take(progress.n_processed) {
                let start = decoded.len();
                decoded.resize(start.saturating_add(T::SIZE), 0);
                number.store(decoded.get_mut(start..).unwrap_or_default());
            }
            if progress.finished {
                break;
            }
            if progress.n_processed == 0 {
                return Err(malformed("a page is truncated"));
            }
        }
        rest = page.into_src();
    }
}

/// What a page declares before anything else.
struct PageHeader {
    /// The number of its elements.
    count: usize,
    /// The number of entries of its dictionary.
    dictionary: usize,
}

/// The header of a page, and the page without its type and count; `None` if it is truncated.
///
/// A page begins with its type, the number of its elements less one in three bytes, and its mode in four bits, which
/// the length of a dictionary follows in 25 bits.
fn page_header(page: &[u8]) -> Option<(PageHeader, &[u8])> {
    let ([_, count @ ..], rest) = page.split_first_chunk::<4>()?;
    let [low, middle, high] = *count;
    let count = u32::from_le_bytes([low, middle, high, 0]).saturating_add(1);
    let mut mode = [0; 4];
    mode.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let mode = u32::from_le_bytes(mode);
    let dictionary = if mode & 0xf == DICTIONARY_MODE { mode >> 4 & 0x1ff_ffff } else { 0 };
    let header = PageHeader { count: usize::try_from(count).ok()?, dictionary: usize::try_from(dictionary).ok()? };
    Some((header, rest))
}

impl BytesToBytes for Pcodec {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        self.decode_numbers(&encoded, limit)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        self.encode_numbers(&decoded)
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_size_bound(decoded)
    }

    fn encoder_memory(&self, decoded: u64) -> u64 {
        encoder_memory(decoded)
    }

    fn cost(&self) -> Cost {
        cost()
    }
}

impl ArrayToBytes for PcodecOfArray {
    fn decode(&self, encoded: Bytes, _budget: u64) -> Result<Elements, CodecError> {
        let decoded = self.codec.decode_numbers(&encoded, self.len)?;
        match decoded.len() as u64 {
            found if found == self.len => Ok(Elements::Fixed(decoded)),
            found => Err(CodecError::LengthMismatch { codec: NAME, expected: self.len, found }),
        }
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        match decoded {
            Elements::Fixed(bytes) => self.codec.encode_numbers(&bytes),
            Elements::Variable(_) => Err(malformed("the elements have variable length")),
        }
    }

    fn encoded_size(&self) -> Option<EncodedSizeBound> {
        Some(compressed_size_bound(self.len))
    }

    fn inner_encoder_memory(&self) -> u64 {
        encoder_memory(self.len)
    }

    fn cost(&self) -> Cost {
        cost()
    }
}

/// The numbers, their latents and the sorted copies of these.
fn encoder_memory(decoded: u64) -> u64 {
    decoded.saturating_mul(6).saturating_add(ENCODER_OVERHEAD)
}

fn cost() -> Cost {
    Cost::per_byte(4, 60).with_start(5_000, 100_000)
}

fn malformed(reason: &'static str) -> CodecError {
    CodecError::Malformed { codec: NAME, reason }
}

fn library_error(source: PcoError) -> CodecError {
    CodecError::Library { codec: NAME, source: Box::new(source) }
}

#[cfg(test)]
mod tests;
