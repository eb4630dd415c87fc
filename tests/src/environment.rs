//! Environments of other languages, created once below `target/`.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::binary::workspace;

/// The directory of the foreign clients' scripts and their pinned dependencies.
pub fn clients() -> PathBuf {
    workspace().join("tests/clients")
}

/// The file in an environment that records its recipe.
pub(crate) const RECIPE_FILE: &str = "made-from";

/// Creates the environment in `dir`, unless it was created from the same `recipe` before. Concurrent tests wait for
/// each other.
pub(crate) fn create_once(dir: &Path, recipe: &str, make: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    fs::create_dir_all(dir.parent().unwrap_or(dir))?;
    let lock = File::create(dir.with_extension("lock"))?;
    lock.lock()?;
    let stamp = dir.join(RECIPE_FILE);
    if fs::read_to_string(&stamp).is_ok_and(|recorded| recorded == recipe) {
        return Ok(());
    }
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    make()?;
    fs::write(stamp, recipe)
}

/// Runs a command that must succeed; otherwise the error contains its output.
pub(crate) fn succeeds(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    Err(io::Error::other(format!("{command:?} failed ({}):\n{out}{err}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_is_created_once_per_recipe() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("env");
        let mut creation_count = 0;
        for recipe in ["one", "one", "two", "two", "one"] {
            create_once(&dir, recipe, || {
                creation_count += 1;
                fs::create_dir(&dir)
            })
            .unwrap();
        }
        assert_eq!(creation_count, 3);
        create_once(&dir, "three", || Err(io::Error::other("no network"))).unwrap_err();
        create_once(&dir, "three", || fs::create_dir(&dir)).unwrap();
    }
}
