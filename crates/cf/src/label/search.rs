//! Searches for labels.

use std::{cmp::Ordering, ops::Range};

use zarrd_meta::selection::{Item, MAX_LIST_LEN, Slice};

use super::{
    coordinate::{Coordinate, Order},
    error::{LabelError, NearLabels},
    grammar::{Label, LabelSelection, LabelText, Match},
    key::{Denoted, Key, KeyRef, LabelType},
};
use crate::{attributes::excerpt, time::iso};

/// The indices of consecutive positions among sorted labels.
enum Found {
    Index(usize),
    Positions(Range<usize>),
}

impl Coordinate {
    /// The indices of labels, as the item of a selection: an index if one label was asked for, else a slice, or a list.
    ///
    /// # Errors
    ///
    /// Labels that are invalid for the type of the coordinate, that it does not have, or has several times.
    pub fn select(&self, selection: &LabelSelection) -> Result<Item, LabelError> {
        match selection {
            LabelSelection::One(label) => match self.find(label)? {
                Found::Index(index) => Ok(Item::Index(to_i64(index))),
                Found::Positions(positions) => self.item(positions),
            },
            LabelSelection::Range { from, to } => {
                let start = from.as_ref().map_or(Ok(0), |from| self.start(from))?;
                let end = to.as_ref().map_or(Ok(self.sorted_len()), |to| self.end(to))?;
                match (from, to) {
                    // Missing labels are between no others, and in all.
                    (None, None) => Ok(Item::Slice(Slice::default())),
                    _ => self.item(start..end.max(start)),
                }
            }
            LabelSelection::List(labels) => {
                let index = |label: &Label| {
                    let (key, tolerance) = self.moment_of(label)?;
                    self.index_of(&label.text, &key, &label.matching, tolerance).map(to_i64)
                };
                labels.iter().map(index).collect::<Result<_, _>>().map(Item::List)
            }
        }
    }

    fn find(&self, label: &Label) -> Result<Found, LabelError> {
        if label.matching == Match::Exact
            && let Denoted::Interval(start, end) = self.label_type.read(&label.text)?
        {
            let positions = self.lower_bound(&start)..self.lower_bound(&end);
            return match positions.is_empty() {
                true => Err(self.not_found(&label.text, &start)),
                false => Ok(Found::Positions(positions)),
            };
        }
        let (key, tolerance) = self.moment_of(label)?;
        self.index_of(&label.text, &key, &label.matching, tolerance).map(Found::Index)
    }

    /// The value of a label, of which an interval is its start, and its tolerance.
    fn moment_of(&self, label: &Label) -> Result<(Key, f64), LabelError> {
        let key = match self.denoted(&label.text)? {
            Denoted::Interval(start, _) | Denoted::One(start) => start,
            Denoted::Back(_) => return Err(self.not_found(&label.text, &Key::Integer(0))),
        };
        let tolerance = match &label.matching {
            Match::Exact => 0.0,
            Match::Nearest => f64::INFINITY,
            Match::Within(tolerance) => self.label_type.read_tolerance(tolerance)?,
        };
        Ok((key, tolerance))
    }

    /// The index of the label that matches.
    fn index_of(&self, text: &LabelText, key: &Key, matching: &Match, tolerance: f64) -> Result<usize, LabelError> {
        let position = match matching {
            Match::Exact => Some(self.lower_bound(key)).filter(|&position| self.is_equal(position, key)),
            Match::Nearest | Match::Within(_) => {
                self.label_type.check_distances(text)?;
                let nearest = self.nearest(key);
                nearest.filter(|(_, distance)| *distance <= tolerance).map(|(position, _)| position)
            }
        };
        let found = position.and_then(|position| Some((self.sorted_index(position)?, self.sorted_key(position)?)));
        let (index, label) = found.ok_or_else(|| self.not_found(text, key))?;
        let label = label.to_key();
        let count = self.upper_bound(&label).saturating_sub(self.lower_bound(&label));
        match count {
            0 | 1 => Ok(index),
            _ => Err(LabelError::Ambiguous { label: excerpt(&text.text), count }),
        }
    }

    /// The position of the nearest label, of two the larger one, and its distance.
    fn nearest(&self, key: &Key) -> Option<(usize, f64)> {
        let right = self.lower_bound(key);
        let at = |position: usize| {
            let label = self.sorted_key(position).filter(|_| position < self.sorted_len())?;
            Some((position, self.label_type.distance(label, key)))
        };
        match (right.checked_sub(1).and_then(at), at(right)) {
            (Some(left), Some(right)) => Some(if left.1 < right.1 { left } else { right }),
            (left, right) => left.or(right),
        }
    }

