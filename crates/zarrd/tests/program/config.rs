//! Precedence of flags, environment, file and defaults.

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
fn non_loopback_address_requires_anonymous() {
    let mut dir = TestDir::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        dir.fails(
            &["serve", "--listen", address],
            2,
            &["--anonymous none", "--anonymous read", "--anonymous write", "loopback"],
        );
    }
    assert!(!dir.path("zarrd-data").exists());
    assert!(dir.serve(&["--listen", "0.0.0.0:0", "--anonymous", "read"]).line.contains("http://0.0.0.0:"));
    dir.env("ZARRD_LISTEN", "0.0.0.0:0");
    dir.fails(&["serve"], 2, &["--anonymous"]);
    dir.env("ZARRD_ANONYMOUS", "write");
    assert!(dir.serve(&[]).line.contains("http://0.0.0.0:"));
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
