//! The route table.

use std::{future::Future, pin::Pin};

use axum::{extract::Request, handler::Handler, response::Response};
use http::Method;
use wire::{query, routes};

use crate::{
    app::App,
    array_api, monitoring_api, node_api,
    store_api::{erase, get, list, put},
};

type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A resource, or all those of one shape.
#[derive(Debug)]
pub struct Route {
    /// The path, with the names of its parts in braces. A `key`, `prefix` or `path` goes to the end, over any number of `/`.
    pub template: &'static str,
    /// What can be done with it; besides, each resource has `OPTIONS`.
    pub operations: &'static [Operation],
}

/// What one method does, perhaps only where a query parameter says so.
#[derive(Debug)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The query parameter that asks for it, where the method has several operations. That without one is all the others.
    pub asked_by: Option<&'static str>,
    /// True if it changes anything.
    pub effect: Effect,
    handler: fn(Request, App) -> Answer,
}

/// True if an operation changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reads, whatever its method.
    Reads,
    /// It changes what is stored.
    Changes,
}

macro_rules! on {
    ($method:ident, $effect:ident, $handler:path) => {
        on!($method, None, $effect, $handler)
    };
    ($method:ident ? $parameter:path, $effect:ident, $handler:path) => {
        on!($method, Some($parameter), $effect, $handler)
    };
    ($method:ident, $asked_by:expr, $effect:ident, $handler:path) => {
        Operation {
            method: Method::$method,
            asked_by: $asked_by,
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
            on!(PUT, Changes, array_api::put),
            on!(POST ? query::APPEND, Changes, array_api::append),
            on!(POST, Reads, array_api::post),
        ],
    },
    Route {
        template: routes::NODE_PATH,
        operations: &[
            on!(GET, Reads, node_api::get),
            on!(HEAD, Reads, node_api::get),
            on!(PUT, Changes, node_api::put),
            on!(PATCH, Changes, node_api::patch),
            on!(DELETE, Changes, node_api::delete),
            on!(POST ? query::CONVERT, Changes, node_api::convert),
            on!(POST, Reads, node_api::validate),
        ],
    },
    Route {
        template: routes::SCHEMA_ZOM,
        operations: &[on!(GET, Reads, node_api::schema), on!(HEAD, Reads, node_api::schema)],
    },
    Route {
        template: routes::HEALTH,
        operations: &[on!(GET, Reads, monitoring_api::health), on!(HEAD, Reads, monitoring_api::health)],
    },
    Route {
        template: routes::READY,
        operations: &[on!(GET, Reads, monitoring_api::ready), on!(HEAD, Reads, monitoring_api::ready)],
    },
    Route {
        template: routes::METRICS,
        operations: &[on!(GET, Reads, monitoring_api::metrics), on!(HEAD, Reads, monitoring_api::metrics)],
    },
    Route {
        template: routes::OPENAPI,
        operations: &[on!(GET, Reads, monitoring_api::openapi), on!(HEAD, Reads, monitoring_api::openapi)],
    },
];

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
            None if path == routes::NODE || path.starts_with(routes::NODE_ROOT) => routes::NODE_PATH,
            None if routes::parse_schema(path).is_some() => routes::SCHEMA_ZOM,
            None => path,
        };
        ROUTES.iter().find(|route| route.template == template)
    }

    /// Says that it tells how the server is, which has to be known above all while there is too much to do.
    pub(crate) fn is_for_operators(&self) -> bool {
        [routes::HEALTH, routes::READY, routes::METRICS].contains(&self.template)
    }

    /// What a method does with the resource, as the query asks.
    pub(crate) fn operation(&self, method: &Method, query: &str) -> Option<&'static Operation> {
        let mut operations = self.operations.iter().filter(|operation| operation.method == method);
        operations.find(|operation| operation.asked_by.is_none_or(|parameter| query::names(query, parameter)))
    }

    /// The value of `Allow`.
    pub fn allow(&self) -> String {
        methods(self.operations.iter())
    }

    /// As [`allow`](Self::allow), of the operations that change nothing where the query is this one.
    pub(crate) fn allow_reading(&self, query: &str) -> String {
        let asked = |operation: &&Operation| self.operation(&operation.method, query);
        let reads = |operation: &&Operation| asked(operation).is_some_and(|asked| asked.effect == Effect::Reads);
        methods(self.operations.iter().filter(reads))
    }
}

impl Operation {
    /// Runs the operation.
    pub(crate) async fn run(&self, request: Request, app: App) -> Response {
        (self.handler)(request, app).await
    }
}

fn methods<'o>(operations: impl Iterator<Item = &'o Operation>) -> String {
    let mut methods: Vec<&str> = operations.map(|operation| operation.method.as_str()).collect();
    // The operations of one method stand together.
    methods.dedup();
    methods.push("OPTIONS");
    methods.join(", ")
}

/// True if what follows [`routes::STORE_ROOT`] ends in a slash, literal or not.
fn names_prefix(rest: &str) -> bool {
    rest.ends_with('/') || rest.ends_with("%2F") || rest.ends_with("%2f")
}
