//! Snapshots of a prefix on a server.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::{Method, StatusCode};
use zarrd_store::{
    ByteRange, DirPage, GetResult, Intent, Key, KeyPage, ListableStore, PageRequest, Prefix, PrefixSnapshot,
    ReadableStore, StoreError, ValueMeta, ValuePage, Watermark,
};
use zarrd_wire::{
    problem::ProblemType,
    query::SnapshotQuery,
    routes::{SNAPSHOTS, snapshot_path},
    snapshot::{SnapshotIntent, TakenSnapshot},
};

use crate::{
    HttpStore,
    error::RequestError,
    problem,
    retry::{FailedAttempt, Idempotency},
};

/// Maximum size of the response, in bytes: intents are few and small.
const MAX_RESPONSE_BYTES: usize = 16 << 20;

/// Everything below a prefix of a server's store as of one commit.
///
/// It ends on the server when it was not read from for ten minutes, after a day, or by [`end`](Self::end); then reading
/// fails with [`StoreError::SnapshotExpired`]. A token has one at a time.
#[derive(Clone, Debug)]
pub struct HttpSnapshot {
    store: HttpStore,
    id: Arc<str>,
    prefix: Prefix,
    watermark: Watermark,
    len: u64,
    intents: Vec<Intent>,
}

impl HttpStore {
    /// Takes a snapshot of everything below `prefix`, which the token has to be allowed to read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unsupported`] if the server has no snapshots of the prefix: it is an older one, or the prefix is not
    /// in a store with commits.
    pub async fn snapshot_below(&self, prefix: &Prefix) -> Result<HttpSnapshot, StoreError> {
        let target = format!("{SNAPSHOTS}?{}", SnapshotQuery { prefix: prefix.clone() }.render());
        let attempt = async |deadline| -> Result<TakenSnapshot, FailedAttempt<StoreError>> {
            let response = self.transport.send(self.transport.request(Method::POST, &target), deadline).await?;
            if response.status() == StatusCode::CREATED {
                return Ok(response.json(MAX_RESPONSE_BYTES).await?);
            }
            let response = response.into_error_response().await;
            let is_unknown = match response.kind() {
                Some(kind) => {
                    [ProblemType::NotFound, ProblemType::MethodNotAllowed, ProblemType::Unsupported].contains(&kind)
                }
                // A proxy, or a server of files, that does not know the resource.
                None => {
                    !(response.status.is_server_error()
                        || [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS]
                            .contains(&response.status))
                }
            };
            Err(match is_unknown {
                true => FailedAttempt::terminal(StoreError::Unsupported { what: "snapshots of a prefix" }),
                false => problem::into_failure(response, None),
            })
        };
        let taken = self.transport.retry(Idempotency::NotIdempotent, attempt).await?;
        HttpSnapshot::new(self, prefix, taken).map_err(Into::into)
    }
}

impl HttpSnapshot {
    fn new(store: &HttpStore, prefix: &Prefix, taken: TakenSnapshot) -> Result<Self, RequestError> {
        if taken.prefix != prefix.as_str() {
            return Err(RequestError::protocol("a snapshot of another prefix"));
        }
        let number = u64::from_str_radix(&taken.commit, 16);
        let number = number.map_err(|_| RequestError::protocol("the commit of the snapshot is not a number"))?;
        let intents: Option<Vec<Intent>> = taken.intents.iter().flatten().map(SnapshotIntent::parse).collect();
        let id: Arc<str> = taken.id.into();
        Ok(Self {
            store: HttpStore { transport: Arc::clone(&store.transport), snapshot: Some(Arc::clone(&id)) },
            id,
            prefix: prefix.clone(),
            watermark: Watermark::from_u64(number),
            len: taken.keys,
            intents: intents.ok_or_else(|| RequestError::protocol("an operation of the snapshot is malformed"))?,
        })
    }

    /// Ends the snapshot on the server, which then keeps nothing for it. It is no error if it has ended.
    pub async fn end(&self) -> Result<(), StoreError> {
        let transport = &self.store.transport;
        let attempt = async |deadline| -> Result<(), FailedAttempt<StoreError>> {
            let request = transport.request(Method::DELETE, &snapshot_path(&self.id));
            let response = transport.send(request, deadline).await?;
            match response.status() {
                StatusCode::NO_CONTENT => Ok(()),
                _ => match problem::read_failure(response, None).await {
                    FailedAttempt { error: StoreError::SnapshotExpired, .. } => Ok(()),
                    failed => Err(failed),
                },
            }
        };
        transport.retry(Idempotency::Idempotent, attempt).await
    }
}

#[async_trait]
impl ReadableStore for HttpSnapshot {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.check_key(key)?;
        self.store.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.check_key(key)?;
        self.store.head(key).await
    }
}

#[async_trait]
impl ListableStore for HttpSnapshot {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.store.list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.store.list_dir(prefix, page).await
    }
}

#[async_trait]
impl PrefixSnapshot for HttpSnapshot {
    fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    fn watermark(&self) -> Watermark {
        self.watermark
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn intents(&self) -> &[Intent] {
        &self.intents
    }

    /// True as far as is known without a request.
    fn is_valid(&self) -> bool {
        true
    }

    async fn list_values(&self, prefix: &Prefix, page: PageRequest) -> Result<ValuePage, StoreError> {
        self.store.list_values(prefix, page).await
    }
}
