//! Pages displayed by Chromium.

use zarrd_tests::{
    environment::clients,
    node::{Node, node},
    python::python_with_clients,
    sample::{Sample, SampleServer},
    skip::note,
    tools::tool,
};

/// Node and the files; `None` if they or Chromium are missing.
fn browser() -> Option<(Node, Sample)> {
    let (Some(_), Some(node), Some(python)) = (tool("chromium", "chromium"), node(), python_with_clients()) else {
        return None;
    };
    Some((node, Sample::of(&python)))
}

/// Opens the page that reads with zarrita below `url`, and with a token if given.
fn zarrita_reads(node: &Node, sample_server: &SampleServer, url: &str, token: Option<&str>) {
    let [lab, page, profile] = [
        sample_server.sample.lab(),
        clients().join("unmodified/read_in_browser.html"),
        sample_server.download_dir.path().join("profile"),
    ];
    let [lab, page, profile] = [&lab, &page, &profile].map(|path| path.to_str().unwrap());
    let arguments: Vec<&str> = [url, lab, page, profile].into_iter().chain(token).collect();
    let found = node.run("unmodified/read_in_browser.mjs", &arguments);
    note(found.trim_end());
    assert_eq!(found.trim_end(), "zarrita in Chromium compared 18 arrays");
}

#[test]
fn zarrita_reads_in_a_cross_origin_page() {
    let Some((node, sample)) = browser() else { return };
    let sample_server = sample.serve();
    zarrita_reads(&node, &sample_server, &sample_server.url(""), None);
    // Nothing was written.
    assert_eq!(sample_server.requests("/store/{key}", "PUT", 201), 0);
}

#[test]
fn zarrita_reads_and_a_page_writes_with_a_token() {
    let Some((node, sample)) = browser() else { return };
    let sample_server = sample.serve_closed();
    zarrita_reads(&node, &sample_server, &sample_server.url(""), Some(&sample_server.admin_token()));
    assert_eq!(sample_server.requests("/store/{key}", "PUT", 201), 1);
    // Chromium asks before it sends a token to another origin, once for each URL.
    let preflights = sample_server.requests("/store/{key}", "OPTIONS", 204);
    assert!(preflights > 18, "{preflights}");
    assert_eq!(sample_server.requests("/store/{key}", "GET", 401), 0);
}

#[test]
fn zarrita_reads_through_a_share_link_without_headers() {
    let Some((node, sample)) = browser() else { return };
    let sample_server = sample.serve_closed();
    zarrita_reads(&node, &sample_server, &sample_server.share_link(), None);
    assert_eq!(sample_server.requests("/store/{key}", "PUT", 201), 0);
    assert!(sample_server.requests("/store/{key}", "GET", 200) > 18);
}

#[test]
fn only_a_navigation_opens_a_login_dialog() {
    let Some((node, sample)) = browser() else { return };
    let sample_server = sample.serve_closed();
    let profile = sample_server.download_dir.path().join("profile");
    let arguments = [&sample_server.url(""), profile.to_str().unwrap(), &sample_server.admin_token()];
    let found = node.run("unmodified/challenges_in_browser.mjs", &arguments);
    note(found.trim_end());
    assert_eq!(found.trim_end(), "no dialog for 14 requests of pages, one for each of 2 navigations");
}
