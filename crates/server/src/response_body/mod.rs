//! Bodies of responses.

mod instrumented;
mod sized;

pub(crate) use instrumented::instrumented_body;
pub(crate) use sized::{sized_body, value_body};
