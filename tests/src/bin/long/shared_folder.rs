//! Rounds of writes of a folder by a server and other libraries: see [`zarrd_tests::shared_folder`].
//!
//! ```text
//! shared-folder [--rounds N] [--binary PATH]
//! ```

use std::process::ExitCode;

use zarrd_tests::{arguments::arguments, binary, shared_folder::write_together};

pub(crate) fn main() -> ExitCode {
    let mut rounds = 500;
    for argument in arguments() {
        match argument.name.as_str() {
            "--rounds" => rounds = argument.number(),
            "--binary" => binary::use_program(argument.value.into()),
            _ => argument.reject(),
        }
    }
    match write_together(rounds) {
        Some(rows) => {
            println!("{rounds} rounds, {rows} rows written and read by all");
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}
