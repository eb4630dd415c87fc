//! Faults of file systems while a file is read or changed, for tests. Release builds do not have them.

use std::borrow::Cow;
#[cfg(debug_assertions)]
use std::{os::fd::AsRawFd, path::PathBuf};

use rustix::{fd::OwnedFd, io::Errno};

use crate::attributes::Attributes;

/// A moment of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(debug_assertions), expect(unreachable_pub, reason = "tests of release builds have none"))]
pub enum Moment {
    /// The type of a file was checked, and the file is about to be opened.
    Checked,
    /// A buffer was read, and the attributes are about to be compared.
    Read,
    /// A directory is about to be read.
    Listing,
}

/// A system call of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(debug_assertions), expect(unreachable_pub, reason = "tests of release builds have none"))]
pub enum Call {
    /// Makes a temporary file.
    CreateFile,
    /// Writes bytes of a value.
    Write,
    /// Sets the owner, the mode or the times of a file or directory.
    SetAttributes,
    /// Makes a file durable.
    SyncFile,
    /// Makes a directory.
    MakeDirectory,
    /// Gives a file the name of its key.
    Rename,
    /// Makes the names in a directory durable.
    SyncDirectory,
    /// Removes the file of a value.
    RemoveFile,
    /// Removes a directory if it is empty.
    RemoveDirectory,
}

/// Faults of a file system.
#[cfg(debug_assertions)]
#[derive(Clone, Default)]
pub struct Faults {
    granularity: Option<u32>,
    clock_in_seconds: bool,
    uncached: bool,
    ignores_case: bool,
    on_call: Option<Hook<Call, Option<i32>>>,
    on_moment: Option<Hook<Moment, ()>>,
    on_open: Option<Hook<str, Option<i32>>>,
}

/// In release builds, nothing fails.
#[cfg(not(debug_assertions))]
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults;

#[cfg(debug_assertions)]
type Hook<T, R> = std::sync::Arc<dyn Fn(&T) -> R + Send + Sync>;

#[cfg(debug_assertions)]
impl Faults {
    /// Times are multiples of seconds.
    #[must_use]
    pub fn times_in_seconds(self) -> Self {
        Self { granularity: Some(1_000_000_000), ..self }
    }

    /// Times that the file system takes from its clock are multiples of seconds; those that programs set, which
    /// are whole microseconds here, are exact.
    #[must_use]
    pub fn clock_in_seconds(self) -> Self {
        Self { clock_in_seconds: true, ..self }
    }

    /// No file is in memory.
    #[must_use]
    pub fn nothing_cached(self) -> Self {
        Self { uncached: true, ..self }
    }

    /// Calls a function at each moment of a read.
    #[must_use]
    pub fn on_moment(self, hook: impl Fn(&Moment) + Send + Sync + 'static) -> Self {
        Self { on_moment: Some(std::sync::Arc::new(hook)), ..self }
    }

    /// Fails with the number of an error when a path is opened.
    #[must_use]
    pub fn on_open(self, hook: impl Fn(&str) -> Option<i32> + Send + Sync + 'static) -> Self {
        Self { on_open: Some(std::sync::Arc::new(hook)), ..self }
    }

    /// Fails with the number of an error before a call of a change.
    #[must_use]
    pub fn on_call(self, hook: impl Fn(&Call) -> Option<i32> + Send + Sync + 'static) -> Self {
        Self { on_call: Some(std::sync::Arc::new(hook)), ..self }
    }

    /// Changes find names whatever the case of their ASCII letters is.
    #[must_use]
    pub fn ignores_case(self) -> Self {
        Self { ignores_case: true, ..self }
    }

    pub(crate) fn is_uncached(&self) -> bool {
        self.uncached
    }

    pub(crate) fn call(&self, call: Call) -> Result<(), Errno> {
        let error = self.on_call.as_ref().and_then(|hook| hook(&call));
        error.map_or(Ok(()), |number| Err(Errno::from_raw_os_error(number)))
    }

    /// The path by which a file system finds what a change looks up in a directory.
    pub(crate) fn spelling<'p>(&self, directory: &OwnedFd, path: &'p str) -> Cow<'p, str> {
        if !self.ignores_case || path == "." {
            return Cow::Borrowed(path);
        }
        let mut found = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        let start = found.clone();
        for name in path.split('/') {
            let entries = std::fs::read_dir(&found).into_iter().flatten().flatten();
            let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
            let other = names.filter(|other| other.eq_ignore_ascii_case(name)).min();
            found.push(other.as_deref().unwrap_or(name));
        }
        let path = found.strip_prefix(&start).ok().and_then(|path| path.to_str()).map(str::to_owned);
        path.map_or(Cow::Borrowed(""), Cow::Owned)
    }

    pub(crate) fn moment(&self, moment: Moment) {
        if let Some(hook) = &self.on_moment {
            hook(&moment);
        }
    }

    pub(crate) fn open(&self, path: &str) -> Result<(), Errno> {
        let error = self.on_open.as_ref().and_then(|hook| hook(path));
        error.map_or(Ok(()), |number| Err(Errno::from_raw_os_error(number)))
    }

    pub(crate) fn attributes(&self, mut attributes: Attributes) -> Attributes {
        if let Some(unit) = self.granularity {
            for time in [&mut attributes.modified, &mut attributes.changed] {
                time.nanoseconds = time.nanoseconds.saturating_sub(time.nanoseconds.checked_rem(unit).unwrap_or(0));
            }
        }
        if self.clock_in_seconds {
            attributes.changed.nanoseconds = 0;
            if !attributes.modified.nanoseconds.is_multiple_of(1000) {
                attributes.modified.nanoseconds = 0;
            }
        }
        attributes
    }
}

#[cfg(not(debug_assertions))]
#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as in debug builds")]
impl Faults {
    pub(crate) fn is_uncached(&self) -> bool {
        false
    }

    pub(crate) fn call(&self, _: Call) -> Result<(), Errno> {
        Ok(())
    }

    pub(crate) fn spelling<'p>(&self, _: &OwnedFd, path: &'p str) -> Cow<'p, str> {
        Cow::Borrowed(path)
    }

    pub(crate) fn moment(&self, _: Moment) {}

    pub(crate) fn open(&self, _: &str) -> Result<(), Errno> {
        Ok(())
    }

    pub(crate) fn attributes(&self, attributes: Attributes) -> Attributes {
        attributes
    }
}

#[cfg(debug_assertions)]
impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}
