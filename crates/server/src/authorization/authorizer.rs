//! The decision whether a request is allowed.

use std::{cell::OnceCell, iter::once};

use axum::extract::Request;
use http::{HeaderMap, HeaderName, HeaderValue, header::ORIGIN};
use zarrd_access::{AccessDirectory, Denial, Principal, PrincipalKind, Right, Secret};
use zarrd_meta::NodePath;
use zarrd_store::{KeyError, Prefix};
use zarrd_wire::{
    dav::{self, Depth},
    problem::{Members, Problem, ProblemType},
    query::{ListKind, ListQuery, NodePostQuery, SnapshotQuery},
    routes::{self, PathError, Slashes, StoreTarget, parse_array, parse_node, parse_store},
};

use super::{
    credential::{self, CredentialError, Scheme},
    policy::MetricsAccess,
    session::Session,
    share_link::ShareLink,
};
use crate::{
    app::App,
    destination,
    error::{ApiError, BEARER_CHALLENGE},
    routes::{Operation, Requirement, Route},
};

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// The challenge for programs and for a user's own navigation.
const CHALLENGES: HeaderValue =
    HeaderValue::from_static("Basic realm=\"zarrd\", charset=\"UTF-8\", Bearer realm=\"zarrd\"");

/// Decides whether the caller has the right that the operation requires. Returns the key or prefix in the store that the
/// decision depends on, if any.
pub(crate) fn authorize(
    app: &App,
    route: &Route,
    operation: &Operation,
    request: &Request,
    session: &Session,
) -> Result<Option<StoreTarget>, ApiError> {
    let (target, collection) = (OnceCell::new(), OnceCell::new());
    let authorizer = Authorizer { app, route, request, session, target, collection };
    authorizer.decide(operation.requires)?;
    let is_in_store = request.uri().path().starts_with(routes::STORE_ROOT);
    let collection = authorizer.collection.into_inner().map(StoreTarget::Prefix);
    Ok(collection.or(authorizer.target.into_inner()).filter(|_| is_in_store))
}

/// Identifies the caller of a request with these headers, query, and share link.
pub(crate) async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    query: &str,
    link: Option<ShareLink>,
) -> Result<Session, ApiError> {
    reject_token_in_query(query)?;
    let credential = credential::from_headers(headers).map_err(|error| match error {
        CredentialError::Duplicate => ApiError::invalid_header("Authorization", error.to_string()),
        CredentialError::TooLong | CredentialError::Scheme | CredentialError::Malformed => {
            unauthorized(headers, error.to_string())
        }
    })?;
    if credential.is_some() && link.is_some() {
        let detail = "the path already has a share link as its credential";
        return Err(ApiError::invalid_header("Authorization", detail));
    }
    if credential.is_none() && link.is_none() {
        return Ok(Session::anonymous(app));
    }
    let scheme = credential.as_ref().map(|credential| credential.scheme);
    let text = match (&credential, &link) {
        (Some(credential), _) => credential.token.as_ref(),
        (None, Some(ShareLink(link))) => link.as_bytes(),
        (None, None) => &[],
    };
    let verified = verified(app, text, |directory| match &link {
        Some(ShareLink(link)) => directory.authenticate_link(&**link),
        None => directory.authenticate(text),
    });
    match verified.await?.ok_or_else(|| unauthorized(headers, "this server accepts no tokens".to_owned()))? {
        Ok(principal) => Ok(Session { principal, scheme, link }),
        Err(Denial::Unavailable { source }) => Err(source.into()),
        Err(Denial::Expired { .. }) => Err(unauthorized(headers, "the credential has expired".to_owned())),
        // The response does not reveal which part of a credential is wrong.
        Err(_) => Err(unauthorized(headers, "the credential is not accepted".to_owned())),
    }
}

/// Identifies the caller of a request that was signed with the key of an access key, and returns its secret key; `None` if
/// no token has this access key. The signature is not verified yet.
pub(crate) async fn identify_signer(app: &App, access_key: &str) -> Result<Option<(Session, Secret)>, ApiError> {
    let Ok(id) = access_key.parse() else { return Ok(None) };
    match verified(app, access_key.as_bytes(), |directory| directory.secret(id)).await? {
        Some(Ok((principal, secret))) => {
            Ok(Some((Session { principal, scheme: Some(Scheme::Signature), link: None }, secret)))
        }
        Some(Err(Denial::Unavailable { source })) => Err(source.into()),
        Some(Err(_)) | None => Ok(None),
    }
}

