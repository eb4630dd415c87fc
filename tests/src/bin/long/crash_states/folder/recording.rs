//! The recording of a run.

use std::{
    fs::{self, File},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::Command,
    sync::Arc,
};

use super::super::{
    classes::STORE,
    history::History,
    image::{EventIndex, Image},
    plan::Plan,
    record::{DELAY, library},
    states::{Choice, Order, state},
    trace::{self, Event},
    tree::Tree,
};

/// A run of a folder with everything that its states are built of.
pub(super) struct Recording {
    pub(super) base: Tree,
    pub(super) events: Vec<Event>,
    pub(super) history: History,
    /// The event at which crashes start.
    pub(super) first: EventIndex,
    pub(super) dir: PathBuf,
}

impl Recording {
    /// Records a run in an empty folder.
    pub(super) fn record(plan: &Plan) -> Self {
        let library = library(&plan.dir);
        let dir = plan.dir.join(format!("folder-{}", plan.seed));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("files")).expect("make the directory that is recorded");
        let dir = fs::canonicalize(dir).expect("an absolute path");
        let (files, trace, notes) = (dir.join("files"), dir.join("trace"), dir.join("notes"));
        let base = Tree([(STORE.to_owned(), None)].into());
        base.write(&files);
        File::create(&trace).expect("make the trace");
        let mut command = Command::new(std::env::current_exe().expect("this program's path"));
        command
            .args(["crash-states", "folder", "workload"])
            .arg(files.join(STORE))
            .arg(&notes)
            .arg(plan.seed.to_string());
        command.env("LD_PRELOAD", library).env("RECORD_FILES_DELAY", DELAY).env("RECORD_FILES_DIRECT", "1");
        command.env("RECORD_FILES_ROOT", &files).env("RECORD_FILES_TRACE", &trace).env("RECORD_FILES_NOTES", &notes);
        command.env("TMPDIR", &dir).env_remove("RUST_LOG");
        let status = command.status().expect("start the workload");
        assert_eq!(status.signal(), Some(9), "the workload did not come to its end: {status}");
        let events = trace::load(&trace);
        let history = History::default().with_run(&events);
        let is_first = |event: &Event| matches!(event, Event::Note(text) if text == "opened");
        let first = events.iter().position(is_first).expect("the folder was opened");
        let recording = Self { base, events, history, first, dir };
        let differences = recording.end().differences(&Tree::read(&files));
        assert!(differences.is_empty(), "something was changed and not recorded: {differences:#?}");
        recording
    }

    /// The folder after the run.
    fn end(&self) -> Tree {
        let mut image = Image::of(&self.base, None, None);
        self.events.iter().for_each(|event| image.take(event));
        state(&image, Choice::Everything, Order::Ordered, 0)
    }
}

/// The files of a folder in a state, by key, with those that are temporary.
pub(super) fn files(state: &Tree) -> impl Iterator<Item = (&str, &Arc<Vec<u8>>)> {
    state.0.iter().filter_map(|(path, bytes)| {
        let key = path.strip_prefix(STORE)?.strip_prefix('/')?;
        Some((key, bytes.as_ref()?))
    })
}
