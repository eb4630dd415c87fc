//! What the store has of a node beside its document.

use client::{Dialect, NodePath};
use meta::{documents::draft, json::Json};
use serde::Serialize;
use store::{Key, MAX_PAGE, Page, Prefix};

use crate::{
    exit::Failure,
    hierarchy::{Hierarchy, LookError},
};

/// How many chunks are counted.
const COUNTED: u64 = 100_000;

/// The longest document that is looked into. Longer ones are not read into memory for a yes or no.
const LOOKED_INTO: u64 = 64 << 20;

/// The documents that are no chunks.
const DOCUMENTS: &[&str] = &["zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"];

/// How much of an array is stored.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Stored {
    /// How many chunks.
    pub(super) chunks: u64,
    /// How many bytes they have.
    pub(super) bytes: u64,
    /// Whether these are all.
    pub(super) complete: bool,
}

impl Stored {
    /// Counts the chunks of an array. An array has no nodes below it, so whatever lies there and is no document is a chunk.
    pub(super) async fn of(hierarchy: &Hierarchy, path: &NodePath, dialect: Dialect) -> Result<Self, Failure> {
        let mut stored = Self { chunks: 0, bytes: 0, complete: true };
        let Some(prefix) = chunk_prefix(hierarchy, path, dialect).await? else { return Ok(stored) };
        let mut page = Page::first(MAX_PAGE);
        loop {
            let found = hierarchy.listable().list_prefix(&prefix, page).await?;
            let is_chunk = |key: &Key| !prefix.strip(key).is_some_and(|name| DOCUMENTS.contains(&name));
            for entry in found.keys.iter().filter(|entry| is_chunk(&entry.key)) {
                stored.chunks += 1;
                stored.bytes = stored.bytes.saturating_add(entry.info.size);
            }
            let Some(cursor) = found.cursor else { return Ok(stored) };
            if stored.chunks >= COUNTED {
                stored.complete = false;
                return Ok(stored);
            }
            page = Page::after(MAX_PAGE, cursor);
        }
    }
}

/// Whether a group has consolidated metadata.
pub(super) async fn is_consolidated(hierarchy: &Hierarchy, path: &NodePath, dialect: Dialect) -> Result<bool, Failure> {
    match dialect {
        Dialect::V2 => match Key::parse(&format!("{}.zmetadata", path.key_prefix())) {
            Ok(key) => Ok(hierarchy.readable().head(&key).await?.is_some()),
            // What cannot be a key is not there.
            Err(_) => Ok(false),
        },
        Dialect::V3 => {
            let Some(document) = zarr_json(hierarchy, path).await? else { return Ok(false) };
            let consolidated = Json::parse(document).ok().and_then(|document| document.get("consolidated_metadata"));
            Ok(consolidated.is_some_and(|consolidated| consolidated.is_object()))
        }
        Dialect::Draft => Ok(false),
    }
}

/// What the keys of an array's chunks begin with.
async fn chunk_prefix(hierarchy: &Hierarchy, path: &NodePath, dialect: Dialect) -> Result<Option<Prefix>, Failure> {
    if dialect != Dialect::Draft {
        return Ok(Prefix::parse(&path.key_prefix()).ok());
    }
    // Those of the draft are elsewhere, below the root of the hierarchy.
    for root in std::iter::once(path.clone()).chain(path.ancestors()) {
        let is_root = zarr_json(hierarchy, &root).await?.is_some_and(|document| draft::is_entry_point(&document));
        if let Some(below) = path.below(&root).filter(|_| is_root) {
            return Ok(Prefix::parse(&format!("{}{}", root.key_prefix(), draft::chunk_prefix(below))).ok());
        }
    }
    Err(LookError::Missing { path: path.clone() }.into())
}

async fn zarr_json(hierarchy: &Hierarchy, path: &NodePath) -> Result<Option<bytes::Bytes>, Failure> {
    let Ok(key) = Key::parse(&format!("{}zarr.json", path.key_prefix())) else { return Ok(None) };
    match hierarchy.readable().get(&key, None).await? {
        Some(value) if value.info.size <= LOOKED_INTO => Ok(Some(value.bytes().await?)),
        _ => Ok(None),
    }
}
