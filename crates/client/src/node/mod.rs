//! The hierarchies of a server.

mod error;
mod found;
mod problem;
mod request;
mod told;

use std::{fmt, sync::Arc};

use futures::{Stream, stream};
use meta::{
    Dialect, NodePath,
    zom::{self, Zom},
};
use operations::{ConversionReport, ConvertOptions, Depth, NodeInfo};
use serde_json::{Map, Value};
use store::{Cursor, KeyCount, Precondition};
use wire::query::{Include, MembersPage, NodePostQuery};

use self::request::Asked;
pub use self::{
    error::NodeError,
    found::{Changed, Child, Comparison, CreateOptions, CreateOutcome, CreateStatus, Flat, Kind, Members, Patch},
};
use crate::{
    BaseUrl, BuildError, ClientBuilder, Connection,
    failure::{Failure, Repeat},
    transport::{Clock, Transport},
};

/// The hierarchies of a zarrd server: what nodes there are, and changing that.
///
/// Structure is a [`Zom`]: a node's document with those of its members, in the model of v2 or of v3.
///
/// A clone shares the connections, which are kept and used again. What only reads is asked again as told at
/// [`Retries`](crate::Retries). Of what changes something, a declaration that keeps what is there, and a patch of attributes or names
/// alone, are as well, unless they have a condition: made twice they do what they do once. Everything else is asked again only where it is known not to
/// have been done.
#[derive(Clone)]
pub struct NodeClient {
    transport: Arc<Transport>,
    dialect: Option<Dialect>,
}

impl NodeClient {
    /// The hierarchies of the server at `base`, with the options as they are without being asked for.
    pub fn new(base: BaseUrl) -> Result<Self, BuildError> {
        Self::builder(base).build()
    }

    /// Begins a client with other options.
    pub fn builder(base: BaseUrl) -> ClientBuilder<Self> {
        ClientBuilder::new(base)
    }

    /// The same hierarchies, as nodes of one dialect: for paths that answer in several. Otherwise v3 goes before v2, and v2 before
    /// the draft. What is declared is stored in this dialect.
    #[must_use]
    pub fn of_dialect(&self, dialect: Dialect) -> Self {
        Self { transport: Arc::clone(&self.transport), dialect: Some(dialect) }
    }

    /// Where the server is.
    pub fn base(&self) -> &BaseUrl {
        self.transport.base()
    }

    /// The node at a path, with its members to a depth, by the model of its own dialect. Nodes of another dialect are
    /// [told apart](NodeInfo::other_dialects). What is nested so deep that JSON would not be read, some 60 levels, is to be asked for in steps.
    pub async fn node(&self, path: &NodePath, depth: Depth) -> Result<NodeInfo, NodeError> {
        self.look(path, depth, None).await
    }

    /// The same by the model of `version`, whatever dialect it is stored in. What that does not say is [told](NodeInfo::losses).
    pub async fn node_as(&self, path: &NodePath, depth: Depth, version: zom::ZomFormat) -> Result<NodeInfo, NodeError> {
        self.look(path, depth, Some(version)).await
    }

    /// The documents of a node and of those below it to a depth, by their path from the node on: the empty text for itself, `/a/b` for
    /// others. That is consolidated metadata.
    pub async fn flat(&self, path: &NodePath, depth: Depth) -> Result<Flat, NodeError> {
        let asked = self.asked(path);
        let asked = &asked;
        self.patiently(Repeat::Freely, |clock| asked.flat(&self.transport, depth, clock)).await
    }

    /// True if there is a node at a path.
    pub async fn exists(&self, path: &NodePath) -> Result<bool, NodeError> {
        let asked = self.asked(path);
        let asked = &asked;
        self.patiently(Repeat::Freely, |clock| asked.exists(&self.transport, clock)).await
    }

    /// What is directly below a node, sorted by name; of every dialect.
    pub async fn children(&self, path: &NodePath) -> Result<Vec<Child>, NodeError> {
        Ok(found::children_of(self.node(path, Depth::Levels(1)).await?))
    }

    /// The node at a path with a page of its members, at most `limit` from 1 to 10,000, from the cursor of the page before on: for groups of more members than one
    /// answer has. Each page is as of one commit, and pages may be of different ones. A page may have fewer members than `limit`, and none; the last
    /// has no [`next`](Members::next).
    pub async fn members(&self, path: &NodePath, limit: usize, cursor: Option<Cursor>) -> Result<Members, NodeError> {
        let asked = self.asked(path);
        let page = Some(MembersPage { limit, cursor });
        let query = wire::query::NodeQuery { page, include: Include::Source, ..asked.query() };
        let (asked, query) = (&asked, &query);
        self.patiently(Repeat::Freely, |clock| asked.members(&self.transport, query, clock)).await
    }

    /// All pages of the members of a group, as [`members`](Self::members) gives them, fetched one after the other as the stream is polled.
    pub fn member_pages(
        &self,
        path: &NodePath,
        limit: usize,
    ) -> impl Stream<Item = Result<NodeInfo, NodeError>> + Send + use<> {
        let (client, path) = (self.clone(), path.clone());
        stream::try_unfold(Some(None), move |at| {
            let (client, path) = (client.clone(), path.clone());
            async move {
                let Some(cursor) = at else { return Ok(None) };
                let Members { node, next } = client.members(&path, limit, cursor).await?;
                Ok(Some((node, next.map(Some))))
            }
        })
    }

