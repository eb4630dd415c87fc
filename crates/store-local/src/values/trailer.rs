//! The trailer of a value file: checksums and footer.

use std::{fs::File, os::unix::fs::FileExt};

use xxhash_rust::xxh3::xxh3_64;
use zarrd_store::Key;

use super::BLOCK_BYTES;
use crate::record::{FileId, FileRef};

const MAGIC: [u8; 8] = *b"ZARRDVAL";
/// The number of checksums on one page.
pub(super) const PAGE_SUMS: u64 = 512;
/// The length of the footer without its key, in bytes.
const FOOTER_LEN: usize = 2 + 8 + 8 + 8 + 8 + 8;

/// The layout of a value file, by the lengths of its data and key. Offsets are in bytes from the start of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) size: u64,
    key_len: u64,
}

/// The checked end of a trailer: the checksums of its pages.
#[derive(Debug)]
pub(super) struct PageSums(Vec<u64>);

/// The content of a footer.
pub(super) struct Footer<'k> {
    pub(super) key: &'k Key,
    pub(super) id: FileId,
    pub(super) size: u64,
    pub(super) commit: u64,
}

impl Layout {
    pub(super) fn new(size: u64, key: &Key) -> Self {
        Self { size, key_len: key.as_bytes().len() as u64 }
    }

    /// The layout of a file whose key is not known.
    pub(super) fn with_key_len(size: u64, key_len: u16) -> Self {
        Self { size, key_len: key_len.into() }
    }

    pub(super) fn blocks(&self) -> u64 {
        self.size.div_ceil(BLOCK_BYTES)
    }

    pub(super) fn pages(&self) -> u64 {
        self.blocks().div_ceil(PAGE_SUMS)
    }

    /// The offset and length of a page of checksums.
    pub(super) fn page(&self, page: u64) -> (u64, usize) {
        let sums = self.blocks().saturating_sub(page.saturating_mul(PAGE_SUMS)).min(PAGE_SUMS);
        (self.size.saturating_add(page.saturating_mul(PAGE_SUMS * 8)), to_usize(sums.saturating_mul(8)))
    }

    /// The offset of the page checksums.
    pub(super) fn end_offset(&self) -> u64 {
        self.size.saturating_add(self.blocks().saturating_mul(8))
    }

    /// The length of page checksums and footer.
    pub(super) fn end_len(&self) -> usize {
        to_usize(self.pages().saturating_mul(8).saturating_add(self.key_len)).saturating_add(FOOTER_LEN)
    }

    /// The length of the file.
    pub(super) fn file_len(&self) -> u64 {
        self.end_offset().saturating_add(self.end_len() as u64)
    }
}

impl PageSums {
    /// Checks page checksums and footer against the checksum in the index's record and the expected content.
    pub(super) fn parse(end: &[u8], expected: &Footer<'_>, checksum: u64) -> Option<Self> {
        let (sums, footer) = Self::split(end, Layout::new(expected.size, expected.key), checksum)?;
        (footer == expected.encode(footer_commit(footer)?)).then(|| Self(decode_sums(sums)))
    }

    /// Checks page checksums and footer against a checksum from a list of parts alone.
    pub(super) fn parse_part(end: &[u8], layout: Layout, checksum: u64) -> Option<Self> {
        let (sums, _) = Self::split(end, layout, checksum)?;
        Some(Self(decode_sums(sums)))
    }

    /// The page checksums and the footer, if they have this checksum.
    fn split(end: &[u8], layout: Layout, checksum: u64) -> Option<(&[u8], &[u8])> {
        let (body, sum) = end.split_last_chunk::<8>()?;
        if u64::from_be_bytes(*sum) != checksum || xxh3_64(body) != checksum {
            return None;
        }
        body.split_at_checked(to_usize(layout.pages().saturating_mul(8)))
    }

    /// The checksums on a page, after checking it.
    pub(super) fn page(&self, number: u64, page: &[u8]) -> Option<Vec<u64>> {
        let expected = self.0.get(to_usize(number))?;
        (xxh3_64(page) == *expected).then(|| decode_sums(page))
    }
}

/// The key of a value file, and its reference, from its footer alone; `None` if that is not valid. Blocks.
pub(crate) fn read_footer(file: &File, id: FileId) -> Option<(Key, FileRef)> {
    const FIXED: usize = FOOTER_LEN;
    let len = file.metadata().ok()?.len();
    let mut fixed = [0; FIXED];
    file.read_exact_at(&mut fixed, len.checked_sub(FIXED as u64)?).ok()?;
    let (key_len, rest) = fixed.split_first_chunk::<2>()?;
    let key_len = u64::from(u16::from_be_bytes(*key_len));
    let (found, rest) = rest.split_first_chunk::<8>()?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let (_commit, rest) = rest.split_first_chunk::<8>()?;
    let size = u64::from_be_bytes(*size);
    let checksum =
        rest.strip_prefix(&MAGIC).and_then(|sum| sum.first_chunk::<8>()).map(|sum| u64::from_be_bytes(*sum))?;
    let layout = Layout { size, key_len };
    if u64::from_be_bytes(*found) != id.0 || size > len || layout.file_len() != len {
        return None;
    }
    let mut end = vec![0; layout.end_len()];
    file.read_exact_at(&mut end, layout.end_offset()).ok()?;
    let key_end = end.len().checked_sub(FIXED)?;
    let key = Key::from_stored(end.get(key_end.checked_sub(to_usize(key_len))?..key_end)?).ok()?;
    PageSums::parse(&end, &Footer { key: &key, id, size, commit: 0 }, checksum)?;
    Some((key, FileRef { id, size, checksum }))
}

impl Footer<'_> {
    /// The trailer of a file with these block checksums, and its checksum.
    pub(super) fn trailer(&self, block_sums: &[u64]) -> (Vec<u8>, u64) {
        let mut trailer = Vec::with_capacity(block_sums.len().saturating_mul(8).saturating_add(2048));
        let mut page_sums = Vec::new();
        for page in block_sums.chunks(to_usize(PAGE_SUMS)) {
            let page: Vec<u8> = page.iter().flat_map(|sum| sum.to_be_bytes()).collect();
            page_sums.extend_from_slice(&xxh3_64(&page).to_be_bytes());
            trailer.extend_from_slice(&page);
        }
        page_sums.extend_from_slice(&self.encode(self.commit));
        let checksum = xxh3_64(&page_sums);
        trailer.extend_from_slice(&page_sums);
        trailer.extend_from_slice(&checksum.to_be_bytes());
        (trailer, checksum)
    }

    /// The footer without its checksum.
    fn encode(&self, commit: u64) -> Vec<u8> {
        let key = self.key.as_bytes();
        let mut bytes = key.to_vec();
        bytes.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
        for field in [self.id.0, self.size, commit] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.extend_from_slice(&MAGIC);
        bytes
    }
}

/// The commit number in a footer, which readers do not know in advance.
fn footer_commit(footer: &[u8]) -> Option<u64> {
    let (rest, _magic) = footer.split_last_chunk::<8>()?;
    Some(u64::from_be_bytes(*rest.last_chunk::<8>()?))
}

fn decode_sums(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|sum| u64::from_be_bytes(*sum)).collect()
}

pub(super) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
