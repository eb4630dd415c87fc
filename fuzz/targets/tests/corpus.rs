//! The corpora, replayed without a fuzzer.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

/// Calls the target `name` with every input of its corpus; returns the number of inputs.
fn replay(name: &str) -> usize {
    let target = zarrd_fuzz_targets::named(name).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    let inputs = std::fs::read_dir(corpus).unwrap();
    inputs.map(|entry| target(&std::fs::read(entry.unwrap().path()).unwrap())).count()
}

#[test]
fn array_query_corpus_passes() {
    assert!(replay("array_query") >= 60);
}

#[test]
fn chunk_corpus_passes() {
    assert!(replay("decode") >= 50);
}

#[test]
fn document_edit_corpus_passes() {
    assert!(replay("document_edit") >= 30);
}

#[test]
fn elements_corpus_passes() {
    assert!(replay("elements") >= 30);
}

#[test]
fn metadata_corpus_passes() {
    assert!(replay("metadata") >= 50);
}

#[test]
fn request_corpus_passes() {
    assert!(replay("request") >= 20);
}

#[test]
fn s3_corpus_passes() {
    assert!(replay("s3") >= 20);
}

#[test]
fn selection_corpus_passes() {
    assert!(replay("selection") >= 30);
}

#[test]
fn shard_index_corpus_passes() {
    assert!(replay("shard_index") >= 20);
}

#[test]
fn zom_corpus_passes() {
    assert!(replay("zom") >= 20);
}

#[test]
fn npz_corpus_passes() {
    assert!(replay("npz") >= 5);
}
