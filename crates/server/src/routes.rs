//! The route table.

use std::{future::Future, pin::Pin, sync::LazyLock};

use axum::{extract::Request, handler::Handler, response::Response};
use http::{Method, Uri};
use zarrd_store::{Listing, Prefix, StoreError, Writes};
use zarrd_wire::{
    dav,
    query::{self, APPEND, NodePostQuery},
    routes,
};

use crate::{
    access_api,
    app::App,
    array_api, dav_api, monitoring_api, node_api, page_api, snapshot_api,
    store_api::{erase, get, list, put},
};

type HandlerFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A resource, or all resources that match a template.
#[derive(Debug)]
pub struct Route {
    /// The path template, with parameters in braces. A final `key`, `prefix` or `path` matches any number of segments.
    pub template: &'static str,
    /// The supported operations, in addition to `OPTIONS`.
    pub operations: Vec<Operation>,
}

/// The operation of one method, optionally selected by a query parameter.
#[derive(Debug)]
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The query parameter that selects this operation, if the method has several. The operation without one is the
    /// default.
    pub selected_by: Option<&'static str>,
    /// The safety of the operation.
    pub safety: Safety,
    /// The right that the operation requires.
    pub requires: Requirement,
    handler: fn(Request, App) -> HandlerFuture,
}

/// The safety of an operation (RFC 9110, section 9.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// Reads only, whatever the method.
    Safe,
    /// Changes what is stored.
    Unsafe,
}

/// The right that an operation requires of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// None.
    Nothing,
    /// To read what the path names: a key, all keys below a prefix, or a node and everything below it.
    Read,
    /// To change what the path names.
    Write,
    /// To read the prefix, or anything below it: a listing above what the caller may read shows only the way there.
    List,
    /// To change the node; with a target, to read the node and to change the target.
    Convert,
    /// To read the properties of what the path names: like a listing, with at most the depth of a directory above what the
    /// caller may read.
    Properties,
    /// To read what the path names, and to change the destination.
    Copy,
    /// To change what the path names, and the destination.
    Move,
    /// To read everything, unless the metrics are public.
    Metrics,
    /// A token of one's own.
    Token,
    /// To read the prefix that the query names, and a token unless anybody may change everything.
    Snapshot,
}

macro_rules! operation {
    ($method:ident, $safety:ident, $requires:ident, $handler:path) => {
        operation!($method, None, $safety, $requires, $handler)
    };
    ($method:path = dav, $safety:ident, $requires:ident, $handler:path) => {
        Operation { method: $method(), ..operation!(GET, None, $safety, $requires, $handler) }
    };
    ($method:ident ? $parameter:path, $safety:ident, $requires:ident, $handler:path) => {
        operation!($method, Some($parameter), $safety, $requires, $handler)
    };
    ($method:ident, $selected_by:expr, $safety:ident, $requires:ident, $handler:path) => {
        Operation {
            method: Method::$method,
            selected_by: $selected_by,
            safety: Safety::$safety,
            requires: Requirement::$requires,
            handler: |request, app| Handler::call($handler, request, app),
        }
    };
}

/// `GET` and `HEAD` with one handler, for a caller with the required rights.
macro_rules! reads {
    ($requires:ident, $handler:path) => {
        [operation!(GET, Safe, $requires, $handler), operation!(HEAD, Safe, $requires, $handler)]
    };
}

/// The operations on a prefix.
fn prefix_operations() -> Vec<Operation> {
    vec![
        operation!(GET, Safe, List, list::list),
        operation!(HEAD, Safe, List, list::list),
        operation!(DELETE, Unsafe, Write, erase::prefix),
        operation!(dav::propfind = dav, Safe, Properties, dav_api::propfind),
        operation!(dav::proppatch = dav, Unsafe, Write, dav_api::proppatch),
        operation!(dav::copy = dav, Unsafe, Copy, dav_api::copy_or_move),
    ]
}

/// The operations of WebDAV on a key, or on a prefix other than the root, that change it.
fn dav_changes() -> [Operation; 2] {
    [
        operation!(dav::move_ = dav, Unsafe, Move, dav_api::copy_or_move),
        operation!(dav::mkcol = dav, Unsafe, Write, dav_api::mkcol),
    ]
}

