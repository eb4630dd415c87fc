//! `zarrd`: a server for Zarr data, and tools to import, export, copy, check and inspect its stores.
//!
//! A command line is resolved with the environment and the configuration file into a typed configuration, with which a
//! command runs; its error becomes an exit code.
//!
//! ```text
//! cli (flags, ZARRD_*) ─┐
//!                       ├─▶ config ─▶ commands ─▶ open ─────▶ store-local, or client of a server (--server)
//! zarrd.toml ───────────┘                │        transfer    import, export, copy
//!                                        │        hierarchy   ls, tree, info
//!                                        │        elements    get, stats
//!                                        │        server      serve
//!                                        └─▶ error ─▶ exit code
//! ```
//!
//! - [`config`]: one configuration per command; flags take precedence over variables, and these over `zarrd.toml`.
//! - [`open`]: stores are opened after signal handlers were installed, so that they are always closed in order.
//! - [`transfer`]: sources and sinks of keys, and the order of uploads.
//! - [`signals`]: the first signal stops a command in order, the second one immediately.
//! - [`ui`]: results go to stdout, messages, progress and the log ([`logging`]) to stderr.

mod backup;
mod cli;
mod commands;
mod config;
mod elements;
mod error;
mod exit;
mod hierarchy;
mod logging;
mod new_file;
mod open;
mod served_tokens;
mod signals;
mod transfer;
mod ui;

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// The allocator, which returns memory to the operating system after a burst, unlike that of the C library. After 1,000
/// uploads of 1 MiB that were paused in the middle and dropped, which needed 690 MiB, the process had, in MiB:
///
/// | allocator | idle | 1 s later | 15 s later | after 64 uploads of 64 MiB and 64 downloads of 256 MiB at once |
/// |---|---|---|---|---|
/// | C library | 17 | 574 | 574 | 593 |
/// | mimalloc 2 | 57 | 715 | 147 | 154 |
/// | jemalloc, as configured here | 13 | 35 | 35 | 36 |
///
/// Of mimalloc 3 (crate 0.1.52), all of 814 MiB was left after a minute, and 223 MiB of 811 where it purges without delay:
/// it gives memory back only while it is used.
///
/// Their throughput did not differ by more than the variation between runs: GET of 1 KiB 59,000 to 89,000/s on 16
/// connections and of 1 MiB 2,700 to 4,800/s on 4, PUT of 1 KiB 27,000 to 43,000/s and of 1 MiB 1,800 to 2,000/s, in
/// memory on a busy machine. jemalloc needs a C compiler, `make`, and one to three minutes more for the first build,
/// mimalloc three seconds. The delay after which memory is returned is set in `.cargo/config.toml`; the variable
/// `_RJEM_MALLOC_CONF` overrides it.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    match commands::run(cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            ui::note(ui::error_chain(&error));
            error.exit_code().into()
        }
    }
}
