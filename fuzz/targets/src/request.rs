//! Requests of clients and, for the client, responses of servers.

use http::{HeaderMap, HeaderValue, header};
use zarrd_store::{Cursor, CursorSigner, Key, ListingKind, Prefix, StoreError};
use zarrd_wire::{
    digest, etag, listing, node,
    problem::Problem,
    query,
    range::{self, RangeRequest},
    routes::{self, Slashes, StoreTarget},
    time,
};

/// The parsers of requests and, for the client, of responses. The first byte selects one.
pub fn request(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    match choice % 8 {
        0 => target(&text),
        1 => ranges(&text),
        2 => validators(rest),
        3 => queries(&text),
        4 => digests(&text),
        5 => keys(rest),
        6 => cursors(&text),
        _ => answers(rest),
    }
}

fn target(text: &str) {
    for slashes in [Slashes::Collapse, Slashes::Refuse] {
        let Ok(target) = routes::parse_store(text, slashes) else { continue };
        // A rendered target parses to the same value.
        let path = match &target {
            StoreTarget::Key(key) => routes::key_path(key),
            StoreTarget::Prefix(prefix) => routes::prefix_path(prefix),
        };
        let rest = path.strip_prefix("/store/").expect("a path of the store");
        assert_eq!(routes::parse_store(rest, Slashes::Refuse).expect("a path that we made"), target);
    }
    for slashes in [Slashes::Collapse, Slashes::Refuse] {
        let Ok(node) = routes::parse_node(&format!("{}{text}", routes::NODE_ROOT), slashes) else { continue };
        assert_eq!(routes::parse_node(&routes::node_path(&node), Slashes::Refuse).as_ref(), Ok(&node));
        assert_eq!(routes::parse_array(&routes::array_path(&node), Slashes::Refuse).as_ref(), Ok(&node));
    }
    let _ = routes::parse_schema(text);
}

fn ranges(text: &str) {
    if let RangeRequest::One(range) = range::parse(text) {
        assert_eq!(range::parse(&range::render(range)), RangeRequest::One(range));
        for size in [0, 1, 1000, u64::MAX] {
            if let Some(bytes) = range.resolve(size) {
                assert!(bytes.start <= bytes.end && bytes.end <= size);
            }
        }
    }
    if let Some(found) = range::ContentRange::parse(text) {
        assert_eq!(range::ContentRange::parse(&found.render()), Some(found));
    }
}

fn validators(bytes: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(bytes) else { return };
    for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.clone());
        let Ok(precondition) = etag::precondition(&headers) else { continue };
        precondition.is_met_by(None);
    }
    if let Some(version) = value.to_str().ok().and_then(etag::parse) {
        assert_eq!(etag::parse(&etag::text(version)), Some(version));
    }
    if let Ok(text) = value.to_str() {
        let _ = time::parse_http_date(text);
        let _ = time::parse_rfc3339(text);
    }
}

fn queries(text: &str) {
    if let Ok(query) = query::ListQuery::parse(text) {
        let rendered = query.render();
        let again = query::ListQuery::parse(rendered.trim_start_matches('?')).expect("a query that we made");
        assert_eq!(again, query);
    }
    let _ = query::Confirmation::parse(text);
    let _ = query::parse_key_write(text);
    again(text, query::ElementsQuery::parse, query::ElementsQuery::render);
    again(text, query::ElementsQuery::parse_post, query::ElementsQuery::render_post);
    again(text, query::WriteQuery::parse, query::WriteQuery::render);
    again(text, query::CreateQuery::parse, query::CreateQuery::render);
    again(text, query::NodeQuery::parse, query::NodeQuery::render);
    again(text, query::NodePutQuery::parse, query::NodePutQuery::render);
    again(text, query::NodePatchQuery::parse, query::NodePatchQuery::render);
    again(text, query::NodeDeleteQuery::parse, query::NodeDeleteQuery::render);
    // The parsers find every parameter that the query contains.
    if again(text, query::AppendQuery::parse, query::AppendQuery::render).is_some() {
        assert!(query::names(text, query::APPEND) && !query::names(text, query::READ));
    }
    let converts = |found| matches!(found, query::NodePostQuery::Convert { .. });
    if let Some(found) = again(text, query::NodePostQuery::parse, query::NodePostQuery::render) {
        assert_eq!(query::names(text, query::CONVERT), converts(found));
    }
}

/// A rendered query parses to the same value.
fn again<Q: PartialEq + std::fmt::Debug>(
    text: &str,
    parse: fn(&str) -> Result<Q, query::QueryError>,
    render: fn(&Q) -> String,
) -> Option<Q> {
    let found = parse(text).ok()?;
    assert_eq!(parse(&render(&found)).as_ref(), Ok(&found));
    Some(found)
}

fn digests(text: &str) {
    for digest in digest::parse(text).unwrap_or_default() {
        assert_eq!(digest.hash.len(), digest.algorithm.hash_len());
    }
}

fn keys(bytes: &[u8]) {
    if let Ok(key) = Key::from_bytes(bytes) {
        assert_eq!(key.parent().join(key.name()), Ok(key.clone()));
        assert!(key.parent().contains(&key));
    }
    if let Ok(prefix) = Prefix::from_bytes(bytes) {
        assert!(prefix.is_root() || prefix.upper_bound().is_some_and(|end| end.as_str() > prefix.as_str()));
    }
}

fn cursors(text: &str) {
    let seal = CursorSigner::new(7);
    match seal.verify(ListingKind::Keys, &Prefix::root(), &Cursor::from_text(text)) {
        Ok(last) => assert_eq!(seal.sign(ListingKind::Keys, &Prefix::root(), &last).as_str(), text),
        Err(error) => assert!(matches!(error, StoreError::InvalidCursor)),
    }
}

fn answers(bytes: &[u8]) {
    if let Some(problem) = Problem::from_json(bytes) {
        let _ = problem.to_json();
    }
    if let Ok(answer) = zarrd_meta::json::Json::parse(bytes.to_vec()) {
        let _ = node::Source::of_answer(&answer);
    }
    let _ = serde_json::from_slice::<node::ValidateReport>(bytes);
    let _ = serde_json::from_slice::<node::ConvertReport>(bytes);
    let _ = serde_json::from_slice::<node::WriteAnswer>(bytes);
    let _ = serde_json::from_slice::<listing::DirListing>(bytes).map(listing::DirListing::into_page);
    let _ = serde_json::from_slice::<listing::KeyListing>(bytes).map(listing::KeyListing::into_page);
}
