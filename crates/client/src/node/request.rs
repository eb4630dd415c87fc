//! Requests for nodes.

use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, ETAG},
};
use serde_json::Value;
use zarrd_meta::{
    Dialect, NodePath,
    convert::Loss,
    extensions::Link,
    json::{Json, Member},
};
use zarrd_operations::{AppendReport, BrokenNode, ConversionReport, Depth, LinkTarget, NodeInfo, PatchMode};
use zarrd_store::{Cursor, Key, KeyCount, Payload, Precondition, Version};
use zarrd_wire::{
    etag,
    headers::{self, NPZ_MEDIA_TYPES},
    listing::Erased,
    node::{self, AppendAnswer, ConvertReport, Source, ValidateReport},
    query::{Confirmation, Form, NodeDeleteQuery, NodePatchQuery, NodePostQuery, NodePutQuery, NodeQuery},
    routes,
};

use super::{
    Comparison, CreateOptions, CreateOutcome, CreateStatus, Members, NodeDocuments, NodeError, UpdatedNode, decode,
    problem,
};
use crate::{
    deadline::Deadline,
    error::RequestError,
    precondition::conditional,
    response::Response,
    retry::{FailedAttempt, Idempotency},
    transport::Transport,
    upload::Upload,
};

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 512 << 20;

type Attempt<T> = Result<T, FailedAttempt<NodeError>>;

/// A request for a node, which can be sent any number of times.
pub(super) struct NodeRequest {
    pub(super) path: NodePath,
    pub(super) dialect: Option<Dialect>,
}

impl NodeRequest {
    /// The query of a read, with defaults for everything except the dialect.
    pub(super) fn query(&self) -> NodeQuery {
        NodeQuery { dialect: self.dialect, ..NodeQuery::default() }
    }

    pub(super) async fn node(&self, transport: &Transport, query: &NodeQuery, deadline: Deadline) -> Attempt<NodeInfo> {
        Ok(self.members(transport, query, deadline).await?.node)
    }

    pub(super) async fn members(
        &self,
        transport: &Transport,
        query: &NodeQuery,
        deadline: Deadline,
    ) -> Attempt<Members> {
        let response = self.get(transport, query, deadline).await?;
        let version = version(&response);
        let relation = response.header(headers::DIALECTS_DIFFER).and_then(|relation| relation.parse().ok());
        let next = response.header(headers::CURSOR).map(Cursor::from_text);
        let (source, node) = Source::of_answer(&read_json(response).await?)
            .ok_or_else(|| RequestError::protocol("a node without its source"))?;
        let node = NodeInfo {
            path: path(&source.path)?,
            dialect: source.dialect,
            implicit: source.implicit,
            version,
            relation,
            zom: decode::zom(&node)?,
            other_dialects: source
                .other_dialects
                .iter()
                .map(|other| Ok((path(&other.path)?, other.dialect)))
                .collect::<Result<_, RequestError>>()?,
            broken: source.broken.into_iter().map(broken).collect::<Result<_, RequestError>>()?,
            losses: losses(&source.losses)?,
            links: source.links.into_iter().map(link).collect(),
        };
        Ok(Members { node, next })
    }

    pub(super) async fn documents(
        &self,
        transport: &Transport,
        depth: Depth,
        deadline: Deadline,
    ) -> Attempt<NodeDocuments> {
        let query = NodeQuery { depth, form: Form::Flat, ..self.query() };
        let response = self.get(transport, &query, deadline).await?;
        let (dialect, version) = (dialect(&response)?, version(&response));
        let documents = read_json(response).await?;
        let document = |member: Member| Some((member.name()?, member.value));
        Ok(NodeDocuments { dialect, version, documents: documents.members().filter_map(document).collect() })
    }

