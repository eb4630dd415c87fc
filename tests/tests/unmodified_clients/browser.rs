//! A page that Chromium shows.

use zarrd_tests::{
    environment::clients, node::node, python::python_with_clients, sample::Served, skip::say, tools::tool,
};

#[test]
fn zarrita_reads_in_a_cross_origin_page() {
    let (Some(_), Some(node), Some(python)) = (tool("chromium", "chromium"), node(), python_with_clients()) else {
        return;
    };
    let served = Served::with(&python);
    let [lab, page, profile] =
        [served.sample.lab(), clients().join("unmodified/read_in_browser.html"), served.place.path().join("profile")];
    let [lab, page, profile] = [&lab, &page, &profile].map(|path| path.to_str().unwrap());
    let found = node.run("unmodified/read_in_browser.mjs", &[&served.url(""), lab, page, profile]);
    say(found.trim_end());
    assert_eq!(found.trim_end(), "zarrita in Chromium compared 18 arrays");
    // Nothing was written.
    assert_eq!(served.requests("/store/{key}", "PUT", 201), 0);
}
