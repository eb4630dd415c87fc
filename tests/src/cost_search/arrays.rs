//! Arrays that the requests select elements of: shapes, chunks, codec chains, and stored values.

use serde_json::{Value, json};

use super::genome::{Gene, Genome};

/// An array that must exist before a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The path, which encodes all properties.
    pub name: String,
    /// The metadata document.
    pub document: Value,
    /// The shape.
    pub shape: Vec<u64>,
    /// The chunk shape.
    pub chunk: Vec<u64>,
    /// The size of an element in bytes.
    pub size: u64,
    /// The number of stored chunks.
    pub stored: u64,
    /// The content of each stored chunk.
    pub content: Content,
}

/// The elements of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// The same element everywhere, as JSON.
    Same(Value),
    /// Moderately compressible bytes.
    Pattern,
    /// Incompressible bytes.
    Noise,
}

/// The dimensions over which the elements of a chunk are spread.
#[derive(Clone, Copy, Debug)]
enum Spread {
    All,
    Last,
    First,
}

impl Array {
    /// The array that a genome selects.
    pub fn of(genome: &Genome) -> Self {
        let types = [
            ("uint8", 1, json!(7)),
            ("float64", 8, json!(7.5)),
            ("int32", 4, json!(7)),
            ("string", 16, json!("x")),
            ("float32", 4, json!(7.5)),
            ("int8", 1, json!(-7)),
            ("complex64", 8, json!([7.5, -7.5])),
            ("bool", 1, json!(true)),
            ("float16", 2, json!(7.5)),
        ];
        let picks: &[usize] = if genome.operation.computes() { &[0, 1, 2, 3, 4, 5, 6, 7, 8] } else { &[0, 0, 1, 2, 3] };
        let (data_type, size, element) = types[genome.pick(Gene::DataType, picks)].clone();
        let rank = genome.pick(Gene::Rank, &[1, 2, 3, 0, 8, 16, 22]);
        let bytes = genome.pick(Gene::Chunk, &[64 << 10, 1 << 20, 32 << 20, 1, 4 << 10, 8 << 20, 16 << 20]);
        let spread = genome.pick(Gene::Spread, &[Spread::All, Spread::Last, Spread::First]);
        let chunk = chunk_shape(rank, bytes / size, spread);
        let stored = if rank == 0 { 1 } else { genome.pick(Gene::Chunks, &[1, 16, 256, 2048]) };
        let mut shape = chunk.clone();
        if let Some(first) = shape.first_mut() {
            *first *= if genome.has(Gene::Spread, 6) { (1 << 40) / *first } else { stored };
        }
        let fill = match data_type {
            "string" => json!(""),
            "bool" => json!(false),
            "complex64" => json!([0, 0]),
            _ => json!(0),
        };
        let document = json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
            "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default"}, "codecs": codecs(genome, &chunk, data_type)});
        let content = match genome.pick(Gene::Data, &[0, 1, 2]) {
            1 if data_type != "string" => Content::Pattern,
            2 if data_type != "string" => Content::Noise,
            _ => Content::Same(element),
        };
        let name = path(&format!("{document}{stored}{content:?}"));
        Self { name, document, shape, chunk, size, stored, content }
    }

    /// The array with attributes, under another path.
    pub(super) fn with_attributes(mut self, attributes: &Value) -> Self {
        self.document["attributes"] = attributes.clone();
        self.name = path(&format!("{}{}{:?}", self.document, self.stored, self.content));
        self
    }

    /// The size of a decoded chunk in bytes.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk.iter().product::<u64>() * self.size
    }

    /// The memory of the encoder of a chunk in bytes: that of lzma is 11.5 times its dictionary, which is the power of
    /// two from the chunk's size on, up to 64 MiB, and 2 MiB.
    pub fn encoder_bytes(&self) -> u64 {
        let has_lzma = self.document["codecs"].to_string().contains("lzma");
        let dictionary = self.chunk_bytes().next_power_of_two().clamp(4096, 64 << 20);
        if has_lzma { dictionary * 23 / 2 + (2 << 20) } else { 0 }
    }

    /// The memory of its labels as a coordinate in bytes, all of which are in memory while they are searched: the stored
    /// elements twice, 28 bytes for each label, and 96 more for each text and 64 for each time.
    pub fn label_bytes(&self) -> u64 {
        let labels: u64 = self.shape.iter().product();
        let is_time = self.document["attributes"].get("units").is_some();
        let is_text = self.document["data_type"] == "string" || self.document["data_type"].is_object();
        let texts = if is_text {
            96
        } else if is_time {
            64
        } else {
            0
        };
        labels.saturating_mul(2 * self.size + 28 + texts)
    }

    /// The selection of the first chunk.
    pub fn first_chunk(&self) -> String {
        self.chunk.iter().map(|extent| format!("0:{extent}")).collect::<Vec<_>>().join(",")
    }

    /// The key of the chunk at index `step` of the first dimension.
    pub fn chunk_key(&self, step: u64) -> String {
        let rest = "/0".repeat(self.chunk.len().saturating_sub(1));
        if self.chunk.is_empty() { format!("{}/c", self.name) } else { format!("{}/c/{step}{rest}", self.name) }
    }
}

