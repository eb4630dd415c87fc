//! The body of `PROPPATCH` (RFC 4918, section 14.19), of which nothing can succeed except what is no change.

use super::{
    property::Property,
    xml::{self, ElementName, Elements, MAX_PROPERTIES, XmlError},
};

/// The properties that a request names, by what becomes of them. Each is in one list, in the order of the document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proppatch {
    /// Properties that the server sets itself.
    pub(super) protected: Vec<Property>,
    /// Other properties that the request sets. The server does not store them.
    pub(super) set: Vec<ElementName>,
    /// Other properties that the request only removes. No resource has them, so that this is no error.
    pub(super) removed: Vec<ElementName>,
}

impl Proppatch {
    /// Parses a body.
    pub fn parse(body: &[u8]) -> Result<Self, XmlError> {
        let mut changes = Changes::default();
        xml::read(body, "propertyupdate", &mut changes)?;
        let Proppatch { protected, set, removed } = &changes.named;
        if protected.is_empty() && set.is_empty() && removed.is_empty() {
            return Err(XmlError::NoChange);
        }
        Ok(changes.named)
    }

    /// True if a property cannot be changed, so that none is.
    pub fn fails(&self) -> bool {
        !self.protected.is_empty() || !self.set.is_empty()
    }
}

/// An instruction of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    Set,
    Remove,
}

/// The changes of the part of a document that was read.
#[derive(Debug, Default)]
struct Changes {
    named: Proppatch,
    instruction: Option<Instruction>,
    /// True within `prop` of an instruction.
    in_prop: bool,
}

impl Elements for Changes {
    fn open(&mut self, depth: usize, name: ElementName) -> Result<(), XmlError> {
        match depth {
            1 => {
                self.instruction = match name.dav() {
                    Some("set") => Some(Instruction::Set),
                    Some("remove") => Some(Instruction::Remove),
                    _ => None,
                };
            }
            2 => self.in_prop = name.dav() == Some("prop"),
            3 if self.in_prop => return self.add(name),
            // Elements that are not known are ignored (RFC 4918, section 17), and so are values.
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, depth: usize) {
        self.in_prop &= depth > 2;
    }
}

impl Changes {
    fn add(&mut self, name: ElementName) -> Result<(), XmlError> {
        let Some(instruction) = self.instruction else { return Ok(()) };
        let Proppatch { protected, set, removed } = &mut self.named;
        match (Property::named(&name), instruction) {
            (Some(property), _) if protected.contains(&property) => {}
            (Some(property), _) => protected.push(property),
            (None, _) if set.contains(&name) => {}
            (None, Instruction::Set) => {
                removed.retain(|known| *known != name);
                set.push(name);
            }
            (None, Instruction::Remove) if removed.contains(&name) => {}
            (None, Instruction::Remove) => removed.push(name),
        }
        let count = protected.len().saturating_add(set.len()).saturating_add(removed.len());
        if count > MAX_PROPERTIES { Err(XmlError::TooManyProperties) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::xml::MAX_DEPTH, *};

    fn parse(instructions: &str) -> Result<Proppatch, XmlError> {
        Proppatch::parse(format!("<propertyupdate xmlns='DAV:'>{instructions}</propertyupdate>").as_bytes())
    }

    fn names(names: &[(&str, &str)]) -> Vec<ElementName> {
        let name = |(namespace, local): &(&str, &str)| ElementName {
            namespace: (*namespace).to_owned(),
            local: (*local).to_owned(),
        };
        names.iter().map(name).collect()
    }

    #[test]
    fn each_property_is_named_once() {
        let found = parse(
            "<set><prop><a xmlns='u'><prop><inner/></prop></a><getetag>x</getetag></prop></set>\
             <remove><prop><b/><getetag/><a xmlns='u'/><c xmlns=''/></prop></remove>\
             <other><prop><ignored/></prop></other><set><ignored/><prop><c xmlns=''/><a xmlns='v'/></prop></set>",
        );
        let expected = Proppatch {
            protected: vec![Property::Etag],
            set: names(&[("u", "a"), ("", "c"), ("v", "a")]),
            removed: names(&[("DAV:", "b")]),
        };
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn only_removals_of_what_no_resource_has_succeed() {
        for (instructions, fails) in [
            ("<remove><prop><a/></prop></remove>", false),
            ("<remove><prop><getcontentlength/></prop></remove>", true),
            ("<set><prop><a/></prop></set>", true),
            ("<remove><prop><a/></prop></remove><set><prop><a/></prop></set>", true),
        ] {
            assert_eq!(parse(instructions).unwrap().fails(), fails, "{instructions}");
        }
    }

    #[test]
    fn documents_without_changes_are_rejected() {
        for empty in ["", "<set/>", "<set><prop/></set>", "<prop><a/></prop>", "<set><a/></set>"] {
            assert_eq!(parse(empty), Err(XmlError::NoChange), "{empty}");
        }
        let parse = |body: &str| Proppatch::parse(body.as_bytes());
        assert_eq!(parse(""), Err(XmlError::Malformed));
        assert_eq!(parse("<propfind xmlns='DAV:'/>"), Err(XmlError::OtherDocument("propertyupdate")));
        assert_eq!(parse("<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"), Err(XmlError::DocumentType));
        let entity = "<propertyupdate xmlns='DAV:'><set><prop><a>&b;</a></prop></set></propertyupdate>";
        assert_eq!(parse(entity), Err(XmlError::DocumentType));
    }

    #[test]
    fn values_and_names_are_bounded() {
        let nested = |depth| format!("<set><prop>{}{}</prop></set>", "<a>".repeat(depth), "</a>".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH - 3)).is_ok());
        assert_eq!(parse(&nested(MAX_DEPTH - 2)), Err(XmlError::TooDeep));
        let named = |count: usize| {
            let half =
                |numbers: std::ops::Range<usize>| numbers.map(|number| format!("<a{number}/>")).collect::<String>();
            let (set, removed) = (half(0..count / 2), half(count / 2..count));
            parse(&format!("<set><prop>{set}</prop></set><remove><prop>{removed}</prop></remove>"))
        };
        assert!(named(MAX_PROPERTIES).is_ok());
        assert_eq!(named(MAX_PROPERTIES + 1), Err(XmlError::TooManyProperties));
    }
}
