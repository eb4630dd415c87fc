//! What a run has to have come to: a run that does not reach what its kind is for proves nothing, and is a failure.

use std::collections::BTreeMap;

use store_local::IndexKind;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    image::Image,
    kinds::{Reach, SWEPT},
    record::Recording,
    trace::Event,
};

/// How many of sled's segments have to be written anew, and how often each.
const SEGMENTS: usize = 4;
const TIMES: usize = 3;
/// What segments of all sizes begin at multiples of.
const SEGMENT: u64 = 64 << 10;
/// The note that the recorder makes when it refuses a write of the index.
const FULL: &str = "full";

impl Recording {
    /// What the run did not come to.
    pub(crate) fn missed(&self) -> Vec<Reach> {
        self.kind.reaches.iter().copied().filter(|reach| !self.reached(*reach)).collect()
    }

    fn reached(&self, reach: Reach) -> bool {
        let mut events = self.events.iter();
        match reach {
            // redb has neither segments nor files beside its one.
            Reach::SegmentsReused | Reach::Blobs if self.index == IndexKind::Redb => true,
            Reach::SegmentsReused => {
                self.segments_written().values().filter(|times| **times >= TIMES).count() >= SEGMENTS
            }
            Reach::Compacted => {
                events.any(|event| matches!(event, Event::Rename { to, .. } if to.path.ends_with("/generation")))
            }
            Reach::Upgraded => {
                events.any(|event| matches!(event, Event::Mkdir { place } if place.path.ends_with("/log")))
            }
            Reach::Blobs => events.any(|event| matches!(event, Event::Open { place, .. } if is_blob(&place.path))),
            Reach::Full => events.any(|event| matches!(event, Event::Note(text) if text == FULL)),
            Reach::Swept => [0, 1].into_iter().all(|phase| self.writes_sweep(phase)),
        }
    }

    /// How often the beginning of each of sled's segments was written.
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

    /// Whether the index's record of a sweep in this phase was written.
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
