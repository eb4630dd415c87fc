//! Elements of arrays, from a local store or through a running server, with equal answers.

use std::{io, path::PathBuf, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use zarrd_client::{ArrayClient, Description, Format, NodePath, Query};
use zarrd_server::{App, Settings};
use zarrd_store::{ServedStore, StoreError};
use zarrd_wire::{
    array::parse_dimension_name,
    headers::{NORTHWARD_ROWS, UNDECODED},
    query::ElementsQuery,
};

use crate::{
    config::Endpoint,
    open::{OpenEndpoint, OpenStoreError},
};

/// The arrays of a store.
pub(crate) struct ElementSource {
    endpoint: OpenEndpoint,
    arrays: Arrays,
}

enum Arrays {
    Local(App),
    Server(ArrayClient),
}

/// Errors of writing elements.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteElementsError {
    /// Bytes would be written to a terminal.
    #[error("{0} would garble the terminal; name a file with --output, or redirect stdout")]
    Terminal(Format),
    /// A file cannot be written.
    #[error("cannot write {}", file.display())]
    File {
        /// Path of the file.
        file: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
}

/// Errors of reading elements.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadElementsError {
    /// The request was refused.
    #[error("cannot read {path}: {detail}")]
    Refused {
        /// Path of the array.
        path: NodePath,
        /// Title and detail of the problem.
        detail: String,
    },
    /// The answer ended early.
    #[error("cannot read {path} to the end")]
    Interrupted {
        /// Path of the array.
        path: NodePath,
        /// Reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server returned an error, or is unreachable.
    #[error("cannot read {path}")]
    Server {
        /// Path of the array.
        path: NodePath,
        /// Reason.
        #[source]
        source: Box<zarrd_client::ArrayError>,
    },
}

/// An answer in the form that was asked for.
pub(crate) struct ElementAnswer {
    /// True if stored elements are packed or some mean missing, and the request does not say whether to decode them.
    pub(crate) is_undecoded: bool,
    /// Of a picture, the dimension along which its rows go north.
    pub(crate) northward_rows: Option<String>,
    /// The bytes.
    pub(crate) bytes: ElementBytes,
}

/// The bytes of an answer.
pub(crate) type ElementBytes = BoxStream<'static, Result<Bytes, ReadElementsError>>;

impl ElementSource {
    /// Opens a store, or creates the client of a server.
    pub(crate) async fn open(endpoint: &Endpoint) -> Result<Self, OpenStoreError> {
        let endpoint = OpenEndpoint::for_reading(endpoint).await?;
        let local = |store: ServedStore| Arrays::Local(App::new(store, Settings::default()));
        let arrays = match &endpoint {
            OpenEndpoint::Local(store) => local(Arc::new(store.clone()).into()),
            OpenEndpoint::Foreign(store) => local(ServedStore::read_only(Arc::clone(store))),
            OpenEndpoint::Server(store) => Arrays::Server(store.connection().into()),
        };
        Ok(Self { endpoint, arrays })
    }

    /// Reads the elements of an array that a query selects or computes, in a format.
    pub(crate) async fn read(
        &self,
        path: &NodePath,
        query: &ElementsQuery,
        format: Format,
    ) -> Result<ElementAnswer, ReadElementsError> {
        match &self.arrays {
            Arrays::Local(app) => local(app, path, &ElementsQuery { format: Some(format), ..query.clone() }).await,
            Arrays::Server(arrays) => {
                let elements = arrays.query_format(path, &Query::from(query.clone()), format).await;
                let path = path.clone();
                let failed = move |error| server_error(&path, error);
                let elements = elements.map_err(&failed)?;
                let Description { is_undecoded, northward_rows, .. } = elements.description().clone();
                Ok(ElementAnswer { is_undecoded, northward_rows, bytes: elements.map_err(failed).boxed() })
            }
        }
    }

    /// The statistics of a query, as JSON.
    pub(crate) async fn stats(
        &self,
        path: &NodePath,
        query: &ElementsQuery,
    ) -> Result<serde_json::Map<String, serde_json::Value>, ReadElementsError> {
        match &self.arrays {
            Arrays::Local(app) => {
                let bytes: Vec<Bytes> = local(app, path, query).await?.bytes.try_collect().await?;
                serde_json::from_slice(&bytes.concat()).map_err(|source| interrupted(path, source))
            }
            Arrays::Server(arrays) => {
                arrays.stats(path, &Query::from(query.clone())).await.map_err(|error| server_error(path, error))
            }
        }
    }

    /// Closes the store.
    pub(crate) async fn close(self) -> Result<(), StoreError> {
        drop(self.arrays);
        self.endpoint.close().await
    }
}

async fn local(app: &App, path: &NodePath, query: &ElementsQuery) -> Result<ElementAnswer, ReadElementsError> {
    let target = format!("{}?{}", zarrd_wire::routes::array_path(path), query.render());
    let refused = |detail| ReadElementsError::Refused { path: path.clone(), detail };
    let answer = zarrd_server::get(app, &target).await.map_err(|error| refused(error.to_string()))?;
    if !answer.status.is_success() {
        let status = answer.status;
        let problem = answer.into_problem().await;
        let detail = problem.map(|problem| if problem.detail.is_empty() { problem.title } else { problem.detail });
        return Err(refused(detail.unwrap_or_else(|| status.to_string())));
    }
    let path = path.clone();
    let northward_rows = answer.headers.get(NORTHWARD_ROWS).and_then(|rows| rows.to_str().ok());
    Ok(ElementAnswer {
        is_undecoded: answer.headers.contains_key(UNDECODED),
        northward_rows: northward_rows.and_then(parse_dimension_name),
        bytes: answer.into_stream().map_err(move |source| interrupted(&path, source)).boxed(),
    })
}

fn interrupted(path: &NodePath, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ReadElementsError {
    ReadElementsError::Interrupted { path: path.clone(), source: source.into() }
}

fn server_error(path: &NodePath, source: zarrd_client::ArrayError) -> ReadElementsError {
    ReadElementsError::Server { path: path.clone(), source: Box::new(source) }
}
