//! The labels of a dimension.

use std::cmp::Ordering;

use bytes::Bytes;
use half::f16;
use serde_json::Value;
use zarrd_codec::{Elements, VariableBuilder, VariableElements};
use zarrd_meta::{
    data_type::{DataType, Number},
    selection::DimensionSelection,
};

use super::key::{KeyRef, LabelType, TimeScale, Width};
use crate::{
    decoding::Decoding,
    error::CfError,
    kernel,
    moments::CalendarTexts,
    texts::as_texts,
    time::{NOT_A_TIME, calendar::Calendar},
};

/// The decoded labels of a dimension, with an order for searches.
#[derive(Clone, Debug)]
pub struct Coordinate {
    data_type: DataType,
    /// The decoded elements.
    elements: Elements,
    pub(super) label_type: LabelType,
    values: Values,
    pub(super) order: Order,
    len: usize,
}

/// The elements as they are compared.
#[derive(Clone, Debug)]
enum Values {
    /// Those of the coordinate.
    Elements,
    /// Times in microseconds from the start of 1970, of a calendar.
    Moments(Vec<i64>),
    /// Texts of elements of a fixed size.
    Texts(VariableElements),
}

/// The order of a coordinate: how a position among sorted labels becomes an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Ascending,
    Descending,
    /// The indices of sorted labels, without missing ones.
    Sorted(Box<[u32]>),
}

impl Coordinate {
    /// Decodes the elements of a one-dimensional array, and orders them.
    ///
    /// Times outside of the range of `datetime64[ns]` become texts.
    ///
    /// # Errors
    ///
    /// Elements that cannot be decoded.
    pub fn new(elements: &Elements, data_type: &DataType, decoding: Option<&Decoding>) -> Result<Self, CfError> {
        let Some(decoding) = decoding else { return Ok(Self::of_decoded(elements.clone(), data_type.clone())) };
        let texts;
        let decoding = if decoding.fits_datetime64(elements) {
            decoding
        } else {
            texts = decoding.clone().with_text_times();
            &texts
        };
        let decoded = decoding.decode(elements)?;
        let Some((units, moments)) = decoding.text_moments(elements) else {
            return Ok(Self::of_decoded(decoded, decoding.data_type()));
        };
        let (moments, calendar) = (moments?, units.calendar);
        let label_type = LabelType::Moment(TimeScale::Nanoseconds(1000), calendar);
        let len = moments.len();
        Ok(Self::ordered(decoding.data_type(), decoded, label_type, Values::Moments(moments), len))
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of the labels.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The labels.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// The size in memory, in bytes.
    pub fn memory_size(&self) -> u64 {
        let values = match &self.values {
            Values::Elements => 0,
            Values::Moments(moments) => (moments.len() as u64).saturating_mul(8),
            Values::Texts(texts) => texts.memory_size(),
        };
        let order = match &self.order {
            Order::Sorted(indices) => (indices.len() as u64).saturating_mul(4),
            Order::Ascending | Order::Descending => 0,
        };
        self.elements.memory_size().saturating_add(values).saturating_add(order).saturating_add(256)
    }

    /// A label as JSON.
    pub fn label(&self, index: usize) -> Option<Value> {
        let mut json = Vec::new();
        self.data_type.write_json(self.element(index)?, &mut json);
        serde_json::from_slice(&json).ok()
    }

    /// The size of [`take`](Self::take) in memory, in bytes: labels may be selected many times.
    pub fn taken_size(&self, selection: &DimensionSelection) -> u64 {
        let count = selection.len();
        match &self.elements {
            Elements::Fixed(_) => count.saturating_mul(self.data_type.fixed_size().unwrap_or(0) as u64),
            Elements::Variable(_) => {
                let indices = (0..count).filter_map(|at| index_at(selection, at));
                let sizes = indices.filter_map(|index| self.element(index)).map(|element| element.len() as u64);
                sizes.fold(count.saturating_mul(size_of::<u64>() as u64), u64::saturating_add)
            }
        }
    }

    /// The labels of a selection, in its order: a part of all labels if that is most of them, else a copy.
    pub fn take(&self, selection: &DimensionSelection) -> Elements {
        if let Some(part) = self.most(selection) {
            return Elements::Fixed(part);
        }
        let count = selection.len();
        let indices = (0..count).filter_map(|at| index_at(selection, at));
        match &self.elements {
            Elements::Fixed(_) => {
                let size = self.data_type.fixed_size().unwrap_or(0);
                let capacity = usize::try_from(count).unwrap_or(0).saturating_mul(size);
                let mut out = Vec::with_capacity(capacity);
                indices.filter_map(|index| self.element(index)).for_each(|element| out.extend_from_slice(element));
                Elements::Fixed(out.into())
            }
            Elements::Variable(_) => {
                let mut builder = VariableBuilder::new(u64::MAX);
                for element in indices.filter_map(|index| self.element(index)) {
                    // There is no bound that it could exceed.
                    let _pushed = builder.push(element);
                }
                Elements::Variable(builder.finish())
            }
        }
    }

    /// The consecutive labels of a selection, if they are at least half of all.
    fn most(&self, selection: &DimensionSelection) -> Option<Bytes> {
        let (DimensionSelection::Range { start, step: 1, .. }, Elements::Fixed(bytes)) = (selection, &self.elements)
        else {
            return None;
        };
        let size = self.data_type.fixed_size()?;
        let [start, len] = [*start, selection.len()].map(|count| usize::try_from(count).ok()?.checked_mul(size));
        let range = start?..start?.checked_add(len?)?;
        (range.end <= bytes.len() && range.len() >= bytes.len() / 2).then(|| bytes.slice(range))
    }

    /// The labels of a selection as moments, which have means, and the way from those to texts; `None` if the labels
    /// are no texts of times.
    pub fn take_moments(&self, selection: &DimensionSelection) -> Option<(Elements, CalendarTexts)> {
        let (Values::Moments(moments), LabelType::Moment(_, calendar)) = (&self.values, self.label_type) else {
            return None;
        };
        let indices = (0..selection.len()).filter_map(|at| index_at(selection, at));
        let taken = indices.filter_map(|index| moments.get(index)).flat_map(|moment| moment.to_le_bytes());
        Some((Elements::Fixed(taken.collect::<Vec<u8>>().into()), CalendarTexts(calendar)))
    }

    /// The element of an index.
    pub fn element(&self, index: usize) -> Option<&[u8]> {
        match &self.elements {
            Elements::Variable(elements) => elements.get(index),
            Elements::Fixed(bytes) => fixed(bytes, index, self.data_type.fixed_size()?),
        }
    }

    /// The label of an index; `None` if it is missing.
    pub(super) fn key(&self, index: usize) -> Option<KeyRef<'_>> {
        match &self.values {
            Values::Moments(moments) => {
                let count = moments.get(index).filter(|count| **count != NOT_A_TIME)?;
                Some(KeyRef::Integer(i128::from(*count).saturating_mul(1000)))
            }
            Values::Texts(texts) => texts.get(index).map(KeyRef::Text),
            Values::Elements => self.label_type.key(self.element(index)?, self.data_type.number()),
        }
    }

