//! WebDAV, class 1 (RFC 4918): methods, headers, and the XML of `PROPFIND`.
//!
//! A key is a resource with content, a prefix with keys below it a collection. Bodies are read with bounds on their
//! size, depth and names, and without document types or entities of their own.

mod headers;
mod if_header;
mod multistatus;
mod propfind;

use http::Method;

pub use self::{
    headers::{
        DAV, DEPTH, DESTINATION, DavHeaderError, Depth, FORWARDED_HOST, OVERWRITE, Overwrite, depth, destination,
        overwrite, own_path,
    },
    if_header::{IF, IfHeader, IfHeaderError, MAX_IF_CONDITIONS},
    multistatus::{FINITE_DEPTH_ERROR, Multistatus, Resource, XML},
    propfind::{MAX_PROPERTIES, MAX_PROPFIND_SIZE, Property, PropertyName, Propfind, PropfindError},
};

/// The classes of WebDAV that are supported, which is the value of the header `DAV`.
pub const CLASSES: &str = "1";

/// The method `PROPFIND`, which reads properties.
pub fn propfind() -> Method {
    extension(b"PROPFIND")
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
        let names = [propfind(), mkcol(), copy(), move_()].map(|method| method.to_string());
        assert_eq!(names, ["PROPFIND", "MKCOL", "COPY", "MOVE"]);
    }
}
