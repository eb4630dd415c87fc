//! Names of a directory in their order, in one text.

use std::time::{Duration, SystemTime};

use crate::{
    attributes::Attributes,
    part::{Children, Part},
    quiet::{LONG, Precision},
};

/// The time after which the names of a directory are read again, even if it has the same attributes.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(60);

/// True if the names of a directory stay the same for as long as its attributes do: on a file system where every new name
/// changes these, if it did not change within one tick of the clock.
pub(crate) fn follow_attributes(attributes: &Attributes, precision: Precision) -> bool {
    let changed = attributes.changed.system().max(attributes.modified.system());
    let is_quiet = SystemTime::now().duration_since(changed).is_ok_and(|age| age >= LONG);
    is_quiet && precision == Precision::Fine
}

/// Names after a text; the name of a directory ends in `/`.
#[derive(Debug, Default)]
pub(crate) struct SortedNames {
    /// All names after this text are here.
    pub(crate) after: String,
    text: String,
    /// The places of the names in the text, in the order of the names once they are sorted.
    places: Vec<(u32, u32)>,
}

impl SortedNames {
    /// No names yet, of those after a text.
    pub(crate) fn after(text: &str) -> Self {
        Self { after: text.to_owned(), ..Self::default() }
    }

    /// Adds a name; `end` is `/` for a directory. False if there is no room for it.
    pub(crate) fn push(&mut self, name: &str, end: &str) -> bool {
        let start = self.text.len();
        self.text.push_str(name);
        self.text.push_str(end);
        match (u32::try_from(start), u32::try_from(self.text.len())) {
            (Ok(start), Ok(end)) => {
                self.places.push((start, end));
                true
            }
            _ => false,
        }
    }

    /// The names in their order.
    pub(crate) fn sorted(mut self) -> Self {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by(|one, other| self.name(*one).cmp(self.name(*other)));
        self.places = places;
        self
    }

    /// The number of names.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The length of all names, in bytes.
    pub(crate) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// The size of the names with their places, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.text.len().saturating_add(size_of_val(self.places.as_slice()))
    }

    fn name(&self, (start, end): (u32, u32)) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The children of a part. The directory that contains the text after which it begins is one of them.
    pub(crate) fn children(&self, part: Part<'_>) -> Children {
        let next = self.places.partition_point(|place| self.name(*place) <= part.after);
        let contains = |index: &usize| {
            let name = self.places.get(*index).map(|place| self.name(*place)).unwrap_or_default();
            name.ends_with('/') && part.after.len() > name.len() && part.after.starts_with(name)
        };
        let first = next.checked_sub(1).filter(contains).unwrap_or(next);
        let rest = self.places.get(first..).unwrap_or_default();
        let names = rest.iter().take(part.limit).map(|place| self.name(*place).to_owned()).collect();
        Children { names, more: rest.len() > part.limit }
    }
}
