//! The arrays of a store: the entry to reading, writing and hierarchies.

use std::{sync::Arc, time::Instant};

use meta::{
    ArrayModel, Dialect, NodePath,
    selection::{ReadRequest, Selection},
};
use store::{Key, Precondition, TransactionalStore, Version};

use crate::{
    context::Context,
    error::ArrayError,
    hierarchy::hierarchies::Hierarchies,
    memory::{
        caller::Usage,
        claim::{Claim, MemoryBudget},
    },
    options::Options,
    read::{array_read::ArrayRead, context::ReadContext, plan::ReadPlan},
    retry::MAX_ATTEMPTS,
    write::{
        append::Append,
        commit::WriteTarget,
        error::WriteError,
        region::{RegionWrite, check_chunks, check_lists},
    },
};

/// The arrays of a store. Clones share its caches.
#[derive(Clone, Debug)]
pub struct Arrays(Arc<Context>);

impl Arrays {
    /// The arrays of `store`.
    pub fn new(store: Arc<dyn TransactionalStore>, options: Options) -> Self {
        Self(Arc::new(Context::new(store, options)))
    }

    /// The same arrays on behalf of one request, which has a claim on their [memory](Self::memory). Where there is not enough memory or threads for all, callers take turns, and
    /// none has more than half. Of arrays that serve no request in particular, each reading and each writing is one of its own.
    pub fn for_request(&self, claim: Claim) -> Self {
        Self(Arc::new(self.0.for_request(claim)))
    }

    /// The memory that all requests together may hold: for what is read and written here, and for whatever else is taken of it.
    pub fn memory(&self) -> &MemoryBudget {
        self.0.memory()
    }

    /// Runs work on so many bytes of documents on a thread of its own, on behalf of the request: as many pieces of work at a time as there are threads for decoding, callers in turn.
    pub async fn run_on_documents<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ArrayError> {
        self.0.run_on_documents(bytes, work).await
    }

    /// How many threads there are that decode and encode, how many of them are taken, and how many pieces of work wait for one.
    pub fn threads(&self) -> Usage {
        self.0.threads()
    }

    /// The bytes of decoded chunks that are cached.
    pub fn cached_bytes(&self) -> u64 {
        self.0.cache.used()
    }

    /// The capacity of the cache of decoded chunks, in bytes.
    pub fn cache_capacity(&self) -> u64 {
        self.0.cache.capacity()
    }

    /// The hierarchies that the arrays are in, on behalf of the same request.
    pub fn hierarchies(&self) -> Hierarchies {
        Hierarchies(self.0.clone())
    }

    /// Makes ready to read what `request` selects of the array at `path`; in `dialect` if only that is meant, else in the one that is
    /// preferred of those in which the path answers. Nothing is decoded, and nothing but metadata is read.
    ///
    /// At most `limit` bytes of elements may be selected. Elements of variable length or of no size count 16 bytes each; the former are
    /// bounded again when they are read.
    pub async fn read(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        request: &ReadRequest,
        limit: u64,
    ) -> Result<ArrayRead, ArrayError> {
        let start = Instant::now();
        let context = self.0.for_operation();
        let mut resolved = match context.nodes.get(path, dialect) {
            Some(resolved) => resolved,
            None => context.resolve_array(path, dialect).await?,
        };
        for _ in 0..MAX_ATTEMPTS {
            let array = &resolved.array;
            // Where what is remembered is no longer true, the new shape may be one that the selection fits.
            let prepared = ReadPlan::new(&context, array, request, limit).await;
            let chunks = prepared.as_ref().map(|prepared| prepared.keys.as_slice()).unwrap_or_default();
            let keys: Vec<Key> = resolved.read_set.keys().chain(chunks).cloned().collect();
            let snapshot = context.store.snapshot(&keys).await?;
            if resolved.read_set.is_current(&*snapshot)? {
                let mut prepared = prepared?;
                let fingerprint = prepared.fingerprint(array, &*snapshot)?;
                let shape = prepared.resolved.shape();
                let work = prepared.work_budget(&context.options, array, &*snapshot)?;
                let source = ReadContext::new(array.clone(), snapshot, context.clone(), &prepared, work)?;
                source.metrics.planned(start.elapsed());
                return Ok(ArrayRead { source: Arc::new(source), prepared, shape, fingerprint });
            }
            // Nothing is held while what the documents take is waited for.
            drop((prepared, snapshot));
            resolved = context.resolve_array(path, dialect).await?;
        }
        Err(ArrayError::TooManyConflicts { path: path.clone() })
    }
}

impl Arrays {
    /// Makes ready to write what `selection` has of the array at `path`. Repeated indices in lists are refused: it would not be said which element stays.
    ///
    /// `condition` must hold of the node's version; it is judged now, and again with the commit.
    pub async fn write(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        selection: &Selection,
        condition: Precondition,
    ) -> Result<RegionWrite, WriteError> {
        let place = WriteTarget { path: path.clone(), dialect, condition };
        let context = self.0.for_operation();
        let resolved = place.resolve(&context).await?;
        let model = resolved.array.model();
        let seen = selection.resolve(&model.view_shape()).map_err(ArrayError::from)?;
        check_lists(&seen)?;
        let shape = seen.shape();
        let region = seen.shifted(&model.origin);
        check_chunks(&resolved.array, &region)?;
        Ok(RegionWrite { context, target: place, resolved, selection: selection.clone(), region, shape })
    }

    /// Makes ready to append along a dimension (negative from the end).
    pub async fn append(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        dimension: i64,
        condition: Precondition,
    ) -> Result<Append, WriteError> {
        let place = WriteTarget { path: path.clone(), dialect, condition };
        let context = self.0.for_operation();
        let resolved = place.resolve(&context).await?;
        Append::new(context, place, resolved, dimension)
    }

    /// What the node at a path is, if it is an array, and its version.
    pub async fn model(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<(ArrayModel, Version), ArrayError> {
        let place = WriteTarget { path: path.clone(), dialect, condition: Precondition::none() };
        let resolved = place.resolve_current(&self.0).await?;
        Ok((resolved.array.model().clone(), resolved.version()))
    }
}
