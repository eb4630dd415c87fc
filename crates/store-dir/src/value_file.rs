//! The open file of a value.

use std::{io::IoSliceMut, ops::Range, sync::Arc};

use bytes::Bytes;
use rustix::{
    fd::OwnedFd,
    io::{Errno, ReadWriteFlags, pread, preadv2},
};
use zarrd_store::{Key, StoreError};

use crate::{
    attributes::Attributes,
    buffers::Buffers,
    error::{Failure, StepError, file_error},
    faults::Moment,
    quiet::Precision,
    root::{Opened, Root, Wait},
};

/// The action that fails if a file cannot be read.
pub(crate) const ACTION: &str = "read the file of a value";

/// The open file of a value.
#[derive(Clone, Debug)]
pub(crate) struct ValueFile {
    pub(crate) key: Key,
    file: Arc<OwnedFd>,
    /// The attributes that the file had when it was opened.
    pub(crate) attributes: Attributes,
    pub(crate) precision: Precision,
}

impl ValueFile {
    pub(crate) fn new(key: Key, opened: Opened) -> Self {
        let Opened { file, attributes, precision } = opened;
        Self { key, file: Arc::new(file), attributes, precision }
    }

    /// The same file, which had these attributes when it was opened.
    pub(crate) fn with(self, attributes: Attributes) -> Self {
        Self { attributes, ..self }
    }

    /// The attributes of the file at this moment; `None` if its server has removed it.
    pub(crate) fn attributes_now(&self, root: &Root) -> Result<Option<Attributes>, StoreError> {
        match root.attributes(&self.file, self.precision.current()) {
            Ok(attributes) => Ok(Some(attributes)),
            Err(Failure::File(Errno::STALE)) => Ok(None),
            Err(failure) => Err(file_error(ACTION, self.key.as_str(), failure)),
        }
    }

    /// True if the file has the bytes that it had when it was opened.
    pub(crate) fn is_unchanged(&self, root: &Root) -> Result<bool, StoreError> {
        Ok(self.attributes_now(root)?.is_some_and(|now| self.attributes.has_same_bytes(&now)))
    }

    /// Reads a range of the file; `None` if the file was changed.
    pub(crate) fn read(
        &self,
        (root, buffers): (&Root, &Buffers),
        range: Range<u64>,
        wait: Wait,
    ) -> Result<Option<Bytes>, StepError> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or_default();
        let (mut buffer, mut filled) = (buffers.take(len), 0);
        while filled < len {
            match self.read_at(buffer.rest(filled), range.start.saturating_add(filled as u64), wait) {
                // The file is shorter than it was.
                Ok(0) | Err(Errno::STALE) => return Ok(None),
                Ok(read) => filled = filled.saturating_add(read),
                Err(_) if wait == Wait::Never => return Err(StepError::WouldBlock),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(file_error(ACTION, self.key.as_str(), error.into()).into()),
            }
        }
        root.faults.moment(Moment::Read);
        Ok(self.is_unchanged(root)?.then(|| buffer.freeze()))
    }

    fn read_at(&self, buffer: &mut [u8], at: u64, wait: Wait) -> Result<usize, Errno> {
        match wait {
            Wait::Allowed => pread(&self.file, buffer, at),
            // Bytes that are not in memory are EAGAIN.
            Wait::Never => preadv2(&self.file, &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT),
        }
    }
}
