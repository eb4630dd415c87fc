//! Creating a tree: in an empty place, over an equal one, or in place of another.

use std::sync::Arc;

use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    Dialect, NodePath,
    convert::{ChunkPolicy, Loss},
    zom::{Difference, MAX_VIOLATIONS, Zom, ZomFormat},
};
use zarrd_operations::{IfExists, LossPolicy, NodeRejection};
use zarrd_store::{ChangeOutcome, IntentError, IntentId, StoreError, Writes};

use super::{
    array_contexts::ArrayContexts,
    differences::{Declared, differences},
    options::{CreateAction, CreateOptions},
    parent::ParentContext,
    plan::Plan,
    replace::TreeDiff,
    resulting::ResultingTree,
    walk::walker::Walk,
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        change_set::ChangeSet,
        consolidated::update_consolidated_metadata,
        error::NodeError,
        intent_record::Excluded,
        keyed_commit::{self, Documents},
        shared_commit,
        tree::{NodeKind, NodeTree},
    },
    node::read_set::NodeVersions,
};

/// The work of planning a node, expressed as the size of a document in bytes.
const PER_NODE: u64 = 1 << 10;

/// The result of an attempt.
pub(crate) struct Attempt {
    pub(crate) effect: CreateAction,
    pub(crate) dialect: Dialect,
    /// Properties of the ZOM that the dialect cannot represent.
    pub(crate) losses: Vec<(NodePath, Loss)>,
    pub(crate) result: AttemptResult,
}

/// The tree after an attempt.
pub(crate) enum AttemptResult {
    /// The tree that existed already.
    Existing(Walk),
    /// The tree that the changes make.
    Changed(ResultingTree),
    /// Only a walk shows the tree.
    Unknown,
}

/// The changes of an attempt, which are not committed yet.
pub(crate) struct PlannedChange {
    pub(crate) effect: CreateAction,
    pub(crate) change_set: ChangeSet,
    pub(crate) plan: Plan,
    /// The tree that exists.
    current: Option<Walk>,
    dialect: Dialect,
}

impl PlannedChange {
    /// The versions of the documents of the node that exists, which is a part of the result if nothing changes.
    pub(crate) fn existing(&self) -> Option<&NodeVersions> {
        self.current.as_ref().map(|walk| &walk.top.own)
    }
}

/// Plans the creation of a tree.
pub(crate) async fn plan_change(
    context: &Context,
    path: &NodePath,
    zom: &Arc<Zom>,
    declaration: &CreateOptions,
) -> Result<PlannedChange, NodeError> {
    let place = ParentContext::find(context, path, declaration.dialect, zom.format).await?;
    let current = place.current(context, path).await?;
    let top = current.as_ref().map(|current| &current.top);
    let version = top.filter(|top| !top.is_implicit()).map(|top| top.own.version());
    if !declaration.precondition.is_met_by(version) {
        return Err(NodeError::Rejected(NodeRejection::PreconditionFailed { path: path.clone(), current: version }));
    }
    place.check_dialects(path)?;
    let dialect = place.site.dialect;
    let (declared, site, at) = (zom.clone(), place.site.clone(), path.clone());
    let planned = context.run(Cost::of(Work::Tree, planning_work(zom)), move || {
        let plan = Plan::new(&at, &declared, &site, (ChunkPolicy::Preferred, &ArrayContexts::default()))?;
        if site.dialect == Dialect::Draft {
            // Fail now if the v3 model cannot represent the result, rather than after it is stored.
            plan.check_representable()?;
        }
        Ok::<_, NodeError>(plan)
    });
    let plan = planned.await??;
    if declaration.losses == LossPolicy::Reject && !plan.losses.is_empty() {
        return Err(NodeError::Rejected(NodeRejection::LossyConversion { dialect, losses: plan.losses }));
    }
    let nodes = zom.len().saturating_add(top.map_or(0, NodeTree::len));
    let change = change(context, path, &place, &plan, top, declaration.if_exists);
    let (effect, change_set) = context.run_future(Cost::of(Work::Lookups, nodes as u64), change).await??;
    Ok(PlannedChange { effect, change_set, plan, current, dialect })
}

/// One attempt to create a tree; `None` if something it depends on changed meanwhile.
pub(crate) async fn attempt(
    context: &Context,
    path: &NodePath,
    zom: &Arc<Zom>,
    declaration: &CreateOptions,
) -> Result<Option<Attempt>, NodeError> {
    let planned = plan_change(context, path, zom, declaration).await?;
    let PlannedChange { effect, mut change_set, plan: Plan { top, losses }, current, dialect } = planned;
    if effect == CreateAction::Unchanged {
        let result =
            current.map_or(AttemptResult::Unknown, |walk| AttemptResult::Existing(Walk { other: Vec::new(), ..walk }));
        return Ok(Some(Attempt { effect, dialect, losses, result }));
    }
    let is_keyed = context.is_keyed_at(path);
    if is_keyed && effect == CreateAction::Replaced {
        return Err(StoreError::Unsupported { what: "replacing a node: it is written key by key" }.into());
    }
    // The commit takes memory, so what it does not need is freed: of large trees little remains but the declaration.
    let declared = zom.clone();
    let merge = move || {
        let result = ResultingTree::new(top, current, declared, &mut change_set);
        result.map(|result| (result, change_set))
    };
    let (result, change_set) = context.run(Cost::of(Work::Tree, planning_work(zom)), merge).await??;
    let committed = match is_keyed {
        true => Box::pin(keyed_commit::apply_documents(context, change_set, Documents::Tree)).await?,
        false => commit(context, change_set).await?,
    };
    let Some(outcomes) = committed else { return Ok(None) };
    let result = result.map_or(AttemptResult::Unknown, |mut result| {
        result.advance(&outcomes);
        AttemptResult::Changed(result)
    });
    Ok(Some(Attempt { effect, dialect, losses, result }))
}

