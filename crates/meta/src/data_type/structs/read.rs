//! Parsing of structs.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Field, NAMES, Struct, StructFamily, words};
use crate::{
    data_type::{
        DataType, Layout, StoredOrder, TypeError, WordRun,
        text::{invalid, only_members, truncated},
    },
    limits::{MAX_ELEMENT_SIZE, MAX_FIELDS, MAX_RANK},
};

/// The maximum nesting depth of structs, which bounds the recursion.
const MAX_DEPTH: usize = 32;

/// Reads a v2 struct, a list of `[name, dtype]` or `[name, dtype, shape]`. Padding has the name "".
pub(super) fn fields_v2(
    family: StructFamily,
    fields: &[Value],
    depth: usize,
) -> Result<(Struct, StoredOrder), TypeError> {
    let mut builder = Builder::new("[…]", depth)?;
    for field in fields {
        let (name, dtype, shape) = match field.as_array().map(Vec::as_slice) {
            Some([Value::String(name), dtype]) => (name, dtype, None),
            Some([Value::String(name), dtype, shape]) => (name, dtype, Some(shape)),
            _ => return Err(builder.invalid("has a field that is not a name, a dtype and perhaps a shape")),
        };
        // NumPy's name of padding, which `dtype.descr` has as fields without a name.
        let padding = name.is_empty().then(|| format!("f{}", builder.fields.len()));
        let name = padding.as_deref().unwrap_or(name);
        let shape =
            shape.map_or(Some(Vec::new()), parse_shape).ok_or_else(|| builder.of_field(name, "has a bad shape"))?;
        let (data_type, order, inner_fields) = match dtype.as_array() {
            Some(inner) => {
                let (inner, order) = fields_v2(family, inner, depth.saturating_add(1))?;
                let count = inner.field_count;
                (DataType::new(inner), order, count)
            }
            None => {
                let (data_type, order) = (family.parse_v2)(dtype)?;
                (data_type, order, 0)
            }
        };
        builder.push(name, data_type, shape, &order, inner_fields)?;
        if let Some(field) = builder.fields.last_mut() {
            field.is_named = padding.is_none();
        }
    }
    builder.finish()
}

/// Reads the configuration of a v3 struct, whose fields are objects with `name` and `data_type`, or `[name,
/// data_type]`.
pub(super) fn fields_v3(
    family: StructFamily,
    name: &str,
    configuration: Option<&Map<String, Value>>,
    depth: usize,
) -> Result<Struct, TypeError> {
    let mut builder = Builder::new(name, depth)?;
    only_members(name, configuration, &["fields"])?;
    let fields = configuration
        .and_then(|configuration| configuration.get("fields"))
        .and_then(Value::as_array)
        .ok_or_else(|| builder.invalid("has no \"fields\""))?;
    for field in fields {
        let (name, data_type) = match field {
            Value::Object(object) => (object.get("name"), object.get("data_type")),
            Value::Array(pair) if pair.len() == 2 => (pair.first(), pair.last()),
            _ => (None, None),
        };
        let (Some(Value::String(name)), Some(data_type)) = (name, data_type) else {
            return Err(builder.invalid("has a field that is not a \"name\" and a \"data_type\""));
        };
        let (data_type, inner_fields) = match inner_struct(data_type) {
            Some((inner, configuration)) => {
                let inner = fields_v3(family, inner, configuration, depth.saturating_add(1))?;
                let count = inner.field_count;
                (DataType::new(inner), count)
            }
            None => ((family.parse_v3)(data_type)?, 0),
        };
        builder.push(name, data_type, Vec::new(), &StoredOrder::Little, inner_fields)?;
    }
    builder.finish().map(|(data_type, _)| data_type)
}

/// The name and configuration of an inner struct.
fn inner_struct(data_type: &Value) -> Option<(&str, Option<&Map<String, Value>>)> {
    let name = data_type.get("name")?.as_str().filter(|name| NAMES.contains(name))?;
    Some((name, data_type.get("configuration").and_then(Value::as_object)))
}

