//! The body of a response of status 207 (RFC 4918, section 13).

use std::{fmt::Write, time::SystemTime};

use http::HeaderValue;
use quick_xml::escape::escape;
use zarrd_store::ValueMeta;

use super::{property::Property, propfind::Propfind, proppatch::Proppatch, xml::ElementName};
use crate::{etag, routes::encode, time};

/// The media type of bodies.
pub const XML: HeaderValue = HeaderValue::from_static("application/xml; charset=utf-8");
/// The body of the error of a `PROPFIND` that goes too far below a collection (RFC 4918, section 16).
pub const FINITE_DEPTH_ERROR: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
    <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";

const START: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
const END: &str = "</D:multistatus>\n";
const FORBIDDEN: &str = "403 Forbidden";

/// A resource with its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource<'r> {
    /// A key.
    Value {
        /// The key.
        key: &'r str,
        /// The metadata of its value.
        meta: ValueMeta,
        /// The media type of its value.
        content_type: &'r HeaderValue,
    },
    /// A key whose value is damaged, so that nothing is known of it.
    Damaged {
        /// The key.
        key: &'r str,
    },
    /// A prefix with keys below it, or the root.
    Collection {
        /// The prefix.
        prefix: &'r str,
        /// The time of a change.
        modified: SystemTime,
    },
}

impl Resource<'_> {
    fn has(&self, property: Property) -> bool {
        match self {
            Self::Value { .. } => true,
            Self::Damaged { .. } => property == Property::ResourceType,
            Self::Collection { .. } => property.is_of_collections(),
        }
    }
}

/// Writes responses with the properties that a request asks for.
#[derive(Clone, Debug)]
pub struct Multistatus {
    /// The path before keys, which ends in `/`.
    base: String,
    request: Propfind,
    /// The `propstat` of the properties that no resource has; empty if none was requested.
    not_found: String,
    /// The time of the request, for dates.
    now: SystemTime,
}

impl Multistatus {
    /// A writer of the properties that `request` asks for. The URLs of resources begin with `base`, which ends in `/`.
    pub fn new(base: String, request: Propfind, now: SystemTime) -> Self {
        let not_found = match &request {
            Propfind::Named { unknown, .. } if !unknown.is_empty() => not_found(unknown),
            Propfind::Named { .. } | Propfind::All | Propfind::Names => String::new(),
        };
        Self { base, request, not_found, now }
    }

    /// The text before the first response.
    pub fn start(&self) -> &'static str {
        START
    }

    /// The text after the last response.
    pub fn end(&self) -> &'static str {
        END
    }

    /// The number of bytes that each response has for properties that no resource has.
    pub fn overhead(&self) -> usize {
        self.not_found.len()
    }

    /// Appends the response of a resource.
    pub fn write(&self, out: &mut String, resource: &Resource<'_>) {
        let name = match resource {
            Resource::Value { key, .. } | Resource::Damaged { key } => key,
            Resource::Collection { prefix, .. } => prefix,
        };
        // Writing to memory cannot fail.
        let _ = write!(out, "<D:response><D:href>{}{}</D:href>", escape(&self.base), encode(name));
        let properties: Vec<Property> = match &self.request {
            Propfind::All | Propfind::Names => Property::ALL.to_vec(),
            Propfind::Named { known, .. } => known.clone(),
        };
        let (found, lacking): (Vec<_>, Vec<_>) = properties.into_iter().partition(|property| resource.has(*property));
        if !found.is_empty() {
            out.push_str("<D:propstat><D:prop>");
            for property in found {
                self.write_property(out, property, resource);
            }
            out.push_str("</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>");
        }
        // Only properties that were named are missing.
        if matches!(self.request, Propfind::Named { .. }) && !lacking.is_empty() {
            out.push_str("<D:propstat><D:prop>");
            for property in lacking {
                let _ = write!(out, "<D:{}/>", property.name());
            }
            out.push_str("</D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>");
        }
        out.push_str(&self.not_found);
        out.push_str("</D:response>\n");
    }

    fn write_property(&self, out: &mut String, property: Property, resource: &Resource<'_>) {
        let name = property.name();
        let value = match (&self.request, property, resource) {
            (Propfind::Names, ..) => String::new(),
            (_, Property::LastModified, Resource::Value { meta, .. }) => self.date(meta.modified),
            (_, Property::LastModified, Resource::Collection { modified, .. }) => self.date(*modified),
            (_, Property::ResourceType, Resource::Collection { .. }) => "<D:collection/>".to_owned(),
            (_, Property::Etag, Resource::Value { meta, .. }) => etag::text(meta.version),
            (_, Property::ContentLength, Resource::Value { meta, .. }) => meta.size.to_string(),
            (_, Property::ContentType, Resource::Value { content_type, .. }) => {
                escape(content_type.to_str().unwrap_or_default()).into_owned()
            }
            _ => String::new(),
        };
        let _ = match value.is_empty() {
            true => write!(out, "<D:{name}/>"),
            false => write!(out, "<D:{name}>{value}</D:{name}>"),
        };
    }

    /// A date in the form of `Last-Modified`.
    fn date(&self, modified: SystemTime) -> String {
        time::http_date(time::last_modified(modified, self.now))
    }
}

