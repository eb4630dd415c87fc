//! The arrays of a server.

mod describe;
mod element;
mod error;
mod gather;
mod incoming;
mod input;
mod problem;
mod request;
mod write;

use std::{fmt, sync::Arc};

use meta::{
    Dialect, NodePath, select,
    selection::{ReadRequest, Selection},
};
use operations::WriteReport;
use serde_json::{Map, Value};
use store::{Precondition, Version};

#[cfg(feature = "ndarray")]
pub use self::element::NpyElement;
pub use self::{
    describe::{Description, Elements},
    element::Element,
    error::ArrayError,
    incoming::ElementStream,
    input::NewElements,
};
use self::{
    gather::{Gather, Numbers, Pieces},
    incoming::Incoming,
    request::Ask,
    write::Change,
};
use crate::{
    BaseUrl, BuildError, Changed, ClientBuilder, Connection, NodeClient, NodeError,
    failure::{Failure, Repeat},
    transport::{Clock, Transport},
};

/// The arrays of a zarrd server: their elements, whatever wrote them, without a Zarr library.
///
/// What is read or written is a [`Selection`], best written with [`select!`](crate::select); what is read may also be a [`ReadRequest`] of single points or of
/// selections that are stacked. Elements come in C order with every word little-endian.
///
/// A clone shares the connections, which are kept and used again. Each answer shows the array as of one commit, two answers perhaps as of
/// two; each write is one commit.
///
/// Readings are asked for again as told at [`Retries`](crate::Retries); an answer that breaks off is read anew, since a server cannot go on in
/// the middle of one. So are writes of a region without a condition, unless their elements come as a stream: written twice, they are what they are.
/// Appending, and what has a condition, is made again only where it is known not to have been done.
///
/// Redirections are not followed, and no content coding is asked for.
#[derive(Clone)]
pub struct ArrayClient {
    transport: Arc<Transport>,
    dialect: Option<Dialect>,
}

impl ArrayClient {
    /// The arrays of the server at `base`, with the options as they are without being asked for.
    pub fn new(base: BaseUrl) -> Result<Self, BuildError> {
        Self::builder(base).build()
    }

    /// Begins a client with other options.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }

    /// The same arrays, as nodes of one dialect: for paths that answer in several. Otherwise v3 goes before v2, and v2 before
    /// the draft.
    #[must_use]
    pub fn of_dialect(&self, dialect: Dialect) -> Self {
        Self { transport: Arc::clone(&self.transport), dialect: Some(dialect) }
    }

    /// Where the server is.
    pub fn base(&self) -> &BaseUrl {
        self.transport.base()
    }

    /// What [`read`](Self::read) would give, without its elements. Nothing is decoded for it.
    pub async fn describe(&self, path: &NodePath, selection: Selection) -> Result<Description, ArrayError> {
        let (ask, transport, clock) = self.ask(path, selection.into());
        patiently(transport, clock, || ask.describe(transport, clock)).await
    }

    /// Reads elements as bytes: in C order, every word little-endian. What they are tells the description.
    ///
    /// Elements of variable length (strings, byte strings) are preceded by their number as a `u32`, and each by its length in
    /// bytes as a `u32`; all of these numbers are little-endian. [`Elements::texts`] takes strings apart.
    pub async fn read(&self, path: &NodePath, what: impl Into<ReadRequest>) -> Result<Elements, ArrayError> {
        self.gathered::<Pieces>(path, what.into()).await
    }

    /// As [`read`](Self::read), or `None` where the answer's version is `known` still: that of the description which came with the
    /// same request earlier. A server decodes nothing to find that out.
    pub async fn read_unless(
        &self,
        path: &NodePath,
        what: impl Into<ReadRequest>,
        known: Version,
    ) -> Result<Option<Elements>, ArrayError> {
        let (ask, transport, clock) = self.ask(path, what.into());
        let ask = &ask;
        let attempt = || async move {
            match ask.elements_unless(transport, known, clock).await? {
                Some(incoming) => whole::<Pieces>(incoming).await.map(Some),
                None => Ok(None),
            }
        };
        patiently(transport, clock, attempt).await
    }

    /// Reads elements that are plain numbers as such.
    ///
    /// Fails with [`ArrayError::DataType`] where the array has others: nothing is converted.
    pub async fn read_as<T: Element>(
        &self,
        path: &NodePath,
        what: impl Into<ReadRequest>,
    ) -> Result<Elements<Vec<T>>, ArrayError> {
        self.gathered::<Numbers<T>>(path, what.into()).await
    }

    /// Reads elements piece by piece, as the bytes of [`read`](Self::read), in memory that does not grow with their number.
    ///
    /// The pieces are cut anywhere, also within an element. A stream that breaks off is not begun again, and fails with
    /// [`ArrayError::Broken`].
    pub async fn stream(&self, path: &NodePath, what: impl Into<ReadRequest>) -> Result<ElementStream, ArrayError> {
        let (ask, transport, clock) = self.ask(path, what.into());
        let incoming = patiently(transport, clock, || ask.elements(transport, clock)).await?;
        Ok(incoming.into_stream())
    }

