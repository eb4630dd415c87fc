//! Converting hierarchies: documents of another dialect over the same chunks, or a copy at another place.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::TryStreamExt;
use meta::{
    Dialect, NodePath,
    convert::{Chunks, Converted, Loss},
    documents::{
        draft, object,
        write::{CONSOLIDATED, NodeCopy, StoredNode, consolidated, with_empty_copies},
    },
    json::Json,
    zom::{MAX_NODES, Version, Zom},
};
use serde_json::json;
use store::{Change, Content, IntentId, Key, Precondition, Prefix};

use super::{
    Conversion, ConversionReport, Depth, NodeError, Scope,
    consolidated::{Told, keep_true},
    declare::commit,
    edits::Edits,
    found::{Model, Untold, model_of, told},
    intents::{CopyIntent, Reservation, Unfinished},
    keys,
    patch::chunk_prefix,
    place::Place,
    plan::Plan,
    replace::Replacement,
    walk::{Branch, Form, Mode, walk},
};
use crate::{
    ArrayError,
    broken::{Broken, BrokenNode},
    find::{Own, key_below, prefix},
    shared::Shared,
};

/// How many chunks are copied in one commit.
const BATCH: usize = 256;

/// How many keys are looked up at a time.
const LOOKED_UP: usize = 4096;

/// One attempt to put documents of another dialect over the same chunks; `None` where somebody else changed the hierarchy.
pub(super) async fn in_place(
    shared: &Shared,
    path: &NodePath,
    dialect: Option<Dialect>,
    conversion: &Conversion,
) -> Result<Option<ConversionReport>, NodeError> {
    let to = conversion.to;
    let walk = walk(shared, path, dialect, Depth::All, Mode::Same).await?;
    check_whole(&walk.top)?;
    let from = walk.top.dialect;
    let mut report = ConversionReport { nodes: 0, chunks: 0, losses: Vec::new() };
    if from == to {
        return Ok(Some(report));
    }
    if from == Dialect::Draft || to == Dialect::Draft {
        return Err(NodeError::NotInPlace { from, to });
    }
    let mut edits = Edits::default();
    let mut documents = BTreeMap::new();
    let (there, unread) = there(shared, &walk.top, to).await?;
    report.losses.extend(unread.into_iter().chain(walk.top.broken()).map(left_out));
    for node in walk.top.all() {
        for (key, version) in &node.own.0 {
            edits.saw(key, *version);
        }
    }
    for node in walk.top.readable() {
        let Converted { document, losses } = model_of(node)?.convert(&node.path, to, Chunks::Kept)?;
        report.losses.extend(losses.into_iter().map(|loss| (node.path.clone(), loss)));
        documents.insert(node.path.clone(), (node.form, StoredNode::of_node_document(to, &document).formatted()));
    }
    carry_over(shared, &walk.top, to, &mut documents, &mut edits).await?;
    let mut told = Vec::new();
    for (path, (form, stored)) in documents {
        // What has such a document already was converted before.
        if there.contains(&path) {
            continue;
        }
        report.nodes += 1;
        let keys = keys::documents(&path, to, form, None)?;
        let own = Own(keys.into_iter().map(|key| (key, None)).collect());
        if let Some((key, _)) = own.0.first() {
            edits.saw(key, None);
        }
        edits.rewrite(&own, None, &stored);
        told.push(Told { path, dialect: to, node: Some(stored) });
    }
    keep_true(shared, &mut edits, path, &[], &told).await?;
    if !edits.changes_anything() {
        return Ok(Some(report));
    }
    Ok(commit(shared, edits).await?.map(|_| report))
}

/// Fails where there are groups that are too deep to have been looked into.
fn check_whole(top: &Branch) -> Result<(), NodeError> {
    let unseen = |node: &&Branch| node.form == Form::Group && node.members.is_none();
    match top.readable().iter().any(unseen) {
        true => Err(NodeError::TooManyNodes { limit: MAX_NODES }),
        false => Ok(()),
    }
}

/// A node that is left out, as a report has it.
fn left_out(BrokenNode { path, problem, .. }: BrokenNode) -> (NodePath, Loss) {
    let what = format!("the node is left out: {problem}");
    (path, Loss { pointer: String::new(), what })
}

