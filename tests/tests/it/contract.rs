//! `openapi.yaml` as read by other tools: validators, schemathesis, and a generated client.

use std::path::Path;

use zarrd_tests::{
    binary::workspace,
    node::node,
    python::python_for_contract,
    server::{Launch, Server},
    skip::note,
};

/// The number of requests that schemathesis generates for each operation in each phase; set by
/// `ZARRD_CONTRACT_EXAMPLES`.
const EXAMPLES: u32 = 3;

fn document() -> String {
    workspace().join("openapi.yaml").to_str().unwrap().to_owned()
}

fn server(dir: &Path) -> Server {
    Launch::sled(dir).start()
}

#[test]
fn openapi_document_and_examples_are_valid() {
    let Some(python) = python_for_contract() else { return };
    note(python.run("contract/validate.py", &[&document()]));
}

#[test]
fn redocly_reports_no_problems() {
    let Some(node) = node() else { return };
    note(node.run_package(
        "redocly",
        &["lint", &document(), "--config", workspace().join("redocly.yaml").to_str().unwrap()],
    ));
}

#[test]
fn responses_to_generated_requests_are_documented() {
    let Some(python) = python_for_contract() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path());
    let examples = std::env::var("ZARRD_CONTRACT_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_string());
    note(python.run("contract/check.py", &[&document(), &server.url(""), &examples]));
}

#[test]
fn generated_client_works() {
    let Some(python) = python_for_contract() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = server(dir.path());
    note(python.run("contract/use_client.py", &[&document(), &server.url("")]));
}
