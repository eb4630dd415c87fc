//! Members: their headers and data.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::parts::{MAX_MEMBER_NAME, MAX_PIECE, MemberEntry, NpzError, u16_at, u32_at, u64_at};

const HEADER: [u8; 4] = *b"PK\x03\x04";
const HEADER_LEN: usize = 30;
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
/// The id of the extra field with lengths of 8 bytes.
const ZIP64: u16 = 1;
/// A length of 4 bytes that stands for one of 8 in the extra field.
const IN_ZIP64: u32 = u32::MAX;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// The flag of members whose lengths follow them.
const HAS_DESCRIPTOR: u16 = 1 << 3;
/// The flags of names in UTF-8, and of the level of deflate, which mean nothing to a reader.
const HARMLESS: u16 = 1 << 11 | 1 << 1 | 1 << 2;

/// The header before a member.
#[derive(Debug)]
pub(super) struct LocalHeader {
    /// With its suffix.
    pub(super) name: String,
    pub(super) is_deflated: bool,
    /// The form of the lengths after the member; `None` if they are in the header.
    pub(super) descriptor: Option<Descriptor>,
    checksum: u32,
    compressed: u64,
    size: u64,
}

/// The width of the lengths that follow a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descriptor {
    Narrow,
    Wide,
}

/// A member while it is read.
#[derive(Debug)]
pub(super) struct MemberData {
    pub(super) header: LocalHeader,
    /// The position of the header.
    pub(super) start: u64,
    /// `None` for one that is stored.
    pub(super) inflate: Option<Decompress>,
    pub(super) checksum: Crc,
    /// The numbers of bytes so far.
    pub(super) compressed: u64,
    pub(super) size: u64,
    pub(super) is_ended: bool,
}

impl LocalHeader {
    /// Parses a header, and returns its length; `None` if there are too few bytes.
    pub(super) fn parse(bytes: &[u8], is_first: bool) -> Result<Option<(Self, usize)>, NpzError> {
        let signature = bytes.get(..HEADER.len()).unwrap_or(bytes);
        if !HEADER.starts_with(signature) {
            let damaged = NpzError::Damaged("a member is followed by what is no member");
            return Err(if is_first { NpzError::Magic } else { damaged });
        }
        if bytes.len() < HEADER_LEN {
            return Ok(None);
        }
        let (name_len, extra_len) = (usize::from(u16_at(bytes, 26)), usize::from(u16_at(bytes, 28)));
        if name_len > MAX_MEMBER_NAME {
            return Err(NpzError::Damaged("a member has a name of more than 1024 bytes"));
        }
        let len = HEADER_LEN.saturating_add(name_len).saturating_add(extra_len);
        let Some(rest) = bytes.get(HEADER_LEN..len) else { return Ok(None) };
        let (name, extra) = rest.split_at_checked(name_len).unwrap_or_default();
        let name = std::str::from_utf8(name).map_err(|_| NpzError::Damaged("the name of a member is not UTF-8"))?;
        Self::new(bytes, name, extra).map(|header| Some((header, len)))
    }

    fn new(bytes: &[u8], name: &str, extra: &[u8]) -> Result<Self, NpzError> {
        let (flags, method) = (u16_at(bytes, 6), u16_at(bytes, 8));
        let unsupported = |how| NpzError::Unsupported { name: name.chars().take(64).collect(), how };
        if flags & !(HAS_DESCRIPTOR | HARMLESS) != 0 {
            return Err(unsupported("encrypted or patched"));
        }
        let is_deflated = match method {
            STORED => false,
            DEFLATED => true,
            _ => return Err(unsupported("compressed by another method than deflate")),
        };
        let lengths = Lengths::read(u32_at(bytes, 18), u32_at(bytes, 22), extra)?;
        let descriptor = (flags & HAS_DESCRIPTOR != 0).then_some(lengths.descriptor);
        if descriptor.is_some() && !is_deflated {
            return Err(unsupported("stored with its length after it, as into a pipe: save it into a file first"));
        }
        let Lengths { compressed, size, .. } = lengths;
        if !is_deflated && compressed != size {
            return Err(NpzError::Damaged("a member that is not compressed has two lengths"));
        }
        let (name, checksum) = (name.to_owned(), u32_at(bytes, 14));
        Ok(Self { name, is_deflated, descriptor, checksum, compressed, size })
    }
}

/// The lengths of a member.
pub(super) struct Lengths {
    pub(super) compressed: u64,
    pub(super) size: u64,
    pub(super) descriptor: Descriptor,
    /// What follows the lengths in the extra field.
    rest: Vec<u8>,
}

