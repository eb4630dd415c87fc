//! Arrays written by other libraries, compared with their elements as read through `/array`.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{
    originals::Originals,
    python::Python,
    server::{Launch, Server, zarrd_with},
    skip::note,
};

/// The prefix below which the arrays are imported.
const PREFIX: &str = "lab/written";

/// A server with imported arrays, and their writer's notes of their contents.
#[derive(Debug)]
pub struct ServedArrays {
    server: Server,
    arrays: PathBuf,
    notes: PathBuf,
    /// Contain the server's store and the script's output; retained until drop.
    _dirs: Vec<TempDir>,
}

/// The size of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The number of arrays.
    pub arrays: usize,
    /// The number of responses with elements.
    pub answers: usize,
}

impl ServedArrays {
    /// Runs a script of `tests/clients/slices` with `arguments`, a directory for arrays and one for notes; imports the
    /// arrays and serves them.
    ///
    /// # Panics
    ///
    /// If any step fails.
    pub fn by(python: &Python, script: &str, arguments: &[&str]) -> Self {
        let [arrays, notes] = [(); 2].map(|()| tempfile::tempdir().expect("a directory can be made"));
        let arguments = [arguments, &[text(arrays.path()), text(notes.path())]].concat();
        note(python.run(&format!("slices/{script}"), &arguments).trim_end());
        let written = Self::imported(arrays.path(), notes.path());
        Self { _dirs: [written._dirs, vec![arrays, notes]].into_iter().flatten().collect(), ..written }
    }

    /// Imports and serves arrays of another library.
    ///
    /// # Panics
    ///
    /// If any step fails.
    pub fn of(originals: &Originals) -> Self {
        Self::imported(&originals.arrays(), &originals.notes())
    }

    fn imported(arrays: &Path, notes: &Path) -> Self {
        let store = tempfile::tempdir().expect("a directory can be made");
        let location = format!("sled:{}", store.path().display());
        let imported = zarrd_with(["import", text(arrays), PREFIX, "--store", &location]);
        assert_eq!(imported.code, Some(0), "{}", imported.stderr);
        let [arrays, notes] = [arrays, notes].map(Path::to_owned);
        Self { server: Launch::of(location).start(), arrays, notes, _dirs: vec![store] }
    }

    /// The directory of the arrays.
    pub fn arrays(&self) -> &Path {
        &self.arrays
    }

    /// Reads everything in all formats, and random selections of each array; prints the names of the arrays.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub fn compare(&self, python: &Python, selections: usize) -> Compared {
        self.compare_as_served_by(&self.server, PREFIX, python, selections)
    }

    /// Compares the same arrays as another server has them below a prefix, such as `lab`.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub fn compare_as_served_by(&self, server: &Server, prefix: &str, python: &Python, selections: usize) -> Compared {
        let url = server.url(&format!("/array/{prefix}"));
        let output = python.run("slices/compare.py", &[&url, text(&self.notes), &selections.to_string()]);
        note(output.trim_end());
        Compared::read(output.lines().last().unwrap_or_default())
    }
}

impl Compared {
    /// Parses the last line of the comparison: `compared 61 arrays, 366 answers …`.
    fn read(line: &str) -> Self {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
        let mut next = || numbers.next().expect("the comparison reports its size");
        Self { arrays: next(), answers: next() }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have plain names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_is_parsed() {
        let line = "compared 61 arrays, 366 answers with 1000 elements, 9 refusals; 0 arrays differ";
        assert_eq!(Compared::read(line), Compared { arrays: 61, answers: 366 });
    }
}
