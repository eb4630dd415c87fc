//! Reading a value file. Every block is checked before its bytes are returned.

use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, sync::Arc};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;
use zarrd_store::{Key, StoreError};

use super::{
    BLOCK_BYTES, Buffers,
    buffers::BUFFER_BYTES,
    directory::{Directory, ImmediateOrBlocking, ValueFile, try_read},
    joined::{self, ListedPart},
    trailer::{Footer, Layout, PAGE_SUMS, PageSums, read_footer, to_usize},
};
use crate::{
    ValueCorruption,
    blocking::run_blocking,
    error::missing_file,
    record::{FileId, FileRef},
};

/// A value whose file, or whose files of parts, are read.
#[derive(Clone)]
pub(crate) enum OpenValue {
    File(OpenFile),
    Joined(OpenJoined),
}

/// An open value file whose footer has been checked.
#[derive(Clone)]
pub(crate) struct OpenFile {
    file: Arc<ValueFile>,
    key: Key,
    /// The path in the directory of values.
    path: Arc<str>,
    layout: Layout,
    page_sums: Arc<PageSums>,
    /// The page of block checksums that was read last.
    page: Option<(u64, Arc<Vec<u64>>)>,
    buffers: Buffers,
}

/// A joined value whose list of parts has been checked.
#[derive(Clone)]
pub(crate) struct OpenJoined {
    directory: Directory,
    key: Key,
    id: FileId,
    parts: Arc<[ListedPart]>,
    /// The part that was read last, by its index.
    open: Option<(usize, OpenFile)>,
    buffers: Buffers,
}

/// A file to open.
#[derive(Clone, Copy)]
struct Source<'v> {
    /// The key of the value, which errors name.
    key: &'v Key,
    /// The path in the directory of values.
    path: &'v str,
    size: u64,
    footer: ExpectedFooter,
}

