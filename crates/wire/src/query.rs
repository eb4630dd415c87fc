//! Query parameters: which ones each resource knows, and their grammar.
//!
//! Names and values are encoded as those of forms: a `+` is a space, as `requests`, `httpx` and browsers write it. What
//! is rendered here writes `%20` and `%2B`, which mean the same to everyone.

mod chunks;
mod compute;
mod elements;
mod list;
mod node;
mod picture;
mod write;

pub use chunks::{CHUNKS, CHUNKS_PARAMETERS, ChunksForm, ChunksQuery, MAX_CHUNK_BINS};
pub use compute::{
    ASTYPE, AXIS, BINS, COARSEN, COMPUTE_PARAMETERS, ComputeQuery, DDOF, EDGE, Edge, KEEPDIMS, Keepdims, MAX_BINS,
    MAX_FUNCTIONS, MAX_QUANTILES, QUANTILES, RANGE, REDUCE, STATS, StatsQuery,
};
pub use elements::{
    CHANNELS, DECODE, DIALECT, Decode, DimensionParameter, ELEMENTS_PARAMETERS, ELEMENTS_POST_PARAMETERS,
    ElementsQuery, FORMAT, HEADER, ISEL, LABELS, LEVEL, READ, SEL, SELECT, SelectBy, ShownChannels,
};
pub use list::{CONTENTS, Contents, LIST, LISTING_PARAMETERS, ListKind, ListQuery};
pub use node::{
    ADOPT, ALLOW_LOSSY, AS, CONVERT, DEPTH, FLAT, Form, INCLUDE, Include, MembersPage, NODE_DELETE_PARAMETERS,
    NODE_PARAMETERS, NODE_PATCH_PARAMETERS, NODE_POST_PARAMETERS, NODE_PUT_PARAMETERS, NodeDeleteQuery, NodePatchQuery,
    NodePostQuery, NodePutQuery, NodeQuery, OVERWRITE, PIECEWISE, TARGET, VALIDATE,
};
pub use picture::{
    CMAP, Channels, LIMITS, LINTHRESH, MAX, MIN, NAN, OVER, PICTURE_PARAMETERS, PictureAnswer, PictureQuery, RGB,
    SCALE, THRESHOLDS, UNDER,
};
pub use write::{
    APPEND_PARAMETERS, AppendQuery, CASTING, CREATE, CREATE_PARAMETERS, CreateQuery, DIMS, DTYPE, POINTS, SHAPE,
    WRITE_PARAMETERS, WriteQuery,
};

use std::borrow::Cow;

use zarrd_meta::Dialect;
use zarrd_store::{Cursor, MAX_PAGE_ENTRIES, Prefix};

use crate::{
    near::suggestion,
    picture::ColorMap,
    routes::{decode, encode},
};

/// The number of entries on a page of a listing, at most.
pub const LIMIT: &str = "limit";
/// The start of a page of a listing.
pub const CURSOR: &str = "cursor";
/// Appends along a dimension.
pub const APPEND: &str = "append";
/// Confirms that everything is erased.
pub const CONFIRM: &str = "confirm";

/// The snapshot from which a value or a listing is read.
pub const SNAPSHOT: &str = "snapshot";
/// The prefix of which a snapshot is taken.
pub const PREFIX: &str = "prefix";

/// The parameters of reading a value.
pub const KEY_READ_PARAMETERS: &[&str] = &[SNAPSHOT];
/// The parameters of taking a snapshot.
pub const SNAPSHOT_PARAMETERS: &[&str] = &[PREFIX];
/// The parameters of a page of tokens or share links.
pub const PAGE_PARAMETERS: &[&str] = &[LIMIT, CURSOR];
/// The parameters of setting and erasing a key.
pub const KEY_WRITE_PARAMETERS: &[&str] = &[];
/// The parameters of erasing a prefix.
pub const ERASE_PREFIX_PARAMETERS: &[&str] = &[CONFIRM];

/// The default number of entries on a page.
pub const DEFAULT_LIMIT: usize = 1000;

