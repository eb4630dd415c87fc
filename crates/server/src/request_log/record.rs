//! The facts about a request that the logs have.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use axum::extract::Request;
use http::{Extensions, Method, Version, header::USER_AGENT};

use super::{
    audited::AuditedCredential,
    redaction::{self, LoggedPath},
};
use crate::request_id::RequestId;

/// The maximum length of a logged `User-Agent`, in bytes.
const MAX_AGENT_BYTES: usize = 256;

/// The connection of a request, among its extensions if a log is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionInfo {
    /// The address of the client, resolved behind trusted proxies.
    pub(crate) client: IpAddr,
    /// True if the connection is encrypted.
    pub(crate) tls: bool,
}

/// The names of a request's route and operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteName {
    /// The template of the route; `None` if there is none at the path.
    pub(crate) template: Option<&'static str>,
    /// The operation, if the method is supported.
    pub(crate) operation: Option<OperationName>,
}

/// The name of an operation within its route and method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperationName {
    /// The query parameter that selects it.
    pub(crate) selected_by: Option<&'static str>,
    /// True if it changes what is stored.
    pub(crate) is_unsafe: bool,
}

/// A request in the logs. Guards and handlers find it among the request's extensions, and complete it.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    pub(super) time: SystemTime,
    pub(super) started: Instant,
    pub(super) id: RequestId,
    pub(super) connection: Option<ConnectionInfo>,
    pub(super) method: Method,
    pub(super) path: LoggedPath,
    pub(super) query: Option<String>,
    pub(super) route: RouteName,
    pub(super) user_agent: Option<String>,
    pub(super) version: Version,
    received: AtomicU64,
    principal: OnceLock<String>,
    credential: OnceLock<AuditedCredential>,
}

impl RequestRecord {
    /// The record of a request that has just arrived. It has no headers except `User-Agent`.
    pub(super) fn new(request: &Request, id: RequestId, route: RouteName) -> Self {
        let agent = request.headers().get(USER_AGENT);
        let agent = agent.map(|agent| redaction::header(agent.as_bytes(), MAX_AGENT_BYTES));
        Self {
            time: SystemTime::now(),
            started: Instant::now(),
            id,
            connection: request.extensions().get().copied(),
            method: request.method().clone(),
            path: LoggedPath::of(request),
            query: request.uri().query().map(redaction::query),
            route,
            user_agent: agent,
            version: request.version(),
            received: AtomicU64::new(0),
            principal: OnceLock::new(),
            credential: OnceLock::new(),
        }
    }

    /// The record of the request with these extensions, if a log is on.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Arc<Self>>().map(|record| &**record)
    }

    /// Sets the name of the principal that the request was authenticated as, once.
    pub(crate) fn set_principal(&self, name: String) {
        // A request is authenticated once.
        let _ = self.principal.set(name);
    }

    /// Sets the token or share link that the request makes or revokes, once.
    pub(super) fn set_credential(&self, credential: AuditedCredential) {
        // A request changes one.
        let _ = self.credential.set(credential);
    }

    /// Counts received bytes of the body.
    pub(super) fn add_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(super) fn principal(&self) -> Option<&str> {
        self.principal.get().map(String::as_str)
    }

    pub(super) fn credential(&self) -> Option<&AuditedCredential> {
        self.credential.get()
    }

    /// The path without secrets.
    pub(super) fn path(&self) -> &str {
        self.path.as_str()
    }

    /// The method without secrets, in bounded length.
    pub(super) fn method(&self) -> Cow<'_, str> {
        redaction::method(&self.method)
    }

    /// The operation, such as `POST /node/{path}?convert`; `None` if there is none.
    pub(super) fn operation(&self) -> Option<String> {
        let (template, operation) = (self.route.template?, self.route.operation?);
        let method = self.method();
        Some(match operation.selected_by {
            Some(parameter) => format!("{method} {template}?{parameter}"),
            None => format!("{method} {template}"),
        })
    }

    /// True if the request's operation changes what is stored.
    pub(super) fn is_unsafe(&self) -> bool {
        self.route.operation.is_some_and(|operation| operation.is_unsafe)
    }
}
