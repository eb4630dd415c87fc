//! S3 clients that know nothing of zarrd: botocore, s3fs, obstore, xarray, tensorstore, icechunk, DuckDB, the AWS CLI, rclone,
//! GDAL and netCDF-C, zarr-python's tests of stores, and cases of S3's behaviour.

use std::{fs, process::Command};

use tempfile::TempDir;
use zarrd_tests::{
    binary::zarrd,
    environment::clients,
    generated::Generated,
    python::{Python, python_with_clients, python_with_services},
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
        self.run(python, "unmodified/s3.py", &[&self.url, access, secret])
    }

    /// Runs a script; returns its report.
    fn run(&self, python: &Python, script: &str, arguments: &[&str]) -> String {
        report(self.command(python).arg(clients().join(script)).args(arguments))
    }

    /// Writes an empty file, a small one and one of several parts to a directory.
    fn write_files(&self, name: &str) {
        for (file, len) in [("a", 0), ("b/c ü+%41", 1), ("b/parts", 12 << 20)] {
            let path = self.dir.path().join(name).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, Generated::new(len, len).bytes()).unwrap();
        }
    }
}

/// The output of a command that succeeds.
fn report(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{command:?}: {stdout}{stderr}");
    stdout
}

#[test]
fn clients_read_write_list_copy_and_upload() {
    let Some(python) = python_with_clients() else { return };
    let report = Site::new().run_clients(&python, "zarrd", "zarrd");
    note(report.trim_end());
    assert!(report.trim_end().ends_with("79 results as expected"), "{report}");
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
    site.write_files("from");
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
fn aws_cli_syncs_copies_moves_and_removes() {
    let Some(python) = python_with_services() else { return };
    let site = Site::new();
    let dir = site.dir.path();
    site.write_files("from");
    let run = |arguments: &[&str]| {
        let mut command = site.command(&python);
        command.args(["-m", "awscli", "--endpoint-url", &site.url]).args(arguments).env("AWS_REGION", "us-east-1");
        report(command.env("AWS_ACCESS_KEY_ID", "zarrd").env("AWS_SECRET_ACCESS_KEY", "zarrd").env("COLUMNS", "200"))
    };
    run(&["s3", "mb", "s3://lab"]);
    // Files of more than 8 MiB are sent in parts.
    run(&["s3", "sync", "from", "s3://lab/x"]);
    run(&["s3", "sync", "s3://lab/x", "back"]);
    assert_eq!(files(&dir.join("back")), files(&dir.join("from")));
    assert_eq!(run(&["s3", "sync", "from", "s3://lab/x", "--dryrun"]), "");
    run(&["s3", "cp", "--recursive", "s3://lab/x/b", "s3://lab/copy"]);
    run(&["s3", "mv", "s3://lab/copy/parts", "s3://lab/moved"]);
    let listed = run(&["s3", "ls", "--recursive", "s3://lab"]);
    let sizes: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(sizes, ["1", "12582912", "0", "1", "12582912"], "{listed}");
    let put = ["s3api", "put-object", "--bucket", "lab", "--key", "note", "--body", "from/b/c ü+%41"];
    run(&[&put[..], &["--cache-control", "no-store", "--metadata", "a=b", "--checksum-algorithm", "SHA256"]].concat());
    let shown = run(&["s3api", "head-object", "--bucket", "lab", "--key", "note", "--checksum-mode", "ENABLED"]);
    assert!(shown.contains("no-store") && shown.contains("ChecksumSHA256"), "{shown}");
    run(&["s3", "rm", "--recursive", "s3://lab"]);
    assert_eq!(run(&["s3", "ls", "s3://lab"]), "");
    run(&["s3", "rb", "s3://lab"]);
    assert_eq!(run(&["s3", "ls"]), "");
}

#[test]
fn gdal_reads_and_writes_rasters_and_zarr() {
    let Some(python) = python_with_clients() else { return };
    let site = Site::new();
    let report = site.run(&python, "unmodified/s3_files.py", &[&site.url, "zarrd", "zarrd"]);
    note(report.trim_end());
    assert!(report.trim_end().ends_with("8 results as expected"), "{report}");
}

#[test]
fn cases_of_s3s_behaviour_pass_on_moto() {
    let Some(python) = python_with_services() else { return };
    note(Site::new().run(&python, "s3_cases/run.py", &["moto"]).trim_end());
}

#[test]
fn cases_of_s3s_behaviour_pass_on_zarrd() {
    let Some(python) = python_with_services() else { return };
    let site = Site::new();
    note(site.run(&python, "s3_cases/run.py", &["zarrd", &site.url, "zarrd", "zarrd"]).trim_end());
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
