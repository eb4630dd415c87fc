//! Metadata documents of every dialect, data types and fill values.

use bytes::Bytes;
use serde_json::{Value, json};
use zarrd_codec::{ChainError, ChunkRepresentation, CodecChain, Elements, VariableBuilder};
use zarrd_meta::{
    ArrayModel, Dialect,
    codecs::CodecSpec,
    data_type::{DataType, Layout, StoredOrder, TypeError, V2Context, parse_draft, parse_v2, parse_v3},
    documents::{ConsolidatedMetadata, DocumentError, GroupModel, draft, v2, v3},
    extensions::{Extension, ExtensionEffect},
    limits::{MAX_ELEMENT_SIZE, MAX_EXTENT, MAX_RANK},
};

/// The maximum size of elements that are written as JSON, which takes many times their size.
const WRITTEN: usize = 1 << 12;

/// The maximum size of chunks that are encoded and decoded.
const ENCODED: u64 = 1 << 16;

/// Parses documents and their contents. The first byte selects the kind; two documents are separated by a zero byte,
/// which is not valid JSON.
pub fn metadata(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let mut parts = rest.splitn(2, |&byte| byte == 0);
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    match choice % 12 {
        0 => array(v2::array(bytes(first), second.map(bytes)), |model| {
            v2::array(model.document.to_bytes(), second.map(bytes))
        }),
        1 => group(v2::group(bytes(first), second.map(bytes)), |model| {
            v2::group(model.document.to_bytes(), second.map(bytes))
        }),
        2 => consolidated(&v2::consolidated(bytes(rest))),
        3 => node(rest),
        4 => entry_point(rest),
        5 => array(draft::array(bytes(rest), "a/b"), |model| draft::array(model.document.to_bytes(), "a/b")),
        6 => group(draft::group(bytes(rest)), |model| draft::group(model.document.to_bytes())),
        7 => values(first, second, Dialect::V3, |json| Ok((parse_v3(json)?, StoredOrder::Little))),
        8 => values(first, second, Dialect::Draft, parse_draft),
        9 => values(first, second, Dialect::V2, |json| parse_v2(json, V2Context::default())),
        10 => values(first, second, Dialect::V2, |json| {
            parse_v2(json, V2Context { object_codec: Some(&object_codec(choice / 12)) })
        }),
        _ => codec_spec(rest),
    }
}

fn bytes(text: &[u8]) -> Bytes {
    Bytes::copy_from_slice(text)
}

fn node(zarr_json: &[u8]) {
    match v3::node(bytes(zarr_json)) {
        Ok(v3::Node::Array(model)) => array(Ok(*model), |model| match v3::node(model.document.to_bytes())? {
            v3::Node::Array(again) => Ok(*again),
            v3::Node::Group(_) => panic!("an array has become a group"),
        }),
        Ok(v3::Node::Group(model)) => group(Ok(model), |model| match v3::node(model.document.to_bytes())? {
            v3::Node::Group(again) => Ok(again),
            v3::Node::Array(_) => panic!("a group has become an array"),
        }),
        Err(error) => drop(error.to_string()),
    }
}

fn entry_point(zarr_json: &[u8]) {
    let is_entry_point = draft::is_entry_point(&bytes(zarr_json));
    let Ok(entry_point) = draft::entry_point(bytes(zarr_json)) else { return };
    assert!(is_entry_point);
    for path in ["", "a/b"] {
        assert!(entry_point.array_key(path).ends_with(&entry_point.metadata_key_suffix));
        assert_ne!(entry_point.array_key(path), entry_point.group_key(path));
    }
    assert_eq!(draft::entry_point(entry_point.document.to_bytes()).expect("a document that was read"), entry_point);
}

fn consolidated(consolidated: &Result<ConsolidatedMetadata, DocumentError>) {
    match consolidated {
        Ok(consolidated) => {
            let allowed = |key: &String| !key.starts_with('/') && !key.split('/').any(|segment| segment == "..");
            assert!(consolidated.documents().all(|(key, _)| allowed(&key)));
        }
        Err(error) => drop(error.to_string()),
    }
}