    pub(super) async fn exists(&self, transport: &Transport, deadline: Deadline) -> Attempt<bool> {
        let query = NodeQuery { depth: Depth::Levels(0), ..self.query() };
        let request = transport.request(Method::HEAD, &self.target(&query.render()));
        let response = transport.send(request, deadline).await?;
        match response.status() {
            StatusCode::OK => Ok(true),
            // A response to HEAD has no problem document, but zarrd adds a request ID.
            StatusCode::NOT_FOUND if response.header(headers::REQUEST_ID).is_some() => Ok(false),
            // The response to GET has a problem document.
            _ => self.get(transport, &query, deadline).await.map(|_| true),
        }
    }

    pub(super) async fn create(
        &self,
        transport: &Transport,
        body: Bytes,
        options: &CreateOptions,
        deadline: Deadline,
    ) -> Attempt<CreateOutcome> {
        let CreateOptions { if_exists, losses, precondition } = options;
        let query = NodePutQuery { dialect: self.dialect, if_exists: *if_exists, losses: *losses };
        let request = transport.request(Method::PUT, &self.target(&query.render())).header(CONTENT_TYPE, headers::JSON);
        let response = transport.send(conditional(request, precondition).body(body), deadline).await?;
        let status = match response.status() {
            StatusCode::CREATED => CreateStatus::Created,
            StatusCode::OK => CreateStatus::Existed,
            _ => return Err(self.failure(response).await),
        };
        Ok(CreateOutcome { status, node: updated_node(response).await? })
    }

    pub(super) async fn validate(&self, transport: &Transport, body: Bytes, deadline: Deadline) -> Attempt<Comparison> {
        let query = NodePostQuery::Validate { dialect: self.dialect };
        let request =
            transport.request(Method::POST, &self.target(&query.render())).header(CONTENT_TYPE, headers::JSON);
        let response = self.send(transport, request.body(body), deadline).await?;
        let ValidateReport { unchanged, differences, truncated } = response.json(MAX_RESPONSE_BYTES).await?;
        Ok(Comparison { unchanged, differences: differences.into_iter().map(Into::into).collect(), truncated })
    }

    pub(super) async fn patch(
        &self,
        transport: &Transport,
        (body, mode): (Bytes, PatchMode),
        precondition: &Precondition,
        deadline: Deadline,
    ) -> Attempt<UpdatedNode> {
        let query = NodePatchQuery { dialect: self.dialect, mode };
        let request = transport
            .request(Method::PATCH, &self.target(&query.render()))
            .header(CONTENT_TYPE, headers::MERGE_PATCH_JSON);
        let response = self.send(transport, conditional(request, precondition).body(body), deadline).await?;
        updated_node(response).await
    }

    pub(super) async fn erase(
        &self,
        transport: &Transport,
        precondition: &Precondition,
        deadline: Deadline,
    ) -> Attempt<KeyCount> {
        // The caller of a typed function passes the root on purpose.
        let confirm = if self.path.is_root() { Confirmation::All } else { Confirmation::Missing };
        let query = NodeDeleteQuery { dialect: self.dialect, confirm };
        let request = transport.request(Method::DELETE, &self.target(&query.render()));
        let response = self.send(transport, conditional(request, precondition), deadline).await?;
        Ok(response.json::<Erased>(MAX_RESPONSE_BYTES).await?.into())
    }

    pub(super) async fn convert(
        &self,
        transport: &Transport,
        query: &str,
        deadline: Deadline,
    ) -> Attempt<ConversionReport> {
        let request = transport.request(Method::POST, &self.target(query));
        let response = self.send(transport, request, deadline).await?;
        let ConvertReport { nodes, chunks, losses: lost } = response.json(MAX_RESPONSE_BYTES).await?;
        Ok(ConversionReport { nodes, chunks, losses: losses(&lost)? })
    }

