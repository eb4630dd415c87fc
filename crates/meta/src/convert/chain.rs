//! Conversion of codec chains between v3 and the members of v2 and the draft.

use serde_json::{Value, json};

use super::{
    codec,
    filter::{self, FilterElements},
    outcome::Unrepresentable,
    source::{CodecLocations, Source},
};
use crate::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, Layout, StoredOrder, WordRun},
    documents::members,
    limits::MAX_CODECS,
    text::truncated,
};

/// A chain in the terms of v2 and the draft.
#[derive(Debug)]
pub(super) struct ChainParts {
    /// True if the first index varies fastest (order `F`).
    pub(super) is_fortran_order: bool,
    /// The stored byte order of elements.
    pub(super) order: StoredOrder,
    /// Filters, then bytes-to-bytes codecs; all of numcodecs.
    pub(super) codecs: Vec<CodecSpec>,
    /// True if the last codec is a bytes-to-bytes codec, which can be the compressor.
    pub(super) ends_with_compressor: bool,
    /// Pointers to blosc codecs whose `typesize` differs from the one that numcodecs would derive.
    pub(super) lost_typesizes: Vec<String>,
}

/// Data types of variable length, with their array-to-bytes codecs in v3.
const VARIABLE_LENGTH_CODECS: [(&str, &str); 2] = [("string", "vlen-utf8"), ("bytes", "vlen-bytes")];

/// The sharding codec.
const SHARDING: &str = "sharding_indexed";

impl ChainParts {
    /// Splits a chain into its parts.
    pub(super) fn of(
        chain: &[CodecSpec],
        data_type: &DataType,
        rank: usize,
        locations: &CodecLocations,
    ) -> Result<Self, Unrepresentable> {
        let unrepresentable = |index: usize| move |reason: String| Unrepresentable::new(locations.of(index), reason);
        let mut permutation: Vec<usize> = (0..rank).collect();
        let mut filters = Vec::new();
        let mut codecs = chain.iter().enumerate().peekable();
        while let Some((index, transpose)) = codecs.next_if(|(_, codec)| is_v3(codec, "transpose")) {
            permutation = compose_permutations(&permutation, transpose).map_err(unrepresentable(index))?;
        }
        while let Some(filter) = codecs.next_if(|(_, codec)| is_element_filter(codec)) {
            filters.push(filter);
        }
        let is_fortran_order = rank > 1 && permutation.iter().rev().copied().eq(0..rank);
        if !is_fortran_order && !permutation.iter().copied().eq(0..rank) {
            return Err(Unrepresentable::new(locations.of(0), "is neither order C nor order F"));
        }
        let mut parts = Self {
            is_fortran_order,
            order: StoredOrder::Little,
            codecs: Vec::new(),
            ends_with_compressor: false,
            lost_typesizes: Vec::new(),
        };
        let Layout::Fixed(layout) = data_type.layout() else {
            parts.push_variable(&mut codecs, filters.first().copied(), data_type, locations)?;
            parts.push_bytes(codecs, 1, locations)?;
            return Ok(parts);
        };
        let (index, bytes_codec_spec) =
            codecs.next().ok_or_else(|| Unrepresentable::new(locations.of(chain.len()), "is missing"))?;
        let is_pcodec = is_pcodec(bytes_codec_spec);
        let order = match is_pcodec {
            true => StoredOrder::Little,
            false => stored_order_of(bytes_codec_spec).map_err(unrepresentable(index))?,
        };
        let mut elements = FilterElements { data_type: data_type.clone(), order: StoredOrder::Little };
        for (index, filter) in filters {
            let (filter, encoded) =
                filter::with_byte_order(filter, &elements, false, &order).map_err(unrepresentable(index))?;
            parts.codecs.push(filter);
            elements = encoded;
        }
        parts.order = if layout.words.is_empty() { StoredOrder::Little } else { order };
        let mut item_size = elements.data_type.fixed_size().unwrap_or(1);
        if is_pcodec {
            parts.codecs.push(bytes_codec_spec.clone());
            parts.ends_with_compressor = true;
            item_size = 1;
        }
        parts.push_bytes(codecs, item_size, locations)?;
        Ok(parts)
    }

    /// Adds the array-to-bytes codec of elements of variable length.
    fn push_variable<'a>(
        &mut self,
        codecs: &mut impl Iterator<Item = (usize, &'a CodecSpec)>,
        filter: Option<(usize, &CodecSpec)>,
        data_type: &DataType,
        locations: &CodecLocations,
    ) -> Result<(), Unrepresentable> {
        if let Some((index, filter)) = filter {
            let reason = format!("is the filter {} of elements of variable length", truncated(&filter.name));
            return Err(Unrepresentable::new(locations.of(index), reason));
        }
        let (index, codec) = codecs.next().ok_or_else(|| Unrepresentable::new(locations.of(0), "is missing"))?;
        let is_named = VARIABLE_LENGTH_CODECS
            .iter()
            .any(|(name, codec_name)| *name == data_type.name() && is_v3(codec, codec_name));
        if !is_named && codec.namespace != Namespace::Numcodecs {
            let reason = format!("is the codec {}, which numcodecs does not have", truncated(&codec.full_name()));
            return Err(Unrepresentable::new(locations.of(index), reason));
        }
        self.codecs.push(CodecSpec::numcodecs(&codec.name, codec.configuration.clone()));
        Ok(())
    }

