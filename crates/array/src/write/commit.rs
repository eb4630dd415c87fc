//! One commit of all that a write changes.

use std::sync::Arc;

use meta::{
    ArrayModel, Dialect, NodePath,
    documents::{Changes, ElementsChange},
    extensions::survives_write,
    selection::{Region, Selection},
};
use store::{Change, Key, Outcome, Precondition, StoreError};

use super::{
    WriteError, WriteReport,
    layout::Layout,
    merge,
    receive::Received,
    target::{Made, Target},
};
use crate::{ArrayError, find::Sighting, hierarchy::documents::DocumentChanges, shared::Shared};

/// How often a write is tried before it locks what it changes.
pub(super) const OPTIMISTIC: usize = 3;

/// How often it is tried in all. Behind locks only those are in the way who write chunks without knowing of arrays, or change the array itself.
const ATTEMPTS: usize = 16;

/// An array at a path, and what must hold of it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: NodePath,
    pub(super) dialect: Option<Dialect>,
    pub(super) condition: Precondition,
}

impl Place {
    /// The array as it is now, if the condition holds of it.
    pub(super) async fn find(&self, shared: &Shared) -> Result<Arc<Sighting>, WriteError> {
        let sighting = self.current(shared).await?;
        self.judge(&sighting)?;
        Ok(sighting)
    }

    /// The array as it is now.
    pub(super) async fn current(&self, shared: &Shared) -> Result<Arc<Sighting>, ArrayError> {
        match shared.found.remembered(&self.path, self.dialect) {
            Some(sighting) if is_current(shared, &sighting).await? => Ok(sighting),
            _ => shared.look(&self.path, self.dialect).await,
        }
    }

    fn judge(&self, sighting: &Sighting) -> Result<(), WriteError> {
        if self.condition == Precondition::none() {
            return Ok(());
        }
        let current = Some(sighting.version());
        if self.condition.holds(current) {
            return Ok(());
        }
        Err(WriteError::PreconditionFailed { path: self.path.clone(), current })
    }
}

/// Whether the documents are still what they were. One may be another while the next is looked at, which the commit will notice.
async fn is_current(shared: &Shared, sighting: &Sighting) -> Result<bool, StoreError> {
    for (key, version) in sighting.documents.versions() {
        if shared.store.head(key).await?.map(|info| info.version) != *version {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a write is planned on, beside the array's documents.
pub(super) enum Ground<'a> {
    /// A selection, and the region that it is.
    Region(&'a Selection, &'a Region),
    /// An array that grows to this shape, as people see it.
    Append {
        /// What its documents will say.
        documents: &'a DocumentChanges,
        /// The shape.
        shape: &'a [u64],
    },
}

/// Commits what was received of a region.
pub(super) async fn commit(
    target: &Arc<Target>,
    place: &Place,
    mut sighting: Arc<Sighting>,
    ground: &Ground<'_>,
    received: Received,
) -> Result<WriteReport, WriteError> {
    let Received { made, kept, purse } = received;
    let shared = &target.shared;
    let mut merged = match merge::all(target, &kept, purse).await {
        Ok(merged) => merged,
        Err(error) => return Err(unless_changed(shared, place, &sighting, error).await),
    };
    let mut repeated = 0;
    // From here on locks are held.
    let _no_waiting = shared.no_waiting();
    for attempt in 0..ATTEMPTS {
        let alone = match attempt >= OPTIMISTIC {
            true => Some(shared.locks.hold_alone(keys(&merged.made), keys(&made)).await),
            false => None,
        };
        if attempt > 0 {
            sighting = again(target, place, sighting, ground).await?;
            repeated += match merge::again(target, &kept, &mut merged).await {
                Ok(repeated) => repeated,
                Err(error) => return Err(unless_changed(shared, place, &sighting, error).await),
            };
        }
        let together = match alone {
            Some(_) => None,
            None => Some(shared.locks.share(keys(&made).chain(keys(&merged.made))).await),
        };
        let documents = documents(shared, place, &sighting, ground).await?;
        let all = || made.iter().chain(&merged.made);
        let changes = documents.changes.iter().cloned().chain(all().flat_map(Made::changes)).collect();
        let fence = shared.fences.share([place.path.relative().as_bytes()]).await;
        let committed = shared.store.commit(changes).await;
        drop((alone, together, fence));
        match committed {
            Ok(outcomes) => return Ok(documents.report(&sighting, ground, &outcomes).of(all(), repeated)),
            Err(StoreError::PreconditionFailed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ArrayError::TooManyConflicts { path: place.path.clone() }.into())
}

/// The error of a chunk that cannot be decoded; or that the array changed, if it did: then the chunk is another array's.
async fn unless_changed(shared: &Shared, place: &Place, sighting: &Sighting, error: WriteError) -> WriteError {
    if !matches!(error, WriteError::Array(ArrayError::Chunk { .. })) {
        return error;
    }
    match is_current(shared, sighting).await {
        Ok(false) => WriteError::ShapeChanged { path: place.path.clone() },
        Ok(true) => error,
        Err(failed) => failed.into(),
    }
}

/// Commits a change of documents alone.
pub(super) async fn documents_only(
    shared: &Shared,
    place: &Place,
    sighting: &Sighting,
    ground: &Ground<'_>,
) -> Result<WriteReport, WriteError> {
    let documents = documents(shared, place, sighting, ground).await?;
    match shared.store.commit(documents.changes.clone()).await {
        Ok(outcomes) => Ok(documents.report(sighting, ground, &outcomes)),
        Err(StoreError::PreconditionFailed { .. }) => Err(WriteError::ShapeChanged { path: place.path.clone() }),
        Err(error) => Err(error.into()),
    }
}

/// The report of a write that has nothing to write.
pub(super) fn nothing(sighting: &Sighting) -> WriteReport {
    let shape = sighting.array.model().view_shape();
    WriteReport { version: Some(sighting.version()), shape, stored: 0, erased: 0, repeated: 0 }
}

fn keys(made: &[Made]) -> impl Iterator<Item = &[u8]> {
    made.iter().flat_map(Made::keys).map(Key::as_bytes)
}

/// What is changed or checked beside chunks.
struct Documents<'a> {
    changes: Vec<Change>,
    node: Option<Node<'a>>,
}

/// The changes of the node itself.
enum Node<'a> {
    Own(DocumentChanges),
    Lent(&'a DocumentChanges),
}

/// What a write does to documents: it checks them, and where elements were counted that are now others, or the array grows, changes them.
async fn documents<'a>(
    shared: &Shared,
    place: &Place,
    sighting: &Sighting,
    ground: &Ground<'a>,
) -> Result<Documents<'a>, WriteError> {
    let counted = |model: &ArrayModel| model.extensions.iter().any(|extension| !survives_write(&extension.name));
    let node = match ground {
        Ground::Append { documents, .. } => Node::Lent(documents),
        Ground::Region(..) if counted(sighting.array.model()) => {
            let changes = Changes { elements: ElementsChange::Some, ..Changes::default() };
            Node::Own(DocumentChanges::of_array(shared, &place.path, sighting, &changes).await?)
        }
        Ground::Region(..) => return Ok(Documents { changes: sighting.checks(), node: None }),
    };
    Ok(Documents { changes: node.get().changes.clone(), node: Some(node) })
}

impl Node<'_> {
    fn get(&self) -> &DocumentChanges {
        match self {
            Self::Own(changes) => changes,
            Self::Lent(changes) => changes,
        }
    }
}

