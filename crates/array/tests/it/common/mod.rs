//! Helpers of the read and write tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "not every test uses all of it")]

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use proptest::{prelude::*, sample::subsequence};
use serde_json::{Value, json};
use zarrd_array::{Arrays, ElementSource, Options, RegionWrite, WriteError};
use zarrd_codec::VariableBuilder;
use zarrd_meta::{
    NodePath,
    data_type::DataType,
    selection::{DimensionSelection, ReadRequest, Region, Selection},
};
use zarrd_store::{Key, ListableStore, MemoryStore, PageRequest, Precondition, Prefix, Version, WriteableStore};

/// Individual elements in C order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Elements(pub(crate) Vec<Vec<u8>>);

/// An array in a store.
pub(crate) struct TestArray {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) arrays: Arrays,
    pub(crate) data_type: DataType,
    pub(crate) fill: Vec<u8>,
}

pub(crate) fn fill(data_type: &str) -> Value {
    match data_type {
        "uint16" => json!(7),
        "string" => json!("fill"),
        "float64" => json!("NaN"),
        "r24" => json!([1, 2, 3]),
        other => panic!("{other}"),
    }
}

pub(crate) fn bytes(endian: &str) -> Value {
    json!({"name": "bytes", "configuration": {"endian": endian}})
}

pub(crate) fn sharded(inner: &[u64], codecs: &Value, location: &str) -> Value {
    json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": inner, "codecs": codecs, "index_location": location,
        "index_codecs": [bytes("little"), {"name": "crc32c"}]}})
}

/// Codec chains for a data type; without sharding for rectilinear grids.
pub(crate) fn codecs(chunk: &[u64], data_type: &str, rectilinear: bool) -> Vec<Value> {
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 0, "checksum": true}});
    let order: Vec<usize> = (0..chunk.len()).rev().collect();
    let transpose = json!({"name": "transpose", "configuration": {"order": order}});
    let half: Vec<u64> = chunk.iter().map(|&len| if len % 2 == 0 { len / 2 } else { len }).collect();
    let one = vec![1; chunk.len()];
    let plain = match data_type {
        "string" => json!({"name": "vlen-utf8"}),
        _ => bytes("little"),
    };
    let big = match data_type {
        "string" => plain.clone(),
        _ => bytes("big"),
    };
    let mut all = vec![json!([plain]), json!([big, zstd]), json!([transpose, big, gzip])];
    if !rectilinear {
        let inner = json!([big, gzip]);
        all.extend([
            json!([sharded(&half, &json!([plain]), "end")]),
            json!([sharded(&half, &inner, "start")]),
            json!([sharded(&half, &json!([sharded(&one, &json!([big]), "start")]), "end")]),
            json!([sharded(&one, &inner, "end"), gzip]),
            json!([transpose, sharded(&order.iter().map(|&axis| half[axis]).collect::<Vec<_>>(), &inner, "end")]),
        ]);
    }
    all
}

/// A writable selection of a dimension.
pub(crate) fn dimension(extent: u64) -> impl Strategy<Value = DimensionSelection> {
    let range = (0..extent, 1..=extent, any::<bool>()).prop_map(move |(start, step, back)| {
        let len = if back { start } else { extent - 1 - start } / step + 1;
        let step = if len == 1 { 1 } else { step as i64 };
        DimensionSelection::Range { start, step: if back && len > 1 { -step } else { step }, len }
    });
    let list = subsequence((0..extent).collect::<Vec<_>>(), 1..=extent as usize).prop_shuffle();
    prop_oneof![
        (0..extent).prop_map(DimensionSelection::Index),
        range,
        Just(DimensionSelection::Range { start: 0, step: 1, len: extent }),
        list.prop_map(|list| DimensionSelection::List(list.into())),
        Just(DimensionSelection::Range { start: 0, step: 1, len: 0 }),
    ]
}

pub(crate) fn selection(dimensions: &[DimensionSelection]) -> Selection {
    Region { dimensions: dimensions.to_vec() }.to_selection()
}

pub(crate) fn path() -> NodePath {
    NodePath::parse("/a").unwrap()
}

