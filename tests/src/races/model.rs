//! A model of an array after a sequence of changes, compared with observations.

use std::{collections::BTreeMap, fmt, ops::Range, sync::Arc};

use super::layout::{Element, Layout};

/// The indices of an element; the second is 0 for one-dimensional arrays.
pub(crate) type Position = [u64; 2];

/// The node at the path: none, or an array.
pub(crate) type State = Option<Array>;

/// An array with its elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Array {
    layout: Arc<Layout>,
    shape: Vec<u64>,
    /// The elements that differ from the fill value.
    cells: Arc<BTreeMap<Position, Cell>>,
}

/// The state of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Cell {
    Is(u16),
    /// This value or the fill value: the array was shrunk meanwhile, and the chunk was at the edge.
    May(u16),
}

/// The effect of a request, or an observation.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Creates an array; no effect if an equal one exists.
    Declare(Arc<Layout>),
    /// Replaces the node by an array; no effect if an equal one exists.
    Replace(Arc<Layout>),
    /// Erases the array.
    Erase,
    /// Erases a parent group, regardless of the array.
    EraseAbove,
    Resize(Vec<u64>),
    Write {
        select: Vec<Range<u64>>,
        body: Body,
    },
    /// Grows the array along its first dimension.
    Append(Body),
    /// Observed by reading the array.
    Read(Image),
    /// Observed in a copy of the array.
    Copied(Image),
    /// Observed that no node exists.
    Absent,
}

/// The elements in a request.
#[derive(Clone)]
pub(crate) enum Body {
    /// A scalar, as JSON.
    Scalar(u16),
    /// All elements, as bytes.
    Raw(Vec<u8>),
}

/// The observed elements of an array.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) element: Element,
    pub(crate) shape: Vec<u64>,
    /// In C order; `None` for elements that are not examined.
    pub(crate) values: Vec<Option<u16>>,
}

impl Effect {
    /// The state after this effect; `None` if the observation contradicts the state.
    pub(crate) fn apply(&self, state: &State) -> Option<State> {
        match (self, state) {
            (Self::Declare(layout), None) => Some(Some(Array::new(layout))),
            (Self::Declare(layout), Some(array)) => array.is_as_declared(layout).then(|| state.clone()),
            (Self::Replace(layout), Some(array)) if array.is_as_declared(layout) => Some(state.clone()),
            (Self::Replace(layout), _) => Some(Some(Array::new(layout))),
            (Self::Erase, Some(_)) | (Self::EraseAbove, _) => Some(None),
            (Self::Absent, None) => Some(None),
            (Self::Resize(shape), Some(array)) => array.resized(shape).map(Some),
            (Self::Write { select, body }, Some(array)) => array.written(select, body).map(Some),
            (Self::Append(body), Some(array)) => array.appended(body).map(Some),
            (Self::Read(image), Some(array)) => array.allows(image).then(|| state.clone()),
            (Self::Copied(image), Some(array)) => array.allows(image).then(|| state.clone()),
            (Self::Erase | Self::Resize(_) | Self::Write { .. } | Self::Append(_), None)
            | (Self::Read(_) | Self::Copied(_), None)
            | (Self::Absent, Some(_)) => None,
        }
    }

    /// The observed elements.
    pub(crate) fn image(&self) -> Option<&Image> {
        match self {
            Self::Read(image) | Self::Copied(image) => Some(image),
            _ => None,
        }
    }

    /// The same effect, examining only some of the elements.
    pub(crate) fn restricted_to(&self, wanted: impl Fn(usize) -> bool) -> Self {
        let only = |image: &Image| {
            let values = image.values.iter().enumerate().map(|(at, value)| value.filter(|_| wanted(at)));
            Image { values: values.collect(), ..image.clone() }
        };
        match self {
            Self::Read(image) => Self::Read(only(image)),
            Self::Copied(image) => Self::Copied(only(image)),
            _ => self.clone(),
        }
    }
}

impl Array {
    pub(crate) fn new(layout: &Arc<Layout>) -> Self {
        Self { layout: layout.clone(), shape: layout.shape.clone(), cells: Arc::default() }
    }

    pub(crate) fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn is_as_declared(&self, layout: &Layout) -> bool {
        *self.layout == *layout && self.shape == layout.shape
    }

