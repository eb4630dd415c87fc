//! Listings as HTML, for browsers and for the programs that follow links: fsspec and GDAL.
//!
//! GDAL wants `Index of` and the path in the title, and each link on a line of its own. fsspec takes every link, and
//! everything that looks like a URL, for a child; so there is nothing else of the kind.

use std::fmt::{self, Write};

use bytes::Bytes;
use store::{DirPage, Entry, Prefix};
use wire::{
    routes::{STORE_ROOT, encode},
    time,
};

/// What comes before the children.
pub(super) fn head(prefix: &Prefix) -> Bytes {
    let title = format!("Index of {STORE_ROOT}{prefix}");
    let title = Escaped(&title);
    Bytes::from(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<table>\n"
    ))
}

/// One row per child.
pub(super) fn rows(prefix: &Prefix, page: &DirPage) -> Bytes {
    let mut html = String::new();
    for child in &page.prefixes {
        let name = child.name();
        // Writing into memory does not fail.
        let _ = writeln!(html, "<tr><td><a href=\"{}/\">{}/</a></td></tr>", encode(name), Escaped(name));
    }
    for Entry { key, info } in &page.keys {
        let name = prefix.strip(key).unwrap_or_else(|| key.name());
        let (href, name, modified) = (encode(name), Escaped(name), time::rfc3339(info.modified));
        let _ = writeln!(
            html,
            "<tr><td><a href=\"{href}\">{name}</a></td><td>{size}</td><td>{modified}</td></tr>",
            size = info.size,
        );
    }
    html.into()
}

/// What comes after the children.
pub(super) fn foot() -> Bytes {
    Bytes::from_static(b"</table>\n</body>\n</html>\n")
}

/// A text that stands for itself in HTML, also within quotes.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(Escaped("<a href='x'>&\"é").to_string(), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;é");
    }
}
