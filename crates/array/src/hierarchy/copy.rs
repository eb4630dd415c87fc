//! Copying hierarchies to another place, as another dialect has them.
//!
//! A copy is of one commit: its documents and the values of all its chunks are those of one snapshot, of all chunks
//! that there are in that commit. The chunks come first, in many commits, and the documents last, in one: until then
//! nothing is seen at the target. What is left of a copy that is interrupted is erased, at the next start if need be.
//!
//! Where keys change one by one, the chunks are created one after the other, then the documents from the leaves to the top.

use std::{collections::BTreeMap, sync::Arc};

use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    Dialect, NodePath,
    convert::{ChunkPolicy, Loss, Unconvertible},
    zom::{Zom, ZomFormat},
};
use zarrd_operations::{ConversionReport, ConvertOptions, Depth, IfExists, NodeRejection};
use zarrd_store::{Change, IntentError, IntentId, Key, Prefix, StoreError, Version, Watermark};

use super::{
    array_contexts::ArrayContexts,
    convert::{broken_as_losses, check_convertible, check_losses},
    copied_chunks::{CopiedChunks, ListedChunks, Listing},
    copy_commits::CopySteps,
    create::commit,
    describe::{Unrepresented, into_zom},
    intents::Unfinished,
    parent::ParentContext,
    plan::Plan,
    replace::TreeDiff,
    stray_keys::first_key,
    walk::{
        mode::WalkOptions,
        walker::{Walk, walk},
    },
};
use crate::{
    context::Context,
    error::ArrayError,
    locks::path::Scope,
    memory::claim::Permit,
    metadata::{
        change_set::ChangeSet,
        consolidated::update_consolidated_metadata,
        error::{NodeError, too_many_conflicts},
        intent_record::{CopyIntent, Excluded, Unsettled},
        keyed_commit::{self, Documents},
        keys,
        model::read_model,
        tree::{NodeKind, NodeTree},
    },
    retry::MAX_ATTEMPTS,
};

/// The fences by attempt: writers are let through as long as the copy may succeed nevertheless.
const ATTEMPTS: [Fence; 4] = [Fence::Open, Fence::WhileListing, Fence::WhileListing, Fence::WhileCopying];

/// The time for which commits of elements are kept away from the arrays that are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fence {
    /// Not at all: the attempt fails if one happens while the chunks are listed.
    Open,
    /// While the chunks are listed.
    WhileListing,
    /// Until all chunks are copied.
    WhileCopying,
}