/// Reads the shape of a field: one extent, or a list of them.
fn parse_shape(json: &Value) -> Option<Vec<usize>> {
    let extent =
        |json: &Value| json.as_u64().and_then(|extent| usize::try_from(extent).ok()).filter(|extent| *extent > 0);
    match json {
        Value::Array(extents) if extents.len() <= MAX_RANK => extents.iter().map(extent).collect(),
        Value::Array(_) => None,
        json => Some(vec![extent(json)?]),
    }
}

/// A struct under construction.
struct Builder<'a> {
    name: &'a str,
    fields: Vec<Field>,
    names: HashSet<String>,
    size: usize,
    words: Vec<WordRun>,
    /// The words that are stored big-endian.
    big: Vec<WordRun>,
    field_count: usize,
}

impl<'a> Builder<'a> {
    fn new(name: &'a str, depth: usize) -> Result<Self, TypeError> {
        if depth >= MAX_DEPTH {
            return Err(invalid(name, format!("is nested deeper than {MAX_DEPTH} structs")));
        }
        Ok(Self {
            name,
            fields: Vec::new(),
            names: HashSet::new(),
            size: 0,
            words: Vec::new(),
            big: Vec::new(),
            field_count: 0,
        })
    }

    fn invalid(&self, reason: impl Into<String>) -> TypeError {
        invalid(self.name, reason)
    }

    fn of_field(&self, name: &str, reason: &str) -> TypeError {
        self.invalid(format!("has a field \"{}\" that {reason}", truncated(name)))
    }

    fn push(
        &mut self,
        name: &str,
        data_type: DataType,
        shape: Vec<usize>,
        order: &StoredOrder,
        inner_fields: usize,
    ) -> Result<(), TypeError> {
        self.field_count = self.field_count.saturating_add(inner_fields).saturating_add(1);
        if self.field_count > MAX_FIELDS {
            return Err(self.invalid(format!("has more than {MAX_FIELDS} fields")));
        }
        if name.is_empty() {
            return Err(self.invalid("has a field without a name"));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(self.invalid(format!("has two fields \"{}\"", truncated(name))));
        }
        let Layout::Fixed(layout) = data_type.layout() else {
            return Err(self.of_field(name, "is not of a fixed size"));
        };
        if layout.size == 0 && !shape.is_empty() {
            return Err(self.of_field(name, "has a shape, but no bytes"));
        }
        let too_large = || TypeError::TooLarge { name: truncated(self.name) };
        let count = shape.iter().try_fold(1_usize, |count, extent| count.checked_mul(*extent)).ok_or_else(too_large)?;
        let size = layout.size.checked_mul(count).ok_or_else(too_large)?;
        let end = self.size.checked_add(size).filter(|end| *end <= MAX_ELEMENT_SIZE).ok_or_else(too_large)?;
        let big: &[WordRun] = match order {
            StoredOrder::Little => &[],
            StoredOrder::Big => &layout.words,
            StoredOrder::Mixed(runs) => runs,
        };
        let appended = words::append(&mut self.words, &layout.words, self.size, layout.size, count)
            .and_then(|()| words::append(&mut self.big, big, self.size, layout.size, count));
        if appended.is_none() {
            return Err(self.of_field(name, "has too many words"));
        }
        let name = name.to_owned();
        self.fields.push(Field { name, data_type, is_named: true, offset: self.size, item: layout.size, shape, size });
        self.size = end;
        Ok(())
    }

    fn finish(self) -> Result<(Struct, StoredOrder), TypeError> {
        if self.fields.is_empty() {
            return Err(self.invalid("has no fields"));
        }
        let order = if self.big.is_empty() {
            StoredOrder::Little
        } else if self.big == self.words {
            StoredOrder::Big
        } else {
            StoredOrder::Mixed(self.big)
        };
        let Self { fields, size, words, field_count, .. } = self;
        Ok((Struct { fields, size, words, field_count }, order))
    }
}
