//! `format=csv` (RFC 4180). Two dimensions are rows and columns. With fewer dimensions each element is a row, with a
//! column for each field of a struct.
//!
//! Elements are written as in JSON, strings without quotes, and every NaN as `NaN`. A JSON list becomes one field that
//! holds its text.

use std::sync::Arc;

use zarrd_meta::data_type::DataType;

use super::{
    csv_field::{LINE_END, text_field},
    csv_header::HeaderLine,
    encoder::{ElementEncoder, Progress},
    labels::AnswerLabels,
    numpy_json,
    slice::ArraySlice,
};

/// Encodes elements as CSV rows.
pub(super) struct CsvEncoder {
    /// The rest of the header line.
    column_names: Option<HeaderLine>,
    /// `None` if the rows are empty; each placeholder is then one row.
    data_type: Option<DataType>,
    columns: u64,
    /// The number of fields written to the current row.
    fields: u64,
    /// The mapping of elements to fields.
    field_source: FieldSource,
    /// The labels of the rows.
    labels: Option<Arc<AnswerLabels>>,
    /// The number of rows that are begun.
    rows: usize,
    /// A buffer for the JSON of one element, reused.
    json: Vec<u8>,
}

/// The mapping of elements to fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldSource {
    /// Each element is a field.
    Elements,
    /// Each field of a struct is a field.
    StructFields,
}

pub(super) fn unsupported_reason(slice: &ArraySlice) -> Option<String> {
    let rank = slice.shape.len();
    (rank > 2).then(|| format!("supports up to 2 dimensions, but the selection has {rank}"))
}

impl CsvEncoder {
    pub(super) fn new(slice: &ArraySlice) -> Self {
        let columns = match slice.shape.as_slice() {
            [_, columns] if *columns > 0 => *columns,
            _ => 1,
        };
        let data_type = slice.outer_extents().is_none().then(|| slice.data_type.clone());
        // An empty first dimension has no rows.
        let columns = if slice.shape.first() == Some(&0) { 0 } else { columns };
        let field_source = match slice.shape.len() < 2 && !slice.data_type.field_names().is_empty() {
            true => FieldSource::StructFields,
            false => FieldSource::Elements,
        };
        let column_names = slice.column_names.as_ref().map(|column_names| HeaderLine::new(column_names, &slice.shape));
        let labels = slice.labels.clone().filter(|labels| !labels.rows.is_empty());
        Self { column_names, data_type, columns, fields: 0, field_source, labels, rows: 0, json: Vec::new() }
    }
}

impl ElementEncoder for CsvEncoder {
    fn write_header(&mut self, out: &mut Vec<u8>) -> Progress {
        self.column_names.as_mut().map_or(Progress::Complete, |column_names| column_names.write(out))
    }

    fn write_element(&mut self, element: &[u8], out: &mut Vec<u8>) {
        if self.columns == 0 {
            return;
        }
        if self.fields > 0 {
            out.push(b',');
        } else if let Some(labels) = &self.labels {
            text_field(labels.rows.get(self.rows).unwrap_or_default(), out);
            if self.data_type.is_some() {
                out.push(b',');
            }
            self.rows = self.rows.saturating_add(1);
        }
        if let Some(data_type) = &self.data_type {
            self.json.clear();
            numpy_json::write_field(data_type, element, &mut self.json);
            match self.field_source {
                FieldSource::Elements => field(&self.json, out),
                FieldSource::StructFields => struct_fields(&self.json, out),
            }
        }
        self.fields += 1;
        if self.fields == self.columns {
            self.fields = 0;
            out.extend_from_slice(LINE_END);
        }
    }
}

/// Writes the items of a JSON list as fields.
fn struct_fields(json: &[u8], out: &mut Vec<u8>) {
    let list = json.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")).unwrap_or(json);
    let (mut depth, mut within_text, mut escaped) = (0_usize, false, false);
    let mut ends = |byte: &u8| {
        match (within_text, *byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => within_text = !within_text,
            (false, b'[' | b'{') => depth = depth.saturating_add(1),
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            (false, b',') => return depth == 0,
            _ => {}
        }
        false
    };
    for (index, item) in list.split(|byte| ends(byte)).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        field(item, out);
    }
}

/// Writes the JSON of an element as a field.
fn field(json: &[u8], out: &mut Vec<u8>) {
    match json.first() {
        Some(b'"') => match json.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) {
            Some(text) if !text.contains(&b'\\') => text_field(text, out),
            // The text is a valid JSON string, since the data type wrote it.
            _ => text_field(&serde_json::from_slice::<String>(json).unwrap_or_default().into_bytes(), out),
        },
        _ => text_field(json, out),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{encoded, slice};
    use super::*;

    #[test]
    fn two_dimensions_are_rows_and_columns() {
        let csv = |shape: &[u64], elements: &[u8]| {
            let elements: Vec<&[u8]> = elements.chunks(1).collect();
            encoded(CsvEncoder::new(&slice("int8", shape)), &elements)
        };
        assert_eq!(csv(&[], &[7]), "7\r\n");
        assert_eq!(csv(&[2], &[7, 255]), "7\r\n-1\r\n");
        assert_eq!(csv(&[2, 2], &[1, 2, 3, 4]), "1,2\r\n3,4\r\n");
        assert_eq!(csv(&[2, 1], &[1, 2]), "1\r\n2\r\n");
    }

    #[test]
    fn empty_dimensions_have_empty_rows() {
        for (shape, text) in [(&[0][..], ""), (&[0, 3], ""), (&[2, 0], "\r\n\r\n")] {
            let slice = slice("int8", shape);
            let placeholders = vec![&b""[..]; slice.placeholders().unwrap() as usize];
            assert_eq!(encoded(CsvEncoder::new(&slice), &placeholders), text, "{shape:?}");
        }
    }

    #[test]
    fn special_fields_are_quoted() {
        let strings = ["a", "", "x,y", "say \"hi\"", "two\nlines", "é\\"].map(str::as_bytes);
        let text = encoded(CsvEncoder::new(&slice("string", &[2, 3])), &strings);
        assert_eq!(text, "a,\"\",\"x,y\"\r\n\"say \"\"hi\"\"\",\"two\nlines\",é\\\r\n");
        let complex = [1.0_f32, -2.5].map(f32::to_le_bytes).concat();
        let text = encoded(CsvEncoder::new(&slice("complex64", &[])), &[&complex]);
        assert!(text.starts_with("\"[1") && text.ends_with("-2.5]\"\r\n"), "{text}");
        let nan = encoded(CsvEncoder::new(&slice("float32", &[])), &[&f32::NAN.to_le_bytes()]);
        assert_eq!(nan, "NaN\r\n");
    }

    #[test]
    fn struct_fields_are_columns() {
        for (json, fields) in [
            ("[1,\"a\",2.5]", "1,a,2.5"),
            ("[[1,2],\"x,\\\"]\",null]", "\"[1,2]\",\"x,\"\"]\",null"),
            ("[\"\"]", "\"\""),
            ("[\"a\\\\\",{\"b\":[1,2]}]", "a\\,\"{\"\"b\"\":[1,2]}\""),
        ] {
            let mut out = Vec::new();
            struct_fields(json.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), fields, "{json}");
        }
    }
}
