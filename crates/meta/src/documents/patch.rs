//! Patches of a node's metadata.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    GroupModel, JsonPath, draft,
    json::{self as read, ATTRIBUTES},
    parts,
    write::StoredNode,
};
use crate::{
    ArrayModel, Dialect,
    grid::DimensionGrid,
    json::{Change, Json, Kind, ObjectEdit},
    limits::{MAX_EXTENT, MAX_RANK},
    model::XARRAY_NAMES,
    text::pointer_to,
};

/// The maximum nesting depth of a patch.
const MAX_DEPTH: usize = 100;

/// The extension with statistics of the elements.
const STATISTICS: &str = "example.array-statistics";

/// A patch of a node's metadata; `None` leaves a property unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodePatch {
    /// A merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) of the attributes.
    pub attributes: Option<Json>,
    /// The new shape of the view.
    pub shape: Option<Vec<u64>>,
    /// The new dimension names; `Some(None)` removes them.
    pub dimension_names: Option<Option<Vec<Option<String>>>>,
    /// The impact on the elements, which may invalidate their statistics.
    pub element_impact: ElementImpact,
}

/// The impact of a change on the elements of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ElementImpact {
    /// The elements do not change.
    #[default]
    Unchanged,
    /// Elements are written, added or removed.
    Changed,
}

/// A patch is invalid, or does not apply to a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer} {reason}")]
pub struct PatchError {
    /// The location in the patch: a JSON pointer.
    pub pointer: String,
    /// The error, which continues "the member".
    pub reason: String,
}

impl NodePatch {
    /// Parses the body of a `PATCH`: `{attributes, shape, dimension_names}`.
    ///
    /// Like stored documents, attributes keep their notation and may have the bare `NaN` and infinities of zarr-python.
    pub fn parse(json: impl Into<Bytes>) -> Result<Self, PatchError> {
        let patch = read::read(json).map_err(|error| patch_error("", error.to_string()))?;
        if patch.depth() > MAX_DEPTH {
            return Err(patch_error("", format!("is nested deeper than {MAX_DEPTH} levels")));
        }
        let lists = ["shape", "dimension_names"];
        if let Some(member) =
            patch.members().find(|member| ![ATTRIBUTES].iter().chain(&lists).any(|name| member.is_named(name)))
        {
            let pointer = pointer_to("", &member.name().unwrap_or_default());
            return Err(patch_error(&pointer, "is not one of attributes, shape and dimension_names"));
        }
        let mut node_patch = Self::default();
        if let Some(attributes) = patch.get(ATTRIBUTES) {
            if !attributes.is_object() {
                return Err(patch_error("/attributes", "is not an object"));
            }
            if !attributes.has_readable_names() {
                return Err(patch_error("/attributes", "has a name with a lone surrogate"));
            }
            node_patch.attributes = Some(attributes);
        }
        for name in lists {
            let Some(value) = patch.get(name) else { continue };
            let value = bounded_list(&value).map_err(|error| patch_error(&pointer_to("", name), error.to_string()))?;
            let path = JsonPath { value: &value, pointer: pointer_to("", name) };
            match name {
                "shape" => node_patch.shape = Some(parts::shape(&path).map_err(from_document)?),
                _ => node_patch.dimension_names = Some(dimension_names(&path)?),
            }
        }
        Ok(node_patch)
    }

    /// The patched documents of an array. All other bytes are preserved, including unknown members.
    ///
    /// The statistics of the extension `example.array-statistics` are removed if the shape or the elements change.
    pub fn apply_to_array(&self, model: &ArrayModel) -> Result<StoredNode, PatchError> {
        let mut node = StoredNode::new(model.dialect, &model.document, &model.attributes);
        let mut elements = self.element_impact;
        if let Some(shape) = &self.shape {
            let stored = stored_shape(model, shape)?;
            if stored != model.shape {
                elements = ElementImpact::Changed;
                node.document = node.document.with("shape", Change::Set(json!(stored)));
            }
            if let Some(edit) = replace_empty_chunk_lengths(&node.document, model) {
                node.document = node.document.edited(&edit);
            }
        }
        self.patch_attributes(model.dialect, &mut node);
        if model.dialect == Dialect::Draft {
            let patched = node.document.get(ATTRIBUTES).and_then(|attributes| draft::filters_of(&attributes));
            let is_unchanged = match (draft::filters_of(&model.attributes), patched) {
                (Some(before), Some(after)) => before.is_equivalent(&after),
                (before, after) => before.is_none() && after.is_none(),
            };
            if !is_unchanged {
                return Err(patch_error("/attributes/filters", "would change how the chunks are read"));
            }
        }
        if let Some(names) = &self.dimension_names {
            set_dimension_names(&mut node, model, names.as_deref())?;
        }
        if elements == ElementImpact::Changed {
            remove_statistics(&mut node.document, model.dialect);
        }
        self.check_size(&node)?;
        Ok(node)
    }

