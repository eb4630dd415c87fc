//! Locates or builds the program under test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::SystemTime,
};

/// The program under test, once determined.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// The `zarrd` under test.
///
/// `ZARRD_BIN` names it. Otherwise it is the one next to this executable, which is built first if it is missing or
/// older than its sources.
pub fn zarrd() -> &'static Path {
    PROGRAM.get_or_init(|| match std::env::var_os("ZARRD_BIN") {
        Some(path) => path.into(),
        None => next_to_this_executable(),
    })
}

/// Sets the `zarrd` under test, regardless of `ZARRD_BIN`.
///
/// # Panics
///
/// If another one was used before.
pub fn use_program(path: PathBuf) {
    let path = path.canonicalize().expect("the program exists");
    PROGRAM.set(path).expect("the program is not known yet");
}

/// The directory of this profile's executables, such as `target/debug`.
pub fn profile_dir() -> PathBuf {
    let executable = std::env::current_exe().expect("an executable has a path");
    let dir = executable.parent().expect("it lies in a directory");
    // Test executables are in `deps`, examples in `examples`.
    let inner = dir.ends_with("deps") || dir.ends_with("examples");
    if inner { dir.parent().expect("so does deps").to_owned() } else { dir.to_owned() }
}

/// The workspace directory.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are a member of the workspace")
}

/// The directory of all build artefacts.
pub fn target_dir() -> PathBuf {
    profile_dir().parent().expect("a profile's directory lies in target").to_owned()
}

fn next_to_this_executable() -> PathBuf {
    let dir = profile_dir();
    let path = dir.join("zarrd");
    if is_current(&path) {
        return path;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "-p", "zarrd"]).current_dir(workspace()).env("CARGO_TARGET_DIR", target_dir());
    if dir.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo runs").success(), "zarrd cannot be built");
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// True if the program is newer than all of its sources, which cargo lists in a file next to it.
fn is_current(program: &Path) -> bool {
    let Ok(list) = fs::read_to_string(program.with_extension("d")) else { return false };
    let Some(built) = modified(program) else { return false };
    let Some((_, sources)) = list.split_once(": ") else { return false };
    // Spaces in paths are escaped as `\ `.
    let sources = sources.trim_end().replace("\\ ", "\0");
    sources.split(' ').all(|source| modified(Path::new(&source.replace('\0', " "))).is_some_and(|time| time <= built))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