    /// The number of labels that are not missing.
    pub(super) fn sorted_len(&self) -> usize {
        match &self.order {
            Order::Ascending | Order::Descending => self.len,
            Order::Sorted(indices) => indices.len(),
        }
    }

    /// The index of a position among the sorted labels.
    pub(super) fn sorted_index(&self, position: usize) -> Option<usize> {
        match &self.order {
            Order::Ascending => Some(position),
            Order::Descending => self.len.checked_sub(position)?.checked_sub(1),
            Order::Sorted(indices) => indices.get(position).and_then(|index| usize::try_from(*index).ok()),
        }
    }

    /// The label at a position among the sorted labels.
    pub(super) fn sorted_key(&self, position: usize) -> Option<KeyRef<'_>> {
        self.key(self.sorted_index(position)?)
    }

    fn of_decoded(elements: Elements, data_type: DataType) -> Self {
        let (elements, data_type) = as_texts(elements, data_type);
        let label_type = label_type_of(&data_type);
        let len = match &elements {
            Elements::Variable(elements) => elements.len(),
            Elements::Fixed(bytes) => bytes.len().checked_div(data_type.fixed_size().unwrap_or(0)).unwrap_or(0),
        };
        let values = match (&elements, label_type) {
            (Elements::Fixed(bytes), LabelType::Text) => Values::Texts(texts_of(bytes, &data_type)),
            _ => Values::Elements,
        };
        Self::ordered(data_type, elements, label_type, values, len)
    }

    fn ordered(data_type: DataType, elements: Elements, label_type: LabelType, values: Values, len: usize) -> Self {
        let mut coordinate = Self { data_type, elements, label_type, values, order: Order::Ascending, len };
        if coordinate.is_ordered(Ordering::Greater) {
            return coordinate;
        }
        if coordinate.is_ordered(Ordering::Less) {
            coordinate.order = Order::Descending;
            return coordinate;
        }
        let indices = coordinate.sorted();
        coordinate.order = Order::Sorted(indices.into());
        coordinate
    }

    /// The indices of labels that are not missing, by label; those of equal ones by index.
    fn sorted(&self) -> Vec<u32> {
        let present = || (0..self.len).filter_map(|at| Some((self.key(at)?, u32::try_from(at).ok()?)));
        if let Some(mut ranked) = self.ranked(present()) {
            ranked.sort_unstable();
            return ranked.into_iter().map(|(_, index)| index).collect();
        }
        let mut indices: Vec<u32> = present().map(|(_, index)| index).collect();
        let key = |index: u32| self.key(index as usize);
        indices.sort_by(|left, right| match (key(*left), key(*right)) {
            (Some(left), Some(right)) => left.order(right).unwrap_or(Ordering::Equal),
            _ => Ordering::Equal,
        });
        indices
    }

    /// The indices of labels with integers in the same order, if there are such: comparing those is ten times as fast.
    fn ranked<'a>(&self, present: impl Iterator<Item = (KeyRef<'a>, u32)> + Clone) -> Option<Vec<(u64, u32)>> {
        let least = present.clone().try_fold(i128::MAX, |least, (key, _)| Some(least.min(key.rank()?)))?;
        let distance =
            |(key, index): (KeyRef<'_>, u32)| Some((u64::try_from(key.rank()?.checked_sub(least)?).ok()?, index));
        let mut ranked = Vec::with_capacity(self.len);
        for entry in present {
            ranked.push(distance(entry)?);
        }
        Some(ranked)
    }

    /// True if no label is missing, and none compares with the next one in this way.
    fn is_ordered(&self, forbidden: Ordering) -> bool {
        let mut before = None;
        (0..self.len).all(|index| {
            let Some(key) = self.key(index) else { return false };
            let order = before.and_then(|before: KeyRef<'_>| before.order(key));
            before = Some(key);
            order != Some(forbidden)
        })
    }
}

impl LabelType {
    /// The value of an element; `None` for NaN and "not a time".
    fn key(self, element: &[u8], number: Option<Number>) -> Option<KeyRef<'_>> {
        match self {
            Self::Text => Some(KeyRef::Text(element)),
            Self::Moment(scale, _) | Self::Duration(scale) => {
                let count = i64::from_le_bytes(element.try_into().ok()?);
                (count != NOT_A_TIME).then(|| KeyRef::Integer(scale.nanoseconds(count)))
            }
            Self::Float(width) => {
                let float = match width {
                    Width::Half => f64::from(f16::from_le_bytes(element.try_into().ok()?)),
                    Width::Single => f64::from(f32::from_le_bytes(element.try_into().ok()?)),
                    Width::Double => f64::from_le_bytes(element.try_into().ok()?),
                };
                (!float.is_nan()).then_some(KeyRef::Float(float))
            }
            Self::Bool | Self::Integer => {
                kernel::integer(number.unwrap_or(Number::Int64), element).map(KeyRef::Integer)
            }
        }
    }
}

