//! The positions of the messages of pages, from the files that have them.
//!
//! sled writes `snap.*` when it is opened, and the store writes `pages` in the same format when it is closed or compacted.
//! With one of them, a damaged part of the log has bounds: a page whose messages are all where they were misses none.
//!
//! ```text
//! file:    LSN + 1 i64, segment, pages, length u64, CRC-32 u32 of the pages and what is before them
//! page:    0, LSN i64, place (a free page) or the number of messages u8, messages
//! message: LSN i64, place, length
//! place:   kind u8 (0 in the log, 1 with a file of its own), offset, of kind 1 LSN i64
//! ```

use std::{fs, path::Path};

use super::format::{crc32, number, take};
use crate::{index::PAGE_POSITIONS, regular_file};

/// The length of what follows the pages.
const TRAILER: usize = 12;

/// The messages of all pages before an LSN.
#[derive(Debug)]
pub(super) struct Positions {
    /// The LSN before which no message is missing.
    pub(super) until: u64,
    /// By the numbers of the pages.
    pages: Vec<PageMessages>,
}

/// The messages that the state of a page consists of.
#[derive(Debug, PartialEq, Eq)]
enum PageMessages {
    /// The page was freed at an LSN.
    Free(u64),
    /// The LSNs of its replacement and of the links behind it.
    Live(Vec<u64>),
}

impl Positions {
    /// Reads the newest sound file in the directory of an index.
    pub(super) fn read(dir: &Path) -> Option<Self> {
        let entries = fs::read_dir(dir).ok()?.filter_map(Result::ok);
        let files = entries.filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name == PAGE_POSITIONS || name.starts_with("snap.") && !name.ends_with(".generating")
        });
        let positions = files.filter_map(|file| Self::parse(&regular_file::read_all(&file.path()).ok()?));
        positions.max_by_key(|positions| positions.until)
    }

    fn parse(file: &[u8]) -> Option<Self> {
        let (content, trailer) = file.split_at_checked(file.len().checked_sub(TRAILER)?)?;
        let (len, checksum) = (trailer.first_chunk()?, trailer.last_chunk()?);
        let is_sound = usize::try_from(u64::from_le_bytes(*len)) == Ok(content.len())
            && crc32(&[content]) == u32::from_le_bytes(*checksum);
        let mut rest = is_sound.then_some(content)?;
        let rest = &mut rest;
        let until = lsn(rest)?.checked_sub(1)?;
        number(rest)?;
        let mut pages = Vec::new();
        while !rest.is_empty() {
            pages.push(PageMessages::parse(rest)?);
        }
        Some(Self { until, pages })
    }

    /// True if these are all messages of a page before the LSN: its replacement and the links behind it.
    pub(super) fn are_all(&self, page: u64, messages: impl Iterator<Item = u64>) -> bool {
        match self.messages(page) {
            Some(PageMessages::Live(all)) => {
                let is_known = |lsn: &u64| *lsn < self.until;
                all.iter().copied().filter(is_known).eq(messages.filter(is_known))
            }
            _ => false,
        }
    }

    /// True if a message may be one of a page, or is older than its state.
    pub(super) fn may_have(&self, page: u64, lsn: u64) -> bool {
        lsn >= self.until
            || match self.messages(page) {
                Some(PageMessages::Free(freed)) => lsn <= *freed,
                Some(PageMessages::Live(all)) => all.first().is_none_or(|base| lsn < *base) || all.contains(&lsn),
                None => false,
            }
    }

    /// True if a message is one of those that the state of a page consists of.
    pub(super) fn names(&self, page: u64, lsn: u64) -> bool {
        matches!(self.messages(page), Some(PageMessages::Live(all)) if all.contains(&lsn))
    }

    /// True if a page was in use.
    pub(super) fn is_in_use(&self, page: u64) -> bool {
        matches!(self.messages(page), Some(PageMessages::Live(_)))
    }

    /// The last message before the LSN.
    pub(super) fn last(&self) -> u64 {
        let lsns = self.pages.iter().flat_map(|page| match page {
            PageMessages::Free(lsn) => std::slice::from_ref(lsn),
            PageMessages::Live(lsns) => lsns,
        });
        lsns.copied().filter(|lsn| *lsn < self.until).max().unwrap_or_default()
    }

    fn messages(&self, page: u64) -> Option<&PageMessages> {
        self.pages.get(usize::try_from(page).ok()?)
    }
}

impl PageMessages {
    fn parse(bytes: &mut &[u8]) -> Option<Self> {
        let count = *take(bytes, 1)?.first()?;
        if count == 0 {
            let freed = lsn(bytes)?;
            skip_place(bytes)?;
            return Some(Self::Free(freed));
        }
        let mut messages = Vec::with_capacity(count.into());
        for _ in 0..count {
            messages.push(lsn(bytes)?);
            skip_place(bytes)?;
            number(bytes)?;
        }
        Some(Self::Live(messages))
    }
}

fn lsn(bytes: &mut &[u8]) -> Option<u64> {
    u64::try_from(i64::from_le_bytes(*take(bytes, 8)?.first_chunk()?)).ok()
}

fn skip_place(bytes: &mut &[u8]) -> Option<()> {
    let kind = *take(bytes, 1)?.first()?;
    number(bytes)?;
    match kind {
        0 => Some(()),
        1 => lsn(bytes).map(drop),
        _ => None,
    }
}
