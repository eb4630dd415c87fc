//! Requests for nodes.

use bytes::Bytes;
use meta::{
    Dialect, NodePath,
    convert::Loss,
    extensions::Link,
    json::{Json, Member},
};
use operations::{BrokenNode, ConversionReport, Depth, LinkTarget, NodeInfo};
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, ETAG},
};
use serde_json::Value;
use store::{Cursor, Key, KeyCount, Precondition, Version};
use wire::{
    etag, headers,
    listing::Erased,
    node::{self, ConvertReport, Source, ValidateReport},
    query::{Confirm, Form, NodeDeleteQuery, NodePatchQuery, NodePostQuery, NodePutQuery, NodeQuery},
    routes,
};

use super::{Changed, Comparison, CreateOptions, CreateOutcome, CreateStatus, Flat, Members, NodeError, problem, told};
use crate::{
    answer::Answer,
    failure::{Failure, Fault},
    transport::{Clock, Transport},
    write,
};

/// The longest answer about nodes that is read.
const MAX_ANSWER: usize = 512 << 20;

type Tried<T> = Result<T, Failure<NodeError>>;

/// A node that something is asked of.
pub(super) struct Asked {
    pub(super) path: NodePath,
    pub(super) dialect: Option<Dialect>,
}

impl Asked {
    /// The query of a reading that asks for nothing but the node of the dialect.
    pub(super) fn query(&self) -> NodeQuery {
        NodeQuery { dialect: self.dialect, ..NodeQuery::default() }
    }

    pub(super) async fn look(&self, transport: &Transport, query: &NodeQuery, clock: Clock) -> Tried<NodeInfo> {
        Ok(self.members(transport, query, clock).await?.node)
    }

    pub(super) async fn members(&self, transport: &Transport, query: &NodeQuery, clock: Clock) -> Tried<Members> {
        let answer = self.got(transport, Method::GET, query, clock).await?;
        let version = version(&answer);
        let next = answer.header(headers::CURSOR).map(Cursor::from_text);
        let (source, node) = Source::of_answer(&told(answer).await?)
            .ok_or_else(|| Fault::protocol("a node came without what is said of it"))?;
        let node = NodeInfo {
            path: path(&source.path)?,
            dialect: source.dialect,
            implicit: source.implicit,
            version,
            zom: told::zom(&node)?,
            other_dialects: source
                .other_dialects
                .iter()
                .map(|other| Ok((path(&other.path)?, other.dialect)))
                .collect::<Result<_, Fault>>()?,
            broken: source.broken.into_iter().map(broken).collect::<Result<_, Fault>>()?,
            losses: losses(source.losses)?,
            links: source.links.into_iter().map(link).collect(),
        };
        Ok(Members { node, next })
    }

    pub(super) async fn flat(&self, transport: &Transport, depth: Depth, clock: Clock) -> Tried<Flat> {
        let query = NodeQuery { depth, form: Form::Flat, ..self.query() };
        let answer = self.got(transport, Method::GET, &query, clock).await?;
        let (dialect, version) = (dialect(&answer)?, version(&answer));
        let documents = told(answer).await?;
        let document = |member: Member| Some((member.name()?, member.value));
        Ok(Flat { dialect, version, documents: documents.members().filter_map(document).collect() })
    }

    pub(super) async fn exists(&self, transport: &Transport, clock: Clock) -> Tried<bool> {
        let query = NodeQuery { depth: Depth::Levels(0), ..self.query() };
        let request = transport.request(Method::HEAD, &self.target(&query.render()));
        let answer = transport.send(request, clock).await?;
        match answer.status() {
            StatusCode::OK => Ok(true),
            // There is no document that says who answers, but our server gives each request an id.
            StatusCode::NOT_FOUND if answer.header(headers::REQUEST_ID).is_some() => Ok(false),
            // A `HEAD` does not say what is wrong.
            _ => self.got(transport, Method::GET, &query, clock).await.map(|_| true),
        }
    }

    pub(super) async fn create(
        &self,
        transport: &Transport,
        body: Bytes,
        options: &CreateOptions,
        clock: Clock,
    ) -> Tried<CreateOutcome> {
        let CreateOptions { if_exists, losses, precondition } = options;
        let query = NodePutQuery { dialect: self.dialect, if_exists: *if_exists, losses: *losses };
        let request = transport.request(Method::PUT, &self.target(&query.render())).header(CONTENT_TYPE, headers::JSON);
        let answer = transport.send(write::conditional(request, precondition).body(body), clock).await?;
        let status = match answer.status() {
            StatusCode::CREATED => CreateStatus::Created,
            StatusCode::OK => CreateStatus::Existed,
            _ => return Err(self.refused(answer).await),
        };
        Ok(CreateOutcome { status, node: changed(answer).await? })
    }

