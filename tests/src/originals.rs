//! Arrays written by other libraries, created once below `target/`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    environment::{clients, create_once, environment_dir},
    python::Python,
};

/// How many of the arrays that a script can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of them: thousands, which take minutes to compare.
    All,
    /// One in eight, chosen by their names.
    Sample,
}

/// The data written by a script of `tests/clients/slices`.
#[derive(Clone, Debug)]
pub struct Originals {
    dir: PathBuf,
    /// The output of the writer: the number of arrays written, and of combinations rejected.
    pub output: String,
}

impl Originals {
    /// Runs a script with `writer`, unless the same script ran before.
    ///
    /// # Panics
    ///
    /// If the script fails.
    pub fn by(writer: &Python, script: &str, extent: Extent) -> Self {
        let one_in = match extent {
            Extent::All => "1",
            Extent::Sample => "8",
        };
        let recipe = [recipe(writer, script).expect("the scripts can be read"), one_in.to_owned()].concat();
        let dir = environment_dir(&format!("originals-{}", script.replace('/', "-")), &recipe);
        create_once(&dir, &recipe, "said", || {
            fs::create_dir(&dir)?;
            let [arrays, notes] = ["arrays", "notes"].map(|name| dir.join(name));
            let output = writer.run(&format!("slices/{script}"), &[text(&arrays), text(&notes), one_in]);
            fs::write(dir.join("said"), output.trim_end())
        })
        .unwrap_or_else(|error| panic!("{script}: {error}"));
        let output = fs::read_to_string(dir.join("said")).expect("the writer printed something");
        Self { dir, output }
    }

    /// The directory of the arrays.
    pub fn arrays(&self) -> PathBuf {
        self.dir.join("arrays")
    }

    /// The directory with notes of their contents.
    pub fn notes(&self) -> PathBuf {
        self.dir.join("notes")
    }
}

/// Everything that the arrays depend on: the packages, the script and its shared modules.
fn recipe(writer: &Python, script: &str) -> io::Result<String> {
    let read = |name: &str| fs::read_to_string(clients().join("slices").join(name));
    Ok([writer.recipe()?, read(script)?, read("expectation.py")?].concat())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("target has a plain name")
}
