//! Missing values in conversions: in v2 and the draft the fill value, in v3 the attribute `_FillValue`.

use serde_json::{Value, json};
use zarrd_array::{
    ConversionReport, ConvertOptions, CreateAction, Depth, ExistingDocuments, LossPolicy, NodeError, NodeRejection,
    undecoded,
};
use zarrd_meta::Dialect;

use crate::hierarchies::test_store::{TestStore, draft_array, entry_point, path, v2_group, v3_group};

/// NaN, −9999.0, 0.5 and 0.1 as xarray writes them in v3.
const NAN: &str = "AAAAAAAA+H8=";
const LOW: &str = "AAAAAICHw8A=";
const HALF: &str = "AAAAAAAA4D8=";
const TENTH: &str = "mpmZmZmZuT8=";

/// An array of v2 with two chunks of two elements.
fn v2_array(dtype: &str, fill_value: Value, attributes: Value) -> Value {
    json!({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": dtype, "fill_value": fill_value, "order": "C",
        "filters": null, "compressor": null, "dimension_separator": ".", "attributes": attributes})
}

/// An array of v3 over the chunks of [`v2_array`].
fn v3_array(data_type: &str, fill_value: Value, attributes: Value) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": data_type, "fill_value": fill_value,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": attributes,
        "dimension_names": ["x"]})
}

fn with(mut document: Value, member: &str, value: Value) -> Value {
    document[member] = value;
    document
}

fn named(attributes: Value) -> Value {
    with(attributes, "_ARRAY_DIMENSIONS", json!(["x"]))
}

fn pointers(report: &ConversionReport) -> Vec<&str> {
    report.losses.iter().map(|(_, loss)| loss.pointer.as_str()).collect()
}

impl TestStore {
    async fn convert_with(
        &self,
        target: Option<&str>,
        dialect: Dialect,
        losses: LossPolicy,
    ) -> Result<ConversionReport, NodeError> {
        self.nodes
            .convert(
                &path("/g"),
                None,
                &ConvertOptions { dialect, target: target.map(path), losses, existing: ExistingDocuments::Keep },
            )
            .await
    }
}

/// A group with the array `a`, of which some chunks are stored, converted in place and as a copy; the fill value and
/// `_FillValue` of the results, which are the same, and the pointers of what was lost.
async fn converted(array: &Value, chunks: &[&str], to: Dialect) -> (Value, Option<Value>, Vec<String>) {
    let mut results = Vec::new();
    for target in [None, Some("/copy")] {
        let store = TestStore::new();
        let is_v3 = array["zarr_format"] == 3;
        let members = json!({ "a": array });
        let group = if is_v3 { v3_group(&members) } else { v2_group(&members) };
        store.declare("/g", &group).await.unwrap();
        for chunk in chunks {
            store.set(&format!("g/a/{chunk}"), [1; 16]).await;
        }
        let report = store.convert_with(target, to, LossPolicy::Allow).await.unwrap();
        let top = target.map_or("g", |target| target.trim_start_matches('/'));
        let (document, attributes) = match to {
            Dialect::V2 => {
                let attributes = store.document(&format!("{top}/a/.zattrs")).await;
                (store.document(&format!("{top}/a/.zarray")).await, attributes)
            }
            _ => {
                let document = store.document(&format!("{top}/a/zarr.json")).await;
                (document.clone(), document["attributes"].clone())
            }
        };
        let lost: Vec<String> = pointers(&report).into_iter().map(str::to_owned).collect();
        let from = if is_v3 { Dialect::V3 } else { Dialect::V2 };
        let again = ConvertOptions {
            dialect: to,
            target: Some(path("/again")),
            losses: LossPolicy::Reject,
            existing: ExistingDocuments::Keep,
        };
        let rejected = store.nodes.convert(&path("/g"), Some(from), &again).await;
        assert_eq!(rejected.is_err(), !lost.is_empty(), "{array}: {rejected:?}");
        results.push((document["fill_value"].clone(), attributes.get("_FillValue").cloned(), lost));
    }
    assert_eq!(results[0], results[1], "in place and copied: {array}");
    results.swap_remove(0)
}

