//! Reading a value file: every block is checked before any of its bytes leave.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, sync::Arc};

use bytes::Bytes;
use store::{Key, StoreError};
use xxhash_rust::xxh3::xxh3_64;

use super::{
    BLOCK, Buffers,
    buffers::PIECE,
    directory::{Directory, Quick, ValueFile, read_quickly},
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
    /// The page of block sums that was read last.
    page: Option<(u64, Arc<Vec<u64>>)>,
    buffers: Buffers,
}

/// How a read may go about it.
#[derive(Clone, Copy)]
enum Wait {
    /// Without waiting for the disk.
    Never,
    /// As long as it takes, on a thread that may block.
    AsLongAsItTakes,
}

/// What kept a read from succeeding.
enum ReadError {
    /// The disk is needed.
    WouldWait,
    Failed(StoreError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl OpenValue {
    /// Opens the file that a record of `key` names and checks its footer.
    pub(crate) async fn open(
        directory: &Directory,
        key: &Key,
        file: FileRef,
        buffers: &Buffers,
    ) -> Result<Self, StoreError> {
        match Self::open_with(directory, key, file, buffers, Wait::Never) {
            Ok(open) => return Ok(open),
            Err(ReadError::Failed(error)) => return Err(error),
            Err(ReadError::WouldWait) => {}
        }
        let (directory, key, buffers) = (directory.clone(), key.clone(), buffers.clone());
        run_blocking(move || Self::open_now(&directory, &key, file, &buffers)).await
    }

    /// As [`OpenValue::open`], on a thread that may block.
    pub(crate) fn open_now(
        directory: &Directory,
        key: &Key,
        file: FileRef,
        buffers: &Buffers,
    ) -> Result<Self, StoreError> {
        Self::open_with(directory, key, file, buffers, Wait::AsLongAsItTakes).map_err(ReadError::into_store_error)
    }

    /// The next bytes of a range that is not empty: at most one piece, which ends with a block or with the range. The
    /// range is cut to what is left of it.
    pub(crate) async fn read(&mut self, range: &mut Range<u64>) -> Result<Bytes, StoreError> {
        match self.read_with(range, Wait::Never) {
            Ok(bytes) => return Ok(bytes),
            Err(ReadError::Failed(error)) => return Err(error),
            Err(ReadError::WouldWait) => {}
        }
        let (mut this, mut rest) = (self.clone(), range.clone());
        let (bytes, this, rest) = run_blocking(move || Ok((this.read_now(&mut rest)?, this, rest))).await?;
        *self = this;
        *range = rest;
        Ok(bytes)
    }

    /// As [`OpenValue::read`], on a thread that may block.
    pub(crate) fn read_now(&mut self, range: &mut Range<u64>) -> Result<Bytes, StoreError> {
        self.read_with(range, Wait::AsLongAsItTakes).map_err(ReadError::into_store_error)
    }

    fn open_with(
        directory: &Directory,
        key: &Key,
        file: FileRef,
        buffers: &Buffers,
        wait: Wait,
    ) -> Result<Self, ReadError> {
        let name: Arc<str> = format!("values/{}", file.id.path()).into();
        let corrupt = |damage: ValueCorruption| ReadError::Failed(StoreError::corrupt(key.clone(), damage));
        let handle = match wait {
            Wait::Never => match directory.open_file_quickly(file.id) {
                Quick::Done(handle) => handle,
                Quick::WouldWait => return Err(ReadError::WouldWait),
            },
            Wait::AsLongAsItTakes => directory.open_file(file.id).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => corrupt(ValueCorruption::MissingFile { file: name.to_string() }),
                _ => ReadError::Failed(StoreError::io("open a value file", error)),
            })?,
        };
        let layout = Layout::new(file.size, key);
        let mut end = vec![0; layout.end_len()];
        read_at(&handle, &mut end, layout.end_offset(), wait, |found| {
            corrupt(ValueCorruption::Length { file: name.to_string(), expected: layout.file_len(), found })
        })?;
        let footer = Footer { key, id: file.id, size: file.size, commit: 0 };
        let page_sums = PageSums::parse(&end, &footer, file.checksum);
        let page_sums = page_sums.ok_or_else(|| corrupt(ValueCorruption::Trailer { file: name.to_string() }))?;
        let (file, page_sums) = (Arc::new(handle), Arc::new(page_sums));
        Ok(Self { file, key: key.clone(), name, layout, page_sums, page: None, buffers: buffers.clone() })
    }

