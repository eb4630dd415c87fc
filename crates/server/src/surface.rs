//! The surfaces that a server has, each on a listener of its own.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Request};
use http::{Extensions, Uri, request::Parts};
use zarrd_wire::routes::{STORE, STORE_ROOT};

use crate::{app::App, authorization::Session};

/// The meaning of the paths of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// They are paths of the route table.
    #[default]
    Api,
    /// They are keys and prefixes of the store, as WebDAV clients expect that take keys from whole paths.
    Root,
    /// They are buckets and keys, as S3 clients expect.
    S3,
}

impl Surface {
    /// The surface of a request with these extensions.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or_default()
    }

    /// Puts the path of a request below [`STORE_ROOT`], if it is a key or prefix. From here on only URLs in responses
    /// and in `Destination` differ.
    pub(crate) fn enter(self, request: &mut Request) {
        if self != Self::Root || !request.uri().path().starts_with('/') {
            return;
        }
        let mut parts = request.uri().clone().into_parts();
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        parts.path_and_query = format!("{STORE}{}{query}", request.uri().path()).try_into().ok();
        // A URI with a valid path and no other change is valid.
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
            request.extensions_mut().insert(self);
        }
    }

    /// The path of the root prefix in URLs of the responses to a session, which ends in `/`.
    pub(crate) fn base(self, app: &App, session: &Session) -> String {
        match self {
            Self::Api => format!("{}{}{STORE_ROOT}", app.settings().base_path.as_str(), session.base_path()),
            Self::Root | Self::S3 => "/".to_owned(),
        }
    }
}

impl FromRequestParts<App> for Surface {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
