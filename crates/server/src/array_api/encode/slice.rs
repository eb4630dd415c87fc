//! The shape and type of a response's elements.

use std::sync::Arc;

use zarrd_meta::data_type::{DataType, Number};

use super::{csv_header::ColumnNames, labels::AnswerLabels};

/// The elements of a response: a data type and a shape, in C order.
#[derive(Clone, Debug)]
pub(in crate::array_api) struct ArraySlice {
    /// The shape.
    pub(in crate::array_api) shape: Vec<u64>,
    /// The data type.
    pub(in crate::array_api) data_type: DataType,
    /// The names of the columns, for CSV with a header line.
    pub(in crate::array_api) column_names: Option<ColumnNames>,
    /// The labels, for xarray and CSV with labels.
    pub(in crate::array_api) labels: Option<Arc<AnswerLabels>>,
}

impl ArraySlice {
    /// The number of elements; `None` if it overflows.
    pub(in crate::array_api) fn elements(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent))
    }

    /// The number of empty texts that the encoder receives in place of elements without bytes: one for each element of
    /// a zero-sized type, and one for each innermost list if a dimension is empty. `None` if elements have bytes.
    /// Saturates.
    pub(in crate::array_api) fn placeholders(&self) -> Option<u64> {
        let product = |extents: &[u64]| extents.iter().fold(1_u64, |product, &extent| product.saturating_mul(extent));
        match self.outer_extents() {
            Some(outer_extents) => Some(product(outer_extents)),
            None if self.data_type.fixed_size() == Some(0) => Some(product(&self.shape)),
            None => None,
        }
    }

    /// The extents before the first empty dimension.
    pub(in crate::array_api) fn outer_extents(&self) -> Option<&[u64]> {
        self.shape.iter().position(|&extent| extent == 0).and_then(|at| self.shape.get(..at))
    }

    /// An upper bound of the JSON text's length, in bytes; excludes the contents of elements of variable length.
    pub(in crate::array_api) fn max_json_len(&self) -> u64 {
        // Each list is followed by a comma, except the outermost.
        let lists = self.shape.iter().scan(1_u64, |lists, extent| {
            let around = *lists;
            *lists = lists.saturating_mul(*extent);
            Some(around)
        });
        let brackets = lists.fold(0_u64, |sum, lists| sum.saturating_add(lists.saturating_mul(3)));
        self.max_elements_len().saturating_add(brackets).saturating_add(self.labels_len())
    }

    /// An upper bound of the CSV text's length; see [`max_json_len`](Self::max_json_len).
    pub(in crate::array_api) fn max_csv_len(&self) -> u64 {
        let columns = self.shape.get(1).copied().unwrap_or(1);
        let column_names = self.column_names.as_ref().map_or(0, |column_names| column_names.max_text_len(columns));
        // Each field of a struct may be quoted.
        let quotes = (self.data_type.field_names().len() as u64).saturating_mul(3);
        let quotes = self.elements().unwrap_or(u64::MAX).saturating_mul(quotes);
        self.max_elements_len().saturating_add(column_names).saturating_add(quotes).saturating_add(self.labels_len())
    }

    fn labels_len(&self) -> u64 {
        self.labels.as_ref().map_or(0, |labels| labels.max_text_len())
    }

    /// An upper bound of the length of all elements as text, each with a separator.
    fn max_elements_len(&self) -> u64 {
        self.elements().unwrap_or(u64::MAX).saturating_mul(self.max_element_len().saturating_add(1))
    }

    /// An upper bound of the length of one element as text.
    fn max_element_len(&self) -> u64 {
        let Some(size) = self.data_type.fixed_size() else { return 2 };
        if self.data_type.packed_bits().is_some() {
            return 26;
        }
        match (self.data_type.number(), size) {
            (Some(Number::Bool), _) => 5,
            (Some(_), 1) => 4,
            (Some(_), 2) => 9,
            (Some(_), 4) => 16,
            (Some(_), 8) => 26,
            // A byte takes at most four characters, as a number, as text, or escaped.
            _ => (size as u64).saturating_mul(4).saturating_add(2),
        }
    }

    /// True if elements have variable length.
    pub(in crate::array_api) fn is_variable(&self) -> bool {
        self.data_type.fixed_size().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::slice;

    #[test]
    fn empty_shapes_have_placeholders() {
        assert_eq!(slice("int8", &[]).elements(), Some(1));
        assert_eq!(slice("int8", &[1 << 40, 1 << 40]).elements(), None);
        assert_eq!(slice("int8", &[1 << 40, 1 << 40, 0]).elements(), Some(0));
        assert_eq!(slice("int8", &[2, 3]).placeholders(), None);
        assert_eq!(slice("int8", &[2, 3, 0, 5]).placeholders(), Some(6));
        assert_eq!(slice("int8", &[0, 3]).placeholders(), Some(1));
        assert_eq!(slice("int8", &[1 << 40, 1 << 40, 0]).placeholders(), Some(u64::MAX));
    }
}
