//! Imports from servers whose listings never end.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use crate::runner::TestDir;

/// The keys of a page, by its number.
type Keys = fn(usize) -> Vec<String>;

/// Starts a server of listings in which every page has a cursor.
fn start_server(keys: Keys) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (page, stream) in listener.incoming().enumerate() {
            respond(stream.unwrap(), keys(page), page);
        }
    });
    address
}

fn respond(mut stream: TcpStream, keys: Vec<String>, page: usize) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let value = serde_json::json!({
        "size": 1, "etag": "\"00000000000000000000000000000001\"", "modified": "2026-11-21T06:28:08.123Z",
    });
    let body = serde_json::json!({
        "prefix": "", "keys": keys, "values": vec![value; keys.len()], "cursor": page.to_string(),
    });
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    // The program may have closed the connection.
    let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
}

#[test]
fn unsorted_listing_fails_the_import() {
    let address = start_server(|page| vec![format!("k/{}", page % 3)]);
    let dir = TestDir::new();
    dir.fails(&["import", &format!("http://{address}/store/"), "x"], 1, &["the listing goes back to"]);
}

#[test]
fn too_long_listing_fails_the_import() {
    let address = start_server(|page| (0..100).map(|key| format!("k/{page:09}/{key:03}")).collect());
    let dir = TestDir::new();
    let import = ["import", &format!("http://{address}/store/"), "x", "--max-keys", "1000"];
    dir.fails(&import, 1, &["the listing has more than 1000 keys (--max-keys)"]);
}
