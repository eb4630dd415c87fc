//! Entity tags of S3, and the conditions with them.
//!
//! Clients take 32 bare hexadecimal digits for an MD5 of the value, so that a version is shown as `"<version>-1"`, like the
//! tag of an upload in parts.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE},
};
use s3s::dto::ETag;
use zarrd_store::{Version, VersionMatch};
use zarrd_wire::etag;

/// The conditions on the source of a copy, and the ordinary ones that they are like.
const OF_SOURCES: [(&str, HeaderName); 4] = [
    ("x-amz-copy-source-if-match", IF_MATCH),
    ("x-amz-copy-source-if-none-match", IF_NONE_MATCH),
    ("x-amz-copy-source-if-modified-since", IF_MODIFIED_SINCE),
    ("x-amz-copy-source-if-unmodified-since", IF_UNMODIFIED_SINCE),
];

/// The entity tag of a version.
pub fn entity_tag(version: Version) -> ETag {
    ETag::Strong(format!("{version}-1"))
}

/// The header with the entity tag of a version.
pub fn entity_tag_header(version: Version) -> HeaderValue {
    // Digits and `-` are valid in a header.
    entity_tag(version).to_http_header().unwrap_or(HeaderValue::from_static("\"\""))
}

/// The version that an entity tag stands for.
pub fn tagged_version(tag: &ETag) -> Option<Version> {
    tag.as_strong().and_then(|text| version(text.as_bytes()))
}

/// Rewrites the conditions of a request so that their entity tags are versions.
///
/// Unquoted tags are accepted, lists, weak ones in `If-None-Match`, and `""`, which matches no version.
pub fn rewrite_conditions(headers: &mut HeaderMap) {
    for name in [IF_MATCH, IF_NONE_MATCH] {
        let weak_matches = name == IF_NONE_MATCH;
        let mut lines = headers.get_all(&name).iter().peekable();
        if lines.peek().is_none() {
            continue;
        }
        let versions =
            lines.try_fold(Vec::new(), |mut versions, line| match versions_in(line.as_bytes(), weak_matches) {
                VersionMatch::Any => None,
                VersionMatch::OneOf(found) => {
                    versions.extend(found);
                    Some(versions)
                }
            });
        let wanted = versions.map_or(VersionMatch::Any, VersionMatch::OneOf);
        headers.insert(name, etag::render_list(&wanted));
    }
    if let Some(version) = headers.get(IF_RANGE).and_then(|line| version(line.as_bytes())) {
        headers.insert(IF_RANGE, etag::render(version));
    }
}

/// Removes the conditions on the source of a copy from the headers of a request. Returns them as ordinary ones.
pub fn rewrite_copy_conditions(headers: &mut HeaderMap) -> HeaderMap {
    let mut conditions = HeaderMap::new();
    for (name, ordinary) in OF_SOURCES {
        if let http::header::Entry::Occupied(entry) = headers.entry(HeaderName::from_static(name)) {
            let (_, values) = entry.remove_entry_mult();
            conditions.extend(values.map(|value: HeaderValue| (ordinary.clone(), value)));
        }
    }
    rewrite_conditions(&mut conditions);
    conditions
}

/// The versions that a list of entity tags names.
fn versions_in(list: &[u8], weak_matches: bool) -> VersionMatch {
    let mut versions = Vec::new();
    for tag in list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        if tag == b"*" {
            return VersionMatch::Any;
        }
        match tag.strip_prefix(b"W/") {
            Some(weak) if weak_matches => versions.extend(version(weak)),
            Some(_) => {}
            None => versions.extend(version(tag)),
        }
    }
    VersionMatch::OneOf(versions)
}

/// The version that a tag stands for, with or without quotes and the number of parts.
fn version(tag: &[u8]) -> Option<Version> {
    let text = str::from_utf8(tag).ok()?.trim();
    let text = text.strip_prefix('"').map_or(Some(text), |rest| rest.strip_suffix('"'))?;
    let text = match text.rsplit_once('-') {
        Some((version, "1")) => version,
        Some(_) => return None,
        None => text,
    };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V: &str = "000000000000000000000000000000ab";

    fn rewritten(name: HeaderName, line: &str) -> String {
        let mut headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_str(line).unwrap())]);
        rewrite_conditions(&mut headers);
        headers[&name].to_str().unwrap().to_owned()
    }

    #[test]
    fn spellings_of_a_tag_are_one_version() {
        assert_eq!(entity_tag(Version::from_u128(0xab)), ETag::Strong(format!("{V}-1")));
        for line in [format!("\"{V}-1\""), format!("{V}-1"), format!(" \"{V}\" "), format!("\"x\", {V}-1")] {
            assert_eq!(rewritten(IF_MATCH, &line), format!("\"{V}\""), "{line}");
        }
        assert_eq!(rewritten(IF_NONE_MATCH, &format!("W/\"{V}-1\"")), format!("\"{V}\""));
        assert_eq!(rewritten(IF_RANGE, &format!("{V}-1")), format!("\"{V}\""));
        assert_eq!(rewritten(IF_NONE_MATCH, "*"), "*");
        assert_eq!(rewritten(IF_NONE_MATCH, "\"a\", *"), "*");
        for absent in ["\"\"", "", "\"abc", "d41d8cd98f00b204e9800998ecf8427e-2", &format!("\"{V}-2\"")] {
            assert_eq!(rewritten(IF_MATCH, absent), "\"\"", "{absent}");
        }
        assert_eq!(rewritten(IF_MATCH, &format!("W/\"{V}-1\"")), "\"\"");
    }

    #[test]
    fn conditions_on_the_source_of_a_copy_become_ordinary_ones() {
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-copy-source-if-match", format!("{V}-1").parse().unwrap());
        headers.insert("x-amz-copy-source-if-modified-since", "Sat, 21 Nov 2026 06:28:08 GMT".parse().unwrap());
        headers.insert(IF_NONE_MATCH, "*".parse().unwrap());
        let conditions = rewrite_copy_conditions(&mut headers);
        assert_eq!((headers.len(), conditions.len()), (1, 2));
        assert_eq!(conditions[IF_MATCH], format!("\"{V}\""));
    }
}
