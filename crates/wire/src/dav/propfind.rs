//! The body of `PROPFIND` (RFC 4918, section 14.20).

use quick_xml::{
    NsReader,
    events::{BytesStart, Event},
    name::{Namespace, ResolveResult},
};

/// The maximum size of a body, in bytes.
pub const MAX_PROPFIND_SIZE: usize = 16 << 10;
/// The maximum number of properties that a body names.
pub const MAX_PROPERTIES: usize = 64;
/// The maximum nesting of elements.
const MAX_DEPTH: usize = 16;
const DAV_NAMESPACE: &str = "DAV:";

/// The properties that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Propfind {
    /// All properties, with their values: what a request without a body asks for.
    All,
    /// The names of all properties.
    Names,
    /// These properties.
    Named {
        /// Those that resources have.
        known: Vec<Property>,
        /// Those that no resource has.
        unknown: Vec<PropertyName>,
    },
}

/// A property of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// `getlastmodified`.
    LastModified,
    /// `resourcetype`.
    ResourceType,
    /// `getetag`, of values.
    Etag,
    /// `getcontentlength`, of values.
    ContentLength,
    /// `getcontenttype`, of values.
    ContentType,
}

/// The name of a property, which is valid in XML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyName {
    /// The namespace, which may be empty.
    pub(super) namespace: String,
    /// The name within the namespace.
    pub(super) local: String,
}

/// The reason why a body is not a request for properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropfindError {
    /// The body is not well-formed XML with namespaces, in UTF-8.
    #[error("the body is not well-formed XML in UTF-8")]
    Malformed,
    /// The document has a type declaration, or a reference to an entity.
    #[error("the body has a document type or an entity")]
    DocumentType,
    /// Elements are nested too deeply.
    #[error("the elements of the body are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// The document is of another kind.
    #[error("the body is not a `propfind` of the namespace `DAV:`")]
    OtherDocument,
    /// The request is for neither all properties, nor their names, nor some of them.
    #[error("`propfind` has none of `allprop`, `propname` and `prop`, or several of them")]
    NoRequest,
    /// The request names too many properties.
    #[error("the body names more than {MAX_PROPERTIES} properties")]
    TooManyProperties,
}

impl Property {
    /// All properties.
    pub const ALL: [Self; 5] =
        [Self::LastModified, Self::ResourceType, Self::Etag, Self::ContentLength, Self::ContentType];

    /// The name in the namespace `DAV:`.
    pub fn name(self) -> &'static str {
        match self {
            Self::LastModified => "getlastmodified",
            Self::ResourceType => "resourcetype",
            Self::Etag => "getetag",
            Self::ContentLength => "getcontentlength",
            Self::ContentType => "getcontenttype",
        }
    }

    /// True if collections have it too.
    pub fn is_of_collections(self) -> bool {
        matches!(self, Self::LastModified | Self::ResourceType)
    }
}

impl Propfind {
    /// Parses a body, which may be empty.
    pub fn parse(body: &[u8]) -> Result<Self, PropfindError> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::All);
        }
        let text = std::str::from_utf8(body).map_err(|_| PropfindError::Malformed)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut document = Document::default();
        let mut reader = NsReader::from_str(text);
        loop {
            let (resolved, event) = reader.read_resolved_event().map_err(|_| PropfindError::Malformed)?;
            match event {
                Event::Start(start) => document.open(resolved, &start)?,
                Event::Empty(start) => {
                    document.open(resolved, &start)?;
                    document.close();
                }
                Event::End(_) => document.close(),
                Event::Text(text) if !document.is_inside() && !text.trim_ascii().is_empty() => {
                    return Err(PropfindError::Malformed);
                }
                Event::CData(_) if !document.is_inside() => return Err(PropfindError::Malformed),
                Event::DocType(_) => return Err(PropfindError::DocumentType),
                Event::GeneralRef(reference) if !reference.is_char_ref() && !is_predefined(&reference) => {
                    return Err(PropfindError::DocumentType);
                }
                Event::Eof => return document.finish(),
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {}
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
    }
}

