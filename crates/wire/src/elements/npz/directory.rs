//! The directory at the end of an archive.

use super::{
    member::Lengths,
    parts::{MAX_MEMBER_NAME, MemberEntry, NpzError, u16_at, u32_at, u64_at},
};

const ENTRY: [u8; 4] = *b"PK\x01\x02";
const ENTRY_LEN: usize = 46;
const END64: [u8; 4] = *b"PK\x06\x06";
const END64_LEN: usize = 56;
const LOCATOR: [u8; 4] = *b"PK\x06\x07";
const LOCATOR_LEN: usize = 20;
const END: [u8; 4] = *b"PK\x05\x06";
const END_LEN: usize = 22;

/// The directory while it is read.
#[derive(Debug)]
pub(super) struct Directory {
    /// Its position.
    start: u64,
    /// Its length so far.
    len: u64,
    /// The number of entries that were read.
    entries: usize,
    /// Its length, once its end began.
    ended: Option<u64>,
}

/// True if the directory begins with these bytes, false if it does not, `None` if there are too few.
pub(super) fn begins(bytes: &[u8]) -> Option<bool> {
    let signature = bytes.first_chunk::<4>()?;
    Some([ENTRY, END64, END].contains(signature))
}

impl Directory {
    /// The directory at a position of the archive.
    pub(super) fn new(start: u64) -> Self {
        Self { start, len: 0, entries: 0, ended: None }
    }

    /// Reads all complete parts; returns the number of their bytes, and true if the archive ends after them.
    pub(super) fn read(&mut self, bytes: &[u8], members: &[MemberEntry]) -> Result<(usize, bool), NpzError> {
        let mut taken = 0_usize;
        loop {
            let rest = bytes.get(taken..).unwrap_or_default();
            let Some(signature) = rest.first_chunk::<4>() else { return Ok((taken, false)) };
            let len = match *signature {
                ENTRY if self.ended.is_none() => self.entry(rest, members)?,
                END64 => self.end64(rest)?,
                LOCATOR if self.ended.is_some() => (rest.len() >= LOCATOR_LEN).then_some(LOCATOR_LEN),
                END => {
                    let len = self.end(rest, members)?;
                    return Ok((taken.saturating_add(len.unwrap_or(0)), len.is_some()));
                }
                _ => return Err(NpzError::Damaged("its directory is interrupted")),
            };
            let Some(len) = len else { return Ok((taken, false)) };
            taken = taken.saturating_add(len);
        }
    }

    /// Compares an entry with the member; returns its length.
    fn entry(&mut self, bytes: &[u8], members: &[MemberEntry]) -> Result<Option<usize>, NpzError> {
        if bytes.len() < ENTRY_LEN {
            return Ok(None);
        }
        let [name, extra, comment] = [28, 30, 32].map(|offset| usize::from(u16_at(bytes, offset)));
        if name > MAX_MEMBER_NAME {
            return Err(differs());
        }
        let len = [name, extra, comment].iter().fold(ENTRY_LEN, |len, part| len.saturating_add(*part));
        let Some(rest) = bytes.get(ENTRY_LEN..len) else { return Ok(None) };
        let (name, rest) = rest.split_at_checked(name).unwrap_or_default();
        let extra = rest.get(..extra).unwrap_or_default();
        let lengths = Lengths::read(u32_at(bytes, 20), u32_at(bytes, 24), extra)?;
        let start = lengths.position(u32_at(bytes, 42));
        let member = members.get(self.entries).ok_or_else(differs)?;
        let is_same = member.name.as_bytes() == name
            && member.checksum == u32_at(bytes, 16)
            && (member.compressed, member.size) == (lengths.compressed, lengths.size)
            && member.start == start;
        if !is_same {
            return Err(differs());
        }
        self.entries = self.entries.saturating_add(1);
        self.len = self.len.saturating_add(len as u64);
        Ok(Some(len))
    }

    /// The length of the end with long numbers.
    fn end64(&mut self, bytes: &[u8]) -> Result<Option<usize>, NpzError> {
        if bytes.len() < END64_LEN {
            return Ok(None);
        }
        // Its length does not count the first twelve bytes. Nothing writes more than it must have.
        if u64_at(bytes, 4) != END64_LEN as u64 - 12 || self.ended.is_some() {
            return Err(NpzError::Damaged("the end of its directory has an extension"));
        }
        if u64_at(bytes, 32) != self.entries as u64 || u64_at(bytes, 48) != self.start {
            return Err(differs());
        }
        self.ended = Some(self.len);
        Ok(Some(END64_LEN))
    }

    /// The length of the end of the archive.
    fn end(&mut self, bytes: &[u8], members: &[MemberEntry]) -> Result<Option<usize>, NpzError> {
        if bytes.len() < END_LEN {
            return Ok(None);
        }
        let len = END_LEN.saturating_add(usize::from(u16_at(bytes, 20)));
        if bytes.len() < len {
            return Ok(None);
        }
        let entries = u16_at(bytes, 10);
        let is_counted = usize::from(entries) == self.entries || entries == u16::MAX && self.ended.is_some();
        let start = u32_at(bytes, 16);
        let is_placed = u64::from(start) == self.start || start == u32::MAX && self.ended.is_some();
        match is_counted && is_placed && self.entries == members.len() {
            true => Ok(Some(len)),
            false => Err(differs()),
        }
    }
}

fn differs() -> NpzError {
    NpzError::Damaged("its directory differs from its members")
}