/// Verifies a credential; `None` if the server accepts none. For one that is unknown, the access directory is read at
/// once: another program may have made it a moment ago.
async fn verified<T>(
    app: &App,
    text: &[u8],
    verify: impl Fn(&AccessDirectory) -> Result<T, Denial>,
) -> Result<Option<Result<T, Denial>>, ApiError> {
    let slot = &app.settings().access.directory;
    let verify = || Ok::<_, ApiError>(slot.get()?.map(|directory| verify(directory)));
    let mut verified = verify()?;
    let is_unknown = matches!(verified, None | Some(Err(Denial::Revoked | Denial::UnknownKey | Denial::MakerGone)));
    if is_unknown && slot.read_again(text).await {
        verified = verify()?;
    }
    Ok(verified)
}

/// Rejects tokens in the query, where logs and browser histories would record them.
fn reject_token_in_query(query: &str) -> Result<(), ApiError> {
    let parameter = ["access_token", "token"].into_iter().find(|name| zarrd_wire::query::names(query, name));
    let Some(parameter) = parameter else { return Ok(()) };
    let members = Members { parameter: Some(parameter.to_owned()), ..Members::default() };
    let problem = Problem::new(ProblemType::UnknownParameter)
        .with_detail("tokens are accepted in the Authorization header only")
        .with_members(members);
    Err(ApiError::new(problem))
}

/// Rejects the request of a caller that was not identified.
fn unauthorized(headers: &HeaderMap, detail: String) -> ApiError {
    // For anything but the user's own navigation, a browser would open a dialog if the challenge contained `Basic`.
    let challenge = if is_part_of_page(headers) { BEARER_CHALLENGE } else { CHALLENGES };
    ApiError::unauthorized(detail, challenge)
}

/// True if a script or a page sends the request, such as for an image or a frame.
fn is_part_of_page(headers: &HeaderMap) -> bool {
    match (headers.get(SEC_FETCH_MODE), headers.get(SEC_FETCH_DEST)) {
        // A browser sends neither of them to servers without TLS.
        (None, None) => headers.contains_key(ORIGIN),
        (mode, dest) => mode.is_some_and(|mode| mode != "navigate") || dest.is_some_and(|dest| dest != "document"),
    }
}

/// The decision on one request.
struct Authorizer<'r> {
    app: &'r App,
    route: &'r Route,
    request: &'r Request,
    session: &'r Session,
    /// Set when the path was parsed.
    target: OnceCell<StoreTarget>,
    /// The prefix that a path without a trailing slash stands for, set if the caller may read nothing but that.
    collection: OnceCell<Prefix>,
}

