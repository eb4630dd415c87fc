//! The corpora, replayed without a fuzzer.

#[test]
fn requests() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/request");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        fuzz_targets::request(&std::fs::read(entry.unwrap().path()).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 20, "{replayed} inputs");
}
