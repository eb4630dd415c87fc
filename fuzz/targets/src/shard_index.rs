//! Encoded shards.

use std::{ops::Range, sync::LazyLock};

use bytes::Bytes;
use zarrd_codec::{ChunkRepresentation, CodecChain, Elements, PartialAccess, ShardIndex, ShardingCodec};
use zarrd_meta::grid::ChunkGrid;

use crate::chunk;

/// The memory budget of variable-length elements.
const BUDGET: u64 = 1 << 18;

/// Shards: shape, data type and codec.
#[rustfmt::skip]
static CASES: &[(&[u64], &str, &str)] = &[
    (&[4], "uint8", r#"{"chunk_shape":[2],"codecs":["bytes"]}"#),
    (&[4], "uint8", r#"{"chunk_shape":[1],"codecs":["bytes"],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_location":"start"}"#),
    (&[4, 6], "uint16", r#"{"chunk_shape":[2,3],"codecs":[{"name":"bytes","configuration":{"endian":"big"}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"big"}}],"index_location":"end"}"#),
    (&[2, 4, 2], "int32", r#"{"chunk_shape":[1,2,2],"codecs":[{"name":"transpose","configuration":{"order":[2,0,1]}},{"name":"bytes","configuration":{"endian":"little"}},"gzip"],"index_location":"start"}"#),
    (&[4], "string", r#"{"chunk_shape":[2],"codecs":["vlen-utf8"],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}"#),
    (&[], "uint8", r#"{"chunk_shape":[],"codecs":["bytes"],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},"crc32c"]}"#),
    (&[0, 2], "uint8", r#"{"chunk_shape":[1,2],"codecs":["bytes"]}"#),
    (&[8], "uint8", r#"{"chunk_shape":[4],"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[2],"codecs":["bytes"],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_location":"start"}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"index_location":"end"}"#),
    (&[4, 4], "bytes", r#"{"chunk_shape":[2,4],"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":["vlen-bytes","zstd"]}}],"index_location":"start"}"#),
    (&[64, 2], "r16", r#"{"chunk_shape":[1,1],"codecs":["bytes"],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}"#),
    (&[3], "|S0", r#"{"chunk_shape":[1],"codecs":["bytes"],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}"#),
];

static CHAINS: LazyLock<Vec<CodecChain>> = LazyLock::new(|| CASES.iter().map(chain).collect());

fn chain(&(shape, data_type, configuration): &(&[u64], &str, &str)) -> CodecChain {
    let data_type = chunk::data_type(data_type);
    let fill_value = match data_type.fixed_size() {
        Some(size) => vec![7; size],
        None => b"fill".to_vec(),
    };
    let shard = ChunkRepresentation::new(data_type, shape.to_vec(), fill_value).expect("a small shard");
    let codecs = format!(r#"[{{"name":"sharding_indexed","configuration":{configuration}}}]"#);
    CodecChain::new(&chunk::codecs(&codecs), shard).expect("a chain")
}

/// Reads a shard, as a whole and by inner chunks. The first byte selects the codec, and whether the index gets a valid
/// checksum.
pub fn shard_index(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let chain = CHAINS.iter().cycle().nth(usize::from(choice >> 1)).expect("they begin again");
    let mut shard = rest.to_vec();
    if choice & 1 == 1 {
        seal(chain, &mut shard);
    }
    read(chain, shard.into());
}

fn sharding(chain: &CodecChain) -> Option<&ShardingCodec> {
    match chain.partial_access() {
        PartialAccess::Shard(sharding) => Some(sharding),
        PartialAccess::Full | PartialAccess::Elements(_) => None,
    }
}

/// Appends the checksum to the index.
fn seal(chain: &CodecChain, shard: &mut [u8]) {
    let range = sharding(chain).and_then(|sharding| sharding.index_range(shard.len() as u64).ok());
    let Some(index) = range.and_then(|range| shard.get_mut(bounds(&range))) else { return };
    if let Some((entries, checksum)) = index.split_last_chunk_mut() {
        *checksum = crc32c::crc32c(entries).to_le_bytes();
    }
}

fn bounds(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Decodes a chunk; a shard is also read by the partial decoder.
fn read(chain: &CodecChain, encoded: Bytes) -> Option<Elements> {
    let parts = sharding(chain).map(|sharding| inner_chunks(sharding, &encoded));
    let decoded = match chain.decode(encoded, BUDGET) {
        Ok(decoded) => Some(decoded),
        Err(error) => {
            let _ = error.to_string();
            None
        }
    };
    if let Some(decoded) = &decoded {
        chunk::is_complete(decoded, chain.representation(), BUDGET);
        let encoded = chunk::encode(chain, decoded.clone()).expect("elements that were decoded");
        assert_eq!(&chain.decode(encoded, BUDGET).expect("a chunk that was encoded"), decoded);
    }
    match (parts, sharding(chain)) {
        (Some(Some(parts)), Some(sharding)) => compare(sharding, chain.representation(), &parts, decoded.as_ref()),
        // A shard without a readable index is invalid.
        (Some(None), _) => assert!(decoded.is_none()),
        _ => {}
    }
    decoded
}

/// An inner chunk, decoded individually.
enum Inner {
    Missing,
    Wrong,
    Found(Elements),
}

/// All inner chunks; `None` if there is no index.
fn inner_chunks(sharding: &ShardingCodec, shard: &Bytes) -> Option<Vec<Inner>> {
    let len = shard.len() as u64;
    let own = sharding.index_range(len).ok()?;
    assert_eq!(own.end - own.start, sharding.index_size());
    let index = sharding.read_index(shard.slice(bounds(&own)), len).ok()?;
    let count = index.memory_size() / 16;
    assert!(index.locate(count).is_err() && index.locate(u64::MAX).is_err());
    Some((0..count).map(|position| inner_chunk(sharding, &index, &own, shard, position)).collect())
}

fn inner_chunk(sharding: &ShardingCodec, index: &ShardIndex, own: &Range<u64>, shard: &Bytes, position: u64) -> Inner {
    let range = match index.locate(position) {
        Ok(Some(range)) => range,
        Ok(None) => return Inner::Missing,
        Err(error) => {
            let _ = error.to_string();
            return Inner::Wrong;
        }
    };
    assert!(range.start <= range.end && range.end <= shard.len() as u64);
    assert!(range.is_empty() || range.end <= own.start || range.start >= own.end);
    read(sharding.inner_chain(), shard.slice(bounds(&range))).map_or(Inner::Wrong, Inner::Found)
}

/// Compares a shard with its inner chunks, element by element.
fn compare(sharding: &ShardingCodec, shard: &ChunkRepresentation, parts: &[Inner], decoded: Option<&Elements>) {
    let Some(decoded) = decoded else {
        // The complete shard may also exceed the budget.
        let variable = shard.fixed_size().is_none();
        return assert!(variable || parts.iter().any(|part| matches!(part, Inner::Wrong)));
    };
    let grid: ChunkGrid = sharding.inner_grid().expect("inner chunks have a length");
    let inner = sharding.inner_chain().representation();
    for element in 0..shard.num_elements() {
        let at = coordinates(shard.shape(), element);
        let pieces = grid.dimensions().iter().zip(&at);
        let chunk: Vec<u64> =
            pieces.clone().map(|(dimension, &at)| dimension.chunk_index(at).expect("a piece")).collect();
        let starts = pieces
            .zip(&chunk)
            .map(|((dimension, &at), &piece)| at - dimension.chunk_bounds(piece).expect("a piece").start);
        let within = starts.zip(inner.shape()).fold(0, |offset, (at, extent)| offset * extent + at);
        let position = sharding.index_position(&chunk).expect("an inner chunk of the shard");
        let expected = match parts.get(position as usize) {
            Some(Inner::Missing) => Some(&shard.fill_value()[..]),
            Some(Inner::Found(elements)) => get(elements, inner, within),
            Some(Inner::Wrong) | None => None,
        };
        assert_eq!(get(decoded, shard, element), expected);
    }
}

/// The coordinates of an element, given its number in C order.
fn coordinates(shape: &[u64], mut number: u64) -> Vec<u64> {
    let mut coordinates: Vec<u64> = shape
        .iter()
        .rev()
        .map(|extent| {
            let at = number % extent;
            number /= extent;
            at
        })
        .collect();
    coordinates.reverse();
    coordinates
}

fn get<'a>(elements: &'a Elements, chunk: &ChunkRepresentation, number: u64) -> Option<&'a [u8]> {
    let number = number as usize;
    match elements {
        Elements::Fixed(bytes) => {
            let size = chunk.data_type().fixed_size()?;
            bytes.get(number * size..(number + 1) * size)
        }
        Elements::Variable(elements) => elements.get(number),
    }
}
