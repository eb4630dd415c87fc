//! Arrays that other libraries wrote, and what is read of them through `/array`.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{
    originals::Originals,
    python::Python,
    server::{Launch, Server, zarrd_with},
    skip::say,
};

/// The prefix below which the arrays are put.
const PREFIX: &str = "lab/written";

/// A server of arrays, with their writer's notes of what they hold.
#[derive(Debug)]
pub struct Written {
    server: Server,
    notes: PathBuf,
    /// Held, since the server's store and what a script wrote are in them.
    _dirs: Vec<TempDir>,
}

/// How much was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// How many arrays.
    pub arrays: usize,
    /// How many answers with elements.
    pub answers: usize,
}

impl Written {
    /// Runs a script of `tests/clients/slices`, which is given `arguments`, a directory for arrays and one for notes; imports the arrays, and
    /// serves them.
    ///
    /// # Panics
    ///
    /// Where any of it fails.
    pub fn by(python: &Python, script: &str, arguments: &[&str]) -> Self {
        let [arrays, notes] = [(); 2].map(|()| tempfile::tempdir().expect("a directory can be made"));
        let arguments = [arguments, &[text(arrays.path()), text(notes.path())]].concat();
        say(python.run(&format!("slices/{script}"), &arguments).trim_end());
        let written = Self::imported(arrays.path(), notes.path());
        Self { _dirs: [written._dirs, vec![arrays, notes]].into_iter().flatten().collect(), ..written }
    }

    /// Imports what another library wrote, and serves it.
    ///
    /// # Panics
    ///
    /// Where any of it fails.
    pub fn of(originals: &Originals) -> Self {
        Self::imported(&originals.arrays(), &originals.notes())
    }

    fn imported(arrays: &Path, notes: &Path) -> Self {
        let store = tempfile::tempdir().expect("a directory can be made");
        let location = format!("sled:{}", store.path().display());
        let imported = zarrd_with(["import", text(arrays), PREFIX, "--store", &location]);
        assert_eq!(imported.code, Some(0), "{}", imported.stderr);
        Self { server: Launch::of(location).start(), notes: notes.to_owned(), _dirs: vec![store] }
    }

    /// Reads all of it in all forms, and random selections of each array; the names of the arrays are said.
    ///
    /// # Panics
    ///
    /// Where anything differs, with what does.
    pub fn compare(&self, python: &Python, selections: usize) -> Compared {
        let url = self.server.url(&format!("/array/{PREFIX}"));
        let said = python.run("slices/compare.py", &[&url, text(&self.notes), &selections.to_string()]);
        say(said.trim_end());
        Compared::read(said.lines().last().unwrap_or_default())
    }
}

impl Compared {
    /// Reads the last line of the comparison: `compared 61 arrays, 366 answers …`.
    fn read(line: &str) -> Self {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
        let mut next = || numbers.next().expect("the comparison says how much it compared");
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
