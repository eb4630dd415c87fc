//! Damaged, insecure, crowded and unreadable directories.

use super::*;

#[test]
fn damaged_file_denies_its_token_and_no_other() {
    let (_temp, path) = temp();
    let directory = open(&path);
    let (_, good) = create(&directory, token("read:/"));
    let (bad_id, bad) = create(&directory, token("read:/"));
    let file = path.join(format!("tokens/{bad_id}.json"));
    let json = fs::read(&file).unwrap();
    let huge = vec![b' '; 10 << 20];
    for content in [&json[..json.len() / 2], b"", b"{}", &[0xff; 100], &huge] {
        fs::write(&file, content).unwrap();
        directory.reload_if_changed();
        assert!(matches!(directory.authenticate(bad.expose()), Err(Denial::Damaged)));
        assert!(directory.authenticate(good.expose()).is_ok() && directory.status().is_ok());
        let damaged = directory.damaged();
        assert_eq!(damaged.iter().map(|damaged| (&damaged.path, damaged.id)).collect::<Vec<_>>(), [(&file, bad_id)]);
    }
    fs::write(&file, &json).unwrap();
    set_mode(&file, 0o620);
    directory.reload_if_changed();
    assert!(directory.damaged()[0].reason.contains("chmod"));
    set_mode(&file, 0o600);
    directory.reload_if_changed();
    assert!(directory.authenticate(bad.expose()).is_ok() && directory.damaged().is_empty());
    fs::write(&file, "").unwrap();
    directory.reload_if_changed();
    directory.revoke(bad_id).unwrap();
    assert!(directory.damaged().is_empty() && !file.exists());
    fs::write(path.join("tokens/notes.txt"), "mine").unwrap();
    fs::create_dir(path.join(format!("tokens/{bad_id}.json"))).unwrap();
    directory.reload_if_changed();
    assert_eq!(directory.damaged().len(), 1);
    assert!(directory.authenticate(good.expose()).is_ok());
}

#[test]
fn unreadable_directory_denies() {
    let (_temp, path) = temp();
    let directory = open(&path);
    let (_, secret) = create(&directory, token("read:/"));
    let (_, share) = directory.create_link(link("lab/", None)).unwrap();
    let away = path.with_extension("away");
    for part in ["", "keys", "tokens", "links"] {
        let part = if part.is_empty() { path.clone() } else { path.join(part) };
        fs::rename(&part, &away).unwrap();
        directory.reload_if_changed();
        assert!(directory.status().is_err() && directory.had_tokens());
        assert!(matches!(directory.authenticate(secret.expose()), Err(Denial::Unavailable { .. })));
        assert!(matches!(directory.authenticate_link(share.expose()), Err(Denial::Unavailable { .. })));
        assert!(directory.list().is_err() && matches!(directory.rotate(), Err(ChangeError::Unavailable(_))));
        assert!(matches!(directory.create(token("read:/")), Err(ChangeError::Unavailable(_))));
        fs::rename(&away, &part).unwrap();
        directory.reload_if_changed();
        directory.status().unwrap();
        assert!(directory.authenticate(secret.expose()).is_ok());
        assert!(directory.authenticate_link(share.expose()).is_ok());
    }
}

#[test]
fn directory_that_others_can_change_is_refused() {
    let (_temp, path) = temp();
    let directory = open(&path);
    let (_, secret) = create(&directory, token("read:/"));
    for (part, mode, good, advice) in [
        ("", 0o770, 0o700, "chmod 700"),
        ("keys", 0o702, 0o700, "chmod 700"),
        ("tokens", 0o720, 0o700, "chmod 700"),
        ("links", 0o777, 0o700, "chmod 700"),
        ("keys/1.json", 0o640, 0o600, "chmod 600"),
        ("keys/1.json", 0o604, 0o600, "chmod 600"),
    ] {
        let part = path.join(part);
        set_mode(&part, mode);
        let error = AccessDirectory::open(&path).unwrap_err();
        assert!(matches!(error, OpenError::Read(_)) && error.to_string().contains(advice), "{error}");
        directory.disk.lock().forget_keys();
        directory.reload_if_changed();
        assert!(matches!(directory.authenticate(secret.expose()), Err(Denial::Unavailable { .. })), "{part:?}");
        set_mode(&part, good);
        directory.disk.lock().forget_keys();
        directory.reload_if_changed();
        assert!(directory.authenticate(secret.expose()).is_ok(), "{part:?}");
    }
}

