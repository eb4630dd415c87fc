//! What `zarrd serve PATH` serves: a store of zarrd's own, or the files of other programs.

use std::{fs, io, path::Path};

use zarrd_store_local::DirectoryForm;

use super::{ConfigError, Location};

/// The location that the argument of `serve` means.
#[derive(Debug)]
pub(super) struct ServedDirectory {
    pub(super) location: Location,
    /// What to do for the other choice, if the directory itself decided.
    pub(super) other_choice: Option<String>,
}

impl ServedDirectory {
    /// A text with a kind is the location of a store. A path is a store of zarrd's own if there is one, or nothing yet, and
    /// otherwise a directory of files that other programs write.
    pub(super) fn new(text: &str) -> Result<Self, ConfigError> {
        let location = text.parse().map_err(|source| ConfigError::ServedLocation { text: text.to_owned(), source })?;
        let Location::Sled(path) = &location else { return Ok(Self { location, other_choice: None }) };
        if text.starts_with("sled:") {
            return Ok(Self { location, other_choice: None });
        }
        let failed = |source| ConfigError::ServedDirectory { path: path.clone(), source };
        match DirectoryForm::of(path).map_err(failed)? {
            DirectoryForm::Empty => Ok(Self { location, other_choice: None }),
            DirectoryForm::Store => {
                let location = if has_redb_index(path) { Location::Redb(path.clone()) } else { location };
                Ok(Self { location, other_choice: None })
            }
            DirectoryForm::Part(part) => Err(ConfigError::DamagedStore { path: path.clone(), part }),
            DirectoryForm::Foreign => {
                fs::read_dir(path).map_err(failed)?;
                let files = format!("dir:{}", path.display());
                let location = files.parse().map_err(|source| ConfigError::ServedLocation { text: files, source })?;
                let other = format!(
                    "the files of other programs, read-only; for a store that can be written: zarrd import {0}, then \
                     zarrd serve",
                    path.display()
                );
                Ok(Self { location, other_choice: Some(other) })
            }
        }
    }
}

/// True if a store says that its index is that of redb. A file that cannot be read is reported when the store is opened.
fn has_redb_index(directory: &Path) -> bool {
    let read = || -> io::Result<serde_json::Value> {
        let text = fs::read_to_string(directory.join("zarrd.json"))?;
        serde_json::from_str(&text).map_err(io::Error::other)
    };
    read().is_ok_and(|identity| identity.get("index").and_then(serde_json::Value::as_str) == Some("redb"))
}
