//! The XML of listings and errors.

use std::time::{SystemTime, UNIX_EPOCH};

use percent_encoding::percent_decode_str;
use quick_xml::{
    Reader, XmlVersion,
    events::{BytesRef, BytesStart, Event},
};
use zarrd_store_remote::seconds;

use crate::{
    failure::{Failure, Refusal},
    location::Service,
};

/// The deepest nesting of elements in an answer.
const MAX_DEPTH: usize = 32;

/// A page of a listing. The order is that of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) objects: Vec<ListedObject>,
    /// The prefixes, which end in the delimiter.
    pub(crate) prefixes: Vec<String>,
    /// The token of the next page.
    pub(crate) next: Option<String>,
}

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedObject {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) etag: Option<String>,
    pub(crate) modified: SystemTime,
}

/// The parts of an entry, as far as they were read.
#[derive(Debug, Default)]
struct Entry {
    /// `None` if the name cannot be represented, and thus is no key.
    name: Option<String>,
    size: Option<u64>,
    etag: Option<String>,
    modified: Option<SystemTime>,
    is_directory: bool,
}

/// Parses a page of a listing.
pub(crate) fn parse_listing(bytes: &[u8], service: Service) -> Result<Listed, Failure> {
    let root = match service {
        Service::S3 | Service::Google => "ListBucketResult",
        Service::Azure => "EnumerationResults",
    };
    let mut page = Page::default();
    let mut code = None;
    let mut first = None;
    walk(bytes, |element| match element {
        Element::Start(path) => {
            if path.len() == 1 {
                first = path.last().cloned();
            }
            page.start(path);
        }
        Element::End { path, text, encoded } => {
            if path == ["Error", "Code"] {
                code = text.map(str::to_owned);
            }
            page.end(path, text, encoded);
        }
    })
    .map_err(|error| Failure::Listing(format!("it is not valid XML ({error})")))?;
    match first.as_deref() {
        Some(first) if first == root => page.finish(),
        // S3 sends some errors after the status of success.
        Some("Error") => Err(Failure::Refused(Refusal { status: 500, code, ..Refusal::default() })),
        _ => Err(Failure::Listing(format!("it is not an XML document of {root}"))),
    }
}

/// Parses the body of an error: its code, and the region that it names.
pub(crate) fn parse_error(bytes: &[u8]) -> (Option<String>, Option<String>) {
    let (mut code, mut region) = (None, None);
    // The members before a cut, or before invalid text, are used.
    let _ = walk(bytes, |element| {
        if let Element::End { path, text: Some(text), .. } = element {
            match path {
                [error, name] if error == "Error" && name == "Code" => code = Some(text.to_owned()),
                [error, name] if error == "Error" && name == "Region" => region = Some(text.to_owned()),
                _ => {}
            }
        }
    });
    (code, region)
}

/// Parses the answer to the deletion of several objects: the first code of an error. That an object does not
/// exist is none.
pub(crate) fn parse_deletes(bytes: &[u8]) -> Result<Option<String>, Failure> {
    let (mut code, mut root) = (None, None);
    walk(bytes, |element| match element {
        Element::Start(path) => root = root.take().or_else(|| path.first().cloned()),
        Element::End { path: [_, error, name], text: Some(text), .. } if error == "Error" && name == "Code" => {
            code = code.take().or_else(|| Some(text.to_owned()).filter(|code| code != "NoSuchKey"));
        }
        Element::End { path: [error, name], text: Some(text), .. } if error == "Error" && name == "Code" => {
            code = Some(text.to_owned());
        }
        Element::End { .. } => {}
    })
    .map_err(|error| Failure::Answer(format!("it is not valid XML ({error})")))?;
    match root.as_deref() {
        Some("DeleteResult" | "Error") => Ok(code),
        _ => Err(Failure::Answer("it is not an XML document of DeleteResult".to_owned())),
    }
}

#[derive(Debug, Default)]
struct Page {
    listed: Listed,
    entry: Entry,
    truncated: bool,
    invalid: Option<&'static str>,
}

impl Page {
    fn start(&mut self, path: &[String]) {
        if matches!(path.last().map(String::as_str), Some("Contents" | "CommonPrefixes" | "Blob" | "BlobPrefix")) {
            self.entry = Entry::default();
        }
    }