/// All resources and their operations. Operations of one method are adjacent.
pub static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    [store_routes(), engine_routes(), access_routes(), server_routes()].into_iter().flatten().collect()
});

fn store_routes() -> Vec<Route> {
    vec![
        Route {
            template: routes::STORE_KEY,
            operations: [
                operation!(GET, Safe, Read, get::get),
                operation!(HEAD, Safe, Read, get::head),
                operation!(PUT, Unsafe, Write, put::put),
                operation!(DELETE, Unsafe, Write, erase::key),
                operation!(dav::propfind = dav, Safe, Properties, dav_api::propfind),
                operation!(dav::proppatch = dav, Unsafe, Write, dav_api::proppatch),
                operation!(dav::copy = dav, Unsafe, Copy, dav_api::copy_or_move),
            ]
            .into_iter()
            .chain(dav_changes())
            .collect(),
        },
        Route {
            template: routes::STORE_PREFIX,
            operations: prefix_operations().into_iter().chain(dav_changes()).collect(),
        },
        Route { template: routes::STORE_ROOT, operations: prefix_operations() },
        Route {
            template: routes::STORE,
            operations: vec![
                operation!(GET, Safe, Nothing, list::root),
                operation!(HEAD, Safe, Nothing, list::root),
                operation!(dav::propfind = dav, Safe, Nothing, list::root),
            ],
        },
    ]
}

fn engine_routes() -> Vec<Route> {
    vec![
        Route {
            template: routes::ARRAY_PATH,
            operations: vec![
                operation!(GET ? query::CHUNKS, Safe, Read, array_api::chunks),
                operation!(GET, Safe, Read, array_api::get),
                operation!(HEAD ? query::CHUNKS, Safe, Read, array_api::chunks),
                operation!(HEAD, Safe, Read, array_api::head),
                operation!(PUT ? query::CREATE, Unsafe, Write, array_api::create),
                operation!(PUT, Unsafe, Write, array_api::put),
                operation!(POST ? query::APPEND, Unsafe, Write, array_api::append),
                operation!(POST, Safe, Read, array_api::post),
            ],
        },
        Route {
            template: routes::NODE_PATH,
            operations: vec![
                operation!(GET, Safe, Read, node_api::get),
                operation!(HEAD, Safe, Read, node_api::get),
                operation!(PUT, Unsafe, Write, node_api::put),
                operation!(PATCH, Unsafe, Write, node_api::patch),
                operation!(DELETE, Unsafe, Write, node_api::delete),
                operation!(POST ? query::CONVERT, Unsafe, Convert, node_api::convert),
                operation!(POST ? query::APPEND, Unsafe, Write, array_api::append_dataset),
                operation!(POST, Safe, Read, node_api::validate),
            ],
        },
    ]
}

fn access_routes() -> Vec<Route> {
    vec![
        Route {
            template: routes::TOKENS,
            operations: vec![
                operation!(GET, Safe, Token, access_api::list_tokens),
                operation!(HEAD, Safe, Token, access_api::list_tokens),
                operation!(POST, Unsafe, Token, access_api::create_token),
            ],
        },
        Route {
            template: routes::TOKEN,
            operations: vec![operation!(DELETE, Unsafe, Token, access_api::revoke_token)],
        },
        Route {
            template: routes::SHARES,
            operations: vec![
                operation!(GET, Safe, Token, access_api::list_shares),
                operation!(HEAD, Safe, Token, access_api::list_shares),
                operation!(POST, Unsafe, Token, access_api::create_share),
            ],
        },
        Route {
            template: routes::SHARE,
            operations: vec![operation!(DELETE, Unsafe, Token, access_api::revoke_share)],
        },
        Route { template: routes::SNAPSHOTS, operations: vec![operation!(POST, Unsafe, Snapshot, snapshot_api::take)] },
        Route { template: routes::SNAPSHOT, operations: vec![operation!(DELETE, Unsafe, Nothing, snapshot_api::end)] },
    ]
}

