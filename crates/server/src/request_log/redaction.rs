//! Texts of requests without secrets.

use std::{
    borrow::Cow,
    error::Error,
    fmt::{self, Write},
};

use axum::extract::Request;
use http::Method;
use percent_encoding::percent_decode_str;
use zarrd_access::{OMITTED, without_credentials};
use zarrd_wire::routes::SHARE_LINK_ROOT;

use crate::authorization::ShareLink;

/// The maximum length of a logged path, and of a logged query, in bytes.
const MAX_BYTES: usize = 2048;
/// The maximum length of a logged method, in bytes.
const MAX_METHOD_BYTES: usize = 32;
/// The first segment of the paths of links, whose second segment is a secret.
const LINKS: &str = "s";
/// The parameters whose values are secrets.
const SECRET_PARAMETERS: [&str; 6] = ["access_token", "authorization", "key", "sig", "token", "x-amz-signature"];

/// The path of a request, percent-encoded as it was sent, without the secret of a link and without any credential. Shown
/// as text, it has printable ASCII characters only.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoggedPath(String);

/// A text of a request for the log of the program: without credentials, in printable ASCII characters.
pub(crate) struct LoggedText<'t>(pub(crate) &'t str);

/// An error with its causes for the log of the program: without credentials, in printable ASCII characters.
pub(crate) struct LoggedError<'e>(pub(crate) &'e (dyn Error + 'static));

impl LoggedPath {
    /// The path of a request. One with a share link shows that it had one, which was removed from its path.
    pub(crate) fn of(request: &Request) -> Self {
        let Self(path) = Self::new(request.uri().path());
        match request.extensions().get::<ShareLink>() {
            Some(_) => Self(format!("{SHARE_LINK_ROOT}{OMITTED}{path}")),
            None => Self(path),
        }
    }

    /// Copies a path without secrets, and truncates it to some thousand bytes.
    fn new(path: &str) -> Self {
        let kept = start(path, MAX_BYTES);
        let safe = without_credentials(kept);
        Self(match secret_of_link(&safe) {
            Some((before, after)) => format!("{before}{OMITTED}{}", with_mark(after, path, kept)),
            None => with_mark(&safe, path, kept),
        })
    }

    /// The path with all of its characters.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LoggedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_printable(f, &self.0)
    }
}

impl fmt::Display for LoggedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_printable(f, &without_credentials(self.0))
    }
}

impl fmt::Display for LoggedError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(text, ": {error}")?;
            cause = error.source();
        }
        LoggedText(&text).fmt(f)
    }
}

/// Copies a query without the values of secret parameters and without credentials, and truncates it to some thousand
/// bytes.
pub(super) fn query(query: &str) -> String {
    let kept = start(query, MAX_BYTES);
    let safe = without_credentials(kept);
    let mut redacted = String::with_capacity(safe.len());
    for parameter in safe.split_inclusive(['&', ';']) {
        match secret_parameter(parameter) {
            Some(name) => {
                redacted.extend([name, "=", OMITTED]);
                redacted.push_str(parameter.get(parameter.trim_end_matches(['&', ';']).len()..).unwrap_or_default());
            }
            None => redacted.push_str(parameter),
        }
    }
    with_mark(&redacted, query, kept)
}

/// Copies the start of a header without credentials.
pub(super) fn header(value: &[u8], max: usize) -> String {
    let text = String::from_utf8_lossy(value.get(..max).unwrap_or(value));
    without_credentials(&text).into_owned()
}

/// Copies a method without credentials, in bounded length.
pub(super) fn method(method: &Method) -> Cow<'_, str> {
    without_credentials(start(method.as_str(), MAX_METHOD_BYTES))
}

/// The start of a text, of at most `max` bytes.
fn start(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// Writes a text with escapes for everything but printable ASCII characters and the mark of an omission.
fn write_printable(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|character| match character {
        ' '..='~' => f.write_char(character),
        _ if OMITTED.contains(character) => f.write_char(character),
        _ => write!(f, "{}", character.escape_unicode()),
    })
}

/// Returns what precedes and what follows the secret in the path of a link, in any spelling of its first segment.
fn secret_of_link(path: &str) -> Option<(&str, &str)> {
    let relative = path.trim_start_matches('/');
    let (first, rest) = relative.split_once('/')?;
    if !percent_decode_str(first).decode_utf8_lossy().eq_ignore_ascii_case(LINKS) {
        return None;
    }
    let secret = rest.trim_start_matches('/');
    let before = path.get(..path.len() - secret.len())?;
    let after = secret.find('/').map_or("", |end| secret.get(end..).unwrap_or_default());
    (!secret.is_empty()).then_some((before, after))
}

/// Returns the name of a parameter whose value is a secret, in any spelling.
fn secret_parameter(parameter: &str) -> Option<&'static str> {
    let decoded = percent_decode_str(parameter).decode_utf8_lossy();
    let (name, _) = decoded.split_once('=')?;
    let name = name.trim_matches(|character: char| character == '+' || character.is_whitespace());
    SECRET_PARAMETERS.into_iter().find(|secret| name.eq_ignore_ascii_case(secret))
}

