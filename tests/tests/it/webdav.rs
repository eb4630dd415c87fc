//! WebDAV clients that know nothing of zarrd: Debian's litmus, rclone, cadaver and davfs2, and obstore with zarr-python.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;
use zarrd_tests::{
    environment::clients,
    generated::Generated,
    python::python_with_clients,
    sample::files,
    server::{Launch, Server},
    skip::{is_root, note, skip},
    tools::{rclone, tool},
};

/// A server with an empty store.
struct Site {
    server: Server,
    /// The URL at whose root the keys are, which ends in `/`.
    root: String,
    dir: TempDir,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Launch::sled(&dir.path().join("store")).arg("--dav-listen").arg("127.0.0.1:0").start();
        let root = format!("http://{}/", server.next_address());
        Self { server, root, dir }
    }

    /// The URLs of the root prefix, at the root and below `/store`.
    fn urls(&self) -> [String; 2] {
        [self.root.clone(), self.server.url("/store/")]
    }

    /// A new directory.
    fn new_dir(&self, name: &str) -> std::path::PathBuf {
        let dir = self.dir.path().join(name);
        fs::create_dir(&dir).unwrap();
        dir
    }
}

/// The tests of litmus that fail, for the same reason: a collection exists as long as keys are below it, so none is made
/// empty, none is missing above a key, and erasing what does not exist succeeds.
const FAILURES: [(&str, &[&str], &str); 4] = [
    (
        "basic",
        // They expect 409 below a collection that was not made, 404 for DELETE of nothing, and 405 after an MKCOL.
        &["put_no_parent", "delete_null", "mkcol_again", "mkcol_no_parent"],
        "of 16 tests run: 12 passed, 4 failed",
    ),
    (
        "copymove",
        // They expect 409 below a collection that was not made, and 404 for DELETE of nothing after a shallow copy.
        &["copy_nodestcoll", "copy_shallow"],
        "of 13 tests run: 11 passed, 2 failed",
    ),
    // The first looks for an empty collection; the others set properties of their own, which zarrd does not store.
    ("props", &["propfind_d0", "propset", "propmanyns", "propget"], "of 14 tests run: 10 passed, 4 failed"),
    ("http", &[], "of 4 tests run: 4 passed, 0 failed"),
];

/// The names of failed tests in the output of litmus, which overwrites lines.
fn failed(output: &str) -> Vec<&str> {
    let lines = output.split(['\r', '\n']).filter(|line| line.contains(" FAIL"));
    lines.filter_map(|line| line.trim().split_once(". ")?.1.split('.').next()).collect()
}

#[test]
fn litmus_fails_only_where_collections_have_no_keys_or_properties_are_set() {
    let Some(litmus) = tool("litmus", "litmus") else { return };
    let site = Site::new();
    for (suite, expected, summary) in FAILURES {
        for url in site.urls() {
            let output = litmus.command(site.dir.path()).env("TESTS", suite).args(["-k", &url]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(failed(&text), expected, "{url} {text}");
            assert!(text.contains(summary), "{url} {text}");
            note(format_args!("litmus {suite} at {url}: {summary}"));
        }
    }
}

#[test]
fn rclone_copies_syncs_moves_and_checks() {
    let Some(program) = tool("rclone", "rclone") else { return };
    let site = Site::new();
    for (number, url) in site.urls().into_iter().enumerate() {
        let dir = site.new_dir(&format!("rclone-{number}"));
        let remote = [
            ("RCLONE_CONFIG_DAV_TYPE", "webdav"),
            ("RCLONE_CONFIG_DAV_URL", &url),
            ("RCLONE_CONFIG_DAV_VENDOR", "other"),
        ];
        let run = |arguments: &[&str]| rclone(program, &dir, &remote, arguments);
        let write = |name: &str, len: u64| {
            let path = dir.join("from").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, Generated::new(len, len).bytes()).unwrap();
        };
        for (name, len) in [("a", 0), ("b/c ü+%41", 1), ("b/d/e", 100_000), ("b/f", 3_000_000), ("g/h", 17)] {
            write(name, len);
        }
        let remote = format!("dav:rclone{number}");
        run(&["copy", "from", &remote]);
        assert!(run(&["check", "from", &remote, "--download"]).contains("0 differences found"));
        run(&["sync", &remote, "back"]);
        assert_eq!(files(&dir.join("back")), files(&dir.join("from")), "{url}");
        // A changed file, a new one, and one that is gone.
        write("g/h", 19);
        write("g/new", 20);
        fs::remove_file(dir.join("from/b/d/e")).unwrap();
        run(&["sync", "from", &remote]);
        assert!(run(&["check", "from", &remote, "--download"]).contains("0 differences found"));
        // On the server: a copy of a value, and moves of a value and a collection.
        run(&["copyto", &format!("{remote}/g/h"), &format!("{remote}/g/copy")]);
        run(&["moveto", &format!("{remote}/g/copy"), &format!("{remote}/g/moved")]);
        run(&["moveto", &format!("{remote}/b"), &format!("{remote}/z")]);
        let mut listed: Vec<String> = run(&["lsf", "-R", "--files-only", &remote]).lines().map(str::to_owned).collect();
        listed.sort();
        assert_eq!(listed, ["a", "g/h", "g/moved", "g/new", "z/c ü+%41", "z/f"], "{url}");
        run(&["purge", &remote]);
        assert_eq!(run(&["lsf", "dav:"]), "", "{url}");
    }
}

