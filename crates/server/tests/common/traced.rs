//! A log of what this process traces, in memory.

use std::io;

use parking_lot::Mutex;

/// The log, for subscribers that write to it.
pub static TRACED: Traced = Traced(Mutex::new(Vec::new()));

/// Traced lines.
pub struct Traced(Mutex<Vec<u8>>);

impl Traced {
    /// Everything that was traced since it was last taken.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }

    /// Returns what was traced, and forgets it.
    pub fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap()
    }
}

impl io::Write for &Traced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
