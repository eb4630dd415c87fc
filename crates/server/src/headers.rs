//! Header values shared by several handlers.

use http::HeaderValue;
use zarrd_array::RemovedCopies;
use zarrd_meta::{NodePath, relation::DialectRelation};
use zarrd_store::{Guarantees, Key, Prefix};
use zarrd_wire::routes;

use crate::app::App;

/// `Cache-Control`: caches may store the response, but have to revalidate it, since any key can change at any time.
pub(crate) const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// `Content-Security-Policy`: a value that a browser displays has no origin, runs nothing and submits nothing.
pub(crate) const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox");

/// The guarantees of what is at a path and below it.
pub(crate) fn guarantees_at(app: &App, path: &NodePath) -> Guarantees {
    let prefix = Prefix::parse(&path.key_prefix());
    // No key is below a path that is too long.
    prefix.map_or_else(|_| app.store().guarantees(), |prefix| app.store().guarantees_below(&prefix))
}

/// The value of `Zarr-Dialects-Differ` for the relation of two documents; `None` if they describe the same.
pub(crate) fn dialects_differ(relation: Option<DialectRelation>) -> Option<HeaderValue> {
    let differs = relation.filter(|relation| *relation != DialectRelation::Same);
    differs.map(|relation| HeaderValue::from_static(relation.name()))
}

/// The value of `Zarr-Consolidated` for the copies that a change removed, or could not bring up to date; `None` if there
/// are none.
pub(crate) fn removed_copies(removed: RemovedCopies) -> Option<HeaderValue> {
    let named = |state: &'static str| move |key: Key| format!("{state} {}", routes::encode(key.as_str()));
    let stale = removed.stale().into_iter().map(named("stale"));
    let removed: Vec<String> = removed.keys().into_iter().map(named("removed")).chain(stale).collect();
    (!removed.is_empty()).then(|| HeaderValue::try_from(removed.join(", ")).ok()).flatten()
}

/// The value of `Zarr-Consistency` for a response with several values that are at a path and below it.
pub(crate) fn consistency(app: &App, path: &NodePath) -> HeaderValue {
    HeaderValue::from_static(guarantees_at(app, path).reads.as_str())
}
