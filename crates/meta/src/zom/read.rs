//! Parsing of ZOMs.

use bytes::Bytes;
use serde_json::json;

use super::{
    Group, MAX_NODES, MAX_VIOLATIONS, Members, Node, OTHER_DIALECTS, Violation, Zom, ZomError, ZomFormat, aliases,
    defaults, members, with_attributes,
};
use crate::{
    Dialect,
    documents::{
        DocumentError,
        json::{description, into_object, with_description},
        v2, v3,
        write::{StoredNode, join_v2, strip_consolidated},
    },
    json::Json,
    limits::MAX_DOCUMENT_SIZE,
    names::{self, MAX_NAME_LEN},
    text::truncated,
};

/// The member with the members of a group.
const MEMBERS: &str = "members";

/// The required members of arrays.
const REQUIRED_V2: &[&str] = &["shape", "chunks", "dtype", "compressor", "fill_value", "order"];
const REQUIRED_V3: &[&str] = &["shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"];

/// Members that only arrays of v2 have. A node with any of them is an array, so that missing members can be reported.
const ARRAY_ONLY_MEMBERS_V2: &[&str] = &["shape", "chunks", "dtype"];

pub(super) fn zom(json: Bytes) -> Result<Zom, ZomError> {
    if json.len() > MAX_DOCUMENT_SIZE {
        let reason = format!("has more than {MAX_DOCUMENT_SIZE} bytes");
        return Err(ZomError::Invalid { violations: vec![Violation { pointer: String::new(), reason }] });
    }
    let json = without_listing(Json::parse(json).map_err(ZomError::NotJson)?);
    let mut reader = Reader::default();
    let zom = match format(&json) {
        Ok(format) => reader.node(&json, format)?.map(|root| Zom { format, root }),
        Err((name, reason)) => {
            reader.add_member_violation(name, reason)?;
            None
        }
    };
    match zom {
        Some(zom) if reader.violations.is_empty() => Ok(zom),
        _ => Err(ZomError::Invalid { violations: reader.violations }),
    }
}

/// A hierarchy without the listing of children of another dialect that a server has added.
fn without_listing(root: Json) -> Json {
    let is_listing = root.get(OTHER_DIALECTS).is_some_and(|listing| {
        listing.get("must_understand").is_some_and(|must| must == json!(false)) && listing.get("nodes").is_some()
    });
    if is_listing { root.without(OTHER_DIALECTS) } else { root }
}

/// The format of the topmost node; or the name of the member that does not determine it, and the reason.
fn format(root: &Json) -> Result<ZomFormat, (&'static str, &'static str)> {
    if !root.is_object() {
        return Err(("", "is not an object"));
    }
    match root.get("zarr_format") {
        Some(format) if format == json!(2) => Ok(ZomFormat::V2),
        Some(format) if format == json!(3) => Ok(ZomFormat::V3),
        Some(_) => Err(("zarr_format", "is neither 2 nor 3")),
        None if defaults::is_array(root) => Ok(ZomFormat::V3),
        None => Err(("zarr_format", "is missing")),
    }
}

/// The parts of a node's JSON.
struct NodeParts {
    /// The node document.
    document: Json,
    members: Option<Json>,
}

impl NodeParts {
    /// Separates the members in one pass: each level of a tree is a part of all levels above it.
    fn new(json: &Json) -> Self {
        let (document, members) = json.split_off(MEMBERS);
        Self { document, members }
    }

    fn get(&self, name: &str) -> Option<Json> {
        self.document.get(name)
    }
}

/// The type of a node.
#[derive(Clone, Copy)]
enum Kind {
    Array,
    Group,
}

/// The state of the parser.
#[derive(Default)]
struct Reader {
    /// The current location: a JSON pointer.
    pointer: String,
    /// The length of the current node's path from the topmost node, in bytes.
    path_len: usize,
    nodes: usize,
    /// The document of the last valid group, as it is in the text and as it was normalized: most groups of a large tree
    /// have the same, which they then share.
    last_group: Option<(Json, Json)>,
    violations: Vec<Violation>,
}

