//! Access directories with tokens and share links, and servers that use them.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::Method;
use serde_json::Value;
use zarrd_access::{AccessDirectory, CredentialId, Grants, NewLink, NewToken};
use zarrd_server::{AccessPolicy, AnonymousAccess, App, Caller, MetricsAccess, Settings, router};
use zarrd_store::{MemoryStore, Prefix, TransactionalStore};

use super::{TestResponse, TestServer};

/// A server with an access directory.
pub struct ServerWithTokens {
    pub dir: tempfile::TempDir,
    pub directory: Arc<AccessDirectory>,
    pub app: App,
    pub server: TestServer,
}

impl ServerWithTokens {
    pub fn new(anonymous: AnonymousAccess) -> Self {
        Self::with(anonymous, Settings::default())
    }

    /// A server on which callers without a credential have no rights.
    pub fn closed() -> Self {
        Self::new(AnonymousAccess::Granted(Grants::none()))
    }

    /// A server with these settings, except for their access policy.
    pub fn with(anonymous: AnonymousAccess, settings: Settings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let directory = Arc::new(AccessDirectory::open(dir.path()).unwrap());
        let access = policy(&directory, anonymous);
        let store = Arc::new(MemoryStore::new());
        let app = App::new(store.clone(), Settings { access, ..settings });
        Self { dir, directory, server: TestServer { router: router(app.clone()), store }, app }
    }

    /// Creates a token; returns its id and the header that has it.
    pub fn token(&self, grants: &[&str]) -> (CredentialId, String) {
        let (id, token) = create_token(&self.directory, new_token(grants));
        (id, format!("Bearer {token}"))
    }

    /// Copies the file of a token or share link; creating each would sync its file. Different numbers make different
    /// ids, which are spread over all of them.
    pub fn copy(&self, kind: &str, id: CredentialId, numbers: Range<u128>) {
        let dir = self.dir.path().join(kind);
        let record = std::fs::read_to_string(dir.join(format!("{id}.json"))).unwrap();
        for number in numbers {
            let copy = format!("{:032x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
            std::fs::write(dir.join(format!("{copy}.json")), record.replace(&id.to_string(), &copy)).unwrap();
        }
        self.directory.reload_if_changed();
    }

    /// Sends a request with this `Authorization` and a JSON document, or none for null.
    pub async fn send(&self, authorization: &str, method: Method, path: &str, body: Value) -> TestResponse {
        let headers = [("authorization", authorization), ("content-type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.server.request(method, path, &headers, body).await
    }

    pub async fn get(&self, authorization: &str, path: &str) -> TestResponse {
        self.send(authorization, Method::GET, path, Value::Null).await
    }
}

/// A server that accepts the tokens and links of a directory, and no other callers.
pub fn closed_server_over(directory: &Arc<AccessDirectory>, store: Arc<dyn TransactionalStore>) -> TestServer {
    let access = policy(directory, AnonymousAccess::Granted(Grants::none()));
    TestServer::over(store, Settings { access, ..Settings::default() })
}

/// The policy of a server with this directory.
pub fn policy(directory: &Arc<AccessDirectory>, anonymous: AnonymousAccess) -> AccessPolicy {
    AccessPolicy { anonymous, directory: directory.clone().into(), metrics: MetricsAccess::Readers }
}

/// The grants in a list such as `["read:lab/"]`.
pub fn grants(list: &[impl AsRef<str>]) -> Grants {
    Grants::new(list.iter().map(|grant| grant.as_ref().parse().unwrap())).unwrap()
}

/// A token that does not expire.
pub fn new_token(list: &[impl AsRef<str>]) -> NewToken {
    NewToken { name: "t".to_owned(), grants: grants(list), expires: None, maker: None }
}

/// A share link that expires in an hour.
pub fn new_link(prefix: &str) -> NewLink {
    NewLink { name: String::new(), prefix: Prefix::parse(prefix).unwrap(), expires: in_an_hour(), maker: None }
}

/// Creates a token; returns its id and its text.
pub fn create_token(directory: &AccessDirectory, new: NewToken) -> (CredentialId, String) {
    let (info, secret) = directory.create(new).unwrap();
    (info.id, secret.expose().to_owned())
}

/// Creates a share link; returns its id and its text.
pub fn create_link(directory: &AccessDirectory, new: NewLink) -> (CredentialId, String) {
    let (info, secret) = directory.create_link(new).unwrap();
    (info.id, secret.expose().to_owned())
}

/// The caller for fair sharing that a token is.
pub fn caller_of(id: CredentialId) -> Caller {
    Caller::new(u128::from_str_radix(&id.to_string(), 16).unwrap())
}

pub fn in_an_hour() -> SystemTime {
    SystemTime::now() + Duration::from_secs(3600)
}
