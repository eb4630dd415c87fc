//! The body of `PROPFIND` (RFC 4918, section 14.20).

use super::{
    property::Property,
    xml::{self, ElementName, Elements, MAX_PROPERTIES, XmlError},
};

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
        unknown: Vec<ElementName>,
    },
}

impl Propfind {
    /// Parses a body, which may be empty.
    pub fn parse(body: &[u8]) -> Result<Self, XmlError> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::All);
        }
        let mut requested = Requested::default();
        xml::read(body, "propfind", &mut requested)?;
        requested.request.ok_or(XmlError::NoRequest)
    }
}

/// What the part of a document that was read asks for.
#[derive(Debug, Default)]
struct Requested {
    /// True within the first level of `prop`.
    in_prop: bool,
    request: Option<Propfind>,
}

impl Elements for Requested {
    fn open(&mut self, depth: usize, name: ElementName) -> Result<(), XmlError> {
        match depth {
            1 => self.begin_request(name.dav()),
            2 if self.in_prop => self.add_property(name),
            // Elements that are not known are ignored (RFC 4918, section 17).
            _ => Ok(()),
        }
    }

    fn close(&mut self, depth: usize) {
        self.in_prop &= depth != 1;
    }
}

impl Requested {
    fn begin_request(&mut self, dav: Option<&str>) -> Result<(), XmlError> {
        let request = match dav {
            Some("allprop") => Propfind::All,
            Some("propname") => Propfind::Names,
            Some("prop") => Propfind::Named { known: Vec::new(), unknown: Vec::new() },
            _ => return Ok(()),
        };
        self.in_prop = dav == Some("prop");
        match self.request.replace(request) {
            Some(_) => Err(XmlError::NoRequest),
            None => Ok(()),
        }
    }

    fn add_property(&mut self, name: ElementName) -> Result<(), XmlError> {
        let Some(Propfind::Named { known, unknown }) = &mut self.request else { return Ok(()) };
        if known.len().saturating_add(unknown.len()) >= MAX_PROPERTIES {
            return Err(XmlError::TooManyProperties);
        }
        match Property::named(&name) {
            Some(property) if known.contains(&property) => {}
            Some(property) => known.push(property),
            None if unknown.contains(&name) => {}
            None => unknown.push(name),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::xml::MAX_DEPTH, *};

    fn parse(body: &str) -> Result<Propfind, XmlError> {
        Propfind::parse(body.as_bytes())
    }

    fn name(namespace: &str, local: &str) -> ElementName {
        ElementName { namespace: namespace.to_owned(), local: local.to_owned() }
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
            ("x", XmlError::Malformed),
            ("<D:propfind xmlns:D='DAV:'>", XmlError::Malformed),
            ("<D:propfind xmlns:D='DAV:'></D:other>", XmlError::Malformed),
            ("<D:propfind><D:allprop/></D:propfind>", XmlError::Malformed),
            ("<propfind xmlns='DAV:'><prop><b:foo xmlns:b=''/></prop></propfind>", XmlError::Malformed),
            ("<propfind xmlns='DAV:'><allprop/></propfind><propfind xmlns='DAV:'/>", XmlError::Malformed),
            ("<propfind xmlns='DAV:'><allprop/></propfind>x", XmlError::Malformed),
            ("<propfind xmlns='DAV:'><prop><a\"b/></prop></propfind>", XmlError::Malformed),
            ("<propfind xmlns='DAV:'><prop><x xmlns='&#1;'/></prop></propfind>", XmlError::Malformed),
            ("<propfind><allprop/></propfind>", XmlError::OtherDocument("propfind")),
            ("<lockinfo xmlns='DAV:'/>", XmlError::OtherDocument("propfind")),
            ("<propfind xmlns='DAV:'/>", XmlError::NoRequest),
            ("<propfind xmlns='DAV:'><allprop/><propname/></propfind>", XmlError::NoRequest),
            ("<propfind xmlns='DAV:'><other/></propfind>", XmlError::NoRequest),
        ] {
            assert_eq!(parse(body), Err(why), "{body}");
        }
        assert_eq!(Propfind::parse(b"<propfind xmlns='DAV:'>\xff<allprop/></propfind>"), Err(XmlError::Malformed));
        assert_eq!(Propfind::parse(b"<\0p\0"), Err(XmlError::Malformed));
    }

    #[test]
    fn documents_with_entities_are_rejected() {
        let bomb = "<!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>";
        let body = "<propfind xmlns='DAV:'><prop>&b;</prop></propfind>";
        assert_eq!(parse(&format!("{bomb}{body}")), Err(XmlError::DocumentType));
        assert_eq!(parse(body), Err(XmlError::DocumentType));
        assert_eq!(parse("<propfind xmlns='&b;'><allprop/></propfind>"), Err(XmlError::DocumentType));
    }

    #[test]
    fn depth_and_names_are_bounded() {
        let nested = |depth| {
            format!("<propfind xmlns='DAV:'><prop>{}{}</prop></propfind>", "<a>".repeat(depth), "</a>".repeat(depth))
        };
        assert!(parse(&nested(MAX_DEPTH - 2)).is_ok());
        assert_eq!(parse(&nested(MAX_DEPTH - 1)), Err(XmlError::TooDeep));
        let named = |count: usize| {
            let names: String = (0..count).map(|number| format!("<a{number}/>")).collect();
            format!("<propfind xmlns='DAV:'><prop>{names}</prop></propfind>")
        };
        assert!(parse(&named(MAX_PROPERTIES)).is_ok());
        assert_eq!(parse(&named(MAX_PROPERTIES + 1)), Err(XmlError::TooManyProperties));
    }
}
