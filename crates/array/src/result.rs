//! The result of a request for elements.

use std::{ops::Range, sync::Arc};

use bytes::BytesMut;
use futures::{
    Stream, StreamExt, TryStreamExt, future,
    stream::{self, BoxStream},
};
use zarrd_cf::{ByteTexts, is_characters};
use zarrd_codec::Elements;
use zarrd_compute::{FUNCTION_DIMENSION, Reduction};
use zarrd_meta::{
    ArrayModel, NodePath,
    data_type::DataType,
    relation::DialectRelation,
    selection::{DimensionSelection, Item, ResolvedSelection, Selection},
};

use crate::{
    convention::decode_map,
    coordinates::{
        error::CoordinateError,
        select::{LabelledDimension, Labels, Selected, function_labels},
    },
    error::ArrayError,
    map::{Decode, ElementMap, stable_hash},
    memory::claim::Permit,
    read::{array_read::ArrayRead, cost::ReadCost, metrics::ReadMetrics},
    reduce::run::ReducedRead,
    shared_slice::SharedSlice,
    work::NOMINAL_ELEMENT_SIZE,
};

/// The elements that answer a request: those that a read selects, after the steps that follow the selection. Nothing is
/// decoded yet.
#[derive(Debug)]
pub struct ArrayResult {
    source: Source,
    shape: Vec<u64>,
    data_type: DataType,
    dimension_names: Vec<Option<String>>,
    /// That of what is read and computed.
    fingerprint: Option<u128>,
    /// The dimensions that were selected by name, and the coordinates that this took.
    selected: Option<Selected>,
    decode: Decode,
}

#[derive(Debug)]
enum Source {
    /// Each selected element, or the texts that they are, after these steps in this order.
    Selected { read: ArrayRead, joined: Option<ByteTexts>, maps: Vec<Arc<dyn ElementMap>> },
    /// Results of groups of elements.
    Reduced(ReducedRead),
    /// Labels of the results of a read, which are known without reading.
    Labels { read: ArrayRead, labels: Elements },
}

impl From<ArrayRead> for ArrayResult {
    fn from(read: ArrayRead) -> Self {
        Self {
            shape: read.shape().to_vec(),
            data_type: read.model().data_type.clone(),
            dimension_names: read.dimension_names(),
            fingerprint: read.fingerprint(),
            source: Source::Selected { read, joined: None, maps: Vec::new() },
            selected: None,
            decode: Decode::Stored,
        }
    }
}

impl From<ReducedRead> for ArrayResult {
    fn from(reduced: ReducedRead) -> Self {
        let reduction = &reduced.plan.reduction;
        Self {
            shape: reduction.shape(),
            data_type: reduced.plan.data_type().clone(),
            dimension_names: reduction.dimension_names(),
            fingerprint: reduced.key.as_ref().map(stable_hash),
            decode: reduced.decode,
            source: Source::Reduced(reduced),
            selected: None,
        }
    }
}

impl ArrayResult {
    /// The result, decoded.
    pub fn decoded(mut self, decode: Decode) -> Result<Self, ArrayError> {
        let map = decode_map((self.path(), self.model()), decode)?;
        self.decode = decode;
        if decode != Decode::Stored && self.join_texts() {
            return Ok(self);
        }
        Ok(match map {
            Some(map) => self.mapped(map),
            None => self,
        })
    }

    /// The result as labels: byte strings are texts.
    pub fn as_labels(self) -> Self {
        let mut decoded = self;
        if let Source::Selected { read, joined: joined @ None, .. } = &mut decoded.source
            && let Some(texts) = ByteTexts::of_type(&read.model().data_type)
            && let Some(data_type) = texts.data_type()
        {
            *joined = Some(texts);
            decoded.data_type = data_type;
        }
        decoded
    }

    /// Makes texts of byte strings with an encoding, and of characters whose whole last dimension is selected, which is
    /// dropped. Returns false for other elements.
    fn join_texts(&mut self) -> bool {
        let Source::Selected { read, joined: joined @ None, .. } = &mut self.source else { return false };
        let width = if is_characters(read.model()) { joined_width(read) } else { Some(1) };
        let texts = width.and_then(|width| ByteTexts::of_array(read.model(), width));
        let Some((texts, data_type)) = texts.and_then(|texts| Some((texts, texts.data_type()?))) else { return false };
        if is_characters(read.model()) {
            self.shape.pop();
            self.dimension_names.pop();
        }
        *joined = Some(texts);
        self.fingerprint = self.fingerprint.map(|before| stable_hash(&(before, data_type.name())));
        self.data_type = data_type;
        true
    }

    /// The result of a selection by names.
    #[must_use]
    pub fn with_selected(self, selected: Selected) -> Self {
        Self { selected: Some(selected), ..self }
    }

