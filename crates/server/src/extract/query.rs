//! Queries.

use axum::extract::FromRequestParts;
use http::request::Parts;
use meta::{Dialect, NodePath};
use wire::query::{
    AppendQuery, CONVERT, Confirm, ElementsQuery, ListQuery, NodeDeleteQuery, NodePatchQuery, NodePostQuery,
    NodePutQuery, NodeQuery, OF_NODE_POST, QueryError, VALIDATE, WriteQuery, parse_key_write,
};

use crate::{app::App, error::ApiError};

/// The query of the request, of a resource that has such ones.
pub(crate) struct Query<Q>(pub(crate) Q);

/// The query of a resource and a method.
pub(crate) trait ParseQuery: Sized {
    /// Parses the text of a query.
    fn parse(query: &str) -> Result<Self, QueryError>;
}

/// The query of the setting or erasing of a key, which has no parameters.
pub(crate) struct NoQuery;

/// The query of the reading of elements where the body says which.
pub(crate) struct ElementsPostQuery(pub(crate) ElementsQuery);

/// The query of a `POST` that compares a node.
pub(crate) struct ValidateQuery {
    /// The node of which dialect.
    pub(crate) dialect: Option<Dialect>,
}

/// The query of a `POST` that converts a node.
pub(crate) struct ConvertQuery {
    /// The node of which dialect.
    pub(crate) dialect: Option<Dialect>,
    /// Into which dialect.
    pub(crate) into: Dialect,
    /// Where to; `None` for the same place.
    pub(crate) target: Option<NodePath>,
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
    AppendQuery, Confirm, ElementsQuery, ListQuery, NodeDeleteQuery, NodePatchQuery, NodePutQuery, NodeQuery, WriteQuery
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

// Which of the two it is decides who may ask, so neither handler is ever given the other's query.

impl ParseQuery for ValidateQuery {
    fn parse(query: &str) -> Result<Self, QueryError> {
        match NodePostQuery::parse(query)? {
            NodePostQuery::Validate { dialect } => Ok(Self { dialect }),
            NodePostQuery::Convert { .. } => Err(QueryError::Missing { names: &[VALIDATE], known: OF_NODE_POST }),
        }
    }
}

impl ParseQuery for ConvertQuery {
    fn parse(query: &str) -> Result<Self, QueryError> {
        match NodePostQuery::parse(query)? {
            NodePostQuery::Convert { dialect, into, target } => Ok(Self { dialect, into, target }),
            NodePostQuery::Validate { .. } => Err(QueryError::Missing { names: &[CONVERT], known: OF_NODE_POST }),
        }
    }
}
