//! The node client.

mod decode;
mod error;
mod options;
mod problem;
mod request;

use std::{fmt, sync::Arc};

use futures::{Stream, stream};
use serde_json::{Map, Value};
use zarrd_meta::{
    Dialect, NodePath,
    zom::{self, Zom},
};
use zarrd_operations::{AppendReport, ConversionReport, ConvertOptions, Depth, NodeInfo};
use zarrd_store::{Cursor, KeyCount, Payload, Precondition};
use zarrd_wire::query::{AppendQuery, Include, MembersPage, NodePostQuery, NodeQuery};

use self::request::NodeRequest;
pub use self::{
    error::NodeError,
    options::{
        AppendOptions, Comparison, CreateOptions, CreateOutcome, CreateStatus, Members, NodeDocuments, NodeEntry,
        NodeKind, Patch, UpdatedNode,
    },
};
use crate::{BaseUrl, BuildError, ClientBuilder, Connection, retry::Idempotency, transport::Transport};

/// Client of the hierarchies of a zarrd server: reads, creates, changes and converts nodes.
///
/// A hierarchy is a [`Zom`]: the metadata document of a node with those of its members, in the model of v2 or of v3.
///
/// Clones share one pool of connections. [`Retries`](crate::Retries) apply to reads, and to two kinds of changes that
/// are idempotent as long as they have no precondition: creations that do not replace an existing node, and patches
/// without a shape. All other changes are retried only if they are known not to have been executed.
#[derive(Clone)]
pub struct NodeClient {
    transport: Arc<Transport>,
    dialect: Option<Dialect>,
}

impl NodeClient {
    /// Creates a client of the server at `base`, with default options.
    pub fn new(base: BaseUrl) -> Result<Self, BuildError> {
        Self::builder(base).build()
    }

    /// Returns a builder of a client with other options.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }

    /// Returns a client of the nodes of one dialect, for paths with nodes of several. By default v3 takes precedence
    /// over v2, and v2 over the draft. New nodes are stored in this dialect.
    #[must_use]
    pub fn with_dialect(&self, dialect: Dialect) -> Self {
        Self { transport: Arc::clone(&self.transport), dialect: Some(dialect) }
    }

    /// URL of the server.
    pub fn base(&self) -> &BaseUrl {
        self.transport.base()
    }

    /// Returns the node at a path, with its members down to a depth, in the model of its dialect. Nodes of another
    /// dialect are listed [separately](NodeInfo::other_dialects). Hierarchies that are too deep for nested JSON, about
    /// 60 levels, must be read in steps.
    pub async fn node(&self, path: &NodePath, depth: Depth) -> Result<NodeInfo, NodeError> {
        self.read(path, depth, None).await
    }

    /// Returns the node at a path in the model of `format`, whatever its dialect, and the
    /// [information that this model cannot represent](NodeInfo::losses).
    pub async fn node_as(&self, path: &NodePath, depth: Depth, format: zom::ZomFormat) -> Result<NodeInfo, NodeError> {
        self.read(path, depth, Some(format)).await
    }

    /// Returns the metadata documents of a node and of its descendants down to a depth, by relative path: the empty
    /// string for the node itself, `/a/b` for a descendant. This is the content of consolidated metadata.
    pub async fn documents(&self, path: &NodePath, depth: Depth) -> Result<NodeDocuments, NodeError> {
        let (transport, request) = (&self.transport, &self.request(path));
        transport.retry(Idempotency::Idempotent, |deadline| request.documents(transport, depth, deadline)).await
    }

    /// Returns true if a node exists at a path.
    pub async fn exists(&self, path: &NodePath) -> Result<bool, NodeError> {
        let (transport, request) = (&self.transport, &self.request(path));
        transport.retry(Idempotency::Idempotent, |deadline| request.exists(transport, deadline)).await
    }

    /// Lists the nodes of all dialects directly below a node, sorted by name.
    pub async fn children(&self, path: &NodePath) -> Result<Vec<NodeEntry>, NodeError> {
        Ok(options::into_entries(self.node(path, Depth::Levels(1)).await?))
    }

    /// Returns the node at a path with one page of its members, for groups with more members than fit into one
    /// response.
    ///
    /// A page has at most `limit` members, from 1 to 10,000, and begins at the cursor of the previous page. It may have
    /// fewer, or none; the last page has no [`next`](Members::next). Each page shows one commit, but different pages
    /// may show different ones.
    pub async fn members(&self, path: &NodePath, limit: usize, cursor: Option<Cursor>) -> Result<Members, NodeError> {
        let (transport, request) = (&self.transport, &self.request(path));
        let page = Some(MembersPage { limit, cursor });
        let query = &NodeQuery { page, include: Include::Source, ..request.query() };
        transport.retry(Idempotency::Idempotent, |deadline| request.members(transport, query, deadline)).await
    }

    /// Returns a stream of all pages of [`members`](Self::members), which requests each page when it is polled.
    pub fn member_pages(
        &self,
        path: &NodePath,
        limit: usize,
    ) -> impl Stream<Item = Result<NodeInfo, NodeError>> + Send + use<> {
        let (client, path) = (self.clone(), path.clone());
        stream::try_unfold(Some(None), move |next| {
            let (client, path) = (client.clone(), path.clone());
            async move {
                let Some(cursor) = next else { return Ok(None) };
                let Members { node, next } = client.members(&path, limit, cursor).await?;
                Ok(Some((node, next.map(Some))))
            }
        })
    }

