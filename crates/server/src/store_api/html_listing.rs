//! HTML listings, for browsers and link followers such as fsspec and GDAL.
//!
//! GDAL requires `Index of` with the path in the title, and each link on its own line. fsspec takes every link and
//! everything that looks like a URL for a child, so the page contains no others. It takes the text of a link for a name
//! as it is, so the links that are sent to it are not percent-encoded ([`Links::Names`]).

use std::fmt::{self, Write};

use bytes::Bytes;
use zarrd_store::{DirPage, Entry, Prefix};
use zarrd_wire::{routes::encode, time};

use crate::extract::Links;

/// The page before the rows. The title has the path of the URL, in which `base` precedes the prefix.
pub(super) fn head(base: &str, prefix: &Prefix) -> Bytes {
    let title = format!("Index of {base}{prefix}");
    let title = Escaped(&title);
    Bytes::from(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<table>\n"
    ))
}

/// A name as a link.
struct Link<'n>(Links, &'n str);

impl fmt::Display for Link<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Links::Names, name) = self else { return write!(f, "{}", encode(self.1)) };
        // What begins so is taken for a URL.
        if name.starts_with("http") {
            f.write_str("./")?;
        }
        let mut rest = name.chars();
        while let Some(character) = rest.next() {
            match character {
                // Quotes end a link, and what follows these marks is cut off.
                '"' | '\'' | '#' | '?' => write!(f, "{}", encode(character.encode_utf8(&mut [0; 4])))?,
                character if character.is_control() => write!(f, "{}", encode(character.encode_utf8(&mut [0; 4])))?,
                // It would be taken for an escape.
                '%' if begins_with_hex_pair(rest.as_str()) => f.write_str("%25")?,
                character => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

fn begins_with_hex_pair(text: &str) -> bool {
    text.as_bytes().first_chunk::<2>().is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
}

/// One row for each child.
pub(super) fn rows(links: Links, prefix: &Prefix, page: &DirPage) -> Bytes {
    let mut html = String::new();
    for child in &page.prefixes {
        let name = child.name();
        // Writing to memory cannot fail.
        let _ = writeln!(html, "<tr><td><a href=\"{}/\">{}/</a></td></tr>", Link(links, name), Escaped(name));
    }
    for Entry { key, meta, is_damaged } in &page.keys {
        let name = prefix.strip(key).unwrap_or_else(|| key.name());
        let (href, name, modified) = (Link(links, name), Escaped(name), time::rfc3339(meta.modified));
        if *is_damaged {
            let _ = writeln!(
                html,
                "<tr class=\"damaged\"><td><a href=\"{href}\">{name}</a></td><td>damaged</td><td></td></tr>"
            );
            continue;
        }
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
    fn links_for_fsspec_are_names() {
        for (name, shown) in [
            ("plain", "plain"),
            ("a+b:c,d=e @u[x] ü日本", "a+b:c,d=e @u[x] ü日本"),
            ("a&b<c>\\d", "a&b<c>\\d"),
            ("100%", "100%"),
            ("5%a", "5%a"),
            ("%C3%BC", "%25C3%25BC"),
            ("q'q\"?#\n", "q%27q%22%3F%23%0A"),
            ("https", "./https"),
        ] {
            assert_eq!(Link(Links::Names, name).to_string(), shown);
        }
        assert_eq!(Link(Links::References, "a:b ü'").to_string(), encode("a:b ü'").to_string());
    }

    #[test]
    fn damaged_keys_have_a_class_and_no_size() {
        let keys = vec![Entry::damaged(zarrd_store::Key::parse("a/b").unwrap(), 7)];
        let page = DirPage { keys, prefixes: Vec::new(), cursor: None };
        let html = rows(Links::References, &Prefix::parse("a/").unwrap(), &page);
        assert_eq!(html, "<tr class=\"damaged\"><td><a href=\"b\">b</a></td><td>damaged</td><td></td></tr>\n");
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(Escaped("<a href='x'>&\"é").to_string(), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;é");
    }
}
