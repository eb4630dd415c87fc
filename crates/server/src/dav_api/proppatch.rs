//! `PROPPATCH`: resources have only properties that follow from what is stored, so that none can be changed.

use std::time::SystemTime;

use axum::{body::Body, extract::State, response::Response};
use zarrd_wire::dav::{self, Proppatch};

use super::{
    propfind::response,
    resource::{self, Found},
};
use crate::{
    app::App,
    authorization::Session,
    error::ApiError,
    extract::{NoQuery, Query, StorePath, WriteConditions},
    request_body::XmlDocument,
    snapshot_api::ReadSource,
    surface::Surface,
};

/// `PROPPATCH`: returns for each property that the body names why it is not changed.
pub(crate) async fn proppatch(
    State(app): State<App>,
    StorePath(target): StorePath,
    _: Query<NoQuery>,
    conditions: WriteConditions,
    session: Session,
    surface: Surface,
    XmlDocument(body): XmlDocument,
) -> Result<Response, ApiError> {
    let request = Proppatch::parse(&body)?;
    let source = ReadSource::new(&app, None).await?;
    let base = surface.base(&app, &session);
    let document = match resource::find(&app, &source, target, SystemTime::now()).await? {
        Found::Value(key, meta) => {
            conditions.check(&key, Some(&meta), &[])?;
            dav::unchanged(&base, key.as_str(), &request)
        }
        Found::Collection(prefix, _) => {
            conditions.check_prefix()?;
            dav::unchanged(&base, prefix.as_str(), &request)
        }
    };
    Ok(response(Body::from(document)))
}
