//! Python with the Zarr libraries that read and write over HTTP.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    binary::target_dir,
    environment::{clients, made, succeeds},
    skip::skip,
};

/// The oldest version that the newest zarr-python runs on.
const LEAST: (u32, u32) = (3, 12);

/// An interpreter with the packages of `tests/clients/requirements.txt`.
#[derive(Clone, Debug)]
pub struct Python {
    interpreter: PathBuf,
}

/// The interpreter and its packages; says that the test was skipped where there is none.
pub fn python() -> Option<Python> {
    let Some((base, version)) = candidates().into_iter().find_map(|path| usable(&path).map(|version| (path, version)))
    else {
        skip("Python 3.12 or newer with venv; install it, or name it in ZARRD_PYTHON");
        return None;
    };
    let dir = target_dir().join(format!("venv-py{}.{}", version.0, version.1));
    match install(&base, &dir) {
        Ok(interpreter) => Some(Python { interpreter }),
        Err(error) => {
            skip(&format!("the packages of tests/clients/requirements.txt, from PyPI: {error}"));
            None
        }
    }
}

impl Python {
    /// A command that runs this interpreter.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        // A proxy of this machine must not come between a client and a server on the same machine.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// Runs a script of `tests/clients`, and gives what it printed.
    ///
    /// # Panics
    ///
    /// Where the script fails.
    pub fn run(&self, script: &str, arguments: &[&str]) -> String {
        let mut command = self.command();
        command.arg(clients().join(script)).args(arguments);
        succeeds(&mut command).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn install(base: &Path, dir: &Path) -> io::Result<PathBuf> {
    let requirements = clients().join("requirements.txt");
    let interpreter = dir.join("bin/python");
    let recipe = format!("{}\n{}", base.display(), fs::read_to_string(&requirements)?);
    made(dir, &recipe, || {
        succeeds(Command::new(base).args(["-m", "venv"]).arg(dir))?;
        let mut pip = Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", "-r"]);
        succeeds(pip.arg(&requirements)).map(drop)
    })?;
    Ok(interpreter)
}

/// Where interpreters are looked for, the preferred ones first.
fn candidates() -> Vec<PathBuf> {
    let named = std::env::var_os("ZARRD_PYTHON").map(PathBuf::from);
    let usual = ["python3.13", "python3.12", "python3.14", "python3"].map(PathBuf::from);
    named.into_iter().chain(usual).chain(of_pyenv()).collect()
}

/// The interpreters that pyenv has, the newest first.
fn of_pyenv() -> Vec<PathBuf> {
    let Some(home) = std::env::var_os("HOME") else { return Vec::new() };
    let Ok(entries) = fs::read_dir(Path::new(&home).join(".pyenv/versions")) else { return Vec::new() };
    let mut found: Vec<_> = entries.flatten().map(|entry| entry.path().join("bin/python3")).collect();
    found.sort_by_key(|path| std::cmp::Reverse(usable(path)));
    found
}

/// The version of an interpreter that is there, new enough, and able to make environments.
fn usable(path: &Path) -> Option<(u32, u32)> {
    let script = "import sys, ensurepip, venv; print(*sys.version_info[:2])";
    let said = succeeds(Command::new(path).args(["-c", script])).ok()?;
    let (major, minor) = said.trim().split_once(' ')?;
    let version = (major.parse().ok()?, minor.parse().ok()?);
    (version >= LEAST).then_some(version)
}
