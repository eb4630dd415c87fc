//! Changing what is said of a node that is there.

use serde_json::{Map, Value, json};

use super::{GroupModel, Place, draft, json as read, parts, write};
use crate::{
    ArrayModel, Dialect,
    grid::DimensionGrid,
    limits::{MAX_EXTENT, MAX_RANK},
    text::pointer_to,
};

/// How deep the values of a patch are nested, at the most. A document is read down to 128 levels, also where it stands in another one.
const MAX_DEPTH: usize = 100;

/// The extension that says what elements there are.
const STATISTICS: &str = "example.array-statistics";

/// What is to change of a node; `None` leaves something as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// A merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) of the attributes.
    pub attributes: Option<Map<String, Value>>,
    /// The shape, as a view shows it.
    pub shape: Option<Vec<u64>>,
    /// The names of the dimensions; `Some(None)` takes them away.
    pub dimension_names: Option<Option<Vec<Option<String>>>>,
    /// Whether the elements change, so that what was counted of them is no longer true.
    pub elements: ElementsChange,
}

/// Whether the elements of an array change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ElementsChange {
    /// They stay.
    #[default]
    None,
    /// Some are written or go.
    Some,
}

/// Why a node is not changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer} {reason}")]
pub struct ChangeError {
    /// Where in the patch: a JSON pointer.
    pub pointer: String,
    /// What is wrong, as it continues "the member".
    pub reason: String,
}

impl Changes {
    /// Reads the body of a `PATCH`: `{attributes, shape, dimension_names}`.
    ///
    /// It is read as stored documents are, with zarr-python's bare `NaN` and infinities as strings.
    pub fn parse(json: &[u8]) -> Result<Self, ChangeError> {
        let patch = read::read(json).map_err(|error| refuse("", error.to_string()))?;
        if depth(&patch) > MAX_DEPTH {
            return Err(refuse("", format!("is nested deeper than {MAX_DEPTH} levels")));
        }
        let mut changes = Self::default();
        for (name, value) in read::into_object(patch) {
            let place = Place { value: &value, pointer: pointer_to("", &name) };
            match name.as_str() {
                "attributes" => match value {
                    Value::Object(attributes) => changes.attributes = Some(attributes),
                    _ => return Err(refuse(&place.pointer, "is not an object")),
                },
                "shape" => changes.shape = Some(parts::shape(&place).map_err(from_document)?),
                "dimension_names" => changes.dimension_names = Some(dimension_names(&place)?),
                _ => return Err(refuse(&place.pointer, "is none of attributes, shape and dimension_names")),
            }
        }
        Ok(changes)
    }

    /// The node document of an array, changed; in v2 with `attributes`. Members that nobody here knows stay as they are.
    ///
    /// What the extension `example.array-statistics` says goes where elements change, which they do with the shape.
    pub fn of_array(&self, model: &ArrayModel) -> Result<Map<String, Value>, ChangeError> {
        let mut document = node_document(model.dialect, &model.document, &model.attributes);
        let mut elements = self.elements;
        if let Some(shape) = &self.shape {
            let stored = stored_shape(model, shape)?;
            if stored != model.shape {
                elements = ElementsChange::Some;
            }
            document.insert("shape".to_owned(), json!(stored));
            if let Some(chunk_shape) = chunk_shape(&mut document, model.dialect) {
                no_empty_chunks(chunk_shape, model);
            }
        }
        self.patch_attributes(&mut document);
        if model.dialect == Dialect::Draft {
            let patched = document.get("attributes").and_then(Value::as_object);
            if draft::filters_of(&model.attributes) != patched.and_then(draft::filters_of) {
                return Err(refuse("/attributes/filters", "would change how the chunks are read"));
            }
        }
        if let Some(names) = &self.dimension_names {
            name_dimensions(&mut document, model, names.as_deref())?;
        }
        if elements == ElementsChange::Some {
            forget_statistics(&mut document, model.dialect);
        }
        self.check_size(&document)?;
        Ok(document)
    }

    /// The node document of a group, changed, with its consolidated metadata where it has some.
    pub fn of_group(&self, model: &GroupModel) -> Result<Map<String, Value>, ChangeError> {
        if self.shape.is_some() {
            return Err(refuse("/shape", "is not a group's to have"));
        }
        if self.dimension_names.is_some() {
            return Err(refuse("/dimension_names", "is not a group's to have"));
        }
        let mut document = node_document(model.dialect, &model.document, &model.attributes);
        self.patch_attributes(&mut document);
        self.check_size(&document)?;
        Ok(document)
    }

    fn patch_attributes(&self, document: &mut Map<String, Value>) {
        if let Some(patch) = &self.attributes {
            merge(attributes_of(document), patch);
        }
    }

    /// What grows with the attributes must still be readable.
    fn check_size(&self, document: &Map<String, Value>) -> Result<(), ChangeError> {
        if self.attributes.is_none() {
            return Ok(());
        }
        let read = read::read(&write::text(document));
        read.map(drop).map_err(|error| refuse("/attributes", format!("makes a document that cannot be read: {error}")))
    }
}

fn refuse(pointer: &str, reason: impl Into<String>) -> ChangeError {
    ChangeError { pointer: pointer.to_owned(), reason: reason.into() }
}

/// The refusal of a part that is read as in documents.
fn from_document(error: super::DocumentError) -> ChangeError {
    match error {
        super::DocumentError::Invalid { pointer, reason } => ChangeError { pointer, reason },
        error => refuse("", error.to_string()),
    }
}

