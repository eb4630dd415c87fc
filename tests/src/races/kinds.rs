//! The races: the requests before, during and after each of them.

use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{
    layout::{Dialect, Element, Layout, Storage, one},
    model::Body,
};

/// A race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Race {
    /// Writes and appends, against erasing the array and declaring another one at its path.
    Delete,
    /// Writes and appends, against declaring another array that replaces it.
    Replace,
    /// Writes and appends, against shrinking and growing the array.
    Shrink,
    /// Writes and appends, against erasing a parent group and declaring the tree again.
    DeleteAbove,
    /// Writes of all elements, against copies of the array, some of whose clients disconnect.
    Copy,
    /// Writes, against two clients that change the shape.
    Resize,
    /// Writes and appends through both dialects, against conversions in place, below consolidated metadata.
    Convert,
    /// Writes of the same chunks, disjoint and overlapping, of a store that is written key by key.
    Overlap,
    /// Writes, against two clients that change the shape, of a store that is written key by key.
    Reshape,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Declare(Arc<Layout>),
    /// Declares the parent groups too.
    DeclareTree(Arc<Layout>),
    Replace(Arc<Layout>),
    Erase,
    EraseTree,
    Resize(Vec<u64>),
    /// Declares the shape that the array has, which erases what is outside of it.
    Settle,
    Write {
        select: Vec<Range<u64>>,
        body: Body,
    },
    Append(Body),
    Read,
    /// The client disconnects after this time, if set.
    Copy {
        to: Dialect,
        leaves_after: Option<Duration>,
    },
    /// Stores consolidated metadata of v2 in the topmost group.
    Consolidate,
    /// Writes the documents of v3 over the same chunks.
    Convert {
        what: Converted,
        existing: Existing,
    },
    /// Reads the array as one of its dialects.
    ReadAs(Dialect),
}

/// The node that is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Converted {
    Array,
    Tree,
}

/// What a conversion does with documents that exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Keep,
    Overwrite,
}

/// A request, and the delay before it.
pub(crate) type Timed = (Duration, Step);

/// All requests of a round.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) dialect: Dialect,
    /// The path of the array relative to the directory of the round.
    pub(crate) node: &'static str,
    /// The group at which a tree is declared.
    pub(crate) top: &'static str,
    pub(crate) setup: Vec<Step>,
    /// The requests of each concurrent client.
    pub(crate) racing: Vec<Vec<Timed>>,
    pub(crate) closing: Vec<Step>,
}

impl Race {
    /// All races.
    pub const ALL: [Self; 7] =
        [Self::Delete, Self::Replace, Self::Shrink, Self::DeleteAbove, Self::Copy, Self::Resize, Self::Convert];

    /// The races of stores that are written key by key.
    pub const KEYED: [Self; 2] = [Self::Overlap, Self::Reshape];

    /// True if each chunk is consistent by itself, and not all of them together.
    pub(crate) fn is_keyed(self) -> bool {
        Self::KEYED.contains(&self)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Replace => "replace",
            Self::Shrink => "shrink",
            Self::DeleteAbove => "delete-above",
            Self::Copy => "copy",
            Self::Resize => "resize",
            Self::Convert => "convert",
            Self::Overlap => "overlap",
            Self::Reshape => "reshape",
        }
    }

    /// The race with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().chain(Self::KEYED).find(|race| race.name() == name)
    }

    /// The requests determined by a seed.
    pub(crate) fn script(self, seed: u64) -> Script {
        let mut random = StdRng::seed_from_u64(seed ^ (self as u64) << 56);
        let dialect = match self {
            // Only its chunk keys are those of another dialect.
            Self::Convert => Dialect::V2,
            _ if self.is_keyed() => *one(&mut random, &[Dialect::V2, Dialect::V3]),
            _ => *one(&mut random, &Dialect::ALL),
        };
        let element = *one(&mut random, &[Element::U16, Element::U8]);
        let old = match self {
            Self::Copy => Layout::choose_long(&mut random, dialect),
            _ => Layout::choose(&mut random, dialect, element),
        };
        let new = Layout::choose(&mut random, dialect, old.element.other());
        let tree =
            matches!(self, Self::DeleteAbove | Self::Convert) || dialect == Dialect::Draft && random.random_bool(0.5);
        let mut maker = ScriptBuilder { random, stamp: 0, old: Arc::new(old), new: Arc::new(new), tree };
        let mut setup = if self == Self::Copy { maker.full() } else { maker.setup() };
        if self == Self::Convert {
            setup.push(Step::Consolidate);
        }
        let (racing, closing) = match self {
            Self::Copy => maker.copy(),
            Self::Delete | Self::Replace | Self::DeleteAbove => maker.other_array(self),
            Self::Shrink => maker.shrink(),
            Self::Resize => maker.resize(),
            Self::Convert => maker.convert(),
            Self::Overlap => maker.overlap(),
            Self::Reshape => maker.reshape(),
        };
        let node = if self == Self::DeleteAbove { "g/a/x" } else { "g/x" };
        Script { dialect, node, top: "g", setup, racing, closing }
    }
}