const ALL: &[&str] = &["0", "1"];
const ONE: &[&str] = &["1"];
const FILL_VALUE: &str = "/fill_value";
const ATTRIBUTE: &str = "/attributes/_FillValue";

#[tokio::test]
async fn masks_of_v2_become_attributes() {
    let table = [
        ("<i2", json!(-9999), json!({}), json!(-9999), Some(json!(-9999)), vec![]),
        ("<i8", json!(0), json!({"units": "days since 2000-01-01"}), json!(0), Some(json!(0)), vec![]),
        ("|u1", json!(255), json!({"_Unsigned": "false"}), json!(255), Some(json!(255)), vec![]),
        ("<u8", json!(u64::MAX), json!({}), json!(u64::MAX), Some(json!(u64::MAX)), vec![]),
        (">i4", json!(7), json!({"_FillValue": 7}), json!(7), Some(json!(7)), vec![]),
        ("<i4", json!(7), json!({"_FillValue": 8}), json!(7), Some(json!(7)), vec![ATTRIBUTE]),
        ("<f4", json!(-9999.0), json!({}), json!(-9999.0), Some(json!(LOW)), vec![]),
        ("<f2", json!(0.5), json!({}), json!(0.5), Some(json!(HALF)), vec![]),
        ("<f8", json!(0.5), json!({"_FillValue": 0.5}), json!(0.5), Some(json!(HALF)), vec![]),
        ("<f8", json!(0.5), json!({"_FillValue": 0.1}), json!(0.5), Some(json!(HALF)), vec![ATTRIBUTE]),
        ("<f8", json!("NaN"), json!({}), json!("NaN"), None, vec![]),
        // Packed floats have another type with a fill value, even if it is NaN.
        ("<f8", json!("NaN"), json!({"scale_factor": 2}), json!("NaN"), Some(json!(NAN)), vec![]),
        ("<f8", json!("NaN"), json!({"_FillValue": 0.5}), json!("NaN"), Some(json!(NAN)), vec![ATTRIBUTE]),
        // Without a fill value the attribute counts.
        ("<f4", json!(null), json!({"_FillValue": -9999}), json!(0.0), Some(json!(LOW)), vec![FILL_VALUE]),
        ("<f8", json!(null), json!({"_FillValue": [0.1]}), json!(0.0), Some(json!(TENTH)), vec![FILL_VALUE]),
        ("<f8", json!(null), json!({"_FillValue": "x"}), json!(0.0), None, vec![FILL_VALUE, ATTRIBUTE]),
        ("<i4", json!(null), json!({"_FillValue": -1}), json!(0), Some(json!(-1)), vec![FILL_VALUE]),
        ("<i4", json!(null), json!({"_FillValue": null}), json!(0), None, vec![FILL_VALUE]),
        ("<i4", json!(null), json!({"_FillValue": [1, 2]}), json!(0), None, vec![FILL_VALUE, ATTRIBUTE]),
        // Other types keep theirs.
        ("|b1", json!(false), json!({}), json!(false), None, vec![FILL_VALUE]),
        ("<c8", json!([0.0, 0.0]), json!({}), json!([0.0, 0.0]), None, vec![FILL_VALUE]),
        ("<c8", json!(["NaN", 0.0]), json!({}), json!(["NaN", 0.0]), None, vec![]),
        ("<M8[s]", json!(5), json!({}), json!(5), None, vec![FILL_VALUE]),
        ("<M8[s]", json!(i64::MIN), json!({}), json!(i64::MIN), None, vec![]),
    ];
    for (dtype, fill_value, attributes, expected, mask, losses) in table {
        let array = v2_array(dtype, fill_value, named(attributes));
        let losses: Vec<_> = losses.into_iter().map(str::to_owned).collect();
        assert_eq!(converted(&array, ALL, Dialect::V3).await, (expected, mask, losses), "{array}");
    }
    // Without dimension names nothing is masked.
    let unnamed = v2_array("<i4", json!(7), json!({"a": 1}));
    assert_eq!(converted(&unnamed, ALL, Dialect::V3).await, (json!(7), None, vec![]));
}

