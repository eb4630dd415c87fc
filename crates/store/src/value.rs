//! Values on their way into and out of a store.

use std::{any::Any, fmt, ops::Range, pin::Pin, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use crate::{Attributes, Key, StoreError, ValueMeta, Version};

/// The maximum number of bytes that are allocated at once for a value of announced length.
const MAX_PREALLOCATED_BYTES: u64 = 64 << 20;

/// The bytes of a value, in order, in buffers of any size. An error ends the stream.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>;

/// A value, or a range of one, being read.
pub struct GetResult {
    /// The metadata of the whole value.
    pub meta: ValueMeta,
    /// The range of the value that the stream yields.
    pub range: Range<u64>,
    /// The bytes of the range. Nothing is read before the stream is polled.
    pub stream: ByteStream,
}

/// The result of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutResult {
    /// The new version of the key.
    pub version: Version,
    /// True if the key had a value before.
    pub replaced: bool,
}

/// The bytes of a value to be set.
pub struct Payload {
    /// The number of bytes that the stream yields, if known. A store fails with
    /// [`UploadError::LengthMismatch`](crate::UploadError::LengthMismatch) if the stream yields another number.
    pub size: Option<u64>,
    /// The bytes. An error that the stream yields fails the set with that error.
    pub stream: ByteStream,
    /// The attributes that the value gets; none by default.
    pub attributes: Attributes,
    /// The same bytes where the store that is written has [received](crate::ReceivingStore) them; none by default.
    pub received: Option<Arc<dyn ReceivedValue>>,
}

/// A value that a store has received. It can be set once, to the key that it was received for; a set that fails leaves it as it
/// was, unless the outcome is unknown.
pub trait ReceivedValue: Any + fmt::Debug + Send + Sync {
    /// The number of bytes.
    fn size(&self) -> u64;

    /// The bytes of a range. The stream fails with [`StoreError::InvalidStaged`] once the value was set.
    fn read(self: Arc<Self>, range: Range<u64>) -> ByteStream;
}

/// A value that is stored but not visible. Dropping its last clone discards it.
///
/// [`BatchStore::stage`](crate::BatchStore::stage) returns it for one key. It can be committed once,
/// for that key and to that store. A commit that fails leaves it unchanged, so that a clone can be committed again.
#[derive(Clone)]
pub struct Staged {
    key: Key,
    size: u64,
    attributes: Attributes,
    data: Arc<dyn Any + Send + Sync>,
}

impl GetResult {
    /// The value as the payload of a copy, with its attributes. It has to be read as a whole.
    pub fn into_payload(self) -> Payload {
        let Self { meta, range, stream } = self;
        let size = range.end.saturating_sub(range.start);
        Payload { attributes: meta.attributes, ..Payload::sized(size, stream) }
    }

    /// Reads the whole stream into memory: `range.end - range.start` bytes.
    pub async fn bytes(self) -> Result<Bytes, StoreError> {
        let len = self.range.end.saturating_sub(self.range.start);
        collect(self.stream, len).await
    }
}

impl Payload {
    /// A payload that is in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::sized(bytes.len() as u64, stream::once(async move { Ok(bytes) }))
    }

    /// A payload of unknown length.
    pub fn from_stream(stream: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static) -> Self {
        Self { size: None, stream: stream.boxed(), attributes: Attributes::NONE, received: None }
    }

    /// A payload of this length.
    pub fn sized(size: u64, stream: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static) -> Self {
        Self { size: Some(size), ..Self::from_stream(stream) }
    }

    /// A value that the store has received for the key that is set.
    pub fn of_received(value: Arc<dyn ReceivedValue>) -> Self {
        let size = value.size();
        Self { received: Some(Arc::clone(&value)), ..Self::sized(size, value.read(0..size)) }
    }

    /// The same payload with these attributes.
    #[must_use]
    pub fn with_attributes(self, attributes: Attributes) -> Self {
        Self { attributes, ..self }
    }
}

impl<B: Into<Bytes>> From<B> for Payload {
    fn from(bytes: B) -> Self {
        Self::from_bytes(bytes)
    }
}

impl Staged {
    /// Wraps the data by which a store finds the value again. Only implementations of the traits call this.
    pub fn new(key: Key, size: u64, attributes: Attributes, data: impl Any + Send + Sync) -> Self {
        Self { key, size, attributes, data: Arc::new(data) }
    }

    /// The same value with other attributes, such as a checksum that is known once all bytes have arrived.
    #[must_use]
    pub fn with_attributes(self, attributes: Attributes) -> Self {
        Self { attributes, ..self }
    }

    /// The same value by the key that a store has which shows the one that staged it.
    #[must_use]
    pub fn with_key(self, key: Key) -> Self {
        Self { key, ..self }
    }

    /// The attributes that the value gets: by default the attributes of its payload.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The key that the value was staged for.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The value's length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The data passed to [`Staged::new`], shared by all clones. Fails with [`StoreError::InvalidStaged`] if it is of
    /// another store's type.
    pub fn data<T: Any + Send + Sync>(&self) -> Result<Arc<T>, StoreError> {
        self.data.clone().downcast::<T>().map_err(|_| StoreError::InvalidStaged)
    }
}

async fn collect(mut stream: ByteStream, len: u64) -> Result<Bytes, StoreError> {
    let Some(first) = stream.try_next().await? else { return Ok(Bytes::new()) };
    let Some(second) = stream.try_next().await? else { return Ok(first) };
    // Cap the allocation, so that a wrong announced length costs no memory.
    let announced = usize::try_from(len.min(MAX_PREALLOCATED_BYTES)).unwrap_or_default();
    let mut all = BytesMut::with_capacity(announced.max(first.len().saturating_add(second.len())));
    all.extend_from_slice(&first);
    all.extend_from_slice(&second);
    drop((first, second));
    while let Some(chunk) = stream.try_next().await? {
        all.extend_from_slice(&chunk);
    }
    Ok(all.freeze())
}

impl fmt::Debug for GetResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetResult").field("meta", &self.meta).field("range", &self.range).finish_non_exhaustive()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload").field("size", &self.size).finish_non_exhaustive()
    }
}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged").field("key", &self.key).field("size", &self.size).finish_non_exhaustive()
    }
}
