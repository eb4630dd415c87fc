//! Preconditions, one writer at a time.

use super::{
    Storage,
    tools::{get, key, put},
};
use crate::{Precondition, StoreError, Version, VersionMatch};

/// How many forms a precondition has: six of either member.
const FORMS: usize = 36;

/// One form of a precondition on a key whose version is, or was at last, `current`, and before that `stale`.
fn form(number: usize, current: Version, stale: Version) -> Precondition {
    let member = |number| match number {
        0 => None,
        1 => Some(VersionMatch::Any),
        2 => Some(VersionMatch::OneOf(vec![current])),
        3 => Some(VersionMatch::OneOf(vec![stale])),
        4 => Some(VersionMatch::OneOf(vec![stale, current])),
        _ => Some(VersionMatch::OneOf(vec![])),
    };
    Precondition { matches: member(number / 6), none_matches: member(number % 6) }
}

/// For each form a key with a value and one that had one, the version it has, and the form.
async fn cases(store: &impl Storage) -> Vec<(String, Option<Version>, Precondition)> {
    let mut cases = Vec::new();
    for number in 0..FORMS {
        let (present, absent) = (format!("present/{number}"), format!("absent/{number}"));
        for at in [&present, &absent] {
            let stale = put(store, at, "stale").await;
            let current = put(store, at, "current").await;
            cases.push((at.clone(), Some(current), form(number, current, stale)));
        }
        assert!(store.erase(&key(&absent), Precondition::none()).await.unwrap());
        cases.last_mut().unwrap().1 = None;
    }
    cases
}

/// Fails unless the key is as it was before a change that its precondition forbids.
async fn assert_unchanged(store: &impl Storage, at: &str, current: Option<Version>, error: StoreError) {
    // A store need not tell the version, but may not tell a wrong one.
    let told = matches!(&error, StoreError::PreconditionFailed { key: told, current: version }
        if *told == key(at) && (version.is_none() || *version == current));
    assert!(told, "{at}: {error:?}");
    assert_eq!(store.head(&key(at)).await.unwrap().map(|info| info.version), current, "{at}");
    assert_eq!(get(store, at).await.as_deref(), current.map(|_| &b"current"[..]), "{at}");
}

pub(super) async fn all_forms_on_sets(store: impl Storage) {
    for (at, current, precondition) in cases(&store).await {
        let result = store.set(&key(&at), "new".into(), precondition.clone()).await;
        match result {
            Ok(written) => {
                assert!(precondition.holds(current), "{at} was set despite {precondition:?}");
                assert_eq!(written.replaced, current.is_some(), "{at}");
                assert_eq!(get(&store, &at).await.as_deref(), Some(&b"new"[..]), "{at}");
            }
            Err(error) => {
                assert!(!precondition.holds(current), "{at} was not set despite {precondition:?}: {error:?}");
                assert_unchanged(&store, &at, current, error).await;
            }
        }
    }
}

pub(super) async fn all_forms_on_erases(store: impl Storage) {
    for (at, current, precondition) in cases(&store).await {
        match store.erase(&key(&at), precondition.clone()).await {
            Ok(existed) => {
                assert!(precondition.holds(current), "{at} was erased despite {precondition:?}");
                assert_eq!(existed, current.is_some(), "{at}");
                assert_eq!(get(&store, &at).await, None, "{at}");
            }
            Err(error) => {
                assert!(!precondition.holds(current), "{at} was not erased despite {precondition:?}: {error:?}");
                assert_unchanged(&store, &at, current, error).await;
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
    let among_many = Precondition { matches: Some(VersionMatch::OneOf(many)), none_matches: None };
    let written = store.set(&key("a"), "new".into(), among_many).await.unwrap();
    assert!(store.erase(&key("a"), Precondition::unchanged(Some(written.version))).await.unwrap());
    store.set(&key("a"), "again".into(), Precondition::unchanged(None)).await.unwrap();
}
