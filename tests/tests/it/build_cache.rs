//! `scripts/build-cache` shares third-party crates of two checkouts, and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;
use zarrd_tests::{binary::workspace, skip::skip};

/// A checkout of a small workspace, whose member and vendored crate return numbers.
struct Checkout {
    dir: PathBuf,
    cache: PathBuf,
}

impl Checkout {
    fn new(place: &Path, name: &str, member: u32, vendored: u32) -> Self {
        let dir = place.join(name);
        for (file, text) in [
            ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"member\"]\nexclude = [\"vendor\"]\n".to_owned()),
            (".cargo/config.toml", String::new()),
            (".gitignore", "target\n".to_owned()),
            (
                "member/Cargo.toml",
                "[package]\nname = \"member\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nvendored = { path = \"../vendor/vendored\" }\n"
                    .to_owned(),
            ),
            (
                "member/src/lib.rs",
                format!(
                    "pub fn number() -> u32 {{\n    {member} + vendored::number()\n}}\n\n#[test]\nfn numbers_are_added() {{\n    assert_eq!(number(), 3);\n}}\n"
                ),
            ),
            ("vendor/vendored/Cargo.toml", "[package]\nname = \"vendored\"\nversion = \"0.1.0\"\nedition = \"2024\"\n".to_owned()),
            ("vendor/vendored/src/lib.rs", format!("pub fn number() -> u32 {{\n    {vendored}\n}}\n")),
        ] {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let checkout = Self { dir, cache: place.join("cache") };
        assert!(checkout.run("cargo", &["generate-lockfile", "--offline"]).status.success());
        for arguments in [&["init", "--quiet"][..], &["add", "."]] {
            assert!(checkout.run("git", arguments).status.success());
        }
        checkout
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.dir).env("XDG_CACHE_HOME", &self.cache);
        // Those of the cargo that runs this test.
        for variable in ["CARGO_TARGET_DIR", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "CARGO_MANIFEST_DIR"] {
            command.env_remove(variable);
        }
        command.output().unwrap()
    }

    /// Runs the tests of this checkout in the shared build directory.
    fn test_in_cache(&self) -> Output {
        let script = workspace().join("scripts/build-cache");
        self.run(script.to_str().unwrap(), &["cargo", "test", "--offline", "--quiet"])
    }

    /// Runs the tests of this checkout in a directory.
    fn test_in(&self, target: &Path) -> Output {
        self.run("cargo", &["test", "--offline", "--quiet", "--target-dir", target.to_str().unwrap()])
    }

    fn builds(&self) -> Vec<PathBuf> {
        let builds = fs::read_dir(self.cache.join("zarrd/builds")).unwrap();
        builds.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    }
}

fn place() -> Option<TempDir> {
    if Command::new("flock").arg("--version").output().is_err()
        || Command::new("git").arg("--version").output().is_err()
    {
        skip("flock and git");
        return None;
    }
    Some(tempfile::tempdir().unwrap())
}

#[test]
fn fault_in_one_checkout_is_found_after_the_other_was_built() {
    let Some(place) = place() else { return };
    let faulty_member = Checkout::new(place.path(), "faulty member", 7, 2);
    let faulty_vendored = Checkout::new(place.path(), "faulty-vendored", 1, 7);
    let sound = Checkout::new(place.path(), "sound", 1, 2);
    let text = |output: &Output| String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    for _ in 0..2 {
        let output = sound.test_in_cache();
        assert!(output.status.success(), "{}", text(&output));
        for faulty in [&faulty_member, &faulty_vendored] {
            let output = faulty.test_in_cache();
            assert!(!output.status.success() && text(&output).contains("numbers_are_added"), "{}", text(&output));
        }
    }
    assert_eq!(sound.builds().len(), 1, "all three share one build directory");
}

#[test]
fn nothing_of_a_checkout_stays_in_the_shared_build_directory() {
    let Some(place) = place() else { return };
    let sound = Checkout::new(place.path(), "sound", 1, 2);
    assert!(sound.test_in_cache().status.success());
    let [build] = &sound.builds()[..] else { panic!("one build directory") };
    let left = sound.run("find", &[build.to_str().unwrap(), "-name", "*member*", "-o", "-name", "*vendored*"]);
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

#[test]
fn incomplete_build_directory_is_emptied() {
    let Some(place) = place() else { return };
    let sound = Checkout::new(place.path(), "sound", 1, 2);
    assert!(sound.test_in_cache().status.success());
    let [build] = &sound.builds()[..] else { panic!("one build directory") };
    fs::remove_file(build.join("complete")).unwrap();
    fs::write(build.join("half"), "").unwrap();
    assert!(sound.test_in_cache().status.success());
    assert!(!build.join("half").exists());
}

#[test]
fn build_directory_in_use_or_without_permission_is_replaced_by_that_of_the_checkout() {
    let Some(place) = place() else { return };
    let sound = Checkout::new(place.path(), "sound", 1, 2);
    assert!(sound.test_in_cache().status.success());
    let [build] = &sound.builds()[..] else { panic!("one build directory") };
    let lock = fs::File::options().append(true).open(build.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let output = sound.test_in_cache();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("used by another run"));
    assert!(sound.dir.join("target/debug").exists());
    drop(lock);
    // A file in place of the cache, since permissions do not stop root.
    fs::remove_dir_all(&sound.cache).unwrap();
    fs::write(&sound.cache, "").unwrap();
    let output = sound.test_in_cache();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be written"));
}

#[test]
fn build_directory_shared_without_the_script_runs_the_code_of_another_checkout() {
    let Some(place) = place() else { return };
    let target = place.path().join("target");
    let faulty = Checkout::new(place.path(), "faulty", 7, 2);
    let sound = Checkout::new(place.path(), "sound", 1, 2);
    assert!(sound.test_in(&target).status.success());
    // The reason for the script; if cargo finds the fault one day, the script can go.
    assert!(faulty.test_in(&target).status.success());
}