fn server_routes() -> Vec<Route> {
    vec![
        Route { template: routes::SCHEMA_ZOM, operations: reads!(Nothing, node_api::schema).into() },
        Route { template: routes::PAGE, operations: reads!(Nothing, page_api::root).into() },
        Route { template: routes::BROWSE_PATH, operations: reads!(Nothing, page_api::browse).into() },
        Route { template: routes::ASSET, operations: reads!(Nothing, page_api::asset).into() },
        Route { template: routes::HEALTH, operations: reads!(Nothing, monitoring_api::health).into() },
        Route { template: routes::READY, operations: reads!(Nothing, monitoring_api::ready).into() },
        Route { template: routes::METRICS, operations: reads!(Metrics, monitoring_api::metrics).into() },
        Route { template: routes::OPENAPI, operations: reads!(Nothing, monitoring_api::openapi).into() },
    ]
}

impl Route {
    /// Finds the resource at a path, before percent-decoding.
    pub(crate) fn find(method: &Method, path: &str) -> Option<&'static Self> {
        let template = match path.strip_prefix(routes::STORE_ROOT) {
            // Only keys can be set, so a `PUT` with a trailing slash has an invalid key, not an unsupported method.
            Some(_) if method == Method::PUT => routes::STORE_KEY,
            Some("") => routes::STORE_ROOT,
            Some(rest) if is_prefix(rest) => routes::STORE_PREFIX,
            Some(_) => routes::STORE_KEY,
            None if path == routes::ARRAY || path.starts_with(routes::ARRAY_ROOT) => routes::ARRAY_PATH,
            None if path == routes::NODE || path.starts_with(routes::NODE_ROOT) => routes::NODE_PATH,
            None if path == routes::BROWSE || path.starts_with(routes::BROWSE_ROOT) => routes::BROWSE_PATH,
            None if routes::parse_asset(path).is_some() => routes::ASSET,
            None if routes::parse_schema(path).is_some() => routes::SCHEMA_ZOM,
            None if routes::parse_snapshot_id(path).is_some() => routes::SNAPSHOT,
            None if routes::parse_credential_id(path).is_some() => match path.starts_with(routes::TOKENS) {
                true => routes::TOKEN,
                false => routes::SHARE,
            },
            None => path,
        };
        ROUTES.iter().find(|route| route.template == template)
    }

    /// True for the endpoints that stay available when the server is overloaded.
    pub(crate) fn is_monitoring(&self) -> bool {
        [routes::HEALTH, routes::READY, routes::METRICS].contains(&self.template)
    }

    /// Finds the operation for a method and query.
    pub(crate) fn operation<'r>(&'r self, method: &Method, query: &str) -> Option<&'r Operation> {
        let mut operations = self.operations.iter().filter(|operation| operation.method == method);
        operations.find(|operation| operation.selected_by.is_none_or(|parameter| query::names(query, parameter)))
    }

    /// Returns the value of `Allow`.
    pub fn allow(&self) -> String {
        method_list(self.operations.iter())
    }

    /// Like [`allow`](Self::allow), limited to safe operations for this query.
    pub(crate) fn allow_safe(&self, query: &str) -> String {
        self.allow_matching(query, |operation| operation.safety == Safety::Safe)
    }

    /// Like [`allow`](Self::allow), limited to operations for this query that match.
    pub(crate) fn allow_matching(&self, query: &str, predicate: impl Fn(&Operation) -> bool) -> String {
        let selected = |operation: &&Operation| self.operation(&operation.method, query);
        method_list(self.operations.iter().filter(|operation| selected(operation).is_some_and(&predicate)))
    }
}

impl Operation {
    /// True if the operation changes what is stored, apart from tokens and share links.
    pub fn changes_store(&self) -> bool {
        matches!(self.requires, Requirement::Write | Requirement::Convert | Requirement::Copy | Requirement::Move)
    }

    /// True if what the path names is changed, and not only what the operation copies it to.
    fn changes_named(&self) -> bool {
        self.changes_store() && self.requires != Requirement::Copy
    }

    /// True if the operation lists what is below the prefix that the path names.
    fn lists(&self, uri: &Uri) -> bool {
        match self.requires {
            Requirement::List => true,
            Requirement::Properties => {
                uri.path().strip_prefix(routes::STORE_ROOT).is_some_and(|rest| rest.is_empty() || is_prefix(rest))
            }
            _ => false,
        }
    }