/// How many levels a value has. serde_json has bounded them.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    inner.unwrap_or(0).saturating_add(1)
}

fn dimension_names(place: &Place<'_>) -> Result<Option<Vec<Option<String>>>, ChangeError> {
    if place.value.is_null() {
        return Ok(None);
    }
    let names = place.items().map_err(from_document)?;
    let name = |place: Place<'_>| match place.value {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        _ => Err(refuse(&place.pointer, "is neither a string nor null")),
    };
    let names: Vec<_> = names.take(MAX_RANK.saturating_add(1)).map(name).collect::<Result<_, _>>()?;
    Ok(Some(names))
}

fn node_document(
    dialect: Dialect,
    document: &Map<String, Value>,
    attributes: &Map<String, Value>,
) -> Map<String, Value> {
    match dialect {
        Dialect::V2 => write::join_v2(document, attributes),
        Dialect::V3 | Dialect::Draft => document.clone(),
    }
}

/// The attributes of a node document, which get their place there if they have none.
fn attributes_of(document: &mut Map<String, Value>) -> &mut Value {
    let attributes = document.entry("attributes").or_insert(Value::Null);
    if !attributes.is_object() {
        *attributes = json!({});
    }
    attributes
}

/// RFC 7396, of an object.
fn merge(target: &mut Value, patch: &Map<String, Value>) {
    if !target.is_object() {
        *target = json!({});
    }
    let Some(members) = target.as_object_mut() else { return };
    for (name, value) in patch {
        match value {
            Value::Null => _ = members.shift_remove(name),
            Value::Object(patch) => merge(members.entry(name.as_str()).or_insert(Value::Null), patch),
            _ => _ = members.insert(name.clone(), value.clone()),
        }
    }
}

/// The shape to store for what a view is to show.
fn stored_shape(model: &ArrayModel, shape: &[u64]) -> Result<Vec<u64>, ChangeError> {
    if shape.len() != model.shape.len() {
        let reason = format!("has {} entries for {} dimensions", shape.len(), model.shape.len());
        return Err(refuse("/shape", reason));
    }
    let mut stored = Vec::with_capacity(shape.len());
    for (index, ((extent, origin), grid)) in shape.iter().zip(&model.origin).zip(model.grid.dimensions()).enumerate() {
        let extent = extent.checked_add(*origin).filter(|extent| *extent <= MAX_EXTENT).ok_or_else(|| {
            refuse(&format!("/shape/{index}"), format!("is larger than {}", MAX_EXTENT.saturating_sub(*origin)))
        })?;
        if !grid.covers(extent) {
            return Err(refuse(&format!("/shape/{index}"), "is more than the array's chunks cover"));
        }
        stored.push(extent);
    }
    Ok(stored)
}

/// The shape of regular chunks where a document says it.
fn chunk_shape(document: &mut Map<String, Value>, dialect: Dialect) -> Option<&mut Vec<Value>> {
    let chunk_shape = match dialect {
        Dialect::V2 => document.get_mut("chunks")?,
        Dialect::V3 => document.get_mut("chunk_grid")?.get_mut("configuration")?.get_mut("chunk_shape")?,
        Dialect::Draft => document.get_mut("chunk_grid")?.get_mut("chunk_shape")?,
    };
    chunk_shape.as_array_mut()
}

/// Gives chunks the lengths that they are read with where zarr-python has written 0, which it does for dimensions of extent 0.
fn no_empty_chunks(chunk_shape: &mut [Value], model: &ArrayModel) {
    for (length, grid) in chunk_shape.iter_mut().zip(model.grid.dimensions()) {
        if length.as_u64() != Some(0) {
            continue;
        }
        // The draft says it of the chunks in shards, and there it is read as 1.
        *length = match (model.dialect, grid) {
            (Dialect::V2 | Dialect::V3, DimensionGrid::Regular { length }) => json!(length),
            _ => json!(1),
        };
    }
}

fn name_dimensions(
    document: &mut Map<String, Value>,
    model: &ArrayModel,
    names: Option<&[Option<String>]>,
) -> Result<(), ChangeError> {
    let rank = model.shape.len();
    if let Some(names) = names
        && names.len() != rank
    {
        return Err(refuse("/dimension_names", format!("has {} entries for {rank} dimensions", names.len())));
    }
    if model.dialect == Dialect::V3 {
        match names {
            Some(names) => _ = document.insert("dimension_names".to_owned(), json!(names)),
            None => _ = document.shift_remove("dimension_names"),
        }
        return Ok(());
    }
    if let Some(unnamed) = names.and_then(|names| names.iter().position(Option::is_none)) {
        let reason = format!("is null, and {} has names for all dimensions or none", model.dialect);
        return Err(refuse(&format!("/dimension_names/{unnamed}"), reason));
    }
    let Some(attributes) = attributes_of(document).as_object_mut() else { return Ok(()) };
    match names {
        Some(names) => _ = attributes.insert(parts::XARRAY_NAMES.to_owned(), json!(names)),
        None => _ = attributes.shift_remove(parts::XARRAY_NAMES),
    }
    Ok(())
}

fn forget_statistics(document: &mut Map<String, Value>, dialect: Dialect) {
    let Some(extensions) = document.get_mut("extensions").and_then(Value::as_array_mut) else { return };
    let member = if dialect == Dialect::Draft { "extension" } else { "name" };
    extensions
        .retain(|extension| extension.as_str().or(extension.get(member).and_then(Value::as_str)) != Some(STATISTICS));
    if extensions.is_empty() && dialect == Dialect::V3 {
        document.shift_remove("extensions");
    }
}