/// The reason why a query is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A parameter that the resource does not know.
    #[error("unknown query parameter {name:?}{}", suggestion(.name, .known.iter().copied()))]
    Unknown {
        /// Its name, cut to a length that can be shown.
        name: String,
        /// Those that the resource knows.
        known: &'static [&'static str],
    },
    /// A duplicate parameter.
    #[error("duplicate query parameter {name:?}")]
    Repeated {
        /// Its name.
        name: &'static str,
        /// Those that the resource knows.
        known: &'static [&'static str],
    },
    /// A missing required parameter, or one of several.
    #[error("{} is required", one_of(.names))]
    Missing {
        /// Its name, or theirs.
        names: &'static [&'static str],
        /// Those that the resource knows.
        known: &'static [&'static str],
    },
    /// A parameter with an invalid value.
    #[error("the query parameter {name:?} {expected}")]
    Invalid {
        /// Its name.
        name: &'static str,
        /// The accepted values, as they continue "the query parameter".
        expected: &'static str,
    },
    /// A colour map that is not known.
    #[error("the query parameter \"cmap\" is {}, not {map:?}{}", ColorMap::names().join(", "), suggestion(.map, ColorMap::names()))]
    UnknownColorMap {
        /// The given value, truncated.
        map: String,
    },
    /// An unknown kind of listing.
    #[error("unknown kind of listing {list:?}")]
    UnknownListing {
        /// The given value, truncated.
        list: String,
    },
}

/// The treatment of unknown parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownParameters {
    /// They are ignored, since readers add parameters to get past caches.
    Ignore,
    /// They are rejected, since a misspelt parameter of a write must not have another effect.
    Reject,
}

/// The query of taking a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotQuery {
    /// The prefix; by default that of everything.
    pub prefix: Prefix,
}

/// The query of a page of tokens or share links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// The number of entries at most; by default [`DEFAULT_LIMIT`].
    pub limit: Option<usize>,
    /// The start of the page.
    pub cursor: Option<Cursor>,
}

/// The query of the erasing of a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confirmation {
    /// The parameter is missing.
    #[default]
    Missing,
    /// `confirm=all`: the client confirms that everything is erased.
    All,
}

impl SnapshotQuery {
    /// Parses the query of taking a snapshot.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [prefix] = parse(query, SNAPSHOT_PARAMETERS, [PREFIX], UnknownParameters::Reject)?;
        let invalid = |_| QueryError::Invalid { name: PREFIX, expected: "is a prefix such as lab/exp1/, or empty" };
        Ok(Self { prefix: Prefix::parse(&prefix.unwrap_or_default()).map_err(invalid)? })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        format!("{PREFIX}={}", encode(self.prefix.as_str()))
    }
}

/// Parses the query of reading a value: the id of a snapshot, or `None` for the current state.
pub fn parse_key_read(query: &str) -> Result<Option<String>, QueryError> {
    parse(query, KEY_READ_PARAMETERS, [SNAPSHOT], UnknownParameters::Ignore).map(|[snapshot]| snapshot)
}

/// The text of the query of reading a value from a snapshot, without `?`.
pub fn render_key_read(snapshot: &str) -> String {
    format!("{SNAPSHOT}={}", encode(snapshot))
}

impl PageQuery {
    /// Parses the query of a page.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [limit, cursor] = parse(query, PAGE_PARAMETERS, [LIMIT, CURSOR], UnknownParameters::Reject)?;
        Ok(Self { limit: limit.as_deref().map(parse_limit).transpose()?, cursor: cursor.map(Cursor::from_text) })
    }

    /// The query's text, without `?`; empty where everything is the default.
    pub fn render(&self) -> String {
        render_page(self.limit, self.cursor.as_ref()).collect::<Vec<_>>().join("&")
    }
}

impl Confirmation {
    /// Parses the query of the erasing of a prefix.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [confirm] = parse(query, ERASE_PREFIX_PARAMETERS, [CONFIRM], UnknownParameters::Reject)?;
        confirmed(confirm)
    }

    /// The query's text, without `?`.
    pub fn render(self) -> &'static str {
        match self {
            Self::Missing => "",
            Self::All => "confirm=all",
        }
    }
}

/// Checks the query of the setting or erasing of a key, which knows no parameter.
pub fn parse_key_write(query: &str) -> Result<(), QueryError> {
    parse(query, KEY_WRITE_PARAMETERS, [], UnknownParameters::Reject).map(|[]| ())
}

/// True if a query has a parameter, with or without a value, as the parsers of the same query see it.
pub fn names(query: &str, parameter: &str) -> bool {
    parameters(query).any(|one| name_of(one.split_once('=').map_or(one, |(name, _)| name)) == parameter)
}

/// The parameters of a query, encoded.
fn parameters(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|parameter| !parameter.is_empty())
}

