//! Stored chunks of arrays, and consolidated metadata of groups.

use bytes::Bytes;
use serde::Serialize;
use zarrd_client::{Dialect, NodePath};
use zarrd_meta::{
    ArrayModel,
    chunk_keys::ChunkKeyDecoder,
    documents::{draft, parse_object},
    json::Json,
};
use zarrd_store::{Key, MAX_PAGE_ENTRIES, PageRequest, Prefix, ValueMeta};

use crate::{error::Error, hierarchy::Hierarchy};

/// Number of keys after which counting stops.
const MAX_COUNTED_KEYS: u64 = 100_000;

/// Maximum size of a document that is read, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// Maximum number of nodes in consolidated metadata whose documents are looked up.
const MAX_CHECKED_NODES: usize = 1000;

/// Maximum number of nodes without documents that are reported.
const MAX_REPORTED_NODES: usize = 20;

/// Number and size of the stored chunks of an array.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct StoredChunks {
    /// Number of chunks.
    pub(super) chunks: u64,
    /// Their size in bytes.
    pub(super) bytes: u64,
    /// True if all chunks were counted.
    pub(super) complete: bool,
}

/// The keys of an array's chunks.
#[derive(Debug)]
struct ChunkKeys {
    /// Common prefix of the keys.
    prefix: Prefix,
    chunks: ChunkKeyDecoder,
}

impl ChunkKeys {
    /// The keys of a v2 or v3 array at a path, or of an array in the draft hierarchy at a path.
    fn new(model: &ArrayModel, path: &NodePath) -> Option<Self> {
        let prefix = Prefix::parse(&format!("{}{}", path.key_prefix(), model.chunk_prefix)).ok()?;
        Some(Self { prefix, chunks: model.chunk_key_decoder() })
    }

    /// True if the key is that of a chunk within the shape of the array.
    fn contains(&self, key: &Key) -> bool {
        let position = self.prefix.strip(key).and_then(|name| self.chunks.decode(name));
        position.is_some_and(|position| self.chunks.is_within_array(&position))
    }
}

impl StoredChunks {
    /// Counts the chunks of an array that are within its shape, like zarr-python's `nchunks_initialized`. Returns
    /// `None` if their keys are unknown.
    pub(super) async fn count(
        hierarchy: &Hierarchy,
        path: &NodePath,
        dialect: Dialect,
        model: Option<&ArrayModel>,
    ) -> Result<Option<Self>, Error> {
        let keys = match dialect {
            Dialect::Draft => draft_chunk_keys(hierarchy, path).await?,
            Dialect::V2 | Dialect::V3 => model.and_then(|model| ChunkKeys::new(model, path)),
        };
        let Some(keys) = keys else { return Ok(None) };
        let mut stored = Self { chunks: 0, bytes: 0, complete: true };
        let (mut page, mut listed) = (PageRequest::first(MAX_PAGE_ENTRIES), 0_u64);
        loop {
            let listing = hierarchy.listable().list_prefix(&keys.prefix, page).await?;
            listed = listed.saturating_add(listing.keys.len() as u64);
            for entry in listing.keys.iter().filter(|entry| keys.contains(&entry.key)) {
                stored.chunks += 1;
                stored.bytes = stored.bytes.saturating_add(entry.meta.size);
            }
            let Some(cursor) = listing.cursor else { return Ok(Some(stored)) };
            if listed >= MAX_COUNTED_KEYS {
                stored.complete = false;
                return Ok(Some(stored));
            }
            page = PageRequest::after(MAX_PAGE_ENTRIES, cursor);
        }
    }
}

/// The consolidated metadata of a group.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConsolidatedMetadata {
    /// True if the group has consolidated metadata.
    pub(super) exists: bool,
    /// Relative paths of nodes that have no documents of their own.
    pub(super) missing_nodes: Vec<String>,
    /// True if there may be more such nodes.
    pub(super) truncated: bool,
}

