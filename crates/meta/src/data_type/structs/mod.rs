//! [`struct`](https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/struct): named fields of fixed
//! sizes. A field of v2 may be an array of a fixed shape, or padding: a field without a name, which gets the one of
//! NumPy and zarr-python, `f` and its number.

use serde_json::{Map, Value, json};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context,
    ValueError, WordRun,
    base64::{decode_base64, encode_base64},
    text::{invalid_value, is_null_fill, is_zero_fill},
};
use crate::Dialect;

mod names;
mod read;
mod words;

use names::{python_text, shown_name};

/// The names of the type in v3: the registered one, and the one of zarr-python 3.1.
const NAMES: [&str; 2] = ["struct", "structured"];

/// `struct` and `structured` (v3), a list of fields (v2).
#[derive(Clone, Copy)]
pub(super) struct StructFamily {
    /// Reads the `dtype` of a field in v2.
    pub(super) parse_v2: fn(&Value) -> Result<(DataType, StoredOrder), TypeError>,
    /// Reads the `data_type` of a field in v3.
    pub(super) parse_v3: fn(&Value) -> Result<DataType, TypeError>,
}

#[derive(Clone, Debug)]
struct Struct {
    /// At least one.
    fields: Vec<Field>,
    size: usize,
    words: Vec<WordRun>,
    /// The number of fields, including those of inner structs.
    field_count: usize,
}

#[derive(Clone, Debug)]
struct Field {
    name: String,
    /// False for the padding of v2, whose name is made up.
    is_named: bool,
    data_type: DataType,
    /// The offset in the struct, in bytes.
    offset: usize,
    /// The size of one item in bytes.
    item: usize,
    /// The shape of the items; empty for a single one.
    shape: Vec<usize>,
    /// The size of all items in bytes.
    size: usize,
}

impl DataTypeFamily for StructFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let fields = dtype.as_array()?;
        Some(read::fields_v2(*self, fields, 0).map(|(data_type, order)| (DataType::new(data_type), order)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        NAMES.contains(&name).then(|| read::fields_v3(*self, name, configuration, 0).map(DataType::new))
    }
}

/// A function that reads each item of a field from JSON.
type ReadItem<'a> = &'a dyn Fn(&DataType, &Value, &mut Vec<u8>) -> Result<(), ValueError>;

impl Field {
    /// Appends all items as JSON arrays, nested according to the field's shape.
    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        let bytes = element.get(self.offset..).and_then(|bytes| bytes.get(..self.size)).unwrap_or_default();
        self.write_items(&self.shape, bytes, out);
    }

    fn write_items(&self, shape: &[usize], bytes: &[u8], out: &mut Vec<u8>) {
        let Some((extent, inner)) = shape.split_first() else { return self.data_type.write_json(bytes, out) };
        out.push(b'[');
        // Shapes have no zero and items have bytes, so each part has some.
        let part = bytes.len().checked_div(*extent).unwrap_or_default().max(1);
        for (index, bytes) in bytes.chunks(part).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.write_items(inner, bytes, out);
        }
        out.push(b']');
    }

    /// Appends the items of nested arrays of the field's shape; appends nothing on failure.
    fn read_json(&self, json: &Value, out: &mut Vec<u8>, read: ReadItem<'_>) -> Result<(), ValueError> {
        self.read_items(&self.shape, json, out, read)
    }

    fn read_items(
        &self,
        shape: &[usize],
        json: &Value,
        out: &mut Vec<u8>,
        read: ReadItem<'_>,
    ) -> Result<(), ValueError> {
        let Some((extent, inner)) = shape.split_first() else { return read(&self.data_type, json, out) };
        match json.as_array() {
            Some(items) if items.len() == *extent => {
                items.iter().try_for_each(|item| self.read_items(inner, item, out, read))
            }
            _ => Err(invalid_value(&*self.data_type, json, format!("in this field, {extent} stand in an array"))),
        }
    }

    fn shape_v2(&self) -> Option<Value> {
        (!self.shape.is_empty()).then(|| Value::from(self.shape.as_slice()))
    }
}

impl Struct {
    /// Converts between an element in memory and the bytes of a fill value, which have the stored byte order except in
    /// v3.
    fn turn(&self, element: &mut [u8], dialect: Dialect, order: &StoredOrder) {
        match (dialect, order) {
            (Dialect::V3, _) | (_, StoredOrder::Little) => {}
            (_, StoredOrder::Big) => words::swap(element, &self.words),
            (_, StoredOrder::Mixed(big)) => words::swap(element, big),
        }
    }