/// The work of planning a tree, expressed as the size of a document in bytes.
fn planning_work(zom: &Zom) -> u64 {
    (zom.len() as u64).saturating_mul(PER_NODE)
}

/// The changes that turn the current tree into the planned one.
async fn change(
    context: &Context,
    path: &NodePath,
    place: &ParentContext,
    plan: &Plan,
    current: Option<&NodeTree>,
    existing: IfExists,
) -> Result<(CreateAction, ChangeSet), NodeError> {
    let mut change_set = ChangeSet::default();
    change_set.check_not_excluded(Excluded::NewNode(path.clone()));
    let mut change = TreeDiff::default();
    let effect = match current {
        None => {
            place.check_name(path)?;
            change.create(&plan.top);
            CreateAction::Created
        }
        Some(current) => {
            let format = ZomFormat::for_dialect(plan.top.dialect);
            // All of them show whether the tree is a part of what is declared.
            let is_part = context.is_keyed_at(path) && current.is_implicit();
            let limit = if is_part { usize::MAX } else { MAX_VIOLATIONS };
            let mut differences = differences(Declared::Planned(&plan.top), format, current, limit)?;
            let replaces_counterpart = existing == IfExists::Replace
                && place.counterpart.as_ref().is_some_and(|counterpart| counterpart.differs());
            if differences.is_empty() && !replaces_counterpart {
                change.materialize_implicit(current, &plan.top);
                match (change.is_empty(), current.is_implicit()) {
                    (true, _) => CreateAction::Unchanged,
                    (false, true) => CreateAction::Created,
                    (false, false) => CreateAction::Replaced,
                }
            } else if is_part && differences.iter().all(is_missing_node) {
                // A declaration that was cut.
                change.complete(current, &plan.top);
                CreateAction::Created
            } else if existing == IfExists::Replace {
                change.replace(current, &plan.top)?;
                if let Some(counterpart) = &place.counterpart {
                    change.replace_counterpart(&mut change_set, current, &plan.top, counterpart)?;
                }
                CreateAction::Replaced
            } else {
                differences.truncate(MAX_VIOLATIONS);
                return Err(NodeError::Rejected(NodeRejection::NodeConflict { path: path.clone(), differences }));
            }
        }
    };
    if effect == CreateAction::Unchanged {
        return Ok((effect, change_set));
    }
    change.apply(context, &mut change_set, &plan.top, existing).await?;
    place.parents(context, path, &mut change_set, &mut change.node_changes)?;
    place.record_reads(&mut change_set);
    let groups = current.into_iter().flat_map(NodeTree::all).filter(|node| node.kind == NodeKind::Group);
    // What other programs write is mounted, and has no conditions.
    let groups = groups.map(|node| &node.path).filter(|group| context.guarantees_at(group).writes != Writes::None);
    let groups: Vec<&NodePath> = groups.collect();
    update_consolidated_metadata(context, &mut change_set, path, &groups, &change).await?;
    Ok((effect, change_set))
}

/// True if a difference is that a node does not exist.
fn is_missing_node(difference: &Difference) -> bool {
    let mut segments = difference.pointer.split('/').skip(1);
    while let Some(segment) = segments.next() {
        if segment != "members" || segments.next().is_none() {
            return false;
        }
    }
    difference.actual.is_none()
}

/// Commits; `None` if a precondition failed.
pub(crate) async fn commit(context: &Context, change_set: ChangeSet) -> Result<Option<Vec<ChangeOutcome>>, NodeError> {
    let consolidated = change_set.consolidated();
    let exclusion = change_set.exclusions().first().cloned();
    let cost = Cost::of(Work::Lookups, change_set.len() as u64);
    let changes = context.run_future(cost, change_set.stage(&**context.writes()?)).await??;
    match shared_commit::commit(context, changes, consolidated.as_ref()).await {
        Ok(outcomes) => Ok(Some(outcomes)),
        Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => Ok(None),
        Err(StoreError::Intent(IntentError::Excludes { id })) => excluded(context, exclusion, id).await.map(|()| None),
        Err(error) => Err(error.into()),
    }
}

/// Waits until an operation that excludes a commit is settled. Fails if that is a copy, which may wait for a lock that the
/// caller holds.
pub(crate) async fn excluded(context: &Context, exclusion: Option<Excluded>, id: IntentId) -> Result<(), NodeError> {
    match exclusion {
        Some(Excluded::NewShape(path)) => Ok(context.wait_until_settled(&path, id).await?),
        Some(Excluded::NewNode(path)) => Err(ArrayError::Unfinished { path }.into()),
        None => Ok(()),
    }
}
