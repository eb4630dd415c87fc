//! Problem documents (RFC 9457), and the closed list of their types.

use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::node::{Difference, Loss, Violation};

/// The common start of the `type` of all problems.
pub const TYPE_BASE: &str = "https://zarrd.dev/problems/";

macro_rules! problem_types {
    ($($(#[$doc:meta])* $name:ident = $slug:literal, $status:ident, $title:literal;)*) => {
        /// Everything that can be wrong with a request. The URIs are stable: a client may compare them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ProblemType {
            $($(#[$doc])* $name,)*
        }

        impl ProblemType {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The last segment of the type's URI.
            pub const fn slug(self) -> &'static str {
                match self { $(Self::$name => $slug,)* }
            }

            /// The type's URI.
            pub const fn uri(self) -> &'static str {
                match self { $(Self::$name => concat!("https://zarrd.dev/problems/", $slug),)* }
            }

            /// A short text that is the same for every problem of the type.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// The status of answers with such a problem.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }
        }
    };
}

problem_types! {
    /// The path names no key or prefix that could be.
    InvalidKey = "invalid-key", BAD_REQUEST, "This is not a key";
    /// The path names no node that could be.
    InvalidPath = "invalid-path", BAD_REQUEST, "This is not the path of a node";
    /// A header cannot be understood; `header` names it.
    InvalidHeader = "invalid-header", BAD_REQUEST, "A header cannot be understood";
    /// A query parameter that is not known here; `parameter` names it, `known` those that are.
    UnknownParameter = "unknown-parameter", BAD_REQUEST, "There is no such query parameter here";
    /// A query parameter that is there twice; `parameter` names it.
    RepeatedParameter = "repeated-parameter", BAD_REQUEST, "A query parameter is there twice";
    /// A query parameter that has to be there, or one of several; `parameter` names the first of them, `known` those that there are.
    MissingParameter = "missing-parameter", BAD_REQUEST, "A query parameter is missing";
    /// A query parameter with a value that it cannot have; `parameter` names it.
    InvalidParameter = "invalid-parameter", BAD_REQUEST, "A query parameter has a value that it cannot have";
    /// A `list=` that there is not; `known` has those that there are.
    UnknownListing = "unknown-listing", BAD_REQUEST, "There is no such listing";
    /// A cursor that was not issued for this listing.
    InvalidCursor = "invalid-cursor", BAD_REQUEST, "The cursor was not issued for this listing";
    /// The text of a selection, or the body that asks for several, is not understood; `position` is the byte of the text at which, `pointer` the place in the body.
    InvalidSelection = "invalid-selection", BAD_REQUEST, "The selection is not understood";
    /// The selection names more dimensions than the array has, or otherwise does not fit it.
    UnfitSelection = "unfit-selection", BAD_REQUEST, "The selection does not fit the array";
    /// An index lies outside of its `dimension`: `index`, where there are `extent`.
    IndexOutOfBounds = "index-out-of-bounds", BAD_REQUEST, "An index is out of bounds";
    /// The body breaks the schema of the ZOM; `violations` says where and how, `pointer` is the first place.
    InvalidZom = "invalid-zom", BAD_REQUEST, "This is not a ZOM";
    /// The dialect does not allow the name of the node at the `path`.
    InvalidNodeName = "invalid-node-name", BAD_REQUEST, "The dialect does not allow such a name";
    /// The patch does not fit the node; `pointer` is the place in it.
    InvalidPatch = "invalid-patch", BAD_REQUEST, "The patch does not fit the node";
    /// The body is not what its media type says; `pointer` or `position` is the place in it.
    InvalidBody = "invalid-body", BAD_REQUEST, "The body is not understood";
    /// The elements are not those of the selection: `expected` is how much there has to be, `found` how much there is, in bytes or else in elements.
    UnfitBody = "unfit-body", BAD_REQUEST, "The elements do not fit the selection";
    /// The data type has no such value; `element` says which one it is, by its indices in the body.
    InvalidElement = "invalid-element", BAD_REQUEST, "The data type has no such value";
    /// Erasing the root without `confirm=all`.
    ConfirmationNeeded = "confirmation-needed", BAD_REQUEST, "Erasing everything has to be confirmed";
    /// The body has another length than was announced.
    LengthMismatch = "length-mismatch", BAD_REQUEST, "The body does not have the announced length";
    /// The body does not have the announced digest.
    DigestMismatch = "digest-mismatch", BAD_REQUEST, "The body does not match its digest";
    /// The body broke off, or its framing is wrong.
    BodyAborted = "body-aborted", BAD_REQUEST, "The body broke off";
    /// The request does not say which host it is for.
    MissingHost = "missing-host", BAD_REQUEST, "The request names no host";
    /// A host name that the server does not answer to; `host` names it.
    ForbiddenHost = "forbidden-host", FORBIDDEN, "The server does not answer to this host name";
    /// A web page of an origin that may only read; `origin` names it.
    ForbiddenOrigin = "forbidden-origin", FORBIDDEN, "Pages of this origin may only read";
    /// Who does not say who they are may only read.
    ReadOnlyAccess = "read-only-access", FORBIDDEN, "Only reading is allowed";
    /// The server was started to change nothing, whoever asks.
    ReadOnlyServer = "read-only-server", FORBIDDEN, "This server is read-only (`--read-only`)";
    /// There is no such resource.
    NotFound = "not-found", NOT_FOUND, "There is nothing here";
    /// The key has no value; `key` names it.
    NoSuchKey = "no-such-key", NOT_FOUND, "The key has no value";
    /// There is no node at the `path`.
    NoSuchNode = "no-such-node", NOT_FOUND, "There is no node here";
    /// The resource does not have this method; `allow` has those that it has.
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "The resource does not have this method";
    /// None of the formats that there are is acceptable; `known` has their media types.
    NotAcceptable = "not-acceptable", NOT_ACCEPTABLE, "None of the formats is acceptable";
    /// The format cannot hold what is selected; `known` has the formats that can.
    FormatCannotHold = "format-cannot-hold", NOT_ACCEPTABLE, "The format cannot hold what is selected";
    /// The body stopped coming.
    BodyTimeout = "body-timeout", REQUEST_TIMEOUT, "The body stopped coming";
    /// The node at the `path` is a group, and elements are an array's.
    NotAnArray = "not-an-array", CONFLICT, "The node is not an array";
    /// The node at the `path` is there and differs from what is declared; `differences` says where.
    NodeDiffers = "node-differs", CONFLICT, "The node is there and differs";
    /// There are keys at the `path`, where a new array would have its own; `key` is one of them.
    StrayKeys = "stray-keys", CONFLICT, "Keys at the place of a new array";
    /// The node at the `path` would be below an array, the one at `array`.
    BelowArray = "below-array", CONFLICT, "An array has no nodes below it";
    /// Where a node at the `path` would have its documents, a hierarchy of another `dialect` has its own.
    OtherDialect = "other-dialect", CONFLICT, "A hierarchy of another dialect is in the way";
    /// Keys are below the `prefix`, which has to be empty; `key` is the first of them.
    PrefixNotEmpty = "prefix-not-empty", CONFLICT, "The prefix is not empty";
    /// The shape of the array at the `path` changed while the elements came, so that they do not fit any more.
    ShapeChanged = "shape-changed", CONFLICT, "The shape changed meanwhile";
    /// A precondition does not hold; `current` is the entity tag that the key or the node has.
    PreconditionFailed = "precondition-failed", PRECONDITION_FAILED, "The precondition does not hold";
    /// The value is larger than it may be; `limit` says how large that is.
    ValueTooLarge = "value-too-large", PAYLOAD_TOO_LARGE, "The value is too large";
    /// The body is larger than it may be; `limit` says how large that is.
    BodyTooLarge = "body-too-large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// The request needs `size` bytes of memory, and all requests together have the `limit`.
    TooMuchMemory = "too-much-memory", PAYLOAD_TOO_LARGE, "The request needs more memory than there is";
    /// The selection has `size` bytes, more than the `limit`; `smaller` is a part of it that fits.
    SelectionTooLarge = "selection-too-large", PAYLOAD_TOO_LARGE, "The selection is too large";
    /// The selection concerns more `chunks` than the `limit`.
    TooManyChunks = "too-many-chunks", PAYLOAD_TOO_LARGE, "The selection concerns too many chunks";
    /// A chunk of the array at the `path` takes `size` bytes of memory, more than the `limit`.
    ChunkTooLarge = "chunk-too-large", PAYLOAD_TOO_LARGE, "The chunks are too large to be decoded";
    /// It takes `size` steps of work beyond what the request carries or yields, more than the `limit`; `smaller` is a part of the selection that takes less.
    WorkTooLarge = "work-too-large", PAYLOAD_TOO_LARGE, "It takes too much work";
    /// There are more nodes than the `limit`.
    TooManyNodes = "too-many-nodes", PAYLOAD_TOO_LARGE, "There are too many nodes";
    /// It takes more `changes` than the `limit` of one commit.
    TooManyChanges = "too-many-changes", PAYLOAD_TOO_LARGE, "It takes too many changes for one commit";
    /// The body is of a type that is not taken; `known` has those that are.
    UnsupportedMediaType = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "A body of this type is not taken";
    /// The body is compressed for transport, and values are kept as they come; `header` names the header.
    EncodedBody = "encoded-body", UNSUPPORTED_MEDIA_TYPE, "A body with a content coding is not taken";
    /// The range names no byte of the value; `size` is the value's length.
    RangeNotSatisfiable = "range-not-satisfiable", RANGE_NOT_SATISFIABLE, "The range names no byte of the value";
    /// The metadata document that is stored for the `key` is not what its dialect says. Whoever wrote it can mend it.
    InvalidMetadata = "invalid-metadata", UNPROCESSABLE_ENTITY, "The stored metadata is not understood";
    /// The dialect does not say all that is to be said; `losses` has what would be lost. `lossy` accepts that.
    Lossy = "lossy", UNPROCESSABLE_ENTITY, "Something would be lost";
    /// The dialect has no such array as that at the `path`; `pointer` is the place in its document.
    Inconvertible = "inconvertible", UNPROCESSABLE_ENTITY, "The dialect has no such array";
    /// The codecs of the array do not take the elements of the chunk for the `key`; `codec` is the one that failed.
    UnencodableChunk = "unencodable-chunk", UNPROCESSABLE_ENTITY, "A chunk cannot be encoded";
    /// What is stored for the key is damaged; `key` names it.
    DamagedValue = "damaged-value", INTERNAL_SERVER_ERROR, "The stored value is damaged";
    /// The chunk that is stored for the `key` does not decode; `codec` is the one that failed.
    UndecodableChunk = "undecodable-chunk", INTERNAL_SERVER_ERROR, "A stored chunk cannot be decoded";
    /// The client has as much going on as one may have while others wait; `Retry-After` says when to try again.
    TooManyRequests = "too-many-requests", TOO_MANY_REQUESTS, "The client asks for too much at a time";
    /// Something failed that is not the client's to know; the log has it under the request's id.
    Internal = "internal", INTERNAL_SERVER_ERROR, "The server failed";
    /// A body with a transfer coding other than `chunked`; `header` names the header that says so.
    TransferCodedBody = "transfer-coded-body", NOT_IMPLEMENTED, "A body with such a transfer coding is not taken";
    /// The node asks for a codec, an extension, a data type or something else that this server does not have; `unsupported` names it.
    UnsupportedNode = "unsupported-node", NOT_IMPLEMENTED, "The node needs what this server does not have";
    /// What the request changes or reads kept changing, so that it was given up after many attempts; nothing was changed.
    TooManyConflicts = "too-many-conflicts", SERVICE_UNAVAILABLE, "Too many conflicts";
    /// There is more to do than can be done; `Retry-After` says when to try again.
    Busy = "busy", SERVICE_UNAVAILABLE, "The server is busy";
    /// The store takes no changes until the server is started again.
    StoreReadOnly = "store-read-only", SERVICE_UNAVAILABLE, "The store is read-only until the server is started again";
    /// The server is being stopped.
    Stopping = "stopping", SERVICE_UNAVAILABLE, "The server is being stopped";
    /// There is no space for values; erasing still works.
    OutOfSpace = "out-of-space", INSUFFICIENT_STORAGE, "There is no space left";
}

/// A problem document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The type of the problem.
    #[serde(rename = "type")]
    pub kind: ProblemType,
    /// The type's title.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// The error of this very request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The request's id, under which the log says more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The members that some types have.
    #[serde(flatten)]
    pub members: Members,
}