#[tokio::test]
async fn masks_of_v3_become_fill_values() {
    let table = [
        // The fill value itself.
        ("int16", json!(-9999), json!({"_FillValue": -9999}), ONE, json!(-9999), None, vec![]),
        ("float32", json!(-9999), json!({"_FillValue": LOW}), ONE, json!(-9999.0), None, vec![]),
        ("float64", json!(0.5), json!({"_FillValue": [0.5]}), ONE, json!(0.5), None, vec![]),
        ("float64", json!("NaN"), json!({"_FillValue": NAN}), ONE, json!("NaN"), None, vec![]),
        ("float64", json!(-0.0), json!({"_FillValue": "AAAAAAAAAAA="}), ONE, json!(-0.0), None, vec![]),
        // Another element.
        ("int16", json!(0), json!({"_FillValue": -9999}), ALL, json!(-9999), None, vec![]),
        ("int16", json!(0), json!({"_FillValue": -9999}), ONE, json!(0), None, vec![ATTRIBUTE]),
        ("float16", json!(0), json!({"_FillValue": HALF}), ALL, json!(0.5), None, vec![]),
        ("float64", json!(0), json!({"_FillValue": NAN}), ALL, json!("NaN"), None, vec![]),
        ("float64", json!(0), json!({"_FillValue": NAN}), ONE, json!(0.0), None, vec![ATTRIBUTE]),
        // No element.
        ("float32", json!(0), json!({"_FillValue": TENTH}), ALL, json!(null), Some(json!(0.1)), vec![]),
        ("float32", json!(0), json!({"_FillValue": TENTH}), ONE, json!(0.0), None, vec![ATTRIBUTE]),
        ("int8", json!(0), json!({"_FillValue": 300}), ALL, json!(null), Some(json!(300)), vec![]),
        // None.
        ("int64", json!(0), json!({"units": "days since 2000-01-01"}), ALL, json!(null), None, vec![]),
        ("int64", json!(0), json!({"units": "days since 2000-01-01"}), ONE, json!(0), None, vec![FILL_VALUE]),
        ("float64", json!(0), json!({}), ALL, json!(null), None, vec![]),
        ("float64", json!("NaN"), json!({}), ONE, json!("NaN"), None, vec![]),
        ("float64", json!("NaN"), json!({"add_offset": 1}), ALL, json!(null), None, vec![]),
        ("float64", json!("NaN"), json!({"add_offset": 1}), ONE, json!("NaN"), None, vec![FILL_VALUE]),
        // Other types keep theirs.
        ("bool", json!(false), json!({}), ALL, json!(false), None, vec![FILL_VALUE]),
        ("bool", json!(false), json!({"_FillValue": false}), ALL, json!(false), Some(json!(false)), vec![]),
        ("bool", json!(false), json!({"_FillValue": true}), ALL, json!(false), Some(json!(true)), vec![ATTRIBUTE]),
        ("complex64", json!([0, 0]), json!({}), ALL, json!([0.0, 0.0]), None, vec![FILL_VALUE]),
    ];
    for (data_type, fill_value, attributes, chunks, expected, mask, losses) in table {
        let array = v3_array(data_type, fill_value, attributes);
        let losses: Vec<_> = losses.into_iter().map(str::to_owned).collect();
        assert_eq!(converted(&array, chunks, Dialect::V2).await, (expected, mask, losses), "{array}");
    }
}

/// Without dimension names the fill value of v2 means nothing, so the attribute stays, as numbers.
#[tokio::test]
async fn masks_without_dimension_names_stay_attributes() {
    for (data_type, before, after) in [("int16", json!(-9999), json!(-9999)), ("float32", json!(LOW), json!(-9999.0))] {
        let array = v3_array(data_type, json!(-9999), json!({"a": 1, "_FillValue": before}));
        let array = with(array, "dimension_names", json!(null));
        let (fill_value, mask, losses) = converted(&array, ONE, Dialect::V2).await;
        assert_eq!((fill_value.as_f64(), mask, losses), (Some(-9999.0), Some(after.clone()), vec![]));
        let back = v2_array(if data_type == "int16" { "<i2" } else { "<f4" }, json!(0), json!({"_FillValue": after}));
        assert_eq!(converted(&back, ONE, Dialect::V3).await.1, Some(before));
    }
    let array = with(v3_array("int16", json!(0), json!({"a": 1})), "dimension_names", json!(null));
    assert_eq!(converted(&array, ONE, Dialect::V2).await, (json!(0), None, vec![]));
}

