//! JSON of the worst shapes: deep, wide, with many small values, or with values that are slow to parse.

use serde_json::json;

use super::genome::{Gene, Genome};

/// The form of a JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Objects with one member with an empty name.
    Members,
    /// Nulls.
    Nulls,
    /// Empty lists.
    Lists,
    /// Empty objects.
    Objects,
    /// Empty strings.
    Strings,
    /// One object of many members.
    Wide,
    /// One object with the same member repeated.
    Repeated,
    /// Lists nested to the maximum depth, repeated.
    Deep,
    /// Objects nested to the maximum depth, repeated.
    DeepObjects,
    /// Numbers with many digits.
    Digits,
    /// Numbers with an exponent.
    Exponents,
    /// One long string.
    Long,
    /// One long string of escapes.
    Escapes,
    /// Whitespace.
    Blank,
}

/// The place of a form within the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    /// The attributes of a group.
    Attributes,
    /// The attributes of an array.
    ArrayAttributes,
    /// The document itself.
    Document,
    /// The members of a group, which are not valid nodes.
    Members,
    /// The dimension names of an array.
    Names,
    /// The fill value.
    Fill,
    /// The codecs.
    Codecs,
    /// A codec's configuration.
    Configuration,
    /// The data type.
    DataType,
    /// The shape.
    Shape,
    /// The member of an extension that need not be understood.
    Extension,
}

/// The maximum nesting depth.
const MAX_DEPTH: usize = 100;

const FORMS: [Form; 14] = [
    Form::Members,
    Form::Nulls,
    Form::Lists,
    Form::Objects,
    Form::Strings,
    Form::Wide,
    Form::Repeated,
    Form::Deep,
    Form::DeepObjects,
    Form::Digits,
    Form::Exponents,
    Form::Long,
    Form::Escapes,
    Form::Blank,
];

const LOCATIONS: [Location; 11] = [
    Location::Attributes,
    Location::ArrayAttributes,
    Location::Document,
    Location::Members,
    Location::Names,
    Location::Fill,
    Location::Codecs,
    Location::Configuration,
    Location::DataType,
    Location::Shape,
    Location::Extension,
];