    /// Lists all descendants of a node, sorted by path. Nodes of another dialect than this one are included, but not
    /// their descendants.
    pub async fn descendants(&self, path: &NodePath) -> Result<Vec<NodeEntry>, NodeError> {
        Ok(options::into_entries(self.node(path, Depth::All).await?))
    }

    /// Creates a hierarchy in one commit. If an equal one exists, nothing is changed.
    ///
    /// Fails with [`NodeRejection::NodeConflict`](crate::NodeRejection::NodeConflict) if a different one exists, unless
    /// [`CreateOptions::if_exists`] replaces it.
    pub async fn create(
        &self,
        path: &NodePath,
        zom: &Zom,
        options: &CreateOptions,
    ) -> Result<CreateOutcome, NodeError> {
        let (transport, request, body) = (&self.transport, &self.request(path), &zom.to_text().to_bytes());
        transport
            .retry(options.idempotency(), |deadline| {
                request.create(transport, body.clone(), options, deadline.for_long_work())
            })
            .await
    }

    /// Compares the hierarchy at a path with a given one.
    pub async fn validate(&self, path: &NodePath, zom: &Zom) -> Result<Comparison, NodeError> {
        let (transport, request, body) = (&self.transport, &self.request(path), &zom.to_text().to_bytes());
        transport.retry(Idempotency::Idempotent, |deadline| request.validate(transport, body.clone(), deadline)).await
    }

    /// Updates the metadata of a node.
    pub async fn patch(
        &self,
        path: &NodePath,
        patch: &Patch,
        precondition: Precondition,
    ) -> Result<UpdatedNode, NodeError> {
        let (transport, request, body) = (&self.transport, &self.request(path), &request::to_bytes(&patch.to_json()));
        let precondition = &precondition;
        transport
            .retry(patch.idempotency(precondition), |deadline| {
                request.patch(transport, (body.clone(), patch.mode), precondition, deadline.for_long_work())
            })
            .await
    }

    /// Updates attributes by a merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)): `null` removes an
    /// attribute.
    pub async fn set_attributes(
        &self,
        path: &NodePath,
        attributes: Map<String, Value>,
        precondition: Precondition,
    ) -> Result<UpdatedNode, NodeError> {
        let patch = Patch { attributes: Some(attributes), ..Patch::default() };
        self.patch(path, &patch, precondition).await
    }

    /// Changes the shape of an array. Chunks outside of the new shape are erased.
    pub async fn resize(
        &self,
        path: &NodePath,
        shape: Vec<u64>,
        precondition: Precondition,
    ) -> Result<UpdatedNode, NodeError> {
        self.patch(path, &Patch { shape: Some(shape), ..Patch::default() }, precondition).await
    }

    /// Erases a node with all its descendants, and returns the number of erased keys.
    pub async fn erase(&self, path: &NodePath, precondition: Precondition) -> Result<KeyCount, NodeError> {
        let (transport, request, precondition) = (&self.transport, &self.request(path), &precondition);
        transport
            .retry(Idempotency::NotIdempotent, |deadline| {
                request.erase(transport, precondition, deadline.for_long_work())
            })
            .await
    }

    /// Converts a hierarchy to another dialect.
    pub async fn convert(&self, path: &NodePath, options: &ConvertOptions) -> Result<ConversionReport, NodeError> {
        let ConvertOptions { dialect: into, target, losses, existing } = options.clone();
        let query = NodePostQuery::Convert { dialect: self.dialect, into, target, existing, losses };
        let (transport, request, query) = (&self.transport, &self.request(path), &query.render());
        transport
            .retry(Idempotency::NotIdempotent, |deadline| request.convert(transport, query, deadline.for_long_work()))
            .await
    }

    /// Appends to all arrays of a group over a dimension, in one commit: they grow together, or not at all.
    ///
    /// The content is an `.npz` file, as `numpy.savez` writes it, with an array for each one directly in the group that
    /// has the dimension, its coordinate among them. It may be a stream of any length.
    ///
    /// An append is retried only if it is known not to have been executed. Repeating one that was executed fails with
    /// [`NodeError::Discontinuous`] if the dimension has a coordinate.
    pub async fn append(
        &self,
        group: &NodePath,
        dimension: &str,
        content: impl Into<Payload>,
        options: &AppendOptions,
    ) -> Result<AppendReport, NodeError> {
        let AppendOptions { casting, decode } = *options;
        let query = AppendQuery { dimension: dimension.to_owned(), decode, casting, dialect: self.dialect };
        self.request(group).append(&self.transport, &query.render(), content.into()).await
    }

    async fn read(&self, path: &NodePath, depth: Depth, mapped: Option<zom::ZomFormat>) -> Result<NodeInfo, NodeError> {
        let (transport, request) = (&self.transport, &self.request(path));
        let query = &NodeQuery { depth, mapped, include: Include::Source, ..request.query() };
        transport.retry(Idempotency::Idempotent, |deadline| request.node(transport, query, deadline)).await
    }

    fn request(&self, path: &NodePath) -> NodeRequest {
        NodeRequest { path: path.clone(), dialect: self.dialect }
    }
}

impl From<Connection> for NodeClient {
    fn from(connection: Connection) -> Self {
        Self { transport: connection.transport, dialect: None }
    }
}

impl fmt::Debug for NodeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("NodeClient");
        debug.field("base", self.base()).field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
