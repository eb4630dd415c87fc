//! A store behind a network: each request takes a round trip, is counted, and may fail.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{Duration, Instant, sleep},
};
use zarrd_array::{Arrays, Options};
use zarrd_store::{
    ByteRange, CachedStore, DirPage, GetResult, Guarantees, Key, KeyPage, Keyed, ListableStore, ListingState,
    MemoryStore, PageRequest, Precondition, Prefix, ReadableStore, Recheck, ServedStore, SnapshotStore, StoreError,
    ValueMeta, Version, Watermark, WriteableStore,
};

/// The time of a round trip.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(50);

/// The number of requests at a time, as in `store-object`.
const MAX_REQUESTS: usize = 64;

/// The number of names in one answer.
const MAX_NAMES: usize = 1_000;

/// The number of attempts of a request.
const ATTEMPTS: usize = 4;

/// A request, as it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Get(String, Option<ByteRange>),
    Head(String),
    List(String),
}

/// A store in memory behind a network. Clones share one store.
#[derive(Clone)]
pub(crate) struct DistantStore {
    pub(crate) memory: MemoryStore,
    state: Arc<State>,
}

struct State {
    requests: Mutex<Vec<Request>>,
    attempts: AtomicUsize,
    /// One attempt of so many fails; 0 for none.
    failing: AtomicUsize,
    permits: Semaphore,
    /// The older state that listings show, if they are late.
    listed: Mutex<Option<MemoryStore>>,
    /// True if listings have states.
    has_states: AtomicBool,
}

impl DistantStore {
    pub(crate) fn new() -> Self {
        let state = State {
            requests: Mutex::default(),
            attempts: AtomicUsize::new(0),
            failing: AtomicUsize::new(0),
            permits: Semaphore::new(MAX_REQUESTS),
            listed: Mutex::default(),
            has_states: AtomicBool::new(false),
        };
        Self { memory: MemoryStore::new(), state: Arc::new(state) }
    }

    pub(crate) async fn set(&self, key: &str, value: impl Into<Vec<u8>>) {
        let value: Vec<u8> = value.into();
        self.memory.set(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
    }

    pub(crate) async fn erase(&self, key: &str) {
        self.memory.erase(&Key::parse(key).unwrap(), Precondition::none()).await.unwrap();
    }

    /// The length of a value.
    pub(crate) async fn memory_len(&self, key: &str) -> u64 {
        self.memory.head(&Key::parse(key).unwrap()).await.unwrap().unwrap().size
    }

    /// Lets one of so many attempts fail from now on.
    pub(crate) fn fail_one_of(&self, attempts: usize) {
        self.state.failing.store(attempts, Relaxed);
    }

    /// The arrays of the store, which remembers what it read for some time.
    pub(crate) fn arrays(&self, recheck: Recheck, options: Options) -> Arrays {
        Arrays::new(self.served(recheck, Guarantees::READ_ONLY), options)
    }

    /// The store as it is served with these guarantees.
    pub(crate) fn served(&self, recheck: Recheck, guarantees: Guarantees) -> ServedStore {
        let rechecked = CachedStore::new(self.clone(), recheck);
        let guarantees = rechecked.guarantees(guarantees);
        ServedStore::read_only(Arc::new(Keyed::new(rechecked, guarantees)))
    }

    /// Lets listings show this older state from now on.
    pub(crate) fn list_older(&self, older: MemoryStore) {
        *self.state.listed.lock() = Some(older);
    }

    /// The same store, whose listings have states from now on, as a directory's have.
    pub(crate) fn with_states(self) -> Self {
        self.state.has_states.store(true, Relaxed);
        self
    }

    /// The state of all keys; `None` if listings have none.
    async fn listing_state(&self) -> Result<Option<Watermark>, StoreError> {
        match self.state.has_states.load(Relaxed) {
            true => self.memory.watermark_below(&Prefix::root()).await,
            false => Ok(None),
        }
    }

    /// The store that listings show.
    fn listed(&self) -> MemoryStore {
        self.state.listed.lock().clone().unwrap_or_else(|| self.memory.clone())
    }

    /// The requests since the last call.
    pub(crate) fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.requests.lock())
    }

    /// The result of an operation, the number of round trips that it took one after the other, and its requests.
    pub(crate) async fn measure<T>(&self, operation: impl Future<Output = T>) -> (T, u128, Vec<Request>) {
        self.take_requests();
        let begun = Instant::now();
        let result = operation.await;
        (result, begun.elapsed().as_millis() / ROUND_TRIP.as_millis(), self.take_requests())
    }

    /// Requests a page of a listing, as in `store-object`: one more name shows whether there is another page.
    async fn list(&self, prefix: &Prefix, names: usize, more: bool) -> Result<(), StoreError> {
        for _ in 0..(names + usize::from(more)).div_ceil(MAX_NAMES).max(1) {
            self.request(Request::List(prefix.to_string())).await?;
        }
        Ok(())
    }

    async fn request(&self, request: Request) -> Result<(), StoreError> {
        self.state.requests.lock().push(request);
        let _permit = self.state.permits.acquire().await.map_err(|_| StoreError::Closed)?;
        for _ in 0..ATTEMPTS {
            sleep(ROUND_TRIP).await;
            let number = self.state.attempts.fetch_add(1, Relaxed) + 1;
            let failing = self.state.failing.load(Relaxed);
            if failing == 0 || !number.is_multiple_of(failing) {
                return Ok(());
            }
        }
        Err(StoreError::Busy { retry_after: None })
    }
}

#[async_trait]
impl ReadableStore for DistantStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.request(Request::Get(key.to_string(), range)).await?;
        self.memory.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.request(Request::Head(key.to_string())).await?;
        self.memory.head(key).await
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        self.request(Request::Get(key.to_string(), range)).await?;
        match self.memory.get(key, range).await? {
            Some(value) if value.meta.version != version => Err(StoreError::Changed { key: key.clone() }),
            value => Ok(value),
        }
    }
}

#[async_trait]
impl ListableStore for DistantStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let before = self.listing_state().await?;
        let found = self.listed().list_prefix(prefix, page).await?;
        let state = self.listing_state().await?.filter(|now| Some(*now) == before);
        self.list(prefix, found.keys.len(), found.cursor.is_some()).await?;
        Ok(KeyPage { state: state.map(|state| ListingState::from_u128(state.as_u64().into())), ..found })
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let found = self.listed().list_dir(prefix, page).await?;
        self.list(prefix, found.keys.len() + found.prefixes.len(), found.cursor.is_some()).await?;
        Ok(found)
    }
}