impl Reader {
    /// Reads a node and its descendants; `None` if any of them is invalid.
    fn node(&mut self, json: &Json, format: ZomFormat) -> Result<Option<Node>, ZomError> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > MAX_NODES {
            return Err(ZomError::TooManyNodes { limit: MAX_NODES });
        }
        if !json.is_object() {
            self.add_violation("", "is not an object")?;
            return Ok(None);
        }
        let parts = NodeParts::new(json);
        match self.kind(&parts, format)? {
            Some(Kind::Array) => Ok(self.array(&parts, format)?.map(Node::Array)),
            Some(Kind::Group) => Ok(self.group(parts, format)?.map(Node::Group)),
            None => Ok(None),
        }
    }

    fn kind(&mut self, node: &NodeParts, format: ZomFormat) -> Result<Option<Kind>, ZomError> {
        match node.get("zarr_format") {
            Some(found) if found == json!(format.number()) => {}
            Some(found) => {
                let found = truncated(found.as_str());
                let reason = format!("is {found} where the topmost node has {}", format.number());
                self.add_member_violation("zarr_format", &reason)?;
                return Ok(None);
            }
            None if defaults::is_array(&node.document) => {}
            None => {
                self.add_member_violation("zarr_format", "is missing")?;
                return Ok(None);
            }
        }
        if format == ZomFormat::V2 {
            let is_array = ARRAY_ONLY_MEMBERS_V2.iter().any(|name| node.get(name).is_some());
            return Ok(Some(if is_array { Kind::Array } else { Kind::Group }));
        }
        let reason = match node.get("node_type").map(|kind| kind.to_text()) {
            Some(Some(kind)) if kind == "array" => return Ok(Some(Kind::Array)),
            Some(Some(kind)) if kind == "group" => return Ok(Some(Kind::Group)),
            Some(_) => "is neither \"array\" nor \"group\"",
            None if defaults::is_array(&node.document) => return Ok(Some(Kind::Array)),
            None => "is missing",
        };
        self.add_member_violation("node_type", reason)?;
        Ok(None)
    }

    fn array(&mut self, node: &NodeParts, format: ZomFormat) -> Result<Option<Json>, ZomError> {
        let before = self.violations.len();
        if node.members.is_some() {
            self.add_member_violation("members", "is not allowed: arrays have no members")?;
        }
        let required = match format {
            ZomFormat::V2 => REQUIRED_V2,
            ZomFormat::V3 => REQUIRED_V3,
        };
        let document = defaults::complete(&node.document, format);
        for name in required.iter().filter(|name| document.get(name).is_none()) {
            self.add_member_violation(name, "is missing")?;
        }
        if self.violations.len() > before {
            return Ok(None);
        }
        self.document(document, Kind::Array, format, None)
    }

    fn group(&mut self, node: NodeParts, format: ZomFormat) -> Result<Option<Group>, ZomError> {
        let NodeParts { document, members } = node;
        let document = self.group_document(document, format)?;
        let members = match members {
            None => None,
            Some(members) if members.is_null() => None,
            Some(members) if members.is_object() => Some(self.members(&members, format)?),
            Some(_) => {
                self.add_member_violation("members", "is neither an object nor null")?;
                None
            }
        };
        Ok(document.map(|document| Group { document, members }))
    }

    /// Validates the document of a group and returns it in normalized form.
    fn group_document(&mut self, text: Json, format: ZomFormat) -> Result<Option<Json>, ZomError> {
        if let Some((last, normalized)) = &self.last_group
            && *last == text
        {
            return Ok(Some(normalized.clone()));
        }
        let (document, renamed) = members::restore_names(&text);
        let document = self.document(document, Kind::Group, format, renamed)?;
        self.last_group = document.clone().map(|document| (text, document));
        Ok(document)
    }

    /// Validates a document and returns it in normalized form. `renamed` is a member with another name in the text.
    fn document(
        &mut self,
        document: Json,
        kind: Kind,
        format: ZomFormat,
        renamed: Option<(String, String)>,
    ) -> Result<Option<Json>, ZomError> {
        let read = normalize(document, kind, format).and_then(|document| match format {
            ZomFormat::V2 => read_v2(&document, kind),
            ZomFormat::V3 => v3::read(document.clone()).map(|_| document),
        });
        match read {
            Ok(document) => Ok(Some(document)),
            Err(error) => self.add_document_violation(&error, renamed).map(|()| None),
        }
    }

    /// Reads the members of a group.
    fn members(&mut self, members: &Json, format: ZomFormat) -> Result<Members<Node>, ZomError> {
        let (pointer_len, path_len) = (self.pointer.len(), self.path_len);
        let mut nodes = Vec::new();
        for member in members.members() {
            let (name, json) = (member.name().unwrap_or_default(), member.value);
            // A longer name is invalid, and truncated in the pointer.
            let location_and_reason = if name.len() > MAX_NAME_LEN { truncated(&name) } else { name.clone() };
            self.pointer.push_str("/members/");
            self.pointer.push_str(&escape_pointer(&location_and_reason));
            self.path_len = path_len.saturating_add(name.len()).saturating_add(usize::from(path_len > 0));
            if let Err(error) = names::check(format.dialect(), &name) {
                self.add_violation("", &format!("has a name that {} does not allow: {}", error.dialect, error.reason))?;
            } else if self.path_len > MAX_NAME_LEN {
                self.add_violation("", &format!("has a path of more than {MAX_NAME_LEN} bytes"))?;
            } else if let Some(node) = self.node(&json, format)? {
                nodes.push((name, node));
            }
            self.pointer.truncate(pointer_len);
            self.path_len = path_len;
        }
        Ok(nodes.into_iter().collect())
    }

    fn add_member_violation(&mut self, name: &str, reason: &str) -> Result<(), ZomError> {
        let slash = if name.is_empty() { "" } else { "/" };
        self.add_violation(&format!("{slash}{name}"), reason)
    }

    /// Records the error of a document. `renamed` is a member with another name in the text.
    fn add_document_violation(
        &mut self,
        error: &DocumentError,
        renamed: Option<(String, String)>,
    ) -> Result<(), ZomError> {
        let (pointer, reason) = location_and_reason(error);
        let pointer = renamed
            .and_then(|(name, shown_name)| {
                let rest = pointer.strip_prefix('/')?.strip_prefix(name.as_str())?;
                (rest.is_empty() || rest.starts_with('/')).then(|| format!("/{shown_name}{rest}"))
            })
            .unwrap_or(pointer);
        self.add_violation(&pointer, &reason)
    }

    /// Records a violation below the current location. Fails once the maximum number is reached.
    fn add_violation(&mut self, pointer: &str, reason: &str) -> Result<(), ZomError> {
        self.violations.push(Violation { pointer: format!("{}{pointer}", self.pointer), reason: reason.to_owned() });
        match self.violations.len() {
            ..MAX_VIOLATIONS => Ok(()),
            _ => Err(ZomError::Invalid { violations: std::mem::take(&mut self.violations) }),
        }
    }
}

