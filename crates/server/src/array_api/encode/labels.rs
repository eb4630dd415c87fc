//! The labels of the elements in a response.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd_array::{ArrayResult, Decode, LabelledDimension, MemoryError, Permit};
use zarrd_codec::{Elements, VariableElements};
use zarrd_meta::{data_type::DataType, json::Json};

use super::{indices::Indices, numpy_json, text_list::TextBuilder};

/// The labels of a response.
#[derive(Debug)]
pub(in crate::array_api) struct AnswerLabels {
    /// The JSON of `format=xarray` before the elements.
    pub(super) head: Bytes,
    /// The first line of CSV, whose first field names the rows; empty for other formats.
    pub(super) columns: Arc<VariableElements>,
    /// The first fields of CSV's rows.
    pub(super) rows: VariableElements,
    _memory: Permit,
}

/// Attributes of xarray's about names.
const NAMING: [&str; 2] = ["_ARRAY_DIMENSIONS", "coordinates"];
/// Attributes of packed elements.
const PACKING: [&str; 5] = ["_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned"];
/// Attributes of encoded times.
const TIMES: [&str; 3] = ["units", "calendar", "dtype"];

/// The memory of a label as text, in addition to its bytes: digits, and its position, in vectors that double.
const TEXT_OVERHEAD: u64 = 48;

/// The parts of an answer that labels are rendered with.
#[derive(Clone, Debug)]
pub(in crate::array_api) struct LabelledAnswer {
    /// The names of dimensions; those without one, or with that of an earlier one, are `dim_0` and so on, as xarray calls
    /// dimensions without names.
    dims: Vec<String>,
    /// The indices of rows and columns.
    indices: [Indices; 2],
    name: String,
    attributes: Json,
    data_type: DataType,
    is_decoded: bool,
}

impl LabelledAnswer {
    /// The parts of a result.
    pub(in crate::array_api) fn of(result: &ArrayResult) -> Self {
        Self {
            dims: unique_names(&result.dimension_names()),
            indices: [0, 1].map(|dimension| Indices::along(result, dimension)),
            name: result.path().name().unwrap_or_default().to_owned(),
            attributes: result.model().attributes.clone(),
            data_type: result.data_type().clone(),
            is_decoded: result.decoding() != Decode::Stored,
        }
    }
}

/// The names of dimensions, made unique.
fn unique_names(names: &[Option<String>]) -> Vec<String> {
    let mut unique: Vec<String> = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let own = name.clone().filter(|name| !unique.contains(name));
        unique.push(own.unwrap_or_else(|| {
            let mut number = format!("dim_{at}");
            while unique.contains(&number) || names.iter().flatten().any(|name| *name == number) {
                number.push('_');
            }
            number
        }));
    }
    unique
}

impl AnswerLabels {
    /// The memory of labels as text, for `labels` labels of `bytes` bytes in all. Texts in JSON may be longer.
    pub(in crate::array_api) fn memory(labels: u64, bytes: u64) -> u64 {
        labels.saturating_mul(TEXT_OVERHEAD).saturating_add(bytes.saturating_mul(4))
    }

    /// The labels for `format=xarray`. Fails if their text takes more memory than is free.
    pub(in crate::array_api) fn of_xarray(
        answer: &LabelledAnswer,
        labels: &[LabelledDimension],
        mut memory: Permit,
    ) -> Result<Arc<Self>, MemoryError> {
        let LabelledAnswer { dims, name, .. } = answer;
        let mut head = format!("{{\"dims\":{},\"coords\":{{", json!(dims)).into_bytes();
        let mut members: Vec<&str> = Vec::new();
        for LabelledDimension { name, dimension, labels } in labels {
            let Some(labels) = labels else { continue };
            let along = dimension.and_then(|at| dims.get(at)).map(String::as_str);
            // The label of a dropped dimension cannot have the name of one that is left, or of another one.
            let member = along.unwrap_or(name);
            if members.contains(&member) || (along.is_none() && dims.contains(name)) {
                continue;
            }
            let text = format!(
                "{}{}:{{\"dims\":{},\"attrs\":{},\"dtype\":{},\"data\":",
                if members.is_empty() { "" } else { "," },
                Value::from(member),
                json!(along.as_slice()),
                attributes(&labels.attributes, Some(&labels.data_type)),
                Value::from(numpy_name(&labels.data_type)),
            );
            members.push(member);
            head.extend_from_slice(text.as_bytes());
            let (open, close): (&[u8], &[u8]) = if along.is_some() { (b"[", b"]}") } else { (b"", b"}") };
            head.extend_from_slice(open);
            for (at, element) in elements(&labels.elements, &labels.data_type).enumerate() {
                if at > 0 {
                    head.push(b',');
                }
                numpy_json::write(&labels.data_type, element, &mut head);
                // A vector that is full moves to one of twice the size.
                let needed = (head.capacity() as u64).saturating_mul(3);
                if needed > memory.bytes() {
                    memory.grow_to(needed)?;
                }
            }
            head.extend_from_slice(close);
        }
        let attrs = attributes(&answer.attributes, Some(&answer.data_type).filter(|_| answer.is_decoded));
        let (name, dtype) = (Value::from(name.as_str()), Value::from(numpy_name(&answer.data_type)));
        let end = format!("}},\"attrs\":{attrs},\"name\":{name},\"dtype\":{dtype},\"data\":");
        head.extend_from_slice(end.as_bytes());
        let (columns, rows) = (Arc::new(TextBuilder::default().finish()), TextBuilder::default().finish());
        Ok(Arc::new(Self { head: head.into(), columns, rows, _memory: memory }))
    }

