//! The header line of CSV.
//!
//! With two dimensions, columns are named by their indices along the second dimension, prefixed with its name if it has
//! one: `x_3`, or `3`. With fewer dimensions, the only column is named after the array, and those of a struct after its
//! fields.

use std::sync::Arc;

use zarrd_array::ArrayResult;
use zarrd_codec::VariableElements;
use zarrd_wire::array::{CsvHeader, MAX_DESCRIPTION};

use super::{
    csv_field::{LINE_END, text_field},
    encoder::{BLOCK_SIZE, Progress},
    indices::Indices,
    labels::AnswerLabels,
    text_list::TextBuilder,
};

/// The maximum number of digits of an index.
const DIGITS: u64 = 20;

/// The names of the columns.
#[derive(Clone, Debug)]
pub(in crate::array_api) enum ColumnNames {
    /// A list of names.
    Names(Arc<VariableElements>),
    /// Names made of indices along a dimension.
    Indices {
        /// The name of the dimension.
        name: Option<String>,
        /// The indices.
        indices: Indices,
    },
}

/// Writes a header line in blocks.
#[derive(Debug)]
pub(super) struct HeaderLine {
    column_names: ColumnNames,
    columns: u64,
    /// The next column.
    next: u64,
}

impl ColumnNames {
    /// The names that labels give to the columns.
    pub(in crate::array_api) fn of_labels(labels: &AnswerLabels) -> Self {
        Self::Names(labels.columns.clone())
    }

    fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Names(Arc::new(TextBuilder::from_iter(names).finish()))
    }

    /// Returns the column names if a header line is requested, or by default if the columns have meaningful names.
    pub(in crate::array_api) fn of(result: &ArrayResult, requested: Option<CsvHeader>) -> Option<Self> {
        // Names too long for the response headers are also too long here.
        let short = |name: Option<String>| name.filter(|name| name.len() <= MAX_DESCRIPTION);
        let mut dimensions = result.dimension_names().into_iter().map(short);
        let fields = result.data_type().field_names();
        let (column_names, named) = match result.shape() {
            [] | [_] if !fields.is_empty() => (Self::of_names(fields), true),
            [] | [_] => {
                let name = result.path().name().unwrap_or("array");
                (Self::of_names([name]), dimensions.next().flatten().is_some())
            }
            [_, _] => {
                let name = dimensions.nth(1).flatten();
                let named = name.is_some();
                (Self::Indices { name, indices: Indices::along(result, 1) }, named)
            }
            _ => return None,
        };
        match requested {
            Some(CsvHeader::Absent) => None,
            None if !named => None,
            // Those with labels are known later.
            Some(CsvHeader::Present | CsvHeader::Labels) | None => Some(column_names),
        }
    }

    /// An upper bound of the line's length for `columns` columns, in bytes.
    pub(super) fn max_text_len(&self, columns: u64) -> u64 {
        let quoted = |name: &[u8]| (name.len() as u64).saturating_mul(2).saturating_add(3);
        match self {
            Self::Names(names) => names.iter().map(quoted).fold(2, u64::saturating_add),
            Self::Indices { name, .. } => {
                let each = name.as_ref().map_or(1, |name| quoted(name.as_bytes())).saturating_add(DIGITS);
                columns.saturating_mul(each).saturating_add(2)
            }
        }
    }

    fn write(&self, column: u64, out: &mut Vec<u8>) {
        match self {
            Self::Names(names) => {
                let name = usize::try_from(column).ok().and_then(|column| names.get(column));
                text_field(name.unwrap_or_default(), out);
            }
            Self::Indices { name, indices } => {
                let index = indices.get(column);
                match name {
                    Some(name) => text_field(format!("{name}_{index}").as_bytes(), out),
                    None => text_field(index.to_string().as_bytes(), out),
                }
            }
        }
    }
}

impl HeaderLine {
    pub(super) fn new(column_names: &ColumnNames, shape: &[u64]) -> Self {
        let columns = match column_names {
            ColumnNames::Names(names) => names.len() as u64,
            ColumnNames::Indices { .. } => shape.get(1).copied().unwrap_or(0),
        };
        Self { column_names: column_names.clone(), columns, next: 0 }
    }

    /// Writes about one block of the line.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> Progress {
        while self.next < self.columns {
            if out.len() >= BLOCK_SIZE {
                return Progress::Partial;
            }
            if self.next > 0 {
                out.push(b',');
            }
            self.column_names.write(self.next, out);
            self.next = self.next.saturating_add(1);
        }
        out.extend_from_slice(LINE_END);
        Progress::Complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zarrd_meta::selection::DimensionSelection;

    fn text(column_names: &ColumnNames, columns: u64) -> String {
        let (mut line, mut out) = (HeaderLine::new(column_names, &[1, columns]), Vec::new());
        while line.write(&mut out) == Progress::Partial {}
        assert!(out.len() as u64 <= column_names.max_text_len(columns));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names() {
        let names = ColumnNames::of_names(["a", "", "x,y", "say \"hi\""]);
        assert_eq!(text(&names, 0), "a,\"\",\"x,y\",\"say \"\"hi\"\"\"\r\n");
    }

    #[test]
    fn indices() {
        let of = |name: Option<&str>, stored, offset| ColumnNames::Indices {
            name: name.map(str::to_owned),
            indices: Indices::new(stored, offset),
        };
        let backwards = DimensionSelection::Range { start: 9, step: -2, len: 3 };
        assert_eq!(text(&of(Some("x"), backwards.clone(), 0), 3), "x_9,x_7,x_5\r\n");
        assert_eq!(text(&of(None, backwards, 5), 3), "4,2,0\r\n");
        let list = DimensionSelection::List([7, 7, 1].into());
        assert_eq!(text(&of(Some("\""), list, 0), 3), "\"\"\"_7\",\"\"\"_7\",\"\"\"_1\"\r\n");
    }

    #[test]
    fn long_lines_come_in_blocks() {
        let column_names = ColumnNames::Indices {
            name: None,
            indices: Indices::new(DimensionSelection::Range { start: 0, step: 1, len: 1 << 20 }, 0),
        };
        let (mut line, mut blocks) = (HeaderLine::new(&column_names, &[0, 1 << 20]), 0);
        loop {
            let mut out = Vec::new();
            let progress = line.write(&mut out);
            assert!(out.len() <= BLOCK_SIZE + 32);
            blocks += 1;
            if progress == Progress::Complete {
                break;
            }
        }
        assert_eq!(blocks, 112);
    }
}
