//! S3 clients that know nothing of zarrd: botocore, s3fs, obstore, xarray, tensorstore, icechunk and DuckDB, and zarr-python's tests of stores.

use std::{fs, process::Command};

use tempfile::TempDir;
use zarrd_tests::{
    binary::zarrd,
    environment::clients,
    generated::Generated,
    python::{Python, python_with_clients},
    sample::files,
    server::{Launch, Server},
    skip::note,
    tools::{rclone, tool},
};

/// A server with an empty store.
struct Site {
    _server: Server,
    url: String,
    dir: TempDir,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Launch::sled(&dir.path().join("store")).arg("--s3-listen").arg("127.0.0.1:0").start();
        let url = format!("http://{}", server.next_address());
        Self { _server: server, url, dir }
    }

    /// A Python without settings of S3 clients of its own.
    fn command(&self, python: &Python) -> Command {
        let mut command = python.command();
        command.env("AWS_EC2_METADATA_DISABLED", "true").env("HOME", self.dir.path()).current_dir(self.dir.path());
        command
    }

    /// Runs the script of all clients with a key pair; returns its report.
    fn run_clients(&self, python: &Python, access: &str, secret: &str) -> String {
        let script = clients().join("unmodified/s3.py");
        let output = self.command(python).arg(script).args([&self.url, access, secret]).output().unwrap();
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success(), "{stdout}{stderr}");
        stdout
    }
}

#[test]
fn clients_read_write_list_copy_and_upload() {
    let Some(python) = python_with_clients() else { return };
    let report = Site::new().run_clients(&python, "zarrd", "zarrd");
    note(report.trim_end());
    assert!(report.trim_end().ends_with("73 results as expected"), "{report}");
}

#[test]
fn printed_keys_are_those_of_the_token() {
    let Some(python) = python_with_clients() else { return };
    let site = Site::new();
    let store = site.dir.path().join("store");
    let mut command = Command::new(zarrd());
    command.args(["token", "create", "--name", "Ada", "--allow", "write:/", "--s3", &site.url, "--store"]).arg(&store);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        line.unwrap_or_else(|| panic!("{name} in {text}")).to_owned()
    };
    let report = site.run_clients(&python, &value("aws_access_key_id"), &value("aws_secret_access_key"));
    assert!(report.trim_end().ends_with("results as expected"), "{report}");
}

#[test]
fn rclone_syncs_checks_copies_and_purges() {
    let Some(program) = tool("rclone", "rclone") else { return };
    let site = Site::new();
    let dir = site.dir.path();
    for (name, len) in [("a", 0), ("b/c ü+%41", 1), ("b/parts", 12 << 20)] {
        let path = dir.join("from").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, Generated::new(len, len).bytes()).unwrap();
    }
    let remote = [
        ("RCLONE_CONFIG_S3_TYPE", "s3"),
        ("RCLONE_CONFIG_S3_PROVIDER", "Other"),
        ("RCLONE_CONFIG_S3_ENDPOINT", &site.url),
        ("RCLONE_CONFIG_S3_ACCESS_KEY_ID", "zarrd"),
        ("RCLONE_CONFIG_S3_SECRET_ACCESS_KEY", "zarrd"),
    ];
    let run = |arguments: &[&str]| rclone(program, dir, &remote, arguments);
    run(&["sync", "from", "s3:lab/x", "--s3-upload-cutoff", "6M", "--s3-chunk-size", "5M"]);
    assert!(run(&["check", "from", "s3:lab/x", "--download"]).contains("0 differences found"));
    run(&["sync", "s3:lab/x", "back"]);
    assert_eq!(files(&dir.join("back")), files(&dir.join("from")));
    // Times are kept, so that nothing is copied again.
    assert!(!run(&["sync", "from", "s3:lab/x", "-v"]).contains("Copied"));
    run(&["moveto", "s3:lab/x/b/parts", "s3:lab/x/moved"]);
    let mut listed: Vec<String> = run(&["lsf", "-R", "--files-only", "s3:lab/x"]).lines().map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, ["a", "b/c ü+%41", "moved"]);
    run(&["purge", "s3:lab/x"]);
    assert_eq!(run(&["lsf", "s3:lab"]), "");
}

#[test]
fn tests_of_zarr_pythons_stores_pass() {
    let Some(python) = python_with_clients() else { return };
    let site = Site::new();
    let mut command = site.command(&python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-rfE", "--tb=short"]);
    let output = command.arg(clients().join("unmodified/s3_store.py")).env("URL", &site.url).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    note(text.lines().last().unwrap_or_default());
}
