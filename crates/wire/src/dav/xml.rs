//! Documents of requests: XML with bounds, without document types and entities of its own.

use quick_xml::{
    NsReader,
    events::{BytesStart, Event},
    name::{Namespace, ResolveResult},
};

/// The maximum size of a document, in bytes.
pub const MAX_XML_SIZE: usize = 16 << 10;
/// The maximum number of properties that a document names.
pub const MAX_PROPERTIES: usize = 64;
/// The maximum nesting of elements.
pub(super) const MAX_DEPTH: usize = 16;
pub(super) const DAV_NAMESPACE: &str = "DAV:";

/// The reason why a body is not the document that the method takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// The body is not well-formed XML with namespaces, in UTF-8.
    #[error("the body is not well-formed XML in UTF-8")]
    Malformed,
    /// The document has a type declaration, or a reference to an entity.
    #[error("the body has a document type or an entity")]
    DocumentType,
    /// Elements are nested too deeply.
    #[error("the elements of the body are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// The document is of another kind than this one.
    #[error("the body is not a `{0}` of the namespace `DAV:`")]
    OtherDocument(&'static str),
    /// The request is for neither all properties, nor their names, nor some of them.
    #[error("`propfind` has none of `allprop`, `propname` and `prop`, or several of them")]
    NoRequest,
    /// The request changes no property.
    #[error("`propertyupdate` has no `set` or `remove` with a `prop` that names a property")]
    NoChange,
    /// The document names too many properties.
    #[error("the body names more than {MAX_PROPERTIES} properties")]
    TooManyProperties,
}

/// The name of an element, which is valid in XML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementName {
    /// The namespace, which may be empty.
    pub(super) namespace: String,
    /// The name within the namespace.
    pub(super) local: String,
}

/// What is made of the elements of a document, in their order.
pub(super) trait Elements {
    /// An element starts, at a depth of 1 or more below the root.
    fn open(&mut self, depth: usize, name: ElementName) -> Result<(), XmlError>;

    /// The element at this depth has ended.
    fn close(&mut self, depth: usize);
}

/// Reads a document whose root is `root` of the namespace `DAV:`.
pub(super) fn read(body: &[u8], root: &'static str, elements: &mut impl Elements) -> Result<(), XmlError> {
    let text = std::str::from_utf8(body).map_err(|_| XmlError::Malformed)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut document = Document { depth: 0, has_root: false, root, elements };
    let mut reader = NsReader::from_str(text);
    loop {
        let (resolved, event) = reader.read_resolved_event().map_err(|_| XmlError::Malformed)?;
        match event {
            Event::Start(start) => document.open(resolved, &start)?,
            Event::Empty(start) => {
                document.open(resolved, &start)?;
                document.close();
            }
            Event::End(_) => document.close(),
            Event::Text(text) if !document.is_inside() && !text.trim_ascii().is_empty() => {
                return Err(XmlError::Malformed);
            }
            Event::CData(_) if !document.is_inside() => return Err(XmlError::Malformed),
            Event::DocType(_) => return Err(XmlError::DocumentType),
            Event::GeneralRef(reference) if !reference.is_char_ref() && !is_predefined(&reference) => {
                return Err(XmlError::DocumentType);
            }
            Event::Eof if document.is_inside() || !document.has_root => return Err(XmlError::Malformed),
            Event::Eof => return Ok(()),
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {}
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// True for the entities that every document has.
fn is_predefined(name: &[u8]) -> bool {
    [b"amp".as_slice(), b"lt", b"gt", b"quot", b"apos"].contains(&name)
}

/// The part of a document that was read.
struct Document<'e, E> {
    depth: usize,
    has_root: bool,
    root: &'static str,
    elements: &'e mut E,
}

impl<E: Elements> Document<'_, E> {
    fn is_inside(&self) -> bool {
        self.depth > 0
    }

    fn open(&mut self, resolved: ResolveResult<'_>, start: &BytesStart<'_>) -> Result<(), XmlError> {
        let name = ElementName::new(resolved, start)?;
        match self.depth {
            0 if self.has_root => return Err(XmlError::Malformed),
            0 if name.dav() != Some(self.root) => return Err(XmlError::OtherDocument(self.root)),
            0 => self.has_root = true,
            depth => self.elements.open(depth, name)?,
        }
        self.depth = self.depth.saturating_add(1);
        if self.depth > MAX_DEPTH { Err(XmlError::TooDeep) } else { Ok(()) }
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth > 0 {
            self.elements.close(self.depth);
        }
    }
}

impl ElementName {
    /// The name of an element, whose attributes are valid.
    fn new(resolved: ResolveResult<'_>, start: &BytesStart<'_>) -> Result<Self, XmlError> {
        let malformed = || XmlError::Malformed;
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|_| malformed())?;
            let value = std::str::from_utf8(&attribute.value).map_err(|_| malformed())?;
            // A reference to an entity would be expanded.
            quick_xml::escape::unescape(value).map_err(|_| XmlError::DocumentType)?;
        }
        let namespace = match resolved {
            ResolveResult::Bound(Namespace(bytes)) => {
                let text = std::str::from_utf8(bytes).map_err(|_| malformed())?;
                quick_xml::escape::unescape(text).map_err(|_| XmlError::DocumentType)?.into_owned()
            }
            ResolveResult::Unbound => String::new(),
            ResolveResult::Unknown(_) => return Err(malformed()),
        };
        let (local, _) = start.name().decompose();
        let local = std::str::from_utf8(local.into_inner()).map_err(|_| malformed())?.to_owned();
        match is_name(&local) && is_text(&namespace) {
            true => Ok(Self { namespace, local }),
            false => Err(malformed()),
        }
    }

    /// The name within the namespace `DAV:`; `None` in another one.
    pub(super) fn dav(&self) -> Option<&str> {
        (self.namespace == DAV_NAMESPACE).then_some(self.local.as_str())
    }
}

/// True for names without a colon (Namespaces in XML, section 3), of which this accepts some more beyond ASCII.
fn is_name(text: &str) -> bool {
    let is_start = |character: char| character.is_alphabetic() || character == '_';
    let is_part = |character: char| is_start(character) || character.is_numeric() || "-.\u{b7}".contains(character);
    text.starts_with(is_start) && text.chars().all(is_part)
}

/// True for texts that can be written in XML.
fn is_text(text: &str) -> bool {
    !text.chars().any(|character| character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}'))
}