impl Authorizer<'_> {
    fn decide(&self, requirement: Requirement) -> Result<(), ApiError> {
        match requirement {
            Requirement::Nothing => Ok(()),
            Requirement::Read => self.require(Right::Read),
            Requirement::Write => self.require(Right::Write),
            Requirement::List => self.require_listing(),
            Requirement::Convert => self.require_conversion(),
            Requirement::Properties => self.require_properties(),
            Requirement::Copy => self.require_transfer(Right::Read),
            Requirement::Move => self.require_transfer(Right::Write),
            Requirement::Metrics => match self.app.settings().access.metrics {
                MetricsAccess::Public => Ok(()),
                MetricsAccess::Readers => self.require_on(Right::Read, &StoreTarget::Prefix(Prefix::root())),
            },
            Requirement::Token => match self.principal().kind {
                PrincipalKind::Token => Ok(()),
                PrincipalKind::Link => Err(ApiError::forbidden("a share link cannot manage tokens and links")),
                PrincipalKind::Anonymous => Err(self.unidentified("this requires a token")),
            },
            Requirement::Snapshot => self.require_snapshot(),
        }
    }

    /// Requires the right to read the prefix of a snapshot, and a credential where anonymous callers may not do everything.
    fn require_snapshot(&self) -> Result<(), ApiError> {
        let is_open = self.principal().may(Right::Write, &Prefix::root());
        if self.principal().kind == PrincipalKind::Anonymous && !is_open {
            return Err(self.unidentified("a snapshot requires a token"));
        }
        let SnapshotQuery { prefix } = SnapshotQuery::parse(self.query())?;
        self.require_on(Right::Read, &StoreTarget::Prefix(prefix))
    }

    /// Requires a right on what the path names.
    fn require(&self, right: Right) -> Result<(), ApiError> {
        if self.principal().may(right, &Prefix::root()) {
            return Ok(());
        }
        self.require_on(right, self.target()?)
    }

    /// Requires the right to read a prefix, or to read something below it and to list directories only.
    fn require_listing(&self) -> Result<(), ApiError> {
        let denied = match self.require(Right::Read) {
            Ok(()) => return Ok(()),
            Err(denied) => denied,
        };
        let StoreTarget::Prefix(prefix) = self.target()? else { return Err(denied) };
        let is_dir = ListQuery::parse(self.query()).is_ok_and(|query| query.kind == ListKind::Dir);
        let leads_further = !self.principal().grants.children_towards(Right::Read, prefix).is_empty();
        if is_dir && leads_further { Ok(()) } else { Err(denied) }
    }

    /// Requires the right to change the node, or to read it and to change the target.
    fn require_conversion(&self) -> Result<(), ApiError> {
        if self.principal().may(Right::Write, &Prefix::root()) {
            return Ok(());
        }
        let node = self.target()?;
        match NodePostQuery::parse(self.query()) {
            Ok(NodePostQuery::Convert { target: Some(target), .. }) => {
                self.require_on(Right::Read, node)?;
                self.require_on(Right::Write, &StoreTarget::Prefix(prefix_of(&target)))
            }
            // A caller that may not change the node learns nothing about the query.
            _ => self.require_on(Right::Write, node),
        }
    }

    /// Requires the right to read a key, or a prefix like [`require_listing`](Self::require_listing). A key that the
    /// caller may not read stands for the prefix of its name.
    fn require_properties(&self) -> Result<(), ApiError> {
        let denied = match self.require(Right::Read) {
            Ok(()) => return Ok(()),
            Err(denied) => denied,
        };
        let prefix = match self.target()? {
            StoreTarget::Key(key) => Prefix::from_key(key),
            StoreTarget::Prefix(prefix) => Some(prefix.clone()),
        };
        let Some(prefix) = prefix else { return Err(denied) };
        let is_dir = matches!(dav::depth(self.request.headers()), Ok(Some(Depth::Zero | Depth::One)));
        let leads_further = is_dir && !self.principal().grants.children_towards(Right::Read, &prefix).is_empty();
        if !self.principal().may(Right::Read, &prefix) && !leads_further {
            return Err(denied);
        }
        self.collection.get_or_init(|| prefix);
        Ok(())
    }

    /// Requires a right on the source, and the right to change the destination.
    fn require_transfer(&self, right: Right) -> Result<(), ApiError> {
        if self.principal().may(Right::Write, &Prefix::root()) {
            return Ok(());
        }
        // A caller that may not use the source learns nothing about the destination.
        self.require_on(right, self.target()?)?;
        self.require_on(Right::Write, &destination::of_request(self.app, self.request)?)
    }

    fn require_on(&self, right: Right, target: &StoreTarget) -> Result<(), ApiError> {
        let (allowed, name) = match target {
            StoreTarget::Key(key) => (self.principal().may_key(right, key), key.as_str()),
            StoreTarget::Prefix(prefix) => (self.principal().may(right, prefix), prefix.as_str()),
        };
        if allowed {
            return Ok(());
        }
        let name = if name.is_empty() { "/" } else { name };
        let detail = format!("this requires the right to {right} {name}");
        Err(match self.principal().kind {
            PrincipalKind::Anonymous => self.unidentified(&detail),
            PrincipalKind::Token | PrincipalKind::Link => ApiError::forbidden(detail),
        })
    }

    /// An anonymous caller lacks the right; an unreadable directory is named as the reason.
    fn unidentified(&self, detail: &str) -> ApiError {
        match self.app.settings().access.directory.status() {
            Ok(()) => unauthorized(self.request.headers(), detail.to_owned()),
            Err(source) => source.into(),
        }
    }

    /// The target that the path names: a key, or the prefix of a node.
    fn target(&self) -> Result<&StoreTarget, ApiError> {
        if let Some(target) = self.target.get() {
            return Ok(target);
        }
        let target = self.parse_target()?;
        Ok(self.target.get_or_init(|| target))
    }

    fn parse_target(&self) -> Result<StoreTarget, ApiError> {
        let path = self.request.uri().path();
        let slashes = if self.request.method().is_safe() { Slashes::Collapse } else { Slashes::Refuse };
        let node = |path: Result<NodePath, PathError>| {
            path.map(|path| StoreTarget::Prefix(prefix_of(&path))).map_err(ApiError::invalid_path)
        };
        match self.route.template {
            routes::ARRAY_PATH => node(parse_array(path, slashes)),
            routes::NODE_PATH => node(parse_node(path, slashes)),
            _ => match path.strip_prefix(routes::STORE_ROOT) {
                Some(rest) => Ok(parse_store(rest, slashes)?),
                None => Err(PathError::Key(KeyError::Empty).into()),
            },
        }
    }

    fn query(&self) -> &str {
        self.request.uri().query().unwrap_or_default()
    }

    fn principal(&self) -> &Principal {
        self.session.principal()
    }
}

/// The prefix of a node's keys. If it is longer than any key, the prefix of the nearest group above.
fn prefix_of(path: &NodePath) -> Prefix {
    let prefix = |path: NodePath| Prefix::parse(&path.key_prefix()).ok();
    once(path.clone()).chain(path.ancestors()).find_map(prefix).unwrap_or(Prefix::root())
}
