//! Nodes as JSON.

use array::{DescribedNode, Permit};
use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY},
};
use meta::{Dialect, NodePath, zom::Node};
use operations::{Depth, LinkTarget, NodeInfo};
use store::Version;
use wire::{
    etag,
    headers::{BROKEN, DIALECT, JSON, LOSSES, OTHER_DIALECTS},
    node::{BrokenDocument, BrokenNode, Link, Loss, OtherNode, Source},
    problem::{Members, Problem, ProblemType},
    query::{Form, Include, NodeQuery},
};

use crate::{
    content_encoding::{self, Coding},
    engine::Engine,
    error::Refusal,
    extract::{Condition, Forms, TagConditions},
    headers::REVALIDATE,
};

/// Hierarchies of more bytes are written where they do not keep other requests waiting.
const QUICK: usize = 64 << 10;
/// Answers up to this size are sent without asking whether there is memory.
const SMALL: u64 = 64 << 10;
/// What a member takes beside its name and its own members: quotes, colon, comma, and what is around those.
const NAMED: usize = 32;
/// What a broken node takes beside its texts.
const LEFT_OUT: u64 = 160;
const VARIES: HeaderValue = HeaderValue::from_static("accept-encoding");

/// How a node is told.
#[derive(Clone, Copy)]
pub(super) struct Telling {
    depth: Depth,
    form: Form,
    include: Include,
    coding: Coding,
}

impl Telling {
    /// As the query asks.
    pub(super) fn new(query: &NodeQuery, forms: &Forms) -> Self {
        Self { depth: query.depth, form: query.form, include: query.include, coding: forms.coding() }
    }

    /// As a tree, with all of it that was found.
    pub(super) fn whole(forms: &Forms) -> Self {
        Self { depth: Depth::All, form: Form::Tree, include: Include::Nothing, coding: forms.coding() }
    }

    /// The node, or that the client has it.
    pub(super) async fn answer(
        self,
        engine: &Engine,
        node: DescribedNode,
        conditions: &TagConditions,
    ) -> Result<Response, Refusal> {
        match conditions.judge(node.version) {
            Condition::Fails => {
                let members = Members { current: node.version.map(etag::text), ..at(&node.path) };
                Err(Refusal::new(Problem::new(ProblemType::PreconditionFailed).with_members(members)))
            }
            Condition::NotModified if self.is_of_one(&node) => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                validators(node.version, response.headers_mut());
                Ok(response)
            }
            Condition::NotModified | Condition::Holds => {
                // The node holds memory already, so nothing is waited for. A slow client must not be sent what nobody accounts for.
                let memory = match self.needs(&node) {
                    ..=SMALL => None,
                    needs => Some(engine.claim.try_take(needs)?),
                };
                let (node, headers, body) = self.made(engine, node).await?;
                let body = match memory {
                    Some(memory) => memory.attach_to(body),
                    None => body,
                };
                drop(node);
                Ok(response(headers, body))
            }
        }
    }

    /// The node after a change, which is told however much others are being told. The request's memory is held until the answer has left.
    pub(super) async fn tell(
        self,
        engine: &Engine,
        node: DescribedNode,
        memory: Option<Permit>,
    ) -> Result<Response, Refusal> {
        let (_, headers, body) = self.made(engine, node).await?;
        let body = match memory {
            Some(mut memory) => {
                memory.shrink_to(body.len() as u64);
                memory.attach_to(body)
            }
            None => body,
        };
        Ok(response(headers, body))
    }

    /// The headers and the body. The node comes back, for it holds the memory of what was made of it.
    async fn made(self, engine: &Engine, node: DescribedNode) -> Result<(DescribedNode, HeaderMap, Bytes), Refusal> {
        let mut headers = HeaderMap::new();
        validators(node.version, &mut headers);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(DIALECT, HeaderValue::from_static(node.dialect.name()));
        for (name, left_out) in
            [(LOSSES, node.losses.len()), (BROKEN, node.broken.len()), (OTHER_DIALECTS, node.other_dialects.len())]
        {
            if left_out > 0 {
                headers.insert(name, HeaderValue::from(left_out));
            }
        }
        let len = len_of(&node.zom.root, self.form, 0);
        let written = move || self.written(&node).map(|(body, coding)| (node, body, coding));
        let (node, body, coding) = match len {
            ..=QUICK => written()?,
            len => engine.arrays.run_on_documents(len as u64, written).await??,
        };
        headers.extend(coding.header().map(|coding| (CONTENT_ENCODING, coding)));
        Ok((node, headers, body))
    }

    /// True if the answer has nothing but what the node's own documents say, which is what its entity tag is of.
    fn is_of_one(self, node: &NodeInfo) -> bool {
        let alone = self.depth == Depth::Levels(0) || matches!(node.zom.root, Node::Array(_));
        alone && self.include == Include::Nothing
    }

    /// The memory that the answer takes while it is made.
    fn needs(self, found: &NodeInfo) -> u64 {
        let len = len_of(&found.zom.root, self.form, 0) as u64;
        let broken = |node: &operations::BrokenNode| {
            let texts = [node.path.relative(), node.key.as_str(), &node.reason];
            texts.iter().map(|text| text.len() as u64).fold(LEFT_OUT, u64::saturating_add)
        };
        match self.include {
            Include::Nothing => len,
            // The text is copied once, and what is beside it is made of values that are text before.
            Include::Source => {
                let broken = found.broken.iter().map(broken).fold(0, u64::saturating_add);
                len.saturating_add(broken).saturating_mul(2)
            }
        }
    }

    fn written(self, found: &NodeInfo) -> Result<(Bytes, Coding), Refusal> {
        let node = match self.form {
            Form::Tree => found.zom.to_text(),
            Form::Flat => found.zom.to_flat_text(),
        };
        let json = match self.include {
            Include::Nothing => Ok(node.to_bytes()),
            Include::Source => source(found).with_node(&node).map(Bytes::from),
        };
        let json = json.map_err(|error| Refusal::because(ProblemType::Internal, error))?;
        content_encoding::whole(json, self.coding).map_err(|error| Refusal::because(ProblemType::Internal, error))
    }
}

