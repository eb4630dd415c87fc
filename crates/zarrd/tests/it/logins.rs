//! `zarrd login` and `zarrd logout`, and the tokens that commands send.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    sync::mpsc::{Receiver, channel},
    thread,
};

use crate::runner::TestDir;

/// A server that refuses every request, and returns the `Authorization` header of each.
fn refusing_server() -> (String, Receiver<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let header = head.iter().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("authorization").then(|| value.to_owned())
            });
            let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            if sender.send(header).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

#[test]
fn stored_token_is_sent_to_its_server_only() {
    let dir = TestDir::new();
    let ((one, to_one), (other, to_other)) = (refusing_server(), refusing_server());
    let login = dir.run_with_input(&["login", &format!("{one}/below/")], "zarrd_1_a_b\n");
    assert_eq!((login.code, login.stdout.as_str()), (0, ""), "{login:?}");
    assert!(!login.stderr.contains("zarrd_1_a_b") && login.stderr.contains("tokens.json"), "{login:?}");
    let file = dir.path("config/zarrd/tokens.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    let list = |server: &str| dir.fails(&["ls", "--server", server], 1, &["token"]);
    assert!(!list(&one).stderr.contains("zarrd_1_a_b"));
    assert_eq!(to_one.recv().unwrap().as_deref(), Some("Bearer zarrd_1_a_b"));
    list(&other);
    assert_eq!(to_other.recv().unwrap(), None);
    dir.succeeds(&["logout", &one]);
    list(&one);
    assert_eq!(to_one.recv().unwrap(), None);
    dir.fails(&["logout", &one], 1, &["no token", &one]);
}

#[test]
fn token_of_the_environment_takes_precedence() {
    let mut dir = TestDir::new();
    let (server, received) = refusing_server();
    assert_eq!(dir.run_with_input(&["login", &server], "stored").code, 0);
    dir.env("ZARRD_TOKEN", "of-the-environment");
    dir.fails(&["ls", "--server", &server], 1, &[]);
    assert_eq!(received.recv().unwrap().as_deref(), Some("Bearer of-the-environment"));
    let url = format!("{server}/store/lab/");
    dir.fails(&["import", &url], 1, &[]);
    assert_eq!(received.recv().unwrap().as_deref(), Some("Bearer of-the-environment"));
    dir.env("ZARRD_TOKEN", "not a token");
    let failed = dir.fails(&["ls", "--server", &server], 2, &["ZARRD_TOKEN"]);
    assert!(!failed.stderr.contains("not a token"), "{failed:?}");
}

#[test]
fn token_of_the_environment_is_not_sent_to_the_source_of_an_import_into_a_server() {
    let mut dir = TestDir::new();
    let ((source, to_source), (target, _)) = (refusing_server(), refusing_server());
    dir.env("ZARRD_TOKEN", "of-the-target");
    let url = format!("{source}/store/lab/");
    dir.fails(&["import", &url, "--server", &target], 1, &[]);
    assert_eq!(to_source.recv().unwrap(), None);
    assert_eq!(dir.run_with_input(&["login", &source], "of-the-source").code, 0);
    dir.fails(&["import", &url, "--server", &target], 1, &[]);
    assert_eq!(to_source.recv().unwrap().as_deref(), Some("Bearer of-the-source"));
}

#[test]
fn insecure_or_damaged_file_of_tokens_is_refused() {
    let dir = TestDir::new();
    let (server, _received) = refusing_server();
    for bad in ["", "two words", "line\nline"] {
        let refused = dir.run_with_input(&["login", &server], bad);
        assert!(refused.code == 1 && refused.stderr.contains("token is invalid"), "{refused:?}");
    }
    assert_eq!(dir.run_with_input(&["login", &server], "secret").code, 0);
    let file = dir.path("config/zarrd/tokens.json");
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    dir.fails(&["ls", "--server", &server], 2, &["tokens.json", "chmod 600"]);
    mode(0o600);
    std::fs::write(&file, "{\"http://lab\": ").unwrap();
    dir.fails(&["ls", "--server", &server], 2, &["tokens.json", "damaged"]);
    dir.fails(&["logout", &server], 1, &["damaged"]);
}