    /// The position of the first label of a range.
    fn start(&self, from: &LabelText) -> Result<usize, LabelError> {
        match self.denoted(from)? {
            Denoted::One(key) | Denoted::Interval(key, _) => Ok(self.lower_bound(&key)),
            Denoted::Back(_) => Ok(self.sorted_len()),
        }
    }

    /// The position after the last label of a range.
    fn end(&self, to: &LabelText) -> Result<usize, LabelError> {
        match self.denoted(to)? {
            Denoted::One(key) => Ok(self.upper_bound(&key)),
            Denoted::Interval(_, end) => Ok(self.lower_bound(&end)),
            Denoted::Back(_) => Ok(0),
        }
    }

    /// The meaning of a text; a duration back from the largest label is a moment, unless there is no label.
    fn denoted(&self, text: &LabelText) -> Result<Denoted, LabelError> {
        let denoted = self.label_type.read(text)?;
        let (Denoted::Back(duration), LabelType::Moment(_, calendar)) = (&denoted, self.label_type) else {
            return Ok(denoted);
        };
        let Some(KeyRef::Integer(largest)) = self.sorted_len().checked_sub(1).and_then(|last| self.sorted_key(last))
        else {
            return Ok(denoted);
        };
        let moment = iso::subtract(largest, *duration, calendar);
        let expected = "so long before the last label there are no dates";
        let invalid = || LabelError::Invalid { label: excerpt(&text.text), expected };
        moment.map(|moment| Denoted::One(Key::Integer(moment))).ok_or_else(invalid)
    }

    /// The item that selects consecutive positions among the sorted labels, in stored order.
    fn item(&self, positions: Range<usize>) -> Result<Item, LabelError> {
        let slice = |range: Range<usize>| {
            Item::Slice(Slice { start: Some(to_i64(range.start)), stop: Some(to_i64(range.end)), step: None })
        };
        match &self.order {
            Order::Ascending => Ok(slice(positions)),
            Order::Descending => {
                let len = self.len();
                Ok(slice(len.saturating_sub(positions.end)..len.saturating_sub(positions.start)))
            }
            Order::Sorted(indices) => {
                let mut selected: Vec<u32> = indices.get(positions).unwrap_or_default().to_vec();
                selected.sort_unstable();
                let (first, count) = (selected.first().copied().unwrap_or(0) as usize, selected.len());
                let end = selected.last().map_or(0, |last| (*last as usize).saturating_add(1));
                if end.saturating_sub(first) == count {
                    return Ok(slice(first..end));
                }
                if count > MAX_LIST_LEN {
                    return Err(LabelError::TooManyIndices { count, limit: MAX_LIST_LEN });
                }
                Ok(Item::List(selected.into_iter().map(i64::from).collect()))
            }
        }
    }

    /// The first position whose label is not less than a key.
    fn lower_bound(&self, key: &Key) -> usize {
        self.partition_point(|label| label.compare(key) == Some(Ordering::Less))
    }

    /// The first position whose label is greater than a key.
    fn upper_bound(&self, key: &Key) -> usize {
        self.partition_point(|label| label.compare(key).is_some_and(Ordering::is_le))
    }

    fn partition_point(&self, is_before: impl Fn(KeyRef<'_>) -> bool) -> usize {
        let (mut low, mut high) = (0, self.sorted_len());
        while low < high {
            let middle = low.midpoint(high);
            match self.sorted_key(middle).is_some_and(&is_before) {
                true => low = middle.saturating_add(1),
                false => high = middle,
            }
        }
        low
    }

    fn is_equal(&self, position: usize, key: &Key) -> bool {
        position < self.sorted_len()
            && self.sorted_key(position).is_some_and(|label| label.compare(key) == Some(Ordering::Equal))
    }

    fn not_found(&self, text: &LabelText, key: &Key) -> LabelError {
        let nearest = match self.label_type {
            LabelType::Text | LabelType::Bool => None,
            _ => self.nearest(key).and_then(|(position, _)| self.label(self.sorted_index(position)?)),
        };
        let last = self.len().checked_sub(1).and_then(|last| self.label(last));
        let near = Box::new(NearLabels { nearest, first: self.label(0), last });
        LabelError::NotFound { label: excerpt(&text.text), near }
    }
}

/// An index of a coordinate, which is in memory, so that it fits.
fn to_i64(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}