/// The extension members of problem documents. [`ProblemType`] says which type has which.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Members {
    /// The key concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The prefix concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The path of the node concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// A length in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// A length in bytes that was announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced: Option<u64>,
    /// The number of bytes received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
    /// The methods that a resource has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The query parameter concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The values that would have been accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<Vec<String>>,
    /// The position of the error in a text, as a byte offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The location of the error in a JSON document, as a JSON Pointer (RFC 6901).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The dimension concerned, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimension: Option<u64>,
    /// An index, as it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<i64>,
    /// The number of indices of the dimension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extent: Option<u64>,
    /// The number of chunks touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u64>,
    /// The text of a smaller selection that would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smaller: Option<String>,
    /// The codec concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec: Option<String>,
    /// The missing feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The header concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The entity tag that the key or the node has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The origin concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The host concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The array concerned, where `path` is another node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<String>,
    /// The dialect concerned: `v2`, `v3` or `draft`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// The required number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// The number found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<u64>,
    /// The indices of an element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<Vec<u64>>,
    /// The number of changes needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<u64>,
    /// The places where a document violates its schema.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// The differences between two structures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Properties that would be lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}

impl ProblemType {
    /// The type that a URI stands for.
    pub fn from_uri(uri: &str) -> Option<Self> {
        let slug = uri.strip_prefix(TYPE_BASE)?;
        Self::ALL.iter().copied().find(|known| known.slug() == slug)
    }
}

