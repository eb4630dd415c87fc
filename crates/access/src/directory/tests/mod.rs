//! Tests of access directories.

mod damage;
mod expiry;
mod makers;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tempfile::TempDir;
use zarrd_store::Prefix;

use super::handle::{AccessDirectory, Limits};
use crate::{
    ChangeError, CredentialId, CredentialState, Denial, Grants, KeyId, LinkInfo, NewLink, NewToken, OpenError,
    PrincipalKind, Secret, TokenInfo, clock::TimeSource, credential::Kind,
};

const LIMITS: Limits = Limits { create: 1000, per_maker: 100, read: 1100 };
const HOUR: Duration = Duration::from_secs(3600);

/// A clock that tests set, in seconds since 1970.
#[derive(Clone, Default)]
struct TestClock(Arc<AtomicU64>);

impl TestClock {
    fn at(seconds: u64) -> Self {
        let clock = Self::default();
        clock.set(seconds);
        clock
    }

    fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }

    fn source(&self) -> TimeSource {
        let clock = self.clone();
        Box::new(move || second(clock.0.load(Ordering::Relaxed)))
    }
}

fn second(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn temp() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("access");
    (temp, path)
}

fn open(path: &Path) -> AccessDirectory {
    AccessDirectory::open_with(path.to_owned(), LIMITS, Box::new(SystemTime::now)).unwrap()
}

fn open_at(path: &Path, clock: &TestClock) -> AccessDirectory {
    AccessDirectory::open_with(path.to_owned(), LIMITS, clock.source()).unwrap()
}

fn grants(texts: &[&str]) -> Grants {
    Grants::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
}

fn prefix(text: &str) -> Prefix {
    Prefix::parse(text).unwrap()
}

fn token(grant: &str) -> NewToken {
    NewToken { name: "test".to_owned(), grants: grants(&[grant]), expires: None, maker: None }
}

fn link(text: &str, maker: Option<CredentialId>) -> NewLink {
    NewLink { name: String::new(), prefix: prefix(text), expires: SystemTime::now() + HOUR, maker }
}

fn create(directory: &AccessDirectory, new: NewToken) -> (CredentialId, Secret) {
    let (info, secret) = directory.create(new).unwrap();
    (info.id, secret)
}

fn all_links(directory: &AccessDirectory) -> Vec<LinkInfo> {
    directory.links_after(None, usize::MAX, |_| true).unwrap()
}