    /// The labels for CSV with labels.
    pub(in crate::array_api) fn of_csv(
        answer: &LabelledAnswer,
        labels: &[LabelledDimension],
        memory: Permit,
    ) -> Result<Arc<Self>, MemoryError> {
        let push_labels = |at: usize, texts: &mut TextBuilder| {
            let found = labels.iter().find(|labels| labels.dimension == Some(at));
            let Some(found) = found.and_then(|labels| labels.labels.as_ref()) else {
                let Some(indices) = answer.indices.get(at) else { return };
                return (0..indices.len()).for_each(|at| texts.push(indices.get(at).to_string().as_bytes()));
            };
            let mut json = Vec::new();
            for element in elements(&found.elements, &found.data_type) {
                json.clear();
                numpy_json::write_field(&found.data_type, element, &mut json);
                texts.push_json(&json);
            }
        };
        let (mut columns, mut rows) = (TextBuilder::default(), TextBuilder::default());
        if let Some(corner) = answer.dims.first() {
            columns.push(corner.as_bytes());
            push_labels(0, &mut rows);
        }
        match answer.dims.len() {
            0 | 1 if answer.name.is_empty() => columns.push(b"array"),
            0 | 1 => columns.push(answer.name.as_bytes()),
            _ => push_labels(1, &mut columns),
        }
        let (columns, rows) = (Arc::new(columns.finish()), rows.finish());
        Ok(Arc::new(Self { head: Bytes::new(), columns, rows, _memory: memory }))
    }

    /// An upper bound of their length in bytes.
    pub(super) fn max_text_len(&self) -> u64 {
        let quoted = |text: &[u8]| (text.len() as u64).saturating_mul(2).saturating_add(3);
        let fields = self.columns.iter().chain(self.rows.iter()).map(quoted).fold(0, u64::saturating_add);
        fields.saturating_add(self.head.len() as u64).saturating_add(4)
    }
}

/// The bytes of each element.
fn elements<'a>(elements: &'a Elements, data_type: &DataType) -> Box<dyn Iterator<Item = &'a [u8]> + 'a> {
    match elements {
        Elements::Fixed(bytes) => Box::new(bytes.chunks_exact(data_type.fixed_size().unwrap_or(1).max(1))),
        Elements::Variable(elements) => Box::new(elements.iter()),
    }
}

/// The attributes as JSON that every parser takes, without those that say how names are stored, and without those that
/// decoding made use of: `decoded` is the type of decoded elements.
fn attributes(attributes: &Json, decoded: Option<&DataType>) -> String {
    let Ok(Value::Object(mut members)) = attributes.to_value() else { return "{}".to_owned() };
    members.retain(|name, _| !NAMING.contains(&name.as_str()));
    if let Some(data_type) = decoded {
        members.retain(|name, _| !PACKING.contains(&name.as_str()));
        let units = members.get("units").and_then(Value::as_str).unwrap_or_default();
        if units.contains("since") || data_type.name().starts_with("numpy.") {
            members.retain(|name, _| !TIMES.contains(&name.as_str()));
        }
    }
    Value::Object(members).to_string()
}

/// The name of a type in NumPy, for `astype`.
fn numpy_name(data_type: &DataType) -> String {
    let name = data_type.name();
    match (data_type.number(), name.strip_prefix("numpy.")) {
        (Some(_), _) => name,
        (_, Some(time)) => time.to_owned(),
        _ => "object".to_owned(),
    }
}
