//! Help and errors of the command line.

use crate::runner::TestDir;

#[test]
fn help_has_examples_and_exit_codes() {
    let dir = TestDir::new();
    let help = dir.succeeds(&["--help"]).stdout;
    for part in
        ["lab's arrays", "serve", "import", "Examples:", "zarrd.toml", "Exit codes:", "in use by another process"]
    {
        assert!(help.contains(part), "{part}: {help}");
    }
    for command in [
        "serve",
        "import",
        "export",
        "ls",
        "tree",
        "info",
        "get",
        "stats",
        "check",
        "compact",
        "copy",
        "health",
        "login",
        "logout",
        "token",
        "token create",
        "token list",
        "token revoke",
        "token rotate",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let help = dir.succeeds(&[&words, ["--help"].as_slice()].concat()).stdout;
        assert_eq!(dir.succeeds(&[["help"].as_slice(), &words].concat()).stdout, help);
        assert!(help.contains("Examples:") && help.contains(&format!("zarrd {command}")), "{help}");
    }
}

#[test]
fn flags_have_variables_and_defaults() {
    let help = TestDir::new().succeeds(&["serve", "--help"]).stdout;
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
fn invalid_command_line_is_exit_code_2() {
    let dir = TestDir::new();
    dir.fails(&[], 2, &["Usage: zarrd"]);
    dir.fails(&["serv"], 2, &["serve"]);
    dir.fails(&["serve", "--listne", "x"], 2, &["--listen"]);
    dir.fails(&["serve", "--listen", "8000"], 2, &["127.0.0.1:8000"]);
    dir.fails(&["serve", "--store", "ftp://host"], 2, &["sled:DIR"]);
    dir.fails(&["serve", "--max-body", "much"], 2, &["--max-body"]);
    dir.fails(&["serve", "--max-selection", "much"], 2, &["--max-selection"]);
    dir.fails(&["serve", "--max-memory", "1MiB"], 2, &["--max-memory", "16.0 MiB"]);
    for command in [&["serve"][..], &["import", "."], &["copy", "a", "b"]] {
        for flag in ["--commit-buffer", "--max-retained"] {
            dir.fails(&[command, &[flag, "much"]].concat(), 2, &[flag]);
        }
    }
    dir.fails(&["import", ".", "a//b"], 2, &["empty"]);
    dir.fails(&["import", "http://lab/other/"], 2, &["/store/"]);
    dir.fails(&["import", ".", "--store", "redb:a", "--server", "http://lab"], 2, &["--server"]);
    dir.fails(&["check", "--store", "memory:"], 2, &["keeps nothing"]);
    assert!(!dir.path("zarrd-data").exists());
}

#[test]
fn errors_do_not_show_credentials_of_urls() {
    let dir = TestDir::new();
    for (arguments, message) in [
        (&["serve", "--store", "s3://key:hunter2@bucket"][..], "--store"),
        (&["serve", "--store", "http://ada:hunter2@host/"], "--store"),
        (&["serve", "--mount", "a=az://key:hunter2@c"], "--mount"),
        (&["tree", "--server", "http://ada:hunter2@host?"], "--server"),
        (&["import", "s3://key:hunter2@bucket"], "DIR|URL"),
        (&["copy", "s3://key:hunter2@bucket", "sled:a"], "FROM"),
    ] {
        let failed = dir.fails(arguments, 2, &[message, "…@"]);
        assert!(!failed.stderr.contains("hunter2"), "{arguments:?}: {}", failed.stderr);
    }
    dir.write("zarrd.toml", "store = \"s3://key:hunter2@bucket\"\n");
    let failed = dir.fails(&["serve"], 2, &["zarrd.toml", "…@"]);
    assert!(!failed.stderr.contains("hunter2"), "{}", failed.stderr);
}
