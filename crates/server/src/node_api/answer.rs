//! Nodes as JSON.

use ::array::{FoundNode, Linked};
use ::store::Version;
use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, VARY},
};
use meta::{NodePath, zom::Node};
use serde_json::Value;
use wire::{
    etag,
    headers::{DIALECT, JSON, LOSSES},
    node::{Link, LinkTarget, Loss, OtherNode, WithOrigin},
    problem::{Members, Problem, ProblemType},
    query::{Depth, Form, NodeQuery, With},
};

use crate::{
    blocking::blocking,
    coding,
    extract::{Coding, Condition, Forms, TagConditions},
    headers::REVALIDATE,
    refusal::Refusal,
};

/// Hierarchies of more nodes than these are written where they do not keep other requests waiting.
const QUICK: usize = 16;
const VARIES: HeaderValue = HeaderValue::from_static("accept-encoding");

/// How a node is told.
#[derive(Clone, Copy)]
pub(super) struct Telling {
    depth: Depth,
    form: Form,
    with: With,
    coding: Coding,
}

impl Telling {
    /// As the query asks.
    pub(super) fn new(query: &NodeQuery, forms: &Forms) -> Self {
        Self { depth: query.depth, form: query.form, with: query.with, coding: forms.coding() }
    }

    /// As a tree, with all of it that was found.
    pub(super) fn whole(forms: &Forms) -> Self {
        Self { depth: Depth::All, form: Form::Tree, with: With::Nothing, coding: forms.coding() }
    }

    /// The node, or that the client has it.
    pub(super) async fn answer(self, node: FoundNode, conditions: &TagConditions) -> Result<Response, Refusal> {
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
            Condition::NotModified | Condition::Holds => self.tell(node).await,
        }
    }

    /// The node.
    pub(super) async fn tell(self, node: FoundNode) -> Result<Response, Refusal> {
        let mut headers = HeaderMap::new();
        validators(node.version, &mut headers);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(DIALECT, HeaderValue::from_static(node.dialect.name()));
        if !node.losses.is_empty() {
            headers.insert(LOSSES, HeaderValue::from(node.losses.len()));
        }
        let (body, coding) = match node.zom.len() {
            ..=QUICK => self.written(node)?,
            _ => blocking(move || self.written(node)).await??,
        };
        headers.extend(coding.header().map(|coding| (CONTENT_ENCODING, coding)));
        let mut response = Response::new(Body::from(body));
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Whether the answer has nothing but what the node's own documents say, which is what its entity tag is of.
    fn is_of_one(self, node: &FoundNode) -> bool {
        let alone = self.depth == Depth::Levels(0) || matches!(node.zom.root, Node::Array(_));
        alone && self.with == With::Nothing
    }

    fn written(self, found: FoundNode) -> Result<(Bytes, Coding), Refusal> {
        let node = match self.form {
            Form::Tree => found.zom.to_json(),
            Form::Flat => Value::Object(found.zom.flat()),
        };
        let json = match self.with {
            With::Nothing => serde_json::to_vec(&node),
            With::Origin => serde_json::to_vec(&with_origin(found, node)),
        };
        let json = json.map_err(|error| Refusal::because(ProblemType::Internal, error))?;
        coding::whole(json.into(), self.coding).map_err(|error| Refusal::because(ProblemType::Internal, error))
    }
}

/// What is lost, as answers have it.
pub(super) fn lost(losses: Vec<(NodePath, meta::convert::Loss)>) -> Vec<Loss> {
    let loss = |(path, meta::convert::Loss { pointer, what })| Loss { path: NodePath::to_string(&path), pointer, what };
    losses.into_iter().map(loss).collect()
}

fn with_origin(found: FoundNode, node: Value) -> WithOrigin {
    let other = |(path, dialect)| OtherNode { path: NodePath::to_string(&path), dialect };
    let link = |(link, linked)| {
        let meta::extensions::Link { extension, pointer, path } = link;
        let found = match linked {
            Linked::Array => LinkTarget::Array,
            Linked::Missing => LinkTarget::Missing,
        };
        Link { extension, pointer, path, found }
    };
    WithOrigin {
        dialect: found.dialect,
        path: found.path.to_string(),
        implicit: found.implicit,
        node,
        other: found.other.into_iter().map(other).collect(),
        losses: lost(found.losses),
        links: found.links.into_iter().map(link).collect(),
    }
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
