//! Hierarchies to be looked at: those of a store of this machine, and those of a running server, told alike.

mod card;
mod text;

use std::sync::Arc;

use array::{ArrayError, Arrays, Hierarchies, MAX_MEMBERS, MemberPage};
use client::{BrokenNode, Depth, Dialect, NodeClient, NodeInfo, NodePath};
use store::{Cursor, Key, ListableStore, ReadableStore};

use crate::{config::Place, exit::Failure, opening::OpenPlace};

pub(crate) use self::{
    card::{ArrayCard, Card, Kind, ProblemCard, array_model},
    text::{columns, counted, shown, tuple},
};

/// The hierarchies of a store.
pub(crate) struct Hierarchy {
    place: OpenPlace,
    nodes: Nodes,
}

enum Nodes {
    Local(Hierarchies),
    Server(NodeClient),
}

/// Why a node cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    /// There is none.
    #[error("there is no node at {path}")]
    Missing {
        /// The path.
        path: NodePath,
    },
    /// There are more nodes than are told at a time.
    #[error("there are more than {limit} nodes below {path}")]
    TooMany {
        /// The path.
        path: NodePath,
        /// How many are told.
        limit: u64,
    },
    /// The store, or what is stored there, says no.
    #[error("cannot look at {path}")]
    Local {
        /// The path.
        path: NodePath,
        /// Why.
        #[source]
        source: Box<array::NodeError>,
    },
    /// The server does.
    #[error("cannot look at {path}")]
    Server {
        /// The path.
        path: NodePath,
        /// Why.
        #[source]
        source: Box<client::NodeError>,
    },
}

impl LookError {
    /// The node as a broken one, if a document of it is why it cannot be looked at.
    pub(crate) fn into_broken(self, path: &NodePath, dialect: Dialect) -> Result<BrokenNode, Self> {
        let (key, reason) = match &self {
            Self::Local { source, .. } => match &**source {
                array::NodeError::Array(ArrayError::Broken(array::Broken { key, reason })) => {
                    (key.clone(), reason.clone())
                }
                array::NodeError::Array(ArrayError::Document { key, source }) => (key.clone(), source.to_string()),
                _ => return Err(self),
            },
            Self::Server { source, .. } => match &**source {
                client::NodeError::Metadata { key: Some(key), detail, .. } => match Key::parse(key) {
                    Ok(key) => (key, detail.clone()),
                    Err(_) => return Err(self),
                },
                _ => return Err(self),
            },
            Self::Missing { .. } | Self::TooMany { .. } => return Err(self),
        };
        Ok(BrokenNode { path: path.clone(), dialect, key, reason })
    }
}

impl Hierarchy {
    /// Opens a store, or makes ready to ask a server.
    pub(crate) async fn open(place: &Place) -> Result<Self, Failure> {
        let place = OpenPlace::for_reading(place).await?;
        let nodes = match &place {
            OpenPlace::Local(store) => {
                Nodes::Local(Arrays::new(Arc::new(store.clone()), array::Options::default()).hierarchies())
            }
            OpenPlace::Server(store) => Nodes::Server(store.connection().into()),
        };
        Ok(Self { place, nodes })
    }

    /// The node at a path, as deep as that; of one dialect if only that is meant.
    pub(crate) async fn look(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        depth: u32,
    ) -> Result<NodeInfo, LookError> {
        match &self.nodes {
            Nodes::Local(nodes) => {
                let found = nodes.node(path, dialect, array::Depth::Levels(depth), None).await;
                found.map(|node| node.info).map_err(|error| of_local(error, path))
            }
            Nodes::Server(nodes) => {
                let nodes = dialect.map_or_else(|| nodes.clone(), |dialect| nodes.of_dialect(dialect));
                nodes.node(path, Depth::Levels(depth)).await.map_err(|error| of_server(error, path))
            }
        }
    }

    /// The node at a path with a page of its members, and where the next page begins; of one dialect if only that is meant.
    pub(crate) async fn page(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        cursor: Option<Cursor>,
    ) -> Result<(NodeInfo, Option<Cursor>), LookError> {
        match &self.nodes {
            Nodes::Local(nodes) => {
                let page = MemberPage { limit: MAX_MEMBERS, cursor };
                let found = nodes.members(path, dialect, &page, None).await;
                found.map(|page| (page.node.info, page.next)).map_err(|error| of_local(error, path))
            }
            Nodes::Server(nodes) => {
                let nodes = dialect.map_or_else(|| nodes.clone(), |dialect| nodes.of_dialect(dialect));
                let found = nodes.members(path, MAX_MEMBERS, cursor).await;
                found.map(|page| (page.node, page.next)).map_err(|error| of_server(error, path))
            }
        }
    }

    /// The store, to be listed.
    pub(crate) fn listable(&self) -> &dyn ListableStore {
        self.place.listable()
    }

    /// The store, to be read.
    pub(crate) fn readable(&self) -> &dyn ReadableStore {
        self.place.readable()
    }

    /// Closes the store.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        drop(self.nodes);
        self.place.close().await
    }
}

fn of_local(error: array::NodeError, path: &NodePath) -> LookError {
    match error {
        array::NodeError::Array(array::ArrayError::NoSuchNode { path }) => LookError::Missing { path },
        array::NodeError::TooManyNodes { limit } => LookError::TooMany { path: path.clone(), limit: limit as u64 },
        error => LookError::Local { path: path.clone(), source: Box::new(error) },
    }
}

fn of_server(error: client::NodeError, path: &NodePath) -> LookError {
    match error {
        client::NodeError::NoSuchNode { path } => LookError::Missing { path },
        client::NodeError::TooManyNodes { limit } => LookError::TooMany { path: path.clone(), limit },
        error => LookError::Server { path: path.clone(), source: Box::new(error) },
    }
}