    /// Appends to the arrays of the group.
    pub(super) async fn append(
        &self,
        transport: &Transport,
        query: &str,
        content: Payload,
    ) -> Result<AppendReport, NodeError> {
        // The server responds after it has encoded all chunks and committed them.
        let deadline = transport.start_deadline().for_long_work();
        let target = self.target(query);
        let build = || transport.request(Method::POST, &target).header(CONTENT_TYPE, NPZ_MEDIA_TYPES[0]);
        let bytes = match Upload::new(content, deadline).await? {
            Upload::Replayable(bytes) => bytes,
            Upload::Once(streamed) => {
                let response = streamed.send(build(), deadline).await?;
                return self.append_report(response).await.map_err(|failed| failed.error);
            }
        };
        let attempt = || {
            let request = build().body(bytes.clone());
            async { self.append_report(transport.send(request, deadline).await?).await }
        };
        transport.backoff(deadline).retry(Idempotency::NotIdempotent, attempt).await
    }

    async fn append_report(&self, response: Response) -> Attempt<AppendReport> {
        match response.status() {
            StatusCode::OK => Ok(response.json::<AppendAnswer>(MAX_RESPONSE_BYTES).await?.into()),
            _ => Err(self.failure(response).await),
        }
    }

    async fn get(&self, transport: &Transport, query: &NodeQuery, deadline: Deadline) -> Attempt<Response> {
        let request = transport.request(Method::GET, &self.target(&query.render()));
        self.send(transport, request, deadline).await
    }

    /// Sends a request whose response must have the status 200.
    async fn send(&self, transport: &Transport, request: RequestBuilder, deadline: Deadline) -> Attempt<Response> {
        let response = transport.send(request, deadline).await?;
        match response.status() {
            StatusCode::OK => Ok(response),
            _ => Err(self.failure(response).await),
        }
    }

    async fn failure(&self, response: Response) -> FailedAttempt<NodeError> {
        problem::into_failure(response.into_error_response().await, &self.path)
    }

    fn target(&self, query: &str) -> String {
        let separator = if query.is_empty() { "" } else { "?" };
        format!("{}{separator}{query}", routes::node_path(&self.path))
    }
}

/// Serializes a JSON value.
pub(super) fn to_bytes(value: &Value) -> Bytes {
    value.to_string().into()
}

async fn updated_node(response: Response) -> Attempt<UpdatedNode> {
    let (dialect, version) = (dialect(&response)?, version(&response));
    Ok(UpdatedNode { dialect, version, zom: decode::zom(&read_json(response).await?)? })
}

/// Reads a body as JSON, keeping its spelling.
async fn read_json(response: Response) -> Result<Json, RequestError> {
    let text = response.bytes(MAX_RESPONSE_BYTES).await?;
    Json::parse_document(text).map_err(|error| RequestError::protocol(format!("invalid JSON: {error}")))
}

fn version(response: &Response) -> Option<Version> {
    response.header(ETAG).and_then(etag::parse)
}

fn dialect(response: &Response) -> Result<Dialect, RequestError> {
    let dialect = response.header(headers::DIALECT).and_then(|name| name.parse().ok());
    dialect.ok_or_else(|| RequestError::protocol("a node without its dialect"))
}

fn path(text: &str) -> Result<NodePath, RequestError> {
    NodePath::parse(text).map_err(|error| RequestError::protocol(format!("invalid node path {text:?}: {error}")))
}

fn losses(losses: &[node::Loss]) -> Result<Vec<(NodePath, Loss)>, RequestError> {
    node::parse_losses(losses).map_err(|error| RequestError::protocol(format!("a loss has an invalid path: {error}")))
}

fn broken(node: node::BrokenNode) -> Result<BrokenNode, RequestError> {
    let node::BrokenNode { path: of, dialect, problem } = node;
    let node::BrokenDocument { key, reason } = problem;
    let key = Key::parse(&key).map_err(|error| RequestError::protocol(format!("invalid key {key:?}: {error}")))?;
    Ok(BrokenNode { path: path(&of)?, dialect, key, reason })
}

fn link(link: node::Link) -> (Link, LinkTarget) {
    let node::Link { extension, pointer, path, resolved } = link;
    (Link { extension, pointer, path }, resolved)
}
