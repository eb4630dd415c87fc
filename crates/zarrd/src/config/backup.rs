//! The configuration of `backup`, `restore` and `recover`.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use super::{
    ACCESS, ConfigError, ConfigFile, Endpoint, Location,
    resolved::{CopiedTokens, WriteLimits, jobs, jobs_from, persistent, readable_endpoint},
};
use crate::{
    backup::{Damaged, Verify},
    cli::{BackupArgs, RecoverArgs, RestoreArgs},
};

/// Configuration of `backup`.
#[derive(Debug)]
pub(crate) struct BackupConfig {
    /// The directory of the backups.
    pub(crate) to: PathBuf,
    /// The store to back up.
    pub(crate) from: Endpoint,
    /// The directory of its tokens, if it is known.
    pub(crate) tokens: Option<PathBuf>,
    /// Number of backups that are kept; `None` for all.
    pub(crate) keep: Option<NonZeroUsize>,
    /// The files that are read again.
    pub(crate) verify: Verify,
    /// Number of values that are copied concurrently.
    pub(crate) jobs: NonZeroUsize,
}

/// Configuration of `restore`.
#[derive(Debug)]
pub(crate) struct RestoreConfig {
    /// The directory of the backups.
    pub(crate) from: PathBuf,
    /// The store to create; `None` to list the backups.
    pub(crate) to: Option<Location>,
    /// The name of the backup; `None` for the newest.
    pub(crate) backup: Option<String>,
    /// What happens to values whose files are damaged or missing.
    pub(crate) damaged: Damaged,
    /// The tokens that are restored.
    pub(crate) tokens: CopiedTokens,
    /// Limits of the new store.
    pub(crate) write: WriteLimits,
    /// Number of values that are copied concurrently.
    pub(crate) jobs: NonZeroUsize,
}

/// Configuration of `recover`.
#[derive(Debug)]
pub(crate) struct RecoverConfig {
    /// The damaged store.
    pub(crate) from: Location,
    /// The store to create.
    pub(crate) to: Location,
    /// What happens to values that may not be the last ones.
    pub(crate) doubtful: Doubtful,
    /// The file that lists doubtful and lost values; `None` for stderr.
    pub(crate) report: Option<PathBuf>,
    /// The tokens that are copied.
    pub(crate) tokens: CopiedTokens,
    /// Limits of the new store.
    pub(crate) write: WriteLimits,
    /// Number of values that are copied concurrently.
    pub(crate) jobs: NonZeroUsize,
}

/// The treatment of values that may not be the last ones of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubtful {
    /// They are listed only.
    LeaveOut,
    /// They are recovered and listed.
    Take,
}

impl RecoverConfig {
    /// Resolves the options.
    pub(crate) fn new(args: RecoverArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        Ok(Self {
            from: persistent(args.from, "recover")?,
            to: persistent(args.to, "recover")?,
            doubtful: if args.doubtful { Doubtful::Take } else { Doubtful::LeaveOut },
            report: args.report,
            tokens: if args.without_access { CopiedTokens::None } else { CopiedTokens::All },
            write: WriteLimits::new(&args.write, file),
            jobs: jobs(&args.transfer, file),
        })
    }
}

impl BackupConfig {
    /// Resolves the options.
    pub(crate) fn new(args: BackupArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let from = match readable_endpoint(args.endpoint, file, "backup")? {
            Endpoint::Local(location) => Endpoint::Local(persistent(location, "backup")?),
            server @ Endpoint::Server(_) => server,
        };
        let own = match &from {
            Endpoint::Local(location) => location.directory().map(|directory| directory.join(ACCESS)),
            Endpoint::Server(_) => None,
        };
        Ok(Self {
            to: args.to,
            jobs: jobs_from(&from, &args.transfer, file),
            from,
            tokens: args.tokens.or(own),
            keep: args.keep,
            verify: if args.verify { Verify::All } else { Verify::New },
        })
    }

    /// The directory of the store, if it is on this machine.
    pub(crate) fn store_directory(&self) -> Option<&Path> {
        match &self.from {
            Endpoint::Local(location) => location.directory(),
            Endpoint::Server(_) => None,
        }
    }
}

impl RestoreConfig {
    /// Resolves the options.
    pub(crate) fn new(args: RestoreArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        Ok(Self {
            from: args.from,
            to: args.to.map(|to| persistent(to, "restore")).transpose()?,
            backup: args.backup,
            damaged: if args.skip_damaged { Damaged::Skip } else { Damaged::Fail },
            tokens: if args.without_access { CopiedTokens::None } else { CopiedTokens::All },
            write: WriteLimits::new(&args.write, file),
            jobs: jobs(&args.transfer, file),
        })
    }
}
