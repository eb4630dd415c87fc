//! The file `clean-shutdown`: checksums of the index's files after a clean shutdown.
//!
//! If the marker matches, the store opens without checking all entries of the index. It is removed, durably, before the
//! index is opened, because opening changes the index's files. If it does not match, all entries are checked before the
//! store is used.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{
    OpenError,
    durable::{remove_durably, write_durably},
    paths::Paths,
    regular_file,
};

/// The state of the clean-shutdown marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CleanShutdown {
    /// The store was shut down cleanly, and the index is unchanged since.
    Agrees,
    /// The marker exists, but another program changed the index.
    Disagrees,
    /// The store was not shut down cleanly.
    Absent,
}

/// The text of the file if the index is damaged: no marker.
const DAMAGED: &[u8] = b"the index is damaged\n";

#[derive(Debug, Serialize, Deserialize)]
struct MarkerFile {
    #[serde(rename = "mark")]
    marker: Marker,
    checksum: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Marker {
    epoch: u64,
    /// The last commit group of the log; the index has all of them.
    applied: u64,
    /// Checksum and length of each file, by its path relative to the index's directory.
    files: BTreeMap<String, (String, u64)>,
}

pub(crate) fn write(paths: &Paths, index: &Path, epoch: u64, applied: u64) -> io::Result<()> {
    let marker = Marker { epoch, applied, files: sum_files(index)? };
    let checksum = sum_text(&marker)?;
    let text = serde_json::to_vec_pretty(&MarkerFile { marker, checksum })?;
    write_durably(&paths.clean_shutdown(), &text)?;
    File::open(&paths.dir)?.sync_all()
}

/// Has the next start check all entries of the index, which was found to be damaged.
pub(crate) fn mark_damaged(paths: &Paths) -> io::Result<()> {
    write_durably(&paths.clean_shutdown(), DAMAGED)?;
    File::open(&paths.dir)?.sync_all()
}

pub(crate) fn read(paths: &Paths, index: &Path, epoch: u64, applied: u64) -> Result<CleanShutdown, OpenError> {
    let path = paths.clean_shutdown();
    let text = match regular_file::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(CleanShutdown::Absent),
        Err(error) => return Err(OpenError::io("read", path)(error)),
    };
    let Ok(MarkerFile { marker, checksum }) = serde_json::from_slice(&text) else {
        return Ok(CleanShutdown::Disagrees);
    };
    let sum = sum_text(&marker).map_err(OpenError::io("read", &path))?;
    let files = match sum_files(index) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
            return Ok(CleanShutdown::Disagrees);
        }
        files => files.map_err(OpenError::io("read", index))?,
    };
    let found = Marker { epoch, applied, files };
    Ok(if sum == checksum && found == marker { CleanShutdown::Agrees } else { CleanShutdown::Disagrees })
}

/// The epoch and the last commit group in the marker, if it exists and is sound; the index has all groups.
pub(crate) fn read_state(paths: &Paths) -> Option<(u64, u64)> {
    let text = regular_file::read(&paths.clean_shutdown()).ok()?;
    let MarkerFile { marker, checksum } = serde_json::from_slice(&text).ok()?;
    (sum_text(&marker).ok()? == checksum).then_some((marker.epoch, marker.applied))
}

pub(crate) fn remove(paths: &Paths) -> Result<(), OpenError> {
    remove_durably(&paths.clean_shutdown(), &paths.dir)
}

fn sum_text(marker: &Marker) -> io::Result<String> {
    Ok(format!("{:016x}", xxh3_64(&serde_json::to_vec(marker)?)))
}

fn sum_files(dir: &Path) -> io::Result<BTreeMap<String, (String, u64)>> {
    let mut sums = BTreeMap::new();
    let mut pending = vec![(dir.to_owned(), String::new())];
    while let Some((dir, prefix)) = pending.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                pending.push((entry.path(), format!("{name}/")));
            } else {
                sums.insert(name, sum_file(&entry.path())?);
            }
        }
    }
    Ok(sums)
}

fn sum_file(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let (mut hash, mut len) = (Xxh3::new(), 0_u64);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((format!("{:032x}", hash.digest128()), len));
        }
        hash.update(buffer.get(..read).unwrap_or_default());
        len = len.saturating_add(read as u64);
    }
}