    /// Writes elements to all that `selection` has of an array: all of them become visible at once, or none. Repeated indices are refused.
    ///
    /// `condition` must hold of the [version](crate::FoundNode::version) of the node, which is another one whenever its metadata is; [`Precondition::none`]
    /// always does.
    pub async fn write(
        &self,
        path: &NodePath,
        selection: Selection,
        elements: impl Into<NewElements>,
        condition: Precondition,
    ) -> Result<WriteReport, ArrayError> {
        let elements = elements.into();
        self.check(path, &elements).await?;
        let change = Change::region(path, &selection, self.dialect, condition);
        change.run(&self.transport, elements.format, elements.content).await
    }

    /// Grows an array along a dimension (negative from the end) and writes elements there. Nobody sees the one without the other.
    pub async fn append(
        &self,
        path: &NodePath,
        dimension: i64,
        elements: impl Into<NewElements>,
        condition: Precondition,
    ) -> Result<WriteReport, ArrayError> {
        let elements = elements.into();
        self.check(path, &elements).await?;
        let change = Change::append(path, dimension, self.dialect, condition);
        change.run(&self.transport, elements.format, elements.content).await
    }

    /// Gives an array another shape, as [`NodeClient::resize`] does.
    pub async fn resize(
        &self,
        path: &NodePath,
        shape: Vec<u64>,
        condition: Precondition,
    ) -> Result<Changed, NodeError> {
        self.nodes().resize(path, shape, condition).await
    }

    /// Changes attributes of an array by a merge patch, as [`NodeClient::set_attributes`] does.
    pub async fn set_attributes(
        &self,
        path: &NodePath,
        attributes: Map<String, Value>,
        condition: Precondition,
    ) -> Result<Changed, NodeError> {
        self.nodes().set_attributes(path, attributes, condition).await
    }

    /// The hierarchies that the arrays are in, over the same connections.
    pub fn nodes(&self) -> NodeClient {
        let nodes = NodeClient::from(Connection { transport: Arc::clone(&self.transport) });
        match self.dialect {
            Some(dialect) => nodes.of_dialect(dialect),
            None => nodes,
        }
    }

    /// Checks that elements are of the array's data type, since bytes of another one would be taken for it.
    async fn check(&self, path: &NodePath, elements: &NewElements) -> Result<(), ArrayError> {
        let Some(expected) = elements.data_type else { return Ok(()) };
        // Nothing is selected, so nothing but metadata is looked at; only an array without dimensions has no such selection.
        let described = match self.describe(path, select![0..0]).await {
            Err(ArrayError::UnfitSelection { .. }) => self.describe(path, select![]).await?,
            described => described?,
        };
        if described.data_type.as_deref() == Some(expected) {
            return Ok(());
        }
        Err(ArrayError::DataType { expected, found: described.data_type })
    }

    /// Reads all elements.
    async fn gathered<G: Gather>(
        &self,
        path: &NodePath,
        what: ReadRequest,
    ) -> Result<Elements<G::Content>, ArrayError> {
        let (ask, transport, clock) = self.ask(path, what);
        let ask = &ask;
        let attempt = || async move { whole::<G>(ask.elements(transport, clock).await?).await };
        patiently(transport, clock, attempt).await
    }

    /// What an operation that begins now asks, of whom, and how long that may take.
    fn ask(&self, path: &NodePath, what: ReadRequest) -> (Ask, &Transport, Clock) {
        (Ask::of(path, &what, self.dialect), &self.transport, self.transport.clock())
    }
}

/// Makes an attempt until it succeeds, or fails for good.
async fn patiently<T, F>(transport: &Transport, clock: Clock, attempt: impl Fn() -> F) -> Result<T, ArrayError>
where
    F: Future<Output = Result<T, Failure<ArrayError>>>,
{
    let mut schedule = transport.schedule(clock);
    loop {
        match attempt().await {
            Ok(found) => return Ok(found),
            Err(failure) => schedule.wait(failure, Repeat::Freely).await?,
        }
    }
}

/// Reads an answer to its end.
async fn whole<G: Gather>(mut incoming: Incoming) -> Result<Elements<G::Content>, Failure<ArrayError>> {
    let mut gather = G::begin(&incoming.description).map_err(Failure::answered)?;
    while let Some(piece) = incoming.piece().await? {
        gather.take(&piece).map_err(Failure::answered)?;
    }
    let content = gather.finish().map_err(Failure::answered)?;
    Ok(Elements { description: incoming.description, content })
}

impl From<Connection> for ArrayClient {
    fn from(connection: Connection) -> Self {
        Self { transport: connection.transport, dialect: None }
    }
}

impl fmt::Debug for ArrayClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ArrayClient");
        shown.field("base", self.base()).field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