    /// What is below a node, sorted by path; of every dialect, but not what is below a node of another dialect than this one.
    pub async fn descendants(&self, path: &NodePath) -> Result<Vec<Child>, NodeError> {
        Ok(found::children_of(self.node(path, Depth::All).await?))
    }

    /// Creates a hierarchy in one commit. If an equal one exists, nothing is changed.
    ///
    /// Fails with [`NodeError::Differs`] if a different node exists, unless [`CreateOptions::if_exists`] replaces it.
    pub async fn create(
        &self,
        path: &NodePath,
        zom: &Zom,
        options: &CreateOptions,
    ) -> Result<CreateOutcome, NodeError> {
        let (asked, body) = (self.asked(path), zom.to_text().to_bytes());
        let (asked, body) = (&asked, &body);
        self.patiently(options.repeat(), |clock| asked.create(&self.transport, body.clone(), options, clock.patient()))
            .await
    }

    /// Compares what is at a path with a tree.
    pub async fn validate(&self, path: &NodePath, zom: &Zom) -> Result<Comparison, NodeError> {
        let (asked, body) = (self.asked(path), zom.to_text().to_bytes());
        let (asked, body) = (&asked, &body);
        self.patiently(Repeat::Freely, |clock| asked.validate(&self.transport, body.clone(), clock)).await
    }

    /// Changes what is said of a node.
    pub async fn patch(&self, path: &NodePath, patch: &Patch, condition: Precondition) -> Result<Changed, NodeError> {
        let (asked, body) = (self.asked(path), request::json(&patch.to_json()));
        let (asked, body, condition) = (&asked, &body, &condition);
        self.patiently(patch.repeat(condition), |clock| {
            asked.patch(&self.transport, body.clone(), condition, clock.patient())
        })
        .await
    }

    /// Changes attributes by a merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)): `null` takes one away.
    pub async fn set_attributes(
        &self,
        path: &NodePath,
        attributes: Map<String, Value>,
        condition: Precondition,
    ) -> Result<Changed, NodeError> {
        let patch = Patch { attributes: Some(attributes), ..Patch::default() };
        self.patch(path, &patch, condition).await
    }

    /// Gives an array another shape. Chunks that a smaller one leaves outside are erased.
    pub async fn resize(
        &self,
        path: &NodePath,
        shape: Vec<u64>,
        condition: Precondition,
    ) -> Result<Changed, NodeError> {
        self.patch(path, &Patch { shape: Some(shape), ..Patch::default() }, condition).await
    }

    /// Erases a node and all that is below it, and gives the number of its keys.
    pub async fn erase(&self, path: &NodePath, condition: Precondition) -> Result<KeyCount, NodeError> {
        let (asked, condition) = (self.asked(path), &condition);
        let asked = &asked;
        self.patiently(Repeat::IfNotDone, |clock| asked.erase(&self.transport, condition, clock.patient())).await
    }

    /// Converts a hierarchy to another dialect.
    pub async fn convert(&self, path: &NodePath, options: &ConvertOptions) -> Result<ConversionReport, NodeError> {
        let ConvertOptions { dialect: into, target } = options.clone();
        let query = NodePostQuery::Convert { dialect: self.dialect, into, target };
        let (asked, query) = (self.asked(path), query.render());
        let (asked, query) = (&asked, &query);
        self.patiently(Repeat::IfNotDone, |clock| asked.convert(&self.transport, query, clock.patient())).await
    }

    async fn look(&self, path: &NodePath, depth: Depth, mapped: Option<zom::ZomFormat>) -> Result<NodeInfo, NodeError> {
        let asked = self.asked(path);
        let query = wire::query::NodeQuery { depth, mapped, include: Include::Source, ..asked.query() };
        let (asked, query) = (&asked, &query);
        self.patiently(Repeat::Freely, |clock| asked.look(&self.transport, query, clock)).await
    }

    fn asked(&self, path: &NodePath) -> Asked {
        Asked { path: path.clone(), dialect: self.dialect }
    }

    /// Makes an attempt until it succeeds, or fails for good.
    async fn patiently<T, F>(&self, repeat: Repeat, attempt: impl Fn(Clock) -> F) -> Result<T, NodeError>
    where
        F: Future<Output = Result<T, Failure<NodeError>>>,
    {
        let clock = self.transport.clock();
        let mut schedule = self.transport.schedule(clock);
        loop {
            match attempt(clock).await {
                Ok(done) => return Ok(done),
                Err(failure) => schedule.wait(failure, repeat).await?,
            }
        }
    }
}

impl From<Connection> for NodeClient {
    fn from(connection: Connection) -> Self {
        Self { transport: connection.transport, dialect: None }
    }
}

impl fmt::Debug for NodeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("NodeClient");
        shown.field("base", self.base()).field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
