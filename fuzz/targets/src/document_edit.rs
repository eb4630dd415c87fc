//! In-place edits of JSON texts.

use std::collections::HashMap;

use serde_json::{Map, Value};
use zarrd_meta::json::{Json, Kind, Member};

/// Parses a document and a merge patch, separated by a zero byte, which is not valid JSON.
pub fn document_edit(data: &[u8]) {
    let mut parts = data.splitn(2, |&byte| byte == 0);
    let document = parse(parts.next().unwrap_or_default());
    let patch = parts.next().and_then(parse);
    let (Some(document), Some(patch)) = (document, patch) else { return };
    if !patch.is_object() {
        return;
    }
    let edited = document.merged(&patch);
    assert_eq!(Json::parse(edited.to_bytes()).as_ref(), Ok(&edited));
    assert_eq!(edited.merged(&patch), edited, "twice is once");
    unnamed_stays(&document, &patch, &edited);
    if let (Ok(mut merged), Ok(patch)) = (document.to_value(), patch.to_value()) {
        merge(&mut merged, patch);
        assert_eq!(edited, merged);
    }
}

/// Parses a text if serde_json accepts it, compares the results, and checks the parts.
fn parse(text: &[u8]) -> Option<Json> {
    let value = serde_json::from_slice::<Value>(text);
    let json = match (Json::parse(text.to_vec()), &value) {
        (Ok(json), _) => json,
        (Err(error), Err(_)) => {
            drop(error.to_string());
            return None;
        }
        (Err(error), Ok(value)) => panic!("{error}: {value}"),
    };
    if let Ok(value) = value {
        assert_eq!(json, value);
        assert_eq!(Json::parse(Json::compact(&value).to_bytes()).expect("the output of serde_json"), value);
    }
    parts(&json);
    let formatted = json.formatted();
    assert_eq!(Json::parse(formatted.to_bytes()).as_ref(), Ok(&formatted));
    assert_eq!(tokens(&formatted), tokens(&json));
    assert_eq!(formatted.formatted(), formatted);
    Some(json)
}

/// Every part is a valid text on its own.
fn parts(json: &Json) {
    let values = match json.kind() {
        Kind::Object => json.members().map(|member| member.value).collect::<Vec<_>>(),
        Kind::Array => json.items().collect(),
        _ => return,
    };
    let deepest = values.iter().map(Json::depth).max().unwrap_or_default();
    assert_eq!(json.depth(), deepest + 1);
    for value in values {
        assert_eq!(Json::parse(value.to_bytes()).as_ref(), Ok(&value));
        parts(&value);
    }
}

/// The text without the whitespace between its values.
fn tokens(json: &Json) -> Vec<u8> {
    let (mut in_string, mut is_escaped) = (false, false);
    let is_token = |byte: &u8| {
        let is_token = in_string || !byte.is_ascii_whitespace();
        in_string ^= *byte == b'"' && !is_escaped;
        is_escaped = in_string && *byte == b'\\' && !is_escaped;
        is_token
    };
    json.as_bytes().iter().copied().filter(is_token).collect()
}

/// The effect of a patch on a member.
enum Fate<'a> {
    Stays,
    Goes,
    Changes(&'a Json),
}

/// The bytes of unnamed members are unchanged, also within modified objects; if no member is removed, so are the bytes
/// around them.
fn unnamed_stays(document: &Json, patch: &Json, edited: &Json) {
    let patches: HashMap<String, Json> =
        patch.members().filter_map(|member| Some((member.name()?, member.value))).collect();
    let members: Vec<_> = document.members().collect();
    let last: HashMap<_, _> = members.iter().enumerate().map(|(index, member)| (member.name(), index)).collect();
    let fate = |index: usize, member: &Member| match member.name().and_then(|name| patches.get(&name)) {
        Some(patch) if patch.is_null() => Fate::Goes,
        Some(patch) if last.get(&member.name()) == Some(&index) => Fate::Changes(patch),
        _ => Fate::Stays,
    };
    let (mut found, mut around, mut end, mut is_complete) = (edited.members(), Vec::new(), 0, document.is_object());
    for (index, member) in members.iter().enumerate() {
        let fate = fate(index, member);
        if matches!(fate, Fate::Goes) {
            is_complete = false;
            continue;
        }
        let now = found.next().expect("a member that is not named");
        assert_eq!(up_to_value(document, member), up_to_value(edited, &now));
        match fate {
            Fate::Changes(patch) if patch.is_object() => unnamed_stays(&member.value, patch, &now.value),
            // A member that already has this value is unchanged.
            Fate::Changes(patch) if now.value == member.value => assert!(now.value.is_equivalent(patch)),
            Fate::Changes(patch) => assert_eq!(tokens(&now.value), tokens(patch)),
            Fate::Stays | Fate::Goes => assert_eq!(now.value, member.value),
        }
        let begin = offset(document, &member.value);
        around.extend_from_slice(document.as_bytes().get(end..begin).expect("members in their order"));
        around.extend_from_slice(now.value.as_bytes());
        end = begin + member.value.len();
    }
    if is_complete {
        assert!(edited.as_bytes().starts_with(&around), "{document:?} {patch:?} {edited:?}");
    }
    // New members come last, each once.
    let new: Vec<_> = found.map(|member| member.name().expect("the name of a patch")).collect();
    let distinct: std::collections::HashSet<_> = new.iter().collect();
    assert_eq!(distinct.len(), new.len());
    let is_new = |name: &String| patches.contains_key(name) && !last.contains_key(&Some(name.clone()));
    assert!(new.iter().all(is_new), "{document:?} {patch:?} {edited:?}");
}

/// The name of a member with the colon, as written.
fn up_to_value<'a>(object: &'a Json, member: &Member) -> &'a [u8] {
    let (begin, end) = (offset(object, member.quoted_name()), offset(object, &member.value));
    object.as_bytes().get(begin..end).expect("a name before its value")
}

/// The offset of a part within its text, whose bytes it shares.
fn offset(whole: &Json, part: &Json) -> usize {
    part.as_bytes().as_ptr().addr() - whole.as_bytes().as_ptr().addr()
}

/// RFC 7396 on parsed values.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, value) in patch {
        match value {
            Value::Null => drop(members.shift_remove(&name)),
            value => merge(members.entry(name).or_insert(Value::Null), value),
        }
    }
}
