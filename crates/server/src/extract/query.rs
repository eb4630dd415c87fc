//! Extractors for query strings.

use axum::extract::FromRequestParts;
use http::request::Parts;
use zarrd_meta::{Dialect, NodePath};
use zarrd_operations::{ExistingDocuments, LossPolicy};
use zarrd_wire::query::{
    AppendQuery, CONVERT, ChunksQuery, Confirmation, CreateQuery, ElementsQuery, ListQuery, NODE_POST_PARAMETERS,
    NodeDeleteQuery, NodePatchQuery, NodePostQuery, NodePutQuery, NodeQuery, PageQuery, QueryError, VALIDATE,
    WriteQuery, parse_key_write,
};

use crate::{app::App, error::ApiError};

/// The parsed query of a request.
pub(crate) struct Query<Q>(pub(crate) Q);

/// A query type, for one resource and method.
pub(crate) trait ParseQuery: Sized {
    /// Parses a query string.
    fn parse(query: &str) -> Result<Self, QueryError>;
}

/// The query for setting or erasing a key; it has no parameters.
pub(crate) struct NoQuery;

/// The query for reading elements selected by the body.
pub(crate) struct ElementsPostQuery(pub(crate) ElementsQuery);

/// The query for validating a node.
pub(crate) struct ValidateQuery {
    /// The dialect of the node.
    pub(crate) dialect: Option<Dialect>,
}

/// The query for converting a node.
pub(crate) struct ConvertQuery {
    /// The dialect of the node.
    pub(crate) dialect: Option<Dialect>,
    /// The target dialect.
    pub(crate) into: Dialect,
    /// The target path; `None` to convert in place.
    pub(crate) target: Option<NodePath>,
    /// The treatment of documents that the dialect already has.
    pub(crate) existing: ExistingDocuments,
    /// The treatment of properties that the dialect cannot represent.
    pub(crate) losses: LossPolicy,
}

impl<Q: ParseQuery> FromRequestParts<App> for Query<Q> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        Ok(Self(Q::parse(parts.uri.query().unwrap_or_default())?))
    }
}

macro_rules! impl_parse_query {
    ($($query:ident),*) => {
        $(impl ParseQuery for $query {
            fn parse(query: &str) -> Result<Self, QueryError> {
                Self::parse(query)
            }
        })*
    };
}

impl_parse_query! {
    AppendQuery, ChunksQuery, Confirmation, CreateQuery, ElementsQuery, ListQuery, NodeDeleteQuery, NodePatchQuery, NodePutQuery, NodeQuery, PageQuery, WriteQuery
}

impl ParseQuery for NoQuery {
    fn parse(query: &str) -> Result<Self, QueryError> {
        parse_key_write(query).map(|()| Self)
    }
}

impl ParseQuery for ElementsPostQuery {
    fn parse(query: &str) -> Result<Self, QueryError> {
        ElementsQuery::parse_post(query).map(Self)
    }
}

// The route table has checked the rights of one of the two operations, so its handler must not run the other.

impl ParseQuery for ValidateQuery {
    fn parse(query: &str) -> Result<Self, QueryError> {
        match NodePostQuery::parse(query)? {
            NodePostQuery::Validate { dialect } => Ok(Self { dialect }),
            NodePostQuery::Convert { .. } => {
                Err(QueryError::Missing { names: &[VALIDATE], known: NODE_POST_PARAMETERS })
            }
        }
    }
}

impl ParseQuery for ConvertQuery {
    fn parse(query: &str) -> Result<Self, QueryError> {
        match NodePostQuery::parse(query)? {
            NodePostQuery::Convert { dialect, into, target, existing, losses } => {
                Ok(Self { dialect, into, target, existing, losses })
            }
            NodePostQuery::Validate { .. } => {
                Err(QueryError::Missing { names: &[CONVERT], known: NODE_POST_PARAMETERS })
            }
        }
    }
}