impl Lengths {
    /// Reads lengths of 4 bytes, or those of 8 that they stand for in the extra fields.
    pub(super) fn read(compressed: u32, size: u32, extra: &[u8]) -> Result<Self, NpzError> {
        let wide = zip64(extra)?;
        let descriptor = if wide.is_some() { Descriptor::Wide } else { Descriptor::Narrow };
        let mut wide = wide.unwrap_or_default();
        let mut long = |short: u32| -> Result<u64, NpzError> {
            if short != IN_ZIP64 {
                return Ok(short.into());
            }
            let missing = NpzError::Damaged("a long member has no length");
            let (word, rest) = wide.split_first_chunk().ok_or(missing)?;
            let length = u64::from_le_bytes(*word);
            wide = rest;
            Ok(length)
        };
        // In the extra field the size comes first.
        let size = long(size)?;
        let compressed = long(compressed)?;
        Ok(Self { compressed, size, descriptor, rest: wide.to_vec() })
    }

    /// The position that follows the lengths in the extra field, where one of 4 bytes stands for it.
    pub(super) fn position(&self, short: u32) -> u64 {
        if short == IN_ZIP64 { u64_at(&self.rest, 0) } else { short.into() }
    }
}

/// The content of the extra field with long lengths, if there is one.
fn zip64(mut extra: &[u8]) -> Result<Option<&[u8]>, NpzError> {
    while let Some((head, rest)) = extra.split_first_chunk::<4>() {
        let (id, len) = (u16_at(head, 0), usize::from(u16_at(head, 2)));
        let (content, after) =
            rest.split_at_checked(len).ok_or(NpzError::Damaged("an extra field is longer than the header says"))?;
        if id == ZIP64 {
            return Ok(Some(content));
        }
        extra = after;
    }
    Ok(None)
}

impl MemberData {
    /// Takes bytes of the member; returns how many, and a piece of its content. It is ended if both are nothing and more
    /// would not help.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(usize, Vec<u8>), NpzError> {
        if self.is_ended {
            return Ok((0, Vec::new()));
        }
        let (taken, piece) = match self.inflate {
            None => self.read_stored(bytes),
            Some(_) => self.read_deflated(bytes)?,
        };
        self.checksum.update(&piece);
        self.compressed = self.compressed.saturating_add(taken as u64);
        self.size = self.size.saturating_add(piece.len() as u64);
        if self.header.descriptor.is_none() && self.size > self.header.size {
            return Err(self.damaged("it is longer than it says"));
        }
        Ok((taken, piece))
    }

    /// Takes the lengths after the member; returns how many bytes they are, and `None` if there are too few.
    pub(super) fn take_descriptor(&mut self, bytes: &[u8], descriptor: Descriptor) -> Result<Option<usize>, NpzError> {
        let len = match descriptor {
            Descriptor::Narrow => 16,
            Descriptor::Wide => 24,
        };
        let Some(bytes) = bytes.get(..len) else { return Ok(None) };
        if !bytes.starts_with(&DESCRIPTOR) {
            return Err(self.damaged("its length does not follow it"));
        }
        let header = &mut self.header;
        header.checksum = u32_at(bytes, 4);
        (header.compressed, header.size) = match descriptor {
            Descriptor::Narrow => (u32_at(bytes, 8).into(), u32_at(bytes, 12).into()),
            Descriptor::Wide => (u64_at(bytes, 8), u64_at(bytes, 16)),
        };
        Ok(Some(len))
    }

    /// The entry of a member that was read; fails if it is not as it says.
    pub(super) fn into_entry(self) -> Result<MemberEntry, NpzError> {
        if self.compressed != self.header.compressed || self.size != self.header.size {
            return Err(self.damaged("it has another length than it says"));
        }
        let checksum = self.checksum.sum();
        if checksum != self.header.checksum {
            return Err(self.damaged("its checksum is wrong"));
        }
        let Self { header, start, compressed, size, .. } = self;
        Ok(MemberEntry { name: header.name, start, checksum, compressed, size })
    }

    fn read_stored(&mut self, bytes: &[u8]) -> (usize, Vec<u8>) {
        let left = self.header.size.saturating_sub(self.size);
        let len = bytes.len().min(MAX_PIECE).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.is_ended = left == 0;
        (len, bytes.get(..len).unwrap_or_default().to_vec())
    }

    fn read_deflated(&mut self, bytes: &[u8]) -> Result<(usize, Vec<u8>), NpzError> {
        let Some(inflate) = &mut self.inflate else { return Ok((0, Vec::new())) };
        let (input, output) = (inflate.total_in(), inflate.total_out());
        let mut piece = vec![0; MAX_PIECE];
        let status = inflate.decompress(bytes, &mut piece, FlushDecompress::None);
        let count = |after: u64, before: u64| usize::try_from(after.saturating_sub(before)).unwrap_or(usize::MAX);
        let (taken, made) = (count(inflate.total_in(), input), count(inflate.total_out(), output));
        piece.truncate(made);
        match status {
            Ok(Status::StreamEnd) => self.is_ended = true,
            Ok(Status::Ok | Status::BufError) => {}
            Err(_) => return Err(self.damaged("it cannot be decompressed")),
        }
        Ok((taken, piece))
    }

    fn damaged(&self, what: &'static str) -> NpzError {
        NpzError::Member { name: self.header.name.clone(), what }
    }
}
