//! What a newcomer reads.

use crate::runner::Place;

#[test]
fn help_begins_with_what_it_is_and_ends_with_examples_and_exit_codes() {
    let place = Place::new();
    let help = place.done(&["--help"]).stdout;
    for part in
        ["lab's arrays", "serve", "import", "Examples:", "zarrd.toml", "Exit codes:", "in use by another process"]
    {
        assert!(help.contains(part), "{part}: {help}");
    }
    for command in ["serve", "import", "export", "ls", "tree", "info", "check", "compact", "copy", "health"] {
        let help = place.done(&[command, "--help"]).stdout;
        assert_eq!(place.done(&["help", command]).stdout, help);
        assert!(help.contains("Examples:") && help.contains(&format!("zarrd {command}")), "{help}");
    }
}

#[test]
fn flags_tell_their_variables_and_defaults() {
    let help = Place::new().done(&["serve", "--help"]).stdout;
    for part in [
        "ZARRD_STORE",
        "sled:./zarrd-data",
        "ZARRD_LISTEN",
        "127.0.0.1:8000",
        "ZARRD_MAX_BODY",
        "16GiB",
        "ZARRD_READ_ONLY",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let place = Place::new();
    place.fails(&[], 2, &["Usage: zarrd"]);
    place.fails(&["serv"], 2, &["serve"]);
    place.fails(&["serve", "--listne", "x"], 2, &["--listen"]);
    place.fails(&["serve", "--listen", "8000"], 2, &["127.0.0.1:8000"]);
    place.fails(&["serve", "--store", "s3://bucket"], 2, &["sled:DIR"]);
    place.fails(&["serve", "--max-body", "much"], 2, &["--max-body"]);
    place.fails(&["serve", "--max-selection", "much"], 2, &["--max-selection"]);
    place.fails(&["serve", "--max-memory", "1MiB"], 2, &["--max-memory", "16.0 MiB"]);
    for command in [&["serve"][..], &["import", "."], &["copy", "a", "b"]] {
        for flag in ["--commit-buffer", "--max-retained"] {
            place.fails(&[command, &[flag, "much"]].concat(), 2, &[flag]);
        }
    }
    place.fails(&["import", ".", "a//b"], 2, &["empty"]);
    place.fails(&["import", "http://lab/other/"], 2, &["/store/"]);
    place.fails(&["import", ".", "--store", "redb:a", "--server", "http://lab"], 2, &["--server"]);
    place.fails(&["check", "--store", "memory:"], 2, &["keeps nothing"]);
    assert!(!place.path("zarrd-data").exists());
}
