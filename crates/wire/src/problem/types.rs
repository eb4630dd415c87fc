//! The closed list of the types of problems.

use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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
    /// The path is not a valid key or prefix.
    InvalidKey = "invalid-key", BAD_REQUEST, "Invalid key";
    /// The path is not a valid node path.
    InvalidPath = "invalid-path", BAD_REQUEST, "Invalid node path";
    /// A header has an invalid value; `header` names it.
    InvalidHeader = "invalid-header", BAD_REQUEST, "Invalid header";
    /// A query parameter is unknown to the resource; `parameter` names it, `known` lists the accepted ones.
    UnknownParameter = "unknown-parameter", BAD_REQUEST, "Unknown query parameter";
    /// A query parameter is given twice; `parameter` names it.
    DuplicateParameter = "duplicate-parameter", BAD_REQUEST, "Duplicate query parameter";
    /// A required query parameter is missing, or one of several; `parameter` names the first of them, `known` lists all
    /// that the resource accepts.
    MissingParameter = "missing-parameter", BAD_REQUEST, "Missing query parameter";
    /// A query parameter has an invalid value; `parameter` names it.
    InvalidParameter = "invalid-parameter", BAD_REQUEST, "Invalid query parameter";
    /// The value of `list` is unknown; `known` lists the accepted ones.
    UnknownListing = "unknown-listing", BAD_REQUEST, "Unknown kind of listing";
    /// The cursor was not issued for this listing.
    InvalidCursor = "invalid-cursor", BAD_REQUEST, "Invalid cursor";
    /// The selection is malformed or contradictory, such as a slice with step 0, an index that is written twice, or a
    /// stack of different shapes; `position` is the byte of the text at which parsing stopped, `pointer` the location
    /// in the body, `dimension` and `index` the offending item.
    InvalidSelection = "invalid-selection", BAD_REQUEST, "Invalid selection";
    /// The selection, or a point, has more items than the array has dimensions.
    SelectionRankMismatch = "selection-rank-mismatch", BAD_REQUEST, "Selection does not match the array's rank";
    /// An index lies outside of its `dimension`: `index` is the index, `extent` the number of elements along the
    /// dimension.
    IndexOutOfBounds = "index-out-of-bounds", BAD_REQUEST, "Index out of bounds";
    /// `name` is no dimension of the array, and no array of that name is over one; `known` lists its dimensions.
    UnknownDimension = "unknown-dimension", BAD_REQUEST, "Unknown dimension";
    /// The dimension `name` is selected twice.
    DimensionRepeated = "dimension-repeated", BAD_REQUEST, "Dimension selected twice";
    /// The request selects both by position and by name.
    SelectionConflict = "selection-conflict", BAD_REQUEST, "Selection both by position and by name";
    /// The dimension `name` has no coordinate that the caller may read.
    NoCoordinate = "no-coordinate", BAD_REQUEST, "No coordinate";
    /// The label of the dimension `name` is malformed, or has another type than its coordinate; `label` is the label.
    InvalidLabel = "invalid-label", BAD_REQUEST, "Invalid label";
    /// The coordinate of the dimension `name` does not have the `label`; `nearest`, `first` and `last` are labels that
    /// it has.
    LabelNotFound = "label-not-found", BAD_REQUEST, "Label not found";
    /// The coordinate of the dimension `name` has the `label` more than once.
    AmbiguousLabel = "ambiguous-label", BAD_REQUEST, "Ambiguous label";
    /// The array has packed or missing elements, and a computation depends on whether they are decoded; `parameter` names
    /// the parameter that says so.
    DecodeUnspecified = "decode-unspecified", BAD_REQUEST, "Decoding not specified";
    /// The function, or the statistics, are not defined for the data type or the selection.
    UnsuitableReduction = "unsuitable-reduction", BAD_REQUEST, "Unsuitable reduction";
    /// Windows do not divide the dimension `name`, and `edge=exact` was asked for; `extent` is the number of selected
    /// elements along it.
    UnevenWindow = "uneven-window", BAD_REQUEST, "Windows do not divide the dimension";
    /// The function has no result without elements.
    EmptyReduction = "empty-reduction", BAD_REQUEST, "Reduction of no elements";
    /// A sum of integers exceeds its data type.
    SumOverflow = "sum-overflow", BAD_REQUEST, "Sum overflows";
    /// The body violates the schema of the ZOM; `violations` lists the errors, `pointer` is the location of the first.
    InvalidZom = "invalid-zom", BAD_REQUEST, "Invalid ZOM";
    /// The dialect does not allow the name of the node at `path`.
    InvalidNodeName = "invalid-node-name", BAD_REQUEST, "Invalid node name";
    /// The patch is not valid for the node; `pointer` is the location in the patch.
    InvalidPatch = "invalid-patch", BAD_REQUEST, "Invalid patch";
    /// The body does not parse as its media type; `pointer` or `position` is the location of the error.
    InvalidBody = "invalid-body", BAD_REQUEST, "Invalid body";
    /// The body has a different number of elements than the selection; `expected` and `actual` are the sizes, in bytes
    /// or else in elements.
    BodyShapeMismatch = "body-shape-mismatch", BAD_REQUEST, "Body does not match the selection";
    /// The data type cannot represent a value; `element` has its indices in the body.
    InvalidElement = "invalid-element", BAD_REQUEST, "Invalid element";
    /// The request erases everything and lacks `confirm=all`.
    ConfirmationRequired = "confirmation-required", BAD_REQUEST, "Confirmation required";
    /// The body's length differs from its `Content-Length`.
    LengthMismatch = "length-mismatch", BAD_REQUEST, "Body length mismatch";
    /// The body does not match its digest.
    DigestMismatch = "digest-mismatch", BAD_REQUEST, "Body digest mismatch";
    /// The body ended early, or its framing is invalid.
    IncompleteBody = "incomplete-body", BAD_REQUEST, "Incomplete request body";
    /// The request has no `Host` header.
    MissingHost = "missing-host", BAD_REQUEST, "Missing Host header";
    /// The request was forwarded by a proxy that the server was not started to trust (`--behind-proxy`); `header` names
    /// the header that shows it.
    UntrustedProxy = "untrusted-proxy", BAD_REQUEST, "Untrusted proxy";
    /// The request has no credential and needs one, or one that is not accepted: malformed, unknown, expired or revoked.
    Unauthorized = "unauthorized", UNAUTHORIZED, "Credential required";
    /// The server does not answer to the host name; `host` names it.
    ForbiddenHost = "forbidden-host", FORBIDDEN, "Host not allowed";
    /// Pages of the web origin may only read; `origin` names it.
    ForbiddenOrigin = "forbidden-origin", FORBIDDEN, "Origin may only read";
    /// The caller lacks the right that the request requires. `detail` names the right, whether or not what the request
    /// names exists.
    Forbidden = "forbidden", FORBIDDEN, "Forbidden";
    /// The source of a copy or a move and its `Destination` are the same, or one of them is below the other.
    OverlappingDestination = "overlapping-destination", FORBIDDEN, "Destination overlaps the source";
    /// `PROPFIND` of infinite depth would have more than `limit` responses. Its body is the XML of RFC 4918, section 16.
    PropfindFiniteDepth = "propfind-finite-depth", FORBIDDEN, "Too many resources for infinite depth";
    /// The server was started with `--read-only`.
    ReadOnlyServer = "read-only-server", FORBIDDEN, "Read-only server (`--read-only`)";
    /// The resource does not exist.
    NotFound = "not-found", NOT_FOUND, "Not found";
    /// The key has no value; `key` names it.
    NoSuchKey = "no-such-key", NOT_FOUND, "No such key";
    /// The token or share link does not exist, or the caller does not administer it.
    NoSuchCredential = "no-such-credential", NOT_FOUND, "No such token or share link";
    /// No node exists at `path`.
    NoSuchNode = "no-such-node", NOT_FOUND, "No such node";
    /// The resource does not support the method; `allow` lists the supported ones.
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "Method not allowed";
    /// None of the available formats is acceptable; `known` lists their media types.
    NotAcceptable = "not-acceptable", NOT_ACCEPTABLE, "No acceptable format";
    /// The format cannot represent the selected elements; `known` lists the formats that can.
    UnsuitableFormat = "unsuitable-format", NOT_ACCEPTABLE, "Format cannot represent the elements";
    /// The body was not received in time.
    BodyTimeout = "body-timeout", REQUEST_TIMEOUT, "Request body timed out";
    /// The node at `path` is a group, and the operation needs an array.
    NotAnArray = "not-an-array", CONFLICT, "Not an array";
    /// The node at `path` is an array, and the operation needs a group.
    NotAGroup = "not-a-group", CONFLICT, "Not a group";
    /// The arrays of the body are not those of the group at `path` over the dimension `name`, or their extents along it
    /// disagree; `missing` and `unexpected` have the names.
    DatasetMismatch = "dataset-mismatch", CONFLICT, "Body does not match the dataset";
    /// The coordinate of the dimension `name` does not continue: `element` has the indices of the first new label that
    /// does not follow the one before it, `label` is that label, and `last` the one before.
    DiscontinuousCoordinate = "discontinuous-coordinate", CONFLICT, "Coordinate does not continue";
    /// The node at `path` exists and differs from the request; `differences` lists where.
    NodeConflict = "node-conflict", CONFLICT, "Node exists and differs";
    /// Keys exist below `path`, at which an array was to be created; `key` is one of them.
    StrayKeys = "stray-keys", CONFLICT, "Keys at the path of a new array";
    /// The node at `path` would be a child of `array`, and arrays have no members.
    ParentIsArray = "parent-is-array", CONFLICT, "Parent is an array";
    /// `path` is reserved: it holds the metadata of a hierarchy of another `dialect`.
    DialectConflict = "dialect-conflict", CONFLICT, "Path belongs to another dialect";
    /// The documents `keys` that v2 and v3 have at `path` differ in such a way that a change could destroy elements, or a
    /// read return wrong ones; `relation` says how.
    DialectsDiffer = "dialects-differ", CONFLICT, "Documents of two dialects differ";
    /// Keys exist below `prefix`, which has to be empty; `key` is the first of them.
    PrefixNotEmpty = "prefix-not-empty", CONFLICT, "Prefix not empty";
    /// `key` cannot be changed while another key, or a prefix, exists: the store has one name for both. `keys` has the two.
    NameConflict = "name-conflict", CONFLICT, "Name is taken";
    /// The shape of the array at `path` changed while the body was received, so that the selection no longer matches.
    ShapeChanged = "shape-changed", CONFLICT, "Shape changed";
    /// A document or chunk was changed while the request was writing to a store that is written key by key: some keys were
    /// changed, as `detail` says, and others not; `key` is the one that another program changed. The request can be
    /// repeated.
    ChangedWhileWritten = "changed-while-written", CONFLICT, "Changed while written";
    /// The snapshot does not exist: it ended for want of use or space, with the server, or on request, or there never was
    /// one with this id.
    SnapshotExpired = "snapshot-expired", GONE, "Snapshot expired";
    /// The precondition failed; `current` is the entity tag of the key or node.
    PreconditionFailed = "precondition-failed", PRECONDITION_FAILED, "Precondition failed";
    /// The value exceeds `limit` bytes.
    ValueTooLarge = "value-too-large", PAYLOAD_TOO_LARGE, "Value too large";
    /// The body exceeds `limit` bytes.
    BodyTooLarge = "body-too-large", PAYLOAD_TOO_LARGE, "Body too large";
    /// The request needs `size` bytes of memory, more than the `limit` for all requests together.
    TooMuchMemory = "too-much-memory", PAYLOAD_TOO_LARGE, "Too much memory";
    /// The selection has `size` bytes, more than `limit`; `smaller` is a part of it that fits.
    SelectionTooLarge = "selection-too-large", PAYLOAD_TOO_LARGE, "Selection too large";
    /// The selection touches more `chunks` than `limit`.
    TooManyChunks = "too-many-chunks", PAYLOAD_TOO_LARGE, "Too many chunks";
    /// Decoding a chunk of the array at `path` takes `size` bytes of memory, more than `limit`.
    ChunkTooLarge = "chunk-too-large", PAYLOAD_TOO_LARGE, "Chunk too large";
    /// The request takes `size` units of work beyond what it carries or yields, more than `limit`; `smaller` is a part
    /// of the selection that takes less.
    WorkTooLarge = "work-too-large", PAYLOAD_TOO_LARGE, "Too much work";
    /// The request concerns more nodes than `limit`.
    TooManyNodes = "too-many-nodes", PAYLOAD_TOO_LARGE, "Too many nodes";
    /// There are as many tokens, or share links, as there may be.
    TooManyCredentials = "too-many-credentials", PAYLOAD_TOO_LARGE, "Too many tokens or share links";
    /// The request takes more `changes` than the `limit` of one commit.
    TooManyChanges = "too-many-changes", PAYLOAD_TOO_LARGE, "Too many changes";
    /// The body's media type is not supported; `known` lists the supported ones.
    UnsupportedMediaType = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "Unsupported media type";
    /// The body has a content encoding, and values are stored unchanged; `header` names the header.
    UnsupportedContentEncoding = "unsupported-content-encoding", UNSUPPORTED_MEDIA_TYPE, "Unsupported content encoding";
    /// The range covers no byte of the value; `size` is the value's length.
    RangeNotSatisfiable = "range-not-satisfiable", RANGE_NOT_SATISFIABLE, "Range not satisfiable";
    /// The metadata document stored for `key` is invalid. Whoever writes it can repair it; retrying does not help.
    InvalidMetadata = "invalid-metadata", UNPROCESSABLE_ENTITY, "Invalid stored metadata";
    /// The dialect cannot represent the whole node; `losses` lists what would be lost. `allow_lossy` accepts that.
    LossyConversion = "lossy-conversion", UNPROCESSABLE_ENTITY, "Lossy conversion";
    /// The dialect cannot represent the array at `path`; `pointer` is the location in its document.
    Unconvertible = "unconvertible", UNPROCESSABLE_ENTITY, "Array cannot be converted";
    /// The array's codecs cannot encode the chunk for `key`; `codec` is the one that failed.
    UnencodableChunk = "unencodable-chunk", UNPROCESSABLE_ENTITY, "Chunk cannot be encoded";
    /// The value stored for `key` is corrupt.
    CorruptValue = "corrupt-value", INTERNAL_SERVER_ERROR, "Corrupt stored value";
    /// The chunk stored for `key` cannot be decoded; `codec` is the one that failed.
    UndecodableChunk = "undecodable-chunk", INTERNAL_SERVER_ERROR, "Chunk cannot be decoded";
    /// The request failed in the middle, in a store that is written key by key: some keys were changed, as `detail` says,
    /// and others not. The request can be repeated.
    PartlyWritten = "partly-written", INTERNAL_SERVER_ERROR, "Partly written";
    /// The erase of the node at `path` failed in the middle, in a store that is written key by key: its documents may be
    /// gone, and keys are left, as `detail` says. The request can be repeated.
    PartlyErased = "partly-erased", INTERNAL_SERVER_ERROR, "Partly erased";
    /// The client has as many requests in progress as one client may have under contention, or a snapshot while it asks
    /// for another one; `Retry-After` is the time to wait.
    TooManyRequests = "too-many-requests", TOO_MANY_REQUESTS, "Too many requests";
    /// The server failed; its log has the details under the request id.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
    /// A store that the server reads refused to answer, or answered what it must not; `key` names the value or prefix,
    /// and `prefix` the mount if it is not the store at the root. The log has the details under the request id.
    StoreFailed = "store-failed", BAD_GATEWAY, "Store failed";
    /// The `Destination` of a copy or a move is on another server.
    ForeignDestination = "foreign-destination", BAD_GATEWAY, "Destination on another server";
    /// A mounted store did not answer a step of a listing in time; `prefix` is its mount.
    StoreTimeout = "store-timeout", GATEWAY_TIMEOUT, "Store timed out";
    /// The body has a transfer encoding other than `chunked`; `header` names the header.
    UnsupportedTransferEncoding = "unsupported-transfer-encoding", NOT_IMPLEMENTED, "Unsupported transfer encoding";
    /// The node needs a codec, an extension, a data type or another feature that this server does not support;
    /// `unsupported` names it.
    UnsupportedNode = "unsupported-node", NOT_IMPLEMENTED, "Unsupported node";
    /// The store does not support the operation at all; `unsupported` names it. What the resource supports is in
    /// `Allow`.
    Unsupported = "unsupported", NOT_IMPLEMENTED, "Not supported by the store";
    /// The times of the array or of a coordinate are of a calendar that is unknown; `unsupported` names it.
    UnsupportedCalendar = "unsupported-calendar", NOT_IMPLEMENTED, "Unsupported calendar";
    /// Other writers kept changing what the request reads or changes, so it was given up after several attempts;
    /// nothing was changed.
    TooManyConflicts = "too-many-conflicts", SERVICE_UNAVAILABLE, "Too many conflicts";
    /// Another program kept changing the value of `key` while it was read, so the request was given up after several
    /// attempts.
    ValueChanged = "value-changed", SERVICE_UNAVAILABLE, "Value changed while it was read";
    /// The server is out of capacity; `Retry-After` is the time to wait.
    Busy = "busy", SERVICE_UNAVAILABLE, "Server busy";
    /// The server cannot read its access directory, so it accepts no credential.
    AccessUnavailable = "access-unavailable", SERVICE_UNAVAILABLE, "Access directory unavailable";
    /// A store that the server reads cannot be reached; `key` names the value or prefix, and `prefix` the mount if it
    /// is not the store at the root.
    StoreUnavailable = "store-unavailable", SERVICE_UNAVAILABLE, "Store unavailable";
    /// The change of `key` was sent to the store behind the server, its answer was lost, and what is stored does not say
    /// whether it was made. It may still be made; repeating it could undo a change that another client made since. In a
    /// folder, it was made, and a disk that fails may lose it.
    OutcomeUnknown = "outcome-unknown", SERVICE_UNAVAILABLE, "Outcome unknown";
    /// The store accepts no changes until the server is restarted.
    ReadOnlyStore = "read-only-store", SERVICE_UNAVAILABLE, "Store is read-only";
    /// The server is shutting down.
    ShuttingDown = "shutting-down", SERVICE_UNAVAILABLE, "Server is shutting down";
    /// The disk is full; erasing still works.
    OutOfSpace = "out-of-space", INSUFFICIENT_STORAGE, "Out of space";
}

impl ProblemType {
    /// The type that a URI stands for.
    pub fn from_uri(uri: &str) -> Option<Self> {
        let slug = uri.strip_prefix(TYPE_BASE)?;
        Self::ALL.iter().copied().find(|kind| kind.slug() == slug)
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
    fn uris_identify_types() {
        let uris: HashSet<_> = ProblemType::ALL.iter().map(|kind| kind.uri()).collect();
        assert_eq!(uris.len(), ProblemType::ALL.len());
        for kind in ProblemType::ALL {
            assert_eq!(kind.uri(), format!("{TYPE_BASE}{}", kind.slug()));
            assert_eq!(ProblemType::from_uri(kind.uri()), Some(*kind));
            assert!(kind.status().is_client_error() || kind.status().is_server_error());
        }
        assert_eq!(ProblemType::from_uri("about:blank"), None);
    }
}