impl Documents<'_> {
    /// The report of a commit that had these changes first, without its chunks.
    fn report(&self, sighting: &Sighting, ground: &Ground<'_>, outcomes: &[Outcome]) -> WriteReport {
        let of_documents = outcomes.get(..self.changes.len()).unwrap_or_default();
        let version = match &self.node {
            Some(node) => node.get().version_after(of_documents),
            None => Some(sighting.version()),
        };
        let shape = match ground {
            Ground::Region(..) => sighting.array.model().view_shape(),
            Ground::Append { shape, .. } => shape.to_vec(),
        };
        WriteReport { version, shape, stored: 0, erased: 0, repeated: 0 }
    }
}

impl WriteReport {
    /// The report with what became of chunks.
    fn of<'a>(mut self, made: impl Iterator<Item = &'a Made>, repeated: u64) -> Self {
        for made in made {
            match made.is_stored() {
                true => self.stored += 1,
                false => self.erased += 1,
            }
        }
        self.repeated = repeated;
        self
    }
}

/// The array as it is now; fails where what was received is no longer for it.
async fn again(
    target: &Target,
    place: &Place,
    before: Arc<Sighting>,
    ground: &Ground<'_>,
) -> Result<Arc<Sighting>, WriteError> {
    if is_current(&target.shared, &before).await? {
        return Ok(before);
    }
    let sighting = target.shared.look(&place.path, place.dialect).await?;
    place.judge(&sighting)?;
    let (old, new) = (before.array.model(), sighting.array.model());
    let fits = || {
        // An append goes where the array ended when it was planned, and its documents say so.
        let Ground::Region(selection, region) = ground else { return None };
        let now = selection.resolve(&new.view_shape()).ok()?.shifted(&new.origin);
        Some(stores_alike(old, new) && now == **region && Layout::new(region, new)?.covers_as(&target.layout))
    };
    match fits() {
        Some(true) => Ok(sighting),
        _ => Err(WriteError::ShapeChanged { path: place.path.clone() }),
    }
}

/// Whether the elements of both are stored in the same way at the same place, whatever their shapes.
pub(super) fn stores_alike(one: &ArrayModel, other: &ArrayModel) -> bool {
    one.data_type == other.data_type
        && one.fill_value == other.fill_value
        && one.fill_value_is_agreed() == other.fill_value_is_agreed()
        && one.grid == other.grid
        && one.chunk_keys == other.chunk_keys
        && one.chunk_prefix == other.chunk_prefix
        && one.codecs == other.codecs
        && one.skips_empty_chunks() == other.skips_empty_chunks()
}
