//! A store of one's own: an array of a million squares that nobody stores, computed when a chunk is read.
//!
//! ```text
//! cargo run -p zarrd-store --example computed_store
//! ```
//!
//! It implements reading, and has no listings. `Keyed` makes a `SnapshotStore` of it, which the server takes:
//! `App::new(ServedStore::read_only(Arc::new(store)), settings)`. A real one runs the suite of `crates/store-testkit`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, time::SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use zarrd_store::{
    Attributes, ByteRange, DirPage, GetResult, Guarantees, Key, KeyPage, Keyed, ListableStore, Listing, PageRequest,
    Prefix, ReadableStore, SnapshotStore, StoreError, ValueMeta, VersionHash,
};

const DOCUMENT: &str = r#"{"zarr_format":3,"node_type":"array","shape":[1000000],"data_type":"uint64","fill_value":0,
"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1000]}},"chunk_key_encoding":{"name":"default"},
"codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}"#;

struct Squares;

impl Squares {
    /// The bytes of a key; `None` if it has no value.
    fn value(key: &Key) -> Option<Bytes> {
        if key.as_str() == "zarr.json" {
            return Some(DOCUMENT.into());
        }
        let text = key.as_str().strip_prefix("c/")?;
        let index = text.parse::<u64>().ok().filter(|index| *index < 1000 && index.to_string() == text)?;
        Some((index * 1000..(index + 1) * 1000).flat_map(|number| (number * number).to_le_bytes()).collect())
    }

    /// Equal versions must mean equal bytes: these never change, so the key is enough.
    fn meta(key: &Key, value: &Bytes) -> ValueMeta {
        let version = VersionHash::new("squares").version(key, &[]);
        ValueMeta { size: value.len() as u64, version, modified: SystemTime::UNIX_EPOCH, attributes: Attributes::NONE }
    }
}

#[async_trait]
impl ReadableStore for Squares {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let Some(value) = Self::value(key) else { return Ok(None) };
        let meta = Self::meta(key, &value);
        let range = range.map_or(Some(0..meta.size), |range| range.resolve(meta.size));
        let range = range.ok_or_else(|| StoreError::RangeNotSatisfiable { meta: meta.clone() })?;
        let part = value.slice(range.start as usize..range.end as usize);
        Ok(Some(GetResult { meta, range, stream: Box::pin(stream::iter([Ok(part)])) }))
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Ok(Self::value(key).map(|value| Self::meta(key, &value)))
    }
}

#[async_trait]
impl ListableStore for Squares {
    async fn list_prefix(&self, _prefix: &Prefix, _page: PageRequest) -> Result<KeyPage, StoreError> {
        Err(StoreError::Unsupported { what: "listings" })
    }

    async fn list_dir(&self, _prefix: &Prefix, _page: PageRequest) -> Result<DirPage, StoreError> {
        Err(StoreError::Unsupported { what: "listings" })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = Keyed::new(Squares, Guarantees { listing: Listing::None, ..Guarantees::READ_ONLY });
    let key = Key::parse("c/1")?;
    let found = store.get(&key, Some(ByteRange::bounded(0, 16)?)).await?.ok_or("no such key")?;
    println!("the first 16 bytes of {key}: {:?}", found.bytes().await?);
    println!("guarantees: {}", store.guarantees());
    Ok(())
}
