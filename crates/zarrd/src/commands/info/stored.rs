//! What the store has of a node beside its document.

use client::{Dialect, NodePath};
use meta::{documents::draft, json::Json};
use serde::Serialize;
use store::{Info, Key, MAX_PAGE, Page, Prefix};

use crate::{
    exit::Failure,
    hierarchy::{Hierarchy, LookError},
};

/// How many chunks are counted.
const COUNTED: u64 = 100_000;

/// The longest document that is looked into. Longer ones are not read into memory for a yes or no.
const LOOKED_INTO: u64 = 64 << 20;

/// How many nodes that consolidated metadata have are looked for.
const LOOKED_FOR: usize = 1000;

/// How many of them are told that are not there.
const TOLD: usize = 20;

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
        true => read(hierarchy, path, name).await?.and_then(|document| Json::parse(document).ok()),
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
    read(hierarchy, path, "zarr.json").await
}

/// A document of a node, unless it is too long to be looked into.
async fn read(hierarchy: &Hierarchy, path: &NodePath, name: &str) -> Result<Option<bytes::Bytes>, Failure> {
    let Ok(key) = Key::parse(&format!("{}{name}", path.key_prefix())) else { return Ok(None) };
    match hierarchy.readable().get(&key, None).await? {
        Some(value) if value.info.size <= LOOKED_INTO => Ok(Some(value.bytes().await?)),
        _ => Ok(None),
    }
}

async fn head(hierarchy: &Hierarchy, path: &NodePath, name: &str) -> Result<Option<Info>, Failure> {
    // What cannot be a key is not there.
    let Ok(key) = Key::parse(&format!("{}{name}", path.key_prefix())) else { return Ok(None) };
    Ok(hierarchy.readable().head(&key).await?)
}