    /// Adds bytes-to-bytes codecs, the first of which has items of `item_size` bytes. In v2 and the draft, filters are
    /// among them.
    fn push_bytes<'a>(
        &mut self,
        codecs: impl Iterator<Item = (usize, &'a CodecSpec)>,
        mut item_size: usize,
        locations: &CodecLocations,
    ) -> Result<(), Unrepresentable> {
        for (index, codec) in codecs {
            let (codec, size_is_lost) = codec::to_numcodecs(codec, item_size)
                .map_err(|reason| Unrepresentable::new(locations.of(index), reason))?;
            if size_is_lost {
                self.lost_typesizes.push(format!("{}/configuration/typesize", locations.of(index)));
            }
            self.ends_with_compressor = !filter::is_filter(&codec.name);
            self.codecs.push(codec);
            item_size = 1;
        }
        Ok(())
    }

    /// Splits the codecs into filters and compressor.
    pub(super) fn split(mut self, source: &Source<'_>) -> Result<(Vec<CodecSpec>, Option<CodecSpec>), Unrepresentable> {
        let compressor = if self.ends_with_compressor { self.codecs.pop() } else { None };
        check_count(&self.codecs, source)?;
        Ok((self.codecs, compressor))
    }
}

/// Converts a chain of v2 or the draft to v3; the chunks have the same bytes.
pub(super) fn to_v3(
    chain: &[CodecSpec],
    data_type: &DataType,
    locations: &CodecLocations,
) -> Result<Vec<CodecSpec>, Unrepresentable> {
    let unrepresentable = |index: usize| move |reason: String| Unrepresentable::new(locations.of(index), reason);
    let mut v3 = Vec::with_capacity(chain.len());
    let mut codecs = chain.iter().enumerate().peekable();
    if let Some((_, transpose)) = codecs.next_if(|(_, codec)| is_v3(codec, "transpose")) {
        v3.push(transpose.clone());
    }
    if let Some((_, shards)) = codecs.next_if(|(_, codec)| is_sharding(codec)) {
        v3.push(sharding_to_v3(shards, data_type, locations)?);
        return Ok(v3);
    }
    let mut item_size = 1;
    if let Layout::Fixed(layout) = data_type.layout() {
        let (index, bytes_codec_spec) =
            codecs.next().ok_or_else(|| Unrepresentable::new(locations.of(0), "is missing"))?;
        let order = stored_order_of(bytes_codec_spec).map_err(unrepresentable(index))?;
        if matches!(order, StoredOrder::Mixed(_)) {
            return Err(unrepresentable(index)("has fields of both byte orders, for which v3 has no codec".to_owned()));
        }
        let order = if layout.words.is_empty() { StoredOrder::Little } else { order };
        let mut elements = FilterElements { data_type: data_type.clone(), order };
        while let Some((index, filter)) = codecs.next_if(|(_, codec)| filter::is_filter(&codec.name)) {
            let (filter, encoded) = filter::with_byte_order(filter, &elements, true, &StoredOrder::Little)
                .map_err(unrepresentable(index))?;
            v3.push(filter);
            elements = encoded;
        }
        match codecs.next_if(|(_, codec)| is_pcodec(codec)) {
            Some((_, pcodec)) if elements.order == StoredOrder::Little => v3.push(pcodec.clone()),
            Some((index, _)) => return Err(unrepresentable(index)("is pcodec of big-endian elements".to_owned())),
            None => {
                item_size = elements.data_type.fixed_size().unwrap_or(1);
                v3.push(bytes_codec(&elements));
            }
        }
    } else if let Some((index, codec)) = codecs.next() {
        let named = VARIABLE_LENGTH_CODECS
            .iter()
            .find(|(name, codec_name)| *name == data_type.name() && *codec_name == codec.name);
        let (_, name) = named.ok_or_else(|| {
            unrepresentable(index)(format!("is the codec {}, for which v3 has no name", truncated(&codec.name)))
        })?;
        v3.push(CodecSpec::v3(name, codec.configuration.clone()));
    }
    for (index, codec) in codecs {
        if filter::is_filter(&codec.name) {
            return Err(unrepresentable(index)(format!(
                "is the filter {} behind a codec that works on bytes",
                codec.name
            )));
        }
        v3.push(codec::to_v3(codec, item_size).map_err(unrepresentable(index))?);
        item_size = 1;
    }
    Ok(v3)
}

