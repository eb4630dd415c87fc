//! What all parts of reading an archive share: limits, errors, and numbers.

/// The most bytes of a piece of a member.
pub const MAX_PIECE: usize = 64 << 10;
/// The most members of an archive.
pub const MAX_MEMBERS: usize = 4096;
/// The longest name of a member, in bytes.
pub const MAX_MEMBER_NAME: usize = 1024;

/// The reason why an archive is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpzError {
    /// It does not begin with a member.
    #[error("not an .npz file: it does not begin with the header of a member")]
    Magic,
    /// It ends too early.
    #[error("the .npz file ends within its members or its directory")]
    Ended,
    /// Bytes follow its end.
    #[error("bytes follow the end of the .npz file")]
    Trailing,
    /// A part of it is not as the format has it.
    #[error("the .npz file is damaged: {0}")]
    Damaged(&'static str),
    /// A member is stored in a way that NumPy does not use.
    #[error("the member {name:?} of the .npz file is {how}, which is not read")]
    Unsupported {
        /// Its name, truncated.
        name: String,
        /// How it is stored.
        how: &'static str,
    },
    /// A member does not have the length or the checksum that the archive says.
    #[error("the member {name:?} of the .npz file is damaged: {what}")]
    Member {
        /// Its name.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
    /// Two members have the same name.
    #[error("the .npz file has the member {name:?} twice")]
    Repeated {
        /// Their name.
        name: String,
    },
    /// There are more members than [`MAX_MEMBERS`].
    #[error("the .npz file has more than {MAX_MEMBERS} members")]
    TooManyMembers,
    /// The members have more bytes than the limit.
    #[error("the members of the .npz file have more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
}

/// A member that was read, to be compared with the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemberEntry {
    /// With its suffix.
    pub(super) name: String,
    /// The position of its header.
    pub(super) start: u64,
    pub(super) checksum: u32,
    pub(super) compressed: u64,
    pub(super) size: u64,
}

/// A number of 2 bytes at an offset; 0 beyond the end.
pub(super) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |word| u16::from_le_bytes(*word))
}

/// A number of 4 bytes at an offset; 0 beyond the end.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word))
}

/// A number of 8 bytes at an offset; 0 beyond the end.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}
