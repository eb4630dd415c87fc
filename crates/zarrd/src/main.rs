//! `zarrd`: serves Zarr data, and moves it in and out.
//!
//! A command line becomes a typed configuration ([`config`]), which one of the [`commands`] runs with; what goes wrong
//! becomes an exit code in [`exit`].

mod cli;
mod commands;
mod config;
mod exit;
mod hierarchy;
mod log;
mod opening;
mod signals;
mod transfer;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            ui::note(exit::chain(&failure));
            failure.code().into()
        }
    }
}
