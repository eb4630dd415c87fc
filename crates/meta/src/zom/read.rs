//! Reading a ZOM that somebody declares.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Group, MAX_NODES, MAX_VIOLATIONS, Node, Version, Violation, Zom, ZomError, aliases, members, memory};
use crate::{
    documents::{DocumentError, json, v2, v3},
    limits::MAX_DOCUMENT,
    names::{self, MAX_NAME_LEN},
    text::shown,
};

/// The most memory that a ZOM takes, as estimated from its text: enough for [`MAX_NODES`] usual arrays.
const MAX_MEMORY: usize = 1 << 30;

/// What every array has to have.
const REQUIRED_V2: &[&str] = &["shape", "chunks", "dtype", "compressor", "fill_value", "order"];
const REQUIRED_V3: &[&str] = &["shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"];

/// What only arrays of v2 have. A node with any of them is one, so that what it lacks can be told.
const ONLY_ARRAYS_V2: &[&str] = &["shape", "chunks", "dtype"];

pub(super) fn zom(json: &[u8]) -> Result<Zom, ZomError> {
    let too_large =
        |reason: String| ZomError::Invalid { violations: vec![Violation { pointer: String::new(), reason }] };
    if json.len() > MAX_DOCUMENT {
        return Err(too_large(format!("has more than {MAX_DOCUMENT} bytes")));
    }
    if memory::estimate(json) > MAX_MEMORY {
        return Err(too_large(format!("takes more than {MAX_MEMORY} bytes of memory")));
    }
    let json = json::parse(json).map_err(ZomError::NotJson)?;
    let mut reader = Reader::default();
    let zom = match version(&json) {
        Ok(version) => reader.node(json, version)?.map(|root| Zom { version, root }),
        Err((name, reason)) => {
            reader.refuse_member(name, reason)?;
            None
        }
    };
    match zom {
        Some(zom) if reader.violations.is_empty() => Ok(zom),
        _ => Err(ZomError::Invalid { violations: reader.violations }),
    }
}

/// Whose the topmost node is; or which of its members does not say so, and why.
fn version(root: &Value) -> Result<Version, (&'static str, &'static str)> {
    let Some(root) = root.as_object() else { return Err(("", "is not an object")) };
    match root.get("zarr_format") {
        Some(format) if *format == 2 => Ok(Version::V2),
        Some(format) if *format == 3 => Ok(Version::V3),
        Some(_) => Err(("zarr_format", "is neither 2 nor 3")),
        None => Err(("zarr_format", "is missing")),
    }
}

/// What a node is.
#[derive(Clone, Copy)]
enum Kind {
    Array,
    Group,
}

/// What was read so far.
#[derive(Default)]
struct Reader {
    /// Where it reads: a JSON pointer.
    pointer: String,
    /// The path of the node there, from the topmost on, has so many bytes.
    path_len: usize,
    nodes: usize,
    violations: Vec<Violation>,
}

