//! NumPy's objects: the first filter determines the data type of `|O`.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, StoredOrder, TypeError, V2Context,
    text::{NumpyText, invalid, truncated},
};
use crate::codecs::CodecSpec;

/// The `dtype` of objects.
pub(super) const OBJECT: &str = "|O";

/// Rejects objects with a filter that no other family supports; the last of the families.
pub(super) struct OtherObjectFamily;

/// The filter that determines the type of objects; `None` for other dtypes, and without filters.
pub(super) fn object_codec<'a>(dtype: &Value, context: V2Context<'a>) -> Option<&'a CodecSpec> {
    context.object_codec.filter(|_| is_object(dtype))
}

fn is_object(dtype: &Value) -> bool {
    NumpyText::parse(dtype).is_some_and(|text| text.kind == 'O' && text.rest.is_empty())
}

impl DataTypeFamily for OtherObjectFamily {
    fn read_v2(&self, dtype: &Value, context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        is_object(dtype).then(|| {
            Err(match context.object_codec {
                Some(codec) => invalid(
                    OBJECT,
                    format!("has objects that the filter {} wrote, which cannot be read", truncated(&codec.name)),
                ),
                None => invalid(OBJECT, "has no filter that says what the objects are"),
            })
        })
    }

    fn read_v3(&self, _name: &str, _configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        None
    }
}
