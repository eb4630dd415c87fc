//! Reading [`.npz` files](https://numpy.org/doc/stable/reference/generated/numpy.savez.html): ZIP archives of `.npy`
//! files, as they arrive.
//!
//! Members are read from the beginning, and compared with the directory at the end: names, lengths and checksums have to
//! be the same, so that no other reader sees another dataset in the same bytes. Memory does not depend on what an archive
//! declares: a member is passed on in pieces of at most [`MAX_PIECE`], and members together have at most the bytes that
//! the reader was given as its limit.

mod directory;
mod member;
mod parts;

use flate2::{Crc, Decompress};

pub use self::parts::{MAX_MEMBER_NAME, MAX_MEMBERS, MAX_PIECE, NpzError};
use self::{
    directory::Directory,
    member::{Descriptor, LocalHeader, MemberData},
    parts::MemberEntry,
};

/// The suffix of the members that NumPy writes.
const NPY: &str = ".npy";

/// A reader of an archive, to which bytes are [pushed](Self::push), and which says what they are.
#[derive(Debug)]
pub struct NpzReader {
    /// Bytes that arrived and are not read yet.
    buffer: Vec<u8>,
    /// The number of bytes of the buffer that are read.
    read: usize,
    /// The number of bytes read before the buffer.
    before: u64,
    state: State,
    members: Vec<MemberEntry>,
    /// The bytes that members may still have.
    left: u64,
    limit: u64,
}

/// What comes next in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NpzEvent {
    /// More bytes are needed.
    More,
    /// A member of this name, without `.npy`, begins.
    Member(String),
    /// A piece of the member, of at least one byte.
    Data(Vec<u8>),
    /// The member ends; its checksum is right.
    MemberEnd,
    /// The archive ends.
    End,
}

#[derive(Debug)]
enum State {
    /// Before the header of a member, or the directory.
    Between,
    Data(Box<MemberData>),
    /// Before the lengths that follow a member.
    Descriptor(Box<MemberData>, Descriptor),
    /// Before an entry of the directory, or its end.
    Directory(Directory),
    Ended,
}

impl NpzReader {
    /// A reader of an archive whose members together have at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        let (buffer, members) = (Vec::new(), Vec::new());
        Self { buffer, read: 0, before: 0, state: State::Between, members, left: limit, limit }
    }

    /// Adds bytes that arrived. The caller takes all [events](Self::next_event) before it adds more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read.min(self.buffer.len()));
        self.before = self.before.saturating_add(self.read as u64);
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// What the next bytes are.
    pub fn next_event(&mut self) -> Result<NpzEvent, NpzError> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Between => match self.between()? {
                    Some(event) => return Ok(event),
                    None => continue,
                },
                State::Data(data) => return self.data(data),
                State::Descriptor(data, descriptor) => return self.descriptor(data, descriptor),
                State::Directory(mut directory) => {
                    let rest = self.buffer.get(self.read..).unwrap_or_default();
                    let (taken, is_ended) = directory.read(rest, &self.members)?;
                    self.read = self.read.saturating_add(taken);
                    self.state = if is_ended { State::Ended } else { State::Directory(directory) };
                    return Ok(if is_ended { NpzEvent::End } else { NpzEvent::More });
                }
                State::Ended if self.read < self.buffer.len() => return Err(NpzError::Trailing),
                State::Ended => return Ok(NpzEvent::End),
            }
        }
    }

    /// Fails unless the archive is complete; to be called when no more bytes arrive.
    pub fn finish(&self) -> Result<(), NpzError> {
        match &self.state {
            State::Ended if self.read == self.buffer.len() => Ok(()),
            State::Ended => Err(NpzError::Trailing),
            _ => Err(NpzError::Ended),
        }
    }

    /// The event of the bytes between members; `None` if the directory begins.
    fn between(&mut self) -> Result<Option<NpzEvent>, NpzError> {
        let rest = self.buffer.get(self.read..).unwrap_or_default();
        let is_first = self.members.is_empty();
        match directory::begins(rest) {
            // An archive without members is only the end of the directory.
            Some(true) => {
                let start = self.before.saturating_add(self.read as u64);
                self.state = State::Directory(Directory::new(start));
                return Ok(None);
            }
            None => {
                self.state = State::Between;
                return Ok(Some(NpzEvent::More));
            }
            Some(false) => {}
        }
        let Some((header, len)) = LocalHeader::parse(rest, is_first)? else {
            self.state = State::Between;
            return Ok(Some(NpzEvent::More));
        };
        if self.members.len() >= MAX_MEMBERS {
            return Err(NpzError::TooManyMembers);
        }
        if self.members.iter().any(|member| member.name == header.name) {
            return Err(NpzError::Repeated { name: header.name });
        }
        let start = self.before.saturating_add(self.read as u64);
        self.read = self.read.saturating_add(len);
        let name = header.name.strip_suffix(NPY).unwrap_or(&header.name).to_owned();
        let inflate = header.is_deflated.then(|| Decompress::new(false));
        let data = MemberData { header, start, inflate, checksum: Crc::new(), compressed: 0, size: 0, is_ended: false };
        self.state = State::Data(Box::new(data));
        Ok(Some(NpzEvent::Member(name)))
    }

    fn data(&mut self, mut data: Box<MemberData>) -> Result<NpzEvent, NpzError> {
        let rest = self.buffer.get(self.read..).unwrap_or_default();
        let (taken, piece) = data.read(rest)?;
        self.read = self.read.saturating_add(taken);
        if !piece.is_empty() {
            let left = self.left.checked_sub(piece.len() as u64);
            self.left = left.ok_or(NpzError::TooLarge { limit: self.limit })?;
            self.state = State::Data(data);
            return Ok(NpzEvent::Data(piece));
        }
        if !data.is_ended {
            self.state = State::Data(data);
            return Ok(NpzEvent::More);
        }
        match data.header.descriptor {
            Some(descriptor) => self.descriptor(data, descriptor),
            None => self.end_member(*data),
        }
    }

    fn descriptor(&mut self, mut data: Box<MemberData>, descriptor: Descriptor) -> Result<NpzEvent, NpzError> {
        let rest = self.buffer.get(self.read..).unwrap_or_default();
        let Some(taken) = data.take_descriptor(rest, descriptor)? else {
            self.state = State::Descriptor(data, descriptor);
            return Ok(NpzEvent::More);
        };
        self.read = self.read.saturating_add(taken);
        self.end_member(*data)
    }

    fn end_member(&mut self, data: MemberData) -> Result<NpzEvent, NpzError> {
        self.members.push(data.into_entry()?);
        self.state = State::Between;
        Ok(NpzEvent::MemberEnd)
    }
}

#[cfg(test)]
mod tests;
