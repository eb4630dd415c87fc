//! Reads of hierarchies, from a local store or through a running server, with equal results.

mod format;
mod summary;

use std::sync::Arc;

use zarrd_array::{ArrayError, Arrays, FileListing, Hierarchies, MAX_MEMBERS, MemberPage};
use zarrd_client::{BrokenNode, Depth, Dialect, NodeClient, NodeInfo, NodePath, RemoteError};
use zarrd_operations::NodeRejection;
use zarrd_store::{Cursor, Key, ListableStore, PageRequest, Prefix, ReadableStore, ServedStore, StoreError};

pub(crate) use self::{
    format::{columns, escape_control, quantity, tuple},
    summary::{ArraySummary, DocumentProblem, NodeKind, NodeSummary, array_model},
};
use crate::{
    config::Endpoint,
    open::{OpenEndpoint, OpenStoreError},
};

/// The hierarchies of a store.
pub(crate) struct Hierarchy {
    endpoint: OpenEndpoint,
    nodes: NodeSource,
}

enum NodeSource {
    Local(Hierarchies),
    Server(NodeClient),
}

/// Errors of reading a node.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeReadError {
    /// The node does not exist.
    #[error("no node exists at {path}")]
    NotFound {
        /// Path of the node.
        path: NodePath,
    },
    /// The node has more descendants than one response can contain.
    #[error("more than {limit} nodes below {path}")]
    TooManyNodes {
        /// Path of the node.
        path: NodePath,
        /// The limit.
        limit: u64,
    },
    /// The local store failed, or its content is invalid.
    #[error("cannot read the node at {path}")]
    Local {
        /// Path of the node.
        path: NodePath,
        /// Reason.
        #[source]
        source: Box<zarrd_array::NodeError>,
    },
    /// The server returned an error, or is unreachable.
    #[error("cannot read the node at {path}")]
    Server {
        /// Path of the node.
        path: NodePath,
        /// Reason.
        #[source]
        source: Box<zarrd_client::NodeError>,
    },
}

/// The number of prefixes that are looked at to find those of the caller's rights.
const MAX_GRANTED_REQUESTS: usize = 1000;

impl NodeReadError {
    /// True if the caller has a credential, and lacks the right to read the node.
    pub(crate) fn is_denied(&self) -> bool {
        let Self::Server { source, .. } = self else { return false };
        matches!(**source, zarrd_client::NodeError::Remote(RemoteError::Forbidden { .. }))
    }

    /// Converts an error that one of the node's documents caused into a broken node.
    pub(crate) fn into_broken(self, path: &NodePath, dialect: Dialect) -> Result<BrokenNode, Self> {
        let (key, reason) = match &self {
            Self::Local { source, .. } => match &**source {
                zarrd_array::NodeError::Array(ArrayError::Broken(zarrd_array::Broken { key, reason })) => {
                    (key.clone(), reason.clone())
                }
                zarrd_array::NodeError::Array(ArrayError::Document { key, source }) => {
                    (key.clone(), source.to_string())
                }
                _ => return Err(self),
            },
            Self::Server { source, .. } => match &**source {
                zarrd_client::NodeError::Metadata { key: Some(key), detail, .. } => match Key::parse(key) {
                    Ok(key) => (key, detail.clone()),
                    Err(_) => return Err(self),
                },
                _ => return Err(self),
            },
            Self::NotFound { .. } | Self::TooManyNodes { .. } => return Err(self),
        };
        Ok(BrokenNode { path: path.clone(), dialect, key, reason })
    }
}

impl Hierarchy {
    /// Opens a store, or creates the client of a server.
    pub(crate) async fn open(endpoint: &Endpoint) -> Result<Self, OpenStoreError> {
        let endpoint = OpenEndpoint::for_reading(endpoint).await?;
        let nodes = match &endpoint {
            OpenEndpoint::Local(store) => {
                NodeSource::Local(Arrays::new(Arc::new(store.clone()), zarrd_array::Options::default()).hierarchies())
            }
            OpenEndpoint::Foreign(store) => {
                let store = ServedStore::read_only(Arc::clone(store));
                NodeSource::Local(Arrays::new(store, zarrd_array::Options::default()).hierarchies())
            }
            OpenEndpoint::Server(store) => NodeSource::Server(store.connection().into()),
        };
        Ok(Self { endpoint, nodes })
    }