/// Escapes a name for a JSON pointer.
pub(super) fn escape_pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Normalizes the aliases of a node document.
fn normalize(document: Json, kind: Kind, format: ZomFormat) -> Result<Json, DocumentError> {
    let known = match (kind, format) {
        (Kind::Array, ZomFormat::V2) => v2::ARRAY_MEMBERS,
        (Kind::Array, ZomFormat::V3) => v3::ARRAY_MEMBERS,
        (Kind::Group, ZomFormat::V2) => return Ok(document),
        (Kind::Group, ZomFormat::V3) => &["extensions"],
    };
    let before = description(&document, known)?;
    let before = into_object(before);
    let mut after = before.clone();
    match kind {
        Kind::Array => aliases::normalize_array(format, &mut after),
        Kind::Group => aliases::normalize_group(&mut after),
    }
    let document = with_description(&document, &before, &after);
    Ok(match (kind, format) {
        (_, ZomFormat::V2) => document,
        (Kind::Array, ZomFormat::V3) => with_attributes(&document),
        (Kind::Group, ZomFormat::V3) => with_attributes(&strip_consolidated(&document)),
    })
}

/// Reads a node document of v2, whose attributes are stored separately.
fn read_v2(document: &Json, kind: Kind) -> Result<Json, DocumentError> {
    let attributes = match document.get("attributes") {
        None => Json::empty_object(),
        Some(attributes) if attributes.is_object() => attributes,
        Some(_) => {
            let (pointer, reason) = ("/attributes".to_owned(), "is not an object".to_owned());
            return Err(DocumentError::Invalid { pointer, reason });
        }
    };
    let document = StoredNode::from_node_document(Dialect::V2, document).document;
    match kind {
        Kind::Array => drop(v2::read_array(document.clone(), attributes.clone())?),
        Kind::Group => drop(v2::read_group(document.clone(), attributes.clone())?),
    }
    Ok(join_v2(&document, &attributes))
}

/// The location of a document's error, and the reason, which continues "the member".
fn location_and_reason(error: &DocumentError) -> (String, String) {
    let at = |pointer: &str, reason: String| (pointer.to_owned(), reason);
    match error {
        DocumentError::TooLarge { .. }
        | DocumentError::TooMuchMemory
        | DocumentError::NotJson(_)
        | DocumentError::UnreadableValue(_)
        | DocumentError::NotAnObject => at("", format!("cannot be read: {error}")),
        DocumentError::WrongFormat { expected, found } => {
            at("/zarr_format", format!("is {found}, expected {expected}"))
        }
        DocumentError::WrongNodeType { found } => {
            at("/node_type", format!("is {found}, neither \"array\" nor \"group\""))
        }
        DocumentError::Missing { pointer } => at(pointer, "is missing".to_owned()),
        DocumentError::Invalid { pointer, reason } => at(pointer, reason.clone()),
        DocumentError::DataType { pointer, source } => at(pointer, format!("is not understood: {source}")),
        DocumentError::FillValue { pointer, source } => at(pointer, format!("does not fit the data type: {source}")),
        DocumentError::Codec { pointer, source } => at(pointer, format!("is not understood: {source}")),
        DocumentError::Extension { pointer, name } => {
            at(pointer, format!("is of the extension {name}, which must be understood but is not supported"))
        }
        DocumentError::Unsupported { pointer, feature, name } => {
            at(pointer, format!("is the {feature} {name}, which is not supported"))
        }
        DocumentError::Attributes(source) => {
            let (pointer, reason) = location_and_reason(source);
            (format!("/attributes{pointer}"), reason)
        }
    }
}
