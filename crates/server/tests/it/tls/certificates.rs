//! Certificates that cannot be used.

use std::{error::Error, fs};

use rcgen::date_time_ymd;

use crate::tls::tls_server::{Certificate, Files, set_mode};

/// Asserts that loading fails with messages.
#[track_caller]
fn assert_rejected(files: &Files, messages: &[&str]) {
    let error = files.load().unwrap_err();
    let text = match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    for message in messages {
        assert!(text.contains(message), "{message:?} is not in {text:?}");
    }
}

#[test]
fn key_of_another_certificate_is_rejected() {
    let files = Files::new(&Certificate::new());
    files.replace_key(&Certificate::new().key);
    assert_rejected(&files, &["key.pem (--tls-key) is not that of the certificate", "cert.pem (--tls-cert)"]);
}

#[test]
fn certificate_outside_of_its_validity_is_rejected() {
    let expired = Certificate::with(|params| params.not_after = date_time_ymd(2020, 2, 29));
    assert_rejected(&Files::new(&expired), &["cert.pem (--tls-cert) expired on Sat, 29 Feb 2020"]);
    let future = Certificate::with(|params| params.not_before = date_time_ymd(2999, 1, 1));
    assert_rejected(&Files::new(&future), &["cert.pem (--tls-cert) is not valid before", "2999"]);
}

#[test]
fn missing_and_invalid_files_are_rejected() {
    let certificate = Certificate::new();
    let files = Files::new(&certificate);
    files.replace_cert("");
    assert_rejected(&files, &["cert.pem (--tls-cert) has no certificate in PEM"]);
    files.replace_cert(&certificate.key);
    assert_rejected(&files, &["cert.pem (--tls-cert) has no certificate in PEM"]);
    files.replace_cert(certificate.cert.split_at(certificate.cert.len() / 2).0);
    assert_rejected(&files, &["cert.pem (--tls-cert) has no certificate in PEM"]);
    files.replace_cert("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert_rejected(&files, &["cert.pem (--tls-cert) has an invalid certificate"]);
    files.replace_cert(&"x".repeat(2 << 20));
    assert_rejected(&files, &["cert.pem (--tls-cert) is larger than 1048576 bytes"]);
    files.replace(&certificate);
    files.replace_key(&certificate.cert);
    assert_rejected(&files, &["key.pem (--tls-key) has no private key in PEM"]);
    fs::remove_file(files.key()).unwrap();
    assert_rejected(&files, &["cannot read", "key.pem (--tls-key)", "No such file"]);
    fs::create_dir(files.key()).unwrap();
    assert_rejected(&files, &["key.pem (--tls-key) is not a regular file"]);
}

#[test]
fn key_that_other_users_can_read_is_rejected() {
    let files = Files::new(&Certificate::new());
    for mode in [0o644, 0o640, 0o604, 0o660, 0o610] {
        set_mode(&files.key(), mode);
        assert_rejected(&files, &["key.pem (--tls-key)", &format!("mode {mode:04o}"), "chmod 600", "fsGroup"]);
    }
    for mode in [0o600, 0o400] {
        set_mode(&files.key(), mode);
        files.load().unwrap();
    }
}

#[test]
fn key_of_another_user_may_be_readable_by_its_group() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: needs root to give a file to another user");
        return;
    }
    let files = Files::new(&Certificate::new());
    std::os::unix::fs::chown(files.key(), Some(12_345), None).unwrap();
    set_mode(&files.key(), 0o640);
    files.load().unwrap();
    for mode in [0o644, 0o660] {
        set_mode(&files.key(), mode);
        assert_rejected(&files, &["fsGroup"]);
    }
}
