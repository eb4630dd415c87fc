//! Lookup of the members of an object by name.

use std::{borrow::Cow, cmp::Ordering};

use super::{Json, MemberSlices, scan};

/// The members of an object in the order of their decoded names. Of duplicate names, only the last value counts.
///
/// It takes sixteen bytes for each member and a copy of its name, which is a fraction of what a map of strings and
/// values does: an object of 4 MiB may have half a million members.
#[derive(Debug)]
pub(super) struct MembersByName<'a> {
    object: &'a Json,
    /// The decoded names, one after the other.
    names: String,
    members: Vec<NamedMember>,
}

/// A name and its value. Texts have less than 4 GiB, so offsets fit.
#[derive(Clone, Copy, Debug)]
struct NamedMember {
    /// The begin of the name in `names`.
    name: u32,
    /// The length of the name.
    name_len: u32,
    /// The offset in the object of the first value with this name, which determines the order of names.
    first: u32,
    /// The offset in the object of the last value with this name.
    value: u32,
}

impl<'a> MembersByName<'a> {
    /// The members whose names can be decoded.
    pub(super) fn of_decodable(object: &'a Json) -> Self {
        Self::of(object, |member| member.decoded_name())
    }

    /// All members; names that cannot be decoded keep their notation.
    pub(super) fn of_all(object: &'a Json) -> Self {
        Self::of(object, |member| Some(member.decoded_name().unwrap_or_else(|| member.notation())))
    }

    fn of(object: &'a Json, name: impl Fn(&MemberSlices<'a>) -> Option<Cow<'a, str>>) -> Self {
        let lengths = object.member_slices().map(|member| member.quoted_name().len());
        let (count, length) =
            lengths.fold((0_usize, 0_usize), |(count, sum), len| (count.saturating_add(1), sum.saturating_add(len)));
        let (mut names, mut members) = (String::with_capacity(length), Vec::with_capacity(count));
        for member in object.member_slices() {
            let Some(name) = name(&member) else { continue };
            let (begin, value) = (offset(names.len()), offset(member.value_offset()));
            names.push_str(&name);
            members.push(NamedMember { name: begin, name_len: offset(name.len()), first: value, value });
        }
        let mut this = Self { object, names, members };
        this.sort();
        this
    }

    /// Sorts the members by name, and merges those of the same name.
    fn sort(&mut self) {
        let names = &self.names;
        let by_name = |one: &NamedMember, other: &NamedMember| one.name_in(names).cmp(other.name_in(names));
        self.members.sort_unstable_by(|one, other| by_name(one, other).then(one.first.cmp(&other.first)));
        self.members.dedup_by(|later, earlier| {
            let is_same = by_name(later, earlier) == Ordering::Equal;
            if is_same {
                earlier.value = later.value;
            }
            is_same
        });
    }

    /// The number of different names.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The position of a name in the order of names.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.members.binary_search_by(|member| member.name_in(&self.names).cmp(name)).ok()
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<Json> {
        self.value_at(self.position(name)?)
    }

    /// The value at a position.
    pub(super) fn value_at(&self, position: usize) -> Option<Json> {
        self.members.get(position).map(|member| self.value_of(member))
    }

    /// Names and values in the order of names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Json)> {
        self.members.iter().map(|member| (member.name_in(&self.names), self.value_of(member)))
    }

    /// The positions of names in the order in which the object has them first.
    pub(super) fn document_order(&self) -> Vec<u32> {
        let first = |position: &u32| self.members.get(*position as usize).map(|member| member.first);
        let mut positions: Vec<u32> = (0..offset(self.members.len())).collect();
        positions.sort_unstable_by_key(first);
        positions
    }

    /// The name at a position.
    pub(super) fn name_at(&self, position: usize) -> &str {
        self.members.get(position).map(|member| member.name_in(&self.names)).unwrap_or_default()
    }

    fn value_of(&self, member: &NamedMember) -> Json {
        let begin = member.value as usize;
        Json::bare(self.object.text.slice(begin..scan::end_of_value(self.object.as_bytes(), begin)))
    }
}

impl NamedMember {
    fn name_in<'n>(&self, names: &'n str) -> &'n str {
        let begin = self.name as usize;
        names.get(begin..begin.saturating_add(self.name_len as usize)).unwrap_or_default()
    }
}

/// An offset in a text, whose length is bounded by [`scan::MAX_LEN`].
fn offset(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn last_value_of_each_decoded_name_is_found() {
        let object = parsed(r#"{"b": 1, "\u0061": [2], "é": 3, "b" :{"x":4}, "a":5, "\ud800": 6}"#);
        let members = MembersByName::of_decodable(&object);
        let found: Vec<_> = members.iter().map(|(name, value)| (name, value.as_str().to_owned())).collect();
        assert_eq!(found, [("a", "5".to_owned()), ("b", r#"{"x":4}"#.to_owned()), ("é", "3".to_owned())]);
        assert_eq!(members.get("b").unwrap().as_str(), r#"{"x":4}"#);
        assert_eq!((members.get("x"), members.len()), (None, 3));
        let order: Vec<_> = members.document_order().into_iter().map(|at| members.name_at(at as usize)).collect();
        assert_eq!(order, ["b", "a", "é"]);
    }

    #[test]
    fn names_that_cannot_be_decoded_keep_their_notation() {
        let object = parsed(r#"{"\ud800": 6, "a": 1}"#);
        let all = MembersByName::of_all(&object);
        assert_eq!(all.iter().map(|(name, _)| name).collect::<Vec<_>>(), [r#""\ud800""#, "a"]);
        assert_eq!(MembersByName::of_decodable(&object).len(), 1);
        assert_eq!(MembersByName::of_all(&parsed("[1]")).len(), 0);
    }
}