/// The `propstat` of properties that no resource has.
fn not_found(names: &[ElementName]) -> String {
    let mut out = String::new();
    write_propstat(&mut out, &elements(names), "404 Not Found", "");
    out
}

/// The document of the changes of a resource's properties, of which none is made. `base` ends in `/`, and `name` is the
/// key or prefix.
pub fn unchanged(base: &str, name: &str, request: &Proppatch) -> String {
    let mut out = format!("{START}<D:response><D:href>{}{}</D:href>", escape(base), encode(name));
    let protected: String = request.protected.iter().map(|property| format!("<D:{}/>", property.name())).collect();
    let (set, removed) = (elements(&request.set), elements(&request.removed));
    write_propstat(&mut out, &protected, FORBIDDEN, "<D:error><D:cannot-modify-protected-property/></D:error>");
    let stored = "<D:responsedescription>Properties of clients are not stored</D:responsedescription>";
    write_propstat(&mut out, &set, FORBIDDEN, stored);
    // No resource has these. Removing them is no error unless the request fails for others.
    write_propstat(&mut out, &removed, if request.fails() { "424 Failed Dependency" } else { "200 OK" }, "");
    out.push_str("</D:response>\n");
    out.push_str(END);
    out
}

/// Appends the `propstat` of these elements, if there are any. `rest` follows the status.
fn write_propstat(out: &mut String, elements: &str, status: &str, rest: &str) {
    if !elements.is_empty() {
        // Writing to memory cannot fail.
        let _ = write!(
            out,
            "<D:propstat><D:prop>{elements}</D:prop><D:status>HTTP/1.1 {status}</D:status>{rest}</D:propstat>"
        );
    }
}

