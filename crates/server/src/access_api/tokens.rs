//! Handlers of tokens.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use zarrd_access::{AccessDirectory, Grants, NewToken, TokenInfo};
use zarrd_wire::{access as wire_access, query::PageQuery, time::rfc3339};

use super::{CredentialPath, Credentials, invalid, no_such_credential, parse, parse_time};
use crate::{
    admission::RequestClaim,
    error::ApiError,
    extract::{NoQuery, Query},
    request_body::{CredentialDocument, Document},
};

/// `GET`: lists the tokens that the caller administers, in pages.
pub(crate) async fn list_tokens(
    credentials: Credentials,
    RequestClaim(claim): RequestClaim,
    Query(query): Query<PageQuery>,
) -> Result<Response, ApiError> {
    let caller = credentials.clone();
    let read = move |directory: &AccessDirectory, after, limit| {
        directory.tokens_after(after, limit, |token| caller.administers(token))
    };
    let render = |tokens: &[TokenInfo], cursor| {
        let tokens = tokens.iter().map(describe).collect();
        wire_access::Tokens { tokens, cursor }
    };
    credentials.page(&claim, query, read, render).await
}

/// `POST`: creates a token.
pub(crate) async fn create_token(
    credentials: Credentials,
    _: Query<NoQuery>,
    CredentialDocument(Document { bytes, memory }): CredentialDocument,
) -> Result<Response, ApiError> {
    let wire_access::NewToken { name, allow, expires } = parse(&bytes)?;
    let grants: Result<Vec<_>, _> = allow.iter().map(|grant| grant.parse()).collect();
    let grants = grants.map_err(|error: zarrd_access::GrantError| invalid(Some("/allow"), error.to_string()))?;
    let grants = Grants::new(grants).map_err(|error| invalid(Some("/allow"), error.to_string()))?;
    let expires = expires.map(|text| parse_time("/expires", &text)).transpose()?;
    let token = NewToken { name, grants, expires, maker: Some(credentials.caller) };
    let (info, secret) = credentials.run(move |directory| directory.create(token)).await?;
    credentials.audit.token(&info);
    drop(memory);
    let created = wire_access::CreatedToken { properties: describe(&info), token: secret.expose().to_owned() };
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

/// `DELETE`: revokes a token.
pub(crate) async fn revoke_token(
    credentials: Credentials,
    CredentialPath(id): CredentialPath,
    _: Query<NoQuery>,
) -> Result<StatusCode, ApiError> {
    let token = credentials.run(move |directory| directory.token(id)).await?;
    let token = token.filter(|token| credentials.administers(token)).ok_or_else(no_such_credential)?;
    let id = credentials.audit.token(&token).id;
    credentials.run(move |directory| directory.revoke(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Credentials {
    fn administers(&self, token: &TokenInfo) -> bool {
        self.session.principal().grants.administer(&token.grants)
    }
}

fn describe(token: &TokenInfo) -> wire_access::Token {
    wire_access::Token {
        id: token.id.to_string(),
        name: token.name.to_string(),
        allow: token.grants.iter().map(ToString::to_string).collect(),
        created: rfc3339(token.created),
        expires: token.expires.map(rfc3339),
        maker: token.maker.map(|maker| maker.to_string()),
    }
}