#[test]
fn damaged_key_is_refused() {
    let (_temp, path) = temp();
    drop(open(&path));
    let key = path.join("keys/1.json");
    let json = fs::read(&key).unwrap();
    for content in [b"".as_slice(), &json[..json.len() / 2], &[b'x'; 5000]] {
        fs::write(&key, content).unwrap();
        let error = AccessDirectory::open(&path).unwrap_err();
        assert!(matches!(&error, OpenError::Read(_)) && error.to_string().contains("1.json"), "{error}");
    }
    fs::write(&key, &json).unwrap();
    fs::write(path.join("keys/01.json"), &json).unwrap();
    set_mode(&path.join("keys/01.json"), 0o600);
    assert!(AccessDirectory::open(&path).is_err());
}

#[test]
fn number_of_files_is_bounded() {
    let (_temp, path) = temp();
    let limits = Limits { create: 3, per_maker: 3, read: 4 };
    let clock = TestClock::at(1_000_000);
    let directory = AccessDirectory::open_with(path.clone(), limits, clock.source()).unwrap();
    let (_, secret) = create(&directory, token("read:/"));
    create(&directory, token("read:/"));
    create(&directory, NewToken { expires: Some(second(1_000_100)), ..token("read:/") });
    assert!(matches!(directory.create(token("read:/")), Err(ChangeError::TooMany { limit: 3 })));
    clock.set(1_000_100);
    create(&directory, token("read:/"));
    assert_eq!(directory.list().unwrap().len(), 3, "the expired one made room");
    for name in ["a", "b"] {
        directory.reload_if_changed();
        assert!(directory.authenticate(secret.expose()).is_ok());
        fs::write(path.join("tokens").join(name), "").unwrap();
    }
    directory.reload_if_changed();
    let error = directory.status().unwrap_err();
    assert!(error.to_string().contains("more than 4 files"), "{error}");
    assert!(matches!(directory.authenticate(secret.expose()), Err(Denial::Unavailable { .. })));
}

#[test]
fn number_of_credentials_of_one_maker_is_bounded() {
    let (_temp, path) = temp();
    let limits = Limits { create: 100, per_maker: 2, read: 110 };
    let directory = AccessDirectory::open_with(path, limits, TestClock::at(1_000_000).source()).unwrap();
    let [(one, _), (other, _)] = [create(&directory, token("admin:/")), create(&directory, token("admin:/"))];
    let by = |maker| NewToken { maker: Some(maker), ..token("read:/") };
    let (made, _) = create(&directory, by(one));
    create(&directory, by(one));
    assert!(matches!(directory.create(by(one)), Err(ChangeError::TooManyOfMaker { limit: 2 })));
    create(&directory, by(other));
    for _ in 0..3 {
        create(&directory, token("read:/"));
    }
    let links = [(); 3].map(|()| directory.create_link(link("lab/", Some(one))));
    assert!(links[0].is_ok() && links[1].is_ok());
    assert!(matches!(links[2], Err(ChangeError::TooManyOfMaker { limit: 2 })));
    directory.revoke(made).unwrap();
    create(&directory, by(one));
}

#[test]
fn number_of_keys_is_bounded() {
    let (_temp, path) = temp();
    let directory = open(&path);
    while directory.keys().unwrap().len() < 64 {
        directory.rotate().unwrap();
    }
    assert!(matches!(directory.rotate(), Err(ChangeError::TooManyKeys)));
    directory.drop_key(KeyId::FIRST).unwrap();
    assert_eq!(directory.rotate().unwrap().to_string(), "65");
}

#[test]
fn unfinished_files_are_ignored_and_removed() {
    let (_temp, path) = temp();
    let directory = open(&path);
    let (old, new) = (path.join("tokens/.new-old"), path.join("keys/.new-new"));
    for file in [&old, &new] {
        fs::write(file, "{").unwrap();
    }
    let before = SystemTime::now() - 2 * HOUR;
    fs::File::open(&old).unwrap().set_modified(before).unwrap();
    directory.reload_if_changed();
    directory.status().unwrap();
    assert!(directory.damaged().is_empty() && !directory.had_tokens());
    open(&path);
    assert!(!old.exists() && new.exists(), "a file that was just begun may be another process's");
}

#[test]
fn only_existing_directory_is_opened_without_creating_it() {
    let (_temp, path) = temp();
    assert!(matches!(AccessDirectory::open_existing(&path), Err(OpenError::Missing { .. })));
    assert!(!path.exists());
    drop(AccessDirectory::open(&path).unwrap());
    AccessDirectory::open_existing(&path).unwrap().status().unwrap();
    let file = path.join("clock");
    fs::write(&file, "").unwrap();
    assert!(matches!(AccessDirectory::open(&file), Err(OpenError::Read(_))));
}
