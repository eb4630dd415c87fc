//! Editing of objects in their text.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

use super::{
    Json, Member, format,
    memberwise::{Derived, DerivedAction, MAX_LEVELS, MemberwiseEdit, Rule, can_be_matched},
};

/// The indentation of documents that have none to copy.
const INDENT: &[u8] = b"  ";

/// The change of a member.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Sets the value.
    Set(Value),
    /// Sets the value, byte for byte.
    SetText(Json),
    /// Sets the value, in the layout of the surrounding document.
    SetFormatted(Json),
    /// Sets the value with a minimal edit: equal parts keep their bytes, new ones have the layout of the surrounding
    /// document.
    Match(Json),
    /// Sets the members of an object as [`Match`](Self::Match) does, and keeps all others.
    MatchMembers(Json),
    /// Applies a merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) whose values keep their notation.
    Merge(Json),
    /// Removes the member.
    Remove,
    /// Removes the member unless its value is an empty object.
    Clear,
    /// Edits the value, which becomes an object if it is not.
    Edit(Box<ObjectEdit>),
}

/// An edit of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectEdit {
    /// Changes by member name; new members are appended in this order.
    members: Vec<(String, Change)>,
    /// Paths of removed members, together with all members whose names start with such a path and `/`, unless they are
    /// among `members`.
    removed_paths: HashSet<String>,
}

impl Change {
    /// An edit of the member's value.
    pub fn edit(edit: ObjectEdit) -> Self {
        Self::Edit(Box::new(edit))
    }
}

impl ObjectEdit {
    /// An edit of one member.
    pub fn single(name: impl Into<String>, change: Change) -> Self {
        Self { members: vec![(name.into(), change)], removed_paths: HashSet::new() }
    }

    /// Adds a change of a member. The last change of a member counts.
    pub fn change(&mut self, name: impl Into<String>, change: Change) {
        self.members.push((name.into(), change));
    }

    /// Removes the member with this name, and all members whose names start with it and `/`; all members if it is
    /// empty.
    pub fn remove_subtree(&mut self, path: impl Into<String>) {
        self.removed_paths.insert(path.into());
    }

    /// True if the edit changes nothing.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.removed_paths.is_empty()
    }

    fn is_removed(&self, name: &str) -> bool {
        if self.removed_paths.is_empty() {
            return false;
        }
        let ends = name.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
        ends.chain([0, name.len()]).any(|end| name.get(..end).is_some_and(|path| self.removed_paths.contains(path)))
    }
}

impl Json {
    /// Applies an edit; all other bytes are preserved. Values other than objects are replaced by an object.
    #[must_use]
    pub fn edited(&self, edit: &ObjectEdit) -> Self {
        if edit.is_empty() && self.is_object() {
            return self.clone();
        }
        let mut text = Vec::with_capacity(self.len());
        object(self, PlannedEdits::listed(self, edit), &Layout::of_document(self), &mut text);
        Self::owned(text).with_padding_of(self)
    }

    /// Applies a merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) of an object; all other bytes are
    /// preserved.
    #[must_use]
    pub fn merged(&self, patch: &Self) -> Self {
        let is_empty = patch.member_slices().all(|member| member.decoded_name().is_none());
        if is_empty && self.is_object() {
            return self.clone();
        }
        let mut text = Vec::with_capacity(self.len());
        object(self, PlannedEdits::memberwise(self, patch, Rule::Merge), &Layout::of_document(self), &mut text);
        Self::owned(text).with_padding_of(self)
    }

    /// Changes one member.
    #[must_use]
    pub fn with(&self, name: &str, change: Change) -> Self {
        if let Change::Set(value) = &change
            && let Some(text) = appended(self, name, value)
        {
            return Self::owned(text).with_padding_of(self);
        }
        self.edited(&ObjectEdit::single(name, change))
    }

    /// Removes a member; returns the same text if the object has no such member.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        match self.get(name) {
            Some(_) => self.with(name, Change::Remove),
            None => self.clone(),
        }
    }

    /// Removes the items for which the predicate is false; all other bytes are preserved.
    #[must_use]
    pub fn retaining(&self, predicate: impl Fn(&Self) -> bool) -> Self {
        let mut items = self.items();
        let mut spans = Vec::new();
        while let Some(span) = items.next_span() {
            let is_retained = predicate(&Self::bare(self.text.slice(span.clone())));
            spans.push((span, is_retained));
        }
        let text = self.as_bytes();
        Self::owned(without(text, spans.iter().map(|(span, is_retained)| (span.clone(), *is_retained))))
            .with_padding_of(self)
    }

    /// The text of a value as documents are stored: indented by two like zarr-python, or on one line if indentation
    /// would make it many times longer.
    #[must_use]
    pub fn pretty(value: &Value) -> Self {
        Self::owned(render(value, &Layout { before: Some(b"\n".to_vec()), unit: INDENT.to_vec() }))
    }
}

