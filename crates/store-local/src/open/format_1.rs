//! Reading and upgrading stores of format 1, which had no log.
//!
//! Until the new format number is written, nothing that the old program reads changes, except the index, which it opens
//! as after a crash. An interrupted upgrade therefore leaves a store that either program opens.

use std::{fs, io, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

use super::{Identity, index_open_error, log_key};
use crate::{
    FileCorruption, OpenError,
    durable::remove_durably,
    index::{Index, IndexOptions},
    keyspace::{FORMAT_1_META_KEY, Meta},
    log::{Log, LogFiles, LogStart},
    paths::Paths,
};

const SLOT: usize = 4096;

/// The last acknowledged commit of a store of format 1, in the file `progress`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CommitWatermark {
    pub(super) epoch: u64,
    commit: u64,
}

impl CommitWatermark {
    /// Reads the later of the two slots that are valid.
    pub(super) fn read(paths: &Paths) -> Result<Self, OpenError> {
        let path = paths.format_1_watermark();
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::corrupt(path, FileCorruption::Missing));
            }
            bytes => bytes.map_err(OpenError::io("read", &path))?,
        };
        let latest = bytes.chunks(SLOT).take(2).filter_map(Self::decode).max();
        latest.ok_or_else(|| OpenError::corrupt(path, FileCorruption::ContentMismatch))
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let (fields, rest) = slot.split_first_chunk::<16>()?;
        if u64::from_be_bytes(*rest.first_chunk::<8>()?) != xxh3_64(fields) {
            return None;
        }
        let (epoch, commit) = fields.split_first_chunk::<8>()?;
        Some(Self { epoch: u64::from_be_bytes(*epoch), commit: u64::from_be_bytes(*commit.first_chunk::<8>()?) })
    }
}

/// Compares the metadata entry of an index of format 1 with its entries.
pub(super) fn check_index(paths: &Paths, index: &dyn Index, watermark: CommitWatermark) -> Result<Meta, OpenError> {
    let found = Meta::recount(index).map_err(|error| index_open_error(paths, error))?;
    let entry = index.get(FORMAT_1_META_KEY).map_err(|error| index_open_error(paths, error))?;
    let Some(entry) = entry else {
        // Nothing was ever committed.
        return if found == Meta::default() {
            Ok(found)
        } else {
            Err(OpenError::corrupt(paths.index(), FileCorruption::Missing))
        };
    };
    let (body, sum) = entry
        .split_last_chunk::<8>()
        .ok_or_else(|| OpenError::corrupt(paths.index(), FileCorruption::ContentMismatch))?;
    let fields: Vec<u64> = body.as_chunks::<8>().0.iter().map(|field| u64::from_be_bytes(*field)).collect();
    let &[commit, keys, digest] = fields.as_slice() else {
        return Err(OpenError::corrupt(paths.index(), FileCorruption::ContentMismatch));
    };
    if u64::from_be_bytes(*sum) != xxh3_64(body) {
        return Err(OpenError::corrupt(paths.index(), FileCorruption::ContentMismatch));
    }
    if commit < watermark.commit {
        return Err(OpenError::StaleIndex { file: paths.index(), found: commit, expected: watermark.commit });
    }
    if (found.entries, found.digest) != (keys, digest) {
        return Err(OpenError::corrupt(
            paths.index(),
            FileCorruption::KeyCountMismatch { found: found.entries, expected: keys },
        ));
    }
    Ok(found)
}

/// Upgrades a store of format 1. Blocks.
pub(super) fn upgrade(
    paths: &Paths,
    identity: Identity,
    index: IndexOptions,
    files: Arc<LogFiles>,
) -> Result<Identity, OpenError> {
    let watermark = CommitWatermark::read(paths)?;
    remove_durably(&paths.format_1_clean_shutdown(), &paths.dir)?;
    let index = index.open(&paths.index()).map_err(|error| index_open_error(paths, error))?;
    check_index(paths, &*index, watermark)?;
    drop(index);
    tracing::info!(dir = %paths.given().display(), "upgrading the store from format 1 to format 2");
    // Left by an interrupted upgrade.
    if paths.log().exists() {
        fs::remove_dir_all(paths.log()).map_err(OpenError::io("empty", paths.log()))?;
    }
    fs::create_dir_all(paths.log()).map_err(OpenError::io("create", paths.log()))?;
    let start = LogStart { key: log_key(&identity), epoch: watermark.epoch, next_group: 1, last: None };
    Log::create(files, start).map_err(OpenError::io("create", paths.log()))?;
    let identity = identity.upgraded();
    identity.write(paths)?;
    remove_durably(&paths.format_1_watermark(), &paths.dir)?;
    Ok(identity)
}
