//! The arrays used in races: small ones of every dialect.

use rand::{RngExt, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

/// A dialect of Zarr metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    V2,
    V3,
    Draft,
}

/// A data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    U8,
    U16,
}

/// The storage of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Storage {
    Raw,
    Gzip,
    Zstd,
    /// Shards of smaller chunks compressed with zstd.
    Sharded,
}

/// A declared array with one or two dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    pub(crate) dialect: Dialect,
    pub(crate) element: Element,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk: Vec<u64>,
    pub(crate) storage: Storage,
    pub(crate) fill: u16,
}

impl Dialect {
    pub(crate) const ALL: [Self; 3] = [Self::V3, Self::V2, Self::Draft];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
            Self::Draft => "draft",
        }
    }
}

impl Element {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::U8 => Self::U16,
            Self::U16 => Self::U8,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::U8 => "uint8",
            Self::U16 => "uint16",
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
        }
    }

    /// Decodes elements; `None` if the bytes end within one.
    pub(crate) fn read(self, bytes: &[u8]) -> Option<Vec<u16>> {
        match self {
            Self::U8 => Some(bytes.iter().map(|byte| u16::from(*byte)).collect()),
            Self::U16 => {
                let (pairs, rest) = bytes.as_chunks::<2>();
                rest.is_empty().then(|| pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect())
            }
        }
    }

    /// Encodes one element.
    pub(crate) fn bytes(self, value: u16) -> Vec<u8> {
        let bytes = value.to_le_bytes();
        bytes[..self.size()].to_vec()
    }
}

impl Layout {
    /// A random array with this dialect and data type.
    pub(crate) fn choose(random: &mut StdRng, dialect: Dialect, element: Element) -> Self {
        let (shape, chunk) = match random.random_range(0..3) {
            0 => (vec![random.random_range(3..=6) * 2, random.random_range(4..=9)], vec![2, *one(random, &[2, 4])]),
            _ => (vec![random.random_range(12..=40)], vec![*one(random, &[4, 8])]),
        };
        let storage = match dialect {
            Dialect::V3 => *one(random, &[Storage::Raw, Storage::Zstd, Storage::Gzip, Storage::Sharded]),
            Dialect::V2 => *one(random, &[Storage::Raw, Storage::Zstd, Storage::Gzip]),
            Dialect::Draft => *one(random, &[Storage::Raw, Storage::Gzip]),
        };
        Self { dialect, element, shape, chunk, storage, fill: *one(random, &[0, 255]) }
    }

    /// An array with many chunks, some with more than a copy sets in one commit.
    pub(crate) fn choose_long(random: &mut StdRng, dialect: Dialect) -> Self {
        let element = *one(random, &[Element::U8, Element::U16]);
        let layout = Self::choose(random, dialect, element);
        let chunk = if layout.storage == Storage::Sharded { 2 } else { 1 };
        Self { shape: vec![*one(random, &[48, 64, 96, 300])], chunk: vec![chunk], ..layout }
    }

    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The ZOM of a single node.
    pub(crate) fn zom(&self) -> Value {
        match self.dialect {
            Dialect::V2 => self.zom_of_v2(),
            Dialect::V3 | Dialect::Draft => self.zom_of_v3(),
        }
    }

    fn zom_of_v2(&self) -> Value {
        let compressor = match self.storage {
            Storage::Raw | Storage::Sharded => Value::Null,
            Storage::Gzip => json!({"id": "gzip", "level": 1}),
            Storage::Zstd => json!({"id": "zstd", "level": 1}),
        };
        let dtype = match self.element {
            Element::U8 => "|u1",
            Element::U16 => "<u2",
        };
        json!({
            "zarr_format": 2, "shape": self.shape, "chunks": self.chunk, "dtype": dtype, "compressor": compressor,
            "fill_value": self.fill, "order": "C", "filters": null, "dimension_separator": ".", "attributes": {},
        })
    }

    fn zom_of_v3(&self) -> Value {
        let bytes = match self.element {
            Element::U8 => json!({"name": "bytes"}),
            Element::U16 => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        };
        let index = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
        let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": false}});
        let codecs = match self.storage {
            Storage::Raw => json!([bytes]),
            Storage::Gzip => json!([bytes, gzip]),
            Storage::Zstd => json!([bytes, zstd]),
            Storage::Sharded => {
                let inner: Vec<u64> = self.chunk.iter().map(|extent| extent / 2).collect();
                let sharding = json!({
                    "chunk_shape": inner, "codecs": [bytes, zstd], "index_codecs": [index, {"name": "crc32c"}],
                });
                json!([{"name": "sharding_indexed", "configuration": sharding}])
            }
        };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": self.shape, "data_type": self.element.name(),
            "fill_value": self.fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": codecs, "attributes": {},
        })
    }
}

/// A group with one member.
pub(crate) fn group(dialect: Dialect, name: &str, member: &Value) -> Value {
    match dialect {
        Dialect::V2 => json!({"zarr_format": 2, "attributes": {}, "members": {name: member}}),
        Dialect::V3 | Dialect::Draft => {
            json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {name: member}})
        }
    }
}

/// A random item.
pub(crate) fn one<'a, T>(random: &mut StdRng, all: &'a [T]) -> &'a T {
    all.choose(random).expect("at least one item")
}