pub(crate) async fn set(store: &MemoryStore, key: &str, value: Vec<u8>) {
    store.set(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
}

impl TestArray {
    /// A v3 array at `/a`.
    pub(crate) async fn new(document: &Value, options: Options) -> Self {
        let store = Arc::new(MemoryStore::new());
        set(&store, "a/zarr.json", document.to_string().into_bytes()).await;
        Self::over(store, options).await
    }

    /// The array at `/a` in a store.
    pub(crate) async fn over(store: Arc<MemoryStore>, options: Options) -> Self {
        let arrays = Arrays::new(store.clone(), options);
        let (model, _) = arrays.model(&path(), None).await.unwrap();
        Self { store, arrays, data_type: model.data_type, fill: model.fill_value }
    }

    pub(crate) async fn region(&self, dimensions: &[DimensionSelection]) -> RegionWrite {
        self.try_region(dimensions).await.unwrap()
    }

    pub(crate) async fn try_region(&self, dimensions: &[DimensionSelection]) -> Result<RegionWrite, WriteError> {
        self.arrays.write(&path(), None, &selection(dimensions), Precondition::none()).await
    }

    /// The elements of an unwritten array of this shape.
    pub(crate) fn filled(&self, shape: &[u64]) -> Elements {
        Elements(vec![self.fill.clone(); shape.iter().product::<u64>() as usize])
    }

    /// Pseudo-random elements, many of them equal to the fill value.
    pub(crate) fn elements(&self, seed: u16, count: usize) -> Elements {
        let element = |number: usize| {
            let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(seed) << 7);
            if (mixed >> 20).is_multiple_of(3) || seed.is_multiple_of(5) {
                return self.fill.clone();
            }
            match self.data_type.fixed_size() {
                Some(size) => mixed.to_le_bytes().into_iter().cycle().take(size).collect(),
                None => "x".repeat((mixed % 9) as usize).into_bytes(),
            }
        };
        Elements((0..count).map(element).collect())
    }

    /// A body of elements, in parts of `part` bytes.
    pub(crate) fn incoming(&self, elements: &Elements, part: usize) -> ElementSource {
        if self.data_type.fixed_size().is_none() {
            let mut builder = VariableBuilder::new(u64::MAX);
            elements.0.iter().for_each(|element| builder.push(element).unwrap());
            return ElementSource::Variable(builder.finish());
        }
        let all = elements.0.concat();
        let parts: Vec<_> = all.chunks(part).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        ElementSource::Fixed(stream::iter(parts).boxed())
    }

    pub(crate) async fn read(&self, selection: &Selection, limit: u64) -> Elements {
        self.read_at(&path(), selection, limit).await
    }

    /// Elements of another array, which has the same data type.
    pub(crate) async fn read_at(&self, path: &NodePath, selection: &Selection, limit: u64) -> Elements {
        let request = ReadRequest::Select(selection.clone());
        let reading = self.arrays.read(path, None, &request, limit).await.unwrap();
        let size = self.data_type.fixed_size();
        let mut all = Vec::new();
        let mut parts = Box::pin(reading.into_stream());
        while let Some(part) = parts.next().await {
            match part.unwrap() {
                zarrd_codec::Elements::Fixed(bytes) => all.extend(bytes.chunks(size.unwrap()).map(<[u8]>::to_vec)),
                zarrd_codec::Elements::Variable(elements) => all.extend(elements.iter().map(<[u8]>::to_vec)),
            }
        }
        Elements(all)
    }

    /// All keys and their versions.
    pub(crate) async fn versions(&self) -> BTreeMap<String, Version> {
        let page = self.store.list_prefix(&Prefix::root(), PageRequest::first(1000)).await.unwrap();
        page.keys.into_iter().map(|entry| (entry.key.to_string(), entry.meta.version)).collect()
    }
}

impl Elements {
    /// Sets the selected elements of an array of this shape.
    pub(crate) fn set(&mut self, shape: &[u64], dimensions: &[DimensionSelection], elements: &Self) {
        let axes: Vec<Vec<u64>> = dimensions.iter().map(indices).collect();
        let mut positions = vec![0];
        for (axis, extent) in axes.iter().zip(shape) {
            positions = positions.iter().flat_map(|at| axis.iter().map(move |index| at * extent + index)).collect();
        }
        assert_eq!(positions.len(), elements.0.len());
        for (at, element) in positions.iter().zip(&elements.0) {
            self.0[*at as usize] = element.clone();
        }
    }
}

/// The selected indices of a dimension.
pub(crate) fn indices(dimension: &DimensionSelection) -> Vec<u64> {
    match dimension {
        DimensionSelection::Index(index) => vec![*index],
        DimensionSelection::Range { start, step, len } => {
            (0..*len).map(|i| start.checked_add_signed(step * i as i64).unwrap()).collect()
        }
        DimensionSelection::List(list) => list.to_vec(),
    }
}
