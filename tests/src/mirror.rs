//! Arrays that are created through `/node` and written through `/array`, and what other libraries read of them.

use std::path::Path;

use tempfile::TempDir;

use crate::{
    node::Node,
    python::Python,
    server::{Launch, Server, zarrd_with},
    skip::say,
};

/// What is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// Hierarchies of v2 and v3, as the arrays are, at `/v2` and `/v3`.
    Own,
    /// A hierarchy of the draft, at `/draft`.
    Draft,
}

/// A server of arrays that were created and written through it, with notes of what they hold.
#[derive(Debug)]
pub struct Mirrored {
    server: Server,
    hierarchy: Hierarchy,
    /// The path below which readers find the arrays.
    place: &'static str,
    originals: TempDir,
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
    /// Of how many what the library makes of them itself is what was compared with, since codecs lose something, or the library does.
    pub recoded: usize,
    /// How many arrays the library cannot read.
    pub unread: usize,
}

impl Mirrored {
    /// Lets `writer` run a script of `tests/clients/slices`, and creates what it wrote once more through the server.
    ///
    /// # Panics
    ///
    /// Where any of it fails.
    pub fn of(python: &Python, writer: &Python, script: &str, hierarchy: Hierarchy) -> Self {
        let [originals, notes, store] = [(); 3].map(|()| tempfile::tempdir().expect("a directory can be made"));
        say(writer.run(&format!("slices/{script}"), &[text(originals.path()), text(notes.path())]).trim_end());
        let server = Launch::sled(store.path()).start();
        let url = server.url("");
        let arguments = [&[url.as_str(), text(originals.path()), text(notes.path())], hierarchy.arguments()].concat();
        let said = python.run("writes/mirror.py", &arguments);
        say(said.trim_end());
        let [arrays, all, ..] = numbers(&said)[..] else { panic!("{said}") };
        let place = "/store";
        Self { server, hierarchy, place, originals, notes, arrays, refused: all - arrays, _store: store }
    }

    /// Lets a library read all of it from the server and compare each element.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn read_by(&self, python: &Python, library: &str) -> Read {
        self.compare(python, library, &self.server.url(self.place))
    }

    /// Converts to v3 what is not: v2 in place, and the draft to a copy. From then on readers get that.
    ///
    /// # Panics
    ///
    /// Where it fails.
    #[must_use]
    pub fn converted(self, python: &Python) -> Self {
        let url = self.server.url("");
        let arguments = [&[url.as_str(), text(self.notes.path())], self.hierarchy.arguments()].concat();
        let said = python.run("writes/convert.py", &arguments);
        say(said.trim_end());
        let [arrays, all, ..] = numbers(&said)[..] else { panic!("{said}") };
        let place = match self.hierarchy {
            Hierarchy::Own => "/store",
            Hierarchy::Draft => "/store/converted",
        };
        Self { place, arrays, refused: all - arrays, hierarchy: Hierarchy::Own, ..self }
    }

    /// Lets zarrita read the numbers from the server, and compare each element.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn read_by_zarrita(&self, node: &Node) -> Read {
        let originals = ["import", text(self.originals.path()), "original", "--server", &self.server.url("")];
        let imported = zarrd_with(originals);
        assert_eq!(imported.code, Some(0), "{}", imported.stderr);
        let said = node.run("writes/compare_zarrita.mjs", &[&self.server.url(self.place), text(self.notes.path())]);
        say(said.trim_end());
        Read::parse(&said)
    }

    /// Lets zarr-python 2 read all of it from an exported directory, and compare each element.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn exported_and_read_by(&self, python: &Python) -> Read {
        let place = tempfile::tempdir().expect("a directory can be made");
        let (prefix, read) = match self.hierarchy {
            Hierarchy::Own => ("v2", place.path().to_owned()),
            Hierarchy::Draft => ("draft", place.path().join("draft")),
        };
        let directory = place.path().join(prefix);
        let exported = zarrd_with(["export", prefix, text(&directory), "--server", &self.server.url("")]);
        assert_eq!(exported.code, Some(0), "{}", exported.stderr);
        self.compare(python, "zarr", text(&read))
    }

    fn compare(&self, python: &Python, library: &str, place: &str) -> Read {
        let arguments = [&[library, place, text(self.notes.path())], self.hierarchy.arguments()].concat();
        let said = python.run("writes/compare.py", &arguments);
        say(said.trim_end());
        Read::parse(&said)
    }
}

impl Hierarchy {
    /// What the scripts are told.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Own => &[],
            Self::Draft => &["draft"],
        }
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