    pub(super) async fn validate(&self, transport: &Transport, body: Bytes, clock: Clock) -> Tried<Comparison> {
        let query = NodePostQuery::Validate { dialect: self.dialect };
        let request =
            transport.request(Method::POST, &self.target(&query.render())).header(CONTENT_TYPE, headers::JSON);
        let answer = self.done(transport, request.body(body), clock).await?;
        let ValidateReport { unchanged, differences, truncated } = answer.json(MAX_ANSWER).await?;
        Ok(Comparison { unchanged, differences: differences.into_iter().map(Into::into).collect(), truncated })
    }

    pub(super) async fn patch(
        &self,
        transport: &Transport,
        body: Bytes,
        condition: &Precondition,
        clock: Clock,
    ) -> Tried<Changed> {
        let query = NodePatchQuery { dialect: self.dialect };
        let request = transport
            .request(Method::PATCH, &self.target(&query.render()))
            .header(CONTENT_TYPE, headers::MERGE_PATCH_JSON);
        let answer = self.done(transport, write::conditional(request, condition).body(body), clock).await?;
        changed(answer).await
    }

    pub(super) async fn erase(&self, transport: &Transport, condition: &Precondition, clock: Clock) -> Tried<KeyCount> {
        // Whoever names the root in a typed call means it.
        let confirm = if self.path.is_root() { Confirm::All } else { Confirm::Unsaid };
        let query = NodeDeleteQuery { dialect: self.dialect, confirm };
        let request = transport.request(Method::DELETE, &self.target(&query.render()));
        let answer = self.done(transport, write::conditional(request, condition), clock).await?;
        Ok(answer.json::<Erased>(MAX_ANSWER).await?.into())
    }

    pub(super) async fn convert(&self, transport: &Transport, query: &str, clock: Clock) -> Tried<ConversionReport> {
        let request = transport.request(Method::POST, &self.target(query));
        let answer = self.done(transport, request, clock).await?;
        let ConvertReport { nodes, chunks, losses: lost } = answer.json(MAX_ANSWER).await?;
        Ok(ConversionReport { nodes, chunks, losses: losses(lost)? })
    }

    async fn got(&self, transport: &Transport, method: Method, query: &NodeQuery, clock: Clock) -> Tried<Answer> {
        let request = transport.request(method, &self.target(&query.render()));
        self.done(transport, request, clock).await
    }

    async fn done(&self, transport: &Transport, request: RequestBuilder, clock: Clock) -> Tried<Answer> {
        let answer = transport.send(request, clock).await?;
        match answer.status() {
            StatusCode::OK => Ok(answer),
            _ => Err(self.refused(answer).await),
        }
    }

    async fn refused(&self, answer: Answer) -> Failure<NodeError> {
        problem::into_failure(answer.into_problem().await, &self.path)
    }

    fn target(&self, query: &str) -> String {
        let question = if query.is_empty() { "" } else { "?" };
        format!("{}{question}{query}", routes::node_path(&self.path))
    }
}

/// The text of a JSON value.
pub(super) fn json(value: &Value) -> Bytes {
    value.to_string().into()
}

async fn changed(answer: Answer) -> Tried<Changed> {
    let (dialect, version) = (dialect(&answer)?, version(&answer));
    Ok(Changed { dialect, version, zom: told::zom(&told(answer).await?)? })
}

/// The text of an answer about nodes.
async fn told(answer: Answer) -> Result<Json, Fault> {
    let text = answer.bytes(MAX_ANSWER).await?;
    Json::parse_document(text).map_err(|error| Fault::protocol(format!("an answer came that is not JSON: {error}")))
}

fn version(answer: &Answer) -> Option<Version> {
    answer.header(ETAG).and_then(etag::parse)
}

fn dialect(answer: &Answer) -> Result<Dialect, Fault> {
    let dialect = answer.header(headers::DIALECT).and_then(|name| name.parse().ok());
    dialect.ok_or_else(|| Fault::protocol("a node came without its dialect"))
}

fn path(text: &str) -> Result<NodePath, Fault> {
    NodePath::parse(text).map_err(|error| Fault::protocol(format!("{text:?} is not the path of a node: {error}")))
}

fn losses(told: Vec<node::Loss>) -> Result<Vec<(NodePath, Loss)>, Fault> {
    told.into_iter()
        .map(|node::Loss { path: at, pointer, property }| Ok((path(&at)?, Loss { pointer, property })))
        .collect()
}

fn broken(told: node::BrokenNode) -> Result<BrokenNode, Fault> {
    let node::BrokenNode { path: at, dialect, problem } = told;
    let node::BrokenDocument { key, reason } = problem;
    let key = Key::parse(&key).map_err(|error| Fault::protocol(format!("{key:?} is not a key: {error}")))?;
    Ok(BrokenNode { path: path(&at)?, dialect, key, reason })
}

fn link(link: node::Link) -> (Link, LinkTarget) {
    let node::Link { extension, pointer, path, resolved } = link;
    (Link { extension, pointer, path }, resolved)
}
