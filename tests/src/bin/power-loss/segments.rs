//! How often the segments of a sled index were written anew.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

/// The size of a segment in zarrd's indexes.
const SEGMENT: u64 = 4 << 20;

/// Segments, by their place in the log file: the header seen last, and how many others were seen before it.
#[derive(Debug, Default)]
pub(crate) struct Segments(Vec<(Vec<u8>, u64)>);

impl Segments {
    /// Looks at the headers of all segments. An index that is not sled's has none.
    pub(crate) fn look(&mut self, store: &Path) {
        let Ok(file) = File::open(store.join("index/db")) else { return };
        let len = file.metadata().map_or(0, |metadata| metadata.len());
        self.0.truncate((len / SEGMENT) as usize);
        for number in 0..len / SEGMENT {
            // A checksum and the log's sequence number, which differs each time the segment is used.
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

    /// How often the segments were written anew: the least, the median and the most, of how many.
    pub(crate) fn recycled(&self) -> String {
        let mut counts: Vec<u64> = self.0.iter().map(|(_, count)| *count).collect();
        counts.sort_unstable();
        let (Some(least), Some(most)) = (counts.first(), counts.last()) else { return "no segments".to_owned() };
        let never = counts.iter().filter(|count| **count < 3).count();
        let (median, all) = (counts[counts.len() / 2], counts.len());
        format!(
            "{all} segments, each written anew {least} to {most} times (median {median}), {never} less than 3 times"
        )
    }
}