/// xarray omits the dimension names of scalars in v3 and needs an empty list in v2.
#[tokio::test]
async fn scalars_next_to_named_arrays_get_an_empty_list() {
    let mut scalar = v3_array("float64", json!(0), json!({"_FillValue": NAN}));
    scalar["shape"] = json!([]);
    scalar["chunk_grid"]["configuration"]["chunk_shape"] = json!([]);
    scalar.as_object_mut().unwrap().remove("dimension_names");
    let alone = json!({"s": scalar, "h": v3_group(&json!({"x": v3_array("int8", json!(0), json!({}))}))});
    let named = json!({"s": scalar, "x": v3_array("int8", json!(0), json!({}))});
    for (members, expected) in [(&alone, None), (&named, Some(json!([])))] {
        // The scalar with its group in place and as a copy, and by itself.
        for (from, target, converted) in
            [("/g", None, "g/s"), ("/g", Some("/copy"), "copy/s"), ("/g/s", None, "g/s"), ("/g/s", Some("/s"), "s")]
        {
            let store = TestStore::new();
            store.declare("/g", &v3_group(members)).await.unwrap();
            store.set("g/s/0", 7.0_f64.to_le_bytes()).await;
            let conversion = ConvertOptions {
                dialect: Dialect::V2,
                target: target.map(path),
                losses: LossPolicy::Allow,
                existing: ExistingDocuments::Keep,
            };
            store.nodes.convert(&path(from), None, &conversion).await.unwrap();
            let document = store.document(&format!("{converted}/.zarray")).await;
            // Its only chunk is stored.
            assert_eq!(document["fill_value"], json!("NaN"), "{from} {target:?}");
            let attributes = match store.keys().await.contains(&format!("{converted}/.zattrs")) {
                true => store.document(&format!("{converted}/.zattrs")).await,
                false => json!({}),
            };
            assert_eq!(attributes.get("_ARRAY_DIMENSIONS").cloned(), expected, "{from} {target:?}");
        }
        // A description and a declaration of the same hierarchy.
        let store = TestStore::new();
        store.declare("/g", &v3_group(members)).await.unwrap();
        let described = store.nodes.node(&path("/g"), None, Depth::All, Some(Dialect::V2)).await.unwrap();
        let described = described.zom.to_text().to_value().unwrap()["members"]["s"]["attributes"].clone();
        assert_eq!(described.get("_ARRAY_DIMENSIONS").cloned(), expected);
    }
}

#[tokio::test]
async fn masked_scalars_of_v2_get_the_attribute() {
    let mut scalar = v2_array("<i4", json!(5), json!({"_ARRAY_DIMENSIONS": []}));
    (scalar["shape"], scalar["chunks"]) = (json!([]), json!([]));
    assert_eq!(converted(&scalar, &["0"], Dialect::V3).await, (json!(5), Some(json!(5)), vec![]));
    scalar["attributes"] = json!({"a": 1});
    assert_eq!(converted(&scalar, &["0"], Dialect::V3).await, (json!(5), None, vec![]));
}

/// Consolidated metadata has the same documents.
#[tokio::test]
async fn consolidated_copies_have_the_converted_masks() {
    let store = TestStore::new();
    let array = v3_array("int16", json!(0), json!({"_FillValue": -1}));
    let mut group = v3_group(&json!({}));
    group["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": {"a": array}});
    group.as_object_mut().unwrap().remove("members");
    store.json("g/zarr.json", &group).await;
    store.json("g/a/zarr.json", &array).await;
    store.set("g/a/0", [1, 0, 255, 255]).await;
    store.set("g/a/1", [1, 0, 2, 0]).await;
    let report = store.convert("/g", Dialect::V2).await.unwrap();
    assert_eq!(report.losses, vec![]);
    let copies = store.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!(copies["a/.zarray"]["fill_value"], json!(-1));
    assert_eq!(copies["a/.zarray"], store.document("g/a/.zarray").await);
    assert_eq!(copies["a/.zattrs"], json!({"_ARRAY_DIMENSIONS": ["x"]}));
}

