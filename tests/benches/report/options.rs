//! The command line.

use std::time::Duration;

use zarrd_store_local::IndexKind;

/// The sections of a report, in its order.
const SECTIONS: [&str; 7] = ["chunks", "planes", "points", "ingest", "nodes", "start", "buckets"];

/// Sections that are not part of a report.
const SEPARATE_SECTIONS: [&str; 5] = ["askers", "churn", "compute", "page", "stores"];

/// The options of a run.
pub(crate) struct Options {
    pub(crate) arguments: String,
    pub(crate) write: bool,
    pub(crate) index: IndexKind,
    pub(crate) scale: Scale,
    pub(crate) sections: Vec<&'static str>,
}

/// The size of the measurements.
pub(crate) struct Scale {
    pub(crate) quick: bool,
    /// Elements along each dimension of the arrays.
    pub(crate) side: u64,
    /// The size of zarrd's chunk cache, and of the cache of each client that has one.
    pub(crate) cache: u64,
    /// The number of rounds of fast measurements.
    pub(crate) rounds: usize,
    /// The number of rounds of measurements that take seconds.
    pub(crate) few: usize,
    /// The duration of a turn.
    pub(crate) turn: Duration,
    /// The number of nodes of the hierarchy.
    pub(crate) nodes: u64,
    /// The number of keys of the large store.
    pub(crate) keys: u64,
}

const FULL: Scale = Scale {
    quick: false,
    side: 512,
    cache: 256 << 20,
    rounds: 5,
    few: 3,
    turn: Duration::from_millis(500),
    nodes: 10_000,
    keys: 1_000_000,
};

const QUICK: Scale = Scale {
    quick: true,
    side: 256,
    cache: 64 << 20,
    rounds: 2,
    few: 1,
    turn: Duration::from_millis(150),
    nodes: 500,
    keys: 20_000,
};

impl Options {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        // cargo passes `--bench`.
        let mut arguments = arguments.filter(|argument| argument != "--bench").peekable();
        let mut options =
            Self { arguments: String::new(), write: false, index: IndexKind::Sled, scale: FULL, sections: Vec::new() };
        while let Some(argument) = arguments.next() {
            options.arguments += &format!(" {argument}");
            match argument.as_str() {
                "--quick" => options.scale = QUICK,
                "--write" => options.write = true,
                "--index" => {
                    let value = arguments.next().unwrap_or_default();
                    options.arguments += &format!(" {value}");
                    options.index = index(&value)?;
                }
                name => {
                    let known = SECTIONS.iter().chain(&SEPARATE_SECTIONS).find(|known| **known == name);
                    options.sections.push(known.ok_or_else(|| format!("unknown section or option {name}"))?);
                }
            }
        }
        if options.write && !options.sections.is_empty() {
            return Err("--write needs all sections, so that they are of one run".to_owned());
        }
        if options.sections.is_empty() {
            options.sections = SECTIONS.to_vec();
        }
        Ok(options)
    }
}

fn index(name: &str) -> Result<IndexKind, String> {
    match name {
        "sled" => Ok(IndexKind::Sled),
        "redb" => Ok(IndexKind::Redb),
        other => Err(format!("--index sled or --index redb, not {other:?}")),
    }
}
