//! The statuses of the operations on tokens and share links.

use std::{collections::BTreeSet, time::Duration};

use axum::body::Body;
use futures::stream;
use http::{HeaderName, HeaderValue};
use serde_json::json;
use zarrd_access::CredentialId;
use zarrd_server::{AnonymousAccess, Limits, Settings};

use super::{
    observed::{ObservedStatuses, TestRequest},
    servers::fill_memory,
};
use crate::common::{
    contract::CONTRACT,
    low_memory_settings,
    tokens::{ServerWithTokens, caller_of, create_link, create_token, new_link, new_token},
};

/// A server with tokens, one of them of an administrator.
struct AdministeredServer {
    tokens: ServerWithTokens,
    id: CredentialId,
    admin: String,
}

impl AdministeredServer {
    fn new(limits: Limits) -> Self {
        let settings = Settings { limits, ..low_memory_settings(Duration::ZERO) };
        let tokens = ServerWithTokens::with(AnonymousAccess::UntilFirstToken, settings);
        let (id, admin) = tokens.token(&["admin:/"]);
        Self { tokens, id, admin }
    }

    /// The request as an administrator.
    fn request(&self, request: &TestRequest) -> TestRequest {
        request.with("authorization", &self.admin)
    }

    /// Sends a request with all credentials that matter, while its caller holds most memory, and to the server after
    /// its directory has vanished.
    async fn send_all(self, request: &TestRequest, answers: &mut ObservedStatuses) {
        let authorized = self.request(request);
        let ServerWithTokens { dir, directory, app, server } = &self.tokens;
        answers.request(server, &authorized).await;
        let full = fill_memory(app, caller_of(self.id)).await;
        answers.request(server, &authorized).await;
        drop(full);
        answers.request(server, request).await;
        answers.request(server, &authorized.without_host()).await;
        answers.request(server, &authorized.with("content-type", "text/plain")).await;
        let (_, link) = create_link(directory, new_link(""));
        let target = format!("/s/{link}{}", request.target);
        answers.request(server, &TestRequest { target, ..request.clone() }).await;
        if !request.body.is_empty() {
            let large = Body::from(" ".repeat(65 << 10));
            answers.send(server, &authorized, large).await;
        }
        std::fs::remove_dir_all(dir.path()).unwrap();
        directory.reload_if_changed();
        answers.request(server, &authorized).await;
    }
}

#[tokio::test]
async fn every_documented_status_of_tokens_and_share_links_occurs() {
    let mut undocumented = BTreeSet::new();
    let mut missing = BTreeSet::new();
    for (path, item) in CONTRACT.document()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["tags"] != json!(["access"]) {
                continue;
            }
            let mut answers = ObservedStatuses::default();
            for (query, body) in [
                ("", r#"{"name": "n", "allow": ["read:a/"]}"#),
                ("", r#"{"prefix": "a/", "expires": "2999-01-01T00:00:00Z"}"#),
                ("?unknown", "{}"),
            ] {
                let body = if method == "post" { body } else { "" };
                let sites = AdministeredServer::new(Limits::default());
                let directory = &sites.tokens.directory;
                let ids = [create_token(directory, new_token(&["admin:/"])), create_link(directory, new_link(""))];
                let ids = ids.map(|(id, _)| id.to_string());
                let other = "00000000000000000000000000000000".to_owned();
                let targets = ids.into_iter().chain([other]).map(|id| path.replace("{id}", &id) + query);
                for target in targets {
                    let headers = [("host", "localhost:8000"), ("content-type", "application/json")];
                    let headers =
                        headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
                    let method = method.to_uppercase().parse().unwrap();
                    let request = TestRequest { method, target, headers: headers.to_vec(), body };
                    answers.request(&sites.tokens.server, &sites.request(&request)).await;
                    if !body.is_empty() {
                        let impatient = Limits { upload_timeout: Duration::from_millis(1), ..Limits::default() };
                        let sites = AdministeredServer::new(impatient);
                        let pending = stream::pending::<Result<Vec<u8>, std::io::Error>>();
                        answers.send(&sites.tokens.server, &sites.request(&request), Body::from_stream(pending)).await;
                    }
                    AdministeredServer::new(Limits::default()).send_all(&request, &mut answers).await;
                }
            }
            undocumented.extend(answers.undocumented);
            let id = operation["operationId"].as_str().unwrap();
            let documented = operation["responses"].as_object().unwrap().keys();
            missing.extend(documented.filter(|&status| !answers.statuses.contains(status)).map(|status| (id, status)));
        }
    }
    assert!(undocumented.is_empty(), "{undocumented:#?}");
    assert!(missing.is_empty(), "documented and not provoked: {missing:?}");
}