/// True for the entities that every document has.
fn is_predefined(name: &[u8]) -> bool {
    [b"amp".as_slice(), b"lt", b"gt", b"quot", b"apos"].contains(&name)
}

/// The part of a document that was read.
#[derive(Debug, Default)]
struct Document {
    depth: usize,
    has_root: bool,
    /// True within the first level of `prop`.
    in_prop: bool,
    request: Option<Propfind>,
}

impl Document {
    fn is_inside(&self) -> bool {
        self.depth > 0
    }

    fn open(&mut self, resolved: ResolveResult<'_>, start: &BytesStart<'_>) -> Result<(), PropfindError> {
        let name = PropertyName::new(resolved, start)?;
        let dav = (name.namespace == DAV_NAMESPACE).then_some(name.local.as_str());
        match self.depth {
            0 if self.has_root => return Err(PropfindError::Malformed),
            0 if dav != Some("propfind") => return Err(PropfindError::OtherDocument),
            0 => self.has_root = true,
            1 => self.begin_request(dav)?,
            2 if self.in_prop => self.add_property(name)?,
            // Elements that are not known are ignored (RFC 4918, section 17).
            _ => {}
        }
        self.depth = self.depth.saturating_add(1);
        if self.depth > MAX_DEPTH { Err(PropfindError::TooDeep) } else { Ok(()) }
    }

    fn begin_request(&mut self, dav: Option<&str>) -> Result<(), PropfindError> {
        let request = match dav {
            Some("allprop") => Propfind::All,
            Some("propname") => Propfind::Names,
            Some("prop") => Propfind::Named { known: Vec::new(), unknown: Vec::new() },
            _ => return Ok(()),
        };
        self.in_prop = dav == Some("prop");
        match self.request.replace(request) {
            Some(_) => Err(PropfindError::NoRequest),
            None => Ok(()),
        }
    }

