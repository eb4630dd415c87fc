//! The array client.

mod collect;
mod create;
mod description;
mod element;
mod error;
mod input;
mod problem;
mod query;
mod request;
mod stream;
mod write;

use std::{fmt, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zarrd_meta::{
    Dialect, NodePath, select,
    selection::{ReadRequest, Selection},
};
use zarrd_operations::WriteReport;
use zarrd_store::{Precondition, Version};
use zarrd_wire::{array::Format, chunks::ChunkMap, query::ChunksQuery, routes};

#[cfg(feature = "ndarray")]
pub use self::element::NpyElement;
use self::{
    collect::{BytesCollector, Collect, TypedCollector},
    request::ElementsRequest,
    write::WriteRequest,
};
pub use self::{
    create::NewArray,
    description::{Description, Elements},
    element::Element,
    error::{ArrayError, MissingLabel},
    input::NewElements,
    query::Query,
    stream::ElementStream,
};
use crate::{
    BaseUrl, BuildError, ClientBuilder, Connection, NodeClient, NodeError, UpdatedNode, retry::Idempotency,
    transport::Transport,
};

/// Client of the arrays of a zarrd server. It reads and writes elements without a Zarr library: the server decodes and
/// encodes the chunks.
///
/// The elements to read or write are a [`Selection`], best written with [`select!`](crate::select); reads also accept a
/// [`ReadRequest`] of single points or of stacked selections. Elements are in C order and little-endian.
///
/// Clones share one pool of connections. Each response shows the array as of one commit, and each write is one commit;
/// two responses may show two commits.
///
/// [`Retries`](crate::Retries) apply to reads, which are repeated from the beginning when the response is cut off, and
/// to writes of a region without a precondition, unless their elements are streamed: these are idempotent. Appends, and
/// writes with a precondition, are retried only if they are known not to have been executed.
///
/// Redirects are not followed, and no content coding is accepted.
#[derive(Clone)]
pub struct ArrayClient {
    transport: Arc<Transport>,
    dialect: Option<Dialect>,
}

impl ArrayClient {
    /// Creates a client of the server at `base`, with default options.
    pub fn new(base: BaseUrl) -> Result<Self, BuildError> {
        Self::builder(base).build()
    }

    /// Returns a builder of a client with other options.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }

    /// Returns a client of the nodes of one dialect, for paths with nodes of several. By default v3 takes precedence
    /// over v2, and v2 over the draft.
    #[must_use]
    pub fn with_dialect(&self, dialect: Dialect) -> Self {
        Self { transport: Arc::clone(&self.transport), dialect: Some(dialect) }
    }

    /// URL of the server.
    pub fn base(&self) -> &BaseUrl {
        self.transport.base()
    }

    /// Returns the description of the elements that [`read`](Self::read) would return. The server decodes nothing for
    /// it.
    pub async fn describe(&self, path: &NodePath, selection: Selection) -> Result<Description, ArrayError> {
        let (transport, request) = (&self.transport, &self.request(path, selection.into()));
        transport.retry(Idempotency::Idempotent, |deadline| request.describe(transport, deadline)).await
    }

    /// Reads elements as bytes, in C order and little-endian.
    ///
    /// Elements of variable length (strings, byte strings) are preceded by their number as a `u32`, and each by its
    /// length in bytes as a `u32`, all little-endian. [`Elements::strings`] decodes strings.
    pub async fn read(&self, path: &NodePath, request: impl Into<ReadRequest>) -> Result<Elements, ArrayError> {
        self.collect::<BytesCollector>(path, request.into()).await
    }

    /// Reads elements like [`read`](Self::read); returns `None` if they still have `version`, the version in the
    /// description of an earlier response to the same request. The server decodes nothing to find out.
    pub async fn read_if_changed(
        &self,
        path: &NodePath,
        request: impl Into<ReadRequest>,
        version: Version,
    ) -> Result<Option<Elements>, ArrayError> {
        let (transport, request) = (&self.transport, &self.request(path, request.into()));
        let attempt = |deadline| async move {
            match request.elements_if_changed(transport, version, deadline).await? {
                Some(response) => response.collect::<BytesCollector>().await.map(Some),
                None => Ok(None),
            }
        };
        transport.retry(Idempotency::Idempotent, attempt).await
    }

    /// Reads elements as numbers.
    ///
    /// Fails with [`ArrayError::DataType`] if the array has another data type: nothing is converted.
    pub async fn read_as<T: Element>(
        &self,
        path: &NodePath,
        request: impl Into<ReadRequest>,
    ) -> Result<Elements<Vec<T>>, ArrayError> {
        self.collect::<TypedCollector<T>>(path, request.into()).await
    }

    /// Reads elements as a stream of the bytes of [`read`](Self::read), in constant memory.
    ///
    /// The boundaries of the items are arbitrary, and may lie within an element. An interrupted stream is not retried;
    /// it fails with [`ArrayError::Interrupted`].
    pub async fn stream(&self, path: &NodePath, request: impl Into<ReadRequest>) -> Result<ElementStream, ArrayError> {
        let (transport, request) = (&self.transport, &self.request(path, request.into()));
        let response =
            transport.retry(Idempotency::Idempotent, |deadline| request.elements(transport, deadline)).await?;
        Ok(response.into_stream())
    }

    /// Reads what the server computes of elements, as bytes like [`read`](Self::read).
    pub async fn query(&self, path: &NodePath, query: &Query) -> Result<Elements, ArrayError> {
        self.collect_answer::<BytesCollector>(path, query, Format::Raw).await
    }

    /// Reads what the server computes of elements, as numbers like [`read_as`](Self::read_as).
    pub async fn query_as<T: Element>(&self, path: &NodePath, query: &Query) -> Result<Elements<Vec<T>>, ArrayError> {
        self.collect_answer::<TypedCollector<T>>(path, query, Format::Raw).await
    }

    /// Reads what the server computes of elements in any format, such as CSV or a picture, as a stream. An interrupted
    /// stream is not retried.
    pub async fn query_format(
        &self,
        path: &NodePath,
        query: &Query,
        format: Format,
    ) -> Result<ElementStream, ArrayError> {
        let request = &ElementsRequest::of_target(path, query.target(path, self.dialect, Some(format)));
        let transport = &self.transport;
        let response =
            transport.retry(Idempotency::Idempotent, |deadline| request.elements(transport, deadline)).await?;
        Ok(response.into_stream())
    }

    /// Returns statistics of the elements that a query selects and decodes: the JSON object of the server.
    pub async fn stats(&self, path: &NodePath, query: &Query) -> Result<Map<String, Value>, ArrayError> {
        self.json(path, query.with_stats().target(path, self.dialect, None)).await
    }

    /// Returns the colours of the picture of a query, and the values at which they begin: the JSON object of the server.
    pub async fn thresholds(&self, path: &NodePath, query: &Query) -> Result<Map<String, Value>, ArrayError> {
        self.json(path, query.with_thresholds().target(path, self.dialect, None)).await
    }

    /// Returns the chunks that a selection touches: a page of them, or the numbers of those that are stored.
    pub async fn chunks(&self, path: &NodePath, query: &ChunksQuery) -> Result<ChunkMap, ArrayError> {
        let query = ChunksQuery { dialect: self.dialect.or(query.dialect), ..query.clone() };
        self.json(path, format!("{}?{}", routes::array_path(path), query.render())).await
    }

    /// Writes elements to the selected region of an array. All of them become visible at once, or none. A selection
    /// with repeated indices is an error.
    ///
    /// The precondition refers to the [version](crate::NodeInfo::version) of the node, which changes whenever its
    /// metadata does.
    pub async fn write(
        &self,
        path: &NodePath,
        selection: Selection,
        elements: impl Into<NewElements>,
        precondition: Precondition,
    ) -> Result<WriteReport, ArrayError> {
        let elements = elements.into();
        self.check_data_type(path, &elements).await?;
        let request = WriteRequest::region(path, &selection, self.dialect, precondition);
        request.send(&self.transport, elements.format, elements.content).await
    }

    /// Creates an array together with its elements, in one commit.
    ///
    /// Fails with [`ArrayError::CannotCreate`] if a node exists, unless [`NewArray::if_exists`] replaces it. It is
    /// retried only if it is known not to have been executed.
    ///
    /// ```no_run
    /// # use zarrd_client::{ArrayClient, ArrayError, NewArray, NodePath};
    /// # async fn example(arrays: &ArrayClient, path: &NodePath) -> Result<(), ArrayError> {
    /// let report = arrays.create(path, &[20.5_f32, 21.0, 19.5, 18.0], &NewArray::of_shape([2, 2])).await?;
    /// assert_eq!(report.shape, [2, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create(
        &self,
        path: &NodePath,
        elements: impl Into<NewElements>,
        array: &NewArray,
    ) -> Result<WriteReport, ArrayError> {
        let elements = elements.into();
        let query = array.query(&elements, self.dialect)?;
        let request = WriteRequest::create(path, &query, array.precondition.clone());
        request.send(&self.transport, elements.format, elements.content).await
    }

    /// Appends elements along a dimension: its name, or its number (negative: counted from the last one). The new shape and
    /// the elements become visible at once.
    pub async fn append(
        &self,
        path: &NodePath,
        dimension: impl fmt::Display,
        elements: impl Into<NewElements>,
        precondition: Precondition,
    ) -> Result<WriteReport, ArrayError> {
        let elements = elements.into();
        self.check_data_type(path, &elements).await?;
        let request = WriteRequest::append(path, dimension.to_string(), self.dialect, precondition);
        request.send(&self.transport, elements.format, elements.content).await
    }

    /// Changes the shape of an array, like [`NodeClient::resize`].
    pub async fn resize(
        &self,
        path: &NodePath,
        shape: Vec<u64>,
        precondition: Precondition,
    ) -> Result<UpdatedNode, NodeError> {
        self.nodes().resize(path, shape, precondition).await
    }

    /// Updates attributes of an array by a merge patch, like [`NodeClient::set_attributes`].
    pub async fn set_attributes(
        &self,
        path: &NodePath,
        attributes: Map<String, Value>,
        precondition: Precondition,
    ) -> Result<UpdatedNode, NodeError> {
        self.nodes().set_attributes(path, attributes, precondition).await
    }

    /// A client of the nodes of the same server and dialect, which shares the connections.
    pub fn nodes(&self) -> NodeClient {
        let nodes = NodeClient::from(Connection { transport: Arc::clone(&self.transport) });
        match self.dialect {
            Some(dialect) => nodes.with_dialect(dialect),
            None => nodes,
        }
    }

    /// Checks that elements have the data type of the array, since the server could not distinguish their bytes.
    async fn check_data_type(&self, path: &NodePath, elements: &NewElements) -> Result<(), ArrayError> {
        let Some(expected) = elements.data_type else { return Ok(()) };
        // The server reads only metadata for an empty selection, which an array without dimensions does not have.
        let description = match self.describe(path, select![0..0]).await {
            Err(ArrayError::SelectionMismatch { .. }) => self.describe(path, select![]).await?,
            description => description?,
        };
        if description.data_type.as_deref() == Some(expected) {
            return Ok(());
        }
        Err(ArrayError::DataType { expected, actual: description.data_type })
    }

    async fn collect<C: Collect>(
        &self,
        path: &NodePath,
        request: ReadRequest,
    ) -> Result<Elements<C::Content>, ArrayError> {
        let (transport, request) = (&self.transport, &self.request(path, request));
        transport
            .retry(Idempotency::Idempotent, |deadline| async move {
                request.elements(transport, deadline).await?.collect::<C>().await
            })
            .await
    }

    async fn collect_answer<C: Collect>(
        &self,
        path: &NodePath,
        query: &Query,
        format: Format,
    ) -> Result<Elements<C::Content>, ArrayError> {
        let request = &ElementsRequest::of_target(path, query.target(path, self.dialect, Some(format)));
        let transport = &self.transport;
        transport
            .retry(Idempotency::Idempotent, |deadline| async move {
                request.elements(transport, deadline).await?.collect::<C>().await
            })
            .await
    }

    /// The answer to a request, as JSON.
    async fn json<T: DeserializeOwned>(&self, path: &NodePath, target: String) -> Result<T, ArrayError> {
        let (transport, request) = (&self.transport, &ElementsRequest::of_target(path, target));
        transport.retry(Idempotency::Idempotent, |deadline| request.json(transport, deadline)).await
    }

    fn request(&self, path: &NodePath, request: ReadRequest) -> ElementsRequest {
        ElementsRequest::new(path, &request, self.dialect)
    }
}

impl From<Connection> for ArrayClient {
    fn from(connection: Connection) -> Self {
        Self { transport: connection.transport, dialect: None }
    }
}

impl fmt::Debug for ArrayClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ArrayClient");
        debug.field("base", self.base()).field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
