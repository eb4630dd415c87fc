//! The simulated drive: an image mounted through a loop device, and copies of it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A mounted image. Dropping it unmounts and removes it.
pub(crate) struct Drive {
    dir: PathBuf,
}

/// A mounted copy of the image. Dropping it unmounts and removes it.
pub(crate) struct Copy {
    dir: PathBuf,
}

/// Disables periodic write-back by the kernel until it is dropped.
pub(crate) struct WriteBackDisabled(Vec<(&'static str, String)>);

impl Drive {
    /// Creates and mounts an image; `None` if that is not permitted.
    ///
    /// # Panics
    ///
    /// If the image cannot be created.
    pub(crate) fn make(dir: &Path, keys: u32) -> Option<Self> {
        let drive = Self { dir: dir.to_owned() };
        drive.remove();
        fs::create_dir_all(dir.join("mounted")).expect("make the directory of the drive");
        let file = fs::File::create(dir.join("image")).expect("create the image");
        file.set_len(u64::from(keys) * 8192 + (1 << 30)).expect("extend the image");
        let formatted = run("mkfs.ext4", &["-q", "-F", &text(&dir.join("image"))]);
        (formatted && mount(&dir.join("image"), &dir.join("mounted"), "loop,commit=3600")).then_some(drive)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.dir.join("mounted/store")
    }

    /// Copies the image in its current state and mounts the copy, which replays the file system's journal.
    pub(crate) fn copy(&self) -> Copy {
        let copy = Copy { dir: self.dir.join("copy") };
        copy.remove();
        fs::create_dir_all(copy.dir.join("mounted")).expect("make a directory");
        let (from, to) = (text(&self.dir.join("image")), text(&copy.dir.join("image")));
        assert!(run("cp", &["--sparse=always", &from, &to]), "copy the image");
        assert!(mount(&copy.dir.join("image"), &copy.dir.join("mounted"), "loop"), "mount the copy");
        copy
    }

    fn remove(&self) {
        unmount(&text(&self.dir.join("copy/mounted")));
        unmount(&text(&self.dir.join("mounted")));
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Copy {
    pub(crate) fn store(&self) -> PathBuf {
        self.dir.join("mounted/store")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.dir.join("journal")
    }

    fn remove(&self) {
        unmount(&text(&self.dir.join("mounted")));
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.remove();
    }
}

impl WriteBackDisabled {
    pub(crate) fn begin() -> Self {
        let knobs = ["/proc/sys/vm/dirty_writeback_centisecs", "/proc/sys/vm/dirty_expire_centisecs"];
        let changed = knobs.into_iter().zip(["0", "360000"]).filter_map(|(knob, value)| {
            let before = fs::read_to_string(knob).ok()?;
            fs::write(knob, value).ok().map(|()| (knob, before))
        });
        Self(changed.collect())
    }
}

impl Drop for WriteBackDisabled {
    fn drop(&mut self) {
        for (knob, before) in &self.0 {
            let _ = fs::write(knob, before.trim());
        }
    }
}

/// Stops a process between two instructions, and waits until it has stopped.
pub(crate) fn stop(child: &Child) {
    signal(child, "STOP");
    let begin = Instant::now();
    let stat = format!("/proc/{}/stat", child.id());
    while !fs::read_to_string(&stat).expect("the writer ended").contains(") T ") {
        assert!(begin.elapsed() < Duration::from_secs(10), "the writer does not stop");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn go_on(child: &Child) {
    signal(child, "CONT");
}

pub(crate) fn kill(child: &mut Child) {
    child.kill().expect("kill the writer");
    child.wait().expect("wait for the writer");
}

fn signal(child: &Child, name: &str) {
    assert!(run("kill", &[&format!("-{name}"), &child.id().to_string()]), "signal the writer");
}

fn mount(image: &Path, at: &Path, options: &str) -> bool {
    run("mount", &["-o", options, &text(image), &text(at)])
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
}

fn unmount(path: &str) -> bool {
    // Suppress the error message if nothing is mounted.
    Command::new("umount").arg(path).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}
