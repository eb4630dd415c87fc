//! The corpora, replayed without a fuzzer.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

/// Calls `target` with every input of a corpus; returns the number of inputs.
fn replay(corpus: &str, target: fn(&[u8])) -> usize {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(corpus);
    let inputs = std::fs::read_dir(corpus).unwrap();
    inputs.map(|entry| target(&std::fs::read(entry.unwrap().path()).unwrap())).count()
}

#[test]
fn array_query_corpus_passes() {
    assert!(replay("array_query", fuzz_targets::array_query) >= 60);
}

#[test]
fn chunk_corpus_passes() {
    assert!(replay("decode", fuzz_targets::decode) >= 50);
}

#[test]
fn document_edit_corpus_passes() {
    assert!(replay("document_edit", fuzz_targets::document_edit) >= 30);
}

#[test]
fn elements_corpus_passes() {
    assert!(replay("elements", fuzz_targets::elements) >= 30);
}

#[test]
fn metadata_corpus_passes() {
    assert!(replay("metadata", fuzz_targets::metadata) >= 50);
}

#[test]
fn request_corpus_passes() {
    assert!(replay("request", fuzz_targets::request) >= 20);
}

#[test]
fn selection_corpus_passes() {
    assert!(replay("selection", fuzz_targets::selection) >= 30);
}

#[test]
fn shard_index_corpus_passes() {
    assert!(replay("shard_index", fuzz_targets::shard_index) >= 20);
}

#[test]
fn zom_corpus_passes() {
    assert!(replay("zom", fuzz_targets::zom) >= 20);
}
