//! The `lzma` codec: compresses bytes as xz, LZMA-alone or raw LZMA streams.
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.lzma` (v3), id `lzma` (v2), `https://purl.org/zarr/spec/codec/lzma` (draft)
//! - Specification: [numcodecs.lzma](https://numcodecs.readthedocs.io/en/stable/compression/lzma.html), which is
//!   Python's [`lzma`](https://docs.python.org/3/library/lzma.html); [xz
//!   format](https://tukaani.org/xz/xz-file-format.txt)
//!
//! ## Configuration
//!
//! ```json
//! {"format": 3, "check": -1, "preset": null, "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]}
//! ```
//!
//! `format` is 1 (xz), 2 (LZMA-alone) or 3 (raw, which requires `filters`). `check` is only for xz: -1 (CRC64), 0, 1, 4
//! or 10. `preset` is 0 to 9, plus 2147483648 for "extreme"; others are an error of encoding only. `filters` are those
//! of Python: LZMA1 (alone, in formats 2 and 3), LZMA2, delta and the branch filters of machine code, with Python's
//! options.
//!
//! ## Encoded bytes
//!
//! One stream of the format. Several concatenated streams are decoded, too, except for raw ones. xz with filters is
//! decoded, which numcodecs rejects.
//!
//! ## Errors and limits
//!
//! Bytes after the last stream are ignored, except in format 2, which has no mark to tell them. Dictionaries have at
//! most 128 MiB, whether the configuration or the stream declares them (those of the presets have up to 64 MiB), and
//! for encoding at most the chunk's size; an encoder takes 11.5 times its dictionary, which writes reserve. The output
//! grows as it is decoded, beyond a small multiple of the input.

use std::fmt;

use bytes::Bytes;
use liblzma::stream::{Action, Check, Error, Filters, LzmaOptions, MatchFinder, Mode, Status, Stream};
use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::{
    bounded_output::{BoundedOutput, Step, StreamDecoder, compressed_size_bound},
    decode_only::{unless_refused, unsupported_level},
};
use crate::{
    BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "lzma";

/// The first bytes of an xz stream.
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";

/// The flags of a decoder that stops after a stream.
const ONE_STREAM: u32 = 0;

/// The maximum size of a dictionary in bytes.
const MAX_DICTIONARY_SIZE: u32 = 128 << 20;

/// The minimum size of a dictionary in the format.
const MIN_DICTIONARY_SIZE: u32 = 4096;

/// The memory limit of a decoder in bytes: the largest dictionary and its overhead.
const DECODER_MEMORY_LIMIT: u64 = MAX_DICTIONARY_SIZE as u64 + (2 << 20);

/// The memory of an encoder with binary trees, in halves of its dictionary, and beyond it in bytes: one and a half for
/// the window, two for the hash table, and eight for the trees.
const ENCODER_HALVES_PER_DICTIONARY: u64 = 23;
const ENCODER_OVERHEAD: u64 = 2 << 20;

/// The highest preset, and the bit that makes one "extreme".
const MAX_PRESET: u32 = 9;
const EXTREME: u32 = 1 << 31;

/// Python's default preset.
const DEFAULT_PRESET: u32 = 6;

/// Python's filter numbers.
const DELTA: u64 = 3;
const LZMA1: u64 = 0x4000_0000_0000_0001;
const LZMA2: u64 = 33;

/// The maximum number of filters of a stream.
const MAX_FILTERS: usize = 4;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

/// The container of the compressed data.
#[derive(Clone, Copy, Debug)]
enum Format {
    Xz(Check),
    Alone,
    Raw,
}

struct Lzma {
    format: Format,
    filters: Vec<Filter>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default = "default_format")]
    format: u32,
    #[serde(default = "default_check")]
    check: i32,
    preset: Option<u32>,
    filters: Option<Vec<Filter>>,
}

/// One filter. Its number determines which members are valid.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Filter {
    id: u64,
    dist: Option<u32>,
    start_offset: Option<u32>,
    preset: Option<u32>,
    dict_size: Option<u32>,
    lc: Option<u32>,
    lp: Option<u32>,
    pb: Option<u32>,
    mode: Option<u32>,
    nice_len: Option<u32>,
    mf: Option<u32>,
    depth: Option<u32>,
}

/// The stream decoder of `liblzma`.
struct LzmaDecoder(Stream);

impl StreamDecoder for LzmaDecoder {
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Step, CodecError> {
        let before = self.0.total_in();
        let status = self.0.process_vec(input, output, Action::Finish).map_err(library_error)?;
        let consumed = self.0.total_in().saturating_sub(before);
        Ok(Step { consumed, is_finished: matches!(status, Status::StreamEnd) })
    }
}