/// Empty arrays have all their chunks; others are never known to have them if their chunks are in shards.
#[tokio::test]
async fn chunks_are_counted_within_the_shape() {
    let empty = with(v3_array("int16", json!(0), json!({})), "shape", json!([0]));
    assert_eq!(converted(&empty, &[], Dialect::V2).await, (json!(null), None, vec![]));
    let array = v3_array("int16", json!(0), json!({}));
    // A chunk outside of the shape, and keys that are no chunks.
    let outside: &[&str] = &["0", "2", "00", "1.0", "notes"];
    assert_eq!(converted(&array, outside, Dialect::V2).await.2, [FILL_VALUE]);
    let all: &[&str] = &["0", "1", "2", "notes"];
    assert_eq!(converted(&array, all, Dialect::V2).await, (json!(null), None, vec![]));
}

/// A rejected conversion changes nothing.
#[tokio::test]
async fn losses_are_rejected_on_request() {
    let store = TestStore::new();
    let array = v3_array("int16", json!(0), json!({"_FillValue": -1}));
    store.declare("/g", &v3_group(&json!({ "a": array }))).await.unwrap();
    let before = store.keys().await;
    for target in [None, Some("/copy")] {
        let rejected = store.convert_with(target, Dialect::V2, LossPolicy::Reject).await;
        let Err(NodeError::Rejected(NodeRejection::LossyConversion { dialect: Dialect::V2, losses })) = rejected else {
            panic!("{rejected:?}")
        };
        assert_eq!(losses.len(), 1);
        assert_eq!((losses[0].0.to_string(), losses[0].1.pointer.as_str()), ("/g/a".to_owned(), ATTRIBUTE));
        assert_eq!(store.keys().await, before, "{target:?}");
    }
    store.set("g/a/0", [1, 0, 255, 255]).await;
    store.set("g/a/1", [1, 0, 2, 0]).await;
    let report = store.convert_with(Some("/copy"), Dialect::V2, LossPolicy::Reject).await.unwrap();
    assert_eq!((report.chunks, report.losses), (2, vec![]));
}

/// From the draft, and to it.
#[tokio::test]
async fn draft_masks_are_converted() {
    let attributes = json!({"_ARRAY_DIMENSIONS": ["x"]});
    let draft = with(with(draft_array(&[4]), "attributes", attributes.clone()), "fill_value", json!(255));
    let store = TestStore::new();
    store.json("d/zarr.json", &entry_point()).await;
    store.json("d/meta/root/x.array.json", &draft).await;
    store.set("d/data/root/x/c0", [1, 255]).await;
    for (dialect, to) in [(Dialect::V3, "/three"), (Dialect::V2, "/two"), (Dialect::Draft, "/again")] {
        let conversion = ConvertOptions {
            dialect,
            target: Some(path(to)),
            losses: LossPolicy::Reject,
            existing: ExistingDocuments::Keep,
        };
        let report = store.nodes.convert(&path("/d"), None, &conversion).await.unwrap();
        assert_eq!((report.chunks, report.losses), (1, vec![]), "{to}");
    }
    let three = store.document("three/x/zarr.json").await;
    assert_eq!((&three["fill_value"], &three["attributes"]), (&json!(255), &json!({"_FillValue": 255})));
    let two = store.document("two/x/.zattrs").await;
    assert_eq!((&store.document("two/x/.zarray").await["fill_value"], &two), (&json!(255), &attributes));
    let again = store.document("again/meta/root/x.array.json").await;
    assert_eq!((&again["fill_value"], &again["attributes"]), (&json!(255), &attributes));
    // Back: the mask is the fill value, and then another one.
    for (fill_value, lost) in [(255, 0), (0, 1)] {
        let mut document = store.document("three/x/zarr.json").await;
        document["fill_value"] = json!(fill_value);
        store.json("three/x/zarr.json", &document).await;
        let to = format!("/draft{fill_value}");
        let conversion = ConvertOptions {
            dialect: Dialect::Draft,
            target: Some(path(&to)),
            losses: LossPolicy::Allow,
            existing: ExistingDocuments::Keep,
        };
        let report = store.nodes.convert(&path("/three"), None, &conversion).await.unwrap();
        assert_eq!(report.losses.len(), lost);
        let back = store.document(&format!("draft{fill_value}/meta/root/x.array.json")).await;
        assert_eq!((&back["fill_value"], &back["attributes"]), (&json!(fill_value), &attributes));
    }
}

