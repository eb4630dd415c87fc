//! Arrays that other libraries write, which are made once and kept below `target/`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    binary::target_dir,
    environment::{clients, made},
    python::Python,
};

/// What a script of `tests/clients/slices` wrote.
#[derive(Clone, Debug)]
pub struct Originals {
    dir: PathBuf,
    /// What the writer said of it: how many arrays it wrote, and how many combinations it refused.
    pub said: String,
}

impl Originals {
    /// Lets `writer` run a script, unless it ran the same before.
    ///
    /// # Panics
    ///
    /// Where the script fails.
    pub fn by(writer: &Python, script: &str) -> Self {
        let dir = target_dir().join("originals").join(script);
        let recipe = recipe(writer, script).expect("the scripts can be read");
        made(&dir, &recipe, || {
            fs::create_dir(&dir)?;
            let [arrays, notes] = ["arrays", "notes"].map(|name| dir.join(name));
            let said = writer.run(&format!("slices/{script}"), &[text(&arrays), text(&notes)]);
            fs::write(dir.join("said"), said.trim_end())
        })
        .unwrap_or_else(|error| panic!("{script}: {error}"));
        let said = fs::read_to_string(dir.join("said")).expect("the writer said something");
        Self { dir, said }
    }

    /// The directory of the arrays.
    pub fn arrays(&self) -> PathBuf {
        self.dir.join("arrays")
    }

    /// The directory with notes of what they hold.
    pub fn notes(&self) -> PathBuf {
        self.dir.join("notes")
    }
}

/// All that the arrays depend on: the packages, the script and what it shares with others.
fn recipe(writer: &Python, script: &str) -> io::Result<String> {
    let read = |name: &str| fs::read_to_string(clients().join("slices").join(name));
    Ok([writer.recipe()?, read(script)?, read("expectation.py")?].concat())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("target has a plain name")
}
