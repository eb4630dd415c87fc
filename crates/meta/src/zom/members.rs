//! The JSON name of a member of a group's document that is itself called `members`.
//!
//! ZEP 6 renames it to `_members`, or to `__members` if that is taken, and so on. To make this reversible, the longest
//! such name of a document without `members` gets an additional underscore: it is never just one longer than another
//! name, as the renamed `members` is.
//!
//! | names in the document | names in JSON |
//! |---|---|
//! | `members` | `_members` |
//! | `members`, `_members` | `__members` for `members`, and `_members` |
//! | `_members` | `__members` |

use crate::json::Json;

const MEMBERS: &str = "members";

/// The JSON form of a document, with `members` renamed.
pub(super) fn rename_for_json(document: &Json) -> Json {
    let names = MembersNames::of(document);
    match (names.has_members, names.longest) {
        (false, None) => document.clone(),
        (true, longest) => rename(document, 0, longest.unwrap_or(0).saturating_add(1)),
        (false, Some(longest)) => rename(document, longest, longest.saturating_add(1)),
    }
}

/// The document of a JSON form, and the renamed member as a pair of the document's name and that of JSON.
pub(super) fn restore_names(json: &Json) -> (Json, Option<(String, String)>) {
    let Some(longest) = MembersNames::of(json).longest else { return (json.clone(), None) };
    let shorter = longest.saturating_sub(1);
    let is_members = shorter == 0 || json.get(&prefixed(shorter)).is_some();
    let original = if is_members { 0 } else { shorter };
    (rename(json, longest, original), Some((prefixed(original), prefixed(longest))))
}

/// The names of an object that are `members` with any number of underscores before it.
#[derive(Default)]
struct MembersNames {
    has_members: bool,
    /// The number of underscores of the longest name that has any.
    longest: Option<usize>,
}

impl MembersNames {
    fn of(document: &Json) -> Self {
        let mut names = Self::default();
        // Escapes are decoded, and may be of any character.
        let may_match = |name: &[u8]| name.ends_with(b"members\"") || name.contains(&b'\\');
        for member in document.member_slices().filter(|member| may_match(member.quoted_name())) {
            let Some(name) = member.name() else { continue };
            let Some(underscores) = name.strip_suffix(MEMBERS) else { continue };
            match underscores.len() {
                0 => names.has_members = true,
                count if underscores.bytes().all(|byte| byte == b'_') => names.longest = names.longest.max(Some(count)),
                _ => {}
            }
        }
        names
    }
}

fn prefixed(count: usize) -> String {
    format!("{}{MEMBERS}", "_".repeat(count))
}

/// Renames a member in place.
fn rename(document: &Json, from: usize, to: usize) -> Json {
    let (from, to) = (prefixed(from), Json::string(&prefixed(to)));
    let members: Vec<_> = document.members().collect();
    Json::from_members(members.iter().map(|member| {
        let name = if member.is_named(&from) { &to } else { member.quoted_name() };
        (name, &member.value)
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(json: serde_json::Value) -> Json {
        Json::compact(&json)
    }

    #[test]
    fn examples_of_zep_6_hold() {
        assert_eq!(rename_for_json(&object(json!({"members": 1}))), object(json!({"_members": 1})));
        let both = object(json!({"a": 0, "members": 1, "_members": 2}));
        assert_eq!(rename_for_json(&both), object(json!({"a": 0, "__members": 1, "_members": 2})));
    }

    #[test]
    fn other_names_are_not_renamed() {
        let document = object(json!({"a": 0, "members_": 1, "my_members": 2}));
        assert_eq!(rename_for_json(&document), document);
        assert_eq!(restore_names(&document), (document, None));
    }

    fn documents() -> impl Strategy<Value = Json> {
        prop::collection::btree_set(0_usize..6, 0..5).prop_map(|counts| {
            Json::compact(&counts.into_iter().map(|count| (prefixed(count), json!(count))).collect())
        })
    }

    proptest! {
        #[test]
        fn renamed_documents_roundtrip(document in documents()) {
            let json = rename_for_json(&document);
            prop_assert!(json.get(MEMBERS).is_none());
            let (again, rename) = restore_names(&json);
            prop_assert_eq!(&again, &document);
            if let Some((name, shown_name)) = rename {
                prop_assert_eq!(json.get(&shown_name), document.get(&name));
            }
        }

        #[test]
        fn renamed_json_roundtrips(json in documents()) {
            prop_assume!(json.get(MEMBERS).is_none());
            prop_assert_eq!(rename_for_json(&restore_names(&json).0), json);
        }
    }
}
