//! HTML listings, for browsers and link followers such as fsspec and GDAL.
//!
//! GDAL requires `Index of` with the path in the title, and each link on its own line. fsspec takes every link and
//! everything that looks like a URL for a child, so the page contains no others.

use std::fmt::{self, Write};

use bytes::Bytes;
use zarrd_store::{DirPage, Entry, Prefix};
use zarrd_wire::{
    routes::{STORE_ROOT, encode},
    time,
};

/// The page before the rows. The title has the path of the URL, in which `base` precedes the usual path.
pub(super) fn head(base: &str, prefix: &Prefix) -> Bytes {
    let title = format!("Index of {base}{STORE_ROOT}{prefix}");
    let title = Escaped(&title);
    Bytes::from(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<table>\n"
    ))
}

/// One row for each child.
pub(super) fn rows(prefix: &Prefix, page: &DirPage) -> Bytes {
    let mut html = String::new();
    for child in &page.prefixes {
        let name = child.name();
        // Writing to memory cannot fail.
        let _ = writeln!(html, "<tr><td><a href=\"{}/\">{}/</a></td></tr>", encode(name), Escaped(name));
    }
    for Entry { key, meta } in &page.keys {
        let name = prefix.strip(key).unwrap_or_else(|| key.name());
        let (href, name, modified) = (encode(name), Escaped(name), time::rfc3339(meta.modified));
        let _ = writeln!(
            html,
            "<tr><td><a href=\"{href}\">{name}</a></td><td>{size}</td><td>{modified}</td></tr>",
            size = meta.size,
        );
    }
    html.into()
}

/// The page after the rows.
pub(super) fn foot() -> Bytes {
    Bytes::from_static(b"</table>\n</body>\n</html>\n")
}

/// Escapes a text for HTML content and attributes.
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
