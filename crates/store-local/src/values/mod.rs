//! Value files: written once, never changed, and checked on every read.
//!
//! ```text
//! values/xx/<id>    xx: bits 8 to 15 of the id, both in hexadecimal
//!
//! data      the value's bytes
//! sums      u64 per block of 128 KiB of data: its xxh3
//! page sums u64 per page of 512 sums (the last may be shorter): the page's xxh3
//! footer    key (UTF-8), key length u16, id u64, data length u64, commit u64, magic (8 bytes),
//!           checksum u64: xxh3 of the page sums and the footer up to here
//! ```
//!
//! Numbers are big-endian. The commit is the last one when the file was written. The record of a key contains the
//! checksum of the footer, which covers the page sums, which cover the sums, which cover the data. A reader therefore
//! checks any range by reading its blocks, a page of 4 KiB for every 64 MiB of data, and the footer.
//!
//! A value of several files is a directory in the place of its file, see [`joined`].

mod buffers;
mod directory;
mod join;
pub(crate) mod joined;
mod reader;
mod trailer;
mod writer;

pub(crate) use self::{
    buffers::{BUFFER_BYTES, Buffer, Buffers},
    directory::{Directory, remove_value},
    join::{JoinError, join},
    joined::PartFile,
    reader::{OpenValue, read_joined, verify},
    trailer::read_footer,
    writer::{FinishError, StagedFile, ValueForm, Writer},
};

/// The data that one checksum covers, in bytes.
pub(crate) const BLOCK_BYTES: u64 = 128 << 10;