impl Lzma {
    /// Creates a decoder for a stream of at most `limit` bytes.
    fn decoder(&self, limit: u64) -> Result<Stream, Error> {
        match self.format {
            Format::Xz(_) => Stream::new_stream_decoder(DECODER_MEMORY_LIMIT, ONE_STREAM),
            Format::Alone => Stream::new_lzma_decoder(DECODER_MEMORY_LIMIT),
            Format::Raw => Stream::new_raw_decoder(&liblzma_filters(&self.filters, limit)?),
        }
    }

    fn encoder(&self, len: u64) -> Result<Stream, Error> {
        match self.format {
            Format::Xz(check) => Stream::new_stream_encoder(&liblzma_filters(&self.filters, len)?, check),
            Format::Alone => match self.filters.as_slice() {
                [filter] => Stream::new_lzma_encoder(&filter.options(len)?),
                _ => Err(Error::Options),
            },
            Format::Raw => Stream::new_raw_encoder(&liblzma_filters(&self.filters, len)?),
        }
    }
}

impl BytesToBytes for Lzma {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        let mut decoded = BoundedOutput::new(NAME, encoded.len(), limit);
        let mut rest = &encoded[..];
        loop {
            rest = decoded.decode_stream(&mut LzmaDecoder(self.decoder(limit).map_err(library_error)?), rest)?;
            while let Some((0, padded)) = rest.split_first() {
                rest = padded;
            }
            // As by Python's `lzma`, bytes that are no stream are ignored.
            let is_stream = match self.format {
                Format::Xz(_) => rest.starts_with(XZ_MAGIC),
                Format::Alone => !rest.is_empty(),
                Format::Raw => false,
            };
            if !is_stream {
                return Ok(decoded.into_bytes());
            }
        }
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut stream = self.encoder(decoded.len() as u64).map_err(library_error)?;
        let mut encoded = Vec::with_capacity(decoded.len() / 2 + 128);
        loop {
            let used = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
            let rest = decoded.get(used..).unwrap_or_default();
            let status = stream.process_vec(rest, &mut encoded, Action::Finish).map_err(library_error)?;
            if matches!(status, Status::StreamEnd) {
                return Ok(encoded.into());
            }
            encoded.reserve(encoded.capacity().max(128));
        }
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_size_bound(decoded)
    }

    fn encoder_memory(&self, decoded: u64) -> u64 {
        let dictionary = self.filters.last().map_or(0, |filter| filter.dictionary_size(decoded));
        u64::from(dictionary).saturating_mul(ENCODER_HALVES_PER_DICTIONARY) / 2 + ENCODER_OVERHEAD
    }

    fn cost(&self) -> Cost {
        // The dictionary matters more than the preset, and preset 9 takes as long as any filter can.
        Cost::per_byte(30, 1000).with_start(2000, 20_000)
    }
}

impl fmt::Debug for Lzma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lzma {:?} {:?}", self.format, self.filters)
    }
}

impl Filter {
    /// LZMA2 or LZMA1 with a preset.
    fn from_preset(id: u64, preset: Option<u32>) -> Self {
        Self { id, preset, ..Self::default() }
    }

    /// True if the filter is valid in a format, as the last filter or before it.
    fn is_valid(&self, format: Format, last: bool) -> bool {
        let option_of_lzma = [self.dict_size, self.lc, self.lp, self.pb, self.mode, self.nice_len, self.mf, self.depth];
        let has_options = self.preset.is_some() || option_of_lzma.iter().any(Option::is_some);
        let dictionary_fits =
            self.dict_size.is_none_or(|size| (MIN_DICTIONARY_SIZE..=MAX_DICTIONARY_SIZE).contains(&size));
        match self.id {
            LZMA1 => last && !matches!(format, Format::Xz(_)) && dictionary_fits,
            LZMA2 => last && !matches!(format, Format::Alone) && dictionary_fits,
            DELTA => {
                !last && !has_options && self.start_offset.is_none() && (1..=256).contains(&self.dist.unwrap_or(1))
            }
            4..=9 => !last && !has_options && self.dist.is_none(),
            _ => false,
        }
    }

    /// The size of the dictionary for streams of at most `len` bytes.
    fn dictionary_size(&self, len: u64) -> u32 {
        let from_preset = match self.preset.unwrap_or(DEFAULT_PRESET) & !EXTREME {
            0 => 1 << 18,
            1 => 1 << 20,
            2 => 1 << 21,
            3 | 4 => 1 << 22,
            5 | 6 => 1 << 23,
            7 => 1 << 24,
            8 => 1 << 25,
            _ => 1 << 26,
        };
        let enough = u32::try_from(len).ok().and_then(u32::checked_next_power_of_two).unwrap_or(u32::MAX);
        self.dict_size.unwrap_or(from_preset).min(enough).clamp(MIN_DICTIONARY_SIZE, MAX_DICTIONARY_SIZE)
    }

