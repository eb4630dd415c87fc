//! Changing members of an object in its text.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

use super::{Json, Kind, Member, format};

/// The indentation of documents that have none to go by.
const INDENT: &[u8] = b"  ";

/// A change of one member of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It has this value.
    Set(Value),
    /// It has this value, byte for byte.
    SetText(Json),
    /// It has this value, in the layout of the document around it.
    SetFormatted(Json),
    /// It says what this says. Whatever says so already unchanged as it is; what is new has the layout of the document around it.
    Match(Json),
    /// Removed if present.
    Remove,
    /// Removed, or made an object without members.
    Clear,
    /// Its value is an object that is changed; an empty one first where it is none.
    Edit(Box<ObjectEdit>),
}

/// A change of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectEdit {
    /// The changed members, by name; those that are new come last, in this order.
    members: Vec<(String, Change)>,
    /// The paths of members that go, with all members whose names begin with one of these and `/`; unless they are among `members`.
    removed_paths: HashSet<String>,
}

impl Change {
    /// A change of the object that a member's value is.
    pub fn edit(edit: ObjectEdit) -> Self {
        Self::Edit(Box::new(edit))
    }
}

impl ObjectEdit {
    /// A change of one member.
    pub fn single(name: impl Into<String>, change: Change) -> Self {
        Self { members: vec![(name.into(), change)], removed_paths: HashSet::new() }
    }

    /// Changes a member. Of two changes of one member the last one counts.
    pub fn change(&mut self, name: impl Into<String>, change: Change) {
        self.members.push((name.into(), change));
    }

    /// Removes the member of this name, and all whose names start with it and `/`; all members if it is empty.
    pub fn remove_subtree(&mut self, path: impl Into<String>) {
        self.removed_paths.insert(path.into());
    }

    /// True if it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.removed_paths.is_empty()
    }

    /// A merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)), whose values are taken as they are written.
    pub fn merge_patch(patch: &Json) -> Self {
        // The last of equal names counts, and the others are not worth keeping: they may be a million.
        let mut last: HashMap<String, Change> = HashMap::new();
        let mut names = Vec::new();
        for member in patch.members() {
            // A name that no value can have cannot be that of a target, either.
            let Some(name) = member.name() else { continue };
            let change = match member.value.kind() {
                Kind::Null => Change::Remove,
                Kind::Object => Change::edit(Self::merge_patch(&member.value)),
                _ => Change::SetFormatted(member.value),
            };
            if let Some(before) = last.get_mut(&name) {
                *before = change;
                continue;
            }
            names.push(name.clone());
            last.insert(name, change);
        }
        let members = names.into_iter().filter_map(|name| last.remove_entry(&name)).collect();
        Self { members, removed_paths: HashSet::new() }
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
    /// The object with changed members; every other byte unchanged as it is. What is no object is taken for an empty one.
    #[must_use]
    pub fn edited(&self, edit: &ObjectEdit) -> Self {
        if edit.is_empty() && self.is_object() {
            return self.clone();
        }
        let mut text = Vec::with_capacity(self.len());
        object(self, edit, &Layout::of_document(self), &mut text);
        Self::bare(text).with_padding_of(self)
    }

    /// The object with one changed member.
    #[must_use]
    pub fn with(&self, name: &str, change: Change) -> Self {
        self.edited(&ObjectEdit::single(name, change))
    }

    /// The object without a member; the same text if it has none of the name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        match self.get(name) {
            Some(_) => self.with(name, Change::Remove),
            None => self.clone(),
        }
    }

    /// The array without the elements for which this does not hold; every other byte unchanged as it is.
    #[must_use]
    pub fn retaining(&self, predicate: impl Fn(&Self) -> bool) -> Self {
        let mut items = self.items();
        let mut spans = Vec::new();
        while let Some(span) = items.next_span() {
            let is_retained = predicate(&Self::bare(self.text.slice(span.clone())));
            spans.push((span, is_retained));
        }
        let text = self.as_bytes();
        Self::bare(without(text, spans.iter().map(|(span, is_retained)| (span.clone(), *is_retained))))
            .with_padding_of(self)
    }

    /// The text as it is stored: indented by two, as zarr-python has it. What would be many times as long for that is on one line.
    #[must_use]
    pub fn pretty(value: &Value) -> Self {
        Self::bare(render(value, &Layout { before: Some(b"\n".to_vec()), unit: INDENT.to_vec() }))
    }
}

/// The whitespace of an object.
#[derive(Clone, Debug)]
struct Layout {
    /// The line break and indentation before the value's closing bracket; `None` if all is on one line.
    before: Option<Vec<u8>>,
    /// The indentation of each level.
    unit: Vec<u8>,
}

impl Layout {
    /// That of a whole document.
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

/// The whitespace before the first member of an object that has any.
fn leading_whitespace(object: &Json) -> Option<&[u8]> {
    let first = object.members().next()?;
    object.as_bytes().get(1..first.span.start)
}

/// Writes an object with its changes.
fn object(json: &Json, edit: &ObjectEdit, layout: &Layout, text: &mut Vec<u8>) {
    let empty = Json::empty_object();
    let json = if json.is_object() { json } else { &empty };
    let source = json.as_bytes();
    let mut changes = PlannedEdits::new(json, edit);
    // The whitespace before the first member is that of whichever comes to be the first.
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
            MemberAction::Change(change) => value(Some(&member.value), change, &layout.nested(), text),
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

/// The treatment of a member.
enum MemberAction<'a> {
    Retain,
    Remove,
    Change(&'a Change),
}

/// The changes of an object, each with the index of the last member of its name.
struct PlannedEdits<'a> {
    edit: &'a ObjectEdit,
    by_name: HashMap<&'a str, (&'a Change, Option<usize>)>,
}

