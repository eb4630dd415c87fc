//! Preconditions with a single writer.

use super::{
    Storage,
    tools::{get, key, put},
};
use zarrd_store::{Precondition, StoreError, Version, VersionMatch};

/// A precondition on a key that has a value or had one.
#[derive(Debug)]
struct Case {
    at: String,
    current: Option<Version>,
    precondition: Precondition,
    /// True if the precondition holds. It is stated here rather than computed by [`Precondition::is_met_by`], which the
    /// store may use.
    holds: bool,
}

/// Conditions on a key whose version is, or last was, `current`, and before that `stale`; each with whether it matches
/// the key while it has its value. No condition matches a key without one.
fn members(current: Version, stale: Version) -> [(Option<VersionMatch>, bool); 6] {
    [
        (None, false),
        (Some(VersionMatch::Any), true),
        (Some(VersionMatch::OneOf(vec![current])), true),
        (Some(VersionMatch::OneOf(vec![stale])), false),
        (Some(VersionMatch::OneOf(vec![stale, current])), true),
        (Some(VersionMatch::OneOf(vec![])), false),
    ]
}

/// Every pair of conditions, on a key with a value and on an erased one.
async fn cases(store: &impl Storage) -> Vec<Case> {
    let mut cases = Vec::new();
    for number in 0..36 {
        for present in [true, false] {
            let at = format!("{}/{number}", if present { "present" } else { "absent" });
            let (stale, current) = (put(store, &at, "stale").await, put(store, &at, "current").await);
            if !present {
                assert!(store.erase(&key(&at), Precondition::none()).await.unwrap());
            }
            let (matches, wanted_found) = members(current, stale)[number / 6].clone();
            let (none_matches, unwanted_found) = members(current, stale)[number % 6].clone();
            let holds = (matches.is_none() || present && wanted_found) && !(present && unwanted_found);
            let precondition = Precondition { if_match: matches, if_none_match: none_matches };
            cases.push(Case { at, current: present.then_some(current), precondition, holds });
        }
    }
    cases
}

/// Asserts that a rejected change left the key unchanged.
async fn assert_unchanged(store: &impl Storage, at: &str, current: Option<Version>, error: StoreError) {
    // A store may omit the current version, but must not report a wrong one.
    let reported = matches!(&error, StoreError::PreconditionFailed { key: reported, current: version }
        if *reported == key(at) && (version.is_none() || *version == current));
    assert!(reported, "{at}: {error:?}");
    assert_eq!(store.head(&key(at)).await.unwrap().map(|meta| meta.version), current, "{at}");
    assert_eq!(get(store, at).await.as_deref(), current.map(|_| &b"current"[..]), "{at}");
}

pub(super) async fn every_precondition_applies_to_sets(store: impl Storage) {
    for case in cases(&store).await {
        let at = case.at.as_str();
        match store.set(&key(at), "new".into(), case.precondition.clone()).await {
            Ok(written) => {
                assert!(case.holds, "set despite {case:?}");
                assert_eq!(written.replaced, case.current.is_some(), "{case:?}");
                assert_eq!(get(&store, at).await.as_deref(), Some(&b"new"[..]), "{case:?}");
            }
            Err(error) => {
                assert!(!case.holds, "not set despite {case:?}: {error:?}");
                assert_unchanged(&store, at, case.current, error).await;
            }
        }
    }
}

pub(super) async fn every_precondition_applies_to_erases(store: impl Storage) {
    for case in cases(&store).await {
        let at = case.at.as_str();
        match store.erase(&key(at), case.precondition.clone()).await {
            Ok(existed) => {
                assert!(case.holds, "erased despite {case:?}");
                assert_eq!(existed, case.current.is_some(), "{case:?}");
                assert_eq!(get(&store, at).await, None, "{case:?}");
            }
            Err(error) => {
                assert!(!case.holds, "not erased despite {case:?}: {error:?}");
                assert_unchanged(&store, at, case.current, error).await;
            }
        }
    }
}

pub(super) async fn a_version_of_another_key_does_not_match(store: impl Storage) {
    let other = put(&store, "other", "equal").await;
    let current = put(&store, "a", "current").await;
    let made_up = Version::from_u128(0);
    for wrong in [other, made_up] {
        let error = store.set(&key("a"), "new".into(), Precondition::at(wrong)).await.unwrap_err();
        assert_unchanged(&store, "a", Some(current), error).await;
        let error = store.erase(&key("a"), Precondition::at(wrong)).await.unwrap_err();
        assert_unchanged(&store, "a", Some(current), error).await;
    }
    let many: Vec<_> = (1..=20).map(Version::from_u128).chain([current]).collect();
    let among_many = Precondition { if_match: Some(VersionMatch::OneOf(many)), if_none_match: None };
    let written = store.set(&key("a"), "new".into(), among_many).await.unwrap();
    assert!(store.erase(&key("a"), Precondition::unchanged(Some(written.version))).await.unwrap());
    store.set(&key("a"), "again".into(), Precondition::unchanged(None)).await.unwrap();
}