/// The values of the parameters `wanted`, which are all that the resource knows.
fn parse<const N: usize>(
    query: &str,
    known: &'static [&'static str],
    wanted: [&'static str; N],
    unknown: UnknownParameters,
) -> Result<[Option<String>; N], QueryError> {
    values(parameters(query), known, wanted, unknown)
}

/// The values of the parameters `wanted`, which are all that the resource knows besides those that were taken before.
fn values<'q, const N: usize>(
    parameters: impl IntoIterator<Item = &'q str>,
    known: &'static [&'static str],
    wanted: [&'static str; N],
    unknown: UnknownParameters,
) -> Result<[Option<String>; N], QueryError> {
    let mut found = [const { None }; N];
    for parameter in parameters {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let name = name_of(name);
        let Some((slot, name)) = found.iter_mut().zip(wanted).find(|(_, wanted)| *wanted == name) else {
            match unknown {
                UnknownParameters::Ignore => continue,
                UnknownParameters::Reject => return Err(QueryError::Unknown { name: shown(&name), known }),
            }
        };
        let value = text(value).ok_or(QueryError::Invalid { name, expected: "is not percent-encoded UTF-8" })?;
        if slot.replace(value.into_owned()).is_some() {
            return Err(QueryError::Repeated { name, known });
        }
    }
    Ok(found)
}

/// The name of a parameter, decoded; one that cannot be is no known one.
fn name_of(encoded: &str) -> Cow<'_, str> {
    text(encoded).unwrap_or(Cow::Borrowed(encoded))
}

/// True if a parameter without a value is present.
fn flag(name: &'static str, value: Option<String>) -> Result<bool, QueryError> {
    match value.as_deref() {
        None => Ok(false),
        Some("") => Ok(true),
        Some(_) => Err(QueryError::Invalid { name, expected: "takes no value" }),
    }
}

fn dialect_of(value: Option<String>) -> Result<Option<Dialect>, QueryError> {
    let dialect = value.map(|text| text.parse()).transpose();
    dialect.map_err(|_| QueryError::Invalid { name: DIALECT, expected: "is v2, v3 or draft" })
}

fn confirmed(value: Option<String>) -> Result<Confirmation, QueryError> {
    match value.as_deref() {
        None => Ok(Confirmation::Missing),
        Some("all") => Ok(Confirmation::All),
        Some(_) => Err(QueryError::Invalid { name: CONFIRM, expected: "takes only the value \"all\"" }),
    }
}

/// "the query parameter "a"", or "one of the query parameters "a", "b" and "c"".
fn one_of(names: &[&str]) -> String {
    match names {
        [name] => format!("the query parameter {name:?}"),
        names => {
            let mut names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
            let last = names.pop().unwrap_or_default();
            format!("one of the query parameters {} and {last}", names.join(", "))
        }
    }
}

fn render_page(limit: Option<usize>, cursor: Option<&Cursor>) -> impl Iterator<Item = String> {
    let limit = limit.map(|limit| format!("{LIMIT}={limit}"));
    let cursor = cursor.map(|cursor| format!("{CURSOR}={}", encode(cursor.as_str())));
    limit.into_iter().chain(cursor)
}

fn parse_limit(text: &str) -> Result<usize, QueryError> {
    let limit = text.parse().ok().filter(|limit| (1..=MAX_PAGE_ENTRIES).contains(limit) && !text.starts_with('+'));
    limit.ok_or(QueryError::Invalid { name: LIMIT, expected: "is a number from 1 to 10000" })
}

