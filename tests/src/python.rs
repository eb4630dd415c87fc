//! Python interpreters with Zarr libraries.

use std::{
    collections::BTreeMap,
    fs, io, iter,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
};

use crate::{
    environment::{RECIPE_FILE, clients, create_once, environment_dir, succeeds},
    skip::skip,
};

type Version = (u32, u32);

/// Packages that are installed together.
struct Packages {
    /// Their requirements file in `tests/clients`.
    requirements: &'static str,
    /// The prefix of the environments' names.
    name: &'static str,
    /// The supported versions of Python.
    runs_on: RangeInclusive<Version>,
}

/// The newest release of every library.
const NEWEST: Packages = Packages { requirements: "requirements.txt", name: "venv", runs_on: (3, 12)..=(3, u32::MAX) };

/// zarr-python 2, which cannot be installed next to the newest release. Its numcodecs has no wheels for Python 3.14.
const ZARR_2: Packages =
    Packages { requirements: "requirements-2.txt", name: "venv-zarr2", runs_on: (3, 11)..=(3, 13) };

/// Validators of OpenAPI, and generators of requests and clients.
const CONTRACT: Packages =
    Packages { requirements: "requirements-contract.txt", name: "venv-contract", runs_on: (3, 11)..=(3, u32::MAX) };

/// Libraries without knowledge of zarrd that read from it over HTTP.
const CLIENTS: Packages =
    Packages { requirements: "requirements-clients.txt", name: "venv-clients", runs_on: (3, 12)..=(3, u32::MAX) };

/// Servers that speak the protocols of cloud services.
const SERVICES: Packages =
    Packages { requirements: "requirements-services.txt", name: "venv-services", runs_on: (3, 11)..=(3, u32::MAX) };

/// The library that pictures are compared with.
const PICTURES: Packages =
    Packages { requirements: "requirements-pictures.txt", name: "venv-pictures", runs_on: (3, 12)..=(3, u32::MAX) };

/// The clients that the benchmarks compare with.
const BENCHMARKS: Packages =
    Packages { requirements: "requirements-benchmarks.txt", name: "venv-benchmarks", runs_on: (3, 12)..=(3, u32::MAX) };

/// An interpreter with installed packages.
#[derive(Clone, Debug)]
pub struct Python {
    interpreter: PathBuf,
}

/// An interpreter with the newest packages; `None` if there is none, which is reported as a skipped test.
pub fn python() -> Option<Python> {
    with(&NEWEST)
}

/// An interpreter with zarr-python 2; `None` if there is none, which is reported as a skipped test.
pub fn python_with_zarr_2() -> Option<Python> {
    with(&ZARR_2)
}

/// An interpreter with the tools that check `openapi.yaml`; `None` if there is none, which is reported as a skipped
/// test.
pub fn python_for_contract() -> Option<Python> {
    with(&CONTRACT)
}

/// An interpreter with libraries that read over HTTP; `None` if there is none, which is reported as a skipped test.
pub fn python_with_clients() -> Option<Python> {
    with(&CLIENTS)
}

/// An interpreter with servers that speak the protocols of cloud services; `None` if there is none, which is reported
/// as a skipped test.
pub fn python_with_services() -> Option<Python> {
    with(&SERVICES)
}

/// An interpreter with the library that pictures are compared with; `None` if there is none, which is reported as a
/// skipped test.
pub fn python_for_pictures() -> Option<Python> {
    with(&PICTURES)
}

/// An interpreter with the clients that the benchmarks compare with; `None` if there is none, which is reported as
/// skipped.
pub fn python_for_benchmarks() -> Option<Python> {
    with(&BENCHMARKS)
}

fn with(packages: &Packages) -> Option<Python> {
    // By requirements, since many tests of one process need them, and the search runs many interpreters.
    static FOUND: Mutex<BTreeMap<&str, Python>> = Mutex::new(BTreeMap::new());
    let found = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(python) = found().get(packages.requirements) {
        return Some(python.clone());
    }
    let python = search(packages)?;
    found().insert(packages.requirements, python.clone());
    Some(python)
}