fn group(model: Result<GroupModel, DocumentError>, again: impl Fn(&GroupModel) -> Result<GroupModel, DocumentError>) {
    match model {
        Ok(model) => {
            assert!(model.extensions.iter().all(is_readable));
            assert_eq!(again(&model).expect("a document that was read"), model);
        }
        Err(error) => drop(error.to_string()),
    }
}

fn array(model: Result<ArrayModel, DocumentError>, again: impl Fn(&ArrayModel) -> Result<ArrayModel, DocumentError>) {
    let model = match model {
        Ok(model) => model,
        Err(error) => return drop(error.to_string()),
    };
    consistent(&model);
    let again = again(&model).expect("a document that was read");
    assert_eq!(again.document, model.document);
    assert_eq!((&again.shape, &again.grid, &again.codecs), (&model.shape, &model.grid, &model.codecs));
    assert_eq!((&again.data_type, &again.fill_value), (&model.data_type, &model.fill_value));
    assert_eq!((&again.dimension_names, &again.attributes), (&model.dimension_names, &model.attributes));
    data_type(&model.data_type);
    for codec in &model.codecs {
        assert_eq!(CodecSpec::parse_v3(&codec.to_v3()).as_ref(), Ok(codec));
    }
    chunks(&model);
}

/// Invariants of every array.
fn consistent(model: &ArrayModel) {
    let rank = model.shape.len();
    assert!(rank <= MAX_RANK && model.shape.iter().all(|&extent| extent <= MAX_EXTENT));
    assert_eq!((model.grid.dimensions().len(), model.dimension_names.len()), (rank, rank));
    for (dimension, &extent) in model.grid.dimensions().iter().zip(&model.shape) {
        assert!(dimension.covers(extent));
        let pieces = dimension.num_chunks(extent);
        assert_eq!(pieces == 0, extent == 0);
        if let Some(last) = extent.checked_sub(1) {
            assert_eq!(dimension.chunk_index(last), Some(pieces - 1));
        }
    }
    assert!(model.extensions.iter().all(is_readable));
    assert!(model.fill_value.len() <= MAX_ELEMENT_SIZE);
    assert!(model.data_type.fixed_size().is_none_or(|size| size == model.fill_value.len()));
    assert!(!model.chunk_keys.key(&vec![0; rank]).is_empty());
}

/// Resolves the chain for the first chunk and, if it is small, encodes a chunk of fill values.
fn chunks(model: &ArrayModel) {
    let Some(shape) = model.grid.chunk_shape(&vec![0; model.shape.len()]) else { return };
    let representation = match ChunkRepresentation::new(model.data_type.clone(), shape, model.fill_value.clone()) {
        Ok(representation) => representation,
        Err(error) => return assert!(matches!(error, ChainError::ChunkTooLarge)),
    };
    let chain = match CodecChain::new(&model.codecs, representation.clone()) {
        Ok(chain) => chain,
        Err(error) => return drop(error.to_string()),
    };
    let size = model.fill_value.len() as u64 + 8;
    if representation.num_elements().saturating_mul(size) > ENCODED
        || chain.working_memory().is_some_and(|len| len > 64 * ENCODED)
    {
        return;
    }
    drop(chain.decode(Bytes::new(), ENCODED));
    let Ok(encoded) = chain.encode(full(&representation)) else { return };
    if let Some(len) = chain.encoded_size() {
        assert!(encoded.len() as u64 <= len.max() && len.exact().is_none_or(|exact| exact == encoded.len() as u64));
    }
    let decoded = chain.decode(encoded, 64 * ENCODED).expect("a chunk that was encoded");
    match decoded {
        Elements::Fixed(bytes) => assert_eq!(Some(bytes.len() as u64), representation.fixed_size()),
        Elements::Variable(elements) => assert_eq!(elements.len() as u64, representation.num_elements()),
    }
}

/// A chunk of fill values.
fn full(chunk: &ChunkRepresentation) -> Elements {
    let all = std::iter::repeat_n(chunk.fill_value(), chunk.num_elements() as usize);
    if chunk.fixed_size().is_some() {
        return Elements::Fixed(all.flatten().copied().collect::<Vec<_>>().into());
    }
    let mut elements = VariableBuilder::new(u64::MAX);
    all.for_each(|element| elements.push(element).expect("no limit applies"));
    Elements::Variable(elements.finish())
}

