//! Flags above environment above file above defaults.

use crate::runner::Place;

#[test]
fn the_layers_lie_upon_each_other() {
    let mut place = Place::new();
    assert!(place.serve(&[]).line.ends_with("(store: sled:./zarrd-data)\n"));

    place.write("zarrd.toml", "store = \"redb:of-the-file\"\nanonymous = \"read\"\n");
    assert!(place.serve(&[]).line.ends_with("(store: redb:of-the-file)\n"));

    place.write("elsewhere/other.toml", "store = \"memory:\"\n");
    assert!(place.serve(&["--config", "elsewhere/other.toml"]).line.ends_with("(store: memory:)\n"));

    // A path without the kind of a store is one of sled's.
    place.env("ZARRD_STORE", "of-the-environment");
    assert!(place.serve(&[]).line.ends_with("(store: sled:of-the-environment)\n"));
    assert!(place.serve(&["--store", "sled:of-the-flag"]).line.ends_with("(store: sled:of-the-flag)\n"));
    place.env("ZARRD_CONFIG", "elsewhere/other.toml");
    assert!(place.serve(&[]).line.ends_with("(store: sled:of-the-environment)\n"));
}

#[test]
fn a_file_with_mistakes_is_exit_code_2() {
    let place = Place::new();
    for (text, said) in [
        ("stor = \"memory:\"", ["zarrd.toml", "`stor`", "shutdown-timeout"].as_slice()),
        ("max-body = \"12 parsecs\"", &["zarrd.toml", "line 1", "max-body"]),
        ("log = \"loud\"\n", &["zarrd.toml", "loud", "human"]),
        ("listen = ", &["zarrd.toml", "line 1"]),
    ] {
        place.write("zarrd.toml", text);
        place.fails(&["serve"], 2, said);
        place.fails(&["check"], 2, said);
    }
    place.fails(&["serve", "--config", "missing.toml"], 2, &["missing.toml", "No such file"]);
    assert!(!place.path("zarrd-data").exists());
}

#[test]
fn an_address_that_others_reach_needs_a_word_about_who_may_do_what() {
    let mut place = Place::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        place.fails(&["serve", "--listen", address], 2, &["--anonymous read", "--anonymous write", "loopback"]);
    }
    assert!(!place.path("zarrd-data").exists());
    assert!(place.serve(&["--listen", "0.0.0.0:0", "--anonymous", "read"]).line.contains("http://0.0.0.0:"));
    place.env("ZARRD_LISTEN", "0.0.0.0:0");
    place.fails(&["serve"], 2, &["--anonymous"]);
    place.env("ZARRD_ANONYMOUS", "write");
    assert!(place.serve(&[]).line.contains("http://0.0.0.0:"));
}

#[test]
fn the_log_is_for_people_or_json_and_as_much_as_is_wanted() {
    let mut place = Place::new();
    let human = place.serve(&["--store", "memory:"]).stop();
    assert!(human.contains("INFO") && human.contains("stopping"), "{human}");
    let json = place.serve(&["--store", "memory:", "--log", "json"]).stop();
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["level"] == "INFO" && line["signal"] == "SIGTERM"), "{json}");
    place.env("RUST_LOG", "error");
    assert_eq!(place.serve(&["--store", "memory:"]).stop(), "");
    assert!(place.serve(&["--store", "memory:", "--log-level", "info"]).stop().contains("stopping"));
    place.fails(&["serve", "--log-level", "=!?"], 2, &["log filter"]);
}