    fn read_with(&mut self, range: &mut Range<u64>, wait: Wait) -> Result<Bytes, ReadError> {
        // Whole blocks around the beginning of the range, as many as a buffer holds.
        let first = range.start / BLOCK;
        let begin = first.saturating_mul(BLOCK);
        let last = range.end.div_ceil(BLOCK).saturating_mul(BLOCK).min(self.layout.size);
        let end = last.min(begin.saturating_add(PIECE as u64));
        let mut buffer = self.buffers.take();
        let blocks = buffer.part(0, to_usize(end.saturating_sub(begin)));
        let expected = self.layout.file_len();
        read_at(&self.file, blocks, begin, wait, |found| {
            self.corrupt(ValueCorruption::Length { file: self.name.to_string(), expected, found })
        })?;
        for (block, bytes) in (first..).zip(blocks.chunks(to_usize(BLOCK))) {
            if self.sum_of(block, wait)? != Some(xxh3_64(bytes)) {
                return Err(self.corrupt(ValueCorruption::Block { file: self.name.to_string(), block }));
            }
        }
        let stop = range.end.min(end);
        let bytes = buffer.freeze(to_usize(range.start.saturating_sub(begin)), to_usize(stop.saturating_sub(begin)));
        range.start = stop;
        Ok(bytes)
    }

    /// The checksum that a block should have; `None` where the file has no such block.
    fn sum_of(&mut self, block: u64, wait: Wait) -> Result<Option<u64>, ReadError> {
        let number = block / PAGE_SUMS;
        let at = to_usize(block % PAGE_SUMS);
        if let Some((held, sums)) = &self.page
            && *held == number
        {
            return Ok(sums.get(at).copied());
        }
        let (offset, len) = self.layout.page(number);
        let mut page = vec![0; len];
        let expected = self.layout.file_len();
        read_at(&self.file, &mut page, offset, wait, |found| {
            self.corrupt(ValueCorruption::Length { file: self.name.to_string(), expected, found })
        })?;
        let Some(sums) = self.page_sums.page(number, &page) else {
            return Err(self.corrupt(ValueCorruption::Trailer { file: self.name.to_string() }));
        };
        let sum = sums.get(at).copied();
        self.page = Some((number, Arc::new(sums)));
        Ok(sum)
    }

    fn corrupt(&self, damage: ValueCorruption) -> ReadError {
        ReadError::Failed(StoreError::corrupt(self.key.clone(), damage))
    }
}

impl ReadError {
    fn into_store_error(self) -> StoreError {
        match self {
            Self::Failed(error) => error,
            Self::WouldWait => StoreError::io("read a value file", io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// Reads and checks a whole value file. Blocks.
pub(crate) fn verify(directory: &Directory, key: &Key, file: FileRef, buffers: &Buffers) -> Result<(), StoreError> {
    let mut open = OpenValue::open_now(directory, key, file, buffers)?;
    let mut range = 0..file.size;
    while !range.is_empty() {
        open.read_now(&mut range)?;
    }
    Ok(())
}

/// Fills `buffer` from `offset`, or fails with what `short` makes of the file's length.
fn read_at(
    file: &File,
    buffer: &mut [u8],
    offset: u64,
    wait: Wait,
    short: impl FnOnce(u64) -> ReadError,
) -> Result<(), ReadError> {
    match wait {
        Wait::Never => match read_quickly(file, buffer, offset) {
            Quick::Done(()) => Ok(()),
            Quick::WouldWait => Err(ReadError::WouldWait),
        },
        Wait::AsLongAsItTakes => file.read_exact_at(buffer, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => short(file.metadata().map_or(0, |metadata| metadata.len())),
            _ => ReadError::Failed(StoreError::io("read a value file", error)),
        }),
    }
}