impl<'a> PlannedEdits<'a> {
    fn new(json: &Json, edit: &'a ObjectEdit) -> Self {
        let mut by_name: HashMap<&str, (&Change, Option<usize>)> =
            edit.members.iter().map(|(name, change)| (name.as_str(), (change, None))).collect();
        for (index, member) in json.members().enumerate() {
            if by_name.is_empty() {
                break;
            }
            if let Some((_, last)) = member.name().and_then(|name| by_name.get_mut(name.as_str())) {
                *last = Some(index);
            }
        }
        Self { edit, by_name }
    }

    fn of_member(&mut self, index: usize, member: &Member) -> MemberAction<'a> {
        let Some(name) = member.name() else { return MemberAction::Retain };
        match self.by_name.get(name.as_str()) {
            Some((Change::Remove, _)) => MemberAction::Remove,
            Some((Change::Clear, _)) if member.value.is_object() && member.value.members().next().is_none() => {
                MemberAction::Retain
            }
            Some((Change::Clear, _)) => MemberAction::Remove,
            Some((change, last)) if *last == Some(index) => MemberAction::Change(change),
            None if self.edit.is_removed(&name) => MemberAction::Remove,
            Some(_) | None => MemberAction::Retain,
        }
    }

    /// The changes of members that are not there, in their order.
    fn new_members(mut self) -> Vec<(&'a str, &'a Change)> {
        let names = self.edit.members.iter().map(|(name, _)| name.as_str());
        let new = |name: &'a str| match self.by_name.remove(name) {
            None | Some((Change::Remove | Change::Clear, _) | (_, Some(_))) => None,
            Some((change, None)) => Some((name, change)),
        };
        names.filter_map(new).collect()
    }
}

/// Writes members behind those that are there, if any were `has_members`. Whether there were some to write.
fn append(
    json: &Json,
    new: Vec<(&str, &Change)>,
    layout: &Layout,
    (text, mut has_members): (&mut Vec<u8>, bool),
) -> bool {
    let inner = layout.nested();
    let before = leading_whitespace(json).map(<[u8]>::to_vec).or_else(|| inner.before.clone()).unwrap_or_default();
    let is_any = !new.is_empty();
    for (name, change) in new {
        if has_members {
            text.push(b',');
        }
        if has_members && before.is_empty() && has_space_after_comma(json) {
            text.push(b' ');
        }
        has_members = true;
        text.extend_from_slice(&before);
        text.extend_from_slice(Value::from(name).to_string().as_bytes());
        text.extend_from_slice(colon(json));
        value(None, change, &inner, text);
    }
    is_any
}

/// True if an object on one line has spaces behind its commas, as Python writes it.
fn has_space_after_comma(json: &Json) -> bool {
    let mut members = json.members();
    match (members.next(), members.next()) {
        (Some(first), Some(second)) => second.span.start.saturating_sub(first.span.end) > 1,
        (Some(_), None) => colon(json).ends_with(b" "),
        (None, _) => true,
    }
}

/// The colon of an object's members with the whitespace around it.
fn colon(json: &Json) -> &[u8] {
    let Some(first) = json.members().next() else { return b": " };
    let begin = first.span.start.saturating_add(first.quoted_name().len());
    let end = first.span.end.saturating_sub(first.value.len());
    json.as_bytes().get(begin..end).unwrap_or(b": ")
}

/// Writes a changed value. An existing one that is equal unchanged as it is.
fn value(before: Option<&Json>, change: &Change, layout: &Layout, text: &mut Vec<u8>) {
    let unchanged = |target: &Json| before.filter(|before| before.is_strictly_equivalent(target));
    match change {
        Change::Set(value) => match unchanged(&Json::compact(value)) {
            Some(before) => text.extend_from_slice(before.as_bytes()),
            None => text.extend_from_slice(&render(value, layout)),
        },
        Change::SetText(json) => text.extend_from_slice(json.as_bytes()),
        Change::SetFormatted(json) => match unchanged(json) {
            Some(before) => text.extend_from_slice(before.as_bytes()),
            None => formatted(json, layout, text),
        },
        Change::Match(json) => match before.and_then(|before| Some((before, ObjectEdit::matching(before, json)?))) {
            Some((before, edit)) => object(before, &edit, layout, text),
            None => value(before, &Change::SetFormatted(json.clone()), layout, text),
        },
        Change::Edit(edit) => object(before.unwrap_or(&Json::empty_object()), edit, layout, text),
        Change::Remove | Change::Clear => {}
    }
}

fn formatted(json: &Json, layout: &Layout, text: &mut Vec<u8>) {
    match layout.before {
        Some(_) => text.extend_from_slice(&json.formatted().reindented(layout.indent())),
        None => text.extend_from_slice(&format::compact(json.as_bytes())),
    }
}

/// The text of a value: on one line, or indented by `layout` if that does not make it many times as long.
fn render(value: &Value, layout: &Layout) -> Vec<u8> {
    // A vector takes every byte, and names are texts.
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

/// Accepts a bounded number of bytes.
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

/// An array's text without some of its elements.
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
