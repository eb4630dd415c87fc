//! Servers whose listings never end.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use crate::runner::Place;

/// The keys of a page, by its number.
type Keys = fn(usize) -> Vec<String>;

/// Serves pages of keys, each of which says that there is one more.
fn endless(keys: Keys) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (page, stream) in listener.incoming().enumerate() {
            answer(stream.unwrap(), keys(page), page);
        }
    });
    address
}

fn answer(mut stream: TcpStream, keys: Vec<String>, page: usize) {
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
    // The program may have gone.
    let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
}

#[test]
fn an_import_ends_where_the_listing_goes_back() {
    let address = endless(|page| vec![format!("k/{}", page % 3)]);
    let place = Place::new();
    place.fails(&["import", &format!("http://{address}/store/"), "x"], 1, &["the listing goes back to"]);
}

#[test]
fn an_import_ends_where_there_are_too_many_keys() {
    let address = endless(|page| (0..100).map(|key| format!("k/{page:09}/{key:03}")).collect());
    let place = Place::new();
    let import = ["import", &format!("http://{address}/store/"), "x", "--max-keys", "1000"];
    place.fails(&import, 1, &["there are more than 1000 keys (--max-keys)"]);
}