/// A name or a value, decoded once, as forms encode it (the URL standard's `application/x-www-form-urlencoded`): a `+`
/// is a space, and a plus is `%2B`.
fn text(encoded: &str) -> Option<Cow<'_, str>> {
    if !encoded.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(encoded));
    }
    if encoded.contains('+') {
        let spaced = encoded.replace('+', " ");
        return String::from_utf8(decode(&spaced).ok()?.into_owned()).ok().map(Cow::Owned);
    }
    match decode(encoded).ok()? {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn snapshot_queries_round_trip() {
        for prefix in ["", "lab/exp 1/", "a/&/ü/"] {
            let query = SnapshotQuery { prefix: Prefix::parse(prefix).unwrap() };
            assert_eq!(SnapshotQuery::parse(&query.render()), Ok(query));
        }
        assert!(matches!(SnapshotQuery::parse("prefix=lab"), Err(QueryError::Invalid { name: PREFIX, .. })));
        assert_eq!(parse_key_read(&render_key_read("a&b")), Ok(Some("a&b".to_owned())));
        assert_eq!(parse_key_read("other=1"), Ok(None));
    }

    #[test]
    fn page_queries_round_trip() {
        assert_eq!(PageQuery::parse(""), Ok(PageQuery::default()));
        assert_eq!(PageQuery::default().render(), "");
        let full = PageQuery { limit: Some(10_000), cursor: Some(Cursor::from_text("0f.1e")) };
        assert_eq!(full.render(), "limit=10000&cursor=0f.1e");
        assert_eq!(PageQuery::parse(&full.render()), Ok(full));
        let unknown = QueryError::Unknown { name: "list".into(), known: PAGE_PARAMETERS };
        assert_eq!(PageQuery::parse("list=keys"), Err(unknown));
        assert!(matches!(PageQuery::parse("limit=10001"), Err(QueryError::Invalid { name: LIMIT, .. })));
        assert!(matches!(PageQuery::parse("cursor=a&cursor=a"), Err(QueryError::Repeated { name: CURSOR, .. })));
    }

    #[test]
    fn writes_reject_unknown_parameters() {
        assert_eq!(parse_key_write(""), Ok(()));
        assert_eq!(parse_key_write("&"), Ok(()));
        let unknown = |name: &str, known| Err(QueryError::Unknown { name: name.into(), known });
        assert_eq!(parse_key_write("list=keys"), unknown("list", KEY_WRITE_PARAMETERS).map(|_: Confirmation| ()));
        assert_eq!(Confirmation::parse("confrim=all"), unknown("confrim", ERASE_PREFIX_PARAMETERS));
        assert_eq!(Confirmation::parse(""), Ok(Confirmation::Missing));
        assert_eq!(Confirmation::parse(Confirmation::All.render()), Ok(Confirmation::All));
        assert!(matches!(Confirmation::parse("confirm=yes"), Err(QueryError::Invalid { name: CONFIRM, .. })));
        assert!(matches!(Confirmation::parse("confirm=all&confirm=all"), Err(QueryError::Repeated { .. })));
    }

    #[test]
    fn plus_is_a_space_and_decoding_happens_once() {
        for (encoded, decoded) in [
            ("0:2,+1", "0:2, 1"),
            ("%2B1", "+1"),
            ("a+%2B+b", "a + b"),
            ("%252B", "%2B"),
            ("%2520+", "%20 "),
            ("%2b%C3%A9", "+é"),
        ] {
            assert_eq!(text(encoded).as_deref(), Some(decoded), "{encoded}");
            let select = WriteQuery::parse(&format!("select={encoded}")).unwrap().select;
            assert_eq!(select.as_deref(), Some(decoded), "{encoded}");
        }
        for bad in ["%", "+%zz", "+%ff", "%2"] {
            assert_eq!(text(bad), None, "{bad}");
        }
        assert_eq!(ListQuery::parse("li+st=keys"), Ok(ListQuery::default()), "another name");
    }

    /// A value as Python's `urlencode` and browsers' forms write it.
    fn as_forms_do(text: &str) -> String {
        text.split(' ').map(|word| encode(word).to_string()).collect::<Vec<_>>().join("+")
    }

    proptest! {
        #[test]
        fn rendered_queries_parse_back(text in "\\PC{0,40}|[ +%0-9A-F:,&=#]{0,20}") {
            let query = ElementsQuery { select: Some(text.clone()), ..ElementsQuery::default() };
            prop_assert_eq!(ElementsQuery::parse(&query.render()), Ok(query.clone()));
            prop_assert_eq!(ElementsQuery::parse(&format!("{SELECT}={}", as_forms_do(&text))), Ok(query));
            let list = ListQuery { cursor: Some(Cursor::from_text(&text)), ..ListQuery::default() };
            prop_assert_eq!(ListQuery::parse(&list.render()), Ok(list));
        }
    }

    #[test]
    fn names_are_found_decoded() {
        for query in ["append", "append=0", "x&append=", "%61ppend=1", "&append&append"] {
            assert!(names(query, APPEND), "{query}");
        }
        for query in ["", "appen", "x=append", "append%3D0", "%61ppen%zz", "appended"] {
            assert!(!names(query, APPEND), "{query}");
        }
    }
}