/// An object with a new member at its end: what an edit makes of it. `None` if it has the member, has whitespace, which
/// determines the layout of new members, or is empty.
fn appended(json: &Json, name: &str, value: &Value) -> Option<Vec<u8>> {
    let text = json.as_bytes();
    let open = text.strip_suffix(b"}").filter(|open| open.len() > 1)?;
    if text.iter().any(u8::is_ascii_whitespace) || json.member_slices().any(|member| member.is_named(name)) {
        return None;
    }
    let (name, value) = (Json::string(name), value.to_string());
    Some([open, b",", name.as_bytes(), b":", value.as_bytes(), b"}"].concat())
}

/// The layout of an object.
#[derive(Clone, Debug)]
struct Layout {
    /// The line break and indentation before the closing bracket; `None` if the object is on one line.
    before: Option<Vec<u8>>,
    /// The indentation per level.
    unit: Vec<u8>,
}

impl Layout {
    /// Detects the layout of a document.
    fn of_document(document: &Json) -> Self {
        match leading_whitespace(document) {
            Some(first) if first.contains(&b'\n') => {
                let unit = first.rsplit(|byte| *byte == b'\n').next().unwrap_or(INDENT).to_vec();
                Self { before: Some(b"\n".to_vec()), unit }
            }
            None if document.as_bytes().contains(&b'\n') => {
                Self { before: Some(b"\n".to_vec()), unit: INDENT.to_vec() }
            }
            _ => Self { before: None, unit: INDENT.to_vec() },
        }
    }

    fn nested(&self) -> Self {
        let before = self.before.as_ref().map(|before| [before.as_slice(), &self.unit].concat());
        Self { before, unit: self.unit.clone() }
    }

    fn indent(&self) -> &[u8] {
        self.before.as_deref().and_then(|before| before.strip_prefix(b"\n")).unwrap_or_default()
    }
}

/// The whitespace before the first member of an object; `None` if it has no members.
fn leading_whitespace(object: &Json) -> Option<&[u8]> {
    let first = object.members().next()?;
    object.as_bytes().get(1..first.span.start)
}

/// Writes an edited object.
fn object(json: &Json, mut changes: PlannedEdits<'_>, layout: &Layout, text: &mut Vec<u8>) {
    let empty = Json::empty_object();
    let json = if json.is_object() { json } else { &empty };
    let source = json.as_bytes();
    // The first remaining member gets the whitespace of the original first member.
    let first = leading_whitespace(json);
    let (mut end, mut has_members) = (1, false);
    text.push(b'{');
    for (index, member) in json.members().enumerate() {
        let between = source.get(end..member.span.start).unwrap_or_default();
        end = member.span.end;
        let change = changes.of_member(index, &member);
        if matches!(change, MemberAction::Remove) {
            continue;
        }
        text.extend_from_slice(if has_members { between } else { first.unwrap_or_default() });
        has_members = true;
        let value_at = member.span.end.saturating_sub(member.value.len());
        text.extend_from_slice(source.get(member.span.start..value_at).unwrap_or_default());
        match change {
            MemberAction::Replace(new) => new.write(Some(&member.value), &layout.nested(), text),
            MemberAction::Retain | MemberAction::Remove => text.extend_from_slice(member.value.as_bytes()),
        }
    }
    let closing = match (has_members, append(json, changes.new_members(), layout, (text, has_members))) {
        (true, _) => source.get(end..).unwrap_or(b"}"),
        (false, false) => b"}",
        (false, true) => {
            text.extend_from_slice(layout.before.as_deref().unwrap_or_default());
            b"}"
        }
    };
    text.extend_from_slice(closing);
}

/// The edit of an existing member.
enum MemberAction<'a> {
    Retain,
    Remove,
    Replace(NewValue<'a>),
}

/// The new value of a member.
enum NewValue<'a> {
    Listed(&'a Change),
    Derived(Derived),
}