/// Reads the consolidated metadata of a group, and looks up the documents of its nodes.
pub(super) async fn consolidated_metadata(
    hierarchy: &Hierarchy,
    path: &NodePath,
    dialect: Dialect,
) -> Result<ConsolidatedMetadata, Error> {
    let (name, suffix) = match dialect {
        Dialect::V2 => (".zmetadata", ""),
        Dialect::V3 => ("zarr.json", "/zarr.json"),
        Dialect::Draft => return Ok(ConsolidatedMetadata::default()),
    };
    let Some(info) = head(hierarchy, path, name).await? else { return Ok(ConsolidatedMetadata::default()) };
    let document = match info.size <= MAX_DOCUMENT_BYTES {
        true => read(hierarchy, path, name).await?.and_then(|document| parse_object(document).ok()),
        false => None,
    };
    let metadata = match dialect {
        Dialect::V2 => document.as_ref().and_then(|document| document.get("metadata")),
        _ => {
            let consolidated = document.as_ref().and_then(|document| document.get("consolidated_metadata"));
            let Some(consolidated) = consolidated.filter(Json::is_object) else {
                return Ok(ConsolidatedMetadata::default());
            };
            consolidated.get("metadata")
        }
    };
    let mut consolidated = ConsolidatedMetadata { exists: true, ..ConsolidatedMetadata::default() };
    let names = metadata.iter().flat_map(Json::members).filter_map(|member| member.name());
    let mut checked = 0_usize;
    for name in names {
        let (relative, document) = match suffix {
            "" => name.rsplit_once('/').unwrap_or(("", &name)),
            document => (name.as_str(), document.trim_start_matches('/')),
        };
        if relative.is_empty() || document == ".zattrs" {
            continue;
        }
        checked += 1;
        if checked > MAX_CHECKED_NODES || consolidated.missing_nodes.len() >= MAX_REPORTED_NODES {
            consolidated.truncated = true;
            break;
        }
        let Ok(node) = NodePath::parse(&format!("{}{relative}", path.key_prefix())) else { continue };
        if head(hierarchy, &node, document).await?.is_none() {
            consolidated.missing_nodes.push(relative.to_owned());
        }
    }
    Ok(consolidated)
}

/// The keys of the chunks of a draft array. They lie below the root of its hierarchy, whose entry point determines the
/// key of the array's document.
async fn draft_chunk_keys(hierarchy: &Hierarchy, path: &NodePath) -> Result<Option<ChunkKeys>, Error> {
    for root in std::iter::once(path.clone()).chain(path.ancestors()) {
        let document = read(hierarchy, &root, "zarr.json").await?;
        let entry = document.and_then(|document| draft::entry_point(document).ok());
        let Some((entry, relative)) = entry.zip(path.relative_to(&root)) else { continue };
        let document = read_key(hierarchy, &format!("{}{}", root.key_prefix(), entry.array_key(relative))).await?;
        let model = document.and_then(|document| draft::array(document, relative).ok());
        return Ok(model.and_then(|model| ChunkKeys::new(&model, &root)));
    }
    Ok(None)
}

/// Reads a document of a node; `None` if it does not exist or is too large.
async fn read(hierarchy: &Hierarchy, path: &NodePath, name: &str) -> Result<Option<Bytes>, Error> {
    read_key(hierarchy, &format!("{}{name}", path.key_prefix())).await
}

/// Reads the value of a key; `None` if it does not exist or is too large.
async fn read_key(hierarchy: &Hierarchy, key: &str) -> Result<Option<Bytes>, Error> {
    // An invalid key has no value.
    let Ok(key) = Key::parse(key) else { return Ok(None) };
    match hierarchy.readable().get(&key, None).await? {
        Some(value) if value.meta.size <= MAX_DOCUMENT_BYTES => Ok(Some(value.bytes().await?)),
        _ => Ok(None),
    }
}

async fn head(hierarchy: &Hierarchy, path: &NodePath, name: &str) -> Result<Option<ValueMeta>, Error> {
    // An invalid key has no value.
    let Ok(key) = Key::parse(&format!("{}{name}", path.key_prefix())) else { return Ok(None) };
    Ok(hierarchy.readable().head(&key).await?)
}
