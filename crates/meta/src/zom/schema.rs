//! The JSON Schemas.

use super::ZomFormat;

impl ZomFormat {
    /// The [JSON Schema](https://json-schema.org/draft/2020-12) of the model. Whatever it refuses, [`Zom::parse`](super::Zom::parse) refuses; the reverse does not hold, since a
    /// schema cannot say that a fill value fits a data type, or that there are as many chunk extents as dimensions.
    ///
    /// It differs from the schemas that ZEP 6 prints. These are corrections of both:
    ///
    /// - `zarr_format` (in v3 also `node_type`) has to be there, as in every stored document; ZEP 6 leaves it out in v3 and knows only a `zarr_version` of any number in v2;
    /// - `attributes` and `members` may be left out;
    /// - the names of members are those that nodes may have;
    /// - extents are not negative;
    /// - the topmost node may be an array.
    ///
    /// Of v2:
    ///
    /// - `attributess`, which nothing can have, is not required;
    /// - `compressor` and `filters` may be `null`, and `filters` left out, or an empty object as in ZEP 6's own example;
    /// - `fill_value` has to be there;
    /// - the `dtype` of a structured type is a list of lists;
    /// - members that the specification does not name are allowed.
    ///
    /// Of v3:
    ///
    /// - a `data_type` may be an object;
    /// - a `configuration` may be left out, and what has none may be just a name;
    /// - a dimension may have no name;
    /// - a `fill_value` is whatever the data type has;
    /// - `storage_transformers` are empty, since there are none that are supported;
    /// - there may be `extensions` (ZEP 10), and other members that nobody has to understand.
    pub fn schema(self) -> &'static str {
        match self {
            Self::V2 => include_str!("../../schemas/zom-v2.json"),
            Self::V3 => include_str!("../../schemas/zom-v3.json"),
        }
    }
}
