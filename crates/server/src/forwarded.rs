//! The `Forwarded` header (RFC 7239).

use http::{HeaderMap, header::FORWARDED};

/// The `for` parameter of an element, without quotes; `None` if the element has none.
pub(crate) type ForwardedFor = Option<Vec<u8>>;

/// The header does not conform to its grammar. What a proxy has appended to it can then not be told from what its client
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Returns the `for` parameters of all elements of `Forwarded`, the nearest one last.
pub(crate) fn forwarded_for(headers: &HeaderMap) -> Result<Vec<ForwardedFor>, Malformed> {
    let mut all = Vec::new();
    for line in headers.get_all(FORWARDED) {
        all.extend(Parser(line.as_bytes()).line()?);
    }
    Ok(all)
}

/// The rest of a line.
struct Parser<'h>(&'h [u8]);

impl<'h> Parser<'h> {
    /// Parses elements with commas between them, some of which may be empty.
    fn line(&mut self) -> Result<Vec<ForwardedFor>, Malformed> {
        let mut elements = Vec::new();
        loop {
            elements.extend(self.element()?);
            match self.0.split_first() {
                None => return Ok(elements),
                Some((b',', rest)) => self.0 = rest,
                Some(_) => return Err(Malformed),
            }
        }
    }

    /// Parses pairs with semicolons between them, with optional spaces as many proxies write them; `None` if there are
    /// none.
    fn element(&mut self) -> Result<Option<ForwardedFor>, Malformed> {
        let mut element = None;
        loop {
            self.skip_spaces();
            if !matches!(self.0.first(), None | Some(b',' | b';')) {
                let (name, value) = self.pair()?;
                let found: &mut ForwardedFor = element.get_or_insert_default();
                if name.eq_ignore_ascii_case(b"for") && found.replace(value).is_some() {
                    return Err(Malformed);
                }
                self.skip_spaces();
            }
            match self.0.split_first() {
                Some((b';', rest)) => self.0 = rest,
                _ => return Ok(element),
            }
        }
    }

    /// Parses a name and its value, which is a token or a quoted string.
    fn pair(&mut self) -> Result<(&'h [u8], Vec<u8>), Malformed> {
        let name = self.token()?;
        self.0 = self.0.strip_prefix(b"=").ok_or(Malformed)?;
        let value = match self.0.strip_prefix(b"\"") {
            Some(rest) => {
                self.0 = rest;
                self.quoted()?
            }
            None => self.token()?.to_vec(),
        };
        Ok((name, value))
    }

    fn token(&mut self) -> Result<&'h [u8], Malformed> {
        let len = self.0.iter().take_while(|byte| is_token(**byte)).count();
        let (token, rest) = self.0.split_at_checked(len).filter(|(token, _)| !token.is_empty()).ok_or(Malformed)?;
        self.0 = rest;
        Ok(token)
    }

    /// Parses the rest of a quoted string after its first quote.
    fn quoted(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut value = Vec::new();
        loop {
            let (byte, rest) = match self.0 {
                [b'"', rest @ ..] => {
                    self.0 = rest;
                    return Ok(value);
                }
                [b'\\', byte, rest @ ..] | [byte, rest @ ..] => (*byte, rest),
                [] => return Err(Malformed),
            };
            value.push(byte);
            self.0 = rest;
        }
    }

    fn skip_spaces(&mut self) {
        let spaces = self.0.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        self.0 = self.0.get(spaces..).unwrap_or_default();
    }
}

/// True for the characters of a token (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn parsed(lines: &[&str]) -> Result<Vec<Option<String>>, Malformed> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        let values = forwarded_for(&headers)?.into_iter();
        Ok(values.map(|value| value.map(|value| String::from_utf8(value).unwrap())).collect())
    }

    #[test]
    fn elements_are_parsed() {
        for (line, expected) in [
            ("for=a", vec![Some("a")]),
            ("For=\"[::1]:80\";by=x, proto=http;;host=\"a,;=\\\"b\"; ,FOR=b", vec![Some("[::1]:80"), None, Some("b")]),
            ("for=\"\\a\\\\\\\"\"", vec![Some("a\\\"")]),
            ("for=\"\"", vec![Some("")]),
            ("proto=https;host=\"a;for=6.6.6.6\";for=1.2.3.4", vec![Some("1.2.3.4")]),
            (" , ;,\t", vec![]),
            ("", vec![]),
        ] {
            let expected = expected.into_iter().map(|value| value.map(str::to_owned)).collect();
            assert_eq!(parsed(&[line]), Ok(expected), "{line}");
        }
        let both = parsed(&["for=a", "for=b"]).unwrap();
        assert_eq!(both, [Some("a".to_owned()), Some("b".to_owned())]);
    }

    #[test]
    fn malformed_lines_are_rejected() {
        for line in [
            "for=6.6.6.6;x=\", for=1.2.3.4",
            "for=\"a",
            "for=\"a\\",
            "for=\"a\\\"",
            "for=a;for=b",
            "for=a;FOR=a",
            "for=\"a\"b",
            "for=a b",
            "for=a=b",
            "for",
            "for=",
            "=a",
            "for =a",
            "for= a",
            "for=[::1]",
            "for=é",
        ] {
            assert_eq!(parsed(&[line]), Err(Malformed), "{line}");
            assert_eq!(parsed(&[line, "for=a"]), Err(Malformed), "{line}");
            assert_eq!(parsed(&["for=a", line]), Err(Malformed), "{line}");
        }
    }

    #[derive(Clone, Debug)]
    struct Pair {
        name: String,
        value: String,
        is_quoted: bool,
    }

    /// A pair of a name other than `for`.
    fn pair(name: &'static str) -> impl Strategy<Value = Pair> {
        ("[ -~]{0,12}", any::<bool>()).prop_map(move |(value, is_quoted)| {
            let is_token = !value.is_empty() && value.bytes().all(is_token);
            Pair { name: name.to_owned(), value, is_quoted: is_quoted || !is_token }
        })
    }

    fn rendered(pair: &Pair) -> String {
        match pair.is_quoted {
            true => format!("{}=\"{}\"", pair.name, pair.value.replace('\\', "\\\\").replace('"', "\\\"")),
            false => format!("{}={}", pair.name, pair.value),
        }
    }

    proptest! {
        #[test]
        fn what_is_rendered_is_parsed(
            elements in prop::collection::vec(
                (prop::option::of(pair("fOr")), prop::collection::vec(pair("host"), 0..3), 0_usize..3),
                0..5,
            ),
            spaces in prop::sample::select(vec![["", ""], [" ", ""], ["", "\t "], [" ", " "]]),
        ) {
            let [before, after] = spaces;
            let (mut texts, mut expected) = (Vec::new(), Vec::new());
            for (node, others, place) in elements {
                let mut pairs: Vec<String> = others.iter().map(rendered).collect();
                if let Some(node) = &node {
                    pairs.insert(place.min(pairs.len()), rendered(node));
                }
                if !pairs.is_empty() {
                    expected.push(node.map(|node| node.value));
                }
                texts.push(pairs.join(&format!("{before};{after}")));
            }
            let line = texts.join(&format!("{after},{before}"));
            prop_assert_eq!(parsed(&[&line]), Ok(expected), "{}", line);
        }
    }
}
