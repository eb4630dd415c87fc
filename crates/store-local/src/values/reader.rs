//! Reading a value file. Every block is checked before its bytes are returned.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, sync::Arc};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;
use zarrd_store::{Key, StoreError};

use super::{
    BLOCK_BYTES, Buffers,
    buffers::BUFFER_BYTES,
    directory::{Directory, ImmediateOrBlocking, ValueFile, try_read},
    trailer::{Footer, Layout, PAGE_SUMS, PageSums, to_usize},
};
use crate::{ValueCorruption, blocking::run_blocking, record::FileRef};

/// An open value file whose footer has been checked.
#[derive(Clone)]
pub(crate) struct OpenValue {
    file: Arc<ValueFile>,
    key: Key,
    name: Arc<str>,
    layout: Layout,
    page_sums: Arc<PageSums>,
    /// The page of block checksums that was read last.
    page: Option<(u64, Arc<Vec<u64>>)>,
    buffers: Buffers,
}

/// The mode of a read.
#[derive(Clone, Copy)]
enum ReadMode {
    /// Fails if the disk would be accessed.
    NonBlocking,
    /// Blocks the thread.
    Blocking,
}

/// Errors of a read.
enum ReadError {
    /// Disk access is needed.
    WouldBlock,
    Failed(StoreError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl OpenValue {
    /// Opens the file of a record and checks its footer.
    pub(crate) async fn open(
        directory: &Directory,
        key: &Key,
        file: FileRef,
        buffers: &Buffers,
    ) -> Result<Self, StoreError> {
        match Self::open_with(directory, key, file, buffers, ReadMode::NonBlocking) {
            Ok(open) => return Ok(open),
            Err(ReadError::Failed(error)) => return Err(error),
            Err(ReadError::WouldBlock) => {}
        }
        let (directory, key, buffers) = (directory.clone(), key.clone(), buffers.clone());
        run_blocking(move || Self::open_now(&directory, &key, file, &buffers)).await
    }

    /// Opens the file like [`OpenValue::open`], blocking.
    pub(crate) fn open_now(
        directory: &Directory,
        key: &Key,
        file: FileRef,
        buffers: &Buffers,
    ) -> Result<Self, StoreError> {
        Self::open_with(directory, key, file, buffers, ReadMode::Blocking).map_err(ReadError::into_store_error)
    }

    /// Reads the next bytes of a range that is not empty: at most one buffer, ending with a block or the range. Removes
    /// them from the range.
    pub(crate) async fn read(&mut self, range: &mut Range<u64>) -> Result<Bytes, StoreError> {
        match self.read_with(range, ReadMode::NonBlocking) {
            Ok(bytes) => return Ok(bytes),
            Err(ReadError::Failed(error)) => return Err(error),
            Err(ReadError::WouldBlock) => {}
        }
        let (mut this, mut rest) = (self.clone(), range.clone());
        let (bytes, this, rest) = run_blocking(move || Ok((this.read_now(&mut rest)?, this, rest))).await?;
        *self = this;
        *range = rest;
        Ok(bytes)
    }

    /// Reads like [`OpenValue::read`], blocking.
    pub(crate) fn read_now(&mut self, range: &mut Range<u64>) -> Result<Bytes, StoreError> {
        self.read_with(range, ReadMode::Blocking).map_err(ReadError::into_store_error)
    }

    fn open_with(
        directory: &Directory,
        key: &Key,
        file: FileRef,
        buffers: &Buffers,
        wait: ReadMode,
    ) -> Result<Self, ReadError> {
        let name: Arc<str> = format!("values/{}", file.id.path()).into();
        let corrupt = |damage: ValueCorruption| ReadError::Failed(StoreError::corrupt(key.clone(), damage));
        let handle = match wait {
            ReadMode::NonBlocking => match directory.try_open_file(file.id) {
                ImmediateOrBlocking::Done(handle) => handle,
                ImmediateOrBlocking::WouldBlock => return Err(ReadError::WouldBlock),
            },
            ReadMode::Blocking => directory.open_file(file.id).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => corrupt(ValueCorruption::MissingFile { file: name.to_string() }),
                _ => ReadError::Failed(unreadable(key, &name, "open a value file", error)),
            })?,
        };
        let layout = Layout::new(file.size, key);
        let mut end = vec![0; layout.end_len()];
        ReadTarget { key, name: &name, layout }.read_at(&handle, &mut end, layout.end_offset(), wait)?;
        let footer = Footer { key, id: file.id, size: file.size, commit: 0 };
        let page_sums = PageSums::parse(&end, &footer, file.checksum);
        let page_sums = page_sums.ok_or_else(|| corrupt(ValueCorruption::Trailer { file: name.to_string() }))?;
        let (file, page_sums) = (Arc::new(handle), Arc::new(page_sums));
        Ok(Self { file, key: key.clone(), name, layout, page_sums, page: None, buffers: buffers.clone() })
    }

