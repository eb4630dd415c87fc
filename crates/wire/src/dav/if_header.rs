//! The header `If` (RFC 4918, section 10.4).
//!
//! There are no locks, so no state token is ever current, and `(Not <DAV:no-lock>)` always holds.

use http::{HeaderMap, HeaderName};
use zarrd_store::Version;

use crate::etag;

/// Conditions on the states of resources.
pub const IF: HeaderName = HeaderName::from_static("if");
/// The maximum number of conditions in a header.
pub const MAX_IF_CONDITIONS: usize = 256;

/// The lists of a header `If`, one of which has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfHeader {
    lists: Vec<IfList>,
}

/// Conditions on one resource, all of which have to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IfList {
    /// The URL of the resource; `None` for the resource of the request.
    resource: Option<String>,
    conditions: Vec<Condition>,
}

/// A condition of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Condition {
    /// True if the state must not match.
    negated: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A version.
    Version(Version),
    /// A lock, or a tag that is not one of ours: no resource has it.
    Unknown,
}

/// The header does not conform to its grammar, or has more than [`MAX_IF_CONDITIONS`] conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("If has no valid lists of conditions, or more than {MAX_IF_CONDITIONS} conditions")]
pub struct IfHeaderError;

impl IfHeader {
    /// Parses the header, if there is one.
    pub fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, IfHeaderError> {
        let mut lines = headers.get_all(IF).iter();
        let Some(line) = lines.next() else { return Ok(None) };
        if lines.next().is_some() {
            return Err(IfHeaderError);
        }
        Parser(line.to_str().map_err(|_| IfHeaderError)?.trim()).header().map(Some)
    }

    /// The URLs of tagged resources.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        self.lists.iter().filter_map(|list| list.resource.as_deref())
    }

    /// True if one of the lists holds. `current` is the version of the request's resource; a list of a tagged resource
    /// holds of the version that `tagged` returns for its URL, and fails if that is unknown (outer `None`).
    pub fn is_met_by(&self, current: Option<Version>, tagged: impl Fn(&str) -> Option<Option<Version>>) -> bool {
        self.lists.iter().any(|list| {
            let version = match &list.resource {
                None => Some(current),
                Some(url) => tagged(url),
            };
            version.is_some_and(|version| list.conditions.iter().all(|condition| condition.holds(version)))
        })
    }
}

impl Condition {
    fn holds(self, current: Option<Version>) -> bool {
        let matches = match self.state {
            State::Version(version) => current == Some(version),
            State::Unknown => false,
        };
        matches != self.negated
    }
}

/// The rest of the header.
struct Parser<'h>(&'h str);