impl Content {
    /// The first `len` bytes of the content.
    pub fn bytes(&self, len: u64) -> Vec<u8> {
        match self {
            Self::Same(_) => Vec::new(),
            Self::Pattern => (0..len).map(|index| (index.wrapping_mul(index >> 7) >> 3) as u8 & 31).collect(),
            Self::Noise => {
                use rand::{RngExt, SeedableRng};
                let mut bytes = vec![0; len as usize];
                rand::rngs::SmallRng::seed_from_u64(len).fill(&mut bytes[..]);
                bytes
            }
        }
    }
}

/// The path of an array with these properties.
pub(super) fn path(properties: &str) -> String {
    format!("arrays/{:016x}", xxhash_rust::xxh3::xxh3_64(properties.as_bytes()))
}

/// A shape of `elements` elements, rounded down to a power of two.
fn chunk_shape(rank: usize, elements: u64, spread: Spread) -> Vec<u64> {
    let mut shape = vec![1; rank];
    let doublings = elements.max(1).ilog2() as usize;
    for doubling in 0..doublings {
        let at = match spread {
            Spread::All => doubling % rank.max(1),
            Spread::Last => rank.saturating_sub(1),
            Spread::First => 0,
        };
        if let Some(extent) = shape.get_mut(at) {
            *extent *= 2;
        }
    }
    shape
}

fn codecs(genome: &Genome, chunk: &[u64], data_type: &str) -> Value {
    let rank = chunk.len();
    let repeat = genome.pick(Gene::Repeat, &[1, 2, 8, 30]);
    let pair = [Gene::FilterA, Gene::FilterB].map(|gene| filter(genome, gene, rank, data_type));
    let filters: Vec<Value> = (0..repeat).flat_map(|_| pair.iter().flatten().cloned()).collect();
    let bytes = match data_type {
        "string" => json!({"name": "vlen-utf8"}),
        _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
    };
    let repeat = if genome.has(Gene::Repeat, 6) { 4 } else { 1 };
    let packs = [Gene::PackA, Gene::PackB].map(|gene| bytes_codec(genome, gene));
    let packs: Vec<Value> = (0..repeat).flat_map(|_| packs.iter().flatten().cloned()).collect();
    let mut chain = [filters, vec![bytes], packs].concat();
    let depth = if data_type == "string" { 0 } else { genome.pick(Gene::Shards, &[0, 0, 1, 2, 3]) };
    // From the innermost shard outwards; only the innermost one has the codec chain.
    for level in (1..=depth).rev() {
        let minimum = if genome.has(Gene::Shards, 6) { 1 } else { 16_u64 };
        let inner: Vec<u64> = chunk.iter().map(|extent| (extent >> (4 * level)).max(minimum).min(*extent)).collect();
        chain = vec![json!({"name": "sharding_indexed", "configuration": {"chunk_shape": inner, "codecs": chain,
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}})];
    }
    json!(chain)
}

