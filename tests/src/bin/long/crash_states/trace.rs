//! The records of a run, as written by `shims/record_files.c`.

use std::{fs, path::Path};

use bytes::{Buf, Bytes};

/// Stands for the recorded directory in place of a directory descriptor.
pub(crate) const ROOT: i32 = -100;

/// A path relative to an open directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TracePath {
    pub(crate) dir: i32,
    pub(crate) path: String,
}

/// An action of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Open {
        fd: i32,
        path_ref: TracePath,
        flags: u64,
    },
    Close {
        fd: i32,
    },
    Dup {
        fd: i32,
        new: i32,
    },
    Write {
        fd: i32,
        offset: u64,
        data: Bytes,
    },
    Truncate {
        fd: i32,
        size: u64,
    },
    Allocate {
        fd: i32,
        mode: i32,
        offset: u64,
        len: u64,
    },
    Rename {
        from: TracePath,
        to: TracePath,
        flags: u64,
    },
    Link {
        from: TracePath,
        to: TracePath,
    },
    Unlink {
        path_ref: TracePath,
    },
    Mkdir {
        path_ref: TracePath,
    },
    Rmdir {
        path_ref: TracePath,
    },
    SyncBegin {
        fd: i32,
        number: u64,
    },
    SyncEnd {
        number: u64,
        done: bool,
    },
    /// Recorded for completeness; it makes nothing durable.
    SyncRange,
    Note(String),
}

/// All records, in the order of their effects.
pub(crate) fn load(path: &Path) -> Vec<Event> {
    let mut rest = Bytes::from(fs::read(path).expect("read the trace"));
    let mut events = Vec::new();
    while !rest.is_empty() {
        events.push(event(&mut rest));
    }
    events
}

fn event(rest: &mut Bytes) -> Event {
    let (kind, fd, other) = (rest.get_u32_le(), rest.get_i32_le(), rest.get_i32_le());
    let (first, second, _) = (rest.get_u32_le() as usize, rest.get_u32_le() as usize, rest.get_u32_le());
    let (a, b) = (rest.get_u64_le(), rest.get_u64_le());
    let (first, second) = (rest.split_to(first), rest.split_to(second));
    let path_ref = |dir, path: &Bytes| TracePath { dir, path: text(path) };
    match kind {
        1 => Event::Open { fd, path_ref: path_ref(other, &first), flags: a },
        2 => Event::Close { fd },
        3 => Event::Dup { fd, new: other },
        4 => Event::Write { fd, offset: a, data: first },
        5 => Event::Truncate { fd, size: a },
        6 => Event::Allocate { fd, mode: other, offset: a, len: b },
        7 => Event::Rename { from: path_ref(fd, &first), to: path_ref(other, &second), flags: a },
        8 => Event::Link { from: path_ref(fd, &first), to: path_ref(other, &second) },
        9 => Event::Unlink { path_ref: path_ref(other, &first) },
        10 => Event::Mkdir { path_ref: path_ref(other, &first) },
        11 => Event::Rmdir { path_ref: path_ref(other, &first) },
        12 => Event::SyncBegin { fd, number: a },
        13 => Event::SyncEnd { number: a, done: b == 1 },
        14 => Event::SyncRange,
        15 => Event::Note(text(&first)),
        16 => panic!("unknown record: {}", text(&first)),
        _ => panic!("a record of kind {kind}"),
    }
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}
