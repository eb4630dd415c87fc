use super::*;

fn rewritten(document: &Value, to: Dialect) -> (ArrayModel, ArrayModel, Value, Vec<String>) {
    let original = model(Dialect::V3, document);
    let converted = array(&original, to, ChunkPolicy::Rewritten, ArrayContext::default()).unwrap();
    let losses = without_masks(converted.losses).into_iter();
    let losses = losses.map(|loss| format!("{} {}", loss.pointer, loss.property)).collect();
    (original, read(to, &converted.document), value(&converted.document), losses)
}

fn shards(inner: Value, codecs: Value) -> Value {
    json!({"name": "sharding_indexed", "configuration": {"chunk_shape": inner, "codecs": codecs, "index_location": "end",
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}})
}

fn bytes() -> Value {
    json!({"name": "bytes", "configuration": {"endian": "little"}})
}

const SHARDS: &str = "the shards: each of their chunks is stored by itself";

#[test]
fn chunks_leave_their_shards_if_the_dialect_has_none() {
    let gzip = json!({"name": "gzip", "configuration": {"level": 5}});
    let grid = json!({"name": "regular", "configuration": {"chunk_shape": [4, 6]}});
    let document = v3_with(json!({"chunk_grid": grid, "codecs": [shards(json!([2, 3]), json!([bytes(), gzip]))]}));
    for to in [Dialect::V2, Dialect::Draft] {
        let (original, copy, stored, losses) = rewritten(&document, to);
        assert_eq!(copy.grid.regular_shape(), Some(vec![2, 3]));
        assert!(!keeps_chunks(&original, &copy), "{to}");
        let name = if to == Dialect::V2 { &stored["compressor"]["id"] } else { &stored["compressor"]["codec"] };
        assert!(name.as_str().unwrap().contains("gzip"), "{stored}");
        assert_eq!(losses, [format!("/codecs/0 {SHARDS}")]);
    }
}

#[test]
fn shards_as_large_as_their_chunks_are_rewritten_too() {
    let document = v3_with(json!({"codecs": [shards(json!([2, 3]), json!([bytes()]))]}));
    let (original, copy, ..) = rewritten(&document, Dialect::V2);
    assert_eq!(original.grid, copy.grid);
    assert!(!keeps_chunks(&original, &copy));
}

#[test]
fn codecs_around_shards_are_those_of_the_chunks() {
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let checksum = json!({"name": "numcodecs.crc32", "configuration": {}});
    let nested = shards(json!([6, 2]), json!([shards(json!([3, 2]), json!([bytes(), gzip]))]));
    let grid = json!({"name": "regular", "configuration": {"chunk_shape": [4, 6]}});
    let document = v3_with(json!({"chunk_grid": grid, "codecs": [transpose, nested, checksum]}));
    let (_, copy, stored, losses) = rewritten(&document, Dialect::V2);
    // The shards are transposed, and so are the shapes of the chunks in them.
    assert_eq!(copy.grid.regular_shape(), Some(vec![2, 3]));
    assert_eq!(stored["order"], "F");
    let ids = |codecs: &Value| codecs.as_array().unwrap().iter().map(|codec| codec["id"].clone()).collect::<Vec<_>>();
    let ids = [ids(&stored["filters"]), vec![stored["compressor"]["id"].clone()]].concat();
    assert_eq!(ids, ["gzip", "crc32"]);
    assert_eq!(losses, [format!("/codecs/1 {SHARDS}")]);
}

#[test]
fn different_chunk_shapes_become_the_longest() {
    let grid = json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, 3, 1], [7]]}});
    let (original, copy, _, losses) = rewritten(&v3_with(json!({"chunk_grid": grid})), Dialect::V2);
    assert_eq!(copy.grid.regular_shape(), Some(vec![3, 7]));
    assert!(!keeps_chunks(&original, &copy));
    assert_eq!(losses, ["/chunk_grid that chunks have different shapes: all get the longest extents"]);
}

#[test]
fn codec_in_a_shard_that_the_dialect_does_not_have_is_named_by_its_place() {
    let document = v3_with(json!({"codecs": [shards(json!([1, 3]), json!([bytes(), {"name": "lz5"}]))]}));
    let error = array(&model(Dialect::V3, &document), Dialect::V2, ChunkPolicy::Rewritten, ArrayContext::default());
    let error = error.unwrap_err();
    assert_eq!(error.pointer, "/codecs/0/configuration/codecs/1");
    assert_eq!(error.reason, "is the codec lz5, which numcodecs does not have");
}

#[test]
fn chunks_that_both_dialects_have_are_copied_unchanged() {
    for document in
        [v3_with(json!({})), v3_with(json!({"codecs": [bytes(), {"name": "gzip", "configuration": {"level": 5}}]}))]
    {
        let (original, copy, _, losses) = rewritten(&document, Dialect::V2);
        assert!(keeps_chunks(&original, &copy));
        assert_eq!(losses, [""; 0]);
    }
}