/// Reloads until a condition holds; fails after a second.
fn within_a_second(directory: &AccessDirectory, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    loop {
        directory.reload_if_changed();
        if condition() {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(1), "the change was not seen");
        thread::sleep(Duration::from_millis(50));
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn created_token_is_accepted_and_nothing_secret_is_stored_for_it() {
    let (_temp, path) = temp();
    let directory = open(&path);
    assert!(!directory.had_tokens());
    let new = NewToken { expires: Some(SystemTime::now() + HOUR), ..token("write:lab/") };
    let (info, secret) = directory.create(new).unwrap();
    let principal = directory.authenticate(secret.expose()).unwrap();
    assert_eq!((&*principal.id, &*principal.name), (info.id.to_string().as_str(), "test"));
    assert_eq!((principal.kind, principal.token_id()), (PrincipalKind::Token, Some(info.id)));
    assert_eq!((&principal.grants, principal.expires), (&grants(&["write:lab/"]), info.expires));
    assert!(directory.had_tokens() && directory.list().unwrap() == [info.clone()]);
    let file = fs::read_to_string(path.join(format!("tokens/{}.json", info.id))).unwrap();
    let mac = secret.expose().rsplit('_').next().unwrap();
    assert!(!file.contains(mac), "{file}");
    for shown in [format!("{secret:?}"), format!("{directory:?}"), format!("{principal:?}"), format!("{info:?}")] {
        assert!(!shown.contains(mac), "{shown}");
    }
}

#[test]
fn pages_are_by_id_and_continue_after_the_last_one_was_revoked() {
    let (_temp, path) = temp();
    let directory = open(&path);
    let mut ids: Vec<CredentialId> =
        ["read:a/", "read:b/", "read:a/", "read:a/"].map(|grant| create(&directory, token(grant)).0).into();
    ids.sort();
    let is_of_a = |token: &TokenInfo| token.grants == grants(&["read:a/"]);
    let ids_of = |tokens: Vec<TokenInfo>| tokens.into_iter().map(|token| token.id).collect::<Vec<_>>();
    let page = |after, limit| ids_of(directory.tokens_after(after, limit, |_| true).unwrap());
    assert_eq!((page(None, usize::MAX), page(None, 0)), (ids.clone(), Vec::new()));
    assert_eq!((page(None, 2), page(Some(ids[1]), 2)), (ids[..2].to_vec(), ids[2..].to_vec()));
    assert_eq!(page(Some(ids[3]), 2), []);
    let of_a = ids_of(directory.tokens_after(None, 2, is_of_a).unwrap());
    assert!(of_a.len() == 2 && of_a.iter().all(|id| is_of_a(&directory.token(*id).unwrap().unwrap())), "{of_a:?}");
    directory.revoke(ids[1]).unwrap();
    assert_eq!(page(Some(ids[1]), 2), ids[2..]);
    assert_eq!(directory.token(ids[1]).unwrap(), None);
    for number in 0..3 {
        directory.create_link(link(&format!("{number}/"), None)).unwrap();
    }
    let links = all_links(&directory);
    assert!(links.is_sorted_by_key(|link| link.id) && links.len() == 3);
    assert_eq!(directory.links_after(Some(links[0].id), 1, |_| true).unwrap(), links[1..2]);
    assert_eq!(directory.link(links[2].id).unwrap().as_ref(), links.last());
}

#[test]
fn files_are_accessible_to_their_owner_only() {
    let (_temp, path) = temp();
    let directory = open(&path);
    let (id, _) = create(&directory, token("read:/"));
    for dir in ["", "keys", "tokens", "links"] {
        assert_eq!(mode(&path.join(dir)), 0o700, "{dir}");
    }
    assert_eq!(mode(&path.join("keys/1.json")), 0o600);
    assert_eq!(mode(&path.join(format!("tokens/{id}.json"))), 0o600);
}

#[test]
fn changes_of_another_handle_count_within_a_second() {
    let (_temp, path) = temp();
    let (one, other) = (open(&path), open(&path));
    let (id, secret) = create(&one, token("read:/"));
    within_a_second(&other, || other.authenticate(secret.expose()).is_ok());
    other.revoke(id).unwrap();
    assert!(matches!(other.authenticate(secret.expose()), Err(Denial::Revoked)));
    within_a_second(&one, || matches!(one.authenticate(secret.expose()), Err(Denial::Revoked)));
    assert!(one.had_tokens() && one.list().unwrap().is_empty(), "revoking the last token opens nothing");
    assert!(matches!(one.revoke(id), Err(ChangeError::NotFound { .. })));
}

#[test]
fn watched_directory_is_read_in_the_background_until_it_is_dropped() {
    let (_temp, path) = temp();
    let (one, other) = (open(&path), Arc::new(open(&path)));
    other.watch().unwrap();
    let start = Instant::now();
    let (_, secret) = create(&one, token("read:/"));
    while other.authenticate(secret.expose()).is_err() {
        assert!(start.elapsed() < Duration::from_secs(1));
        thread::sleep(Duration::from_millis(20));
    }
    let weak = Arc::downgrade(&other);
    drop(other);
    while weak.upgrade().is_some() {
        assert!(start.elapsed() < Duration::from_secs(3));
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn many_changes_within_one_tick_are_all_seen() {
    let (_temp, path) = temp();
    let (one, other) = (open(&path), open(&path));
    for _ in 0..20 {
        let (id, secret) = create(&one, token("read:/"));
        other.reload_if_changed();
        assert!(other.authenticate(secret.expose()).is_ok());
        one.revoke(id).unwrap();
        other.reload_if_changed();
        assert!(matches!(other.authenticate(secret.expose()), Err(Denial::Revoked)));
    }
}

#[test]
fn changes_after_a_quiet_time_are_seen() {
    let (_temp, path) = temp();
    let (one, other) = (open(&path), open(&path));
    let (id, secret) = create(&one, token("read:/"));
    let (_, share) = one.create_link(link("lab/", None)).unwrap();
    let quiet = || {
        other.reload_if_changed();
        other.disk.lock().settle();
        other.reload_if_changed();
    };
    quiet();
    assert!(other.authenticate(secret.expose()).is_ok() && other.authenticate_link(share.expose()).is_ok());
    one.rotate().unwrap();
    let (newer_id, newer) = create(&one, token("read:/"));
    other.reload_if_changed();
    assert!(other.authenticate(newer.expose()).is_ok());
    quiet();
    one.revoke(id).unwrap();
    other.reload_if_changed();
    assert!(matches!(other.authenticate(secret.expose()), Err(Denial::Revoked)));
    quiet();
    one.drop_key(KeyId::FIRST).unwrap();
    other.reload_if_changed();
    assert!(matches!(other.authenticate_link(share.expose()), Err(Denial::UnknownKey)));
    quiet();
    set_mode(&path.join("tokens"), 0o777);
    other.reload_if_changed();
    assert!(matches!(other.authenticate(newer.expose()), Err(Denial::Unavailable { .. })));
    set_mode(&path.join("tokens"), 0o700);
    one.revoke(newer_id).unwrap();
    other.reload_if_changed();
    assert!(matches!(other.authenticate(newer.expose()), Err(Denial::Revoked)));
}

#[test]
fn change_with_the_time_of_the_one_before_is_seen() {
    let (_temp, path) = temp();
    let (one, other) = (open(&path), open(&path));
    let (id, secret) = create(&one, token("read:/"));
    other.reload_if_changed();
    one.revoke(id).unwrap();
    other.disk.lock().pretend_unchanged(Kind::Token);
    other.reload_if_changed();
    assert!(matches!(other.authenticate(secret.expose()), Err(Denial::Revoked)));
}

#[test]
fn rotation_keeps_tokens_until_their_key_is_dropped() {
    let (_temp, path) = temp();
    let (one, other) = (open(&path), open(&path));
    let (old_id, old) = create(&one, token("read:/"));
    let (_, old_link) = one.create_link(link("lab/", None)).unwrap();
    let (first, second): (KeyId, KeyId) = ("1".parse().unwrap(), "2".parse().unwrap());
    assert!(matches!(one.drop_key(first), Err(ChangeError::CurrentKey { .. })));
    assert_eq!(one.rotate().unwrap(), second);
    // The other handle has not seen it, but uses the new key.
    let (_, new) = create(&other, token("read:/"));
    assert!(new.expose().starts_with("zarrd_2_") && old.expose().starts_with("zarrd_1_"));
    one.reload_if_changed();
    other.reload_if_changed();
    for secret in [&old, &new] {
        assert!(one.authenticate(secret.expose()).is_ok() && other.authenticate(secret.expose()).is_ok());
    }
    let counts: Vec<_> = one.keys().unwrap().into_iter().map(|key| (key.id, key.is_current, key.tokens)).collect();
    assert_eq!(counts, [(first, false, 1), (second, true, 1)]);
    one.drop_key(first).unwrap();
    within_a_second(&other, || matches!(other.authenticate(old.expose()), Err(Denial::UnknownKey)));
    for directory in [&one, &other] {
        assert!(matches!(directory.authenticate(old.expose()), Err(Denial::UnknownKey)));
        assert!(matches!(directory.authenticate_link(old_link.expose()), Err(Denial::UnknownKey)));
        assert!(directory.authenticate(new.expose()).is_ok());
    }
    let states: Vec<_> = one.list().unwrap().into_iter().map(|token| token.state).collect();
    assert_eq!(states, [CredentialState::KeyDropped, CredentialState::Valid]);
    assert!(matches!(one.drop_key(first), Err(ChangeError::NoSuchKey { .. })));
    one.revoke(old_id).unwrap();
}

#[test]
fn credential_of_another_key_directory_or_kind_is_refused() {
    let ((_temp, path), (_other_temp, other_path)) = (temp(), temp());
    let (directory, other) = (open(&path), open(&other_path));
    let (id, secret) = create(&directory, token("read:/"));
    let (_, share) = directory.create_link(link("lab/", None)).unwrap();
    assert!(matches!(other.authenticate(secret.expose()), Err(Denial::BadMac)));
    assert!(matches!(directory.authenticate(share.expose()), Err(Denial::Malformed)));
    assert!(matches!(directory.authenticate_link(secret.expose()), Err(Denial::Malformed)));
    let as_token = share.expose().replace("zarrdlink_", "zarrd_");
    assert!(matches!(directory.authenticate(&as_token), Err(Denial::BadMac)));
    // The file of a share link is put among those of the tokens, and the other way round.
    let link_id = all_links(&directory)[0].id;
    fs::copy(path.join(format!("links/{link_id}.json")), path.join(format!("tokens/{link_id}.json"))).unwrap();
    fs::copy(path.join(format!("tokens/{id}.json")), path.join(format!("links/{id}.json"))).unwrap();
    directory.reload_if_changed();
    assert!(matches!(directory.authenticate(&as_token), Err(Denial::BadMac)));
    let as_link = secret.expose().replace("zarrd_", "zarrdlink_");
    assert!(matches!(directory.authenticate_link(&as_link), Err(Denial::BadMac)));
    // A token whose file says that it was made with another key, although that is in the ring too.
    directory.rotate().unwrap();
    let file = path.join(format!("tokens/{id}.json"));
    let changed = fs::read_to_string(&file).unwrap().replace("\"key\": 1", "\"key\": 2");
    fs::write(&file, changed).unwrap();
    let reopened = open(&path);
    assert!(matches!(reopened.authenticate(secret.expose()), Err(Denial::BadMac)));
}

#[test]
fn replaced_key_of_the_same_number_ends_tokens_that_were_accepted() {
    let ((_temp, path), (_other_temp, other_path)) = (temp(), temp());
    let (directory, other) = (open(&path), open(&other_path));
    let (_, secret) = create(&directory, token("read:/"));
    let (_, share) = directory.create_link(link("lab/", None)).unwrap();
    // The files are known from now on, and so are not read again.
    directory.reload_if_changed();
    assert!(directory.authenticate(secret.expose()).is_ok() && directory.authenticate_link(share.expose()).is_ok());
    fs::copy(other.path().join("keys/1.json"), path.join("keys/1.json")).unwrap();
    directory.disk.lock().forget_keys();
    directory.reload_if_changed();
    assert!(matches!(directory.authenticate(secret.expose()), Err(Denial::BadMac)));
    assert!(matches!(directory.authenticate_link(share.expose()), Err(Denial::BadMac)));
}

#[test]
fn invalid_tokens_are_not_created() {
    let (_temp, path) = temp();
    let directory = open(&path);
    let long = "x".repeat(1000);
    let wide = grants(
        &(0..60)
            .map(|number| format!("read:{long}{number}/"))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    );
    let is_refused = |new: NewToken| directory.create(new).unwrap_err();
    assert!(matches!(is_refused(NewToken { name: String::new(), ..token("read:/") }), ChangeError::Name(_)));
    assert!(matches!(is_refused(NewToken { name: "a\u{1b}[2J".to_owned(), ..token("read:/") }), ChangeError::Name(_)));
    assert!(matches!(is_refused(NewToken { name: "ä".repeat(101), ..token("read:/") }), ChangeError::Name(_)));
    assert!(matches!(is_refused(NewToken { grants: Grants::none(), ..token("read:/") }), ChangeError::NoGrants));
    assert!(matches!(is_refused(NewToken { grants: wide, ..token("read:/") }), ChangeError::GrantsTooLong));
    let past = Some(directory.now());
    assert!(matches!(is_refused(NewToken { expires: past, ..token("read:/") }), ChangeError::ExpiryPassed { .. }));
    assert!(!directory.had_tokens() && fs::read_dir(path.join("tokens")).unwrap().next().is_none());
    create(&directory, NewToken { name: "ä".repeat(100), ..token("read:/") });
}

#[test]
fn handles_create_keys_and_tokens_at_the_same_time() {
    let (_temp, path) = temp();
    let secrets: Vec<Secret> = thread::scope(|scope| {
        let work = || {
            let directory = open(&path);
            (0..10)
                .map(|_| {
                    directory.rotate().unwrap();
                    directory.reload_if_changed();
                    create(&directory, token("read:/")).1
                })
                .collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let directory = open(&path);
    assert_eq!((directory.keys().unwrap().len(), directory.list().unwrap().len()), (41, 40));
    for secret in &secrets {
        directory.authenticate(secret.expose()).unwrap();
    }
}