/// The nodes that have a document of another dialect already, and those of them that cannot be read in it.
async fn there(shared: &Shared, top: &Branch, to: Dialect) -> Result<(BTreeSet<NodePath>, Vec<BrokenNode>), NodeError> {
    let mut keys = Vec::new();
    for node in top.readable() {
        let own = keys::documents(&node.path, to, node.form, None)?;
        keys.extend(own.into_iter().take(1).map(|key| (node.path.clone(), key)));
    }
    let named: Vec<Key> = keys.iter().map(|(_, key)| key.clone()).collect();
    let snapshot = shared.store.snapshot(&named).await?;
    let (mut there, mut unread) = (BTreeSet::new(), Vec::new());
    for (path, key) in keys {
        let Some(value) = snapshot.get(&key, None).await? else { continue };
        let document = object(value.bytes().await?);
        if to == Dialect::V3 && document.as_ref().is_ok_and(draft::has_uri) {
            return Err(NodeError::OtherDialect { path, found: Dialect::Draft });
        }
        if let Err(error) = document {
            let problem = Broken::new(&key, &error);
            unread.push(BrokenNode { path: path.clone(), dialect: to, problem });
        }
        there.insert(path);
    }
    Ok((there, unread))
}

/// Gives groups that have consolidated metadata the same in the other dialect.
async fn carry_over(
    shared: &Shared,
    top: &Branch,
    to: Dialect,
    documents: &mut BTreeMap<NodePath, (Form, StoredNode)>,
    edits: &mut Edits,
) -> Result<(), NodeError> {
    let groups: Vec<&Branch> = top.readable().into_iter().filter(|node| node.form == Form::Group).collect();
    let mut copies = Vec::new();
    for groups in groups.chunks(LOOKED_UP) {
        let mut keys = Vec::with_capacity(groups.len());
        for group in groups {
            keys.extend(key_below(&prefix(&group.path)?, ".zmetadata").map(|key| (*group, key)));
        }
        let there: Vec<bool> = match to {
            Dialect::V3 => {
                let keys: Vec<Key> = keys.iter().map(|(_, key)| key.clone()).collect();
                let snapshot = shared.store.snapshot(&keys).await?;
                keys.iter().map(|key| Ok(snapshot.head(key)?.is_some())).collect::<Result<_, NodeError>>()?
            }
            Dialect::V2 | Dialect::Draft => {
                keys.iter().map(|(group, _)| group.stored.document.get(CONSOLIDATED).is_some()).collect()
            }
        };
        let with_copies = keys.into_iter().zip(there).filter(|(_, there)| *there);
        copies.extend(with_copies.map(|((group, key), _)| (group.path.clone(), key)));
    }
    for (group, key) in copies {
        let copies = documents
            .iter()
            .filter_map(|(path, (_, stored))| Some(NodeCopy { below: path.below(&group)?, node: Some(stored) }));
        match to {
            Dialect::V2 | Dialect::Draft => {
                let empty = Json::pretty(&json!({"zarr_consolidated_format": 1, "metadata": {}}));
                edits.set(key, consolidated(Dialect::V2, &empty, copies).to_bytes());
            }
            Dialect::V3 => {
                let Some((_, stored)) = documents.get(&group) else { continue };
                let document = consolidated(Dialect::V3, &with_empty_copies(&stored.document), copies);
                if let Some((_, stored)) = documents.get_mut(&group) {
                    stored.document = document;
                }
            }
        }
    }
    Ok(())
}

/// Copies a hierarchy to another place, as another dialect has it. The chunks come first, in many commits, and the documents last, in one: until then nothing is seen there. What is left of one that
/// is interrupted is erased, at the next start if need be.
pub(super) async fn copy(
    shared: &Arc<Shared>,
    path: &NodePath,
    dialect: Option<Dialect>,
    target: &NodePath,
    conversion: &Conversion,
) -> Result<ConversionReport, NodeError> {
    let (copy, unfinished) = {
        let _lock = shared.lock_path(target, Scope::Subtree).await?;
        let copy = Copy::plan(shared, path, dialect, target, conversion).await?;
        let intent = CopyIntent { target: target.clone(), dialect: conversion.to, extent: copy.extent.clone() };
        (copy, Unfinished::begin(Reservation::new(shared, target), intent).await?)
    };
    let copied = copy.run(shared, target, unfinished.id()).await;
    match &copied {
        Ok(_) => unfinished.settled(),
        Err(_) => unfinished.undo().await,
    }
    copied
}

struct Copy {
    source: Branch,
    place: Place,
    plan: Plan,
    losses: Vec<(NodePath, Loss)>,
    /// Where the copy will be.
    extent: Vec<Prefix>,
}

impl Copy {
    async fn plan(
        shared: &Shared,
        path: &NodePath,
        dialect: Option<Dialect>,
        target: &NodePath,
        conversion: &Conversion,
    ) -> Result<Self, NodeError> {
        let to = conversion.to;
        let source = walk(shared, path, dialect, Depth::All, Mode::Same).await?.top;
        check_whole(&source)?;
        let mut losses = Vec::new();
        let place = Place::find(shared, target, Some(to), Version::of(to)).await?;
        place.check_dialects(target)?;
        place.check_name(target)?;
        let moved = moved(&source, to, &mut losses)?;
        let plan = Plan::new(target, &moved, &place.site)?;
        let extent = keys::extent(target, to, place.site.root.as_ref())?.prefixes;
        for prefix in &extent {
            if !shared.store.list_prefix(prefix, store::Page::first(1)).await?.keys.is_empty() {
                return Err(NodeError::Differs { path: target.clone(), differences: Vec::new() });
            }
        }
        if place.current(shared, target).await?.is_some() {
            return Err(NodeError::Differs { path: target.clone(), differences: Vec::new() });
        }
        Ok(Self { source, place, plan, losses, extent })
    }