    /// Takes an element that ended. `text` is `None` if it has characters that XML does not allow.
    fn end(&mut self, path: &[String], text: Option<&str>, encoded: bool) {
        let names: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
        let value = text.unwrap_or_default().trim();
        match names.as_slice() {
            ["Contents", "Key"] | ["CommonPrefixes", "Prefix"] | ["Blobs", "Blob" | "BlobPrefix", "Name"] => {
                self.entry.name = text.and_then(|text| decode_name(text, encoded));
            }
            ["Contents", "Size"] | ["Blobs", "Blob", "Properties", "Content-Length"] => {
                self.entry.size = value.parse().ok();
            }
            ["Contents", "ETag"] | ["Blobs", "Blob", "Properties", "Etag"] => {
                self.entry.etag = Some(value.to_owned()).filter(|etag| !etag.is_empty());
            }
            ["Contents", "LastModified"] => self.entry.modified = humantime::parse_rfc3339(value).ok(),
            ["Blobs", "Blob", "Properties", "Last-Modified"] => {
                self.entry.modified = httpdate::parse_http_date(value).ok();
            }
            ["Blobs", "Blob", "Properties", "ResourceType"] => self.entry.is_directory = value == "directory",
            ["Contents"] | ["Blobs", "Blob"] => self.object(),
            ["CommonPrefixes"] | ["Blobs", "BlobPrefix"] => self.listed.prefixes.extend(self.entry.name.take()),
            ["NextContinuationToken" | "NextMarker"] => {
                self.listed.next = text.map(str::to_owned).filter(|token| !token.is_empty());
            }
            ["IsTruncated"] => self.truncated = value == "true",
            _ => {}
        }
    }

    fn object(&mut self) {
        let entry = std::mem::take(&mut self.entry);
        let Some(name) = entry.name.filter(|_| !entry.is_directory) else { return };
        let Some(size) = entry.size else {
            self.invalid = Some("an object has no size");
            return;
        };
        let modified = seconds(entry.modified.unwrap_or(UNIX_EPOCH));
        self.listed.objects.push(ListedObject { name, size, etag: entry.etag, modified });
    }

    fn finish(self) -> Result<Listed, Failure> {
        if let Some(invalid) = self.invalid {
            return Err(Failure::Listing(invalid.to_owned()));
        }
        if self.truncated && self.listed.next.is_none() {
            return Err(Failure::Listing("it is cut and has no token for the rest".to_owned()));
        }
        Ok(self.listed)
    }
}

/// Azure encodes names with characters that XML does not allow.
fn decode_name(text: &str, encoded: bool) -> Option<String> {
    if !encoded {
        return Some(text.to_owned());
    }
    percent_decode_str(text).decode_utf8().ok().map(|name| name.into_owned())
}

/// A part of a document.
enum Element<'e> {
    /// An element begins.
    Start(&'e [String]),
    /// An element ends.
    End { path: &'e [String], text: Option<&'e str>, encoded: bool },
}

/// Visits the elements of a document. Fails with a short description.
fn walk(bytes: &[u8], mut visit: impl FnMut(Element<'_>)) -> Result<(), &'static str> {
    let mut reader = Reader::from_reader(bytes);
    let mut path: Vec<String> = Vec::new();
    let mut text: Option<String> = Some(String::new());
    let mut encoded = false;
    let begin = |path: &mut Vec<String>, start: &BytesStart<'_>| {
        path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
        if path.len() > MAX_DEPTH { Err("it is nested too deeply") } else { Ok(()) }
    };
    loop {
        let event = reader.read_event().map_err(|_| "it is malformed")?;
        match event {
            Event::Start(start) => {
                begin(&mut path, &start)?;
                encoded =
                    start.try_get_attribute("Encoded").ok().flatten().is_some_and(|found| &*found.value == b"true");
                text = Some(String::new());
                visit(Element::Start(&path));
            }
            Event::Empty(start) => {
                begin(&mut path, &start)?;
                visit(Element::Start(&path));
                visit(Element::End { path: &path, text: Some(""), encoded: false });
                path.pop();
                text = Some(String::new());
            }
            Event::End(_) => {
                visit(Element::End { path: &path, text: text.as_deref(), encoded });
                path.pop();
                text = Some(String::new());
            }
            Event::Text(part) => append(&mut text, part.xml_content(XmlVersion::Explicit1_0).ok().as_deref()),
            Event::CData(part) => append(&mut text, part.decode().ok().as_deref()),
            Event::GeneralRef(reference) => append(&mut text, resolve(&reference).as_deref()),
            Event::Eof if path.is_empty() => return Ok(()),
            Event::Eof => return Err("it is cut"),
            _ => {}
        }
    }
}

fn append(text: &mut Option<String>, part: Option<&str>) {
    match (text.as_mut(), part) {
        (Some(text), Some(part)) => text.push_str(part),
        _ => *text = None,
    }
}

/// The character that a reference stands for.
fn resolve(reference: &BytesRef<'_>) -> Option<String> {
    if let Some(character) = reference.resolve_char_ref().ok()? {
        return Some(character.to_string());
    }
    let text = match &*reference.decode().ok()? {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => return None,
    };
    Some(text.to_owned())
}