    /// True if the array's elements are packed or some mean missing, see [`zarrd_cf::is_undecoded`].
    pub fn is_undecoded(&self) -> bool {
        self.read().is_undecoded()
    }

    /// The decoding of the elements.
    pub fn decoding(&self) -> Decode {
        self.decode
    }

    /// The dimensions that were selected by name, with their items.
    pub fn selected_dimensions(&self) -> &[(String, Item)] {
        self.selected.as_ref().map_or(&[], |selected| &selected.dimensions)
    }

    /// The labels of the results of several functions, instead of the results: the names of the functions.
    pub fn into_function_labels(self) -> Result<Self, CoordinateError> {
        let missing = || CoordinateError::NoCoordinate { dimension: FUNCTION_DIMENSION.to_owned() };
        let LabelledDimension { name, labels, .. } = self.reduction().and_then(function_labels).ok_or_else(missing)?;
        let Labels { data_type, elements, .. } = labels.ok_or_else(missing)?;
        Ok(Self {
            shape: self.shape.first().copied().into_iter().collect(),
            data_type,
            dimension_names: vec![Some(name)],
            fingerprint: self.fingerprint.map(|results| stable_hash(&(results, FUNCTION_DIMENSION))),
            selected: self.selected,
            decode: Decode::Stored,
            source: match self.source {
                Source::Reduced(ReducedRead { read, .. })
                | Source::Selected { read, .. }
                | Source::Labels { read, .. } => Source::Labels { read, labels: elements },
            },
        })
    }

    /// The result as numbers of a type.
    pub fn cast(self, number_type: &str) -> Result<Self, ArrayError> {
        let data_type = crate::reduce::request::number_type(number_type)?;
        match data_type == self.data_type {
            true => Ok(self),
            false => {
                let cast = zarrd_compute::Cast::new(&self.data_type, &data_type)?;
                Ok(self.mapped(Arc::new(cast)))
            }
        }
    }

    /// The result, if its elements have at most `limit` bytes after all steps: those that were selected may have fewer.
    pub fn checked(self, limit: u64) -> Result<Self, ArrayError> {
        let per_element = self.data_type.fixed_size().map_or(NOMINAL_ELEMENT_SIZE, |size| size as u64);
        let size_of = |shape: &[u64]| {
            let elements = shape.iter().fold(1_u128, |all, &extent| all.saturating_mul(extent.into()));
            elements.saturating_mul(per_element.into())
        };
        let size = size_of(&self.shape);
        if size <= limit.into() {
            return Ok(self);
        }
        let smaller = self.smaller(|shape| size_of(shape) <= limit.into());
        Err(ArrayError::SelectionTooLarge { size, limit, smaller })
    }

    /// The result with one more step.
    #[must_use]
    pub fn mapped(mut self, map: Arc<dyn ElementMap>) -> Self {
        self.data_type = map.data_type().clone();
        self.fingerprint = self.fingerprint.map(|before| stable_hash(&(before, self.data_type.name())));
        if let Source::Selected { maps, .. } = &mut self.source {
            maps.push(map);
        }
        self
    }

    /// The relation of the documents of v2 and v3; see [`ArrayRead::relation`].
    pub fn relation(&self) -> Option<DialectRelation> {
        self.read().relation()
    }

    /// The model of the array.
    pub fn model(&self) -> &ArrayModel {
        self.read().model()
    }

    /// The path of the array.
    pub fn path(&self) -> &NodePath {
        self.read().path()
    }

    /// The shape of the result.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The data type of the result.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The names of the result's dimensions.
    pub fn dimension_names(&self) -> Vec<Option<String>> {
        self.dimension_names.clone()
    }