impl Reader {
    /// Reads a node with all that is below it; `None` where it is refused, or something below it is.
    fn node(&mut self, json: Value, version: Version) -> Result<Option<Node>, ZomError> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > MAX_NODES {
            return Err(ZomError::TooManyNodes { limit: MAX_NODES });
        }
        let Value::Object(document) = json else {
            self.refuse("", "is not an object")?;
            return Ok(None);
        };
        match self.kind(&document, version)? {
            Some(Kind::Array) => Ok(self.array(document, version)?.map(Node::Array)),
            Some(Kind::Group) => Ok(self.group(document, version)?.map(Node::Group)),
            None => Ok(None),
        }
    }

    fn kind(&mut self, document: &Map<String, Value>, version: Version) -> Result<Option<Kind>, ZomError> {
        match document.get("zarr_format") {
            Some(format) if *format == version.number() => {}
            Some(format) => {
                let found = shown(&format.to_string());
                let reason = format!("is {found} where the topmost node has {}", version.number());
                self.refuse_member("zarr_format", &reason)?;
                return Ok(None);
            }
            None => {
                self.refuse_member("zarr_format", "is missing")?;
                return Ok(None);
            }
        }
        if version == Version::V2 {
            let is_array = ONLY_ARRAYS_V2.iter().any(|name| document.contains_key(*name));
            return Ok(Some(if is_array { Kind::Array } else { Kind::Group }));
        }
        let reason = match document.get("node_type") {
            Some(Value::String(kind)) if kind == "array" => return Ok(Some(Kind::Array)),
            Some(Value::String(kind)) if kind == "group" => return Ok(Some(Kind::Group)),
            Some(_) => "is neither \"array\" nor \"group\"",
            None => "is missing",
        };
        self.refuse_member("node_type", reason)?;
        Ok(None)
    }

    fn array(
        &mut self,
        document: Map<String, Value>,
        version: Version,
    ) -> Result<Option<Map<String, Value>>, ZomError> {
        let before = self.violations.len();
        if document.contains_key("members") {
            self.refuse_member("members", "is there, and arrays have no nodes below them")?;
        }
        let required = match version {
            Version::V2 => REQUIRED_V2,
            Version::V3 => REQUIRED_V3,
        };
        for name in required.iter().filter(|name| !document.contains_key(**name)) {
            self.refuse_member(name, "is missing")?;
        }
        if self.violations.len() > before {
            return Ok(None);
        }
        self.document(document, Kind::Array, version, None)
    }

    fn group(&mut self, mut document: Map<String, Value>, version: Version) -> Result<Option<Group>, ZomError> {
        let members = document.shift_remove("members").unwrap_or_default();
        let (document, renamed) = members::hidden(document);
        let document = self.document(document, Kind::Group, version, renamed)?;
        let members = match members {
            Value::Null => None,
            Value::Object(members) => Some(self.members(members, version)?),
            _ => {
                self.refuse_member("members", "is neither an object nor null")?;
                None
            }
        };
        Ok(document.map(|document| Group { document, members }))
    }

    /// Reads a document into its model, and gives it back as it is then. One of its members may have another name in the text.
    fn document(
        &mut self,
        mut document: Map<String, Value>,
        kind: Kind,
        version: Version,
        renamed: Option<(String, String)>,
    ) -> Result<Option<Map<String, Value>>, ZomError> {
        match kind {
            Kind::Array => aliases::normalise_array(version, &mut document),
            Kind::Group => aliases::normalise_group(version, &mut document),
        }
        let read = match version {
            Version::V2 => read_v2(document, kind),
            Version::V3 => v3::read(Value::Object(document)).map(|node| match node {
                v3::Node::Array(model) => model.document,
                v3::Node::Group(model) => model.document,
            }),
        };
        match read {
            Ok(document) => Ok(Some(document)),
            Err(error) => self.refuse_document(&error, renamed).map(|()| None),
        }
    }

    /// Reads the nodes directly below a group.
    fn members(&mut self, members: Map<String, Value>, version: Version) -> Result<BTreeMap<String, Node>, ZomError> {
        let (pointer_len, path_len) = (self.pointer.len(), self.path_len);
        let mut nodes = BTreeMap::new();
        for (name, json) in members {
            // What is longer cannot be a name, and is not worth repeating.
            let told = if name.len() > MAX_NAME_LEN { shown(&name) } else { name.clone() };
            self.pointer.push_str("/members/");
            self.pointer.push_str(&escaped(&told));
            self.path_len = path_len.saturating_add(name.len()).saturating_add(usize::from(path_len > 0));
            if let Err(error) = names::check(version.dialect(), &name) {
                self.refuse("", &format!("has a name that {} does not allow: {}", error.dialect, error.reason))?;
            } else if self.path_len > MAX_NAME_LEN {
                self.refuse("", &format!("has a path of more than {MAX_NAME_LEN} bytes"))?;
            } else if let Some(node) = self.node(json, version)? {
                nodes.insert(name, node);
            }
            self.pointer.truncate(pointer_len);
            self.path_len = path_len;
        }
        Ok(nodes)
    }

    fn refuse_member(&mut self, name: &str, reason: &str) -> Result<(), ZomError> {
        let slash = if name.is_empty() { "" } else { "/" };
        self.refuse(&format!("{slash}{name}"), reason)
    }

    /// Notes what is wrong with a document. One of its members may have another name in the text.
    fn refuse_document(&mut self, error: &DocumentError, renamed: Option<(String, String)>) -> Result<(), ZomError> {
        let (pointer, reason) = told(error);
        let pointer = renamed
            .and_then(|(name, shown_name)| {
                let rest = pointer.strip_prefix('/')?.strip_prefix(name.as_str())?;
                (rest.is_empty() || rest.starts_with('/')).then(|| format!("/{shown_name}{rest}"))
            })
            .unwrap_or(pointer);
        self.refuse(&pointer, &reason)
    }

    /// Notes what is wrong at a place below the current one. Ends the reading where there is enough to tell.
    fn refuse(&mut self, pointer: &str, reason: &str) -> Result<(), ZomError> {
        self.violations.push(Violation { pointer: format!("{}{pointer}", self.pointer), reason: reason.to_owned() });
        match self.violations.len() {
            ..MAX_VIOLATIONS => Ok(()),
            _ => Err(ZomError::Invalid { violations: std::mem::take(&mut self.violations) }),
        }
    }
}