impl Problem {
    /// A problem of a type, about which nothing more is said.
    pub fn new(kind: ProblemType) -> Self {
        Self {
            kind,
            title: kind.title().to_owned(),
            status: kind.status().as_u16(),
            detail: String::new(),
            request: String::new(),
            members: Members::default(),
        }
    }

    /// Says what is wrong with this very request.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Adds members.
    #[must_use]
    pub fn with_members(mut self, members: Members) -> Self {
        self.members = members;
        self
    }

    /// The detail of this very request, or else the title of its type.
    pub fn said(&self) -> &str {
        if self.detail.is_empty() { &self.title } else { &self.detail }
    }

    /// Parses a problem document; `None` if it is not one, or of an unknown type.
    pub fn from_json(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// The document.
    pub fn to_json(&self) -> Vec<u8> {
        // Only maps with keys other than strings, and failing writers, make this fail; there is neither.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Serialize for ProblemType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.uri())
    }
}

impl<'de> Deserialize<'de> for ProblemType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let uri = String::deserialize(deserializer)?;
        Self::from_uri(&uri).ok_or_else(|| de::Error::custom("the type of the problem is not known"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn types_are_told_apart_by_their_uri() {
        let uris: HashSet<_> = ProblemType::ALL.iter().map(|kind| kind.uri()).collect();
        assert_eq!(uris.len(), ProblemType::ALL.len());
        for kind in ProblemType::ALL {
            assert_eq!(kind.uri(), format!("{TYPE_BASE}{}", kind.slug()));
            assert_eq!(ProblemType::from_uri(kind.uri()), Some(*kind));
            assert!(kind.status().is_client_error() || kind.status().is_server_error());
        }
        assert_eq!(ProblemType::from_uri("about:blank"), None);
    }

    #[test]
    fn documents_there_and_back() {
        let bare = Problem::new(ProblemType::NotFound);
        assert_eq!(
            String::from_utf8(bare.to_json()).unwrap(),
            r#"{"type":"https://zarrd.dev/problems/not-found","title":"There is nothing here","status":404}"#
        );
        let full = Problem::new(ProblemType::ValueTooLarge)
            .with_detail("a value has at most 7 bytes")
            .with_members(Members { limit: Some(7), key: Some("a\"b".into()), ..Members::default() });
        assert_eq!(Problem::from_json(&full.to_json()), Some(full));
        let differs = Problem::new(ProblemType::NodeDiffers).with_members(Members {
            differences: vec![Difference {
                pointer: "/shape".into(),
                declared: Some(meta::json::Json::compact(&serde_json::Value::Null)),
                found: None,
            }],
            violations: vec![Violation { pointer: String::new(), reason: "is not there".into() }],
            losses: vec![Loss { path: "/".into(), pointer: "/order".into(), what: "the order".into() }],
            element: Some(Vec::new()),
            expected: Some(4),
            found: Some(0),
            ..Members::default()
        });
        assert_eq!(Problem::from_json(&differs.to_json()), Some(differs));
        assert_eq!(Problem::from_json(br#"{"type":"about:blank","title":"x","status":404}"#), None);
        assert_eq!(Problem::from_json(b"<html>"), None);
    }
}
