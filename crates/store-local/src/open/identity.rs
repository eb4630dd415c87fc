//! The file `zarrd.json`: the identity of a store.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    FileCorruption, IndexKind, OpenError,
    durable::{sync_dir, write_durably},
    paths::Paths,
    regular_file,
};

/// The format of a store that has had a value of several files. A store gets this and the next one with the first change
/// that needs it, so that earlier programs open all others.
pub(crate) const FORMAT_WITH_JOINED_VALUES: u32 = 4;
/// The format of a store in which values have attributes, or which has had uploads.
pub(crate) const FORMAT_WITH_ATTRIBUTES: u32 = 3;
/// The format of other stores.
const FORMAT: u32 = 2;
/// The previous format, without a log.
const FORMAT_1: u32 = 1;

/// The identity of a store, which never changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    format: u32,
    /// A random number, which versions are derived from.
    #[serde(with = "hex")]
    pub(crate) id: u64,
    /// A random number, which cursors are signed with. Unlike versions, it is never sent to clients.
    #[serde(with = "hex")]
    pub(crate) secret: u64,
    pub(crate) index: IndexKind,
    /// The checksum of the other members: with a wrong id, everything else would look damaged.
    #[serde(with = "hex")]
    checksum: u64,
}

/// The member that all formats share.
#[derive(Deserialize)]
struct FormatProbe {
    format: u32,
}

impl Identity {
    pub(super) fn new(index: IndexKind) -> Self {
        let identity = Self { format: FORMAT, id: rand::random(), secret: rand::random(), index, checksum: 0 };
        Self { checksum: identity.sum(), ..identity }
    }

    pub(super) fn read(paths: &Paths) -> Result<Self, OpenError> {
        Self::read_file(paths, paths.identity())
    }

    /// Reads the identity, or its copy if it is damaged or missing. `None` if neither can be read. Fails if the store has
    /// a newer format.
    pub(crate) fn read_either(paths: &Paths) -> Result<Option<Self>, OpenError> {
        let first = Self::read(paths);
        if let Ok(identity) = first {
            return Ok(Some(identity));
        }
        match (Self::read_file(paths, paths.identity_copy()), first) {
            (Ok(identity), _) => Ok(Some(identity)),
            (Err(newer @ OpenError::UnsupportedFormat { .. }), _)
            | (_, Err(newer @ OpenError::UnsupportedFormat { .. })) => Err(newer),
            _ => Ok(None),
        }
    }

    /// The reason for which the identity cannot be read, if its file exists.
    pub(crate) fn read_reason(paths: &Paths) -> Option<OpenError> {
        paths.identity().symlink_metadata().ok().and_then(|_| Self::read(paths).err())
    }

    /// Writes the copy of the identity, unless it is there. Its loss is no reason not to open a store.
    pub(crate) fn write_copy(&self, paths: &Paths) {
        let is_same = |copy: Self| copy.checksum == self.checksum && copy.format == self.format;
        if Self::read_file(paths, paths.identity_copy()).is_ok_and(is_same) {
            return;
        }
        let written = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|text| write_durably(&paths.identity_copy(), &text)) {
            tracing::debug!(%error, "could not write the copy of zarrd.json");
        }
    }

    fn read_file(paths: &Paths, path: PathBuf) -> Result<Self, OpenError> {
        let text = regular_file::read(&path).map_err(OpenError::io("read", &path))?;
        let unreadable = |error| OpenError::corrupt(path.clone(), FileCorruption::InvalidText(error));
        let FormatProbe { format } = serde_json::from_slice(&text).map_err(unreadable)?;
        if !(FORMAT_1..=FORMAT_WITH_JOINED_VALUES).contains(&format) {
            return Err(OpenError::UnsupportedFormat { dir: paths.dir.clone(), found: format });
        }
        let identity: Self = serde_json::from_slice(&text).map_err(unreadable)?;
        if identity.checksum != identity.sum() {
            return Err(OpenError::corrupt(path, FileCorruption::ContentMismatch));
        }
        Ok(identity)
    }

    /// True if the store has the previous format.
    pub(super) fn is_format_1(&self) -> bool {
        self.format == FORMAT_1
    }

    /// The identity of the same store in the current format.
    pub(super) fn upgraded(self) -> Self {
        let identity = Self { format: FORMAT, ..self };
        Self { checksum: identity.sum(), ..identity }
    }

    pub(crate) fn format(&self) -> u32 {
        self.format
    }

    /// The identity of the same store in another format.
    pub(crate) fn with_format(&self, format: u32) -> Self {
        let identity = Self { format, ..self.clone() };
        Self { checksum: identity.sum(), ..identity }
    }

    fn sum(&self) -> u64 {
        let Self { format, id, secret, index, checksum: _ } = self;
        xxh3_64(format!("{format} {id:016x} {secret:016x} {index}").as_bytes())
    }

    pub(crate) fn write(&self, paths: &Paths) -> Result<(), OpenError> {
        let path = paths.identity();
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| OpenError::corrupt(path.clone(), FileCorruption::InvalidText(error)))?;
        write_durably(&path, &text).map_err(OpenError::io("write", &path))?;
        sync_dir(&paths.dir)
    }
}

/// Numbers as hexadecimal text, since many JSON readers lose digits of large numbers.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{number:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}
