//! Spill files for small staged values that do not fit into memory.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;
use zarrd_store::StoreError;

/// The size at which a new spill file begins, in bytes.
const FILE_BYTES: u64 = 64 << 20;

/// Appends values to unlinked files, so that nothing is left when the process ends. The space of a file is freed with
/// its last value.
pub(crate) struct SpillFiles {
    dir: PathBuf,
    current: Mutex<Option<(Arc<File>, u64)>>,
}

/// A value in a spill file.
pub(crate) struct SpilledValue {
    file: Arc<File>,
    offset: u64,
    len: usize,
    checksum: u64,
}

impl SpillFiles {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, current: Mutex::new(None) }
    }

    /// Appends a value. Blocks.
    pub(crate) fn push(&self, bytes: &[u8]) -> Result<SpilledValue, StoreError> {
        let io = |error| StoreError::io("write a spilled value", error);
        let (file, offset) = {
            let mut current = self.current.lock();
            let (file, offset) = match current.take() {
                Some((file, end)) if end < FILE_BYTES => (file, end),
                _ => (Arc::new(self.create().map_err(io)?), 0),
            };
            *current = Some((Arc::clone(&file), offset.saturating_add(bytes.len() as u64)));
            (file, offset)
        };
        file.write_all_at(bytes, offset).map_err(io)?;
        Ok(SpilledValue { file, offset, len: bytes.len(), checksum: xxh3_64(bytes) })
    }

    fn create(&self) -> std::io::Result<File> {
        let path = self.dir.join("spill");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }
}

impl SpilledValue {
    pub(crate) fn len(&self) -> u64 {
        self.len as u64
    }

    /// Reads the value back. Blocks.
    pub(crate) fn read(&self) -> Result<Bytes, StoreError> {
        let mut bytes = vec![0; self.len];
        let read = self.file.read_exact_at(&mut bytes, self.offset);
        read.map_err(|error| StoreError::io("read a spilled value", error))?;
        if xxh3_64(&bytes) != self.checksum {
            let error = std::io::Error::new(std::io::ErrorKind::InvalidData, "the checksum does not match");
            return Err(StoreError::io("read a spilled value", error));
        }
        Ok(bytes.into())
    }
}
