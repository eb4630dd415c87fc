//! Rows of the filters that move bits and bytes: `packbits` and `shuffle`.

use super::{Kind::Bits, Order::Little, Row};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    ("packbits", r#"{}"#, "bool", Little, "bool", Bits, Some(0xac100e21), Some(0x4b27c017), None),
    ("shuffle", r#"{"elementsize":1}"#, "float64", Little, "float64", Bits, Some(0xcf53ff1b), Some(0xcf53ff1b), None),
    ("shuffle", r#"{"elementsize":2}"#, "float64", Little, "float64", Bits, Some(0x8452162d), Some(0xcf53ff1b), None),
    ("shuffle", r#"{"elementsize":4}"#, "float64", Little, "float64", Bits, Some(0x179fcd0e), Some(0xcf53ff1b), None),
    ("shuffle", r#"{"elementsize":8}"#, "float64", Little, "float64", Bits, Some(0x7a440531), Some(0xcf53ff1b), None),
    ("shuffle", r#"{"elementsize":16}"#, "float64", Little, "float64", Bits, Some(0xb2c57617), Some(0xcf53ff1b), None),
];
