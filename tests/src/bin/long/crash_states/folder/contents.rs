//! The contents of the files of a run, by which each value says which operation set it.

use std::{collections::BTreeMap, fs, path::Path};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    super::{history::KeyState, workload::value},
    engine::{CHUNK, Engine},
};

/// The keys of values that are set one by one begin with this.
pub(super) const VALUES: &str = "v/";

/// The documents of a tree, by their keys below it.
#[derive(Debug)]
pub(super) struct TreeDocuments(BTreeMap<String, Vec<u8>>);

/// The names of the documents of a tree, the topmost first.
pub(super) const DOCUMENTS: [&str; 4] = ["zarr.json", "x/zarr.json", "g/zarr.json", "g/y/zarr.json"];

impl TreeDocuments {
    /// Declares a tree in a new folder, and reads its documents.
    pub(super) async fn read(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("make a folder");
        let engine = Engine::open(folder).await.expect("open a folder");
        engine.declare("t").await.expect("declare a tree");
        let document = |name: &str| fs::read(folder.join("t").join(name)).expect("read a document");
        let documents = DOCUMENTS.iter().map(|name| ((*name).to_owned(), document(name))).collect();
        fs::remove_dir_all(folder).expect("remove a folder");
        Self(documents)
    }

    /// The id of a document's declaration, and its length.
    pub(super) fn declared(&self, tree: &str, name: &str) -> (u64, u32) {
        let len = u32::try_from(self.0[name].len()).expect("a small document");
        (document_id(&format!("{tree}/{name}")), len)
    }

    /// The operation that set the value of a key, and its length. Fails if the value is not complete.
    pub(super) fn identify(&self, key: &str, bytes: &[u8]) -> Result<KeyState, String> {
        let len = u32::try_from(bytes.len()).expect("a small value");
        if key.starts_with(VALUES) {
            let (id, _) =
                bytes.split_first_chunk::<8>().ok_or_else(|| format!("half a file: {key} has {len} bytes"))?;
            let id = u64::from_be_bytes(*id);
            return match bytes == value(id, key, len) {
                true => Ok(Some((id, len))),
                false => Err(format!("half a file: {key} has {len} bytes, not all of one set")),
            };
        }
        let (tree, name) = key.split_once('/').ok_or_else(|| format!("the file {key} belongs to nothing"))?;
        if let Some(document) = self.0.get(name) {
            return match bytes == document {
                true => Ok(Some((document_id(key), len))),
                false => Err(format!("half a file: the document {name} of {tree} has {len} bytes")),
            };
        }
        chunk_id(bytes).map(|id| Some((id, len))).ok_or_else(|| format!("half a file: the chunk {key} has {len} bytes"))
    }
}

fn document_id(key: &str) -> u64 {
    xxh3_64(key.as_bytes())
}

/// The operation that wrote a chunk last: the whole of it, or its second half.
fn chunk_id(bytes: &[u8]) -> Option<u64> {
    let (elements, rest) = bytes.as_chunks::<4>();
    let (first, second) = elements.split_at_checked(elements.len() / 2)?;
    let is_one = |half: &[[u8; 4]]| half.iter().all(|element| element == &half[0]);
    let is_complete = rest.is_empty() && elements.len() as u64 == CHUNK && is_one(first) && is_one(second);
    let (first, second) = (u32::from_le_bytes(*first.first()?), u32::from_le_bytes(*second.first()?));
    (is_complete && first <= second).then(|| u64::from(second))
}