/// A name as a part of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Reads a node document of v2, whose attributes are no part of the document that is stored.
fn read_v2(mut document: Map<String, Value>, kind: Kind) -> Result<Map<String, Value>, DocumentError> {
    let attributes = match document.shift_remove("attributes") {
        None => Map::new(),
        Some(Value::Object(attributes)) => attributes,
        Some(_) => {
            let (pointer, reason) = ("/attributes".to_owned(), "is not an object".to_owned());
            return Err(DocumentError::Invalid { pointer, reason });
        }
    };
    let document = Value::Object(document);
    let (mut document, attributes) = match kind {
        Kind::Array => v2::read_array(document, attributes).map(|model| (model.document, model.attributes))?,
        Kind::Group => v2::read_group(document, attributes).map(|model| (model.document, model.attributes))?,
    };
    document.insert("attributes".to_owned(), Value::Object(attributes));
    Ok(document)
}

/// Where a document is wrong, and how, as it continues "the member".
fn told(error: &DocumentError) -> (String, String) {
    let at = |pointer: &str, reason: String| (pointer.to_owned(), reason);
    match error {
        DocumentError::TooLarge { .. }
        | DocumentError::TooManyValues
        | DocumentError::NotJson(_)
        | DocumentError::NotAnObject => at("", format!("cannot be read: {error}")),
        DocumentError::Format { expected, found } => {
            at("/zarr_format", format!("is {found} where it has to be {expected}"))
        }
        DocumentError::NodeType { found } => at("/node_type", format!("is {found}, neither \"array\" nor \"group\"")),
        DocumentError::Missing { pointer } => at(pointer, "is missing".to_owned()),
        DocumentError::Invalid { pointer, reason } => at(pointer, reason.clone()),
        DocumentError::DataType { pointer, source } => at(pointer, format!("is not understood: {source}")),
        DocumentError::FillValue { pointer, source } => at(pointer, format!("does not fit the data type: {source}")),
        DocumentError::Codec { pointer, source } => at(pointer, format!("is not understood: {source}")),
        DocumentError::Extension { pointer, name } => {
            at(pointer, format!("is of the extension {name}, which has to be understood and is not supported"))
        }
        DocumentError::Unsupported { pointer, feature, name } => {
            at(pointer, format!("is the {feature} {name}, which is not supported"))
        }
        DocumentError::Attributes(source) => {
            let (pointer, reason) = told(source);
            (format!("/attributes{pointer}"), reason)
        }
    }
}
