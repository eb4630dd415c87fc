//! Arrays that are created through `/node` and written through `/array`, and what other libraries read of them.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    node::Node,
    originals::Originals,
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
    originals: Originals,
    hierarchy: Hierarchy,
    /// The path below which readers find the arrays.
    place: &'static str,
    notes: TempDir,
    /// How many arrays there are, and how many the server refused for which reasons.
    pub report: Value,
}

/// What a server has, in a directory.
#[derive(Debug)]
pub struct Exported {
    place: TempDir,
}

impl Mirrored {
    /// Creates what another library wrote once more through the server.
    ///
    /// # Panics
    ///
    /// Where any of it fails.
    pub fn of(python: &Python, originals: &Originals, hierarchy: Hierarchy) -> Self {
        let notes = tempfile::tempdir().expect("a directory can be made");
        let server = Launch::of("memory:").start();
        let (url, arrays, noted) = (server.url(""), originals.arrays(), originals.notes());
        let arguments = [&url, text(&arrays), text(&noted), text(notes.path())];
        let report = last_line(&python.run("writes/mirror.py", &[&arguments, hierarchy.arguments()].concat()));
        Self { server, originals: originals.clone(), hierarchy, place: "/store", notes, report }
    }

    /// Lets a library read all of it from the server and compare each element.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn read_by(&self, python: &Python, library: &str) -> Value {
        self.compare(python, library, &self.server.url(self.place))
    }

    /// Converts to v3 what is not: v2 in place, and the draft to a copy. From then on readers get that.
    ///
    /// # Panics
    ///
    /// Where it fails, or the new documents do not say what the old ones did.
    #[must_use]
    pub fn converted(self, python: &Python) -> Self {
        let url = self.server.url("");
        let arguments = [&[url.as_str(), text(self.notes.path())], self.hierarchy.arguments()].concat();
        let report = last_line(&python.run("writes/convert.py", &arguments));
        let place = match self.hierarchy {
            Hierarchy::Own => "/store",
            Hierarchy::Draft => "/store/converted",
        };
        Self { place, report, hierarchy: Hierarchy::Own, ..self }
    }

    /// Lets zarrita read the numbers from the server, and compare each element.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn read_by_zarrita(&self, node: &Node) -> Value {
        let (arrays, server) = (self.originals.arrays(), self.server.url(""));
        let imported = zarrd_with(["import", text(&arrays), "original", "--server", &server]);
        assert_eq!(imported.code, Some(0), "{}", imported.stderr);
        let url = self.server.url(self.place);
        last_line(&node.run("writes/compare_zarrita.mjs", &[&url, text(self.notes.path())]))
    }

    /// Exports the hierarchies at these paths, and one of the draft at `draft` to where zarr-python 2 looks for it.
    ///
    /// # Panics
    ///
    /// Where it fails.
    pub fn exported(&self, paths: &[&str]) -> Exported {
        let place = tempfile::tempdir().expect("a directory can be made");
        for path in paths {
            let directory = match self.hierarchy {
                Hierarchy::Own => place.path().join(path),
                Hierarchy::Draft => place.path().to_owned(),
            };
            let exported = zarrd_with(["export", path, text(&directory), "--server", &self.server.url("")]);
            assert_eq!(exported.code, Some(0), "{}", exported.stderr);
        }
        Exported { place }
    }

    /// Compares what was stored with what the originals' writer stored: documents with those that were asked for, and the bytes of chunks.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn stored_as_asked(&self, python: &Python, exported: &Exported) -> Value {
        let arrays = self.originals.arrays();
        let arguments = [text(&arrays), text(self.notes.path()), text(exported.place.path())];
        last_line(&python.run("writes/stored.py", &[&arguments, self.hierarchy.arguments()].concat()))
    }

    /// Lets zarr-python 2 read all of it from an exported directory, and compare each element.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn read_from(&self, exported: &Exported, python: &Python) -> Value {
        self.compare(python, "zarr", text(exported.place.path()))
    }

    fn compare(&self, python: &Python, library: &str, place: &str) -> Value {
        let arguments = [&[library, place, text(self.notes.path())], self.hierarchy.arguments()].concat();
        last_line(&python.run("writes/compare.py", &arguments))
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

/// The last line of what a script printed, which is JSON.
fn last_line(said: &str) -> Value {
    say(said.trim_end());
    let line = said.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}
