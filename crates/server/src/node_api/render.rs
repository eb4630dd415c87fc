//! Rendering of nodes as JSON.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY},
};
use serde_json::json;
use zarrd_array::{DescribedNode, Permit, undecoded};
use zarrd_executor::{Cost, Work};
use zarrd_meta::{Dialect, NodePath, ome::Image, zom::Node};
use zarrd_operations::{Depth, LinkTarget, NodeInfo};
use zarrd_store::{Scanned, Version};
use zarrd_wire::{
    etag,
    headers::{BROKEN, CONSISTENCY, DIALECT, DIALECTS_DIFFER, JSON, LOSSES, OTHER_DIALECTS},
    node::{BrokenDocument, BrokenNode, FileEntry, Link, OtherNode, Source, render_losses},
    problem::{Members, Problem, ProblemType},
    query::{Form, Include, NodeQuery},
};

use crate::{
    content_encoding::{self, ContentEncoding},
    engine::Engine,
    error::ApiError,
    extract::{ConditionOutcome, ContentNegotiation, TagConditions},
    headers::{REVALIDATE, consistency, dialects_differ},
};

/// The largest response, in bytes, that is sent without a memory permit.
const UNRESERVED_RESPONSE_LIMIT: u64 = 64 << 10;
/// The overhead of a member in addition to its name and its own members, in bytes.
const MEMBER_OVERHEAD_BYTES: usize = 32;
/// The overhead of a broken node in addition to its texts, in bytes.
const BROKEN_NODE_OVERHEAD_BYTES: u64 = 160;
/// The memory of a listed child of another dialect in addition to its path, in bytes.
const OTHER_NODE_BYTES: u64 = 512;
/// The memory of a listed file or folder in addition to its key, in bytes.
const FILE_ENTRY_BYTES: u64 = 320;
const VARY_ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("accept-encoding");

/// Renders nodes in the requested form.
#[derive(Clone, Copy)]
pub(super) struct NodeRenderer {
    depth: Depth,
    form: Form,
    include: Include,
    encoding: ContentEncoding,
}

impl NodeRenderer {
    /// Renders in the form that the query requests.
    pub(super) fn new(query: &NodeQuery, negotiation: &ContentNegotiation) -> Self {
        Self { depth: query.depth, form: query.form, include: query.include, encoding: negotiation.encoding() }
    }

    /// Renders the full tree.
    pub(super) fn full_tree(negotiation: &ContentNegotiation) -> Self {
        Self { depth: Depth::All, form: Form::Tree, include: Include::Nothing, encoding: negotiation.encoding() }
    }

    /// Responds with the node, or 304 if the client has it.
    pub(super) async fn respond(
        self,
        engine: &Engine,
        node: DescribedNode,
        conditions: &TagConditions,
    ) -> Result<Response, ApiError> {
        match conditions.evaluate(node.version) {
            ConditionOutcome::PreconditionFailed => {
                let members = Members { current: node.version.map(etag::text), ..path_members(&node.path) };
                Err(ApiError::new(Problem::new(ProblemType::PreconditionFailed).with_members(members)))
            }
            ConditionOutcome::NotModified if self.is_single_node(&node) => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                validators(node.version, response.headers_mut());
                Ok(response)
            }
            ConditionOutcome::NotModified | ConditionOutcome::Proceed => {
                // The node already holds memory, so this must not wait. It is still required, because a slow client
                // retains the response for long.
                let memory = match self.memory_estimate(&node) {
                    ..=UNRESERVED_RESPONSE_LIMIT => None,
                    memory_estimate => Some(engine.claim.try_take(memory_estimate)?),
                };
                let (node, headers, body) = self.render(engine, node).await?;
                let body = match memory {
                    Some(memory) => memory.attach_to(body),
                    None => body,
                };
                drop(node);
                Ok(response_with(headers, body))
            }
        }
    }

    /// Renders a node after a change. The request's permit is held until the response is sent.
    pub(super) async fn render_changed(
        self,
        engine: &Engine,
        node: DescribedNode,
        memory: Option<Permit>,
    ) -> Result<Response, ApiError> {
        let (_, headers, body) = self.render(engine, node).await?;
        let body = match memory {
            Some(mut memory) => {
                memory.shrink_to(body.len() as u64);
                memory.attach_to(body)
            }
            None => body,
        };
        Ok(response_with(headers, body))
    }

    /// Returns the headers and the body, and the node, which holds the memory of the text.
    async fn render(
        self,
        engine: &Engine,
        mut node: DescribedNode,
    ) -> Result<(DescribedNode, HeaderMap, Bytes), ApiError> {
        // `source` lists them itself.
        if self.include == Include::Nothing && !node.other_dialects.is_empty() {
            let nodes = json!(node.other_dialects.iter().map(other_node).collect::<Vec<_>>());
            node.info.zom.root.list_other_dialects(nodes);
        }
        let mut headers = HeaderMap::new();
        validators(node.version, &mut headers);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(DIALECT, HeaderValue::from_static(node.dialect.name()));
        headers.insert(CONSISTENCY, consistency(&engine.app, &node.path));
        headers.extend(dialects_differ(node.relation).map(|differ| (DIALECTS_DIFFER, differ)));
        for (name, count) in
            [(LOSSES, node.losses.len()), (BROKEN, node.broken.len()), (OTHER_DIALECTS, node.other_dialects.len())]
        {
            if count > 0 {
                headers.insert(name, HeaderValue::from(count));
            }
        }
        let len = json_len_estimate(&node.zom.root, self.form, 0);
        let serialize = move || self.serialize(&node).map(|(body, encoding)| (node, body, encoding));
        let cost = Cost::of(Work::Documents, len as u64);
        let (node, body, encoding) = engine.arrays.run(cost, serialize).await??;
        headers.extend(encoding.header().map(|encoding| (CONTENT_ENCODING, encoding)));
        Ok((node, headers, body))
    }

    /// True if the response depends only on the documents of the node itself, which its entity tag covers.
    fn is_single_node(self, node: &NodeInfo) -> bool {
        let alone = self.depth == Depth::Levels(0) || matches!(node.zom.root, Node::Array(_));
        alone && self.include == Include::Nothing
    }

    /// Estimates the memory for rendering the node, in bytes.
    fn memory_estimate(self, node: &DescribedNode) -> u64 {
        let len = json_len_estimate(&node.zom.root, self.form, 0) as u64;
        let file = |entry: &Scanned| FILE_ENTRY_BYTES.saturating_add(entry.as_str().len() as u64);
        let other = |(path, _): &(NodePath, Dialect)| OTHER_NODE_BYTES.saturating_add(path.relative().len() as u64);
        let broken = |node: &zarrd_operations::BrokenNode| {
            let texts = [node.path.relative(), node.key.as_str(), &node.reason];
            texts.iter().map(|text| text.len() as u64).fold(BROKEN_NODE_OVERHEAD_BYTES, u64::saturating_add)
        };
        match self.include {
            Include::Nothing => node.other_dialects.iter().map(other).fold(len, u64::saturating_add),
            // The text is copied once, and the other members are made of existing texts.
            Include::Source | Include::Files => {
                let broken = node.broken.iter().map(broken).fold(0, u64::saturating_add);
                let files = node.files.iter().flatten().map(file).fold(0, u64::saturating_add);
                len.saturating_add(broken).saturating_add(files).saturating_mul(2)
            }
        }
    }

    fn serialize(self, node: &DescribedNode) -> Result<(Bytes, ContentEncoding), ApiError> {
        let zom = match self.form {
            Form::Tree => node.zom.to_text(),
            Form::Flat => node.zom.to_flat_text(),
        };
        let json = match self.include {
            Include::Nothing => Ok(zom.to_bytes()),
            Include::Source | Include::Files => source(node).with_node(&zom).map(Bytes::from),
        };
        let json = json.map_err(|error| ApiError::with_cause(ProblemType::Internal, error))?;
        content_encoding::compress(json, self.encoding)
            .map_err(|error| ApiError::with_cause(ProblemType::Internal, error))
    }
}