/// A declaration in the model of another dialect: a mask is not lost silently, and a new array needs none.
#[tokio::test]
async fn declarations_in_another_dialect_name_lost_masks() {
    let store = TestStore::new();
    let declare =
        async |at: &str, attributes| store.declare_as(at, &v3_array("int16", json!(0), attributes), Dialect::V2).await;
    let rejected = declare("/a", json!({"_FillValue": -1})).await;
    assert!(matches!(rejected, Err(NodeError::Rejected(NodeRejection::LossyConversion { .. }))), "{rejected:?}");
    declare("/b", json!({"_FillValue": 0})).await.unwrap();
    declare("/c", json!({})).await.unwrap();
    assert_eq!(store.document("b/.zattrs").await, json!({"_ARRAY_DIMENSIONS": ["x"]}));
    assert_eq!(store.document("c/.zarray").await["fill_value"], json!(0));
    // What is described in the other model can be declared again.
    let described = store.nodes.node(&path("/b"), None, Depth::All, Some(Dialect::V3)).await.unwrap();
    let described = described.zom.to_text().to_value().unwrap();
    assert_eq!(described["attributes"], json!({"_FillValue": 0}));
    let again = store.declare_as("/b", &described, Dialect::V2).await.unwrap();
    assert_eq!(again.action, CreateAction::Unchanged);
}

#[tokio::test]
async fn undecoded_arrays_are_listed() {
    let store = TestStore::new();
    let scalar = |attributes: Value| {
        let array = v2_array("<i4", json!(0), attributes);
        with(with(array, "shape", json!([])), "chunks", json!([]))
    };
    let members = json!({
        "zero": v2_array("<i4", json!(0), named(json!({}))),
        "float": v2_array("<f4", json!(1e20), named(json!({}))),
        "time": v2_array("<M8[s]", json!(0), named(json!({}))),
        "scalar": scalar(json!({"_ARRAY_DIMENSIONS": []})),
        "packed": v2_array("<i4", json!(null), json!({"scale_factor": 2})),
        "nan": v2_array("<f4", json!("NaN"), named(json!({}))),
        "nat": v2_array("<m8[s]", json!(i64::MIN), named(json!({}))),
        "null": v2_array("<i4", json!(null), named(json!({}))),
        "bool": v2_array("|b1", json!(false), named(json!({}))),
        "complex": v2_array("<c16", json!([1.0, 0.0]), named(json!({}))),
        "text": v2_array("<U3", json!(""), named(json!({}))),
        "unnamed": v2_array("<i4", json!(7), json!({})),
        "wrong": v2_array("<i4", json!(7), json!({"_ARRAY_DIMENSIONS": ["x", "y"]})),
        "bare": scalar(json!({})),
    });
    store.declare("/g", &v2_group(&members)).await.unwrap();
    let node = store.node("/g", Depth::All).await.unwrap();
    let mut found: Vec<String> = undecoded(&path("/g"), &node.zom).iter().map(ToString::to_string).collect();
    found.sort();
    assert_eq!(found, ["/g/float", "/g/packed", "/g/scalar", "/g/time", "/g/zero"]);
    let v3 = v3_group(
        &json!({"a": v3_array("int16", json!(0), json!({})), "b": v3_array("int16", json!(0), json!({"_FillValue": 0}))}),
    );
    store.declare("/h", &v3).await.unwrap();
    let node = store.node("/h", Depth::All).await.unwrap();
    assert_eq!(undecoded(&path("/h"), &node.zom), [path("/h/b")]);
}
