//! What JSON calls a member of a group's document that is itself called `members`.
//!
//! ZEP 6 renames it to `_members`, and where that is taken to `__members`, and so on. To know on the way back what was renamed, a document that has `_members` (or a longer one)
//! without having `members` has an underscore more as well: its longest name of the kind is never shown right behind the next shorter one, as that of `members` is.
//!
//! | the document has | JSON has |
//! |---|---|
//! | `members` | `_members` |
//! | `members`, `_members` | `__members` for `members`, and `_members` |
//! | `_members` | `__members` |

use serde_json::{Map, Value};

const MEMBERS: &str = "members";

/// A document as JSON shows it.
pub(super) fn shown(document: &Map<String, Value>) -> Map<String, Value> {
    let longest = longest(document);
    match (document.contains_key(MEMBERS), longest) {
        (false, None) => document.clone(),
        (true, longest) => renamed(document, 0, longest.unwrap_or(0).saturating_add(1)),
        (false, Some(longest)) => renamed(document, longest, longest.saturating_add(1)),
    }
}

/// The document that JSON shows; and under which name it has the one that was renamed, as a pair of the document's name and that of JSON.
pub(super) fn hidden(json: Map<String, Value>) -> (Map<String, Value>, Option<(String, String)>) {
    let Some(longest) = longest(&json) else { return (json, None) };
    let shorter = longest.saturating_sub(1);
    let is_members = shorter == 0 || json.contains_key(&underscored(shorter));
    let original = if is_members { 0 } else { shorter };
    (renamed(&json, longest, original), Some((underscored(original), underscored(longest))))
}

/// How many underscores the longest name of the kind has, if there is one with any.
fn longest(document: &Map<String, Value>) -> Option<usize> {
    let underscores = |name: &String| {
        let underscores = name.strip_suffix(MEMBERS)?;
        underscores.bytes().all(|byte| byte == b'_').then_some(underscores.len())
    };
    document.keys().filter_map(underscores).max().filter(|&longest| longest > 0)
}

fn underscored(count: usize) -> String {
    format!("{}{MEMBERS}", "_".repeat(count))
}

/// The document with one name for another, at the same place.
fn renamed(document: &Map<String, Value>, from: usize, to: usize) -> Map<String, Value> {
    let (from, to) = (underscored(from), underscored(to));
    let name = |name: &String| if *name == from { to.clone() } else { name.clone() };
    document.iter().map(|(key, value)| (name(key), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(json: Value) -> Map<String, Value> {
        json.as_object().unwrap().clone()
    }

    #[test]
    fn the_examples_of_zep_6() {
        assert_eq!(shown(&object(json!({"members": 1}))), object(json!({"_members": 1})));
        let both = object(json!({"a": 0, "members": 1, "_members": 2}));
        assert_eq!(shown(&both), object(json!({"a": 0, "__members": 1, "_members": 2})));
    }

    #[test]
    fn nothing_to_rename() {
        let document = object(json!({"a": 0, "members_": 1, "my_members": 2}));
        assert_eq!(shown(&document), document);
        assert_eq!(hidden(document.clone()), (document, None));
    }

    fn documents() -> impl Strategy<Value = Map<String, Value>> {
        prop::collection::btree_set(0_usize..6, 0..5)
            .prop_map(|counts| counts.into_iter().map(|count| (underscored(count), json!(count))).collect())
    }

    proptest! {
        #[test]
        fn there_and_back(document in documents()) {
            let json = shown(&document);
            prop_assert!(!json.contains_key(MEMBERS));
            let (again, renamed) = hidden(json.clone());
            prop_assert_eq!(&again, &document);
            if let Some((name, shown_name)) = renamed {
                prop_assert_eq!(&json[&shown_name], &document[&name]);
            }
        }

        #[test]
        fn back_and_there(json in documents()) {
            prop_assume!(!json.contains_key(MEMBERS));
            prop_assert_eq!(shown(&hidden(json.clone()).0), json);
        }
    }
}
