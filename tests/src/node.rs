//! Node with zarrita.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::NamedTempFile;

use crate::{
    binary::target_dir,
    environment::{clients, create_once, environment_dir, succeeds},
    skip::skip,
};

/// The oldest Node version that the packages support.
const MIN_VERSION: u32 = 20;

/// The modules shared by the scripts.
const SHARED: [&str; 2] = ["chromium.mjs", "elements.mjs"];

/// Node with the packages of `tests/clients/package-lock.json`.
#[derive(Clone, Debug)]
pub struct Node {
    /// The directory of the modules of this checkout, with a link to the packages.
    dir: PathBuf,
}

/// Node with its packages; `None` if it is not installed, which is reported as a skipped test.
pub fn node() -> Option<Node> {
    if version().is_none_or(|version| version < MIN_VERSION) {
        skip("Node 20 or newer with npm, see https://nodejs.org");
        return None;
    }
    match install("node", &clients()).and_then(|packages| scripts_dir(&packages)) {
        Ok(dir) => Some(Node { dir }),
        Err(error) => {
            skip(&format!("the packages of tests/clients/package-lock.json, from npm: {error}"));
            None
        }
    }
}

/// A command that starts Azurite, an emulator of Azure's storage, on a free port; `None` if it cannot be installed,
/// which is reported as a skipped test.
pub fn azurite() -> Option<Command> {
    let dir = match install("azurite", &clients().join("azurite")) {
        Ok(dir) => dir,
        Err(error) => {
            skip(&format!("Node with npm, and the packages of tests/clients/azurite, from npm: {error}"));
            return None;
        }
    };
    let mut command = Command::new(dir.join("node_modules/.bin/azurite-blob"));
    command.args(["--blobPort", "0", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]);
    command.current_dir(dir);
    Some(command)
}

impl Node {
    /// Runs a program as an ES module that can import the packages; returns its output.
    ///
    /// # Errors
    ///
    /// If the program fails; the error contains its output.
    pub fn run_text(&self, name: &str, program: &str, arguments: &[&str]) -> io::Result<String> {
        // Node resolves packages next to the module.
        let path = self.put(name, program)?;
        succeeds(Command::new("node").arg(path).args(arguments))
    }

    /// Runs a script of `tests/clients`, next to the modules shared by scripts; returns its output.
    ///
    /// # Panics
    ///
    /// If the script fails.
    pub fn run(&self, script: &str, arguments: &[&str]) -> String {
        for module in SHARED {
            let text = fs::read_to_string(clients().join(module)).expect("the module exists");
            self.put(module, &text).expect("it can be written");
        }
        let path = clients().join(script);
        let text = fs::read_to_string(&path).expect("the script exists");
        let name = path.file_name().and_then(|name| name.to_str()).expect("the script has a name");
        self.run_text(name, &text, arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Writes a module next to the packages in one step, since another test may be loading it; returns its path.
    fn put(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let mut file = NamedTempFile::new_in(&self.dir)?;
        file.write_all(text.as_bytes())?;
        let path = self.dir.join(name);
        file.persist(&path)?;
        Ok(path)
    }

    /// Runs a program provided by a package; returns its output.
    ///
    /// # Panics
    ///
    /// If the program fails.
    pub fn run_package(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(self.dir.join("node_modules/.bin").join(program));
        // Disables update checks and telemetry.
        command.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
        succeeds(command.args(arguments)).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The directory of this checkout's modules, from which Node finds the packages in the directory `environment`.
fn scripts_dir(environment: &Path) -> io::Result<PathBuf> {
    let name = environment.file_name().unwrap_or_default();
    let (dir, packages) = (target_dir().join("scripts").join(name), environment.join("node_modules"));
    fs::create_dir_all(&dir)?;
    match symlink(&packages, dir.join("node_modules")) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(dir),
    }
}

/// Installs the packages that the files in `from` list; returns the directory.
fn install(name: &str, from: &Path) -> io::Result<PathBuf> {
    let lock = fs::read_to_string(from.join("package-lock.json"))?;
    let dir = environment_dir(name, &lock);
    create_once(&dir, &lock, "node_modules", || {
        fs::create_dir(&dir)?;
        for file in ["package.json", "package-lock.json"] {
            fs::copy(from.join(file), dir.join(file))?;
        }
        succeeds(
            Command::new("npm")
                .args(["ci", "--no-fund", "--no-audit", "--ignore-scripts", "--fetch-retries=1"])
                .current_dir(&dir),
        )
        .map(drop)
    })?;
    Ok(dir)
}

fn version() -> Option<u32> {
    let output = succeeds(Command::new("node").arg("--version")).ok()?;
    output.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}
