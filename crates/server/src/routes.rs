//! The route table.

use std::{future::Future, pin::Pin};

use axum::{Router, extract::Request, handler::Handler, response::Response};
use http::Method;
use wire::routes;

use crate::{
    array_api, exchange, service,
    state::App,
    store_api::{erase, get, list, put},
};

type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A resource, or all those of one shape.
#[derive(Debug)]
pub struct Route {
    /// The path, with the names of its parts in braces. A `key` or `prefix` goes to the end, over any number of `/`.
    pub template: &'static str,
    /// What can be done with it; besides, each resource has `OPTIONS`.
    pub operations: &'static [Operation],
}

/// What one method does.
#[derive(Debug)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// Whether it changes anything.
    pub effect: Effect,
    handler: fn(Request, App) -> Answer,
}

/// Whether an operation changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reads, whatever its method.
    Reads,
    /// It changes what is stored.
    Changes,
}

macro_rules! on {
    ($method:ident, $effect:ident, $handler:path) => {
        Operation {
            method: Method::$method,
            effect: Effect::$effect,
            handler: |request, app| Handler::call($handler, request, app),
        }
    };
}

const LIST: Operation = on!(GET, Reads, list::list);
const LIST_HEAD: Operation = on!(HEAD, Reads, list::list);
const ERASE_PREFIX: Operation = on!(DELETE, Changes, erase::prefix);

/// Every resource and method that there is.
pub static ROUTES: &[Route] = &[
    Route {
        template: routes::STORE_KEY,
        operations: &[
            on!(GET, Reads, get::get),
            on!(HEAD, Reads, get::head),
            on!(PUT, Changes, put::put),
            on!(DELETE, Changes, erase::key),
        ],
    },
    Route { template: routes::STORE_PREFIX, operations: &[LIST, LIST_HEAD, ERASE_PREFIX] },
    Route { template: routes::STORE_ROOT, operations: &[LIST, LIST_HEAD, ERASE_PREFIX] },
    Route { template: routes::STORE, operations: &[on!(GET, Reads, list::root), on!(HEAD, Reads, list::root)] },
    Route {
        template: routes::ARRAY_PATH,
        operations: &[
            on!(GET, Reads, array_api::get),
            on!(HEAD, Reads, array_api::head),
            on!(POST, Reads, array_api::post),
        ],
    },
    Route {
        template: routes::HEALTH,
        operations: &[on!(GET, Reads, service::health), on!(HEAD, Reads, service::health)],
    },
    Route { template: routes::READY, operations: &[on!(GET, Reads, service::ready), on!(HEAD, Reads, service::ready)] },
    Route {
        template: routes::METRICS,
        operations: &[on!(GET, Reads, service::metrics), on!(HEAD, Reads, service::metrics)],
    },
    Route {
        template: routes::OPENAPI,
        operations: &[on!(GET, Reads, service::openapi), on!(HEAD, Reads, service::openapi)],
    },
];

/// The surfaces of `app` as a service, without the connections that [`serve`](crate::serve()) adds.
pub fn app(app: App) -> Router {
    Router::new().fallback(move |request| exchange::answer(app, request))
}

impl Route {
    /// The resource at a path, as it came and not decoded.
    pub(crate) fn find(method: &Method, path: &str) -> Option<&'static Self> {
        let template = match path.strip_prefix(routes::STORE_ROOT) {
            // Only keys are set, so a `PUT` with a slash at its end has a bad key rather than no such method.
            Some(_) if method == Method::PUT => routes::STORE_KEY,
            Some("") => routes::STORE_ROOT,
            Some(rest) if names_prefix(rest) => routes::STORE_PREFIX,
            Some(_) => routes::STORE_KEY,
            None if path == routes::ARRAY || path.starts_with(routes::ARRAY_ROOT) => routes::ARRAY_PATH,
            None => path,
        };
        ROUTES.iter().find(|route| route.template == template)
    }

    /// What a method does with the resource.
    pub(crate) fn operation(&self, method: &Method) -> Option<&'static Operation> {
        self.operations.iter().find(|operation| operation.method == method)
    }

    /// The value of `Allow`.
    pub fn allow(&self) -> String {
        methods(self.operations.iter())
    }

    /// As [`allow`](Self::allow), of the operations that change nothing.
    pub(crate) fn allow_reading(&self) -> String {
        methods(self.operations.iter().filter(|operation| operation.effect == Effect::Reads))
    }
}

impl Operation {
    /// Runs the operation.
    pub(crate) async fn run(&self, request: Request, app: App) -> Response {
        (self.handler)(request, app).await
    }
}

fn methods<'o>(operations: impl Iterator<Item = &'o Operation>) -> String {
    let mut methods: String = operations.flat_map(|operation| [operation.method.as_str(), ", "]).collect();
    methods.push_str("OPTIONS");
    methods
}

/// Whether what follows [`routes::STORE_ROOT`] ends in a slash, literal or not.
fn names_prefix(rest: &str) -> bool {
    rest.ends_with('/') || rest.ends_with("%2F") || rest.ends_with("%2f")
}