/// Generates the requests of a round.
struct ScriptBuilder {
    random: StdRng,
    stamp: u16,
    old: Arc<Layout>,
    new: Arc<Layout>,
    /// True if the array is declared together with a parent group.
    tree: bool,
}

impl ScriptBuilder {
    fn declare(&self, layout: &Arc<Layout>) -> Step {
        match self.tree {
            true => Step::DeclareTree(layout.clone()),
            false => Step::Declare(layout.clone()),
        }
    }

    fn setup(&mut self) -> Vec<Step> {
        let mut steps = vec![self.declare(&self.old)];
        // In a new array, writes create chunks that no listing has returned yet.
        for _ in 0..self.random.random_range(0..3) {
            let old = self.old.clone();
            steps.push(self.write(&old));
        }
        steps
    }

    fn full(&mut self) -> Vec<Step> {
        vec![self.declare(&self.old), self.write_all()]
    }

    fn other_array(&mut self, race: Race) -> (Vec<Vec<Timed>>, Vec<Step>) {
        let (old, new) = (self.old.clone(), self.new.clone());
        let change = match race {
            Race::Replace => vec![Step::Replace(new.clone())],
            Race::DeleteAbove => vec![Step::EraseTree, Step::DeclareTree(new.clone())],
            _ => vec![Step::Erase, Step::Declare(new.clone())],
        };
        let mut racing = self.writers(3, true);
        racing.push(self.timed(change.clone()));
        let large = larger(&old, &new);
        // Requests that did not execute in the race are executed now.
        let mut closing = vec![Step::Read];
        closing.extend(change.into_iter().filter(|step| matches!(step, Step::Declare(_) | Step::DeclareTree(_))));
        closing.extend([Step::Read, Step::Resize(large.clone()), Step::Read]);
        if self.random.random_bool(0.25) {
            let again = match race {
                Race::Replace => vec![Step::Replace(old)],
                Race::DeleteAbove => vec![Step::EraseTree, Step::DeclareTree(old)],
                _ => vec![Step::Erase, Step::Declare(old)],
            };
            closing.extend(again.into_iter().chain([Step::Resize(large), Step::Read]));
        }
        (racing, closing)
    }

    fn shrink(&mut self) -> (Vec<Vec<Timed>>, Vec<Step>) {
        let (old, full) = (self.old.clone(), self.old.shape.clone());
        let mut change = vec![Step::Resize(self.smaller())];
        match self.random.random_range(0..3) {
            0 => change.push(Step::Resize(full.clone())),
            1 => change.push(Step::Append(self.body(&old, old.chunk[0] * 2, &full))),
            _ => {}
        }
        let mut racing = self.writers(3, false);
        racing.push(self.timed(change));
        (racing, vec![Step::Read, Step::Resize(full), Step::Read])
    }

