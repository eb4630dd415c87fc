//! Programs of the system that transfer data over HTTP, as Debian packages them.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Output},
};

use crate::skip::skip;

/// A program that is installed.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    name: &'static str,
}

/// The program `name`; reports that the test was skipped if it is not installed, with the Debian package that has it.
pub fn tool(name: &'static str, package: &str) -> Option<Tool> {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|directory| directory.join(name).is_file()));
    if !found {
        skip(&format!("{name}, which Debian has in {package}"));
        return None;
    }
    Some(Tool { name })
}

impl Tool {
    /// A command that runs it in the directory `place`, without anybody's settings.
    pub fn command(self, place: &Path) -> Command {
        let mut command = Command::new(self.name);
        command.current_dir(place).env("HOME", place).env("LC_ALL", "C.UTF-8");
        // A proxy of this machine must not come between a client and a server on the same machine.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// Runs it in the directory `place`, however it ends.
    pub fn output<S: AsRef<OsStr>>(self, place: &Path, arguments: impl IntoIterator<Item = S>) -> Output {
        self.command(place).args(arguments).output().expect("the program runs")
    }

    /// Runs it in the directory `place`, and returns what it printed on stdout.
    ///
    /// # Panics
    ///
    /// If the program fails.
    pub fn run<S: AsRef<OsStr>>(self, place: &Path, arguments: impl IntoIterator<Item = S>) -> String {
        let output = self.output(place, arguments);
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{} failed ({}):\n{stdout}{stderr}", self.name, output.status);
        stdout.into_owned()
    }
}