    /// Appends the fields in an object; fails on missing and unknown ones.
    fn push_object(
        &self,
        json: &Value,
        object: &Map<String, Value>,
        dialect: Dialect,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        if object.len() != self.fields.len() {
            return Err(invalid_value(self, json, format!("it has {} fields", self.fields.len())));
        }
        for field in &self.fields {
            let member = object
                .get(&field.name)
                .ok_or_else(|| invalid_value(self, json, format!("it has a field {}", shown_name(&field.name))))?;
            field.read_json(member, out, &|data_type, json, out| {
                out.extend(data_type.fill_value(json, dialect)?);
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl ElementType for Struct {
    fn name(&self) -> String {
        let field = |field: &Field| {
            let shape: Vec<String> = field.shape.iter().map(usize::to_string).collect();
            let shape = if shape.is_empty() { String::new() } else { format!("[{}]", shape.join(",")) };
            format!("{}:{}{shape}", shown_name(&field.name), field.data_type.name())
        };
        format!("struct{{{}}}", self.fields.iter().map(field).collect::<Vec<_>>().join(","))
    }

    fn layout(&self) -> Layout {
        Layout::Fixed(FixedLayout { size: self.size, words: self.words.clone() })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        self.stored_fill_value(json, dialect, &StoredOrder::Little)
    }

    fn stored_fill_value(&self, json: &Value, dialect: Dialect, order: &StoredOrder) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) || is_zero_fill(json, dialect) {
            return Ok(self.zero());
        }
        if let Some(object) = json.as_object() {
            let mut element = Vec::with_capacity(self.size);
            self.push_object(json, object, dialect, &mut element)?;
            return Ok(element);
        }
        // v2 has the stored bytes. zarr-python 3.1 wrote the same in v3, always little-endian.
        let bytes = json.as_str().and_then(|text| decode_base64(text, self.size));
        let Some(mut element) = bytes.filter(|bytes| bytes.len() == self.size) else {
            return Err(invalid_value(
                self,
                json,
                format!("it is an object of its fields, or base64 of {} bytes", self.size),
            ));
        };
        self.turn(&mut element, dialect, order);
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        // Like zarr-python 2 in the draft.
        if dialect != Dialect::V3 {
            return Ok(Value::from(encode_base64(element)));
        }
        let mut object = Map::new();
        for field in &self.fields {
            if !field.shape.is_empty() {
                return Err(UnsupportedInFormat {
                    dialect,
                    feature: format!("the array {} in a struct", shown_name(&field.name)),
                });
            }
            let bytes = element.get(field.offset..).and_then(|bytes| bytes.get(..field.size)).unwrap_or_default();
            object.insert(field.name.clone(), field.data_type.fill_value_json(bytes, dialect)?);
        }
        Ok(Value::Object(object))
    }

    fn stored_fill_value_json(
        &self,
        element: &[u8],
        dialect: Dialect,
        order: &StoredOrder,
    ) -> Result<Value, UnsupportedInFormat> {
        let mut stored = element.to_vec();
        self.turn(&mut stored, dialect, order);
        self.fill_value_json(&stored, dialect)
    }

    fn field_names(&self) -> Vec<&str> {
        self.fields.iter().map(|field| field.name.as_str()).collect()
    }

    fn zero(&self) -> Vec<u8> {
        vec![0; self.size]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, field) in self.fields.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            field.write_json(element, out);
        }
        out.push(b']');
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let items = json.as_array().filter(|items| items.len() == self.fields.len());
        let items = items
            .ok_or_else(|| invalid_value(self, json, format!("it is an array of its {} fields", self.fields.len())))?;
        let start = out.len();
        for (field, item) in self.fields.iter().zip(items) {
            field
                .read_json(item, out, &|data_type, json, out| data_type.parse_json(json, out))
                .inspect_err(|_| out.truncate(start))?;
        }
        Ok(())
    }

    fn npy_descr(&self) -> Option<String> {
        let mut fields = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let descr = field.data_type.npy_descr()?;
            let shape: Vec<String> = field.shape.iter().map(usize::to_string).collect();
            let shape = match shape.as_slice() {
                [] => String::new(),
                [extent] => format!(", ({extent},)"),
                _ => format!(", ({})", shape.join(", ")),
            };
            fields.push(format!("({}, {descr}{shape})", python_text(&field.name)));
        }
        Some(format!("[{}]", fields.join(", ")))
    }

    fn to_v3(&self) -> Value {
        let field = |field: &Field| {
            let data_type = field.data_type.to_v3();
            // The extension registry has no name for arrays within elements yet.
            let data_type = match field.shape_v2() {
                None => data_type,
                Some(shape) => {
                    json!({"name": "subarray", "configuration": {"data_type": data_type, "shape": shape}})
                }
            };
            json!({"name": field.name, "data_type": data_type})
        };
        json!({"name": "struct", "configuration": {"fields": self.fields.iter().map(field).collect::<Vec<_>>()}})
    }

    fn to_v2(&self, order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        let field = |field: &Field| {
            let dtype = field.data_type.to_v2(&words::order_within(order, field.offset, field.item))?;
            let name = if field.is_named { field.name.as_str() } else { "" };
            let parts = [Some(Value::from(name)), Some(dtype), field.shape_v2()];
            Ok(Value::Array(parts.into_iter().flatten().collect()))
        };
        self.fields.iter().map(field).collect()
    }
}
