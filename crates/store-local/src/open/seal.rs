//! The file `seal`: checksums of the index's files as a clean stop left them.
//!
//! It makes any change of the files known at the next start, also where no entry is concerned, and spares that start
//! reading the index entry by entry. It is removed before anything is written, so after a crash there is none.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::{Paths, damaged, identity::write_durably, sync_dir};
use crate::{Damage, OpenError};

/// Whether the index was found as a clean stop left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sealed {
    /// There is a seal, and the index agrees with it.
    Yes,
    /// There is no seal: the store was not closed.
    No,
}

#[derive(Debug, Serialize, Deserialize)]
struct Envelope {
    seal: Seal,
    checksum: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Seal {
    commit: u64,
    /// Checksum and length of each file, by its path within the index's directory.
    files: BTreeMap<String, (String, u64)>,
}

pub(super) fn write(paths: &Paths, commit: u64) -> io::Result<()> {
    let seal = Seal { commit, files: sum_files(&paths.index())? };
    let checksum = sum_text(&seal)?;
    let text = serde_json::to_vec_pretty(&Envelope { seal, checksum })?;
    write_durably(&paths.seal(), &text)?;
    File::open(&paths.dir)?.sync_all()
}

pub(super) fn verify(paths: &Paths, commit: u64) -> Result<Sealed, OpenError> {
    let path = paths.seal();
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Sealed::No),
        Err(error) => return Err(OpenError::io("read", path)(error)),
    };
    let envelope: Envelope =
        serde_json::from_slice(&text).map_err(|error| damaged(path.clone(), Damage::Text(error)))?;
    let checksum = sum_text(&envelope.seal).map_err(OpenError::io("read", &path))?;
    if checksum != envelope.checksum {
        return Err(damaged(path, Damage::Content));
    }
    let seal = envelope.seal;
    if seal.commit < commit {
        return Err(OpenError::Behind { file: path, found: seal.commit, expected: commit });
    }
    let index = paths.index();
    let found = sum_files(&index).map_err(OpenError::io("read", &index))?;
    for (name, sum) in &seal.files {
        match found.get(name) {
            None => return Err(damaged(index.join(name), Damage::Missing)),
            Some(other) if other != sum => return Err(damaged(index.join(name), Damage::Content)),
            Some(_) => {}
        }
    }
    match found.keys().find(|name| !seal.files.contains_key(*name)) {
        Some(name) => Err(damaged(index.join(name), Damage::Unexpected)),
        None => Ok(Sealed::Yes),
    }
}

pub(super) fn remove(paths: &Paths) -> Result<(), OpenError> {
    match fs::remove_file(paths.seal()) {
        Ok(()) => sync_dir(&paths.dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OpenError::io("remove", paths.seal())(error)),
    }
}

fn sum_text(seal: &Seal) -> io::Result<String> {
    Ok(format!("{:016x}", xxh3_64(&serde_json::to_vec(seal)?)))
}

fn sum_files(dir: &Path) -> io::Result<BTreeMap<String, (String, u64)>> {
    let mut sums = BTreeMap::new();
    let mut waiting = vec![(dir.to_owned(), String::new())];
    while let Some((dir, prefix)) = waiting.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                waiting.push((entry.path(), format!("{name}/")));
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
