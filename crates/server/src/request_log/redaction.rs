//! Request targets without secrets.

use std::fmt;

use axum::extract::Request;
use percent_encoding::percent_decode_str;
use wire::routes::SHARE_LINK_ROOT;

use crate::authorization::ShareLink;

/// The maximum length of a logged path, and of a logged query, in bytes.
const MAX_BYTES: usize = 2048;
/// The mark of an omission.
const OMITTED: &str = "…";
/// The first segment of the paths of links, whose second segment is a secret.
const LINKS: &str = "s";
/// The parameters whose values are secrets.
const SECRET_PARAMETERS: [&str; 4] = ["access_token", "key", "sig", "token"];

/// The path of a request, percent-encoded as it was sent. The secret of a link is not part of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoggedPath(String);

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
        Self(match secret_of_link(kept) {
            Some((before, after)) => format!("{before}{OMITTED}{}", with_mark(after, path, kept)),
            None => with_mark(kept, path, kept),
        })
    }
}

impl fmt::Display for LoggedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Copies a query without the values of secret parameters, and truncates it to some thousand bytes.
pub(super) fn query(query: &str) -> String {
    let kept = start(query, MAX_BYTES);
    let mut redacted = String::with_capacity(kept.len());
    for parameter in kept.split_inclusive(['&', ';']) {
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

/// The start of a text, of at most `max` bytes.
pub(super) fn start(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
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
        assert_eq!(LoggedPath::new(path).to_string(), shown);
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
    fn long_paths_are_truncated_at_a_character() {
        let path = "/store/".to_owned() + &"\u{e9}".repeat(10_000);
        let shown = LoggedPath::new(&path).to_string();
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