/// What is lost, as answers have it.
pub(super) fn lost(losses: &[(NodePath, meta::convert::Loss)]) -> Vec<Loss> {
    let loss = |(path, loss): &(NodePath, meta::convert::Loss)| {
        let meta::convert::Loss { pointer, what } = loss.clone();
        Loss { path: path.to_string(), pointer, property: what }
    };
    losses.iter().map(loss).collect()
}

fn source(found: &NodeInfo) -> Source {
    let other = |(path, dialect): &(NodePath, Dialect)| OtherNode { path: path.to_string(), dialect: *dialect };
    let link = |(link, target): &(meta::extensions::Link, LinkTarget)| {
        let meta::extensions::Link { extension, pointer, path } = link.clone();
        Link { extension, pointer, path, resolved: *target }
    };
    let broken = |node: &operations::BrokenNode| {
        let problem = BrokenDocument { key: node.key.to_string(), reason: node.reason.clone() };
        BrokenNode { path: node.path.to_string(), dialect: node.dialect, problem }
    };
    Source {
        dialect: found.dialect,
        path: found.path.to_string(),
        implicit: found.implicit,
        other_dialects: found.other_dialects.iter().map(other).collect(),
        broken: found.broken.iter().map(broken).collect(),
        losses: lost(&found.losses),
        links: found.links.iter().map(link).collect(),
    }
}

fn response(headers: HeaderMap, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.headers_mut() = headers;
    response
}

/// About how many bytes a node has as JSON with all below it, rather too many than too few. In the flat form names are paths, of which `above` bytes are of the nodes above.
fn len_of(node: &Node, form: Form, above: usize) -> usize {
    let below = match node {
        Node::Array(_) => None,
        Node::Group(group) => group.members.as_ref(),
    };
    let len = |(name, member): (&String, &Node)| {
        let path = match form {
            Form::Tree => name.len(),
            Form::Flat => name.len().saturating_add(above),
        };
        path.saturating_add(NAMED).saturating_add(len_of(member, form, path))
    };
    below.into_iter().flatten().map(len).fold(node.document().len(), usize::saturating_add)
}

/// What is said also where the client has the node already.
fn validators(version: Option<Version>, headers: &mut HeaderMap) {
    headers.extend(version.map(|version| (ETAG, etag::render(version))));
    headers.insert(CACHE_CONTROL, REVALIDATE);
    headers.insert(VARY, VARIES);
}

fn at(path: &NodePath) -> Members {
    Members { path: Some(path.to_string()), ..Members::default() }
}
