//! Declarations that leave out members, and what is chosen for them.
//!
//! An array needs a `shape` and a `data_type`, which may also be called `dtype`. What else is left out is chosen so:
//!
//! | member | chosen |
//! |---|---|
//! | `zarr_format`, `node_type` | those of v3, if there is a shape and a type, and of members those of the topmost node |
//! | `chunk_grid`; v2 `chunks` | regular: the array, halved along its longest extent until a chunk has at most [`MAX_CHUNK`] bytes |
//! | `chunk_key_encoding`; v2 `dimension_separator` | `default` with `/`; `.` |
//! | `codecs`; v2 `compressor` | those that make bytes, and zstd at its default level |
//! | `fill_value` | zero, false, the empty text, or "not a time"; in v2 `null`, since a number there means missing |
//! | v2 `order` | `C` |

use serde_json::{Value, json};

use super::ZomFormat;
use crate::{
    Dialect,
    data_type::{self, DataType, StoredOrder, V2Context},
    json::{Change, Json},
};

/// The most bytes of a chunk that is chosen, uncompressed.
pub(super) const MAX_CHUNK: u64 = 1 << 20;
/// The extent as which one of 0 counts, along which an array will grow.
const GROWING_EXTENT: u64 = 1024;
/// The size as which an element of variable length counts, in bytes.
const VARIABLE_SIZE: u64 = 16;

/// True if a node says enough to be an array: a shape and a data type.
pub(super) fn is_array(document: &Json) -> bool {
    document.get("shape").is_some() && ["data_type", "dtype"].iter().any(|name| document.get(name).is_some())
}

/// A document of an array with everything that it leaves out, as far as its shape and type can be read.
pub(super) fn complete(document: &Json, format: ZomFormat) -> Json {
    match format {
        ZomFormat::V2 => complete_v2(document),
        ZomFormat::V3 => complete_v3(document),
    }
}

/// The shape of the chunks of an array, whose elements have this size in bytes; `None` for variable length.
pub(super) fn chunk_shape(shape: &[u64], element_size: Option<usize>) -> Vec<u64> {
    let size = element_size.map_or(VARIABLE_SIZE, |size| size as u64).max(1);
    let mut chunks: Vec<u64> = shape.iter().map(|extent| if *extent == 0 { GROWING_EXTENT } else { *extent }).collect();
    let bytes = |chunks: &[u64]| {
        chunks.iter().fold(u128::from(size), |product, extent| product.saturating_mul(u128::from(*extent)))
    };
    while bytes(&chunks) > u128::from(MAX_CHUNK) {
        let longest = chunks.iter().copied().max().unwrap_or(1);
        if longest <= 1 {
            break;
        }
        if let Some(extent) = chunks.iter_mut().find(|extent| **extent == longest) {
            *extent = extent.div_ceil(2);
        }
    }
    chunks
}

fn complete_v3(document: &Json) -> Json {
    let mut document = document.clone();
    if let Some(dtype) = document.get("dtype").filter(|_| document.get("data_type").is_none()) {
        document = document.without("dtype").with("data_type", Change::Set(value(&dtype)));
    }
    let declared = document.get("data_type").and_then(|declared| read_type(&value(&declared)));
    let (Some(shape), Some((data_type, _))) = (shape(&document), declared) else { return document };
    let fill_value = || data_type.fill_value_json(&default_element(&data_type), Dialect::V3).ok();
    let members: [(&str, &dyn Fn() -> Option<Value>); 6] = [
        ("zarr_format", &|| Some(json!(3))),
        ("node_type", &|| Some(json!("array"))),
        ("chunk_grid", &|| {
            let chunks = chunk_shape(&shape, data_type.fixed_size());
            Some(json!({"name": "regular", "configuration": {"chunk_shape": chunks}}))
        }),
        ("chunk_key_encoding", &|| Some(json!({"name": "default", "configuration": {"separator": "/"}}))),
        ("fill_value", &fill_value),
        // The codec that makes bytes is put in like any that is missing.
        ("codecs", &|| Some(json!([{"name": "zstd", "configuration": {"level": 0, "checksum": false}}]))),
    ];
    with_missing(document, &members)
}

fn complete_v2(document: &Json) -> Json {
    let mut document = document.clone();
    let Some((data_type, order)) = document.get("dtype").and_then(|dtype| read_type(&value(&dtype))) else {
        return document;
    };
    let Some(shape) = shape(&document) else { return document };
    // A name of v3 has its notation in v2.
    let is_v2 = document.get("dtype").is_some_and(|dtype| parse_v2(&value(&dtype)).is_some());
    if let (false, Ok(dtype)) = (is_v2, data_type.to_v2(&order)) {
        document = document.with("dtype", Change::Set(dtype));
    }
    let members: [(&str, &dyn Fn() -> Option<Value>); 5] = [
        ("zarr_format", &|| Some(json!(2))),
        ("chunks", &|| Some(json!(chunk_shape(&shape, data_type.fixed_size())))),
        ("compressor", &|| Some(json!({"id": "zstd", "level": 0}))),
        ("fill_value", &|| Some(Value::Null)),
        ("order", &|| Some(json!("C"))),
    ];
    with_missing(document, &members)
}

fn with_missing(mut document: Json, members: &[(&str, &dyn Fn() -> Option<Value>)]) -> Json {
    for (name, default) in members {
        if document.get(name).is_none()
            && let Some(default) = default()
        {
            document = document.with(name, Change::Set(default));
        }
    }
    document
}

/// The element of missing chunks.
fn default_element(data_type: &DataType) -> Vec<u8> {
    if data_type.is_time() { i64::MIN.to_le_bytes().to_vec() } else { data_type.zero() }
}

