//! Every status documented in `openapi.yaml` is provoked here, or listed with the reason why it cannot be.

mod access;
mod observed;
mod requests;
mod servers;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use zarrd_store::{BackendErrorKind, Key, StoreError};

use self::{observed::ObservedStatuses, requests::requests, servers::TestServers};
use crate::common::{contract::CONTRACT, failing::failing_server};

/// Statuses that no request here provokes: operation, status and reason.
const UNREACHABLE: &[(&str, &str, &str)] = &[
    ("metrics", "500", "metrics that cannot be written as text would be a mistake of the program"),
    ("headMetrics", "500", "as `metrics`"),
    ("endSnapshot", "204", "the id is that of the caller's own snapshot: `snapshots` ends some"),
    ("propfind", "413", "the body would have to be large: `webdav::properties` sends one"),
    ("proppatch", "413", "as `propfind`: `webdav::property_changes` sends one"),
    ("copy", "413", "there would have to be more keys than fit into a commit: `webdav::transfers` has so many"),
    ("move", "413", "as `copy`"),
    ("takeSnapshot", "429", "the token has to have a snapshot: `snapshots` has such a token"),
];

#[tokio::test]
async fn every_documented_status_occurs_and_no_other() {
    let mut undocumented = BTreeSet::new();
    let mut documented: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    // Some operations are at several paths.
    let mut observed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, item) in CONTRACT.document()["paths"].as_object().unwrap() {
        for (method, operation) in CONTRACT.operations(item) {
            let id = operation["operationId"].as_str().unwrap();
            if operation["tags"] == json!(["access"]) {
                continue;
            }
            let (sites, mut answers) = (TestServers::new(), ObservedStatuses::default());
            for request in requests(path, method) {
                sites.request(&request, &mut answers).await;
                if id == "setKey" {
                    answers.request(&failing_server(taken), &request).await;
                }
                if operation["responses"].get("507").is_some() {
                    answers.request(&failing_server(|_| StoreError::OutOfSpace), &request).await;
                }
                if operation["responses"].get("502").is_some() {
                    answers.request(&failing_server(denied), &request).await;
                    answers.request(&failing_server(silent), &request).await;
                }
            }
            undocumented.extend(answers.undocumented);
            observed.entry(id).or_default().extend(answers.statuses);
            documented
                .entry(id)
                .or_default()
                .extend(operation["responses"].as_object().unwrap().keys().map(String::as_str));
        }
    }
    let all = documented.iter().flat_map(|(id, statuses)| statuses.iter().map(move |status| (*id, *status)));
    let missing: BTreeSet<_> = all.filter(|(id, status)| !observed[id].contains(*status)).collect();
    let listed: BTreeSet<_> = UNREACHABLE.iter().map(|(id, status, _)| (*id, *status)).collect();
    assert!(undocumented.is_empty(), "{undocumented:#?}");
    assert_eq!(missing, listed, "documented and not provoked, and what is listed as such");
}

/// A store of which another key has the name.
fn taken(key: &Key) -> StoreError {
    StoreError::NameConflict { key: key.clone(), existing: format!("{key}/") }
}

/// The failure of a store that may not read a key.
fn denied(key: &Key) -> StoreError {
    StoreError::backend(BackendErrorKind::PermissionDenied, "denied").at(key.as_str())
}

fn silent(key: &Key) -> StoreError {
    StoreError::backend(BackendErrorKind::Timeout, "silent").at(key.as_str())
}
