//! The fuzzer's program: it calls the target that the environment variable `ZARRD_FUZZ_TARGET` names.

#![no_main]

use std::sync::OnceLock;

static TARGET: OnceLock<zarrd_fuzz_targets::Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("ZARRD_FUZZ_TARGET").unwrap_or_default();
        let target = zarrd_fuzz_targets::named(&name).unwrap_or_else(|| {
            let names: Vec<_> = zarrd_fuzz_targets::TARGETS.iter().map(|(name, _)| *name).collect();
            eprintln!("ZARRD_FUZZ_TARGET is {name:?}; it has to be one of {}", names.join(", "));
            std::process::exit(2)
        });
        TARGET.get_or_init(|| target);
    },
    |data: &[u8]| {
        if let Some(target) = TARGET.get() {
            target(data);
        }
    }
);
