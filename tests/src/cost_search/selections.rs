//! Short selections that concern many elements.

use serde_json::{Value, json};

use super::{
    arrays::Array,
    genome::{Gene, Genome},
};

/// The selection along one dimension.
#[derive(Clone, Debug)]
enum Item {
    Index(u64),
    Slice { start: u64, stop: u64, step: u64 },
    Backwards,
    List(Vec<u64>),
}

/// A selection as a query parameter, and the number of its elements.
pub(super) fn text(genome: &Genome, array: &Array) -> (String, u64) {
    let items = items(genome, array);
    let count = items.iter().zip(&array.shape).map(|(item, extent)| item.count(*extent)).fold(1, u64::saturating_mul);
    (items.iter().map(Item::text).collect::<Vec<_>>().join(","), count)
}

/// The body of a read request.
pub(super) fn body(genome: &Genome, array: &Array) -> Value {
    let entries = genome.pick(Gene::Count, &[1, 64, 1024, 8192, 65_536]);
    let at = |entry| coordinates(genome, array, entry);
    match genome.pick(Gene::Select, &[0, 1, 2, 3, 4, 5]) {
        0 => json!({"select": text(genome, array).0}),
        1 => json!({"points": (0..entries).map(at).collect::<Vec<_>>()}),
        2 => json!({"stack": (0..entries).map(at).collect::<Vec<_>>()}),
        3 => {
            let row = |entry| {
                let mut items: Vec<Value> = at(entry).into_iter().map(Value::from).collect();
                if let Some(last) = items.last_mut() {
                    *last = json!({"start": 0, "stop": 16});
                }
                items
            };
            json!({"stack": (0..entries).map(row).collect::<Vec<_>>()})
        }
        4 => json!({"stack": vec![if array.shape.is_empty() { "" } else { "0:0" }; entries as usize]}),
        _ => json!({"stack": vec![text(genome, array).0; entries as usize]}),
    }
}

/// The coordinates of one of many elements.
fn coordinates(genome: &Genome, array: &Array, entry: u64) -> Vec<u64> {
    let first = array.chunk.first().copied().unwrap_or(1);
    let stride = genome.pick(Gene::Stride, &[first, 1, first + 1, 0, 7919, first * 3]);
    let entry = if genome.has(Gene::Stride, 6) { u64::from(u32::MAX) - entry } else { entry };
    let stored = array.stored.saturating_mul(first).max(1);
    let of = |(at, extent): (usize, &u64)| match at {
        0 => entry.wrapping_mul(stride) % stored.min(*extent).max(1),
        _ => entry.wrapping_mul(13) % extent,
    };
    array.shape.iter().enumerate().map(of).collect()
}

fn items(genome: &Genome, array: &Array) -> Vec<Item> {
    let entries = genome.pick(Gene::Count, &[1, 16, 256, 2048]);
    let list = |extent: u64, stride: u64| -> Item {
        Item::List((0..entries).map(|entry| entry * stride % extent.max(1)).collect())
    };
    let last = array.shape.len().saturating_sub(1);
    let form = genome.pick(Gene::Stride, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let item = |(at, (&extent, &chunk)): (usize, (&u64, &u64))| match form {
        0 => Item::Slice { start: 0, stop: extent, step: 1 },
        1 => Item::Index(0),
        // One element of each stored chunk.
        2 => Item::Slice { start: 0, stop: extent.min(chunk.saturating_mul(array.stored)), step: chunk },
        3 => Item::Backwards,
        4 if at == 0 => list(extent.min(chunk.saturating_mul(array.stored)), chunk),
        5 if at == 0 || at == last => list(extent, chunk + 1),
        6 => Item::Slice { start: 0, stop: 0, step: 1 },
        7 => Item::Slice { start: 0, stop: chunk, step: 2 },
        _ => Item::Index(extent.saturating_sub(1)),
    };
    array.shape.iter().zip(&array.chunk).enumerate().map(item).collect()
}

impl Item {
    fn text(&self) -> String {
        match self {
            Self::Index(index) => index.to_string(),
            Self::Slice { start, stop, step } => format!("{start}:{stop}:{step}"),
            Self::Backwards => "::-1".to_owned(),
            Self::List(indices) => {
                let indices: Vec<String> = indices.iter().map(u64::to_string).collect();
                format!("({})", indices.join(","))
            }
        }
    }

    fn count(&self, extent: u64) -> u64 {
        match self {
            Self::Index(_) => 1,
            Self::Slice { start, stop, step } => (stop.min(&extent) - start.min(&extent)).div_ceil(*step),
            Self::Backwards => extent,
            Self::List(indices) => indices.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::genome::Operation, *};

    fn array() -> (Genome, Array) {
        let genome = Genome::plain(Operation::ArrayGet).with(Gene::Rank, 1).with(Gene::Chunks, 1);
        let array = Array::of(&genome);
        assert_eq!((&array.shape[..], &array.chunk[..]), (&[4096, 256][..], &[256, 256][..]));
        (genome, array)
    }

    #[test]
    fn selection_size_matches_its_text() {
        let (genome, array) = array();
        for (form, expected) in [
            (0, ("0:4096:1,0:256:1", 4096 * 256)),
            (1, ("0,0", 1)),
            (2, ("0:4096:256,0:256:256", 16)),
            (3, ("::-1,::-1", 4096 * 256)),
            (4, ("(0),255", 1)),
            (6, ("0:0:1,0:0:1", 0)),
            (7, ("0:256:2,0:256:2", 128 * 128)),
        ] {
            let (text, count) = text(&genome.clone().with(Gene::Stride, form), &array);
            assert_eq!((text.as_str(), count), expected, "{form}");
        }
    }

    #[test]
    fn entries_visit_one_chunk_after_another() {
        let (genome, array) = array();
        let points = body(&genome.clone().with(Gene::Select, 1).with(Gene::Count, 1), &array);
        let points = points["points"].as_array().unwrap();
        assert_eq!((points.len(), &points[1], &points[17]), (64, &json!([256, 13]), &json!([256, 221])));
        for select in 0..6 {
            let body = body(&genome.clone().with(Gene::Select, select).with(Gene::Count, 1), &array);
            assert_eq!(body.as_object().unwrap().len(), 1);
        }
    }
}