fn search(packages: &Packages) -> Option<Python> {
    let suitable = |path: PathBuf| usable(&path, &packages.runs_on).map(|version| (path, version));
    let Some((base, version)) = candidates().find_map(suitable) else {
        let ((major, least), (_, most)) = (packages.runs_on.start(), packages.runs_on.end());
        let most = if *most == u32::MAX { "any newer".to_owned() } else { format!("{major}.{most}") };
        skip(&format!("Python {major}.{least} to {most} with venv; install it, or name it in ZARRD_PYTHON"));
        return None;
    };
    let name = format!("{}-py{}.{}", packages.name, version.0, version.1);
    match install(packages, &base, &name) {
        Ok(interpreter) => Some(Python { interpreter }),
        Err(error) => {
            skip(&format!("the packages of tests/clients/{}, from PyPI: {error}", packages.requirements));
            None
        }
    }
}

impl Python {
    /// A command that runs this interpreter.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        // Bypasses any configured proxy for connections to this machine.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// The recipe of the environment: the interpreter and the packages.
    pub(crate) fn recipe(&self) -> io::Result<String> {
        let dir = self.interpreter.ancestors().nth(2).unwrap_or(&self.interpreter);
        fs::read_to_string(dir.join(RECIPE_FILE))
    }

    /// Runs a script of `tests/clients`; returns its output.
    ///
    /// # Panics
    ///
    /// If the script fails.
    pub fn run(&self, script: &str, arguments: &[&str]) -> String {
        let mut command = self.command();
        command.arg(clients().join(script)).args(arguments);
        succeeds(&mut command).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn install(packages: &Packages, base: &Path, name: &str) -> io::Result<PathBuf> {
    let requirements = clients().join(packages.requirements);
    let recipe = format!("{}\n{}", base.display(), fs::read_to_string(&requirements)?);
    let dir = environment_dir(name, &recipe);
    let interpreter = dir.join("bin/python");
    create_once(&dir, &recipe, "bin/python", || {
        succeeds(Command::new(base).args(["-m", "venv"]).arg(&dir))?;
        let mut pip = Command::new(&interpreter);
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries=1",
            "--only-binary=:all:",
            "-r",
        ]);
        succeeds(pip.arg(&requirements)).map(drop)
    })?;
    Ok(interpreter)
}

/// The candidate interpreters, preferred ones first.
fn candidates() -> impl Iterator<Item = PathBuf> {
    let named = std::env::var_os("ZARRD_PYTHON").map(PathBuf::from);
    let usual = ["python3.13", "python3.12", "python3.14", "python3", "python3.11"].map(PathBuf::from);
    // Those of pyenv are searched if no other is suitable.
    named.into_iter().chain(usual).chain(iter::once_with(of_pyenv).flatten())
}

/// The interpreters installed by pyenv, newest first.
fn of_pyenv() -> Vec<PathBuf> {
    let Some(home) = std::env::var_os("HOME") else { return Vec::new() };
    let Ok(entries) = fs::read_dir(Path::new(&home).join(".pyenv/versions")) else { return Vec::new() };
    let mut found: Vec<_> = entries.flatten().map(|entry| entry.path().join("bin/python3")).collect();
    found.sort_by_key(|path| std::cmp::Reverse(usable(path, &((0, 0)..=(u32::MAX, 0)))));
    found
}

/// The version of an interpreter that exists, is in the wanted range, and can create environments.
fn usable(path: &Path, wanted: &RangeInclusive<Version>) -> Option<Version> {
    let script = "import sys, ensurepip, venv; print(*sys.version_info[:2])";
    let output = succeeds(Command::new(path).args(["-c", script])).ok()?;
    let (major, minor) = output.trim().split_once(' ')?;
    let version = (major.parse().ok()?, minor.parse().ok()?);
    wanted.contains(&version).then_some(version)
}