/// Empty elements with these names.
fn elements(names: &[ElementName]) -> String {
    let element = |ElementName { namespace, local }: &ElementName| match namespace.as_str() {
        "" => format!("<{local}/>"),
        "DAV:" => format!("<D:{local}/>"),
        namespace => format!("<x:{local} xmlns:x=\"{}\"/>", escape(namespace)),
    };
    names.iter().map(element).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zarrd_store::Version;

    use super::*;
    use crate::headers::OCTETS;

    const MODIFIED: Duration = Duration::from_secs(1_800_000_000);

    fn written(request: &str, base: &str) -> String {
        let at = SystemTime::UNIX_EPOCH + MODIFIED;
        let request = Propfind::parse(request.as_bytes()).unwrap();
        let writer = Multistatus::new(base.to_owned(), request, at + MODIFIED);
        let meta = ValueMeta {
            size: 5,
            version: Version::from_u128(0xab),
            modified: at,
            attributes: zarrd_store::Attributes::NONE,
        };
        let mut out = String::new();
        writer.write(&mut out, &Resource::Value { key: "a b/<&>é", meta, content_type: &OCTETS });
        writer.write(&mut out, &Resource::Collection { prefix: "a b/", modified: at });
        out
    }

    #[test]
    fn resources_have_one_propstat_of_what_they_have() {
        let expected = "<D:response><D:href>/l'x/store/a%20b/%3C%26%3E%C3%A9</D:href><D:propstat><D:prop>\
             <D:getlastmodified>Fri, 15 Jan 2027 08:00:01 GMT</D:getlastmodified><D:resourcetype/>\
             <D:getetag>\"000000000000000000000000000000ab\"</D:getetag><D:getcontentlength>5</D:getcontentlength>\
             <D:getcontenttype>application/octet-stream</D:getcontenttype></D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n\
             <D:response><D:href>/l'x/store/a%20b/</D:href><D:propstat><D:prop>\
             <D:getlastmodified>Fri, 15 Jan 2027 08:00:01 GMT</D:getlastmodified>\
             <D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>\
             </D:response>\n";
        assert_eq!(written("", "/l'x/store/").replace("&apos;", "'"), expected);
    }

    #[test]
    fn damaged_values_have_no_properties_but_their_type() {
        let writer = |request: &str| {
            let request = Propfind::parse(request.as_bytes()).unwrap();
            let mut out = String::new();
            let writer = Multistatus::new("/".to_owned(), request, SystemTime::UNIX_EPOCH);
            writer.write(&mut out, &Resource::Damaged { key: "a/b" });
            out
        };
        let all = "<D:response><D:href>/a/b</D:href><D:propstat><D:prop><D:resourcetype/></D:prop>\
             <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n";
        assert_eq!(writer(""), all);
        let named = writer("<propfind xmlns='DAV:'><prop><getetag/></prop></propfind>");
        assert!(named.contains("<D:prop><D:getetag/></D:prop><D:status>HTTP/1.1 404"), "{named}");
    }

    #[test]
    fn names_have_no_values() {
        let names = written("<propfind xmlns='DAV:'><propname/></propfind>", "/");
        assert!(names.contains("<D:getetag/><D:getcontentlength/>") && !names.contains("<D:collection/>"), "{names}");
    }

    #[test]
    fn named_properties_that_a_resource_lacks_are_not_found() {
        let request =
            "<propfind xmlns='DAV:'><prop><getetag/><quota/><s xmlns='u&amp;&quot;'/><t xmlns=''/></prop></propfind>";
        let text = written(request, "/");
        let not_found = "<D:propstat><D:prop><D:quota/><x:s xmlns:x=\"u&amp;&quot;\"/><t/></D:prop>\
             <D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>\n";
        let (value, collection) = text.split_once('\n').unwrap();
        assert!(format!("{value}\n").ends_with(&format!("</D:status></D:propstat>{not_found}")), "{value}");
        assert!(value.contains("<D:getetag>\"") && value.matches("404").count() == 1, "{value}");
        assert!(collection.contains("<D:prop><D:getetag/></D:prop><D:status>HTTP/1.1 404"), "{collection}");
        assert!(!collection.contains("200 OK"), "{collection}");
    }

    #[test]
    fn unchanged_properties_have_the_status_of_the_reason() {
        let written = |instructions: &str| {
            let body = format!("<propertyupdate xmlns='DAV:'>{instructions}</propertyupdate>");
            unchanged("/l'x/", "a b/", &Proppatch::parse(body.as_bytes()).unwrap())
        };
        let text = written(
            "<set><prop><getetag/><s xmlns='u&amp;&quot;'>1</s></prop></set><remove><prop><t xmlns=''/></prop></remove>",
        );
        let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n\
             <D:response><D:href>/l&apos;x/a%20b/</D:href><D:propstat><D:prop><D:getetag/></D:prop>\
             <D:status>HTTP/1.1 403 Forbidden</D:status><D:error><D:cannot-modify-protected-property/></D:error>\
             </D:propstat><D:propstat><D:prop><x:s xmlns:x=\"u&amp;&quot;\"/></D:prop>\
             <D:status>HTTP/1.1 403 Forbidden</D:status>\
             <D:responsedescription>Properties of clients are not stored</D:responsedescription></D:propstat>\
             <D:propstat><D:prop><t/></D:prop><D:status>HTTP/1.1 424 Failed Dependency</D:status></D:propstat>\
             </D:response>\n</D:multistatus>\n";
        assert_eq!(text, expected);
        let removed = written("<remove><prop><t/></prop></remove>");
        assert!(removed.contains("<D:t/></D:prop><D:status>HTTP/1.1 200 OK") && !removed.contains("403"), "{removed}");
    }
}
