//! Replicas of arrays that other libraries wrote, created through `/node` and written through `/array`, for other
//! libraries to read.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    node::Node,
    originals::Originals,
    python::Python,
    server::{Launch, Server, zarrd_with},
    skip::note,
};

/// The hierarchy in which replicas are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// Hierarchies of v2 and v3, matching the dialect of each array, at `/v2` and `/v3`.
    PerDialect,
    /// A hierarchy of the draft, at `/draft`.
    Draft,
}

/// A server with replicated arrays, and notes of their contents.
#[derive(Debug)]
pub struct ReplicatedHierarchy {
    server: Server,
    originals: Originals,
    hierarchy: Hierarchy,
    /// The path below which readers find the arrays.
    prefix: &'static str,
    notes: TempDir,
    /// The number of arrays, and the number of rejected ones by reason.
    pub report: Value,
}

/// The exported contents of a server.
#[derive(Debug)]
pub struct Exported {
    prefix: TempDir,
}

impl ReplicatedHierarchy {
    /// Replicates the data of another library through the server.
    ///
    /// # Panics
    ///
    /// If any step fails.
    pub fn of(python: &Python, originals: &Originals, hierarchy: Hierarchy) -> Self {
        Self::by(python, originals, hierarchy, Launch::of("memory:").start(), hierarchy.arguments())
    }

    /// Replicates the data of another library through a server of a store that is written key by key. The arguments are those
    /// of the script.
    ///
    /// # Panics
    ///
    /// If any step fails.
    pub fn in_place(python: &Python, originals: &Originals, server: Server, arguments: &[&str]) -> Self {
        Self::by(python, originals, Hierarchy::PerDialect, server, arguments)
    }

    fn by(python: &Python, originals: &Originals, hierarchy: Hierarchy, server: Server, further: &[&str]) -> Self {
        let notes = tempfile::tempdir().expect("a directory can be made");
        let (url, arrays, noted) = (server.url(""), originals.arrays(), originals.notes());
        let arguments = [&url, text(&arrays), text(&noted), text(notes.path())];
        let report = last_line(&python.run("writes/mirror.py", &[&arguments, further].concat()));
        Self { server, originals: originals.clone(), hierarchy, prefix: "/store", notes, report }
    }

    /// Patches the attributes of all arrays, and makes those larger whose shape can change. Returns their numbers.
    ///
    /// # Panics
    ///
    /// If any step fails.
    pub fn reshape(&self, python: &Python) -> Value {
        last_line(&python.run("writes/reshape.py", &[&self.server.url(""), text(self.notes.path())]))
    }

    /// True if there is a hierarchy at a path.
    pub async fn has(&self, path: &str) -> bool {
        self.server.get(&format!("/node/{path}")).await.status().is_success()
    }

    /// The server of the arrays.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Reads everything with a library from a directory, and compares every element.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub fn read_in(&self, directory: &Path, python: &Python, library: &str) -> Value {
        self.compare(python, library, text(directory))
    }

    /// Reads everything from the server with a library and compares every element.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub fn read_by(&self, python: &Python, library: &str) -> Value {
        self.compare(python, library, &self.server.url(self.prefix))
    }

    /// Converts v2 in place and the draft to a copy, both to v3. Afterwards readers use the result.
    ///
    /// # Panics
    ///
    /// If the conversion fails, or the new documents describe different nodes.
    #[must_use]
    pub fn converted(self, python: &Python) -> Self {
        let url = self.server.url("");
        let arguments = [&[url.as_str(), text(self.notes.path())], self.hierarchy.arguments()].concat();
        let report = last_line(&python.run("writes/convert.py", &arguments));
        let prefix = match self.hierarchy {
            Hierarchy::PerDialect => "/store",
            Hierarchy::Draft => "/store/converted",
        };
        Self { prefix, report, hierarchy: Hierarchy::PerDialect, ..self }
    }

    /// Reads the numeric arrays from the server with zarrita and compares every element.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub fn read_by_zarrita(&self, node: &Node) -> Value {
        let (arrays, server) = (self.originals.arrays(), self.server.url(""));
        let imported = zarrd_with(["import", text(&arrays), "original", "--server", &server]);
        assert_eq!(imported.code, Some(0), "{}", imported.stderr);
        let url = self.server.url(self.prefix);
        last_line(&node.run("writes/compare_zarrita.mjs", &[&url, text(self.notes.path())]))
    }

    /// Exports the hierarchies at these paths; a draft hierarchy at `draft` goes to the path where zarr-python 2
    /// expects it.
    ///
    /// # Panics
    ///
    /// If the export fails.
    pub fn exported(&self, paths: &[&str]) -> Exported {
        let prefix = tempfile::tempdir().expect("a directory can be made");
        for path in paths {
            let directory = match self.hierarchy {
                Hierarchy::PerDialect => prefix.path().join(path),
                Hierarchy::Draft => prefix.path().to_owned(),
            };
            let exported = zarrd_with(["export", path, text(&directory), "--server", &self.server.url("")]);
            assert_eq!(exported.code, Some(0), "{}", exported.stderr);
        }
        Exported { prefix }
    }

    /// Compares the stored data with the data of the original writer: documents with the requested ones, and the bytes
    /// of chunks.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub fn compare_stored(&self, python: &Python, exported: &Exported) -> Value {
        let arrays = self.originals.arrays();
        let arguments = [text(&arrays), text(self.notes.path()), text(exported.prefix.path())];
        last_line(&python.run("writes/stored.py", &[&arguments, self.hierarchy.arguments()].concat()))
    }

    /// Reads everything from an exported directory with zarr-python 2 and compares every element.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub fn read_from(&self, exported: &Exported, python: &Python) -> Value {
        self.compare(python, "zarr", text(exported.prefix.path()))
    }

    fn compare(&self, python: &Python, library: &str, prefix: &str) -> Value {
        let arguments = [&[library, prefix, text(self.notes.path())], self.hierarchy.arguments()].concat();
        last_line(&python.run("writes/compare.py", &arguments))
    }
}

impl Hierarchy {
    /// The arguments of the scripts.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::PerDialect => &[],
            Self::Draft => &["draft"],
        }
    }
}

impl Exported {
    /// The directory.
    pub fn path(&self) -> &Path {
        self.prefix.path()
    }
}

/// Parses the last line of a script's output, which is JSON.
fn last_line(output: &str) -> Value {
    note(output.trim_end());
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {output}"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}
