//! Stray keys: keys that belong to no node.

use super::layout::Dialect;

/// The last components of metadata keys.
const DOCUMENTS: [&str; 5] = ["zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"];

/// The keys below a directory that are neither metadata documents nor chunks of the array at `node`, which has this
/// chunk grid; an empty grid stands for no array. An array that was changed key by key may have a claim.
pub(super) fn strays(dialect: Dialect, directory: &str, node: &str, grid: &[u64], keys: &[String]) -> Vec<String> {
    let is_document = |key: &str| {
        let name = key.rsplit('/').next().unwrap_or_default();
        DOCUMENTS.contains(&name) && !(grid.is_empty() && key.starts_with(&format!("{node}/")))
            || dialect == Dialect::Draft && key.contains("/meta/") && !grid.is_empty()
            || dialect == Dialect::Draft && (name == "zarr.json" || name.ends_with(".group.json"))
    };
    let is_claim = |key: &str| !grid.is_empty() && key.starts_with(&format!("{node}/.zarrd/"));
    let is_ok = |key: &&String| {
        let Some(below) = key.strip_prefix(directory) else { return false };
        is_claim(below)
            || is_document(below)
            || indices(dialect, node, below).is_some_and(|indices| is_in(&indices, grid))
    };
    keys.iter().filter(|key| !is_ok(key)).cloned().collect()
}

fn is_in(indices: &[u64], grid: &[u64]) -> bool {
    indices.len() == grid.len() && indices.iter().zip(grid).all(|(index, pieces)| index < pieces)
}

/// The chunk indices of a key.
fn indices(dialect: Dialect, node: &str, key: &str) -> Option<Vec<u64>> {
    let text = match dialect {
        Dialect::V3 => key.strip_prefix(node)?.strip_prefix("/c/")?,
        Dialect::V2 => key.strip_prefix(node)?.strip_prefix('/')?,
        Dialect::Draft => {
            // The root of the hierarchy is the array itself, or one of its parent groups.
            let (root, below) = key.split_once("/data/root/")?;
            let own = match node.strip_prefix(root)?.strip_prefix('/') {
                Some(own) => below.strip_prefix(own)?.strip_prefix('/')?,
                None => below,
            };
            own.strip_prefix('c')?
        }
    };
    text.split(['/', '.']).map(|index| index.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_outside_the_array_are_found() {
        for (dialect, owned, stray) in [
            (
                Dialect::V3,
                &["d/g/zarr.json", "d/g/x/zarr.json", "d/g/x/c/1/2"][..],
                &["d/g/x/c/2/0", "d/g/x/c/0/3", "d/g/x/c/0", "d/g/x/c/0/0/0", "d/g/y/c/0/0", "e/g/x/c/0/0"][..],
            ),
            (Dialect::V2, &["d/g/.zgroup", "d/g/x/.zarray", "d/g/x/1.2"], &["d/g/x/2.0", "d/g/x/1", "d/g/x/a"]),
            (
                Dialect::Draft,
                &["d/g/zarr.json", "d/g/meta/root/x.array.json", "d/g/data/root/x/c1/2", "d/g/x/data/root/c0/0"],
                &["d/g/data/root/x/c2/0", "d/g/x/data/root/c0", "d/g/data/root/y/c0/0"],
            ),
        ] {
            let all: Vec<String> = owned.iter().chain(stray).map(|key| (*key).to_owned()).collect();
            assert_eq!(strays(dialect, "d/", "g/x", &[2, 3], &all), stray);
        }
    }

    #[test]
    fn any_key_of_a_missing_array_is_a_stray() {
        let keys = ["d/g/zarr.json", "d/g/x/zarr.json", "d/g/x/c/0"].map(str::to_owned);
        assert_eq!(strays(Dialect::V3, "d/", "g/x", &[], &keys), ["d/g/x/zarr.json", "d/g/x/c/0"]);
        let keys = ["d/g/zarr.json", "d/g/meta/root.group.json", "d/g/meta/root/x.array.json", "d/g/data/root/x/c0"];
        assert_eq!(strays(Dialect::Draft, "d/", "g/x", &[], &keys.map(str::to_owned)), [keys[2], keys[3]]);
    }
}