/// The sizes of a body, in bytes.
const SIZES: [usize; 5] = [1 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// A document for `/node`: a tree, or a malformed node.
pub(super) fn tree(genome: &Genome) -> String {
    let size = genome.pick(Gene::Size, &SIZES);
    match genome.pick(Gene::Kind, &[0, 1, 2, 3, 4, 5, 5, 5, 5]) {
        0 => groups(size, genome),
        1 => arrays(size, genome),
        2 => chain(size, genome),
        3 => v2(size, genome),
        4 => branches(size),
        _ => malformed_node(size, genome),
    }
}

/// A merge patch.
pub(super) fn patch(genome: &Genome) -> String {
    let size = genome.pick(Gene::Size, &SIZES);
    let text = of_form(genome.pick(Gene::Format, &FORMS), size);
    match genome.pick(Gene::Kind, &[0, 0, 1, 2, 3]) {
        0 => format!(r#"{{"attributes":{{"a":{text}}}}}"#),
        1 => format!(r#"{{"dimension_names":{text}}}"#),
        2 => format!(r#"{{"shape":{text}}}"#),
        _ => r#"{"shape":[0]}"#.to_owned(),
    }
}

/// Elements nested to the chosen depth.
pub(super) fn elements(genome: &Genome) -> String {
    of_form(genome.pick(Gene::Format, &FORMS), genome.pick(Gene::Size, &SIZES))
}

fn name(genome: &Genome, number: usize) -> String {
    format!("{number}{}", "n".repeat(genome.pick(Gene::Name, &[0, 20, 200])))
}

fn repeated(size: usize, entry: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let next = entry(number);
        if number > 0 && text.len() + next.len() > size {
            break;
        }
        if number > 0 {
            text.push(',');
        }
        text.push_str(&next);
    }
    text
}

fn groups(size: usize, genome: &Genome) -> String {
    let members =
        repeated(size, |number| format!(r#""{}":{{"zarr_format":3,"node_type":"group"}}"#, name(genome, number)));
    format!(r#"{{"zarr_format":3,"node_type":"group","members":{{{members}}}}}"#)
}

fn array(genome: &Genome) -> String {
    let rank = genome.pick(Gene::Rank, &[1, 0, 8, 64]);
    let filters = genome.pick(Gene::Repeat, &[0, 1, 4, 30]);
    let order: Vec<usize> = (0..rank).rev().collect();
    let mut codecs = vec![json!({"name": "transpose", "configuration": {"order": order}}); filters];
    codecs.push(json!({"name": "bytes"}));
    json!({"zarr_format": 3, "node_type": "array", "shape": vec![1; rank], "data_type": "uint8", "fill_value": 0,
        "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": vec![1; rank]}},
        "chunk_key_encoding": {"name": "default"}})
    .to_string()
}

fn arrays(size: usize, genome: &Genome) -> String {
    let array = array(genome);
    let members = repeated(size, |number| format!(r#""{}":{array}"#, name(genome, number)));
    format!(r#"{{"zarr_format":3,"node_type":"group","members":{{{members}}}}}"#)
}

/// Nested groups, to the maximum depth.
fn chain(size: usize, genome: &Genome) -> String {
    let open = r#"{"zarr_format":3,"node_type":"group","members":{"#;
    let depth = genome.pick(Gene::Depth, &[20, 40, 60, 1000]).min(size / (open.len() + 8));
    let one = [open, r#""a":"#].concat().repeat(depth);
    format!(r#"{one}{{"zarr_format":3,"node_type":"group"}}{}"#, "}}".repeat(depth))
}

/// Several chains side by side.
fn branches(size: usize) -> String {
    let chain = chain(2000, &Genome::plain(super::genome::Operation::NodePut));
    let members = repeated(size, |number| format!(r#""{number}":{chain}"#));
    format!(r#"{{"zarr_format":3,"node_type":"group","members":{{{members}}}}}"#)
}

fn v2(size: usize, genome: &Genome) -> String {
    let dtype = match genome.pick(Gene::DataType, &[0, 1, 2]) {
        0 => json!("<f8"),
        1 => json!((0..20).map(|field| json!([format!("f{field}"), "<i4"])).collect::<Vec<_>>()),
        _ => json!("|O"),
    };
    let filters = if dtype == json!("|O") { json!([{"id": "vlen-utf8"}]) } else { json!(null) };
    let array = json!({"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": dtype, "compressor": null,
        "fill_value": null,
        "order": "C", "filters": filters});
    let members = repeated(size, |number| format!(r#""{}":{array}"#, name(genome, number)));
    format!(r#"{{"zarr_format":2,"attributes":{{}},"members":{{{members}}}}}"#)
}

fn malformed_node(size: usize, genome: &Genome) -> String {
    let text = of_form(genome.pick(Gene::Format, &FORMS), size);
    let array = |shape: &str, data_type: &str, fill: &str, codecs: &str, more: &str| {
        format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":{shape},"data_type":{data_type},"fill_value":{fill},"codecs":{codecs},"chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":{shape}}}}},"chunk_key_encoding":{{"name":"default"}}{more}}}"#
        )
    };
    let [shape, uint8, bytes] = ["[1]", r#""uint8""#, r#"[{"name":"bytes"}]"#];
    match genome.pick(Gene::Depth, &LOCATIONS) {
        Location::Attributes => format!(r#"{{"zarr_format":3,"node_type":"group","attributes":{{"a":{text}}}}}"#),
        Location::Document => text,
        Location::Members => format!(r#"{{"zarr_format":3,"node_type":"group","members":{text}}}"#),
        Location::ArrayAttributes => array(shape, uint8, "0", bytes, &format!(r#","attributes":{{"a":{text}}}"#)),
        Location::Names => array(shape, uint8, "0", bytes, &format!(r#","dimension_names":{text}"#)),
        Location::Fill => array(shape, uint8, &text, bytes, ""),
        Location::Codecs => array(shape, uint8, "0", &text, ""),
        Location::Configuration => {
            array(shape, uint8, "0", &format!(r#"[{{"name":"bytes","configuration":{text}}}]"#), "")
        }
        Location::DataType => array(shape, &text, "0", bytes, ""),
        Location::Shape => array(&text, uint8, "0", bytes, ""),
        Location::Extension => {
            array(shape, uint8, "0", bytes, &format!(r#","x":{{"must_understand":false,"a":{text}}}"#))
        }
    }
}

fn of_form(form: Form, size: usize) -> String {
    let list = |entry: &str| format!("[{}]", repeated(size, |_| entry.to_owned()));
    match form {
        Form::Members => list(r#"{"":0}"#),
        Form::Nulls => list("0"),
        Form::Lists => list("[]"),
        Form::Objects => list("{}"),
        Form::Strings => list(r#""""#),
        Form::Wide => format!("{{{}}}", repeated(size, |number| format!(r#""{number:x}":0"#))),
        Form::Repeated => format!("{{{}}}", repeated(size, |_| r#""":0"#.to_owned())),
        Form::Deep => list(&["[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH)].concat()),
        Form::DeepObjects => list(&[r#"{"":"#.repeat(MAX_DEPTH), "0".to_owned(), "}".repeat(MAX_DEPTH)].concat()),
        Form::Digits => list(&["0.", &"1234567890".repeat(70)].concat()),
        Form::Exponents => list("1e-300"),
        Form::Long => format!(r#""{}""#, "x".repeat(size)),
        Form::Escapes => format!(r#""{}""#, r"\u0041".repeat(size / 6)),
        Form::Blank => format!("[{}]", " ".repeat(size)),
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};
    use serde_json::Value;

    use super::{super::genome::Operation, *};

    #[test]
    fn every_document_form_is_json_of_the_requested_size() {
        for form in FORMS {
            for size in [2000, 60_000] {
                let text = of_form(form, size);
                // A single entry may exceed `size`.
                assert!(text.len() > size / 4 && text.len() < 2 * size + 100, "{form:?}: {} of {size}", text.len());
                serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{form:?}: {error}"));
            }
        }
    }

    #[test]
    fn trees_are_valid_json_except_too_deep_ones() {
        let mut random = StdRng::seed_from_u64(3);
        for _ in 0..100 {
            let genome = Genome::random(Operation::NodePut, &mut random).with(Gene::Size, 0);
            for text in [tree(&genome), patch(&genome), elements(&genome)] {
                let read = serde_json::from_str::<Value>(&text);
                let deep = read.as_ref().is_err_and(|error| error.to_string().contains("recursion"));
                assert!(read.is_ok() || deep, "{text}");
            }
        }
    }
}
