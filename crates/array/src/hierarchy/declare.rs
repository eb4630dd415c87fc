//! Declaring a tree: creating it, finding it equal, or putting it in the place of another.

use std::sync::Arc;

use meta::{
    Dialect, NodePath,
    convert::Loss,
    zom::{Difference, MAX_VIOLATIONS, Zom},
};
use store::{Key, Outcome, StoreError};

use super::{
    Declaration, Effect, Existing, Losses, NodeError,
    consolidated::keep_true,
    edits::Edits,
    place::Place,
    plan::Plan,
    replace::Replacement,
    walk::{Branch, Form},
};
use crate::shared::Shared;

/// How many bytes of documents the planning of a node is worth.
const PER_NODE: u64 = 1 << 10;

/// What an attempt did.
pub(super) struct Attempt {
    pub(super) effect: Effect,
    pub(super) dialect: Dialect,
    /// What the dialect does not say of what was declared.
    pub(super) losses: Vec<(NodePath, Loss)>,
    /// The tree as it is now, where that is known.
    pub(super) known: Option<Branch>,
}

/// One attempt to declare a tree; `None` where somebody else changed what it depended on.
pub(super) async fn attempt(
    shared: &Shared,
    path: &NodePath,
    zom: &Arc<Zom>,
    declaration: &Declaration,
) -> Result<Option<Attempt>, NodeError> {
    let place = Place::find(shared, path, declaration.dialect, zom.version).await?;
    let current = place.current(shared, path).await?;
    let version = current.as_ref().filter(|top| !top.is_implicit()).map(|top| top.own.version());
    if !declaration.condition.holds(version) {
        return Err(NodeError::PreconditionFailed { path: path.clone(), current: version });
    }
    place.check_dialects(path)?;
    let dialect = place.site.dialect;
    let (zom, site, at) = (zom.clone(), place.site.clone(), path.clone());
    let bytes = (zom.len() as u64).saturating_mul(PER_NODE);
    let planned = shared.on_documents(bytes, move || {
        let plan = Plan::new(&at, &zom, &site)?;
        if site.dialect == Dialect::Draft {
            // It is told by the model of v3. What that cannot tell is not stored, or the answer would be a refusal of what was done.
            plan.told()?;
        }
        Ok::<_, NodeError>(plan)
    });
    let plan = planned.await??;
    if declaration.losses == Losses::Refuse && !plan.losses.is_empty() {
        return Err(NodeError::Lossy { dialect, losses: plan.losses });
    }
    let nodes = plan.top.all().len().saturating_add(current.as_ref().map_or(0, |current| current.all().len()));
    let change = change(shared, path, &place, &plan, current.as_ref(), declaration.existing);
    let (effect, edits) = shared.in_turn(nodes, change).await??;
    if effect == Effect::Equal {
        return Ok(Some(Attempt { effect, dialect, losses: plan.losses, known: current }));
    }
    let keys: Vec<Key> = edits.keys().cloned().collect();
    let Some(outcomes) = commit(shared, edits).await? else { return Ok(None) };
    let Plan { mut top, losses } = plan;
    // Where nothing was before, there is now what was planned.
    let known = current.is_none().then(|| {
        top.own.committed(&keys, &outcomes);
        nothing_else(&mut top);
        top
    });
    Ok(Some(Attempt { effect, dialect, losses, known }))
}

/// The changes that make of what there is what is planned.
async fn change(
    shared: &Shared,
    path: &NodePath,
    place: &Place,
    plan: &Plan,
    current: Option<&Branch>,
    existing: Existing,
) -> Result<(Effect, Edits), NodeError> {
    let mut edits = Edits::default();
    let mut change = Replacement::default();
    let effect = match current {
        None => {
            place.check_name(path)?;
            change.create(&plan.top);
            Effect::Created
        }
        Some(current) => {
            let differences = differences(plan, current)?;
            if differences.is_empty() {
                change.fill(current, &plan.top);
                match (change.is_empty(), current.is_implicit()) {
                    (true, _) => Effect::Equal,
                    (false, true) => Effect::Created,
                    (false, false) => Effect::Replaced,
                }
            } else if existing == Existing::Replace {
                change.replace(current, &plan.top)?;
                Effect::Replaced
            } else {
                return Err(NodeError::Differs { path: path.clone(), differences });
            }
        }
    };
    if effect == Effect::Equal {
        return Ok((effect, edits));
    }
    change.apply(shared, &mut edits, existing).await?;
    place.parents(path, &mut edits, &mut change.told)?;
    place.saw(&mut edits);
    let groups: Vec<NodePath> = match (current, effect) {
        (Some(current), Effect::Replaced) => {
            current.all().into_iter().filter(|node| node.form == Form::Group).map(|node| node.path.clone()).collect()
        }
        _ => Vec::new(),
    };
    keep_true(shared, &mut edits, path, &groups, &change.told).await?;
    Ok((effect, edits))
}

/// Says of groups of which nothing was said that they have no members.
fn nothing_else(branch: &mut Branch) {
    if branch.form == Form::Group {
        branch.members.get_or_insert_default().values_mut().for_each(nothing_else);
    }
}

/// Makes a commit. `None` where something that it depends on is no longer so.
pub(super) async fn commit(shared: &Shared, edits: Edits) -> Result<Option<Vec<Outcome>>, NodeError> {
    let changes = shared.in_turn(edits.len(), edits.stage(&*shared.store)).await??;
    match shared.store.commit(changes).await {
        Ok(outcomes) => Ok(Some(outcomes)),
        Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Where what is there differs from a plan. Groups without a document of their own are taken to have any.
fn differences(plan: &Plan, current: &Branch) -> Result<Vec<Difference>, NodeError> {
    let mut current = current.clone();
    adopt(&mut current, &plan.top);
    super::differences::differences(&plan.told()?, current, MAX_VIOLATIONS)
}

/// Gives implicit groups the documents that are planned for them.
fn adopt(current: &mut Branch, planned: &Branch) {
    if current.is_implicit() && planned.form == Form::Group {
        current.stored = planned.stored.clone();
    }
    let (Some(members), Some(planned)) = (&mut current.members, &planned.members) else { return };
    for (name, member) in members.iter_mut() {
        if let Some(planned) = planned.get(name) {
            adopt(member, planned);
        }
    }
}
