//! Erasing values.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode};
use wire::{
    headers::EXISTED,
    listing::Erased,
    problem::{Members, Problem, ProblemType},
    query::{CONFIRM, Confirm},
};

use super::put::precondition;
use crate::{
    extract::{AtKey, AtPrefix, ConfirmQuery, KeyWriteQuery, WriteConditions},
    refusal::Refusal,
    state::App,
};

/// `DELETE` of a key: erases its value, if it has one.
pub(crate) async fn key(
    State(app): State<App>,
    AtKey(key): AtKey,
    _: KeyWriteQuery,
    conditions: WriteConditions,
) -> Result<Response, Refusal> {
    let precondition = precondition(&app, &key, conditions).await?;
    let existed = app.store().erase(&key, precondition).await?;
    let existed = HeaderValue::from_static(if existed { "true" } else { "false" });
    Ok((StatusCode::NO_CONTENT, [(EXISTED, existed)]).into_response())
}

/// `DELETE` of a prefix: erases all that lies below it.
pub(crate) async fn prefix(
    State(app): State<App>,
    AtPrefix(prefix): AtPrefix,
    ConfirmQuery(confirm): ConfirmQuery,
    conditions: WriteConditions,
) -> Result<Json<Erased>, Refusal> {
    if conditions.are_there() {
        return Err(Refusal::header("If-Match", "a prefix has no version that a precondition could be about"));
    }
    if prefix.is_root() && confirm == Confirm::Unsaid {
        return Err(unconfirmed());
    }
    let erased = app.store().erase_prefix(&prefix).await?;
    Ok(Json(Erased { erased }))
}

fn unconfirmed() -> Refusal {
    let problem = Problem::new(ProblemType::ConfirmationNeeded)
        .with_detail("this is the root: every key would go; say confirm=all if that is meant")
        .with_members(Members { parameter: Some(CONFIRM.to_owned()), ..Members::default() });
    Refusal::new(problem)
}
