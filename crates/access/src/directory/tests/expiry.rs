//! Expiry, with clocks that go back.

use super::*;

#[test]
fn token_expires_and_stays_expired() {
    let (_temp, path) = temp();
    let clock = TestClock::at(1_000_000);
    let directory = open_at(&path, &clock);
    let (_, secret) = create(&directory, NewToken { expires: Some(second(1_000_100)), ..token("read:/") });
    clock.set(1_000_099);
    assert!(directory.authenticate(secret.expose()).is_ok());
    clock.set(1_000_100);
    let refused = |directory: &AccessDirectory| {
        let denial = directory.authenticate(secret.expose()).unwrap_err();
        assert!(matches!(denial, Denial::Expired { at } if at == second(1_000_100)), "{denial}");
        assert_eq!(directory.list().unwrap()[0].state, CredentialState::Expired);
    };
    refused(&directory);
    clock.set(999_000);
    refused(&directory);
    // After a restart, as long as the directory was read once since.
    directory.reload_if_changed();
    refused(&open_at(&path, &clock));
    assert!(directory.had_tokens(), "an expired token does not open the server to everyone");
}

#[test]
fn expiry_while_no_server_ran_is_written_down_by_the_next_one() {
    let (_temp, path) = temp();
    let clock = TestClock::at(1_000_000);
    let (_, secret) = create(&open_at(&path, &clock), NewToken { expires: Some(second(1_000_100)), ..token("read:/") });
    clock.set(2_000_000);
    drop(open_at(&path, &clock));
    clock.set(1_000_050);
    assert!(matches!(open_at(&path, &clock).authenticate(secret.expose()), Err(Denial::Expired { .. })));
}

#[test]
fn time_is_never_before_the_newest_token() {
    let (_temp, path) = temp();
    let clock = TestClock::at(1_000_000);
    let directory = open_at(&path, &clock);
    let (_, short) = create(&directory, NewToken { expires: Some(second(1_000_100)), ..token("read:/") });
    clock.set(3_000_000);
    let (newest, _) = create(&directory, token("read:/"));
    clock.set(1_000_050);
    let reopened = open_at(&path, &clock);
    assert_eq!(reopened.now(), second(3_000_000));
    assert!(matches!(reopened.authenticate(short.expose()), Err(Denial::Expired { .. })));
    reopened.revoke(newest).unwrap();
    assert_eq!(open_at(&path, &clock).now(), second(3_000_000), "also once it is revoked");
    clock.set(4_000_000);
    let (newest, _) = create(&reopened, token("read:/"));
    reopened.revoke(newest).unwrap();
    clock.set(1_000_050);
    assert_eq!(open_at(&path, &clock).now(), second(4_000_000), "also if nothing has expired");
    fs::write(path.join("clock"), "yesterday").unwrap();
    assert!(open_at(&path, &clock).status().is_ok());
    fs::write(path.join("clock"), "0".repeat(1000)).unwrap();
    assert!(open_at(&path, &clock).status().is_ok());
}

#[test]
fn secret_of_a_token_is_its_text_as_long_as_it_is_valid() {
    let (_temp, path) = temp();
    let clock = TestClock::at(1000);
    let directory = open_at(&path, &clock);
    let (id, secret) = create(&directory, NewToken { expires: Some(second(2000)), ..token("write:lab/") });
    let (principal, found) = directory.secret(id).unwrap();
    assert_eq!((found.expose(), principal.credential), (secret.expose(), Some(id)));
    assert_eq!(Some(found.secret_key()), secret.expose().rsplit('_').next());
    clock.set(2000);
    assert!(matches!(directory.secret(id), Err(Denial::Expired { .. })));
    let (id, _) = create(&directory, token("write:lab/"));
    directory.revoke(id).unwrap();
    assert!(matches!(directory.secret(id), Err(Denial::Revoked)));
}
