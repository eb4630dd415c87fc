//! The elements of an answer, as far as its formats need to know.

use meta::data_type::{DataType, Number};

use super::csv_header::ColumnNames;

/// What is answered: elements of a type, in C order, in a shape.
#[derive(Clone, Debug)]
pub(in crate::array_api) struct ArraySlice {
    /// Their shape.
    pub(in crate::array_api) shape: Vec<u64>,
    /// Their type.
    pub(in crate::array_api) data_type: DataType,
    /// The names of the columns, of CSV that has them.
    pub(in crate::array_api) column_names: Option<ColumnNames>,
}

impl ArraySlice {
    /// How many elements there are; `None` where a `u64` does not count them.
    pub(in crate::array_api) fn elements(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent))
    }

    /// How often an empty text stands for what has no bytes: each element of a type without bytes, and each innermost list where
    /// a dimension is empty. `None` where elements have bytes; more than `u64::MAX` are as many as that.
    pub(in crate::array_api) fn placeholders(&self) -> Option<u64> {
        let product = |extents: &[u64]| extents.iter().fold(1_u64, |product, &extent| product.saturating_mul(extent));
        match self.outer_extents() {
            Some(outer_extents) => Some(product(outer_extents)),
            None if self.data_type.fixed_size() == Some(0) => Some(product(&self.shape)),
            None => None,
        }
    }

    /// The dimensions around the first that is empty.
    pub(in crate::array_api) fn outer_extents(&self) -> Option<&[u64]> {
        self.shape.iter().position(|&extent| extent == 0).and_then(|at| self.shape.get(..at))
    }

    /// At most how many bytes the elements have as JSON; of variable length, without their own.
    pub(in crate::array_api) fn max_json_len(&self) -> u64 {
        // A list of each dimension but the outermost is in one that is around it, with a comma.
        let lists = self.shape.iter().scan(1_u64, |lists, extent| {
            let around = *lists;
            *lists = lists.saturating_mul(*extent);
            Some(around)
        });
        let brackets = lists.fold(0_u64, |sum, lists| sum.saturating_add(lists.saturating_mul(3)));
        self.max_elements_len().saturating_add(brackets)
    }

    /// The same as CSV.
    pub(in crate::array_api) fn max_csv_len(&self) -> u64 {
        let columns = self.shape.get(1).copied().unwrap_or(1);
        let column_names = self.column_names.as_ref().map_or(0, |column_names| column_names.max_text_len(columns));
        // A field of a struct may be in quotes.
        let quotes = (self.data_type.field_names().len() as u64).saturating_mul(3);
        let quotes = self.elements().unwrap_or(u64::MAX).saturating_mul(quotes);
        self.max_elements_len().saturating_add(column_names).saturating_add(quotes)
    }

    /// At most how many bytes the elements have as text, each with what is between it and the next.
    fn max_elements_len(&self) -> u64 {
        self.elements().unwrap_or(u64::MAX).saturating_mul(self.max_element_len().saturating_add(1))
    }

    /// At most how many bytes of text an element has.
    fn max_element_len(&self) -> u64 {
        let Some(size) = self.data_type.fixed_size() else { return 2 };
        match (self.data_type.number(), size) {
            (Some(Number::Bool), _) => 5,
            (Some(_), 1) => 4,
            (Some(_), 2) => 9,
            (Some(_), 4) => 16,
            (Some(_), 8) => 26,
            // A byte is at most four characters, be it of a number, of a text or of what has to be escaped.
            _ => (size as u64).saturating_mul(4).saturating_add(2),
        }
    }

    /// True if each element has its own length.
    pub(in crate::array_api) fn is_variable(&self) -> bool {
        self.data_type.fixed_size().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::slice;

    #[test]
    fn counts() {
        assert_eq!(slice("int8", &[]).elements(), Some(1));
        assert_eq!(slice("int8", &[1 << 40, 1 << 40]).elements(), None);
        assert_eq!(slice("int8", &[1 << 40, 1 << 40, 0]).elements(), Some(0));
        assert_eq!(slice("int8", &[2, 3]).placeholders(), None);
        assert_eq!(slice("int8", &[2, 3, 0, 5]).placeholders(), Some(6));
        assert_eq!(slice("int8", &[0, 3]).placeholders(), Some(1));
        assert_eq!(slice("int8", &[1 << 40, 1 << 40, 0]).placeholders(), Some(u64::MAX));
    }
}
