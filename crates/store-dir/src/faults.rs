//! Faults of file systems while a file is read, for tests. Release builds do not have them.

use rustix::io::Errno;

use crate::attributes::Attributes;

/// A moment of a read.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The type of a file was checked, and the file is about to be opened.
    Checked,
    /// A buffer was read, and the attributes are about to be compared.
    Read,
    /// A directory is about to be read.
    Listing,
}

/// The moments in release builds.
#[cfg(not(debug_assertions))]
#[derive(Clone, Copy)]
pub(crate) enum Moment {
    Checked,
    Read,
    Listing,
}

/// Faults of a file system.
#[cfg(debug_assertions)]
#[derive(Clone, Default)]
pub struct Faults {
    granularity: Option<u32>,
    uncached: bool,
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

    pub(crate) fn is_uncached(&self) -> bool {
        self.uncached
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
        attributes
    }
}

#[cfg(not(debug_assertions))]
#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as in debug builds")]
impl Faults {
    pub(crate) fn is_uncached(&self) -> bool {
        false
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
