//! Erasing nodes.

use meta::{Dialect, NodePath, zom::MAX_NODES};
use store::{Key, MAX_COMMIT_CHANGES, Outcome, Precondition};

use super::{
    Depth, NodeError,
    consolidated::{Told, keep_true},
    declare::commit,
    edits::Edits,
    keys,
    walk::{Branch, Form, Mode, NAMES, unread, walk},
};
use crate::{
    ArrayError,
    find::{Own, key_below, prefix},
    shared::Shared,
};

/// How many changes of a commit are left for consolidated metadata, and for checks.
const SPARE: usize = 4096;

/// One attempt to erase a node with all below it; `None` where somebody else changed it.
pub(super) async fn attempt(
    shared: &Shared,
    path: &NodePath,
    dialect: Option<Dialect>,
    condition: &Precondition,
) -> Result<Option<u64>, NodeError> {
    let top = match walk(shared, path, dialect, Depth::Levels(0), Mode::Same).await {
        Ok(walk) => walk.top,
        Err(NodeError::Array(error @ (ArrayError::Document { .. } | ArrayError::Chain { .. }))) => {
            unreadable(shared, path, dialect).await?.ok_or(error)?
        }
        Err(error) => return Err(error),
    };
    let version = (!top.is_implicit()).then(|| top.own.version());
    if !condition.holds(version) {
        return Err(NodeError::PreconditionFailed { path: path.clone(), current: version });
    }
    let extent = keys::extent(path, top.dialect, top.root.as_ref())?;
    let mut edits = Edits::default();
    for (key, version) in &top.own.0 {
        edits.saw(key, *version);
    }
    let listed = keys::below(shared, &extent.prefixes).await?;
    let all_in_one = listed.as_ref().is_some_and(|keys| keys.len() + SPARE <= MAX_COMMIT_CHANGES);
    let mut first = extent.keys.clone();
    match listed {
        Some(keys) if all_in_one => first.extend(keys),
        // Metadata goes first, so that nobody sees a node some of whose chunks are gone.
        _ => first.extend(metadata(shared, path, top.dialect).await?),
    }
    for key in first {
        edits.erase(key);
    }
    let told: Vec<Told> = match top.dialect {
        Dialect::Draft => Vec::new(),
        Dialect::V2 | Dialect::V3 => {
            [Dialect::V2, Dialect::V3].map(|dialect| Told { path: path.clone(), dialect, node: None }).into()
        }
    };
    keep_true(shared, &mut edits, path, &[], &told).await?;
    let Some(outcomes) = commit(shared, edits).await? else { return Ok(None) };
    let is_gone = |outcome: &&Outcome| matches!(outcome, Outcome::Erased { existed: true });
    let mut erased = outcomes.iter().filter(is_gone).count() as u64;
    if !all_in_one {
        for prefix in &extent.prefixes {
            erased = erased.saturating_add(shared.store.erase_prefix(prefix).await?);
        }
    }
    Ok(Some(erased))
}

/// A node whose documents cannot be read, and which can be erased all the same.
async fn unreadable(shared: &Shared, path: &NodePath, dialect: Option<Dialect>) -> Result<Option<Branch>, NodeError> {
    for wanted in [Dialect::V3, Dialect::V2] {
        for form in [Form::Array, Form::Group] {
            let keys = keys::documents(path, wanted, form, None)?;
            let snapshot = shared.store.snapshot(&keys).await?;
            let mut own = Vec::new();
            for key in keys {
                let version = snapshot.head(&key)?.map(|info| info.version);
                own.push((key, version));
            }
            let there = own.first().is_some_and(|(_, version)| version.is_some());
            if there && dialect.is_none_or(|dialect| dialect == wanted) {
                return Ok(Some(unread(path.clone(), wanted, form, Own(own))));
            }
        }
    }
    Ok(None)
}

/// The keys of the documents of a node and of those below it.
async fn metadata(shared: &Shared, path: &NodePath, dialect: Dialect) -> Result<Vec<Key>, NodeError> {
    let mode = if dialect == Dialect::Draft { Mode::Same } else { Mode::Each };
    let walk = walk(shared, path, Some(dialect), Depth::All, mode).await?;
    let mut keys = Vec::new();
    for node in walk.top.all() {
        let own = node.own.0.iter().filter(|(_, version)| version.is_some()).map(|(key, _)| key.clone());
        keys.extend(own);
        if node.dialect != Dialect::Draft
            && let Ok(prefix) = prefix(&node.path)
        {
            keys.extend([".zmetadata"].iter().chain(&NAMES).filter_map(|name| key_below(&prefix, name)));
        }
    }
    let snapshot = shared.store.snapshot(&keys).await?;
    let mut there = Vec::new();
    for key in keys {
        if snapshot.head(&key)?.is_some() {
            there.push(key);
        }
    }
    match there.len() + SPARE <= MAX_COMMIT_CHANGES {
        true => Ok(there),
        false => Err(NodeError::TooManyNodes { limit: MAX_NODES }),
    }
}
