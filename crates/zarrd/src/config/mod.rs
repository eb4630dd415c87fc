//! The configuration: flags above `ZARRD_*` variables above `zarrd.toml` above defaults, parsed once into one struct per
//! command.

mod file;
mod location;
mod options;
mod remote;
mod typed;

use std::{io, path::PathBuf};

pub(crate) use file::File;
pub(crate) use location::{Listen, Location};
pub(crate) use options::{Anonymous, LogFormat, LogOptions, ServeOptions, StoreOptions, TransferOptions, WriteOptions};
pub(crate) use remote::{ImportFrom, PrefixArg};
pub(crate) use typed::{
    CheckConfig, CompactConfig, CopyConfig, Detail, ExportConfig, HealthConfig, ImportConfig, LogConfig, LookConfig,
    OnRefused, OutputForm, Place, ServeConfig, WriteLimits,
};

/// Why there is no configuration to run with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not TOML, or a value in it is not what its key wants.
    #[error("there is a mistake in {}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Where, and what.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The file has a key that means nothing.
    #[error("`{key}` in {} is not a setting; the settings are {known}", file.display())]
    UnknownKey {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
        /// All there are.
        known: String,
    },
    /// Whoever reaches the address could do anything, and nobody said so.
    #[error(
        "{listen} is not a loopback address, so other machines may reach it, and the server does not ask who they are: \
         pass --anonymous read to let them read everything, or --anonymous write to let them also change and erase \
         everything (ZARRD_ANONYMOUS and `anonymous` in zarrd.toml do the same)"
    )]
    AnonymousUnsaid {
        /// The address.
        listen: Listen,
    },
    /// The server is to keep nothing, where something is to be kept.
    #[error("{command} works on what a store has kept, and memory: keeps nothing; name a sled:DIR or redb:DIR")]
    NothingKept {
        /// The command.
        command: &'static str,
    },
    /// There would be too little memory to serve anything with.
    #[error("--max-memory is {memory}, and at least {least} are needed")]
    LittleMemory {
        /// What was given.
        memory: bytesize::ByteSize,
        /// What is needed.
        least: bytesize::ByteSize,
    },
    /// The log filter is not one.
    #[error("`{filter}` is not a log filter, such as info or server=debug,warn")]
    LogFilter {
        /// The filter.
        filter: String,
        /// Why.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// The address makes no URL.
    #[error("the address to listen on cannot be asked")]
    Url(#[from] client::BaseUrlError),
}
