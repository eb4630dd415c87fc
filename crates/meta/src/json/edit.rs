//! Editing of objects in their text.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

use super::{Json, Kind, Member, format};

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

    /// A merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) whose values keep their notation.
    pub fn merge_patch(patch: &Json) -> Self {
        // Only the last of duplicate names counts; a patch may have a million of them.
        let mut last: HashMap<String, Change> = HashMap::new();
        let mut names = Vec::new();
        for member in patch.members() {
            // A name that cannot be decoded does not match any member.
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
    /// Applies an edit; all other bytes are preserved. Values other than objects are replaced by an object.
    #[must_use]
    pub fn edited(&self, edit: &ObjectEdit) -> Self {
        if edit.is_empty() && self.is_object() {
            return self.clone();
        }
        let mut text = Vec::with_capacity(self.len());
        object(self, edit, &Layout::of_document(self), &mut text);
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
fn object(json: &Json, edit: &ObjectEdit, layout: &Layout, text: &mut Vec<u8>) {
    let empty = Json::empty_object();
    let json = if json.is_object() { json } else { &empty };
    let source = json.as_bytes();
    let mut changes = PlannedEdits::new(json, edit);
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

/// The edit of an existing member.
enum MemberAction<'a> {
    Retain,
    Remove,
    Change(&'a Change),
}

/// The changes of an object with the index of the last member of each name.
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

    /// The changes of missing members, in their order.
    fn new_members(mut self) -> Vec<(&'a str, &'a Change)> {
        let names = self.edit.members.iter().map(|(name, _)| name.as_str());
        let new = |name: &'a str| match self.by_name.remove(name) {
            None | Some((Change::Remove | Change::Clear, _) | (_, Some(_))) => None,
            Some((change, None)) => Some((name, change)),
        };
        names.filter_map(new).collect()
    }
}

/// Appends new members, after existing ones if `has_members` is true. Returns true if any were appended.
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
