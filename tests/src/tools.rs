//! Programs of the system that transfer data over HTTP, as packaged by Debian.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::{binary::target_dir, skip::skip};

/// An installed program.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    name: &'static str,
}

/// The program `name`; `None` if it is not installed, which is reported as a skipped test with the Debian package to
/// install.
pub fn tool(name: &'static str, package: &str) -> Option<Tool> {
    if in_path(name).is_none() {
        skip(&format!("{name}, which Debian has in {package}"));
        return None;
    }
    Some(Tool { name })
}

/// A program that `cargo install --root target/tools` installed, or one in the search path.
pub fn executable(name: &str) -> Option<PathBuf> {
    let installed = target_dir().join("tools/bin").join(name);
    if installed.is_file() { Some(installed) } else { in_path(name) }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

impl Tool {
    /// A command that runs it in the directory `dir`, without user configuration.
    pub fn command(self, dir: &Path) -> Command {
        let mut command = Command::new(self.name);
        command.current_dir(dir).env("HOME", dir).env("LC_ALL", "C.UTF-8");
        // Bypasses any configured proxy for connections to this machine.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// Runs it in the directory `dir`, regardless of its exit status.
    pub fn output<S: AsRef<OsStr>>(self, dir: &Path, arguments: impl IntoIterator<Item = S>) -> Output {
        self.command(dir).args(arguments).output().expect("the program runs")
    }

    /// Runs it in the directory `dir`; returns its stdout.
    ///
    /// # Panics
    ///
    /// If the program fails.
    pub fn run<S: AsRef<OsStr>>(self, dir: &Path, arguments: impl IntoIterator<Item = S>) -> String {
        let output = self.output(dir, arguments);
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{} failed ({}):\n{stdout}{stderr}", self.name, output.status);
        stdout.into_owned()
    }
}

/// Runs rclone, whose remotes the variables describe; returns its report.
pub fn rclone(rclone: Tool, dir: &Path, remotes: &[(&str, &str)], arguments: &[&str]) -> String {
    let mut command = rclone.command(dir);
    // With certificates of the environment it has no S3.
    command.env("RCLONE_CONFIG", "/dev/null").env_remove("AWS_CA_BUNDLE").envs(remotes.iter().copied());
    let output = command.args(arguments).output().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{arguments:?}: {stdout}{stderr}");
    stdout + &stderr
}
