//! Precedence of flags, environment, file and defaults.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;

use crate::runner::TestDir;

#[test]
fn flags_override_environment_override_file_override_defaults() {
    let mut dir = TestDir::new();
    assert!(dir.serve(&[]).line.ends_with("(store: sled:./zarrd-data)\n"));

    dir.write("zarrd.toml", "store = \"redb:of-the-file\"\nanonymous = \"read\"\n");
    assert!(dir.serve(&[]).line.ends_with("(store: redb:of-the-file)\n"));

    dir.write("elsewhere/other.toml", "store = \"memory:\"\n");
    assert!(dir.serve(&["--config", "elsewhere/other.toml"]).line.ends_with("(store: memory:)\n"));

    // A path without a kind is a sled store.
    dir.env("ZARRD_STORE", "of-the-environment");
    assert!(dir.serve(&[]).line.ends_with("(store: sled:of-the-environment)\n"));
    assert!(dir.serve(&["--store", "sled:of-the-flag"]).line.ends_with("(store: sled:of-the-flag)\n"));
    dir.env("ZARRD_CONFIG", "elsewhere/other.toml");
    assert!(dir.serve(&[]).line.ends_with("(store: sled:of-the-environment)\n"));
}

#[test]
fn invalid_file_is_exit_code_2() {
    let dir = TestDir::new();
    for (text, messages) in [
        ("stor = \"memory:\"", ["zarrd.toml", "`stor`", "shutdown-timeout"].as_slice()),
        ("max-body = \"12 parsecs\"", &["zarrd.toml", "line 1", "max-body"]),
        ("log = \"loud\"\n", &["zarrd.toml", "loud", "human"]),
        ("listen = ", &["zarrd.toml", "line 1"]),
    ] {
        dir.write("zarrd.toml", text);
        dir.fails(&["serve"], 2, messages);
        dir.fails(&["check"], 2, messages);
    }
    dir.fails(&["serve", "--config", "missing.toml"], 2, &["missing.toml", "No such file"]);
    assert!(!dir.path("zarrd-data").exists());
}

#[test]
fn server_that_others_can_reach_is_closed_without_anonymous() {
    let mut dir = TestDir::new();
    for args in [&["--listen", "0.0.0.0:0"][..], &["--behind-proxy", "10.0.0.0/8"], &["--anonymous", "none"]] {
        let server = dir.serve(args);
        let url = server.url().replace("0.0.0.0", "127.0.0.1");
        dir.fails(&["tree", "--server", &url], 1, &["token"]);
        let path = dir.path("zarrd-data/access/admin-token");
        let token = fs::read_to_string(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        dir.env("ZARRD_TOKEN", token.trim());
        dir.succeeds(&["tree", "--server", &url]);
        // Without an accepted token, as without one, the command fails.
        dir.env("ZARRD_TOKEN", "");
        server.signal(Signal::TERM);
        let (_, output) = server.wait();
        assert_eq!(output.contains("admin-token"), args.contains(&"0.0.0.0:0"), "only the first server makes one");
        assert!(!output.contains(token.trim()), "a token is printed to a terminal only");
    }
    dir.fails(&["serve", "--listen", "0.0.0.0:0", "--store", "memory:"], 2, &["--access", "--anonymous"]);
    dir.fails(&["serve", "--dav-listen", "0.0.0.0:0", "--store", "memory:"], 2, &["--access", "--anonymous"]);
    dir.fails(&["serve", "--anonymous", "admin:lab/"], 2, &["--anonymous", "admin"]);
    dir.fails(&["serve", "--anonymous", "none", "--anonymous", "read"], 2, &["--anonymous none"]);
    assert!(dir.serve(&["--listen", "0.0.0.0:0", "--anonymous", "read"]).line.contains("http://0.0.0.0:"));
    dir.env("ZARRD_LISTEN", "0.0.0.0:0");
    dir.env("ZARRD_ANONYMOUS", "write");
    assert!(dir.serve(&["--store", "memory:"]).line.contains("http://0.0.0.0:"));
}

#[test]
fn anonymous_clients_have_rights_on_prefixes() {
    let dir = TestDir::new();
    dir.write("data/x", "1");
    let server = dir.serve(&["--anonymous", "read:public/,write:inbox/"]);
    dir.succeeds(&["import", "data", "inbox", "--server", &server.url()]);
    dir.fails(&["import", "data", "public", "--server", &server.url()], 1, &["write public/"]);
    dir.fails(&["ls", "/", "--server", &server.url()], 1, &["read /"]);
    dir.fails(&["ls", "private", "--server", &server.url()], 1, &["read private/"]);
}

#[test]
fn log_has_format_and_filter() {
    let mut dir = TestDir::new();
    let human = dir.serve(&["--store", "memory:"]).stop();
    assert!(human.contains("INFO") && human.contains("stopping"), "{human}");
    let json = dir.serve(&["--store", "memory:", "--log", "json"]).stop();
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["level"] == "INFO" && line["signal"] == "SIGTERM"), "{json}");
    dir.env("RUST_LOG", "error");
    assert_eq!(dir.serve(&["--store", "memory:"]).stop(), "");
    assert!(dir.serve(&["--store", "memory:", "--log-level", "info"]).stop().contains("stopping"));
    dir.fails(&["serve", "--log-level", "=!?"], 2, &["log filter"]);
}
