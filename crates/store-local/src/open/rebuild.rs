//! Rebuilding a damaged index when a store is opened.

use std::path::Path;

use super::{Identity, index_open_error};
use crate::{
    FileCorruption, OpenError,
    checkpoint::{Generations, replace_generation, report_rebuilt, write_rebuilt},
    index::IndexOptions,
    index_pages::{RebuiltIndex, rebuild},
    log::Replayed,
    paths::Paths,
};

/// True if the error says that an index is damaged, or that parts of it cannot be read.
pub(super) fn is_damaged_index(paths: &Paths, error: &OpenError) -> bool {
    match error {
        OpenError::Corrupt { file, cause } => {
            file.starts_with(paths.index()) && !matches!(cause, FileCorruption::Missing)
        }
        OpenError::Io { source, .. } => source.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()),
        _ => false,
    }
}

/// Replaces the current generation of the index. Fails with `error`, without a change, if its damage has no bounds.
pub(super) fn replace_index(
    paths: &Paths,
    identity: &Identity,
    generations: &mut Generations,
    replayed: &Replayed,
    options: IndexOptions,
    error: OpenError,
) -> Result<(), OpenError> {
    let rebuilt = rebuilt(&generations.dir(), identity, replayed, error)?;
    let replaced = replace_generation(paths, generations, &rebuilt, options);
    replaced.map_err(|error| index_open_error(paths, error))
}

/// Makes an index in `copy`, which is empty, of one that is only read. Fails with `error` if its damage has no bounds.
pub(super) fn copy_index(
    paths: &Paths,
    identity: &Identity,
    (damaged, copy): (&Path, &Path),
    replayed: &Replayed,
    options: IndexOptions,
    error: OpenError,
) -> Result<(), OpenError> {
    let rebuilt = rebuilt(damaged, identity, replayed, error)?;
    write_rebuilt(&rebuilt, copy, options).map_err(|error| index_open_error(paths, error))?;
    report_rebuilt(&rebuilt, &paths.shown(damaged));
    Ok(())
}

/// The certain entries, if they fit to the log.
fn rebuilt(
    damaged: &Path,
    identity: &Identity,
    replayed: &Replayed,
    error: OpenError,
) -> Result<RebuiltIndex, OpenError> {
    let rebuilt = rebuild(damaged, identity.index, identity.id).filter(|rebuilt| {
        rebuilt.applied.saturating_add(1) >= replayed.first_group && rebuilt.applied < replayed.next_group
    });
    if rebuilt.is_some() {
        tracing::warn!(error = &error as &dyn std::error::Error, "the index is damaged; it is rebuilt");
    }
    rebuilt.ok_or(error)
}
