//! The query of a listing.

use zarrd_store::Cursor;

use super::{
    CURSOR, LIMIT, QueryError, SNAPSHOT, UnknownParameters, parse, parse_limit, render_key_read, render_page, shown,
};

/// The kind of a listing.
pub const LIST: &str = "list";
/// The values that come with their keys.
pub const CONTENTS: &str = "contents";

/// The parameters of a listing.
pub const LISTING_PARAMETERS: &[&str] = &[LIST, LIMIT, CURSOR, SNAPSHOT, CONTENTS];

const EXPECTED_CONTENTS: &str = "takes only the value \"small\", with list=keys and a snapshot";

/// The kind of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// Keys and prefixes directly below the prefix: `list=dir`, the default.
    #[default]
    Dir,
    /// All keys below it: `list=keys`.
    Keys,
}

/// The values that come with the keys of a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// None.
    #[default]
    None,
    /// Small ones of a snapshot: `contents=small`.
    Small,
}

/// The query of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// The requested kind.
    pub kind: ListKind,
    /// The number of entries at most; by default [`DEFAULT_LIMIT`](super::DEFAULT_LIMIT).
    pub limit: Option<usize>,
    /// The start of the page.
    pub cursor: Option<Cursor>,
    /// The id of the snapshot that is listed; `None` for the current state.
    pub snapshot: Option<String>,
    /// The values that come with their keys.
    pub contents: Contents,
}

impl ListQuery {
    /// Parses the query of a listing.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let wanted = [LIST, LIMIT, CURSOR, SNAPSHOT, CONTENTS];
        let [list, limit, cursor, snapshot, contents] =
            parse(query, LISTING_PARAMETERS, wanted, UnknownParameters::Ignore)?;
        let kind = list.as_deref().map(parse_kind).transpose()?.unwrap_or_default();
        let contents = match contents.as_deref() {
            None => Contents::None,
            Some("small") if kind == ListKind::Keys && snapshot.is_some() => Contents::Small,
            Some(_) => return Err(QueryError::Invalid { name: CONTENTS, expected: EXPECTED_CONTENTS }),
        };
        Ok(Self {
            kind,
            limit: limit.as_deref().map(parse_limit).transpose()?,
            cursor: cursor.map(Cursor::from_text),
            snapshot,
            contents,
        })
    }

    /// The query's text, without `?`; empty where everything is the default.
    pub fn render(&self) -> String {
        let list = (self.kind == ListKind::Keys).then(|| format!("{LIST}=keys"));
        let page = render_page(self.limit, self.cursor.as_ref());
        let snapshot = self.snapshot.as_deref().map(render_key_read);
        let contents = (self.contents == Contents::Small).then(|| format!("{CONTENTS}=small"));
        list.into_iter().chain(page).chain(snapshot).chain(contents).collect::<Vec<_>>().join("&")
    }
}

fn parse_kind(text: &str) -> Result<ListKind, QueryError> {
    match text {
        "dir" => Ok(ListKind::Dir),
        "keys" => Ok(ListKind::Keys),
        _ => Err(QueryError::UnknownListing { list: shown(text) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listing_queries_round_trip() {
        assert_eq!(ListQuery::parse(""), Ok(ListQuery::default()));
        assert_eq!(ListQuery::parse("list=dir&_=17"), Ok(ListQuery::default()), "cache busters are ignored");
        let full = ListQuery {
            kind: ListKind::Keys,
            limit: Some(7),
            cursor: Some(Cursor::from_text("a_b-&%")),
            snapshot: Some("0&1".to_owned()),
            contents: Contents::Small,
        };
        assert_eq!(full.render(), "list=keys&limit=7&cursor=a_b-%26%25&snapshot=0%261&contents=small");
        assert_eq!(ListQuery::parse(&full.render()), Ok(full));
        assert_eq!(ListQuery::default().render(), "");
        let unknown = QueryError::UnknownListing { list: "tree".into() };
        assert_eq!(ListQuery::parse("list=tree"), Err(unknown));
        assert_eq!(ListQuery::parse("list="), Err(QueryError::UnknownListing { list: String::new() }));
        assert_eq!(
            ListQuery::parse("limit=1&limit=1"),
            Err(QueryError::Repeated { name: LIMIT, known: LISTING_PARAMETERS })
        );
        for bad in ["limit=0", "limit=10001", "limit=", "limit", "limit=+1", "limit=1e3", "limit=99999999999999999999"]
        {
            assert!(matches!(ListQuery::parse(bad), Err(QueryError::Invalid { name: LIMIT, .. })), "{bad}");
        }
        for bad in
            ["contents=small", "list=keys&contents=small", "snapshot=1&contents=small", "list=keys&snapshot=1&contents"]
        {
            assert!(matches!(ListQuery::parse(bad), Err(QueryError::Invalid { name: CONTENTS, .. })), "{bad}");
        }
        assert!(matches!(ListQuery::parse("cursor=%zz"), Err(QueryError::Invalid { name: CURSOR, .. })));
    }
}
