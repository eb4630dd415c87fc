//! Recording of runs.

use std::{
    fs::{self, File},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Command,
};

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use zarrd_store_local::IndexKind;
use zarrd_tests::binary::workspace;

use crate::crash_states::{
    classes::STORE,
    history::History,
    image::{EventIndex, Image},
    kinds::{From, Kind},
    states::{Choice, Order, state},
    trace::{self, Event},
    tree::Tree,
    workload::{OPEN_FAILED, Run, arguments},
};

/// The maximum delay added to a sync, in microseconds.
pub(crate) const DELAY: &str = "2000";

/// A store of format 1, and the history of its keys.
pub(crate) fn format_1(index: IndexKind, state: &str, dir: &Path) -> (Tree, History) {
    let archive = workspace().join(format!("tests/data/format-1/{index}-{state}.tar.gz"));
    let dir = dir.join(format!("format-1-{index}-{state}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("make a directory for a store of format 1");
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(archive).arg("-C").arg(&dir);
    assert!(unpack.status().expect("run tar").success(), "{unpack:?}");
    let history = fs::read_to_string(dir.join("history")).expect("its history");
    fs::remove_file(dir.join("history")).expect("take the history out");
    (Tree::read(&dir), History::load(&history))
}

/// A recorded run with everything needed to rebuild its states.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub(crate) index: IndexKind,
    pub(crate) kind: &'static Kind,
    pub(crate) level: u32,
    /// The directory before the run.
    pub(crate) base: Tree,
    pub(crate) events: Vec<Event>,
    pub(crate) history: History,
    /// The directory that contains the recording.
    pub(crate) dir: PathBuf,
}

/// Builds the recording library.
pub(crate) fn library(dir: &Path) -> PathBuf {
    let library = dir.join("record_files.so");
    let source = workspace().join("tests/shims/record_files.c");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(compile.status().expect("run cc").success(), "{compile:?}");
    library
}

impl Recording {
    /// Records a run that starts from a directory with these contents and this history.
    pub(crate) fn record_run(without_numbers: &Run, library: &Path, base: Tree, before: &History, dir: &Path) -> Self {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir.join("files")).expect("make the directory that is recorded");
        let dir = fs::canonicalize(dir).expect("an absolute path");
        let (files, trace) = (dir.join("files"), dir.join("trace"));
        base.write(&files);
        fs::create_dir(dir.join("base")).expect("make a directory for the base");
        base.write(&dir.join("base"));
        File::create(&trace).expect("make the trace");
        fs::write(dir.join("history"), before.save()).expect("save the history");
        let run = Run {
            store: files.join(STORE),
            keys: dir.join("used"),
            notes: dir.join("notes"),
            ..without_numbers.clone()
        };
        let used: String = before.keys().map(|key| format!("{key}\n")).collect();
        fs::write(&run.keys, used).expect("write the keys");
        let mut command = Command::new(std::env::current_exe().expect("this program's path"));
        command.arg("crash-states").args(arguments(&run)).env("LD_PRELOAD", library).env("RECORD_FILES_DELAY", DELAY);
        command.env("RECORD_FILES_ROOT", &files).env("RECORD_FILES_TRACE", &trace);
        command.env("RECORD_FILES_NOTES", &run.notes).env_remove("RUST_LOG");
        if let Some(full) = run.kind.full {
            let after = full.after_bytes + SmallRng::seed_from_u64(run.seed).random_range(0..full.after_bytes);
            command.env("RECORD_FILES_FULL", format!("{after} {}", full.millis));
        }
        let status = command.status().expect("start the workload");
        assert_eq!(status.signal(), Some(9), "the workload did not come to its end: {status}");
        let (level, events) = (run.level, trace::load(&trace));
        let history = before.clone().with_run(&events);
        let (index, kind, seed) = (run.index, run.kind, run.seed);
        let recording = Self { index, kind, level, base, events, history, dir };
        recording.check(&files);
        let about = format!("{} {} {seed} {level}", index.name(), kind.name);
        fs::write(recording.dir.join("about"), about).expect("save the description of the recording");
        fs::write(recording.keys(), recording.history.keys().map(|key| format!("{key}\n")).collect::<String>())
            .expect("write the keys");
        recording
    }

    /// Loads a saved recording.
    pub(crate) fn load(dir: &Path) -> Self {
        let about = fs::read_to_string(dir.join("about")).expect("the description of the recording");
        let [index, kind, _seed, level] = about.split(' ').collect::<Vec<_>>()[..] else { panic!("{about}") };
        let events = trace::load(&dir.join("trace"));
        let before = History::load(&fs::read_to_string(dir.join("history")).expect("the history"));
        Self {
            index: crate::crash_states::plan::index(index),
            kind: crate::crash_states::kinds::named(kind),
            level: level.parse().expect("a level"),
            base: Tree::read(&dir.join("base")),
            history: before.with_run(&events),
            events,
            dir: dir.to_owned(),
        }
    }

    /// Asserts that replaying the recording yields the directory that the run left, so no change went unrecorded.
    fn check(&self, files: &Path) {
        let (replayed, found) = (self.end(), Tree::read(files));
        let mut differences = replayed.differences(&found);
        // The ballast consists of allocated blocks without content; the shim does not intercept that system call.
        differences.retain(|difference| !difference.contains("/ballast/"));
        assert!(
            differences.is_empty(),
            "the records and the directory differ; something was changed without the C library: {differences:#?}"
        );
    }

    /// The directory after the run.
    pub(crate) fn end(&self) -> Tree {
        let mut image = Image::of(&self.base, None, None);
        self.events.iter().for_each(|event| image.take(event));
        state(&image, Choice::Everything, Order::Ordered, 0)
    }

    /// The file of keys to look up.
    pub(crate) fn keys(&self) -> PathBuf {
        self.dir.join("keys")
    }

    /// The error with which the run's own store failed to open.
    pub(crate) fn open_error(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event {
            Event::Note(text) => text.strip_prefix(OPEN_FAILED),
            _ => None,
        })
    }

    /// The event at which crashes start.
    pub(crate) fn first(&self) -> EventIndex {
        let wanted = match self.kind.from {
            From::Begin => return 0,
            From::Opened => "opened",
            From::Closing => "closing",
        };
        self.events.iter().position(|event| matches!(event, Event::Note(text) if text == wanted)).unwrap_or(0)
    }
}