    fn read_with(&mut self, range: &mut Range<u64>, wait: ReadMode) -> Result<Bytes, ReadError> {
        // Complete blocks from the beginning of the range, as many as fit into a buffer.
        let first = range.start / BLOCK_BYTES;
        let begin = first.saturating_mul(BLOCK_BYTES);
        let last = range.end.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES).min(self.layout.size);
        let end = last.min(begin.saturating_add(BUFFER_BYTES as u64));
        let mut buffer = self.buffers.take();
        let blocks = buffer.slice_mut(0, to_usize(end.saturating_sub(begin)));
        self.target().read_at(&self.file, blocks, begin, wait)?;
        for (block, bytes) in (first..).zip(blocks.chunks(to_usize(BLOCK_BYTES))) {
            if self.sum_of(block, wait)? != Some(xxh3_64(bytes)) {
                return Err(self.corrupt(ValueCorruption::Block { file: self.name.to_string(), block }));
            }
        }
        let stop = range.end.min(end);
        let bytes = buffer.freeze(to_usize(range.start.saturating_sub(begin)), to_usize(stop.saturating_sub(begin)));
        range.start = stop;
        Ok(bytes)
    }

    /// The expected checksum of a block; `None` if the file has no such block.
    fn sum_of(&mut self, block: u64, wait: ReadMode) -> Result<Option<u64>, ReadError> {
        let number = block / PAGE_SUMS;
        let at = to_usize(block % PAGE_SUMS);
        if let Some((cached, sums)) = &self.page
            && *cached == number
        {
            return Ok(sums.get(at).copied());
        }
        let (offset, len) = self.layout.page(number);
        let mut page = vec![0; len];
        self.target().read_at(&self.file, &mut page, offset, wait)?;
        let Some(sums) = self.page_sums.page(number, &page) else {
            return Err(self.corrupt(ValueCorruption::Trailer { file: self.name.to_string() }));
        };
        let sum = sums.get(at).copied();
        self.page = Some((number, Arc::new(sums)));
        Ok(sum)
    }

    fn target(&self) -> ReadTarget<'_> {
        ReadTarget { key: &self.key, name: &self.name, layout: self.layout }
    }

    fn corrupt(&self, damage: ValueCorruption) -> ReadError {
        ReadError::Failed(StoreError::corrupt(self.key.clone(), damage))
    }
}

impl ReadError {
    fn into_store_error(self) -> StoreError {
        match self {
            Self::Failed(error) => error,
            Self::WouldBlock => StoreError::io("read a value file", io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// Reads and checks a complete value file. Blocks.
pub(crate) fn verify(directory: &Directory, key: &Key, file: FileRef, buffers: &Buffers) -> Result<(), StoreError> {
    let mut open = OpenValue::open_now(directory, key, file, buffers)?;
    let mut range = 0..file.size;
    while !range.is_empty() {
        open.read_now(&mut range)?;
    }
    Ok(())
}

/// A value whose file is read, as errors name it.
struct ReadTarget<'v> {
    key: &'v Key,
    name: &'v str,
    layout: Layout,
}

impl ReadTarget<'_> {
    /// Fills `buffer` from `offset`.
    fn read_at(&self, file: &File, buffer: &mut [u8], offset: u64, wait: ReadMode) -> Result<(), ReadError> {
        match wait {
            ReadMode::NonBlocking => match try_read(file, buffer, offset) {
                ImmediateOrBlocking::Done(()) => Ok(()),
                ImmediateOrBlocking::WouldBlock => Err(ReadError::WouldBlock),
            },
            ReadMode::Blocking => {
                file.read_exact_at(buffer, offset).map_err(|error| ReadError::Failed(self.failed(file, error)))
            }
        }
    }

    fn failed(&self, file: &File, error: io::Error) -> StoreError {
        if error.kind() != io::ErrorKind::UnexpectedEof {
            return unreadable(self.key, self.name, "read a value file", error);
        }
        let found = file.metadata().map_or(0, |metadata| metadata.len());
        let expected = self.layout.file_len();
        let damage = ValueCorruption::Length { file: self.name.to_owned(), expected, found };
        StoreError::corrupt(self.key.clone(), damage)
    }
}

/// The error of a file that exists and cannot be opened or read, such as one on an unreadable sector, or a directory in
/// its place. Failures for lack of memory, space or descriptors say nothing about the file.
fn unreadable(key: &Key, name: &str, action: &'static str, error: io::Error) -> StoreError {
    if matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted) {
        return StoreError::io(action, error);
    }
    match StoreError::io(action, error) {
        StoreError::Io { source, .. } => {
            StoreError::corrupt(key.clone(), ValueCorruption::Unreadable { file: name.to_owned(), source })
        }
        lack => lack,
    }
}