    /// Reads the node at a path, with its members down to a depth. Without a dialect, the one with the highest
    /// precedence is read.
    pub(crate) async fn node(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        depth: u32,
    ) -> Result<NodeInfo, NodeReadError> {
        match &self.nodes {
            NodeSource::Local(nodes) => {
                let node = nodes.node(path, dialect, zarrd_array::Depth::Levels(depth), None).await;
                node.map(|node| node.info).map_err(|error| local_error(error, path))
            }
            NodeSource::Server(nodes) => {
                let node = with_dialect(nodes, dialect).node(path, Depth::Levels(depth)).await;
                node.map_err(|error| server_error(error, path))
            }
        }
    }

    /// Reads the node at a path with one page of its members, and returns the cursor of the next page.
    pub(crate) async fn members(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        cursor: Option<Cursor>,
    ) -> Result<(NodeInfo, Option<Cursor>), NodeReadError> {
        match &self.nodes {
            NodeSource::Local(nodes) => {
                let page = MemberPage { limit: MAX_MEMBERS, cursor, files: FileListing::Omitted };
                let page = nodes.members(path, dialect, &page, None).await;
                page.map(|page| (page.node.info, page.next)).map_err(|error| local_error(error, path))
            }
            NodeSource::Server(nodes) => {
                let page = with_dialect(nodes, dialect).members(path, MAX_MEMBERS, cursor).await;
                page.map(|page| (page.node, page.next)).map_err(|error| server_error(error, path))
            }
        }
    }

    /// The topmost nodes below a path that the caller may read, for a path that it may not; `None` in place of a node for a
    /// prefix without one. Empty if there are none, and for a store of this machine.
    ///
    /// A server lists the prefixes that lead to those of the caller's rights.
    pub(crate) async fn readable_below(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
    ) -> Vec<(NodePath, Option<NodeInfo>)> {
        let (mut found, mut unread) = (Vec::new(), vec![path.clone()]);
        let mut left = MAX_GRANTED_REQUESTS;
        while let Some(path) = unread.pop() {
            let Ok(prefix) = Prefix::parse(&path.key_prefix()) else { continue };
            let listed = self.listable().list_dir(&prefix, PageRequest::first(MAX_GRANTED_REQUESTS)).await;
            for child in listed.map(|page| page.prefixes).unwrap_or_default() {
                let Some(rest) = left.checked_sub(1) else { return found };
                left = rest;
                let Ok(child) = NodePath::parse(child.as_str().trim_end_matches('/')) else { continue };
                match self.node(&child, dialect, 0).await {
                    Ok(node) => found.push((child, Some(node))),
                    Err(error) if error.is_denied() => unread.push(child),
                    // It has none, or none that can be read.
                    Err(_) => found.push((child, None)),
                }
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found
    }

    /// The store, for listing.
    pub(crate) fn listable(&self) -> &dyn ListableStore {
        self.endpoint.listable()
    }

    /// The store, for reading.
    pub(crate) fn readable(&self) -> &dyn ReadableStore {
        self.endpoint.readable()
    }

    /// Closes the store.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        drop(self.nodes);
        self.endpoint.close().await
    }
}

fn with_dialect(nodes: &NodeClient, dialect: Option<Dialect>) -> NodeClient {
    dialect.map_or_else(|| nodes.clone(), |dialect| nodes.with_dialect(dialect))
}

fn local_error(error: zarrd_array::NodeError, path: &NodePath) -> NodeReadError {
    match error {
        zarrd_array::NodeError::Array(zarrd_array::ArrayError::NoSuchNode { path }) => NodeReadError::NotFound { path },
        zarrd_array::NodeError::Rejected(NodeRejection::TooManyNodes { limit }) => {
            NodeReadError::TooManyNodes { path: path.clone(), limit }
        }
        error => NodeReadError::Local { path: path.clone(), source: Box::new(error) },
    }
}

fn server_error(error: zarrd_client::NodeError, path: &NodePath) -> NodeReadError {
    match error {
        zarrd_client::NodeError::NoSuchNode { path } => NodeReadError::NotFound { path },
        zarrd_client::NodeError::Rejected(NodeRejection::TooManyNodes { limit }) => {
            NodeReadError::TooManyNodes { path: path.clone(), limit }
        }
        error => NodeReadError::Server { path: path.clone(), source: Box::new(error) },
    }
}