/// An array-to-array codec.
fn filter(genome: &Genome, gene: Gene, rank: usize, data_type: &str) -> Option<Value> {
    let transpose = |order: Vec<usize>| json!({"name": "transpose", "configuration": {"order": order}});
    let axes = || (0..rank).collect::<Vec<_>>();
    let dtype = match data_type {
        "float64" => "<f8",
        "float32" => "<f4",
        "float16" => "<f2",
        "int32" => "<i4",
        "int8" => "|i1",
        _ => "|u1",
    };
    let number = !matches!(data_type, "string" | "bool" | "complex64");
    Some(match genome.pick(gene, &[0, 1, 2, 3, 4, 5, 6, 0, 0, 0]) {
        1 => transpose(axes().into_iter().rev().collect()),
        2 if rank > 1 => transpose((1..rank).chain([0]).collect()),
        3 if rank > 1 => {
            let mut order = axes();
            order.swap(0, rank - 1);
            transpose(order)
        }
        4 if number => json!({"name": "numcodecs.delta", "configuration": {"dtype": dtype}}),
        5 if number => {
            json!({"name": "numcodecs.fixedscaleoffset", "configuration": {"dtype": dtype, "scale": 1, "offset": 0}})
        }
        6 if data_type == "float64" => json!({"name": "bitround", "configuration": {"keepbits": 52}}),
        _ => return None,
    })
}

/// A bytes-to-bytes codec.
fn bytes_codec(genome: &Genome, gene: Gene) -> Option<Value> {
    let blosc = |cname: &str, shuffle: &str| {
        json!({"name": "blosc", "configuration": {"cname": cname, "clevel": 9,
        "shuffle": shuffle, "typesize": 8, "blocksize": 0}})
    };
    Some(match genome.pick(gene, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 0, 0]) {
        1 => json!({"name": "gzip", "configuration": {"level": 1}}),
        2 => json!({"name": "gzip", "configuration": {"level": 9}}),
        3 => json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}}),
        4 => json!({"name": "zstd", "configuration": {"level": 22, "checksum": true}}),
        5 => json!({"name": "numcodecs.zlib", "configuration": {"level": 9}}),
        6 => json!({"name": "numcodecs.bz2", "configuration": {"level": 9}}),
        7 => json!({"name": "numcodecs.lzma", "configuration": {"preset": 9}}),
        8 => json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}),
        9 => blosc("zstd", "bitshuffle"),
        10 => blosc("lz4", "shuffle"),
        11 => json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 8}}),
        12 => json!({"name": "crc32c"}),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{super::genome::Operation, *};

    #[test]
    fn chunk_elements_are_spread_over_the_dimensions() {
        assert_eq!(chunk_shape(3, 16, Spread::All), [4, 2, 2]);
        assert_eq!(chunk_shape(3, 16, Spread::Last), [1, 1, 16]);
        assert_eq!(chunk_shape(3, 17, Spread::First), [16, 1, 1]);
        assert_eq!(chunk_shape(0, 16, Spread::All), [0_u64; 0]);
        assert_eq!(chunk_shape(2, 0, Spread::Last), [1, 1]);
    }

    #[test]
    fn array_name_includes_every_property() {
        let plain = Genome::plain(Operation::ArrayGet);
        let name = |genome: &Genome| Array::of(genome).name;
        assert_eq!(name(&plain), name(&plain.clone().with(Gene::Format, 3)), "the response format makes no difference");
        for gene in [Gene::Rank, Gene::Chunk, Gene::Chunks, Gene::Data, Gene::FilterA, Gene::PackB] {
            assert_ne!(name(&plain), name(&plain.clone().with(gene, 1)), "{gene:?}");
        }
        let array = Array::of(&plain.with(Gene::Rank, 2).with(Gene::Chunks, 1));
        assert_eq!((array.shape, array.chunk), (vec![1024, 32, 32], vec![64, 32, 32]));
    }

    #[test]
    fn chunk_keys_follow_the_grid() {
        let plain = Genome::plain(Operation::ArrayGet);
        let array = Array::of(&plain.clone().with(Gene::Rank, 2));
        assert_eq!(array.chunk_key(5), format!("{}/c/5/0/0", array.name));
        assert_eq!(array.first_chunk(), "0:64,0:32,0:32");
        let scalar = Array::of(&plain.with(Gene::Rank, 3));
        assert_eq!((scalar.chunk_key(0), scalar.chunk_bytes()), (format!("{}/c", scalar.name), 1));
    }
}