    /// The options of LZMA1 or LZMA2 for streams of at most `len` bytes: a larger dictionary is useless.
    fn options(&self, len: u64) -> Result<LzmaOptions, Error> {
        let mut options = LzmaOptions::new_preset(self.preset.unwrap_or(DEFAULT_PRESET))?;
        options.dict_size(self.dictionary_size(len));
        self.lc.map(|bits| options.literal_context_bits(bits));
        self.lp.map(|bits| options.literal_position_bits(bits));
        self.pb.map(|bits| options.position_bits(bits));
        self.nice_len.map(|len| options.nice_len(len));
        self.depth.map(|depth| options.depth(depth));
        if let Some(mode) = self.mode {
            options.mode(match mode {
                1 => Mode::Fast,
                2 => Mode::Normal,
                _ => return Err(Error::Options),
            });
        }
        if let Some(finder) = self.mf {
            options.match_finder(match finder {
                3 => MatchFinder::HashChain3,
                4 => MatchFinder::HashChain4,
                18 => MatchFinder::BinaryTree2,
                19 => MatchFinder::BinaryTree3,
                20 => MatchFinder::BinaryTree4,
                _ => return Err(Error::Options),
            });
        }
        Ok(options)
    }
}

/// The filters of liblzma for streams of at most `len` bytes.
fn liblzma_filters(chain: &[Filter], len: u64) -> Result<Filters, Error> {
    let mut filters = Filters::new();
    for filter in chain {
        let offset = filter.start_offset.map(u32::to_le_bytes);
        let offset = offset.as_ref().map_or(&[][..], |offset| &offset[..]);
        match filter.id {
            LZMA1 => filters.lzma1(&filter.options(len)?),
            LZMA2 => filters.lzma2(&filter.options(len)?),
            DELTA => {
                let distance = u8::try_from(filter.dist.unwrap_or(1).saturating_sub(1)).map_err(|_| Error::Options)?;
                filters.delta_properties(&[distance])?
            }
            4 => filters.x86_properties(offset)?,
            5 => filters.powerpc_properties(offset)?,
            6 => filters.ia64_properties(offset)?,
            7 => filters.arm_properties(offset)?,
            8 => filters.arm_thumb_properties(offset)?,
            9 => filters.sparc_properties(offset)?,
            _ => return Err(Error::Options),
        };
    }
    Ok(filters)
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let configuration: Configuration = parse_configuration(spec)?;
    let format = match (configuration.format, configuration.check) {
        (1, -1 | 4) => Format::Xz(Check::Crc64),
        (1, 0) => Format::Xz(Check::None),
        (1, 1) => Format::Xz(Check::Crc32),
        (1, 10) => Format::Xz(Check::Sha256),
        (2, -1 | 0) => Format::Alone,
        (3, -1 | 0) => Format::Raw,
        (format, check) => {
            return Err(invalid_configuration(spec, format!("does not support format {format} with check {check}")));
        }
    };
    let unknown = configuration.preset.filter(|preset| preset & !EXTREME > MAX_PRESET);
    let preset = configuration.preset.filter(|_| unknown.is_none());
    let filters = match (configuration.filters, preset, format) {
        (Some(_), Some(_), _) => return Err(invalid_configuration(spec, "has both a preset and filters")),
        (Some(filters), None, _) => filters,
        (None, preset, Format::Xz(_)) => vec![Filter::from_preset(LZMA2, preset)],
        (None, preset, Format::Alone) => vec![Filter::from_preset(LZMA1, preset)],
        (None, _, Format::Raw) => return Err(invalid_configuration(spec, "requires filters for raw streams")),
    };
    let is_last = (1..=filters.len()).map(|number| number == filters.len());
    let valid = filters.iter().zip(is_last).all(|(filter, last)| filter.is_valid(format, last));
    if filters.is_empty() || filters.len() > MAX_FILTERS || !valid {
        return Err(invalid_configuration(
            spec,
            "has filters that cannot be combined, or a dictionary of more than 128 MiB",
        ));
    }
    let codec = Lzma { format, filters };
    // liblzma validates the other options.
    codec.encoder(0).map_err(|error| invalid_configuration(spec, format!("has invalid options: {error}")))?;
    Ok(unless_refused(codec, NAME, unknown.map(|preset| unsupported_level(preset.into()))))
}

fn library_error(source: Error) -> CodecError {
    CodecError::Library { codec: NAME, source: Box::new(source) }
}

fn default_format() -> u32 {
    1
}

fn default_check() -> i32 {
    -1
}
