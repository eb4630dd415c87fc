//! Share links, and what a token may create.

use super::*;

#[test]
fn share_link_reads_one_prefix_until_its_time() {
    let (_temp, path) = temp();
    let clock = TestClock::at(1_000_000);
    let directory = open_at(&path, &clock);
    let new = NewLink { expires: second(1_000_100), ..link("lab/exp1/", None) };
    let (info, secret) = directory.create_link(new).unwrap();
    assert_eq!((info.prefix.as_str(), info.expires), ("lab/exp1/", second(1_000_100)));
    let principal = directory.authenticate_link(secret.expose()).unwrap();
    assert_eq!((&principal.grants, principal.kind), (&grants(&["read:lab/exp1/"]), PrincipalKind::Link));
    assert_eq!((principal.expires, principal.token_id()), (Some(second(1_000_100)), None));
    assert!(!directory.had_tokens());
    clock.set(1_000_100);
    assert!(matches!(directory.authenticate_link(secret.expose()), Err(Denial::Expired { .. })));
    directory.revoke_link(info.id).unwrap();
    assert!(matches!(directory.authenticate_link(secret.expose()), Err(Denial::Revoked)));
    assert_eq!(directory.link(info.id).unwrap(), None);
}

#[test]
fn share_link_dies_with_its_maker() {
    let (_temp, path) = temp();
    let clock = TestClock::at(1_000_000);
    let directory = open_at(&path, &clock);
    let far = second(2_000_000);
    let shared = |maker| {
        let (info, secret) = directory.create_link(NewLink { expires: far, ..link("lab/", Some(maker)) }).unwrap();
        assert!(directory.authenticate_link(secret.expose()).is_ok());
        (info, secret)
    };
    let is_dead = |secret: &Secret| matches!(directory.authenticate_link(secret.expose()), Err(Denial::MakerGone));
    let (maker, _) = create(&directory, token("read:lab/"));
    let (info, secret) = shared(maker);
    assert_eq!((info.expires, info.maker), (far, Some(maker)));
    directory.revoke(maker).unwrap();
    assert!(is_dead(&secret));
    assert_eq!(all_links(&directory)[0].state, CredentialState::MakerGone);
    assert!(matches!(directory.create_link(link("lab/", Some(maker))), Err(ChangeError::InvalidMaker { .. })));
    // It expires with its maker.
    let (expired, _) = create(&directory, NewToken { expires: Some(second(1_000_100)), ..token("read:lab/") });
    let (info, _) = shared(expired);
    assert_eq!(info.expires, second(1_000_100));
    clock.set(1_000_100);
    assert!(matches!(directory.create_link(link("lab/", Some(expired))), Err(ChangeError::InvalidMaker { .. })));
    // The maker's file is changed to fewer rights, or to an earlier expiry.
    let (maker, _) = create(&directory, token("write:lab/"));
    let (_, secret) = shared(maker);
    let file = path.join(format!("tokens/{maker}.json"));
    let json = fs::read_to_string(&file).unwrap();
    for changed in [json.replace("lab/", "lab/exp1/"), json.replace("null", "\"1970-01-01T00:00:00Z\""), "x".to_owned()]
    {
        fs::write(&file, changed).unwrap();
        directory.reload_if_changed();
        assert!(is_dead(&secret));
        fs::write(&file, &json).unwrap();
        directory.reload_if_changed();
        assert!(!is_dead(&secret));
    }
    // The maker's key is dropped, but not the link's.
    directory.rotate().unwrap();
    let (_, secret) = shared(maker);
    directory.drop_key(KeyId::FIRST).unwrap();
    assert!(is_dead(&secret));
}

#[test]
fn maker_gives_no_more_than_it_has() {
    let (_temp, path) = temp();
    let directory = open(&path);
    let expires = Some(directory.now() + HOUR);
    let (admin, _) = create(&directory, NewToken { expires, ..token("admin:lab/") });
    let by_admin = |grant: &str| NewToken { maker: Some(admin), ..token(grant) };
    for grant in ["read:/", "read:lab2/", "admin:/"] {
        let refused = directory.create(by_admin(grant));
        assert!(matches!(refused, Err(ChangeError::NotWithinMaker { .. })), "{grant}");
    }
    let (info, secret) = directory.create(by_admin("admin:lab/exp1/")).unwrap();
    assert_eq!((info.expires, info.maker), (expires, Some(admin)), "it expires with its maker");
    let later = expires.map(|expires| expires + HOUR);
    let refused = directory.create(NewToken { expires: later, ..by_admin("read:lab/") });
    assert!(matches!(refused, Err(ChangeError::ExpiryAfterMaker { .. })));
    for grant in ["read:lab/", "write:lab/"] {
        let (maker, _) = create(&directory, token(grant));
        let refused = directory.create(NewToken { maker: Some(maker), ..token("read:lab/exp1/") });
        assert!(matches!(refused, Err(ChangeError::NotWithinMaker { .. })), "{grant}");
        let refused = directory.create_link(link("", Some(maker)));
        assert!(matches!(refused, Err(ChangeError::NotWithinMaker { .. })), "{grant}");
    }
    directory.revoke(admin).unwrap();
    assert!(directory.authenticate(secret.expose()).is_ok(), "tokens outlive the revocation of their maker");
    assert!(matches!(directory.create(by_admin("read:lab/")), Err(ChangeError::InvalidMaker { .. })));
}
