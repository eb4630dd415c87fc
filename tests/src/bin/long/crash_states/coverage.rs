//! Coverage requirements: a run that does not reach the situation its kind is for proves nothing and fails.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;
use zarrd_store_local::IndexKind;

use crate::crash_states::{
    image::Image,
    kinds::{Coverage, SWEPT},
    record::Recording,
    trace::Event,
};

/// The number of sled segments that must be rewritten, and how often each.
const SEGMENTS: usize = 4;
const TIMES: usize = 3;
/// Segments of all sizes start at multiples of this.
const SEGMENT: u64 = 64 << 10;
/// The note that the recorder makes when it fails a write to the index.
const FULL: &str = "full";

impl Recording {
    /// The situations that the run did not reach.
    pub(crate) fn missing_coverage(&self) -> Vec<Coverage> {
        self.kind.covers.iter().copied().filter(|coverage| !self.reached(*coverage)).collect()
    }

    fn reached(&self, coverage: Coverage) -> bool {
        let mut events = self.events.iter();
        match coverage {
            // redb has a single file, without segments.
            Coverage::SegmentsReused | Coverage::Blobs if self.index == IndexKind::Redb => true,
            Coverage::SegmentsReused => {
                self.segments_written().values().filter(|times| **times >= TIMES).count() >= SEGMENTS
            }
            Coverage::Compacted => {
                events.any(|event| matches!(event, Event::Rename { to, .. } if to.path.ends_with("/generation")))
            }
            Coverage::Upgraded => {
                events.any(|event| matches!(event, Event::Mkdir { path_ref } if path_ref.path.ends_with("/log")))
            }
            Coverage::Blobs => {
                events.any(|event| matches!(event, Event::Open { path_ref, .. } if is_blob(&path_ref.path)))
            }
            Coverage::Full => events.any(|event| matches!(event, Event::Note(text) if text == FULL)),
            Coverage::Swept => [0, 1].into_iter().all(|phase| self.writes_sweep(phase)),
        }
    }

    /// The number of times the start of each sled segment was written.
    fn segments_written(&self) -> BTreeMap<u64, usize> {
        let mut image = Image::of(&self.base, None, None);
        let mut written = BTreeMap::new();
        for event in &self.events {
            if let Event::Write { fd, offset, .. } = event
                && offset % SEGMENT == 0
                && image.path_of_open(*fd).ends_with("/db")
            {
                *written.entry(*offset).or_default() += 1;
            }
            image.take(event);
        }
        written
    }

    /// True if the index's record of a sweep in this phase was written.
    fn writes_sweep(&self, phase: u8) -> bool {
        let body = [&[phase], format!("{SWEPT}0/").as_bytes()].concat();
        let record = [&body[..], &xxh3_64(&body).to_be_bytes()].concat();
        self.events.iter().any(|event| match event {
            Event::Write { data, .. } => data.windows(record.len()).any(|part| part == record),
            _ => false,
        })
    }
}

fn is_blob(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(dir, name)| dir.ends_with("/blobs") && !name.is_empty())
}