impl Parser<'_> {
    fn header(mut self) -> Result<IfHeader, IfHeaderError> {
        let (mut lists, mut resource, mut count) = (Vec::new(), None, 0_usize);
        while !self.0.is_empty() {
            if self.0.starts_with('<') {
                // All lists have a tag, or none has.
                if resource.is_none() && !lists.is_empty() {
                    return Err(IfHeaderError);
                }
                resource = Some(self.between('<', '>')?.to_owned());
                if !self.0.starts_with('(') {
                    return Err(IfHeaderError);
                }
            }
            let conditions = self.list(&mut count)?;
            lists.push(IfList { resource: resource.clone(), conditions });
        }
        if lists.is_empty() { Err(IfHeaderError) } else { Ok(IfHeader { lists }) }
    }

    fn list(&mut self, count: &mut usize) -> Result<Vec<Condition>, IfHeaderError> {
        self.token("(")?;
        let mut conditions = Vec::new();
        while !self.0.starts_with(')') {
            *count = count.saturating_add(1);
            if *count > MAX_IF_CONDITIONS {
                return Err(IfHeaderError);
            }
            let negated = self.0.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("not"));
            if negated {
                self.0 = self.0.get(3..).unwrap_or_default().trim_start();
            }
            let state = match self.0.starts_with('[') {
                true => self.entity_tag()?,
                false => self.between('<', '>').map(|_| State::Unknown)?,
            };
            conditions.push(Condition { negated, state });
        }
        self.token(")")?;
        if conditions.is_empty() { Err(IfHeaderError) } else { Ok(conditions) }
    }

    /// Parses an entity tag in brackets. A weak one matches nothing.
    fn entity_tag(&mut self) -> Result<State, IfHeaderError> {
        self.token("[")?;
        let is_weak = self.0.starts_with("W/");
        let tag = self.0.strip_prefix("W/").unwrap_or(self.0);
        let end = tag.strip_prefix('"').and_then(|rest| rest.find('"')).ok_or(IfHeaderError)?;
        let (tag, rest) = tag.split_at_checked(end.saturating_add(2)).ok_or(IfHeaderError)?;
        self.0 = rest;
        self.token("]")?;
        Ok(etag::parse(tag).filter(|_| !is_weak).map_or(State::Unknown, State::Version))
    }

    /// Removes the text between two marks, and the spaces after it.
    fn between(&mut self, open: char, close: char) -> Result<&str, IfHeaderError> {
        let (text, rest) = self.0.strip_prefix(open).and_then(|rest| rest.split_once(close)).ok_or(IfHeaderError)?;
        self.0 = rest.trim_start();
        if text.is_empty() { Err(IfHeaderError) } else { Ok(text) }
    }

    /// Removes a mark, and the spaces after it.
    fn token(&mut self, mark: &str) -> Result<(), IfHeaderError> {
        self.0 = self.0.strip_prefix(mark).ok_or(IfHeaderError)?.trim_start();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn parse(text: &str) -> Result<Option<IfHeader>, IfHeaderError> {
        let mut headers = HeaderMap::new();
        headers.insert(IF, HeaderValue::from_str(text).unwrap());
        IfHeader::from_headers(&headers)
    }

    #[test]
    fn lists_hold_of_the_versions_that_they_name() {
        let (one, two) = (Version::from_u128(1), Version::from_u128(2));
        let tag = etag::text(one);
        for (text, when_absent, at_one, at_two) in [
            (format!("([{tag}])"), false, true, false),
            (format!("(Not [{tag}])"), true, false, true),
            (format!("(<urn:uuid:lock> [{tag}])"), false, false, false),
            (format!("(<urn:uuid:lock>) ([{tag}])"), false, true, false),
            (format!("([W/{tag}])"), false, false, false),
            (format!("([{tag}] Not <DAV:no-lock>)"), false, true, false),
            (format!("</b> ([{tag}])"), false, false, false),
            (format!("</a> ([{tag}])"), false, true, false),
            (format!("</b> (<urn:x>) ([\"?\"]) </a> (not <urn:x>[{tag}])"), false, true, false),
            ("(Not <DAV:no-lock>)".to_owned(), true, true, true),
            ("([\"other\"])".to_owned(), false, false, false),
        ] {
            let header = parse(&text).unwrap().unwrap();
            let found = [None, Some(one), Some(two)]
                .map(|version| header.is_met_by(version, |url| (url == "/a").then_some(version)));
            assert_eq!(found, [when_absent, at_one, at_two], "{text}");
        }
    }

    #[test]
    fn malformed_headers_are_rejected() {
        assert_eq!(IfHeader::from_headers(&HeaderMap::new()), Ok(None));
        for bad in [
            "",
            "()",
            "(",
            ")",
            "<a>",
            "<a> <b> (<c>)",
            "(<a>",
            "(<a)",
            "(<>)",
            "([\"a\")",
            "([a])",
            "([\"a])",
            "(<a>) <b> (<c>)",
            "(<a>)x",
            "(not)",
            "x",
            "(W/\"a\")",
        ] {
            assert_eq!(parse(bad), Err(IfHeaderError), "{bad}");
        }
        assert!(parse(&format!("({})", "<a>".repeat(MAX_IF_CONDITIONS))).is_ok());
        assert_eq!(parse(&format!("({})", "<a>".repeat(MAX_IF_CONDITIONS + 1))), Err(IfHeaderError));
    }
}
