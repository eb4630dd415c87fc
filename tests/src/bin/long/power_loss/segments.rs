//! Counts how often the segments of a sled index are rewritten.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

/// The segment size of zarrd's sled indexes.
const SEGMENT: u64 = 4 << 20;

/// Segments by position in the log file: the last observed header, and the number of distinct headers before it.
#[derive(Debug, Default)]
pub(crate) struct Segments(Vec<(Vec<u8>, u64)>);

impl Segments {
    /// Reads the headers of all segments. Only a sled index has any.
    pub(crate) fn observe(&mut self, store: &Path) {
        let Ok(file) = File::open(store.join("index/db")) else { return };
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        self.0.truncate((len / SEGMENT) as usize);
        for number in 0..len / SEGMENT {
            // A checksum and the log sequence number, which differs each time a segment is used.
            let mut header = vec![0; 12];
            if file.read_exact_at(&mut header, number * SEGMENT).is_err() {
                return;
            }
            match self.0.get_mut(number as usize) {
                Some((seen, count)) if *seen != header => {
                    *seen = header;
                    *count += 1;
                }
                Some(_) => {}
                None => self.0.push((header, 0)),
            }
        }
    }

    /// The number of rewrites per segment: minimum, median, maximum, and the number of segments.
    pub(crate) fn recycled(&self) -> String {
        let mut counts: Vec<u64> = self.0.iter().map(|(_, count)| *count).collect();
        counts.sort_unstable();
        let (Some(least), Some(most)) = (counts.first(), counts.last()) else { return "no segments".to_owned() };
        let never = counts.iter().filter(|count| **count < 3).count();
        let (median, all) = (counts[counts.len() / 2], counts.len());
        format!("{all} segments, each rewritten {least} to {most} times (median {median}), {never} less than 3 times")
    }
}