    /// Erases the chunks outside the shape; a chunk at the edge may retain elements beyond the shape, or lose them when
    /// it is written.
    fn resized(&self, shape: &[u64]) -> Option<Self> {
        if shape.len() != self.shape.len() {
            return None;
        }
        let chunks: Vec<u64> =
            shape.iter().zip(&self.layout.chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
        let mut resized = Self { shape: shape.to_vec(), ..self.clone() };
        let cells = Arc::make_mut(&mut resized.cells);
        cells.retain(|at, _| {
            let mut axes = at.iter().zip(&self.layout.chunk).zip(&chunks);
            axes.all(|((index, chunk), chunks)| index / chunk < *chunks)
        });
        for (at, cell) in cells {
            if at.iter().zip(shape).any(|(index, extent)| index >= extent) {
                *cell = Cell::May(cell.value());
            }
        }
        Some(resized)
    }

    fn written(&self, select: &[Range<u64>], body: &Body) -> Option<Self> {
        if select.len() > self.shape.len() {
            return None;
        }
        let mut region = [0..1, 0..1];
        for (dimension, extent) in self.shape.iter().enumerate() {
            let wanted = select.get(dimension).cloned().unwrap_or(0..*extent);
            region[dimension] = wanted.start.min(*extent)..wanted.end.min(*extent);
        }
        self.with(&region, body)
    }

    fn appended(&self, body: &Body) -> Option<Self> {
        let row: u64 = self.shape.iter().skip(1).product();
        let count = match body {
            Body::Scalar(_) => 1,
            Body::Raw(bytes) => {
                let row = row * self.layout.element.size() as u64;
                (bytes.len() as u64).is_multiple_of(row).then(|| bytes.len() as u64 / row)?
            }
        };
        let mut grown = self.clone();
        let first = self.shape[0];
        grown.shape[0] += count;
        grown.with(&[first..first + count, 0..row], body)
    }

    /// The array with a region written; `None` if the elements do not match the region.
    fn with(&self, region: &[Range<u64>; 2], body: &Body) -> Option<Self> {
        let [rows, columns] = region;
        let count = (rows.end - rows.start) * (columns.end - columns.start);
        let values = match body {
            Body::Scalar(value) if self.layout.element == Element::U8 && *value > 255 => return None,
            Body::Scalar(value) => vec![*value; usize::try_from(count).ok()?],
            Body::Raw(bytes) => self.layout.element.read(bytes).filter(|values| values.len() as u64 == count)?,
        };
        let mut written = self.clone();
        let cells = Arc::make_mut(&mut written.cells);
        let positions = rows.clone().flat_map(|row| columns.clone().map(move |column| [row, column]));
        for (at, value) in positions.zip(values) {
            match value == self.layout.fill {
                true => cells.remove(&at),
                false => cells.insert(at, Cell::Is(value)),
            };
        }
        Some(written)
    }

    fn allows(&self, image: &Image) -> bool {
        let columns = self.shape.get(1).copied().unwrap_or(1);
        let positions = (0..self.shape[0]).flat_map(|row| (0..columns).map(move |column| [row, column]));
        self.layout.element == image.element
            && self.shape == image.shape
            && self.shape.iter().product::<u64>() == image.values.len() as u64
            && positions.zip(&image.values).all(|(at, value)| value.is_none_or(|value| self.may_contain(at, value)))
    }

    fn may_contain(&self, at: Position, value: u16) -> bool {
        match self.cells.get(&at) {
            None => value == self.layout.fill,
            Some(Cell::Is(there)) => value == *there,
            Some(Cell::May(there)) => value == *there || value == self.layout.fill,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(value) => write!(f, "{value} everywhere"),
            Self::Raw(bytes) => write!(f, "bytes {}", runs(bytes)),
        }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<u16> = self.values.iter().flatten().copied().collect();
        write!(f, "{} {:?} {}", self.element.name(), self.shape, runs(&values))
    }
}

/// Formats values, with counts for repeated ones.
fn runs<T: PartialEq + fmt::Display>(values: &[T]) -> String {
    let run = |run: &[T]| run.first().map(|value| format!("{value}*{}", run.len())).unwrap_or_default();
    let all: Vec<String> = values.chunk_by(|one, other| one == other).map(run).collect();
    format!("[{}]", all.join(" "))
}

impl Cell {
    fn value(self) -> u16 {
        match self {
            Self::Is(value) | Self::May(value) => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::races::layout::{Dialect, Storage};

    fn layout(element: Element, shape: &[u64], chunk: &[u64]) -> Arc<Layout> {
        let (shape, chunk) = (shape.to_vec(), chunk.to_vec());
        Arc::new(Layout { dialect: Dialect::V3, element, shape, chunk, storage: Storage::Raw, fill: 0 })
    }

    fn image(element: Element, shape: &[u64], values: &[u16]) -> Effect {
        Effect::Read(Image { element, shape: shape.to_vec(), values: values.iter().copied().map(Some).collect() })
    }

    fn write(select: impl Into<Vec<Range<u64>>>, value: u16) -> Effect {
        Effect::Write { select: select.into(), body: Body::Scalar(value) }
    }

    fn full(extent: u64) -> Vec<Range<u64>> {
        std::iter::once(0..extent).collect()
    }

    fn after(layout: &Arc<Layout>, effects: &[Effect]) -> State {
        let started = Some(Array::new(layout));
        effects.iter().fold(started, |state, effect| effect.apply(&state).unwrap())
    }

    #[test]
    fn shrinking_drops_outer_chunks_and_may_retain_edge_elements() {
        let layout = layout(Element::U16, &[8], &[2]);
        let state = after(&layout, &[write(full(8), 7), Effect::Resize(vec![3]), Effect::Resize(vec![8])]);
        for (values, can_be) in [
            ([7, 7, 7, 0, 0, 0, 0, 0], true),
            ([7, 7, 7, 7, 0, 0, 0, 0], true),
            ([7, 7, 7, 8, 0, 0, 0, 0], false),
            ([7, 7, 7, 0, 7, 0, 0, 0], false),
            ([7, 7, 0, 0, 0, 0, 0, 0], false),
        ] {
            assert_eq!(image(Element::U16, &[8], &values).apply(&state).is_some(), can_be, "{values:?}");
        }
    }

    #[test]
    fn writes_are_clamped_to_the_shape_and_rejected_if_out_of_bounds() {
        let layout = layout(Element::U8, &[2, 3], &[1, 1]);
        let state = after(&layout, &[write([1..9, 1..2], 5)]);
        assert!(image(Element::U8, &[2, 3], &[0, 0, 0, 0, 5, 0]).apply(&state).is_some());
        assert!(image(Element::U16, &[2, 3], &[0, 0, 0, 0, 5, 0]).apply(&state).is_none());
        assert!(image(Element::U8, &[3, 2], &[0, 0, 0, 0, 5, 0]).apply(&state).is_none());
        assert!(write([0..1, 0..1], 256).apply(&state).is_none(), "not a uint8");
        assert!(write([0..1, 0..1, 0..1], 1).apply(&state).is_none(), "two dimensions");
        let raw = |bytes: &[u8]| Effect::Write { select: full(1), body: Body::Raw(bytes.into()) };
        assert!(raw(&[1, 2]).apply(&state).is_none());
        assert!(raw(&[1, 2, 3]).apply(&state).is_some());
        assert!(raw(&[1, 2, 3]).apply(&None).is_none());
    }

    #[test]
    fn append_grows_the_first_dimension() {
        let layout = layout(Element::U16, &[1, 2], &[1, 1]);
        let append = Effect::Append(Body::Raw(vec![1, 0, 2, 0, 3, 0, 4, 0]));
        let state = after(&layout, &[append, Effect::Append(Body::Scalar(9))]);
        assert!(image(Element::U16, &[4, 2], &[0, 0, 1, 2, 3, 4, 9, 9]).apply(&state).is_some());
        assert!(Effect::Append(Body::Raw(vec![0; 6])).apply(&state).is_none(), "one and a half rows");
    }

    #[test]
    fn replaced_array_starts_empty() {
        let (old, new) = (layout(Element::U16, &[4], &[2]), layout(Element::U8, &[4], &[2]));
        let written = after(&old, &[write(full(4), 7)]);
        assert!(Effect::Declare(new.clone()).apply(&written).is_none());
        assert!(Effect::Declare(old.clone()).apply(&written).is_some());
        let erased = Effect::Erase.apply(&written).unwrap();
        assert_eq!(erased, None);
        for replaced in [Effect::Replace(new.clone()).apply(&written), Effect::Declare(new).apply(&erased)] {
            let replaced = replaced.unwrap();
            assert!(image(Element::U8, &[4], &[0; 4]).apply(&replaced).is_some());
            assert!(image(Element::U8, &[4], &[0, 0, 7, 0]).apply(&replaced).is_none());
        }
        assert_eq!(Effect::Replace(old).apply(&written), Some(written), "an equal declaration preserves the chunks");
    }
}
