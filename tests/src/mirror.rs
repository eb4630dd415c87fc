//! Arrays that are created through `/node` and written through `/array`, and what other libraries read of them.

use std::path::Path;

use tempfile::TempDir;

use crate::{
    python::Python,
    server::{Launch, Server, zarrd_with},
    skip::say,
};

/// The prefix below which the arrays are created.
const PREFIX: &str = "lab/mirrored";

/// A server of arrays that were created and written through it, with notes of what they hold.
#[derive(Debug)]
pub struct Mirrored {
    server: Server,
    notes: TempDir,
    /// How many arrays there are.
    pub arrays: usize,
    /// How many arrays the server refused.
    pub refused: usize,
    /// Held, since the server's store is in it.
    _store: TempDir,
}

/// How much of it a library read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// How many arrays were compared.
    pub compared: usize,
    /// Of how many the library's own encoding of the elements is what was compared with, since codecs lose something.
    pub recoded: usize,
    /// How many arrays the library cannot read.
    pub unread: usize,
}

impl Mirrored {
    /// Lets `writer` run a script of `tests/clients/slices`, and creates what it wrote once more through the server; in `dialect` if it is given.
    ///
    /// # Panics
    ///
    /// Where any of it fails.
    pub fn of(python: &Python, writer: &Python, script: &str, dialect: Option<&str>) -> Self {
        let [arrays, notes, store] = [(); 3].map(|()| tempfile::tempdir().expect("a directory can be made"));
        say(writer.run(&format!("slices/{script}"), &[text(arrays.path()), text(notes.path())]).trim_end());
        let server = Launch::sled(store.path()).start();
        let url = server.url("");
        let mut arguments = vec![url.as_str(), PREFIX, text(arrays.path()), text(notes.path())];
        arguments.extend(dialect);
        let said = python.run("writes/mirror.py", &arguments);
        say(said.trim_end());
        let [arrays, all, ..] = numbers(&said)[..] else { panic!("{said}") };
        Self { server, notes, arrays, refused: all - arrays, _store: store }
    }

    /// Lets a library read all of it from the server and compare each element.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn read_by(&self, python: &Python, library: &str) -> Read {
        self.compare(python, library, &self.server.url(&format!("/store/{PREFIX}")), &[])
    }

    /// Lets zarr-python 2 read all of it from an exported directory, and compare each element; `arguments` are more arguments of the script.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn exported_and_read_by(&self, python: &Python, arguments: &[&str]) -> Read {
        let place = tempfile::tempdir().expect("a directory can be made");
        let directory = place.path().join("exported");
        let exported = zarrd_with(["export", PREFIX, text(&directory), "--server", &self.server.url("")]);
        assert_eq!(exported.code, Some(0), "{}", exported.stderr);
        self.compare(python, "zarr", text(&directory), arguments)
    }

    fn compare(&self, python: &Python, library: &str, place: &str, arguments: &[&str]) -> Read {
        let arguments = [&[library, place, text(self.notes.path())], arguments].concat();
        let said = python.run("writes/compare.py", &arguments);
        say(said.trim_end());
        Read::parse(&said)
    }
}

impl Read {
    /// Reads the last line: `zarr-python 3.4.2 compared 61 arrays, 3 of them with …; 0 not read, 0 differ`.
    fn parse(said: &str) -> Self {
        let [compared, recoded, unread, 0] = numbers(said)[..] else { panic!("{said}") };
        Self { compared, recoded, unread }
    }
}

/// The numbers of the last line that are words of their own.
fn numbers(said: &str) -> Vec<usize> {
    let line = said.lines().last().unwrap_or_default();
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_read() {
        let line = "x 7\nzarr-python 3.4.2 compared 61 arrays, 3 of them with what it makes of lossy codecs itself; 2 not read, 0 differ";
        assert_eq!(Read::parse(line), Read { compared: 61, recoded: 3, unread: 2 });
    }
}
