//! What the store has of a node beside its document.

use bytes::Bytes;
use client::{Dialect, NodePath};
use meta::{
    ArrayModel,
    chunk_keys::ChunkKeyDecoder,
    documents::{draft, parse_object},
    json::Json,
};
use serde::Serialize;
use store::{Key, MAX_PAGE_ENTRIES, PageRequest, Prefix, ValueMeta};

use crate::{exit::Failure, hierarchy::Hierarchy};

/// How many keys are looked at.
const COUNTED: u64 = 100_000;

/// The longest document that is looked into. Longer ones are not read into memory for a yes or no.
const LOOKED_INTO: u64 = 64 << 20;

/// How many nodes that consolidated metadata have are looked for.
const LOOKED_FOR: usize = 1000;

/// How many of them are told that are not there.
const TOLD: usize = 20;

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

/// The keys of an array's chunks.
#[derive(Debug)]
struct ChunkKeys {
    /// What they begin with.
    prefix: Prefix,
    chunks: ChunkKeyDecoder,
}

impl ChunkKeys {
    /// Those of an array at a path of v2 or v3, or of the hierarchy of the draft at a path.
    fn of(model: &ArrayModel, path: &NodePath) -> Option<Self> {
        let prefix = Prefix::parse(&format!("{}{}", path.key_prefix(), model.chunk_prefix)).ok()?;
        Some(Self { prefix, chunks: model.chunk_key_decoder() })
    }

    /// Whether this is the key of a chunk, and not of something else below the array, or of a chunk that a larger array had there.
    fn has(&self, key: &Key) -> bool {
        let position = self.prefix.strip(key).and_then(|name| self.chunks.decode(name));
        position.is_some_and(|position| self.chunks.is_within_array(&position))
    }
}

impl Stored {
    /// Counts the chunks of an array, as zarr-python's `nchunks_initialized` does: values under the keys that chunks within its shape have. `None` where it is not known which
    /// these are.
    pub(super) async fn of(
        hierarchy: &Hierarchy,
        path: &NodePath,
        dialect: Dialect,
        model: Option<&ArrayModel>,
    ) -> Result<Option<Self>, Failure> {
        let keys = match dialect {
            Dialect::Draft => keys_of_draft(hierarchy, path).await?,
            Dialect::V2 | Dialect::V3 => model.and_then(|model| ChunkKeys::of(model, path)),
        };
        let Some(keys) = keys else { return Ok(None) };
        let mut stored = Self { chunks: 0, bytes: 0, complete: true };
        let (mut page, mut seen) = (PageRequest::first(MAX_PAGE_ENTRIES), 0_u64);
        loop {
            let found = hierarchy.listable().list_prefix(&keys.prefix, page).await?;
            seen = seen.saturating_add(found.keys.len() as u64);
            for entry in found.keys.iter().filter(|entry| keys.has(&entry.key)) {
                stored.chunks += 1;
                stored.bytes = stored.bytes.saturating_add(entry.meta.size);
            }
            let Some(cursor) = found.cursor else { return Ok(Some(stored)) };
            if seen >= COUNTED {
                stored.complete = false;
                return Ok(Some(stored));
            }
            page = PageRequest::after(MAX_PAGE_ENTRIES, cursor);
        }
    }
}

/// What is known of the consolidated metadata of a group.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Copies {
    /// Whether there are any.
    pub(super) there: bool,
    /// The paths below the group of nodes that have no documents of their own.
    pub(super) only: Vec<String>,
    /// Whether there may be more of these.
    pub(super) more: bool,
}

/// Looks at the consolidated metadata of a group, and for the documents of the nodes that these have copies of.
pub(super) async fn copies(hierarchy: &Hierarchy, path: &NodePath, dialect: Dialect) -> Result<Copies, Failure> {
    let (name, suffix) = match dialect {
        Dialect::V2 => (".zmetadata", ""),
        Dialect::V3 => ("zarr.json", "/zarr.json"),
        Dialect::Draft => return Ok(Copies::default()),
    };
    let Some(there) = head(hierarchy, path, name).await? else { return Ok(Copies::default()) };
    let document = match there.size <= LOOKED_INTO {
        true => read(hierarchy, path, name).await?.and_then(|document| parse_object(document).ok()),
        false => None,
    };
    let metadata = match dialect {
        Dialect::V2 => document.as_ref().and_then(|document| document.get("metadata")),
        _ => {
            let copies = document.as_ref().and_then(|document| document.get("consolidated_metadata"));
            let Some(copies) = copies.filter(Json::is_object) else { return Ok(Copies::default()) };
            copies.get("metadata")
        }
    };
    let mut copies = Copies { there: true, ..Copies::default() };
    let names = metadata.iter().flat_map(Json::members).filter_map(|member| member.name());
    let mut looked = 0_usize;
    for name in names {
        let (below, document) = match suffix {
            "" => name.rsplit_once('/').unwrap_or(("", &name)),
            document => (name.as_str(), document.trim_start_matches('/')),
        };
        if below.is_empty() || document == ".zattrs" {
            continue;
        }
        looked += 1;
        if looked > LOOKED_FOR || copies.only.len() >= TOLD {
            copies.more = true;
            break;
        }
        let Ok(at) = NodePath::parse(&format!("{}{below}", path.key_prefix())) else { continue };
        if head(hierarchy, &at, document).await?.is_none() {
            copies.only.push(below.to_owned());
        }
    }
    Ok(copies)
}

/// The keys of the chunks of an array of the draft. They are elsewhere, below the root of the hierarchy, and so is the document that says which they are.
async fn keys_of_draft(hierarchy: &Hierarchy, path: &NodePath) -> Result<Option<ChunkKeys>, Failure> {
    for root in std::iter::once(path.clone()).chain(path.ancestors()) {
        let entry = zarr_json(hierarchy, &root).await?.and_then(|document| draft::entry_point(document).ok());
        let Some((entry, below)) = entry.zip(path.relative_to(&root)) else { continue };
        let document = document(hierarchy, &format!("{}{}", root.key_prefix(), entry.array_key(below))).await?;
        let model = document.and_then(|document| draft::array(document, below).ok());
        return Ok(model.and_then(|model| ChunkKeys::of(&model, &root)));
    }
    Ok(None)
}

async fn zarr_json(hierarchy: &Hierarchy, path: &NodePath) -> Result<Option<Bytes>, Failure> {
    read(hierarchy, path, "zarr.json").await
}

/// A document of a node, unless it is too long to be looked into.
async fn read(hierarchy: &Hierarchy, path: &NodePath, name: &str) -> Result<Option<Bytes>, Failure> {
    document(hierarchy, &format!("{}{name}", path.key_prefix())).await
}

/// The value of a key that is not longer than a document.
async fn document(hierarchy: &Hierarchy, key: &str) -> Result<Option<Bytes>, Failure> {
    // What cannot be a key is not there.
    let Ok(key) = Key::parse(key) else { return Ok(None) };
    match hierarchy.readable().get(&key, None).await? {
        Some(value) if value.meta.size <= LOOKED_INTO => Ok(Some(value.bytes().await?)),
        _ => Ok(None),
    }
}

async fn head(hierarchy: &Hierarchy, path: &NodePath, name: &str) -> Result<Option<ValueMeta>, Failure> {
    // What cannot be a key is not there.
    let Ok(key) = Key::parse(&format!("{}{name}", path.key_prefix())) else { return Ok(None) };
    Ok(hierarchy.readable().head(&key).await?)
}
