//! Edits of an object that follow from the members of another one: merge patches, and minimal edits to make an object
//! equal to another.

use super::{Json, Member, by_name::MembersByName};

/// The maximum depth at which objects are matched member by member; below it, different values are replaced.
pub(super) const MAX_LEVELS: usize = 100;

/// The position of a member that does not exist.
const MISSING: u32 = u32::MAX;

/// A new value, which may depend on the existing one.
#[derive(Clone, Debug)]
pub(super) enum Derived {
    /// This value, in the layout of the surrounding document. An equal existing value keeps its bytes.
    Formatted(Json),
    /// This value by a minimal edit, which descends as many levels.
    Matched(Json, usize),
    /// The existing object with these members, by minimal edits.
    WithMembers(Json),
    /// The existing object with this merge patch.
    Merged(Json),
}

/// The edit of an existing member.
#[derive(Debug)]
pub(super) enum DerivedAction {
    Retain,
    Remove,
    Replace(Derived),
}

/// The rule by which the members of an object change those of another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// Members of other names are removed; values are matched to as many levels.
    Match(usize),
    /// Values are matched; members of other names stay.
    MatchMembers,
    /// Values are merged; null removes.
    Merge,
}

/// The edit of an object by the members of another one. New values are derived one by one, since an object may have
/// half a million members.
#[derive(Debug)]
pub(super) struct MemberwiseEdit<'a> {
    target: MembersByName<'a>,
    /// For each name of the target, the index of the last existing member.
    existing: Vec<u32>,
    rule: Rule,
}

impl<'a> MemberwiseEdit<'a> {
    /// The edit of an object by the members of `target`. Names that cannot be decoded match no member.
    pub(super) fn new(before: &Json, target: &'a Json, rule: Rule) -> Self {
        let target = MembersByName::of_decodable(target);
        let mut existing = vec![MISSING; target.len()];
        for (index, member) in before.member_slices().enumerate() {
            let position = member.decoded_name().and_then(|name| target.position(&name));
            if let Some(last) = position.and_then(|position| existing.get_mut(position)) {
                *last = u32::try_from(index).unwrap_or(MISSING);
            }
        }
        Self { target, existing, rule }
    }

    /// The edit of the existing member with an index.
    pub(super) fn of_member(&self, index: usize, member: &Member) -> DerivedAction {
        let Some(name) = member.decoded_name() else { return DerivedAction::Retain };
        let position = self.target.position(&name);
        let value = position.and_then(|position| Some((position, self.target.value_at(position)?)));
        match (value, self.rule) {
            (None, Rule::Match(_)) => DerivedAction::Remove,
            (None, Rule::MatchMembers | Rule::Merge) => DerivedAction::Retain,
            (Some((_, value)), Rule::Merge) if value.is_null() => DerivedAction::Remove,
            (Some((position, value)), rule) => match self.existing.get(position) {
                Some(last) if *last as usize == index => rule.of_existing(&member.value, value),
                _ => DerivedAction::Retain,
            },
        }
    }

    /// Missing members with their values, in the order of the target.
    pub(super) fn new_members(&self) -> impl Iterator<Item = (&str, Derived)> {
        let mut order = self.target.document_order();
        order.retain(|position| self.existing.get(*position as usize) == Some(&MISSING));
        order.into_iter().filter_map(|position| {
            let position = position as usize;
            Some((self.target.name_at(position), self.rule.of_missing(self.target.value_at(position)?)?))
        })
    }
}

impl Rule {
    fn of_existing(self, before: &Json, value: Json) -> DerivedAction {
        DerivedAction::Replace(match self {
            Self::Merge if value.is_object() => Derived::Merged(value),
            Self::Merge => Derived::Formatted(value),
            Self::Match(_) if before.is_empty_object() && value.is_empty_object() => return DerivedAction::Retain,
            Self::Match(levels) => Derived::Matched(value, levels.saturating_sub(1)),
            Self::MatchMembers => Derived::Matched(value, MAX_LEVELS),
        })
    }

    /// The value of a new member; `None` if it gets none.
    fn of_missing(self, value: Json) -> Option<Derived> {
        match self {
            Self::Merge if value.is_null() => None,
            Self::Merge if value.is_object() => Some(Derived::Merged(value)),
            Self::Merge | Self::Match(_) | Self::MatchMembers => Some(Derived::Formatted(value)),
        }
    }
}

/// True if an object can be matched with another: both are objects whose names can be decoded.
pub(super) fn can_be_matched(before: &Json, target: &Json) -> bool {
    [before, target]
        .iter()
        .all(|json| json.is_object() && json.member_slices().all(|member| member.decoded_name().is_some()))
}

impl Json {
    fn is_empty_object(&self) -> bool {
        self.is_object() && self.member_slices().next().is_none()
    }
}