fn with_mark(text: &str, whole: &str, kept: &str) -> String {
    let mark = if kept.len() < whole.len() { OMITTED } else { "" };
    format!("{text}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_path(path: &str, shown: &str) {
        assert_eq!(LoggedPath::new(path).as_str(), shown);
    }

    #[test]
    fn secret_of_a_link_is_omitted() {
        for (path, shown) in [
            ("/s/SECRET", "/s/…"),
            ("/s/SECRET/", "/s/…/"),
            ("/s/SECRET/a%20b/c", "/s/…/a%20b/c"),
            ("//s//SECRET//a", "//s//…//a"),
            ("/%73/SECRET/a", "/%73/…/a"),
            ("/S/SECRET", "/S/…"),
        ] {
            assert_path(path, shown);
        }
    }

    #[test]
    fn other_paths_are_unchanged() {
        for path in ["", "*", "/", "/s", "/s/", "/store/s/x", "/sx/y", "/node/a%2Fb", "/store/\u{e9}"] {
            assert_path(path, path);
        }
    }

    #[test]
    fn credentials_are_omitted_wherever_they_are() {
        let secret = format!("zarrdlink_1_{}_{}", "ab".repeat(16), "cd".repeat(32));
        for (path, shown) in [
            ("/s//SECRET/store/lab/", "/s//…/store/lab/"),
            ("/s/./SECRET/store/", "/s/…/…/store/"),
            ("/zarrd/s/SECRET/store/a%20b", "/zarrd/s/…/store/a%20b"),
            ("/s%2FSECRET/store/", "/s%2F…/store/"),
            ("/s;/SECRET/store/", "/s;/…/store/"),
            ("/SECRET", "/…"),
        ] {
            assert_path(&path.replace("SECRET", &secret), shown);
            assert_path(&path.replace("SECRET", &secret.replace('_', "%5f")), shown);
        }
        assert_eq!(query(&format!("list={secret}&x=1;token={secret}")), "list=…&x=1;token=…");
        assert_eq!(header(format!("curl/8 ({secret})").as_bytes(), 256), "curl/8 (…)");
        assert_eq!(header(format!("{secret}\u{e9}").as_bytes(), 90), "…");
        assert_eq!(method(&Method::from_bytes(secret.as_bytes()).unwrap()), "…");
        let error = std::io::Error::other(format!("no {secret} here\u{9b}2J"));
        let error = zarrd_store::StoreError::Io { action: "read", source: error };
        let shown = LoggedError(&error).to_string();
        assert!(shown.ends_with(": no … here\\u{9b}2J"), "{shown}");
    }

    #[test]
    fn text_for_the_log_of_the_program_is_printable() {
        let hostile = "/store/\u{9b}31m\u{202e}\u{7f}\u{e9}~";
        assert_eq!(LoggedPath::new(hostile).to_string(), "/store/\\u{9b}31m\\u{202e}\\u{7f}\\u{e9}~");
        assert_eq!(LoggedText("a\n\u{1b}[2J").to_string(), "a\\u{a}\\u{1b}[2J");
        assert_eq!(LoggedPath::new("/s/SECRET/a").to_string(), "/s/…/a");
    }

    #[test]
    fn long_paths_are_truncated_at_a_character() {
        let path = "/store/".to_owned() + &"\u{e9}".repeat(10_000);
        let LoggedPath(shown) = LoggedPath::new(&path);
        assert!(shown.len() <= MAX_BYTES + OMITTED.len() && shown.ends_with("é…"), "{}", shown.len());
        assert_path(&("/s/".to_owned() + &"x".repeat(10_000)), "/s/……");
    }

    #[test]
    fn values_of_secret_parameters_are_omitted() {
        for (text, shown) in [
            ("", ""),
            ("select=0:3&token=SECRET", "select=0:3&token=…"),
            ("token=SECRET&select=0", "token=…&select=0"),
            ("access_token=SECRET;sig=SECRET&&x", "access_token=…;sig=…&&x"),
            ("Key=SECRET", "key=…"),
            ("X-Amz-Signature=SECRET&x-id=Get", "x-amz-signature=…&x-id=Get"),
            ("%74oken=SECRET", "token=…"),
            ("token%3DSECRET", "token=…"),
            ("+token+=SECRET=SECRET", "token=…"),
            ("tokens=1&keys=2&signature", "tokens=1&keys=2&signature"),
            ("token", "token"),
        ] {
            assert_eq!(query(text), shown);
        }
        let long = "a=".to_owned() + &"x".repeat(10_000) + "&token=SECRET";
        assert_eq!(query(&long).len(), MAX_BYTES + OMITTED.len());
        let cut = "a".repeat(MAX_BYTES - 9) + "&token=SECRET";
        assert_eq!(query(&cut), "a".repeat(MAX_BYTES - 9) + "&token=……");
    }
}