/// The first filter of an object array.
fn object_codec(choice: u8) -> CodecSpec {
    let names = ["vlen-utf8", "vlen-bytes", "vlen-array", "json2", "categorize", "pickle"];
    let name = names.iter().cycle().nth(usize::from(choice)).expect("they begin again");
    CodecSpec::numcodecs(name, [("dtype".to_owned(), json!("<i4"))].into_iter().collect())
}

/// Parses a data type and a fill value for it.
fn values(
    data_type_json: &[u8],
    fill_value: Option<&[u8]>,
    dialect: Dialect,
    parse: impl Fn(&Value) -> Result<(DataType, StoredOrder), TypeError>,
) {
    let Ok(json) = serde_json::from_slice::<Value>(data_type_json) else { return };
    let (found, order) = match parse(&json) {
        Ok(found) => found,
        Err(error) => return drop(error.to_string()),
    };
    data_type(&found);
    match dialect {
        Dialect::V3 => assert_eq!(parse_v3(&found.to_v3()).as_ref(), Ok(&found)),
        Dialect::V2 | Dialect::Draft => {
            let again = parse(&found.to_v2(&order).expect("a type that was read"));
            assert_eq!(again, Ok((found.clone(), order.clone())));
        }
    }
    let Some(Ok(json)) = fill_value.map(serde_json::from_slice::<Value>) else { return };
    for dialect in Dialect::ALL {
        match found.stored_fill_value(&json, dialect, &order) {
            Ok(element) => value(&found, &element),
            Err(error) => drop(error.to_string()),
        }
    }
    let mut element = Vec::new();
    match found.parse_json(&json, &mut element) {
        Ok(()) => value(&found, &element),
        Err(_) => assert!(element.is_empty()),
    }
}

/// Invariants of every data type.
fn data_type(data_type: &DataType) {
    let zero = data_type.zero();
    if let Layout::Fixed(layout) = data_type.layout() {
        assert_eq!(zero.len(), layout.size);
        let mut end = 0;
        for run in &layout.words {
            assert!(run.width >= 2 && run.count >= 1 && run.offset >= end);
            end = run.offset + run.width * run.count;
        }
        assert!(end <= layout.size && layout.size <= MAX_ELEMENT_SIZE);
        assert!(data_type.number().is_none_or(|number| number.size() == layout.size));
    }
    value(data_type, &zero);
}

/// Writes an element as JSON and reads it back.
fn value(data_type: &DataType, element: &[u8]) {
    assert!(data_type.fixed_size().is_none_or(|size| size == element.len()));
    if element.len() > WRITTEN {
        return;
    }
    let _ = data_type.to_f64(element);
    // Structs may contain bytes that another byte or text represents: booleans of 2, words that are not code points.
    let exact = !data_type.name().contains("struct");
    let read = |text: &[u8]| {
        let json = serde_json::from_slice::<Value>(text).expect("JSON that was written");
        let mut again = Vec::new();
        data_type.parse_json(&json, &mut again).map(|()| again).expect("an element that was written")
    };
    let mut text = Vec::new();
    data_type.write_json(element, &mut text);
    let again = read(&text);
    assert!(!exact || again == element);
    let mut text_again = Vec::new();
    data_type.write_json(&again, &mut text_again);
    assert_eq!(text_again, text);
    for dialect in Dialect::ALL {
        let Ok(json) = data_type.fill_value_json(element, dialect) else { continue };
        let again = data_type.fill_value(&json, dialect).expect("a fill value that was written");
        assert!(!exact || again == element, "{json} of {data_type} in {dialect}");
        assert_eq!(data_type.fill_value_json(&again, dialect), Ok(json));
    }
}

fn codec_spec(json: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(json) else { return };
    match CodecSpec::parse_v3(&json) {
        Ok(spec) => {
            assert_eq!(CodecSpec::parse_v3(&spec.to_v3()), Ok(spec));
        }
        Err(error) => drop(error.to_string()),
    }
}

/// True if the extension is known or need not be understood.
fn is_readable(extension: &Extension) -> bool {
    !extension.must_understand || extension.effect != ExtensionEffect::Ignored
}