/// The changes of an object.
enum PlannedEdits<'a> {
    /// Changes that an edit lists, each with the index of the last member of its name.
    Listed { edit: &'a ObjectEdit, by_name: HashMap<&'a str, (&'a Change, Option<usize>)> },
    /// Changes that follow from another object.
    Memberwise(MemberwiseEdit<'a>),
}

impl NewValue<'_> {
    fn write(&self, before: Option<&Json>, layout: &Layout, text: &mut Vec<u8>) {
        match self {
            Self::Listed(change) => value(before, change, layout, text),
            Self::Derived(new) => derived(before, new, layout, text),
        }
    }
}

impl<'a> PlannedEdits<'a> {
    fn listed(json: &Json, edit: &'a ObjectEdit) -> Self {
        let mut by_name: HashMap<&str, (&Change, Option<usize>)> =
            edit.members.iter().map(|(name, change)| (name.as_str(), (change, None))).collect();
        for (index, member) in json.member_slices().enumerate() {
            if by_name.is_empty() {
                break;
            }
            if let Some((_, last)) = member.decoded_name().and_then(|name| by_name.get_mut(&*name)) {
                *last = Some(index);
            }
        }
        Self::Listed { edit, by_name }
    }

    fn memberwise(json: &Json, target: &'a Json, rule: Rule) -> Self {
        Self::Memberwise(MemberwiseEdit::new(json, target, rule))
    }

    fn of_member(&self, index: usize, member: &Member) -> MemberAction<'a> {
        let (edit, by_name) = match self {
            Self::Listed { edit, by_name } => (edit, by_name),
            Self::Memberwise(edit) => return edit.of_member(index, member).into(),
        };
        let Some(name) = member.decoded_name() else { return MemberAction::Retain };
        match by_name.get(&*name) {
            Some((Change::Remove, _)) => MemberAction::Remove,
            Some((Change::Clear, _)) if member.value.is_object() && member.value.members().next().is_none() => {
                MemberAction::Retain
            }
            Some((Change::Clear, _)) => MemberAction::Remove,
            Some((change, last)) if *last == Some(index) => MemberAction::Replace(NewValue::Listed(change)),
            None if edit.is_removed(&name) => MemberAction::Remove,
            Some(_) | None => MemberAction::Retain,
        }
    }

    /// The values of missing members, in their order.
    fn new_members(&mut self) -> Box<dyn Iterator<Item = (&str, NewValue<'_>)> + '_> {
        match self {
            Self::Memberwise(edit) => {
                Box::new(edit.new_members().map(|(name, value)| (name, NewValue::Derived(value))))
            }
            Self::Listed { edit, by_name } => {
                let names = edit.members.iter().map(|(name, _)| name.as_str());
                Box::new(names.filter_map(|name| match by_name.remove(name) {
                    None | Some((Change::Remove | Change::Clear, _) | (_, Some(_))) => None,
                    Some((change, None)) => Some((name, NewValue::Listed(change))),
                }))
            }
        }
    }
}

impl From<DerivedAction> for MemberAction<'_> {
    fn from(action: DerivedAction) -> Self {
        match action {
            DerivedAction::Retain => Self::Retain,
            DerivedAction::Remove => Self::Remove,
            DerivedAction::Replace(value) => Self::Replace(NewValue::Derived(value)),
        }
    }
}

/// Appends new members, after existing ones if `has_members` is true. Returns true if any were appended.
fn append<'n>(
    json: &Json,
    new: impl Iterator<Item = (&'n str, NewValue<'n>)>,
    layout: &Layout,
    (text, mut has_members): (&mut Vec<u8>, bool),
) -> bool {
    let inner = layout.nested();
    let before = leading_whitespace(json).map(<[u8]>::to_vec).or_else(|| inner.before.clone()).unwrap_or_default();
    let mut is_any = false;
    for (name, value) in new {
        is_any = true;
        if has_members {
            text.push(b',');
        }
        if has_members && before.is_empty() && has_space_after_comma(json) {
            text.push(b' ');
        }
        has_members = true;
        text.extend_from_slice(&before);
        // Writing to a vector cannot fail.
        _ = serde_json::to_writer(&mut *text, name);
        text.extend_from_slice(colon(json));
        value.write(None, &inner, text);
    }
    is_any
}

/// True if an object on one line has spaces after its commas, as Python writes it.
fn has_space_after_comma(json: &Json) -> bool {
    let mut members = json.members();
    match (members.next(), members.next()) {
        (Some(first), Some(second)) => second.span.start.saturating_sub(first.span.end) > 1,
        (Some(_), None) => colon(json).ends_with(b" "),
        (None, _) => true,
    }
}