    /// The patched documents of a group, including its consolidated metadata.
    pub fn apply_to_group(&self, model: &GroupModel) -> Result<StoredNode, PatchError> {
        if self.shape.is_some() {
            return Err(patch_error("/shape", "is not a property of groups"));
        }
        if self.dimension_names.is_some() {
            return Err(patch_error("/dimension_names", "is not a property of groups"));
        }
        let mut node = StoredNode::new(model.dialect, &model.document, &model.attributes);
        self.patch_attributes(model.dialect, &mut node);
        self.check_size(&node)?;
        Ok(node)
    }

    fn patch_attributes(&self, dialect: Dialect, node: &mut StoredNode) {
        if let Some(patch) = &self.attributes {
            merge_attributes(dialect, node, patch);
        }
    }

    /// Fails if new attributes make a document that cannot be read.
    fn check_size(&self, node: &StoredNode) -> Result<(), PatchError> {
        if self.attributes.is_none() {
            return Ok(());
        }
        let unreadable = |error| patch_error("/attributes", format!("makes the document invalid: {error}"));
        for document in std::iter::once(&node.document).chain(&node.attributes) {
            read::read(document.to_padded_bytes()).map_err(unreadable)?;
        }
        Ok(())
    }
}

fn patch_error(pointer: &str, reason: impl Into<String>) -> PatchError {
    PatchError { pointer: pointer.to_owned(), reason: reason.into() }
}

/// Converts an error of a member that is read like those of documents.
fn from_document(error: super::DocumentError) -> PatchError {
    match error {
        super::DocumentError::Invalid { pointer, reason } => PatchError { pointer, reason },
        error => patch_error("", error.to_string()),
    }
}

/// The items of a list, up to one more than the maximum rank. Inner lists and objects become `false`.
fn bounded_list(json: &Json) -> Result<Value, serde_json::Error> {
    let scalar = |json: Json| match json.kind() {
        Kind::Array | Kind::Object => Ok(Value::Bool(false)),
        _ => json.to_value(),
    };
    match json.kind() {
        Kind::Array => json.items().take(MAX_RANK.saturating_add(1)).map(scalar).collect(),
        _ => scalar(json.clone()),
    }
}

fn dimension_names(path: &JsonPath<'_>) -> Result<Option<Vec<Option<String>>>, PatchError> {
    if path.value.is_null() {
        return Ok(None);
    }
    let names = path.items().map_err(from_document)?;
    let name = |path: JsonPath<'_>| match path.value {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        _ => Err(patch_error(&path.pointer, "is neither a string nor null")),
    };
    let names: Vec<_> = names.take(MAX_RANK.saturating_add(1)).map(name).collect::<Result<_, _>>()?;
    Ok(Some(names))
}

/// Merges a patch with the attributes of a node in its dialect.
fn merge_attributes(dialect: Dialect, node: &mut StoredNode, patch: &Json) {
    match dialect {
        Dialect::V2 => replace_v2_attributes(node, |attributes| attributes.merged(patch)),
        Dialect::V3 | Dialect::Draft => {
            node.document = node.document.with(ATTRIBUTES, Change::Merge(patch.clone()));
        }
    }
}

/// Edits the attributes of a node in its dialect.
fn edit_attributes(dialect: Dialect, node: &mut StoredNode, edit: ObjectEdit) {
    match dialect {
        Dialect::V2 => replace_v2_attributes(node, |attributes| attributes.edited(&edit)),
        Dialect::V3 | Dialect::Draft => node.document = node.document.with(ATTRIBUTES, Change::edit(edit)),
    }
}

/// Replaces the `.zattrs` of a node. Those that become empty are not stored.
fn replace_v2_attributes(node: &mut StoredNode, edited: impl FnOnce(&Json) -> Json) {
    let attributes = edited(&node.attributes.take().unwrap_or_else(Json::indented_empty_object));
    node.attributes = attributes.members().next().is_some().then_some(attributes);
}

