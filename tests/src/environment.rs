//! Environments of other languages, created once for each recipe and shared by all checkouts of a user.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use xxhash_rust::xxh3::xxh3_64;

use crate::binary::{target_dir, workspace};

/// The directory of the foreign clients' scripts and their pinned dependencies.
pub fn clients() -> PathBuf {
    workspace().join("tests/clients")
}

/// The file in an environment that records its recipe. It is written last, so an environment without it is incomplete.
pub(crate) const RECIPE_FILE: &str = "made-from";

/// Environments that were not used for this long are removed when another one is created.
const MAX_IDLE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The directory of all environments: `zarrd/environments` in `$XDG_CACHE_HOME`, by default `~/.cache`; without a home,
/// or if it cannot be written, in the directory of build artefacts.
fn environments() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    match cache.map(|cache| cache.join("zarrd/environments")) {
        Some(dir) if fs::create_dir_all(&dir).is_ok() && tempfile::tempfile_in(&dir).is_ok() => dir,
        _ => target_dir().join("environments"),
    }
}

/// The directory of an environment, which exists once [`create_once`] created it: one for each name and recipe.
pub(crate) fn environment_dir(name: &str, recipe: &str) -> PathBuf {
    environments().join(format!("{name}-{:016x}", xxh3_64(recipe.as_bytes())))
}

/// Creates the environment in `dir`, unless it was created from the same `recipe` before and still has the file or
/// directory `content`. Concurrent tests wait for each other. Other environments next to it that were not used for a
/// month are removed.
pub(crate) fn create_once(
    dir: &Path,
    recipe: &str,
    content: &str,
    make: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    fs::create_dir_all(dir.parent().unwrap_or(dir))?;
    let mut lock = dir.as_os_str().to_owned();
    lock.push(".lock");
    let lock = File::create(lock)?;
    lock.lock()?;
    let stamp = dir.join(RECIPE_FILE);
    if dir.join(content).exists() && fs::read_to_string(&stamp).is_ok_and(|recorded| recorded == recipe) {
        // Its time is that of its last use.
        File::options().append(true).open(&stamp)?.set_modified(SystemTime::now())?;
        return Ok(());
    }
    remove_idle(dir);
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    make()?;
    fs::write(stamp, recipe)
}

/// Removes environments next to `dir` that were not used for a month. One that cannot be removed stays.
fn remove_idle(dir: &Path) {
    let Some(entries) = dir.parent().and_then(|parent| fs::read_dir(parent).ok()) else { return };
    for other in entries.flatten().map(|entry| entry.path()).filter(|other| other != dir) {
        let used = fs::metadata(other.join(RECIPE_FILE)).and_then(|stamp| stamp.modified());
        if used.is_ok_and(|used| used.elapsed().is_ok_and(|idle| idle > MAX_IDLE)) {
            let _ = fs::remove_dir_all(&other);
        }
    }
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
            create_once(&dir, recipe, "bin", || {
                creation_count += 1;
                fs::create_dir_all(dir.join("bin"))
            })
            .unwrap();
        }
        assert_eq!(creation_count, 3);
        create_once(&dir, "three", "bin", || Err(io::Error::other("no network"))).unwrap_err();
        create_once(&dir, "three", "bin", || fs::create_dir_all(dir.join("bin"))).unwrap();
    }

    #[test]
    fn incomplete_or_damaged_environment_is_created_again() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("env");
        let create = || create_once(&dir, "one", "bin", || fs::create_dir_all(dir.join("bin"))).unwrap();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("half"), "").unwrap();
        create();
        assert!(!dir.join("half").exists());
        fs::remove_dir(dir.join("bin")).unwrap();
        create();
        assert!(dir.join("bin").exists());
    }

    #[test]
    fn environments_that_were_not_used_for_a_month_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let [idle, used, dir] = ["idle", "used", "new"].map(|name| place.path().join(name));
        for other in [&idle, &used] {
            create_once(other, "one", "", || fs::create_dir(other)).unwrap();
        }
        let stamp = File::options().append(true).open(idle.join(RECIPE_FILE)).unwrap();
        stamp.set_modified(SystemTime::now() - MAX_IDLE - Duration::from_secs(60)).unwrap();
        create_once(&dir, "two", "", || fs::create_dir(&dir)).unwrap();
        assert_eq!([idle.exists(), used.exists(), dir.exists()], [false, true, true]);
    }
}