/// The expected footer of a file.
#[derive(Clone, Copy)]
enum ExpectedFooter {
    /// The key of the value, and this number and checksum.
    OfValue(FileId, u64),
    /// The checksum in a list of parts, and a key of this length.
    OfPart(ListedPart),
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
    /// A directory is in the place of the file.
    IsDirectory(io::Error),
    Failed(StoreError),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl OpenValue {
    /// Opens the file of a record, or its list of parts, and checks the footer.
    pub(crate) async fn open(
        directory: &Directory,
        key: &Key,
        file: FileRef,
        buffers: &Buffers,
    ) -> Result<Self, StoreError> {
        match OpenFile::open(directory, Source::of_value(key, &file.id.path(), file), buffers, ReadMode::NonBlocking) {
            Ok(open) => return Ok(Self::File(open)),
            Err(ReadError::Failed(error)) => return Err(error),
            Err(ReadError::WouldBlock | ReadError::IsDirectory(_)) => {}
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
        let path = file.id.path();
        let opened = match OpenFile::open(directory, Source::of_value(key, &path, file), buffers, ReadMode::Blocking) {
            Err(ReadError::IsDirectory(error)) => {
                OpenJoined::open(directory, key, file, buffers, error).map(Self::Joined)
            }
            opened => opened.map(Self::File),
        };
        opened.map_err(|error| error.into_store_error(key, &path))
    }

    /// Reads the next bytes of a range that is not empty: at most one buffer, ending with a block, a part or the range.
    /// Removes them from the range.
    pub(crate) async fn read(&mut self, range: &mut Range<u64>) -> Result<Bytes, StoreError> {
        match self.read_with(range, ReadMode::NonBlocking) {
            Ok(bytes) => return Ok(bytes),
            Err(ReadError::Failed(error)) => return Err(error),
            Err(ReadError::WouldBlock | ReadError::IsDirectory(_)) => {}
        }
        let (mut this, mut rest) = (self.clone(), range.clone());
        let (bytes, this, rest) = run_blocking(move || Ok((this.read_now(&mut rest)?, this, rest))).await?;
        *self = this;
        *range = rest;
        Ok(bytes)
    }

    /// Reads like [`OpenValue::read`], blocking.
    pub(crate) fn read_now(&mut self, range: &mut Range<u64>) -> Result<Bytes, StoreError> {
        let read = self.read_with(range, ReadMode::Blocking);
        read.map_err(|error| match self {
            Self::File(open) => error.into_store_error(&open.key, &open.path),
            Self::Joined(open) => error.into_store_error(&open.key, &open.id.path()),
        })
    }

    fn read_with(&mut self, range: &mut Range<u64>, wait: ReadMode) -> Result<Bytes, ReadError> {
        match self {
            Self::File(open) => open.read_with(range, wait),
            Self::Joined(open) => open.read_with(range, wait),
        }
    }
}

impl OpenJoined {
    /// Opens and reads the list of parts. Blocks. Fails with the error of reading the directory as a file if it has no list: it
    /// is being removed, or something else.
    fn open(
        directory: &Directory,
        key: &Key,
        file: FileRef,
        buffers: &Buffers,
        is_directory: io::Error,
    ) -> Result<Self, ReadError> {
        let path = joined::list_path(file.id);
        let corrupt = || ReadError::Failed(StoreError::corrupt(key.clone(), Source::trailer_damage(&path)));
        let opened = match directory.open_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ReadError::IsDirectory(is_directory));
            }
            opened => opened.map_err(|error| open_error(key, &path, error))?,
        };
        let footer = read_footer(&opened, file.id);
        let footer = footer.filter(|(owner, list)| owner == key && list.checksum == file.checksum);
        let (_, list) = footer.ok_or_else(corrupt)?;
        let parts = read_parts(opened, key, list, buffers)?.ok_or_else(corrupt)?;
        if parts.last().map_or(0, |part| part.end) != file.size {
            return Err(corrupt());
        }
        let (directory, key, buffers) = (directory.clone(), key.clone(), buffers.clone());
        Ok(Self { directory, key, id: file.id, parts: parts.into(), open: None, buffers })
    }

    fn read_with(&mut self, range: &mut Range<u64>, wait: ReadMode) -> Result<Bytes, ReadError> {
        let index = self.parts.partition_point(|part| part.end <= range.start);
        let Some(part) = self.parts.get(index) else {
            let damage = Source::trailer_damage(&joined::list_path(self.id));
            return Err(ReadError::Failed(StoreError::corrupt(self.key.clone(), damage)));
        };
        let before = index.checked_sub(1).and_then(|before| self.parts.get(before));
        let start = before.map_or(0, |before| before.end);
        let open = match &mut self.open {
            Some((open, file)) if *open == index => file,
            open => {
                let (path, size) = (joined::part_path(self.id, index), part.end.saturating_sub(start));
                let source = Source { key: &self.key, path: &path, size, footer: ExpectedFooter::OfPart(*part) };
                let file = OpenFile::open(&self.directory, source, &self.buffers, wait)?;
                &mut open.insert((index, file)).1
            }
        };
        let mut rest = range.start.saturating_sub(start)..range.end.min(part.end).saturating_sub(start);
        let bytes = open.read_with(&mut rest, wait)?;
        range.start = start.saturating_add(rest.start);
        Ok(bytes)
    }
}

/// The key of a joined value, and its reference, from its list of parts; `None` if that is not valid. Blocks.
pub(crate) fn read_joined(directory: &Directory, id: FileId, buffers: &Buffers) -> Option<(Key, FileRef)> {
    let file = directory.open_file(&joined::list_path(id)).ok()?;
    let (key, list) = read_footer(&file, id)?;
    let parts = read_parts(file, &key, list, buffers).ok()??;
    let size = parts.last().map_or(0, |part| part.end);
    Some((key, FileRef { size, ..list }))
}

/// Reads the parts in a list; `None` if it is damaged. Blocks.
fn read_parts(
    file: ValueFile,
    key: &Key,
    list: FileRef,
    buffers: &Buffers,
) -> Result<Option<Vec<ListedPart>>, ReadError> {
    let path = joined::list_path(list.id);
    let source = Source::of_value(key, &path, list);
    let mut open = OpenFile::check(file, source, buffers, ReadMode::Blocking)?;
    let (mut bytes, mut range) = (Vec::new(), 0..list.size);
    while !range.is_empty() {
        bytes.extend_from_slice(&open.read_with(&mut range, ReadMode::Blocking)?);
    }
    Ok(joined::decode(&bytes))
}

impl OpenFile {
    fn open(directory: &Directory, source: Source<'_>, buffers: &Buffers, wait: ReadMode) -> Result<Self, ReadError> {
        let Source { key, path, .. } = source;
        let file = match wait {
            ReadMode::NonBlocking => match directory.try_open_file(path) {
                ImmediateOrBlocking::Done(file) => file,
                ImmediateOrBlocking::WouldBlock => return Err(ReadError::WouldBlock),
            },
            ReadMode::Blocking => directory.open_file(path).map_err(|error| open_error(key, path, error))?,
        };
        Self::check(file, source, buffers, wait)
    }