fn other_node((path, dialect): &(NodePath, Dialect)) -> OtherNode {
    OtherNode { path: path.to_string(), dialect: *dialect }
}

fn source(described: &DescribedNode) -> Source {
    let DescribedNode { info, files, unlisted, .. } = described;
    let link = |(link, target): &(zarrd_meta::extensions::Link, LinkTarget)| {
        let zarrd_meta::extensions::Link { extension, pointer, path } = link.clone();
        Link { extension, pointer, path, resolved: *target }
    };
    let broken = |node: &zarrd_operations::BrokenNode| {
        let problem = BrokenDocument { key: node.key.to_string(), reason: node.reason.clone() };
        BrokenNode { path: node.path.to_string(), dialect: node.dialect, problem }
    };
    Source {
        dialect: info.dialect,
        path: info.path.to_string(),
        implicit: info.implicit,
        other_dialects: info.other_dialects.iter().map(other_node).collect(),
        broken: info.broken.iter().map(broken).collect(),
        unlisted: unlisted.iter().map(NodePath::to_string).collect(),
        undecoded: undecoded(&info.path, &info.zom).iter().map(NodePath::to_string).collect(),
        losses: render_losses(&info.losses),
        links: info.links.iter().map(link).collect(),
        files: files.as_ref().map(|files| files.iter().map(FileEntry::new).collect()),
        image: match &info.zom.root {
            Node::Group(group) => group.document.get("attributes").and_then(|attributes| Image::of(&attributes)),
            Node::Array(_) => None,
        },
    }
}

fn response_with(headers: HeaderMap, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.headers_mut() = headers;
    response
}

/// Estimates the size of a node's JSON with its descendants, in bytes; rather too large than too small. In the flat
/// form, names are paths that begin with `parent_len` bytes.
fn json_len_estimate(node: &Node, form: Form, parent_len: usize) -> usize {
    let members = match node {
        Node::Array(_) => None,
        Node::Group(group) => group.members.as_ref(),
    };
    let len = |(name, member): (&String, &Node)| {
        let path = match form {
            Form::Tree => name.len(),
            Form::Flat => name.len().saturating_add(parent_len),
        };
        path.saturating_add(MEMBER_OVERHEAD_BYTES).saturating_add(json_len_estimate(member, form, path))
    };
    members.into_iter().flatten().map(len).fold(node.document().len(), usize::saturating_add)
}

/// Adds the headers that a 304 has too.
fn validators(version: Option<Version>, headers: &mut HeaderMap) {
    headers.extend(version.map(|version| (ETAG, etag::render(version))));
    headers.insert(CACHE_CONTROL, REVALIDATE);
    headers.insert(VARY, VARY_ACCEPT_ENCODING);
}

fn path_members(path: &NodePath) -> Members {
    Members { path: Some(path.to_string()), ..Members::default() }
}