    fn resize(&mut self) -> (Vec<Vec<Timed>>, Vec<Step>) {
        let full = self.old.shape.clone();
        let mut racing = self.writers(2, false);
        for _ in 0..2 {
            let mut change = vec![Step::Resize(self.smaller())];
            if self.random.random_bool(0.5) {
                change.push(Step::Resize(full.clone()));
            }
            if self.random.random_bool(0.3) {
                change.push(Step::Resize(self.smaller()));
            }
            racing.push(self.timed(change));
        }
        (racing, vec![Step::Read, Step::Resize(full), Step::Read])
    }

    fn convert(&mut self) -> (Vec<Vec<Timed>>, Vec<Step>) {
        let full = self.old.shape.clone();
        let mut racing = self.writers(3, false);
        for _ in 0..self.random.random_range(1..=2) {
            let mut steps = Vec::new();
            for _ in 0..self.random.random_range(1..=3) {
                let what = *one(&mut self.random, &[Converted::Array, Converted::Tree]);
                let existing = *one(&mut self.random, &[Existing::Keep, Existing::Overwrite]);
                steps.push(Step::Convert { what, existing });
                if self.random.random_bool(0.3) {
                    steps.push(Step::Resize(self.smaller()));
                }
            }
            racing.push(self.timed(steps));
        }
        let converted = Step::Convert { what: Converted::Tree, existing: Existing::Keep };
        let both = || [Step::ReadAs(Dialect::V2), Step::ReadAs(Dialect::V3)];
        let mut closing = vec![Step::Read, converted];
        closing.extend(both());
        closing.push(Step::Append(self.body(&self.old.clone(), 1, &full)));
        closing.extend(both());
        (racing, closing)
    }

    fn overlap(&mut self) -> (Vec<Vec<Timed>>, Vec<Step>) {
        let mut racing = self.key_writers(3..=4);
        racing.push(self.timed(vec![Step::Read, Step::Read]));
        (racing, vec![Step::Read, Step::Settle, Step::Read])
    }

    fn reshape(&mut self) -> (Vec<Vec<Timed>>, Vec<Step>) {
        let (mut racing, full) = (self.key_writers(2..=3), self.old.shape.clone());
        for _ in 0..2 {
            let mut change = vec![Step::Resize(self.smaller())];
            if self.random.random_bool(0.6) {
                change.push(Step::Resize(full.clone()));
            }
            racing.push(self.timed(change));
        }
        (racing, vec![Step::Read, Step::Settle, Step::Read, Step::Resize(full), Step::Read])
    }

    /// Writers of regions.
    fn key_writers(&mut self, count: RangeInclusive<usize>) -> Vec<Vec<Timed>> {
        let old = self.old.clone();
        let mut writers = Vec::new();
        for _ in 0..self.random.random_range(count) {
            let steps = (0..self.random.random_range(2..=4)).map(|_| self.write(&old)).collect();
            writers.push(self.timed(steps));
        }
        writers
    }

    fn copy(&mut self) -> (Vec<Vec<Timed>>, Vec<Step>) {
        let mut racing = Vec::new();
        for _ in 0..2 {
            let steps = (0..self.random.random_range(2..=4)).map(|_| self.write_all()).collect();
            racing.push(self.timed(steps));
        }
        for _ in 0..self.random.random_range(1..=2) {
            let to = match self.old.storage {
                // Other dialects have no shards.
                Storage::Sharded => Dialect::V3,
                // The draft supports only gzip compression.
                Storage::Zstd => *one(&mut self.random, &[Dialect::V2, Dialect::V3]),
                Storage::Raw | Storage::Gzip => *one(&mut self.random, &Dialect::ALL),
            };
            let leaves = self.random.random_bool(0.4);
            let leaves_after = leaves.then(|| Duration::from_micros(self.random.random_range(500..20_000)));
            racing.push(self.timed(vec![Step::Copy { to, leaves_after }]));
        }
        (racing, vec![Step::Read])
    }