/// Copies a hierarchy.
pub(crate) async fn copy(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Option<Dialect>,
    target: &NodePath,
    conversion: &ConvertOptions,
) -> Result<ConversionReport, NodeError> {
    // Start nothing for a node that does not exist.
    walk(context, path, dialect, WalkOptions::new(Depth::Levels(0))).await?;
    for fence in ATTEMPTS {
        let (destination, unfinished) = {
            let _lock = context.lock_path(target, Scope::Subtree).await?;
            let destination = Destination::find(context, target, conversion.dialect).await?;
            let (extent, dialect) = (destination.extent.clone(), conversion.dialect);
            let intent = CopyIntent { target: target.clone(), dialect, extent };
            let (unfinished, intend) = Unfinished::begin(context, Unsettled::Copy(intent))?;
            // The place is as empty as it was found, or what appeared there would be erased with a copy that fails.
            let empty = destination.extent.iter().map(|prefix| Change::CheckEmpty { prefix: prefix.clone() });
            let no_other = Change::CheckNoIntent { filter: Arc::new(Excluded::NewNode(target.clone())) };
            match context.commits()?.commit(empty.chain([no_other, intend]).collect()).await {
                Ok(_) => {}
                Err(StoreError::Intent(IntentError::Excludes { .. })) => {
                    unfinished.settled();
                    return Err(ArrayError::Unfinished { path: target.clone() }.into());
                }
                Err(StoreError::NotEmpty { .. }) => {
                    unfinished.settled();
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            (destination, unfinished)
        };
        let attempt = async {
            let steps = CopySteps::Commits(unfinished.id());
            let chunks = copy_chunks(context, (path, dialect), (&destination, conversion), steps, fence).await?;
            let Some((chunks, copy)) = chunks else { return Ok(None) };
            finish(context, &destination, (chunks, copy), unfinished.id()).await
        };
        match attempt.await {
            Ok(Some(report)) => {
                unfinished.settled();
                return Ok(report);
            }
            // A chunk that was replaced after the snapshot expired cannot be read. The intent is gone if this run was taken
            // for one that ended, and then so are the chunks that were copied.
            Ok(None)
            | Err(NodeError::Store(StoreError::SnapshotExpired | StoreError::Intent(IntentError::NotFound { .. }))) => {
                unfinished.settle().await
            }
            Err(error) => {
                unfinished.settle().await;
                return Err(error);
            }
        }
    }
    Err(too_many_conflicts(path))
}

/// Copies a hierarchy to a store that is written key by key. What is left of a copy that fails in the middle has no document,
/// and is erased with the path of the target.
pub(crate) async fn copy_by_key(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Option<Dialect>,
    target: &NodePath,
    conversion: &ConvertOptions,
) -> Result<ConversionReport, NodeError> {
    walk(context, path, dialect, WalkOptions::new(Depth::Levels(0))).await?;
    // Without a watermark, only writers that wait show that the source was of one moment.
    let is_fenced = |fence: &Fence| *fence != Fence::Open;
    let has_watermark = context.store.watermark().await?.is_some();
    for fence in ATTEMPTS.into_iter().filter(|fence| has_watermark || is_fenced(fence)) {
        let mut destination = {
            let _lock = context.lock_path(target, Scope::Subtree).await?;
            Destination::find(context, target, conversion.dialect).await?
        };
        let steps = CopySteps::Keys(context.guarantees_at(target).conditions);
        let chunks = copy_chunks(context, (path, dialect), (&destination, conversion), steps, fence).await?;
        let Some((chunks, copy)) = chunks else { continue };
        let _lock = context.lock_path(target, Scope::Subtree).await?;
        for _ in 0..MAX_ATTEMPTS {
            let change_set = copy.change_set(context, &destination, None).await?;
            if keyed_commit::apply_documents(context, change_set, Documents::Tree).await?.is_some() {
                let nodes = copy.plan.top.len() as u64;
                return Ok(ConversionReport { nodes, chunks, losses: copy.losses });
            }
            // The groups above changed.
            let format = ZomFormat::for_dialect(conversion.dialect);
            destination.place = ParentContext::find(context, target, Some(conversion.dialect), format).await?;
        }
        break;
    }
    Err(too_many_conflicts(path))
}

/// Copies the chunks of a hierarchy, and returns their number; `None` if the source changed meanwhile, and none is copied.
async fn copy_chunks(
    context: &Arc<Context>,
    (path, dialect): (&NodePath, Option<Dialect>),
    (destination, conversion): (&Destination, &ConvertOptions),
    steps: CopySteps,
    fence: Fence,
) -> Result<Option<(u64, Copy)>, NodeError> {
    let mut structure = None;
    if fence != Fence::Open {
        structure = Some(context.lock_path(path, Scope::Subtree).await?);
    }
    let before = context.store.watermark().await?;
    let mut copy = Copy::plan(context, path, dialect, destination).await?;
    check_losses(conversion, &copy.losses)?;
    let mut writers = None;
    if fence != Fence::Open {
        let arrays = copy.arrays.iter().map(|array| array.path.relative().as_bytes());
        let locks = context.array_locks.lock_exclusive(arrays, []).await;
        // Writers that wait for the lock may hold memory.
        writers = Some((locks, context.no_waiting()));
    }
    let chunks = copy.chunks(context, (path, &destination.path), fence, before).await?;
    let Some(chunks) = chunks else { return Ok(None) };
    if fence != Fence::WhileCopying {
        (structure, writers) = (None, None);
    }
    let copied = chunks.copy(context, &copy.memory, steps).await?;
    drop((structure, writers));
    Ok(Some((copied, copy)))
}

/// Commits the documents of a copy; `None` if the parents of the target changed meanwhile.
async fn finish(
    context: &Arc<Context>,
    destination: &Destination,
    (chunks, copy): (u64, Copy),
    intent: IntentId,
) -> Result<Option<ConversionReport>, NodeError> {
    let _lock = context.lock_path(&destination.path, Scope::Subtree).await?;
    let nodes = copy.plan.top.len();
    let change_set = copy.change_set(context, destination, Some(intent));
    let change_set = context.run_future(Cost::of(Work::Lookups, nodes as u64), change_set).await??;
    let Copy { plan, losses, memory, .. } = copy;
    drop(plan);
    let report = ConversionReport { nodes: nodes as u64, chunks, losses };
    let committed = commit(context, change_set).await?;
    drop(memory);
    Ok(committed.map(|_| report))
}

/// An empty target of a copy.
struct Destination {
    path: NodePath,
    dialect: Dialect,
    place: ParentContext,
    /// The prefixes of its keys.
    extent: Vec<Prefix>,
}

impl Destination {
    async fn find(context: &Context, path: &NodePath, dialect: Dialect) -> Result<Self, NodeError> {
        let place = ParentContext::find(context, path, Some(dialect), ZomFormat::for_dialect(dialect)).await?;
        place.check_dialects(path)?;
        place.check_name(path)?;
        let extent = keys::subtree_keys(path, dialect, place.site.root.as_ref())?.prefixes;
        if first_key(context, &extent).await?.is_some() || place.current(context, path).await?.is_some() {
            return Err(NodeError::Rejected(NodeRejection::NodeConflict {
                path: path.clone(),
                differences: Vec::new(),
            }));
        }
        Ok(Self { path: path.clone(), dialect, place, extent })
    }
}

struct Copy {
    /// The documents of the source, until the chunks are listed.
    documents: Vec<(Key, Option<Version>)>,
    /// The readable arrays of the source, until their chunks are listed.
    arrays: Vec<NodeTree>,
    /// The memory of the source's documents.
    memory: Vec<Permit>,
    /// What the plan depends on in addition to the documents.
    contexts: ArrayContexts,
    plan: Plan,
    losses: Vec<(NodePath, Loss)>,
}

impl Copy {
    async fn plan(
        context: &Context,
        path: &NodePath,
        dialect: Option<Dialect>,
        destination: &Destination,
    ) -> Result<Self, NodeError> {
        let Walk { top, memory, .. } = walk(context, path, dialect, WalkOptions::new(Depth::All)).await?;
        check_convertible(&top)?;
        let Destination { path: target, dialect: to, place, .. } = destination;
        let (nodes, source) = (top.len(), top.dialect);
        let plan = async {
            let contexts = ArrayContexts::find(context, &top, *to).await?;
            let documents = top.all().into_iter().flat_map(|node| &node.own.0).cloned().collect();
            let arrays = top.readable().into_iter().filter(|node| node.kind == NodeKind::Array);
            let arrays: Vec<NodeTree> = arrays.map(NodeTree::without_members).collect();
            let mut losses = Vec::new();
            let planned = moved(top, *to, &mut losses).and_then(|zom| {
                let plan = Plan::new(target, &zom, &place.site, (ChunkPolicy::Rewritten, &contexts))?;
                Ok((plan, zom.format.dialect()))
            });
            let (mut plan, declared) = match planned {
                // All are named, not only the first.
                Err(first @ NodeError::Unconvertible { .. }) => {
                    let all = unconvertible(&arrays, (path, target), *to, &contexts)?;
                    return Err(NodeError::unconvertible(all).unwrap_or(first));
                }
                planned => planned?,
            };
            if source == declared {
                let lost = std::mem::take(&mut plan.losses).into_iter();
                let mut lost: Vec<_> = lost.map(|(at, loss)| (rebased(&at, target, path), loss)).collect();
                // Parents come first in the report.
                lost.sort_by_key(|(path, _)| path.ancestors().count());
                losses.append(&mut lost);
            }
            Ok(Self { documents, arrays, memory, contexts, plan, losses })
        };
        context.run_future(Cost::of(Work::Lookups, nodes as u64), plan).await?
    }

    /// The chunks and a snapshot of them; `None` if the source changed meanwhile.
    async fn chunks(
        &mut self,
        context: &Context,
        (path, target): (&NodePath, &NodePath),
        fence: Fence,
        before: Option<Watermark>,
    ) -> Result<Option<CopiedChunks>, NodeError> {
        let (documents, arrays) = (std::mem::take(&mut self.documents), std::mem::take(&mut self.arrays));
        let Some(listed) = self.list(context, (path, target), &arrays).await? else { return Ok(None) };
        let mut all: Vec<Key> = listed.keys().cloned().collect();
        let snapshot =
            context.run_future(Cost::of(Work::Lookups, all.len() as u64), context.store.snapshot(&all)).await??;
        if before.is_some() && context.store.watermark().await? == before {
            return Ok(Some(CopiedChunks::new(listed, snapshot)));
        }
        all.extend(documents.iter().map(|(key, _)| key).cloned());
        let snapshot =
            context.run_future(Cost::of(Work::Lookups, all.len() as u64), context.store.snapshot(&all)).await??;
        drop(all);
        for (key, version) in documents {
            if snapshot.meta(&key).await?.map(|info| info.version) != version {
                return Ok(None);
            }
        }
        // While the lock is held, only raw writes of single keys can have changed the chunks.
        if fence == Fence::Open {
            return Ok(None);
        }
        let again = self.list(context, (path, target), &arrays).await?;
        let is_same = again.is_some_and(|again| again.keys().eq(listed.keys()));
        Ok(is_same.then(|| CopiedChunks::new(listed, snapshot)))
    }

    /// All chunks within the arrays' shapes; `None` if there are fewer than when the copy was planned.
    async fn list(
        &self,
        context: &Context,
        (path, target): (&NodePath, &NodePath),
        arrays: &[NodeTree],
    ) -> Result<Option<ListedChunks>, NodeError> {
        let copies = self.plan.top.all().into_iter().filter(|node| node.kind == NodeKind::Array);
        let copies: BTreeMap<&str, &NodeTree> =
            copies.filter_map(|node| Some((node.path.relative_to(target)?, node))).collect();
        let mut listing = Listing::new(context, &self.memory);
        for source in arrays {
            let below = source.path.relative_to(path).unwrap_or_default();
            if let Some(copy) = copies.get(below) {
                let found = listing.add(source, copy).await?;
                if !self.contexts.agree(below, found) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(listing.into_chunks()))
    }

    /// The last change of the copy: its documents, and the settlement of its intent.
    async fn change_set(
        &self,
        context: &Context,
        destination: &Destination,
        intent: Option<IntentId>,
    ) -> Result<ChangeSet, NodeError> {
        let Destination { path: target, place, .. } = destination;
        let mut change_set = ChangeSet::default();
        intent.into_iter().for_each(|intent| change_set.settle(intent));
        let mut change = TreeDiff::default();
        change.create(&self.plan.top);
        // The chunks of the copy exist already.
        change.apply(context, &mut change_set, &self.plan.top, IfExists::Adopt).await?;
        place.parents(context, target, &mut change_set, &mut change.node_changes)?;
        place.record_reads(&mut change_set);
        update_consolidated_metadata(context, &mut change_set, target, &[], &change).await?;
        Ok(change_set)
    }
}

/// A tree in the model of its dialect, with what that cannot represent. The draft has no model of its own: v2 takes its
/// place if that is the target, since chunks of both have the same fill values, otherwise v3.
fn moved(source: NodeTree, to: Dialect, losses: &mut Vec<(NodePath, Loss)>) -> Result<Zom, NodeError> {
    let format = match (source.dialect, to) {
        (Dialect::Draft, Dialect::V2) => ZomFormat::V2,
        (dialect, _) => ZomFormat::for_dialect(dialect),
    };
    let mut unrepresented = Unrepresented::default();
    let root = into_zom(source, format, ChunkPolicy::Rewritten, &mut unrepresented)?;
    losses.append(&mut unrepresented.losses);
    losses.extend(unrepresented.broken.into_iter().map(broken_as_losses));
    Ok(Zom { format, root })
}

/// The arrays that cannot be converted, by the paths of their copies.
fn unconvertible(
    arrays: &[NodeTree],
    (path, target): (&NodePath, &NodePath),
    to: Dialect,
    contexts: &ArrayContexts,
) -> Result<Vec<(NodePath, Unconvertible)>, NodeError> {
    let mut found = Vec::new();
    for array in arrays {
        let copy = rebased(&array.path, path, target);
        let context = contexts.at(&array.path, path);
        match read_model(array)?.convert(&copy, to, ChunkPolicy::Rewritten, context) {
            Err(NodeError::Unconvertible { path, source, .. }) => found.push((path, source)),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    Ok(found)
}

/// The path of a node below another node than the one that it is below.
fn rebased(path: &NodePath, from: &NodePath, to: &NodePath) -> NodePath {
    let below = path.relative_to(from).unwrap_or_default();
    // The original has this path.
    NodePath::parse(&format!("{}{below}", to.key_prefix())).unwrap_or_else(|_| to.clone())
}
