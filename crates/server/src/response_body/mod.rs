//! Bodies of responses.

mod instrumented;
mod sized;

pub(crate) use instrumented::instrumented_body;
pub(crate) use sized::{empty_body_of_unknown_length, sized_body, value_body};
