//! WebDAV, class 1 (RFC 4918): methods, headers, and the XML of `PROPFIND` and `PROPPATCH`.
//!
//! A key is a resource with content, a prefix with keys below it a collection. Bodies are read with bounds on their
//! size, depth and names, and without document types or entities of their own.

mod headers;
mod if_header;
mod multistatus;
mod property;
mod propfind;
mod proppatch;
mod xml;

use http::Method;

pub use self::{
    headers::{
        DAV, DEPTH, DESTINATION, DavHeaderError, Depth, FORWARDED_HOST, OVERWRITE, Overwrite, depth, destination,
        overwrite, own_path,
    },
    if_header::{IF, IfHeader, IfHeaderError, MAX_IF_CONDITIONS},
    multistatus::{FINITE_DEPTH_ERROR, Multistatus, Resource, XML, unchanged},
    property::Property,
    propfind::Propfind,
    proppatch::Proppatch,
    xml::{ElementName, MAX_PROPERTIES, MAX_XML_SIZE, XmlError},
};

/// The classes of WebDAV that are supported, which is the value of the header `DAV`.
pub const CLASSES: &str = "1";

/// The method `PROPFIND`, which reads properties.
pub fn propfind() -> Method {
    extension(b"PROPFIND")
}

/// The method `PROPPATCH`, which changes properties.
pub fn proppatch() -> Method {
    extension(b"PROPPATCH")
}

/// The method `MKCOL`, which makes a collection.
pub fn mkcol() -> Method {
    extension(b"MKCOL")
}

/// The method `COPY`.
pub fn copy() -> Method {
    extension(b"COPY")
}

/// The method `MOVE`.
pub fn move_() -> Method {
    extension(b"MOVE")
}

/// A method by its name, which is a token of HTTP.
fn extension(name: &[u8]) -> Method {
    Method::from_bytes(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_their_names() {
        let names = [propfind(), proppatch(), mkcol(), copy(), move_()].map(|method| method.to_string());
        assert_eq!(names, ["PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE"]);
    }
}
