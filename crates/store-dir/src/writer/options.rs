//! Options of a store that writes.

use std::{fmt, str::FromStr};

use rustix::fs::Mode;

/// The bits of a mode that can be given: those of reading, writing and executing.
const PERMISSIONS: u32 = 0o777;

/// The bits that every mode has: the owner, who is the server, reads and writes.
const OWNER: u32 = 0o600;

/// How a store writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    pub(crate) durability: Durability,
    pub(crate) mode: Option<FileMode>,
    pub(crate) owner: Option<u32>,
    pub(crate) group: Option<u32>,
}

/// The moment at which a change is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it survives a loss of power.
    #[default]
    Synced,
    /// When other programs see it. A loss of power may undo the last changes, and leave files that are empty or
    /// incomplete.
    Unsynced,
}

/// The mode of new files, as `chmod` has it: three octal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(u32);

/// The reason why a text is not an option of a store that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteOptionError {
    /// The mode is none.
    #[error("the option `mode` has the mode of new files in octal, such as mode=664; their owner reads and writes")]
    Mode,
    /// The owner or the group is not a number.
    #[error("the options `owner` and `group` have numbers, as `id` shows them")]
    Number,
    /// The option means something only if the store writes.
    #[error("the options `sync`, `mode`, `owner` and `group` need `writes=yes`")]
    NotWriting,
}

impl WriteOptions {
    /// Acknowledges changes at this moment.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Gives new files this mode instead of the one that the umask leaves. New directories have the same, and can be
    /// searched by those who can read them.
    #[must_use]
    pub fn mode(self, mode: FileMode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// Gives new files and directories to a user, which needs the right to do so.
    #[must_use]
    pub fn owner(self, owner: u32) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// Gives new files and directories to a group, of which the owner of the process is a member.
    #[must_use]
    pub fn group(self, group: u32) -> Self {
        Self { group: Some(group), ..self }
    }
}

impl WriteOptions {
    /// Sets the option `name` of a URL; false if it is not one of these.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, WriteOptionError> {
        match (name, value) {
            ("sync", "yes") => self.durability = Durability::Synced,
            ("sync", "no") => self.durability = Durability::Unsynced,
            ("mode", mode) => self.mode = Some(mode.parse()?),
            ("owner", owner) => self.owner = Some(number(owner)?),
            ("group", group) => self.group = Some(number(group)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The options, if the store writes. Fails if there are some and it does not.
    pub(crate) fn given(self, is_writing: bool) -> Result<Option<Self>, WriteOptionError> {
        match is_writing {
            true => Ok(Some(self)),
            false if self == Self::default() => Ok(None),
            false => Err(WriteOptionError::NotWriting),
        }
    }
}

/// The options of a URL, each after an `&`, without those that it has by default.
impl fmt::Display for WriteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.durability == Durability::Unsynced {
            f.write_str("&sync=no")?;
        }
        let numbers = [("owner", self.owner), ("group", self.group)];
        self.mode.map_or(Ok(()), |mode| write!(f, "&mode={mode}"))?;
        numbers.into_iter().try_for_each(|(name, id)| id.map_or(Ok(()), |id| write!(f, "&{name}={id}")))
    }
}

/// A number of a user or group. The largest stands for none.
fn number(text: &str) -> Result<u32, WriteOptionError> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number != u32::MAX).ok_or(WriteOptionError::Number)
}

impl FileMode {
    pub(crate) fn of_file(self) -> Mode {
        Mode::from_raw_mode(self.0)
    }

    /// The mode of directories: whoever may read may search.
    pub(crate) fn of_directory(self) -> Mode {
        Mode::from_raw_mode(self.0 | ((self.0 & 0o444) >> 2))
    }
}

impl FromStr for FileMode {
    type Err = WriteOptionError;

    fn from_str(text: &str) -> Result<Self, WriteOptionError> {
        let is_octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let bits = u32::from_str_radix(text, 8).ok().filter(|_| is_octal).ok_or(WriteOptionError::Mode)?;
        if bits & !PERMISSIONS != 0 || bits & OWNER != OWNER {
            return Err(WriteOptionError::Mode);
        }
        Ok(Self(bits))
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal_and_let_the_owner_read_and_write() {
        for (text, file, directory) in [("664", 0o664, 0o775), ("0640", 0o640, 0o750), ("600", 0o600, 0o700)] {
            let mode: FileMode = text.parse().unwrap();
            assert_eq!(mode.of_file().as_raw_mode(), file, "{text}");
            assert_eq!(mode.of_directory().as_raw_mode(), directory, "{text}");
            assert_eq!(mode.to_string().parse(), Ok(mode), "{text}");
        }
        for text in ["", "+664", "888", "1777", "4755", "444", "-rw", "6 4"] {
            assert_eq!(text.parse::<FileMode>(), Err(WriteOptionError::Mode), "{text}");
        }
    }
}
