//! What holds of ZOMs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod parse;

use serde_json::Value;

use super::{Violation, Zom, ZomError};

/// ZEP 6's own examples, as they stand.
const ZEP_6_V2: &str = include_str!("zep6/v2.json");
const ZEP_6_V3: &str = include_str!("zep6/v3.json");

fn parse(json: &Value) -> Result<Zom, ZomError> {
    Zom::parse(&serde_json::to_vec(json).unwrap())
}

/// Why a ZOM is refused.
fn violations(json: &Value) -> Vec<Violation> {
    match parse(json) {
        Err(ZomError::Invalid { violations }) => violations,
        other => panic!("{json}: {other:?}"),
    }
}
