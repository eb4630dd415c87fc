//! Handlers of share links.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use zarrd_access::{AccessDirectory, Grant, LinkInfo, NewLink, Right};
use zarrd_wire::{access as wire_access, query::PageQuery, routes::share_link_path, time::rfc3339};

use super::{CredentialPath, Credentials, invalid, no_such_credential, parse, parse_time};
use crate::{
    admission::RequestClaim,
    error::ApiError,
    extract::{NoQuery, Query},
    request_body::{CredentialDocument, Document},
};

/// `GET`: lists the share links that the caller made or administers, in pages.
pub(crate) async fn list_shares(
    credentials: Credentials,
    RequestClaim(claim): RequestClaim,
    Query(query): Query<PageQuery>,
) -> Result<Response, ApiError> {
    let caller = credentials.clone();
    let read = move |directory: &AccessDirectory, after, limit| {
        directory.links_after(after, limit, |link| caller.manages(link))
    };
    let render = |links: &[LinkInfo], cursor| {
        let shares = links.iter().map(describe).collect();
        wire_access::Shares { shares, cursor }
    };
    credentials.page(&claim, query, read, render).await
}

/// `POST`: creates a share link.
pub(crate) async fn create_share(
    credentials: Credentials,
    _: Query<NoQuery>,
    CredentialDocument(Document { bytes, memory }): CredentialDocument,
) -> Result<Response, ApiError> {
    let wire_access::NewShare { name, prefix, expires } = parse(&bytes)?;
    let prefix = Grant::parse_prefix(&prefix).map_err(|error| invalid(Some("/prefix"), error.to_string()))?;
    let expires = parse_time("/expires", &expires)?;
    let link = NewLink { name, prefix, expires, maker: Some(credentials.caller) };
    let (info, secret) = credentials.run(move |directory| directory.create_link(link)).await?;
    credentials.audit.link(&info);
    drop(memory);
    let created = wire_access::CreatedShare { properties: describe(&info), link: share_link_path(secret.expose()) };
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

/// `DELETE`: revokes a share link.
pub(crate) async fn revoke_share(
    credentials: Credentials,
    CredentialPath(id): CredentialPath,
    _: Query<NoQuery>,
) -> Result<StatusCode, ApiError> {
    let link = credentials.run(move |directory| directory.link(id)).await?;
    let link = link.filter(|link| credentials.manages(link)).ok_or_else(no_such_credential)?;
    let id = credentials.audit.link(&link).id;
    credentials.run(move |directory| directory.revoke_link(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl Credentials {
    fn manages(&self, link: &LinkInfo) -> bool {
        link.maker == Some(self.caller) || self.session.principal().may(Right::Admin, &link.prefix)
    }
}

fn describe(link: &LinkInfo) -> wire_access::Share {
    wire_access::Share {
        id: link.id.to_string(),
        name: link.name.to_string(),
        prefix: link.prefix.to_string(),
        created: rfc3339(link.created),
        expires: rfc3339(link.expires),
        maker: link.maker.map(|maker| maker.to_string()),
    }
}
