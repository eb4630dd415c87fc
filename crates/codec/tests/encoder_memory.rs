//! The memory that encoders declare, compared with the memory of this process. There is one test, so that no other
//! allocates meanwhile.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

use std::fs;

use serde_json::json;
use zarrd_codec::{ChunkRepresentation, CodecChain, Elements};
use zarrd_meta::{codecs::CodecSpec, data_type::parse_v3};

const MIB: u64 = 1 << 20;

/// A line of the status of this process, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The chain of lzma with a preset, for chunks of `len` bytes.
fn lzma(preset: u32, len: u64) -> CodecChain {
    let codecs = [json!("bytes"), json!({"name": "numcodecs.lzma", "configuration": {"preset": preset}})];
    let codecs: Vec<_> = codecs.iter().map(|codec| CodecSpec::parse_v3(codec).unwrap()).collect();
    let data_type = parse_v3(&json!("uint8")).unwrap();
    let fill_value = data_type.zero();
    CodecChain::new(&codecs, ChunkRepresentation::new(data_type, vec![len], fill_value).unwrap()).unwrap()
}

#[test]
fn lzma_takes_the_memory_that_it_declares() {
    for (preset, len) in [(1, 2 * MIB), (6, 2 * MIB), (9, 4 * MIB)] {
        let chain = lzma(preset, len);
        let elements: Vec<u8> = (0..len).map(|index| (index.wrapping_mul(index >> 7) >> 3) as u8).collect();
        let elements = Elements::Fixed(elements.into());
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = status("VmRSS:");
        let encoded = chain.encode(elements).unwrap();
        let (taken, declared) = (status("VmHWM:") - before, chain.encoder_memory());
        let result = 2 * encoded.len() as u64;
        drop(encoded);
        assert!(taken <= declared + result + MIB, "preset {preset}, {len} bytes: {taken}, declared {declared}");
        assert!(taken * 2 >= declared, "preset {preset}, {len} bytes: only {taken}, declared {declared}");
    }
}