    /// Checks the footer of an open file.
    fn check(file: ValueFile, source: Source<'_>, buffers: &Buffers, wait: ReadMode) -> Result<Self, ReadError> {
        let Source { key, path, size, footer } = source;
        let layout = match footer {
            ExpectedFooter::OfValue(..) => Layout::new(size, key),
            ExpectedFooter::OfPart(part) => Layout::with_key_len(size, part.key_len),
        };
        let mut end = vec![0; layout.end_len()];
        ReadTarget { key, path, layout }.read_at(&file, &mut end, layout.end_offset(), wait)?;
        let page_sums = match footer {
            ExpectedFooter::OfValue(id, checksum) => {
                PageSums::parse(&end, &Footer { key, id, size, commit: 0 }, checksum)
            }
            ExpectedFooter::OfPart(part) => PageSums::parse_part(&end, layout, part.checksum),
        };
        let page_sums = page_sums.ok_or_else(|| StoreError::corrupt(key.clone(), Source::trailer_damage(path)))?;
        let (file, page_sums) = (Arc::new(file), Arc::new(page_sums));
        Ok(Self { file, key: key.clone(), path: path.into(), layout, page_sums, page: None, buffers: buffers.clone() })
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
                return Err(self.corrupt(ValueCorruption::Block { file: name_of(&self.path), block }));
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
            return Err(self.corrupt(Source::trailer_damage(&self.path)));
        };
        let sum = sums.get(at).copied();
        self.page = Some((number, Arc::new(sums)));
        Ok(sum)
    }

    fn target(&self) -> ReadTarget<'_> {
        ReadTarget { key: &self.key, path: &self.path, layout: self.layout }
    }

    fn corrupt(&self, damage: ValueCorruption) -> ReadError {
        ReadError::Failed(StoreError::corrupt(self.key.clone(), damage))
    }
}

impl<'v> Source<'v> {
    /// A file with the key of the value in its footer.
    fn of_value(key: &'v Key, path: &'v str, file: FileRef) -> Self {
        Self { key, path, size: file.size, footer: ExpectedFooter::OfValue(file.id, file.checksum) }
    }

    fn trailer_damage(path: &str) -> ValueCorruption {
        ValueCorruption::Trailer { file: name_of(path) }
    }
}

impl ReadError {
    fn into_store_error(self, key: &Key, path: &str) -> StoreError {
        match self {
            Self::Failed(error) => error,
            Self::IsDirectory(error) => unreadable(key, path, "read a value file", error),
            Self::WouldBlock => StoreError::io("read a value file", io::ErrorKind::WouldBlock.into()),
        }
    }
}

fn open_error(key: &Key, path: &str, error: io::Error) -> ReadError {
    ReadError::Failed(match error.kind() {
        io::ErrorKind::NotFound => missing_file(key, path),
        _ => unreadable(key, path, "open a value file", error),
    })
}

/// The name of a file in errors, by its path in the directory of values.
fn name_of(path: &str) -> String {
    format!("values/{path}")
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
    path: &'v str,
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
            ReadMode::Blocking => file.read_exact_at(buffer, offset).map_err(|error| match error.kind() {
                io::ErrorKind::IsADirectory => ReadError::IsDirectory(error),
                _ => ReadError::Failed(self.failed(file, error)),
            }),
        }
    }

    fn failed(&self, file: &File, error: io::Error) -> StoreError {
        if error.kind() != io::ErrorKind::UnexpectedEof {
            return unreadable(self.key, self.path, "read a value file", error);
        }
        let found = file.metadata().map_or(0, |metadata| metadata.len());
        let expected = self.layout.file_len();
        let damage = ValueCorruption::Length { file: name_of(self.path), expected, found };
        StoreError::corrupt(self.key.clone(), damage)
    }
}

/// The error of a file that exists and cannot be opened or read, such as one on an unreadable sector, or a directory in
/// its place. Failures for lack of memory, space or descriptors say nothing about the file.
fn unreadable(key: &Key, path: &str, action: &'static str, error: io::Error) -> StoreError {
    if matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted) {
        return StoreError::io(action, error);
    }
    match StoreError::io(action, error) {
        StoreError::Io { source, .. } => {
            StoreError::corrupt(key.clone(), ValueCorruption::Unreadable { file: name_of(path), source })
        }
        lack => lack,
    }
}