fn label_type_of(data_type: &DataType) -> LabelType {
    let name = data_type.name();
    let parameters = |prefix| name.strip_prefix(prefix).and_then(|name: &str| name.strip_suffix(']'));
    if let Some(scale) = parameters("numpy.datetime64[").and_then(TimeScale::parse) {
        return LabelType::Moment(scale, Calendar::ProlepticGregorian);
    }
    if let Some(scale) = parameters("numpy.timedelta64[").and_then(TimeScale::parse)
        && !matches!(scale, TimeScale::Months(_))
    {
        return LabelType::Duration(scale);
    }
    match data_type.number() {
        Some(Number::Float16) => LabelType::Float(Width::Half),
        Some(Number::Float32) => LabelType::Float(Width::Single),
        Some(Number::Float64) => LabelType::Float(Width::Double),
        Some(Number::Bool) => LabelType::Bool,
        Some(Number::Complex64 | Number::Complex128) => LabelType::Text,
        Some(_) => LabelType::Integer,
        // Times without a unit are numbers.
        None if name.starts_with("numpy.") && name.ends_with("64[generic]") => LabelType::Integer,
        None => LabelType::Text,
    }
}

/// The texts of elements of a fixed size: strings as they are, others as JSON.
fn texts_of(bytes: &Bytes, data_type: &DataType) -> VariableElements {
    let size = data_type.fixed_size().unwrap_or(0);
    let mut builder = VariableBuilder::new(u64::MAX);
    let mut json = Vec::new();
    for element in bytes.chunks_exact(size.max(1)) {
        json.clear();
        data_type.write_json(element, &mut json);
        let text = serde_json::from_slice::<String>(&json).map_or_else(|_| json.clone(), String::into_bytes);
        // There is no bound that it could exceed.
        let _pushed = builder.push(&text);
    }
    builder.finish()
}

fn fixed(bytes: &Bytes, index: usize, size: usize) -> Option<&[u8]> {
    let start = index.checked_mul(size)?;
    bytes.get(start..start.checked_add(size)?)
}

/// The index at a position of a selection.
fn index_at(selection: &DimensionSelection, at: u64) -> Option<usize> {
    usize::try_from(selection.nth(at)?).ok()
}