    /// Fails if the store that has what the URI names does not support the operation.
    pub(crate) fn check_supported(&self, app: &App, uri: &Uri) -> Result<(), StoreError> {
        if !self.changes_store() && !self.lists(uri) {
            return Ok(());
        }
        let named = first_segment(uri.path());
        if self.changes_store() {
            app.writes()?;
        }
        if self.changes_named() {
            let is_whole = self.requires == Requirement::Convert || self.method == Method::DELETE;
            if named.is_none() && is_whole && app.store().parts().len() > 1 {
                return Err(StoreError::Unsupported { what: "changes across mounted stores" });
            }
            let is_written = |prefix: &Prefix| app.store().guarantees_below(prefix).writes != Writes::None;
            if !named.iter().chain(&self.target(uri)).all(is_written) {
                return Err(StoreError::Unsupported { what: "changes" });
            }
        }
        if let Some(what) = self.needs_commits(app, uri, named.as_ref()) {
            return Err(StoreError::Unsupported { what });
        }
        if self.lists(uri) && !is_listed(app, named.as_ref()) {
            return Err(StoreError::Unsupported { what: "listings" });
        }
        Ok(())
    }

    /// The reason why what the URI names does not support the operation, if that needs commits, and there are none.
    fn needs_commits(&self, app: &App, uri: &Uri, named: Option<&Prefix>) -> Option<&'static str> {
        let is_keyed = |prefix: Option<&Prefix>| match prefix {
            Some(prefix) => app.store().guarantees_below(prefix).writes == Writes::Key,
            None => app.commits().is_err(),
        };
        match self.requires {
            Requirement::Copy => app.commits().is_err().then_some("copies and moves: it is written key by key"),
            Requirement::Move => is_keyed(named).then_some("copies and moves: it is written key by key"),
            Requirement::Convert if self.target(uri).is_none() => {
                is_keyed(named).then_some("converting in place: it is written key by key")
            }
            Requirement::Write if self.selected_by == Some(APPEND) && uri.path().starts_with(routes::NODE_ROOT) => {
                is_keyed(named).then_some("appends to several arrays at once: it is written key by key")
            }
            _ => None,
        }
    }

    /// The prefix of the first segment of a conversion's target.
    fn target(&self, uri: &Uri) -> Option<Prefix> {
        if self.requires != Requirement::Convert {
            return None;
        }
        match NodePostQuery::parse(uri.query().unwrap_or_default()) {
            Ok(NodePostQuery::Convert { target: Some(target), .. }) => {
                Prefix::parse(&format!("{}/", target.relative().split('/').next()?)).ok()
            }
            _ => None,
        }
    }

    /// True if the operation reads the properties of WebDAV.
    pub(crate) fn is_propfind(&self) -> bool {
        self.requires == Requirement::Properties
    }

    /// Runs the handler.
    pub(crate) async fn run(&self, request: Request, app: App) -> Response {
        (self.handler)(request, app).await
    }
}

/// True if a prefix can be listed; the root if the store at the root can.
fn is_listed(app: &App, prefix: Option<&Prefix>) -> bool {
    let listing = match prefix {
        Some(prefix) => app.store().guarantees_below(prefix).listing,
        None => app.store().parts().first().map_or(Listing::None, |(_, guarantees)| guarantees.listing),
    };
    listing == Listing::Sorted
}

/// The prefix of the first segment of what a path names in the store, which is what a store can be mounted below;
/// `None` for the root, and for what is not in the store.
fn first_segment(path: &str) -> Option<Prefix> {
    let roots = [routes::STORE_ROOT, routes::ARRAY_ROOT, routes::NODE_ROOT];
    let rest = roots.iter().find_map(|root| path.strip_prefix(root))?;
    let name = routes::decode(rest).ok()?;
    let first = name.split(|&byte| byte == b'/').find(|segment| !segment.is_empty())?;
    Prefix::from_bytes(&[first, b"/"].concat()).ok()
}

fn method_list<'o>(operations: impl Iterator<Item = &'o Operation>) -> String {
    let mut methods: Vec<&str> = operations.map(|operation| operation.method.as_str()).collect();
    // Operations of one method are adjacent.
    methods.dedup();
    methods.push("OPTIONS");
    methods.join(", ")
}

/// True if the path below [`routes::STORE_ROOT`] ends in a slash, literal or encoded.
fn is_prefix(rest: &str) -> bool {
    rest.ends_with('/') || rest.ends_with("%2F") || rest.ends_with("%2f")
}
