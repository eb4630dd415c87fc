//! A read-only store over the files of a web server that other programs write.
//!
//! [`WebStore`] is opened by an [`HttpUrl`] with [`Options`]: the value of the key `c/0` below
//! `https://example.org/data/` is what a GET of `https://example.org/data/c/0` answers. It reads what nginx, Apache,
//! Caddy, the hosts of static pages and other zarrds serve. [`Keyed`](zarrd_store::Keyed) makes snapshots of it.
//!
//! # Lifecycle of a read
//!
//! ```text
//!   GET ── 301 to itself with / ──► absent: the server has a directory of this name
//!    │ └── other redirects ───────► followed within the origin, three at most
//!    │ └── 404 ───────────────────► absent
//!    │ └── 416 ───────────────────► HEAD: the metadata
//!    │ └── busy, no answer ───────► wait, once more; after the last attempt an error
//!    ▼
//!   check: coding, media type, length, Content-Range ── not the bytes of a value ──► error
//!    │
//!    ▼
//!   ETag: the version ────────────► StoreError::Changed if a snapshot knows another one (If-Match, or compared)
//!    │
//!    ▼
//!   body ── breaks, ends early ──► GET of the rest with If-Match ── 412 ──► StoreError::Changed
//! ```
//!
//! All bytes of one stream are of one value, and as many as announced: an answer without a length is an error, so no
//! body is endless. A request is repeated at most [`Options::retries`] times, with random delays, within
//! [`Options::deadline`]. A `Retry-After` is honoured. If the server stays busy, the operation fails with
//! [`StoreError::Busy`](zarrd_store::StoreError::Busy). A server that ignores `Range` sends all of a value; the part is cut
//! out of it, which costs the bytes before.
//!
//! # Versions
//!
//! A version is a hash of the key, the strong ETag and the size, keyed with the name of the store. A server that sends
//! no strong ETag is refused: a time of modification has seconds, and two values of one second and one size would have
//! one version, so that caches would keep the first one and snapshots would mix both. Programs that set times, such as
//! `rsync --times`, `tar` and `cp -p`, make this happen long after that second. nginx makes its strong ETag of that
//! time and the size, so such a value is read once it was not modified for two seconds by the server's clock.
//!
//! With `?versions=last-modified` the operator vouches that they do not, as for files that are written once. The
//! version is then made of `Last-Modified` and the size where there is no strong ETag, for example with `python -m
//! http.server`. A value is read two seconds after its modification by the server's own clock (`Date`), so no later one
//! has its time.
//!
//! With `?recheck=never` the operator vouches that no value changes. The version is then made of a strong ETag if there
//! is one, or else of whatever the server sends, such as a weak ETag without any time.
//!
//! The ETags of the last 65,536 versions are cached, so that a later read in a snapshot is conditional and a
//! changed value costs no transfer; what was evicted is compared after the answer has begun. Requests ask caches on
//! the way to revalidate (`Cache-Control: no-cache`). A content delivery network that ignores it adds its own lifetime
//! to the time after which changes are seen.
//!
//! # Absence
//!
//! Only 404, and the redirect from a name to the directory of this name on the same server, mean that a key has no value. 403 is an error,
//! or absence with `?absent=403`. An HTML page is an error for every key that does not end as a page does: servers that
//! answer so with 200 want a login, or have a page for what is missing.
//!
//! # Redirects
//!
//! They are followed within the origin; to others only with `?redirects=follow`, and never from HTTPS to HTTP. A server
//! that is not trusted could otherwise make this one read what only its own network shows. Nothing that is sent is
//! secret.
//!
//! # Listings
//!
//! Only those of another zarrd: a server that answers a request for the listing of the URL (`?list=dir`) with one, whose
//! prefix is the end of the URL and whose keys have validators of a zarrd, and which no other server gives. Every other
//! has none, and the children of a group are found in its consolidated metadata. A server that cannot be reached when the
//! store is opened is asked at the first listing.
//!
//! # Limits
//!
//! - 64 requests wait for their answer at a time. Bodies do not count, since they are read at their readers' pace.
//! - Credentials: none are sent, and none are accepted in the URL. Errors and logs have the URL, the key and the
//!   status.
//! - Proxies of the environment (`HTTP_PROXY`) are not used.
//!
//! # Modules
//!
//! | module | |
//! |---|---|
//! | `store` | [`WebStore`] and its implementation of the store traits |
//! | `read` | reading a value |
//! | `listing` | recognizing another zarrd, and its listings |
//! | `answer` | judging answers: versions, ranges, and what is no value |
//! | `inner` | what clones share: requests with their redirects |
//! | `url`, `options`, `kind` | URLs, options, and the kind of store for programs that open URLs |
//! | `failure`, `error` | failures of one request, and errors of the store |

mod answer;
mod error;
mod failure;
mod inner;
mod kind;
mod listing;
mod options;
mod read;
mod store;
mod url;

pub use self::{
    error::{OpenError, RequestError},
    failure::{Failure, RedirectFailure},
    kind::KIND,
    options::Options,
    store::WebStore,
    url::{HttpUrl, UrlError},
};