/// Reads a type in the notation of v3, or else of NumPy.
fn read_type(json: &Value) -> Option<(DataType, StoredOrder)> {
    let data_type = data_type::parse_v3(json).ok().map(|data_type| (data_type, StoredOrder::Little));
    data_type.or_else(|| parse_v2(json))
}

fn parse_v2(json: &Value) -> Option<(DataType, StoredOrder)> {
    data_type::parse_v2(json, V2Context::default()).ok()
}

fn shape(document: &Json) -> Option<Vec<u64>> {
    value(&document.get("shape")?).as_array()?.iter().map(Value::as_u64).collect()
}

fn value(json: &Json) -> Value {
    serde_json::from_slice(json.as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{Node, Zom};
    use super::*;

    fn parse(document: Value) -> Result<Value, String> {
        let zom = Zom::parse(document.to_string().into_bytes()).map_err(|error| error.to_string())?;
        Ok(value(&zom.to_text()))
    }

    #[test]
    fn chunks_are_halved_along_their_longest_extent() {
        assert_eq!(chunk_shape(&[4, 3], Some(2)), [4, 3]);
        assert_eq!(chunk_shape(&[512, 512], Some(4)), [512, 512], "exactly 1 MiB");
        assert_eq!(chunk_shape(&[512, 513], Some(4)), [512, 257]);
        assert_eq!(chunk_shape(&[365, 721, 1440], Some(4)), [46, 46, 90]);
        assert_eq!(chunk_shape(&[0, 4], Some(8)), [1024, 4], "it will grow");
        assert_eq!(chunk_shape(&[], Some(8)), [] as [u64; 0]);
        assert_eq!(chunk_shape(&[1 << 20], None), [1 << 16], "texts");
        assert_eq!(chunk_shape(&[7, 7], Some(2 << 20)), [1, 1], "one element is too large already");
        let most = chunk_shape(&[i64::MAX as u64; 64], Some(8));
        assert!(most.iter().product::<u64>() * 8 <= MAX_CHUNK, "{most:?}");
        let rows = chunk_shape(&[1_000_000, 10], Some(8));
        assert_eq!(rows, [7813, 10]);
    }

    #[test]
    fn shape_and_type_are_enough() {
        let expected = json!({"shape": [4, 3], "data_type": "int16", "zarr_format": 3, "node_type": "array",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "zstd", "configuration": {"level": 0, "checksum": false}}], "attributes": {}});
        for declaration in [
            json!({"shape": [4, 3], "dtype": "int16"}),
            json!({"shape": [4, 3], "data_type": "int16"}),
            json!({"shape": [4, 3], "dtype": "<i2"}),
            json!({"zarr_format": 3, "node_type": "array", "shape": [4, 3], "dtype": "int16"}),
        ] {
            assert_eq!(parse(declaration.clone()), Ok(expected.clone()), "{declaration}");
        }
        let group =
            json!({"zarr_format": 3, "node_type": "group", "members": {"a": {"shape": [4, 3], "dtype": "int16"}}});
        assert_eq!(parse(group).unwrap()["members"]["a"], expected);
        let codecs = |dtype: Value| parse(json!({"shape": [2], "dtype": dtype})).unwrap();
        assert_eq!(codecs(json!("string"))["codecs"][0], json!({"name": "vlen-utf8"}));
        assert_eq!(codecs(json!("string"))["fill_value"], json!(""));
        assert_eq!(codecs(json!("bool"))["fill_value"], json!(false));
        assert_eq!(codecs(json!("<M8[ns]"))["fill_value"], json!(i64::MIN));
        assert_eq!(codecs(json!(">f4"))["codecs"][0]["configuration"]["endian"], json!("big"));
        // What is given stays.
        let given = json!({"shape": [4, 3], "dtype": "int16", "fill_value": 7, "codecs": ["bytes"],
            "dimension_names": ["y", "x"], "attributes": {"units": "K"}});
        let found = parse(given).unwrap();
        assert_eq!((&found["fill_value"], &found["dimension_names"]), (&json!(7), &json!(["y", "x"])));
        assert_eq!(found["codecs"], json!([{"name": "bytes", "configuration": {"endian": "little"}}]));
    }

    #[test]
    fn declarations_of_v2_may_be_short_too() {
        let found = parse(json!({"zarr_format": 2, "shape": [4], "dtype": "int16"})).unwrap();
        assert_eq!(found["dtype"], json!("<i2"));
        assert_eq!((&found["chunks"], &found["fill_value"], &found["order"]), (&json!([4]), &json!(null), &json!("C")));
        assert_eq!(found["compressor"], json!({"id": "zstd", "level": 0}));
        let group = json!({"zarr_format": 2, "members": {"a": {"shape": [4], "dtype": ">f8"}}});
        assert_eq!(parse(group).unwrap()["members"]["a"]["dtype"], json!(">f8"));
    }

    #[test]
    fn less_is_not_enough() {
        for (declaration, missing) in [
            (json!({"shape": [4]}), "zarr_format"),
            (json!({"dtype": "int16"}), "zarr_format"),
            (json!({"zarr_format": 3, "shape": [4]}), "node_type"),
            (json!({"zarr_format": 3, "node_type": "array", "shape": [4]}), "data_type"),
            (json!({"shape": [-4], "dtype": "int16"}), "chunk_grid"),
            (json!({"shape": [4], "dtype": "int17"}), "chunk_grid"),
            (json!({"members": {}}), "zarr_format"),
        ] {
            let error = parse(declaration.clone()).unwrap_err();
            assert!(error.contains(missing), "{declaration}: {error}");
        }
        assert!(matches!(Zom::parse(r#"{"shape": [], "dtype": "bool"}"#).unwrap().root, Node::Array(_)));
    }
}