/// Fails if a list has more codecs than readers accept.
pub(super) fn check_count(codecs: &[CodecSpec], source: &Source<'_>) -> Result<(), Unrepresentable> {
    match codecs.len() {
        0..=MAX_CODECS => Ok(()),
        _ => Err(Unrepresentable::new(
            source.data_type_pointer(),
            format!("is stored with more than {MAX_CODECS} codecs"),
        )),
    }
}

/// Converts the sharding of the draft, whose inner chains are those of other arrays of the draft.
fn sharding_to_v3(
    shards: &CodecSpec,
    data_type: &DataType,
    locations: &CodecLocations,
) -> Result<CodecSpec, Unrepresentable> {
    let inner = to_v3(&inner_codecs(shards), data_type, locations)?;
    let mut shards = shards.clone();
    let inner: Vec<_> = inner.iter().map(CodecSpec::to_v3).collect();
    shards.configuration.insert("codecs".to_owned(), json!(inner));
    Ok(shards)
}

/// The chain of the inner chunks.
pub(super) fn inner_codecs(shards: &CodecSpec) -> Vec<CodecSpec> {
    let codecs = shards.configuration.get("codecs").and_then(Value::as_array);
    codecs.into_iter().flatten().filter_map(|codec| CodecSpec::parse_v3(codec).ok()).collect()
}

/// The sharding codec, if the chain has no other codecs.
pub(super) fn as_only_sharding(chain: &[CodecSpec]) -> Option<&CodecSpec> {
    match chain {
        [shards] if is_sharding(shards) => Some(shards),
        _ => None,
    }
}

/// True for the sharding codec.
pub(super) fn is_sharding(codec: &CodecSpec) -> bool {
    is_v3(codec, SHARDING)
}

pub(super) fn is_v3(codec: &CodecSpec, name: &str) -> bool {
    codec.namespace == Namespace::V3 && codec.name == name
}

/// True for the compressor of v2 that is an array-to-bytes codec in v3.
fn is_pcodec(codec: &CodecSpec) -> bool {
    codec.namespace == Namespace::Numcodecs && codec.name == "pcodec"
}

fn is_element_filter(codec: &CodecSpec) -> bool {
    codec.namespace == Namespace::Numcodecs && filter::is_filter(&codec.name)
}

/// Composes two permutations.
pub(super) fn compose_permutations(before: &[usize], transpose: &CodecSpec) -> Result<Vec<usize>, String> {
    let order = match transpose.configuration.get("order") {
        Some(Value::String(order)) if order == "C" => return Ok(before.to_vec()),
        Some(Value::String(order)) if order == "F" => return Ok(before.iter().rev().copied().collect()),
        order => order.and_then(Value::as_array),
    };
    let index = |index: &Value| before.get(usize::try_from(index.as_u64()?).ok()?).copied();
    let compose_permutations = order.and_then(|order| order.iter().map(index).collect::<Option<Vec<_>>>());
    compose_permutations
        .filter(|compose_permutations| compose_permutations.len() == before.len())
        .ok_or_else(|| "has no order of the dimensions".to_owned())
}

/// The byte order of an array-to-bytes codec.
fn stored_order_of(codec: &CodecSpec) -> Result<StoredOrder, String> {
    if codec.namespace == Namespace::Model && codec.name == CodecSpec::MIXED_ENDIAN {
        return Ok(StoredOrder::Mixed(big_endian_words(codec).ok_or("has no words that are big-endian")?));
    }
    if !is_v3(codec, "bytes") && !is_v3(codec, "endian") {
        return Err(format!("is the codec {}, which v2 and the draft do not have", truncated(&codec.full_name())));
    }
    match codec.configuration.get("endian") {
        None | Some(Value::Null) => Ok(StoredOrder::Little),
        Some(endian) if endian == "little" => Ok(StoredOrder::Little),
        Some(endian) if endian == "big" => Ok(StoredOrder::Big),
        Some(_) => Err("has no such endian".to_owned()),
    }
}

/// The big-endian words of a [`CodecSpec::MIXED_ENDIAN`] codec.
fn big_endian_words(codec: &CodecSpec) -> Option<Vec<WordRun>> {
    let run = |run: &Value| match run.as_array()?.as_slice() {
        [offset, width, count] => {
            let number = |number: &Value| usize::try_from(number.as_u64()?).ok();
            Some(WordRun { offset: number(offset)?, width: number(width)?, count: number(count)? })
        }
        _ => None,
    };
    codec.configuration.get("big")?.as_array()?.iter().map(run).collect()
}

/// The `bytes` codec for elements.
fn bytes_codec(elements: &FilterElements) -> CodecSpec {
    let has_words = match elements.data_type.layout() {
        Layout::Fixed(layout) => !layout.words.is_empty(),
        Layout::Variable => false,
    };
    let endian = match elements.order {
        _ if !has_words => return CodecSpec::v3("bytes", serde_json::Map::new()),
        StoredOrder::Big => "big",
        StoredOrder::Little | StoredOrder::Mixed(_) => "little",
    };
    CodecSpec::v3("bytes", members([("endian", json!(endian))]))
}
