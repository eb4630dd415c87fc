//! A page displayed by Chromium.

use zarrd_tests::{
    environment::clients, node::node, python::python_with_clients, sample::SampleServer, skip::note, tools::tool,
};

#[test]
fn zarrita_reads_in_a_cross_origin_page() {
    let (Some(_), Some(node), Some(python)) = (tool("chromium", "chromium"), node(), python_with_clients()) else {
        return;
    };
    let sample_server = SampleServer::with(&python);
    let [lab, page, profile] = [
        sample_server.sample.lab(),
        clients().join("unmodified/read_in_browser.html"),
        sample_server.download_dir.path().join("profile"),
    ];
    let [lab, page, profile] = [&lab, &page, &profile].map(|path| path.to_str().unwrap());
    let found = node.run("unmodified/read_in_browser.mjs", &[&sample_server.url(""), lab, page, profile]);
    note(found.trim_end());
    assert_eq!(found.trim_end(), "zarrita in Chromium compared 18 arrays");
    // Nothing was written.
    assert_eq!(sample_server.requests("/store/{key}", "PUT", 201), 0);
}
