//! The machine under measurement, and the measured commit.

use std::{fs, path::Path, process::Command};

use crate::binary::workspace;

/// Describes the machine in one line: processors, memory, the file system of a directory, the kernel, and the current
/// load.
pub fn machine(dir: &Path) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = read("/proc/cpuinfo");
    let model = field(&info, "model name").unwrap_or("an unknown model");
    let kib = field(&read("/proc/meminfo"), "MemTotal").and_then(|size| size.split(' ').next()?.parse::<u64>().ok());
    let memory = kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{} GiB", (kib + (1 << 19)) >> 20));
    let kernel = read("/proc/sys/kernel/osrelease");
    let disk = disk(&read("/proc/mounts"), dir).unwrap_or_else(|| "an unknown disk".to_owned());
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("unknown");
    format!(
        "{cores} cores ({model}), {memory} of memory, {disk}, Linux {}, load average {load} at the start",
        kernel.trim()
    )
}

/// The abbreviated commit of the workspace, with a note if the working tree is modified.
pub fn commit() -> String {
    let Some(commit) = output(Command::new("git").args(["rev-parse", "--short=10", "HEAD"])) else {
        return "unknown".to_owned();
    };
    // Ignore the files that the report itself writes.
    let ours = ["status", "--porcelain", "--untracked-files=no", "--", ".", ":!BENCHMARKS.md", ":!README.md"];
    let changed = output(Command::new("git").args(ours)).is_some_and(|status| !status.is_empty());
    if changed { format!("{commit} with changes") } else { commit }
}

/// Today's date in UTC, such as `2026-11-22`.
pub fn today() -> String {
    output(Command::new("date").args(["-u", "+%F"])).unwrap_or_else(|| "unknown".to_owned())
}

/// The version of nginx, if it is installed.
pub fn nginx() -> Option<String> {
    let output_of = Command::new("nginx").arg("-v").output().ok()?;
    let output_of = String::from_utf8_lossy(&output_of.stderr).into_owned();
    output_of.split_once("nginx/").map(|(_, version)| version.trim().to_owned())
}

fn output(command: &mut Command) -> Option<String> {
    let output = command.current_dir(workspace()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// The file system and device of the mount that contains a directory.
fn disk(mounts: &str, dir: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (device, at, kind) = (fields.next()?, fields.next()?, fields.next()?);
        dir.starts_with(at).then_some((at.len(), device, kind))
    });
    // Of two mounts at one place, the later one is visible.
    let (_, device, kind) = mounts.max_by_key(|(length, ..)| *length)?;
    Some(format!("{kind} on {device}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_belongs_to_the_innermost_mount() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/deep xfs rw 0 0\n";
        let on = |dir: &str| disk(mounts, Path::new(dir)).unwrap();
        assert_eq!(on("/tmp/deep/er"), "xfs on /dev/b");
        assert_eq!(on("/tmp/deeper"), "tmpfs on tmpfs");
        assert_eq!(on("/home"), "ext4 on /dev/a");
    }

    #[test]
    fn fields_are_found_by_name() {
        let text = "model : 1\nmodel name\t: Some CPU\n";
        assert_eq!(field(text, "model name"), Some("Some CPU"));
        assert_eq!(field(text, "absent"), None);
    }
}
