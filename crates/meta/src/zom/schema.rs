//! JSON Schemas of ZOMs.

use super::ZomFormat;

impl ZomFormat {
    /// The [JSON Schema](https://json-schema.org/draft/2020-12) of the model. [`Zom::parse`](super::Zom::parse) rejects
    /// everything that it rejects, and more: a schema cannot represent that a fill value belongs to a data type, or
    /// that there are as many chunk extents as dimensions.
    ///
    /// It differs from the schemas that ZEP 6 prints. These are corrections of both:
    ///
    /// - `zarr_format` (in v3 also `node_type`) of groups is required, as in every stored document; ZEP 6 omits it in v3
    ///   and has only a `zarr_version` of any number in v2;
    /// - of arrays only the shape and the data type are required, since what they leave out is chosen;
    /// - `attributes` and `members` are optional;
    /// - the names of members are those that nodes may have;
    /// - extents are not negative;
    /// - the topmost node may be an array.
    ///
    /// Of v2:
    ///
    /// - `attributess`, a typing error, is not required;
    /// - `compressor` and `filters` may be `null`, and `filters` missing, or an empty object as in ZEP 6's own example;
    /// - the `dtype` of a structured type is a list of lists;
    /// - members that the specification does not name are allowed.
    ///
    /// Of v3:
    ///
    /// - a `data_type` may be an object;
    /// - a `configuration` is optional, and a name without one may be a string;
    /// - a dimension name may be `null`;
    /// - a `fill_value` may have any type;
    /// - `storage_transformers` are empty, because none are supported;
    /// - `extensions` (ZEP 10) and optional unknown members are allowed.
    pub fn schema(self) -> &'static str {
        match self {
            Self::V2 => include_str!("../../schemas/zom-v2.json"),
            Self::V3 => include_str!("../../schemas/zom-v3.json"),
        }
    }
}