    /// A reader and concurrent writers, most of which write the first array.
    fn writers(&mut self, most: usize, for_both: bool) -> Vec<Vec<Timed>> {
        let mut writers = Vec::new();
        for _ in 0..self.random.random_range(2..=most) {
            let mut steps = Vec::new();
            for _ in 0..self.random.random_range(2..=4) {
                let layout = match for_both && self.random.random_bool(0.25) {
                    true => self.new.clone(),
                    false => self.old.clone(),
                };
                steps.push(match self.random.random_bool(0.3) {
                    true => {
                        let rows = self.random.random_range(1..=layout.chunk[0] * 2);
                        Step::Append(self.body(&layout, rows, &layout.shape))
                    }
                    false => self.write(&layout),
                });
            }
            writers.push(self.timed(steps));
        }
        if self.random.random_bool(0.5) {
            writers.push(self.timed(vec![Step::Read, Step::Read]));
        }
        writers
    }

    /// A write of a region.
    fn write(&mut self, layout: &Layout) -> Step {
        let select: Vec<Range<u64>> = layout.shape.iter().map(|extent| self.part(*extent)).collect();
        let sides: Vec<u64> = select.iter().map(|range| range.end - range.start).collect();
        let body = self.body(layout, sides[0], &sides);
        Step::Write { select, body }
    }

    fn write_all(&mut self) -> Step {
        let value = self.value(&self.old.clone());
        Step::Write { select: Vec::new(), body: Body::Scalar(value) }
    }

    /// A range of a dimension, mostly a large one near its end.
    fn part(&mut self, extent: u64) -> Range<u64> {
        match self.random.random_range(0..4) {
            0 => 0..extent,
            1 => extent / 2..extent,
            _ => {
                let start = self.random.random_range(0..extent);
                start..self.random.random_range(start..extent) + 1
            }
        }
    }

    /// `rows` rows of one new value, or a scalar.
    fn body(&mut self, layout: &Layout, rows: u64, shape: &[u64]) -> Body {
        let value = self.value(layout);
        if self.random.random_bool(0.5) {
            return Body::Scalar(value);
        }
        let elements = shape.iter().skip(1).fold(rows, |product, extent| product * extent);
        Body::Raw(layout.element.bytes(value).repeat(usize::try_from(elements).expect("arrays are small")))
    }

    /// A value that was never written before and is not the fill value.
    fn value(&mut self, layout: &Layout) -> u16 {
        self.stamp += 1;
        assert!(self.stamp < 240, "a round has few writes");
        match layout.element {
            // Its bytes are unique too.
            Element::U16 if self.random.random_bool(0.5) => self.stamp * 0x101,
            _ => self.stamp,
        }
    }

    fn smaller(&mut self) -> Vec<u64> {
        let old = self.old.clone();
        let mut shape = old.shape.clone();
        let dimension = self.random.random_range(0..old.rank());
        let chunks = self.random.random_range(0..old.shape[dimension].div_ceil(old.chunk[dimension]));
        // In half of the cases, no chunk is at the edge.
        let more = if self.random.random_bool(0.5) { 0 } else { self.random.random_range(0..old.chunk[dimension]) };
        shape[dimension] = (chunks * old.chunk[dimension] + more).min(old.shape[dimension]);
        shape
    }

    fn timed(&mut self, steps: Vec<Step>) -> Vec<Timed> {
        let wait = |random: &mut StdRng| match random.random_bool(0.5) {
            true => Duration::ZERO,
            false => Duration::from_micros(random.random_range(0..6000)),
        };
        steps.into_iter().map(|step| (wait(&mut self.random), step)).collect()
    }
}

/// A shape that contains both shapes and all appended elements; the second shape if the ranks differ.
fn larger(one: &Layout, other: &Layout) -> Vec<u64> {
    match one.rank() == other.rank() {
        true => one.shape.iter().zip(&other.shape).map(|(one, other)| one.max(other) + 40).collect(),
        false => other.shape.iter().map(|extent| extent + 40).collect(),
    }
}
