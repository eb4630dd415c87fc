//! The JSON Schemas.

use super::Version;

impl Version {
    /// The [JSON Schema](https://json-schema.org/draft/2020-12) of the model.
    pub fn schema(self) -> &'static str {
        match self {
            Self::V2 => include_str!("../../schemas/zom-v2.json"),
            Self::V3 => include_str!("../../schemas/zom-v3.json"),
        }
    }
}