    fn add_property(&mut self, name: PropertyName) -> Result<(), PropfindError> {
        let Some(Propfind::Named { known, unknown }) = &mut self.request else { return Ok(()) };
        if known.len().saturating_add(unknown.len()) >= MAX_PROPERTIES {
            return Err(PropfindError::TooManyProperties);
        }
        match name.known() {
            Some(property) if known.contains(&property) => {}
            Some(property) => known.push(property),
            None if unknown.contains(&name) => {}
            None => unknown.push(name),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 1 {
            self.in_prop = false;
        }
    }

    fn finish(self) -> Result<Propfind, PropfindError> {
        if self.is_inside() || !self.has_root {
            return Err(PropfindError::Malformed);
        }
        self.request.ok_or(PropfindError::NoRequest)
    }
}

impl PropertyName {
    /// The name of an element, whose attributes are valid.
    fn new(resolved: ResolveResult<'_>, start: &BytesStart<'_>) -> Result<Self, PropfindError> {
        let malformed = || PropfindError::Malformed;
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|_| malformed())?;
            let value = std::str::from_utf8(&attribute.value).map_err(|_| malformed())?;
            // A reference to an entity would be expanded.
            quick_xml::escape::unescape(value).map_err(|_| PropfindError::DocumentType)?;
        }
        let namespace = match resolved {
            ResolveResult::Bound(Namespace(bytes)) => {
                let text = std::str::from_utf8(bytes).map_err(|_| malformed())?;
                quick_xml::escape::unescape(text).map_err(|_| PropfindError::DocumentType)?.into_owned()
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

    fn known(&self) -> Option<Property> {
        let mut all = Property::ALL.into_iter();
        all.find(|property| self.namespace == DAV_NAMESPACE && self.local == property.name())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Propfind, PropfindError> {
        Propfind::parse(body.as_bytes())
    }

    fn name(namespace: &str, local: &str) -> PropertyName {
        PropertyName { namespace: namespace.to_owned(), local: local.to_owned() }
    }

    #[test]
    fn requests_are_parsed() {
        assert_eq!(parse(""), Ok(Propfind::All));
        assert_eq!(parse(" \r\n"), Ok(Propfind::All));
        assert_eq!(parse("<propfind xmlns='DAV:'><allprop/><include><a/></include></propfind>"), Ok(Propfind::All));
        let names =
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><D:propfind xmlns:D=\"DAV:\"><D:propname/></D:propfind>";
        assert_eq!(parse(names), Ok(Propfind::Names));
        let named = "<d:propfind xmlns:d='DAV:' xmlns:o='http://x/?a&amp;b'> <d:prop> <d:getetag/><o:sums>&amp;<x/></o:sums>\
             <d:resourcetype></d:resourcetype><plain xmlns=''/><d:getetag/><o:sums/><d:quota/></d:prop> </d:propfind> ";
        let expected = Propfind::Named {
            known: vec![Property::Etag, Property::ResourceType],
            unknown: vec![name("http://x/?a&b", "sums"), name("", "plain"), name("DAV:", "quota")],
        };
        assert_eq!(parse(named), Ok(expected));
    }

    #[test]
    fn malformed_bodies_are_rejected() {
        for (body, why) in [
            ("x", PropfindError::Malformed),
            ("<D:propfind xmlns:D='DAV:'>", PropfindError::Malformed),
            ("<D:propfind xmlns:D='DAV:'></D:other>", PropfindError::Malformed),
            ("<D:propfind><D:allprop/></D:propfind>", PropfindError::Malformed),
            ("<propfind xmlns='DAV:'><prop><b:foo xmlns:b=''/></prop></propfind>", PropfindError::Malformed),
            ("<propfind xmlns='DAV:'><allprop/></propfind><propfind xmlns='DAV:'/>", PropfindError::Malformed),
            ("<propfind xmlns='DAV:'><allprop/></propfind>x", PropfindError::Malformed),
            ("<propfind xmlns='DAV:'><prop><a\"b/></prop></propfind>", PropfindError::Malformed),
            ("<propfind xmlns='DAV:'><prop><x xmlns='&#1;'/></prop></propfind>", PropfindError::Malformed),
            ("<propfind><allprop/></propfind>", PropfindError::OtherDocument),
            ("<lockinfo xmlns='DAV:'/>", PropfindError::OtherDocument),
            ("<propfind xmlns='DAV:'/>", PropfindError::NoRequest),
            ("<propfind xmlns='DAV:'><allprop/><propname/></propfind>", PropfindError::NoRequest),
            ("<propfind xmlns='DAV:'><other/></propfind>", PropfindError::NoRequest),
        ] {
            assert_eq!(parse(body), Err(why), "{body}");
        }
        assert_eq!(Propfind::parse(b"<propfind xmlns='DAV:'>\xff<allprop/></propfind>"), Err(PropfindError::Malformed));
        assert_eq!(Propfind::parse(b"<\0p\0"), Err(PropfindError::Malformed));
    }

    #[test]
    fn documents_with_entities_are_rejected() {
        let bomb = "<!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>";
        let body = "<propfind xmlns='DAV:'><prop>&b;</prop></propfind>";
        assert_eq!(parse(&format!("{bomb}{body}")), Err(PropfindError::DocumentType));
        assert_eq!(parse(body), Err(PropfindError::DocumentType));
        assert_eq!(parse("<propfind xmlns='&b;'><allprop/></propfind>"), Err(PropfindError::DocumentType));
    }

    #[test]
    fn depth_and_names_are_bounded() {
        let nested = |depth| {
            format!("<propfind xmlns='DAV:'><prop>{}{}</prop></propfind>", "<a>".repeat(depth), "</a>".repeat(depth))
        };
        assert!(parse(&nested(MAX_DEPTH - 2)).is_ok());
        assert_eq!(parse(&nested(MAX_DEPTH - 1)), Err(PropfindError::TooDeep));
        let named = |count: usize| {
            let names: String = (0..count).map(|number| format!("<a{number}/>")).collect();
            format!("<propfind xmlns='DAV:'><prop>{names}</prop></propfind>")
        };
        assert!(parse(&named(MAX_PROPERTIES)).is_ok());
        assert_eq!(parse(&named(MAX_PROPERTIES + 1)), Err(PropfindError::TooManyProperties));
    }
}