/// The stored shape for the shape of a view.
fn stored_shape(model: &ArrayModel, shape: &[u64]) -> Result<Vec<u64>, PatchError> {
    if shape.len() != model.shape.len() {
        let reason = format!("has {} entries for {} dimensions", shape.len(), model.shape.len());
        return Err(patch_error("/shape", reason));
    }
    let mut stored = Vec::with_capacity(shape.len());
    for (index, ((extent, origin), grid)) in
        shape.iter().zip(&model.view_offset).zip(model.grid.dimensions()).enumerate()
    {
        let extent = extent.checked_add(*origin).filter(|extent| *extent <= MAX_EXTENT).ok_or_else(|| {
            patch_error(&format!("/shape/{index}"), format!("is larger than {}", MAX_EXTENT.saturating_sub(*origin)))
        })?;
        if !grid.covers(extent) {
            return Err(patch_error(&format!("/shape/{index}"), "exceeds the chunks of the array"));
        }
        stored.push(extent);
    }
    Ok(stored)
}

/// Replaces chunk lengths of 0, which zarr-python writes for dimensions of extent 0, by the lengths with which they are
/// read.
fn replace_empty_chunk_lengths(document: &Json, model: &ArrayModel) -> Option<ObjectEdit> {
    let path: &[&str] = match model.dialect {
        Dialect::V2 => &["chunks"],
        Dialect::V3 => &["chunk_grid", "configuration", "chunk_shape"],
        Dialect::Draft => &["chunk_grid", "chunk_shape"],
    };
    let lengths = path.iter().try_fold(document.clone(), |json, name| json.get(name))?;
    let lengths: Vec<u64> = lengths.items().map(|length| length.to_value().ok()?.as_u64()).collect::<Option<_>>()?;
    if !lengths.contains(&0) {
        return None;
    }
    let length = |(length, grid): (u64, &DimensionGrid)| match (length, model.dialect, grid) {
        // In the draft, it is the length of chunks in shards, which is read as 1.
        (0, Dialect::V2 | Dialect::V3, DimensionGrid::Regular { length }) => *length,
        (0, ..) => 1,
        (length, ..) => length,
    };
    let lengths: Vec<u64> = lengths.into_iter().zip(model.grid.dimensions()).map(length).collect();
    let (last, parents) = path.split_last()?;
    let lengths = ObjectEdit::single(*last, Change::Set(json!(lengths)));
    Some(parents.iter().rfold(lengths, |edit, name| ObjectEdit::single(*name, Change::edit(edit))))
}

fn set_dimension_names(
    node: &mut StoredNode,
    model: &ArrayModel,
    names: Option<&[Option<String>]>,
) -> Result<(), PatchError> {
    let rank = model.shape.len();
    if let Some(names) = names
        && names.len() != rank
    {
        return Err(patch_error("/dimension_names", format!("has {} entries for {rank} dimensions", names.len())));
    }
    let change = names.map_or(Change::Remove, |names| Change::Set(json!(names)));
    if model.dialect == Dialect::V3 {
        node.document = node.document.with("dimension_names", change);
        return Ok(());
    }
    if let Some(unnamed) = names.and_then(|names| names.iter().position(Option::is_none)) {
        let reason = format!("is null, and {} has names for all dimensions or none", model.dialect);
        return Err(patch_error(&format!("/dimension_names/{unnamed}"), reason));
    }
    edit_attributes(model.dialect, node, ObjectEdit::single(XARRAY_NAMES, change));
    Ok(())
}

fn remove_statistics(document: &mut Json, dialect: Dialect) {
    let Some(extensions) = document.get("extensions").filter(|list| list.kind() == Kind::Array) else { return };
    let member = if dialect == Dialect::Draft { "extension" } else { "name" };
    let name = |extension: &Json| extension.to_text().or_else(|| extension.get(member)?.to_text());
    let is_other = |extension: &Json| name(extension).as_deref() != Some(STATISTICS);
    if extensions.items().all(|extension| is_other(&extension)) {
        return;
    }
    let others = extensions.retaining(is_other);
    let change = match others.items().next() {
        None if dialect == Dialect::V3 => Change::Remove,
        _ => Change::SetText(others),
    };
    *document = document.with("extensions", change);
}