    /// Copies the chunks, and commits the documents and that nothing is left to be done.
    async fn run(&self, shared: &Shared, target: &NodePath, intent: IntentId) -> Result<ConversionReport, NodeError> {
        let mut chunks = 0_u64;
        let targets: BTreeMap<String, &Branch> = self
            .plan
            .top
            .all()
            .into_iter()
            .filter_map(|node| Some((node.path.below(target)?.to_owned(), node)))
            .collect();
        for source in self.source.all() {
            let below = source.path.below(&self.source.path).unwrap_or_default();
            if let Some(target) = targets.get(below) {
                chunks = chunks.saturating_add(copy_chunks(shared, source, target).await?);
            }
        }
        let _lock = shared.lock_path(target, Scope::Subtree).await?;
        let mut edits = Edits::default();
        edits.settle(intent);
        for node in self.source.all() {
            for (key, version) in &node.own.0 {
                edits.saw(key, *version);
            }
        }
        let mut change = Replacement::default();
        change.create(&self.plan.top);
        change.apply(shared, &mut edits).await?;
        self.place.parents(target, &mut edits, &mut change.told)?;
        self.place.saw(&mut edits);
        keep_true(shared, &mut edits, target, &[], &change.told).await?;
        match commit(shared, edits).await? {
            Some(_) => Ok(ConversionReport { nodes: targets.len() as u64, chunks, losses: self.losses.clone() }),
            None => Err(ArrayError::Unsettled { path: self.source.path.clone() }.into()),
        }
    }
}

/// A tree in the documents of another dialect, for copies of its chunks.
fn moved(source: &Branch, to: Dialect, losses: &mut Vec<(NodePath, Loss)>) -> Result<Zom, NodeError> {
    let version = Version::of(source.dialect);
    let mut untold = Untold::default();
    let root = told(source.clone(), version, &mut untold)?;
    losses.append(&mut untold.losses);
    losses.extend(untold.broken.into_iter().map(left_out));
    let zom = Zom { version, root };
    if source.dialect == to || version.dialect() == to {
        return Ok(zom);
    }
    for node in source.readable() {
        let lost = model_of(node)?.convert(&node.path, to, Chunks::Moved)?.losses;
        losses.extend(lost.into_iter().map(|loss| (node.path.clone(), loss)));
    }
    Ok(zom)
}

/// Copies the chunks of an array; how many.
async fn copy_chunks(shared: &Shared, source: &Branch, target: &Branch) -> Result<u64, NodeError> {
    let (Model::Array(from), Model::Array(to)) = (model_of(source)?, model_of(target)?) else { return Ok(0) };
    let prefix_of =
        |branch: &Branch, model| chunk_prefix(&branch.path, model, branch.root.as_ref().map(|root| &root.prefix));
    let (from_prefix, to_prefix) = (prefix_of(source, &from)?, prefix_of(target, &to)?);
    let rank = from.shape.len();
    let mut copied = 0_u64;
    let mut batch = BTreeMap::new();
    let mut entries = std::pin::pin!(store::walk(&*shared.store, &from_prefix));
    while let Some(entry) = entries.try_next().await? {
        let name = from_prefix.strip(&entry.key).unwrap_or_default();
        let Some(position) = from.chunk_keys.parse(name, rank) else { continue };
        let key = to_prefix.join(&to.chunk_keys.written_key(&position));
        let key = key.map_err(|_| keys::too_long(target.dialect, &target.path))?;
        let Some(value) = shared.store.get(&entry.key, None).await? else { continue };
        let content = Content { size: Some(value.info.size), stream: value.stream };
        // Of two keys of one chunk the first that is looked at counts.
        if batch.contains_key(&key) && Some(name) == from.chunk_keys.fallback_key(&position) {
            continue;
        }
        let staged = shared.store.stage(&key, content).await?;
        batch.insert(key, staged);
        copied += 1;
        if batch.len() >= BATCH {
            flush(shared, &mut batch).await?;
        }
    }
    flush(shared, &mut batch).await?;
    Ok(copied)
}

async fn flush(shared: &Shared, batch: &mut BTreeMap<Key, store::Staged>) -> Result<(), NodeError> {
    let changes: Vec<Change> = std::mem::take(batch)
        .into_values()
        .map(|staged| Change::Set { staged, precondition: Precondition::none() })
        .collect();
    if !changes.is_empty() {
        shared.store.commit(changes).await?;
    }
    Ok(())
}
