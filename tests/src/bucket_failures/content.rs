//! The requests of readers, and the bytes that they expect.

use std::{fs, path::Path};

use rand::{RngExt, rngs::StdRng};
use serde_json::json;

/// The extent of the volume along each dimension.
const SIDE: u64 = 128;

/// The extent of its chunks.
const CHUNK: u64 = 16;

/// The path of the volume.
pub const VOLUME: &str = "volume";

/// Targets with the bytes of their answers, and the volume, of which any box can be asked for.
#[derive(Debug, Default)]
pub struct Content {
    answers: Vec<(String, Vec<u8>)>,
}

/// One request, with the bytes of its answer.
pub(super) struct Expected {
    pub(super) target: String,
    pub(super) bytes: Vec<u8>,
}

/// Writes a volume of `uint32` into a new directory: the elements are counted from one, so none is the fill value.
///
/// # Panics
///
/// If it cannot be written.
pub fn write_volume(directory: &Path) {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [SIDE, SIDE, SIDE], "data_type": "uint32", "fill_value": 0,
        "attributes": {}, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK, CHUNK, CHUNK]}},
        "chunk_key_encoding": {"name": "default"},
    });
    fs::create_dir_all(directory).expect("a directory can be made");
    fs::write(directory.join("zarr.json"), document.to_string()).expect("the document can be written");
    let count = SIDE / CHUNK;
    for chunk in 0..count.pow(3) {
        let [i, j, k] = [chunk / count.pow(2), chunk / count % count, chunk % count];
        let path = directory.join(format!("c/{i}/{j}/{k}"));
        fs::create_dir_all(path.parent().expect("it is below")).expect("a directory can be made");
        let range = |at: u64| (at * CHUNK, (at + 1) * CHUNK);
        fs::write(path, elements([range(i), range(j), range(k)])).expect("a chunk can be written");
    }
}

/// The elements of a box.
fn elements([i, j, k]: [(u64, u64); 3]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for plane in i.0..i.1 {
        for row in j.0..j.1 {
            for at in k.0..k.1 {
                bytes.extend_from_slice(&((plane * SIDE + row) * SIDE + at + 1).to_le_bytes()[..4]);
            }
        }
    }
    bytes
}

impl Content {
    /// Adds a target whose answer is known.
    pub fn add(&mut self, target: String, bytes: Vec<u8>) {
        self.answers.push((target, bytes));
    }

    /// The targets with known answers.
    pub(super) fn targets(&self) -> impl Iterator<Item = String> {
        self.answers.iter().map(|(target, _)| target.clone())
    }

    /// A random request: a box of the volume, or any other target.
    pub(super) fn choose(&self, random: &mut StdRng) -> Expected {
        if random.random_bool(0.5) || self.answers.is_empty() {
            return random_box(random);
        }
        let (target, bytes) = &self.answers[random.random_range(0..self.answers.len())];
        Expected { target: target.clone(), bytes: bytes.clone() }
    }
}

fn random_box(random: &mut StdRng) -> Expected {
    let ranges = [0, 0, 0].map(|_| {
        let begin = random.random_range(0..SIDE);
        (begin, random.random_range(begin + 1..=SIDE.min(begin + 40)))
    });
    let select = ranges.map(|(begin, end)| format!("{begin}:{end}")).join(",");
    Expected { target: format!("/array/{VOLUME}?format=raw&select={select}"), bytes: elements(ranges) }
}