    /// The selection in the array's stored coordinates, if each of its elements is one of the result.
    pub fn resolved(&self) -> Option<&ResolvedSelection> {
        match &self.source {
            Source::Selected { read, joined: None, .. } => Some(read.resolved()),
            Source::Selected { .. } | Source::Reduced(_) | Source::Labels { .. } => None,
        }
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent))
    }

    /// The size of all elements in bytes; `None` if they have variable length.
    pub fn byte_len(&self) -> Option<u64> {
        Some(self.elements().saturating_mul(self.data_type().fixed_size()? as u64))
    }

    /// A leading part of the selection whose result has a shape that fits; see [`ArrayRead::smaller`].
    pub fn smaller(&self, fits: impl Fn(&[u64]) -> bool) -> Option<Selection> {
        match &self.source {
            Source::Selected { read, joined: None, .. } => read.smaller(fits),
            Source::Selected { .. } | Source::Reduced(_) | Source::Labels { .. } => None,
        }
    }

    /// A hash that differs whenever the metadata, a chunk, the selection, a step, or a coordinate by whose labels was
    /// selected does; see [`ArrayRead::fingerprint`].
    pub fn fingerprint(&self) -> Option<u128> {
        let read = self.fingerprint?;
        if self.selected.is_none() && self.decode == Decode::Stored {
            return Some(read);
        }
        let coordinates = self.selected.as_ref().map_or(Some(0), Selected::fingerprint)?;
        Some(stable_hash(&(read, coordinates, self.decode)))
    }

    /// The reduction, if the elements are its results.
    pub(crate) fn reduction(&self) -> Option<&Reduction> {
        match &self.source {
            Source::Selected { .. } | Source::Labels { .. } => None,
            Source::Reduced(reduced) => Some(&reduced.plan.reduction),
        }
    }

    /// The selection in the array's stored coordinates, of which each element is one of the result, or is reduced.
    pub(crate) fn input(&self) -> &ResolvedSelection {
        self.read().resolved()
    }

    /// The stored values that the read needs.
    pub fn cost(&self) -> ReadCost {
        self.read().cost()
    }

    /// The metrics of the read.
    pub fn metrics(&self) -> ReadMetrics {
        self.read().metrics()
    }

    /// Reserves the minimum memory of the read, and `bytes` more for its caller; see [`ArrayRead::reserve_with_extra`].
    pub async fn reserve_with_extra(&mut self, bytes: u64) -> Result<Permit, ArrayError> {
        match &mut self.source {
            Source::Selected { read, .. } | Source::Reduced(ReducedRead { read, .. }) | Source::Labels { read, .. } => {
                read.reserve_with_extra(bytes).await
            }
        }
    }

    /// Narrows the result to a range of its elements, and returns the index of the first one that is read; see
    /// [`ArrayRead::narrow`]. Results of groups are not narrowed.
    pub fn narrow(&mut self, elements: Range<u64>) -> u64 {
        match &mut self.source {
            Source::Selected { read, joined: None, .. } => read.narrow(elements),
            Source::Selected { .. } | Source::Reduced(_) | Source::Labels { .. } => 0,
        }
    }

    /// The elements in C order, in buffers of whole elements. An error ends the stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
        let (read, joined, maps) = match self.source {
            Source::Selected { read, joined, maps } => (read, joined, maps),
            Source::Reduced(reduced) => {
                let texts = reduced.plan.steps.texts.clone();
                return mapped(reduced.into_stream().boxed(), texts);
            }
            Source::Labels { labels, .. } => return stream::iter([Ok(labels)]).boxed(),
        };
        let stored: BoxStream<'static, _> = match SharedSlice::of(read) {
            Ok(shared) => shared.into_stream().boxed(),
            Err(read) => read.into_stream().boxed(),
        };
        match joined {
            Some(texts) => mapped(as_texts(stored, texts), maps),
            None => mapped(stored, maps),
        }
    }

    fn read(&self) -> &ArrayRead {
        match &self.source {
            Source::Selected { read, .. } | Source::Reduced(ReducedRead { read, .. }) | Source::Labels { read, .. } => {
                read
            }
        }
    }
}

/// The number of characters of a text, if all of the last dimension is selected, and there are some.
fn joined_width(read: &ArrayRead) -> Option<usize> {
    let ResolvedSelection::Region(region) = read.resolved() else { return None };
    let all = read.model().view_shape().last().copied()?;
    let origin = read.model().view_offset.last().copied()?;
    match region.dimensions.last()? {
        DimensionSelection::Range { start, step: 1, len } if (*start, *len) == (origin, all) => {
            usize::try_from(all).ok().filter(|width| *width > 0)
        }
        _ => None,
    }
}

/// Texts of the bytes of elements, of which each may be in several buffers.
fn as_texts(
    elements: BoxStream<'static, Result<Elements, ArrayError>>,
    texts: ByteTexts,
) -> BoxStream<'static, Result<Elements, ArrayError>> {
    let join = move |rest: &mut BytesMut, part: Result<Elements, ArrayError>| {
        let joined = part.map(|part| match part {
            Elements::Fixed(bytes) => {
                rest.extend_from_slice(&bytes);
                let whole = rest.len() / texts.size() * texts.size();
                texts.write(&rest.split_to(whole))
            }
            variable @ Elements::Variable(_) => variable,
        });
        future::ready(Some(joined))
    };
    elements.scan(BytesMut::new(), join).boxed()
}

/// Elements after more steps.
fn mapped(
    elements: BoxStream<'static, Result<Elements, ArrayError>>,
    maps: impl IntoIterator<Item = Arc<dyn ElementMap>>,
) -> BoxStream<'static, Result<Elements, ArrayError>> {
    maps.into_iter()
        .fold(elements, |elements, map| elements.and_then(move |elements| future::ready(map.map(&elements))).boxed())
}