#[test]
fn cadaver_lists_puts_copies_moves_and_deletes() {
    let Some(cadaver) = tool("cadaver", "cadaver") else { return };
    let site = Site::new();
    fs::write(site.dir.path().join("local.txt"), "hello").unwrap();
    for url in site.urls() {
        let script = "mkcol dir\nput local.txt dir/a.txt\ncopy dir/a.txt dir/b.txt\nmove dir/b.txt c.txt\nls\nls dir\n\
             propnames c.txt\nget c.txt got.txt\ndelete c.txt\nrmcol dir\nls\nquit\n";
        let mut command = cadaver.command(site.dir.path());
        command.arg(&url).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!((text.matches("succeeded.").count(), text.matches("failed").count()), (10, 0), "{url} {text}");
        assert!(text.contains("Coll:   dir") && text.contains("DAV: getetag"), "{text}");
        assert!(text.contains("collection is empty"), "the last listing: {text}");
        assert_eq!(fs::read_to_string(site.dir.path().join("got.txt")).unwrap(), "hello");
        fs::remove_file(site.dir.path().join("got.txt")).unwrap();
    }
}

#[test]
fn obstore_and_zarr_python_list_and_write_at_the_root() {
    let Some(python) = python_with_clients() else { return };
    let site = Site::new();
    let script = clients().join("unmodified/webdav.py");
    let report = python.run(script.to_str().unwrap(), &[&site.root]);
    note(report.trim_end());
    assert!(report.trim_end().ends_with("32 results as expected"), "{report}");
}

/// The tests of zarr-python's stores that fail, by what obstore lacks for HTTP.
const OF_OBSTORE: [&str; 1] = ["test_set_if_not_exists"];

#[test]
fn tests_of_zarr_pythons_stores_fail_only_where_obstore_lacks_a_request() {
    let Some(python) = python_with_clients() else { return };
    let site = Site::new();
    let script = clients().join("unmodified/webdav_store.py");
    let mut command = python.command();
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "-rfE", "--tb=line"]);
    let output = command.arg(script).env("URL", &site.root).current_dir(site.dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // "FAILED FILE::CLASS::TEST - MESSAGE", with the whole message where CI is set: it has colons of its own.
    let failed = text.lines().filter_map(|line| line.strip_prefix("FAILED ")?.split(' ').next()?.rsplit("::").next());
    assert_eq!(failed.collect::<Vec<_>>(), OF_OBSTORE, "{text}");
    assert!(text.contains("1 failed, 63 passed, 13 skipped"), "{text}");
    note(text.lines().last().unwrap_or_default());
}

/// A mounted file system, unmounted on drop.
struct Mounted<'d>(&'d Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Directories are not listed: davfs2 1.6 answers EINVAL on new kernels, whichever server it mounts.
#[tokio::test]
async fn davfs2_reads_and_writes() {
    let Some(davfs) = tool("mount.davfs", "davfs2") else { return };
    if !is_root("mounting") {
        return;
    }
    let site = Site::new();
    let mount = site.new_dir("mount");
    let mut command = davfs.command(site.dir.path());
    command.args(["-o", "noexec", &site.root]).arg(&mount);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // No user name, and no password.
    child.stdin.take().unwrap().write_all(b"\n\n").unwrap();
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        return skip(&format!("mounts of davfs2: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let mounted = Mounted(&mount);
    fs::create_dir(mount.join("lab")).unwrap();
    fs::write(mount.join("lab/a"), "one").unwrap();
    fs::write(mount.join("lab/b"), "two").unwrap();
    assert_eq!(fs::read_to_string(mount.join("lab/a")).unwrap(), "one");
    drop(mounted);
    for (key, value) in [("a", "one"), ("b", "two")] {
        let (status, body) = site.server.answer(&format!("/store/lab/{key}")).await;
        assert_eq!((status.as_u16(), &body[..]), (200, value.as_bytes()));
    }
}