/// The colon between name and value, with its whitespace.
fn colon(json: &Json) -> &[u8] {
    let Some(first) = json.members().next() else { return b": " };
    let begin = first.span.start.saturating_add(first.quoted_name().len());
    let end = first.span.end.saturating_sub(first.value.len());
    json.as_bytes().get(begin..end).unwrap_or(b": ")
}

/// Writes a changed value; an equal existing value keeps its bytes.
fn value(before: Option<&Json>, change: &Change, layout: &Layout, text: &mut Vec<u8>) {
    let derive = |new, text: &mut Vec<u8>| derived(before, &new, layout, text);
    match change {
        Change::Set(value) => match equal(before, &Json::compact(value)) {
            Some(before) => text.extend_from_slice(before.as_bytes()),
            None => text.extend_from_slice(&render(value, layout)),
        },
        Change::SetText(json) => text.extend_from_slice(json.as_bytes()),
        Change::SetFormatted(json) => derive(Derived::Formatted(json.clone()), text),
        Change::Match(json) => derive(Derived::Matched(json.clone(), MAX_LEVELS), text),
        Change::MatchMembers(json) => derive(Derived::WithMembers(json.clone()), text),
        Change::Merge(json) => derive(Derived::Merged(json.clone()), text),
        Change::Edit(edit) => {
            let empty = Json::empty_object();
            let before = before.unwrap_or(&empty);
            object(before, PlannedEdits::listed(before, edit), layout, text);
        }
        Change::Remove | Change::Clear => {}
    }
}

/// Writes a value that follows from another object.
fn derived(before: Option<&Json>, new: &Derived, layout: &Layout, text: &mut Vec<u8>) {
    let empty = Json::empty_object();
    let (before, target, rule) = match (before, new) {
        (Some(before), Derived::Matched(target, levels)) if *levels > 0 && can_be_matched(before, target) => {
            (before, target, Rule::Match(*levels))
        }
        (_, Derived::Formatted(json) | Derived::Matched(json, _)) => {
            return match equal(before, json) {
                Some(before) => text.extend_from_slice(before.as_bytes()),
                None => formatted(json, layout, text),
            };
        }
        (_, Derived::WithMembers(target)) => (before.unwrap_or(&empty), target, Rule::MatchMembers),
        (_, Derived::Merged(target)) => (before.unwrap_or(&empty), target, Rule::Merge),
    };
    object(before, PlannedEdits::memberwise(before, target, rule), layout, text);
}

/// The existing value if it is equal to a new one.
fn equal<'b>(before: Option<&'b Json>, new: &Json) -> Option<&'b Json> {
    before.filter(|before| before.is_strictly_equivalent(new))
}

fn formatted(json: &Json, layout: &Layout, text: &mut Vec<u8>) {
    match layout.before {
        Some(_) => text.extend_from_slice(&json.formatted().reindented(layout.indent())),
        None => text.extend_from_slice(&format::compact(json.as_bytes())),
    }
}

/// The text of a value: indented like `layout` unless that makes it many times longer.
fn render(value: &Value, layout: &Layout) -> Vec<u8> {
    // Writing to a vector cannot fail, and names are strings.
    let compact = serde_json::to_vec(value).unwrap_or_default();
    if layout.before.is_none() {
        return compact;
    }
    let limit = format::max_indented_len(compact.len());
    let mut pretty = Bounded { bytes: Vec::with_capacity(compact.len()), limit };
    let formatter = PrettyFormatter::with_indent(&layout.unit);
    match value.serialize(&mut serde_json::Serializer::with_formatter(&mut pretty, formatter)) {
        Ok(()) => Json::bare(pretty.bytes).reindented(layout.indent()),
        Err(_) => compact,
    }
}

/// A writer with a maximum size.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit.saturating_sub(self.bytes.len()) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The text of an array without some of its items.
fn without(text: &[u8], spans: impl Iterator<Item = (std::ops::Range<usize>, bool)>) -> Vec<u8> {
    let mut out = vec![b'['];
    let (mut end, mut has_members, mut first) = (1, false, None);
    for (span, is_retained) in spans {
        let before = text.get(end..span.start).unwrap_or_default();
        first.get_or_insert(before);
        if is_retained {
            out.extend_from_slice(if has_members { before } else { first.unwrap_or_default() });
            out.extend_from_slice(text.get(span.clone()).unwrap_or_default());
            has_members = true;
        }
        end = span.end;
    }
    out.extend_from_slice(if has_members { text.get(end..).unwrap_or(b"]") } else { b"]" });
    out
}
