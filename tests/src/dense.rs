//! A large array of few bytes on the disk.

use std::{fs, io, path::Path};

/// The extent of the array, and of its chunks.
const SHAPE: [usize; 2] = [1_000_000, 3000];
const CHUNK: [usize; 2] = [500, 1000];

/// Writes an array of 12 GB, all of whose chunks are links to one file, into a directory.
///
/// # Errors
///
/// If the file system fails, or has no links.
pub fn write_dense(array: &Path) -> io::Result<()> {
    let document = serde_json::json!({
        "zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": "float32", "fill_value": 0,
        "attributes": {}, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNK}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    });
    let elements = (0..CHUNK[0] * CHUNK[1]).flat_map(|at| (at as f32 / 3000.0).sin().to_le_bytes());
    let first = array.join("chunk");
    fs::create_dir_all(array)?;
    fs::write(array.join("zarr.json"), document.to_string())?;
    fs::write(&first, elements.collect::<Vec<u8>>())?;
    for row in 0..SHAPE[0] / CHUNK[0] {
        let row = array.join(format!("c/{row}"));
        fs::create_dir_all(&row)?;
        for column in 0..SHAPE[1] / CHUNK[1] {
            fs::hard_link(&first, row.join(column.to_string()))?;
        }
    }
    fs::remove_file(first)
}
