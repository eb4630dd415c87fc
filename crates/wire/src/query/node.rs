//! The queries of nodes.

use meta::{Dialect, NodePath, zom::ZomFormat};

use store::Cursor;

use super::{
    CONFIRM, CURSOR, Confirm, DEFAULT_LIMIT, DIALECT, LIMIT, QueryError, Unknown, confirmed, dialect_of, flag, parse,
    parse_limit,
};
use crate::routes::encode;

/// The number of levels below the node to return, or `all`.
pub const DEPTH: &str = "depth";
/// By the model of which dialect.
pub const AS: &str = "as";
/// Returns the documents by path instead of as a tree.
pub const FLAT: &str = "flat";
/// Additional properties to return: `source`.
pub const INCLUDE: &str = "include";
/// The name that [`INCLUDE`] had, whose value was `origin`. It is understood, and not written.
pub const WITH: &str = "with";
/// Replaces an existing node.
pub const OVERWRITE: &str = "overwrite";
/// The former name of [`OVERWRITE`].
pub const REPLACE: &str = "replace";
/// Says that keys at the place of a new array become its own.
pub const ADOPT: &str = "adopt";
/// Says that it is accepted if something is lost.
pub const LOSSY: &str = "lossy";
/// Says that a `POST` compares the node with the ZOM in its body.
pub const VALIDATE: &str = "validate";
/// Says that a `POST` converts the node, and into which dialect.
pub const CONVERT: &str = "convert";
/// The path that a conversion goes to.
pub const TO: &str = "to";

/// The parameters of reading a node.
pub const OF_NODE: &[&str] = &[DEPTH, LIMIT, CURSOR, AS, FLAT, INCLUDE, WITH, DIALECT];
/// The parameters of creating a node.
pub const OF_NODE_PUT: &[&str] = &[DIALECT, OVERWRITE, REPLACE, ADOPT, LOSSY];
/// The parameters of updating a node.
pub const OF_NODE_PATCH: &[&str] = &[DIALECT];
/// The parameters of erasing a node.
pub const OF_NODE_DELETE: &[&str] = &[DIALECT, CONFIRM];
/// The parameters of a `POST` to a node.
pub const OF_NODE_POST: &[&str] = &[VALIDATE, CONVERT, TO, DIALECT];

/// The parameters of which a `POST` to a node needs one.
const POSTS: &[&str] = &[VALIDATE, CONVERT];

/// The query of the reading of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeQuery {
    /// The depth of the returned subtree; one level for a page.
    pub depth: Depth,
    /// The page of members to return, if not all.
    pub page: Option<MembersPage>,
    /// The model in which to describe the node, if not its own.
    pub mapped: Option<ZomFormat>,
    /// In which form.
    pub form: Form,
    /// The additional properties to return.
    pub include: Include,
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
}

/// A page of a group's members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersPage {
    /// The number of members at most; [`DEFAULT_LIMIT`] if only a cursor is given.
    pub limit: usize,
    /// The cursor of the page before; `None` for the first page.
    pub cursor: Option<Cursor>,
}

/// The maximum depth of a returned subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Descendants up to so many levels down; 0 omits the members.
    Levels(u32),
    /// All.
    All,
}

/// The form of a returned node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As a tree: groups have their members.
    #[default]
    Tree,
    /// As the document of every node, by path.
    Flat,
}

/// The properties of a node to return besides its ZOM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    #[default]
    Nothing,
    /// Where and how it is stored, and what the ZOM leaves out: [`Source`](crate::node::Source).
    Source,
}

/// The query of the declaring of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodePutQuery {
    /// In which dialect.
    pub dialect: Option<Dialect>,
    /// What to do with an existing node that differs.
    pub existing: Existing,
    /// What to do if something cannot be represented.
    pub losses: Losses,
}

/// What to do with an existing node that differs, and with stray keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the declaration is refused, as it is if there are keys at the place of a new array.
    #[default]
    Keep,
    /// It is replaced, and keys at the place of a new array are erased.
    Replace,
    /// It stays, and the declaration is refused; keys at the place of a new array become its own.
    Adopt,
}

/// What to do if something cannot be represented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Losses {
    /// It is refused.
    #[default]
    Refuse,
    /// Drop it, and report it.
    Accept,
}

/// The query of the patching of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodePatchQuery {
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
}

/// The query of the erasing of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeDeleteQuery {
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
    /// True if erasing everything is confirmed.
    pub confirm: Confirm,
}

/// The query of a `POST` to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePostQuery {
    /// It is compared with the ZOM in the body.
    Validate {
        /// The dialect of the node, if several have one at the path.
        dialect: Option<Dialect>,
    },
    /// It is converted.
    Convert {
        /// The dialect of the node, if several have one at the path.
        dialect: Option<Dialect>,
        /// Into which dialect.
        into: Dialect,
        /// The path to copy to; `None` converts in place.
        to: Option<NodePath>,
    },
}

impl Default for Depth {
    fn default() -> Self {
        Self::Levels(1)
    }
}

impl NodeQuery {
    /// Parses the query of a `GET`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [depth, limit, cursor, mapped, flat, include, with, dialect] =
            parse(query, OF_NODE, [DEPTH, LIMIT, CURSOR, AS, FLAT, INCLUDE, WITH, DIALECT], Unknown::Refuse)?;
        let mapped = match mapped.as_deref() {
            None => None,
            Some("v2") => Some(ZomFormat::V2),
            Some("v3") => Some(ZomFormat::V3),
            Some(_) => return Err(QueryError::Invalid { name: AS, expected: "is v2 or v3" }),
        };
        let include = match (include.as_deref(), with.as_deref()) {
            (None, None) => Include::Nothing,
            (Some("source"), None) | (None, Some("origin")) => Include::Source,
            (Some("source"), Some(_)) => return Err(QueryError::Repeated { name: INCLUDE, known: OF_NODE }),
            (Some(_), _) => return Err(QueryError::Invalid { name: INCLUDE, expected: "is source" }),
            (None, Some(_)) => return Err(QueryError::Invalid { name: WITH, expected: "is origin" }),
        };
        let form = if flag(FLAT, flat)? { Form::Flat } else { Form::Tree };
        let depth = depth.as_deref().map(parse_depth).transpose()?.unwrap_or_default();
        let limit = limit.as_deref().map(parse_limit).transpose()?;
        let page = (limit.is_some() || cursor.is_some())
            .then(|| MembersPage { limit: limit.unwrap_or(DEFAULT_LIMIT), cursor: cursor.map(Cursor::from_text) });
        if page.is_some() && depth != Depth::Levels(1) {
            let expected = "is 1 with \"limit\" or \"cursor\": members come in pages without theirs";
            return Err(QueryError::Invalid { name: DEPTH, expected });
        }
        Ok(Self { depth, page, mapped, form, include, dialect: dialect_of(dialect)? })
    }

    /// The query's text, without `?`; empty where everything is the default.
    pub fn render(&self) -> String {
        let depth = (self.depth != Depth::default()).then(|| match self.depth {
            Depth::Levels(levels) => format!("{DEPTH}={levels}"),
            Depth::All => format!("{DEPTH}=all"),
        });
        let mapped = self.mapped.map(|version| format!("{AS}={}", version.dialect()));
        let flat = (self.form == Form::Flat).then(|| FLAT.to_owned());
        let include = (self.include == Include::Source).then(|| format!("{INCLUDE}=source"));
        let limit = self.page.as_ref().map(|page| format!("{LIMIT}={}", page.limit));
        let cursor = self.page.as_ref().and_then(|page| page.cursor.as_ref());
        let cursor = cursor.map(|cursor| format!("{CURSOR}={}", encode(cursor.as_str())));
        joined([depth, limit, cursor, mapped, flat, include, rendered(self.dialect)])
    }
}

impl NodePutQuery {
    /// Parses the query of a `PUT`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let names = [DIALECT, OVERWRITE, REPLACE, ADOPT, LOSSY];
        let [dialect, overwrite, replace, adopt, lossy] = parse(query, OF_NODE_PUT, names, Unknown::Refuse)?;
        let overwrite = flag(OVERWRITE, overwrite)? | flag(REPLACE, replace)?;
        let existing = match (overwrite, flag(ADOPT, adopt)?) {
            (false, false) => Existing::Keep,
            (true, false) => Existing::Replace,
            (false, true) => Existing::Adopt,
            (true, true) => {
                let expected = "stands without \"overwrite\": keys are kept or erased";
                return Err(QueryError::Invalid { name: ADOPT, expected });
            }
        };
        Ok(Self { dialect: dialect_of(dialect)?, existing, losses: Losses::parse(lossy)? })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let existing = match self.existing {
            Existing::Keep => None,
            Existing::Replace => Some(OVERWRITE.to_owned()),
            Existing::Adopt => Some(ADOPT.to_owned()),
        };
        joined([rendered(self.dialect), existing, self.losses.rendered()])
    }
}

impl NodePatchQuery {
    /// Parses the query of a `PATCH`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [dialect] = parse(query, OF_NODE_PATCH, [DIALECT], Unknown::Refuse)?;
        Ok(Self { dialect: dialect_of(dialect)? })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        joined([rendered(self.dialect)])
    }
}

impl NodeDeleteQuery {
    /// Parses the query of a `DELETE`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [dialect, confirm] = parse(query, OF_NODE_DELETE, [DIALECT, CONFIRM], Unknown::Refuse)?;
        Ok(Self { dialect: dialect_of(dialect)?, confirm: confirmed(confirm)? })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let confirm = (self.confirm == Confirm::All).then(|| self.confirm.render().to_owned());
        joined([rendered(self.dialect), confirm])
    }
}

impl NodePostQuery {
    /// Parses the query of a `POST`, which has to say what it does.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [validate, convert, to, dialect] =
            parse(query, OF_NODE_POST, [VALIDATE, CONVERT, TO, DIALECT], Unknown::Refuse)?;
        let dialect = dialect_of(dialect)?;
        let Some(into) = convert else {
            if !flag(VALIDATE, validate)? {
                return Err(QueryError::Missing { names: POSTS, known: OF_NODE_POST });
            }
            return match to {
                Some(_) => Err(QueryError::Invalid { name: TO, expected: "is for \"convert\" alone" }),
                None => Ok(Self::Validate { dialect }),
            };
        };
        if validate.is_some() {
            return Err(QueryError::Invalid { name: CONVERT, expected: "is not for \"validate\"" });
        }
        let into = into.parse();
        let into = into.map_err(|_| QueryError::Invalid { name: CONVERT, expected: "is v2, v3 or draft" })?;
        let to = to.map(|to| NodePath::parse(&to)).transpose();
        let to = to.map_err(|_| QueryError::Invalid { name: TO, expected: "is the path of a node" })?;
        Ok(Self::Convert { dialect, into, to })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        match self {
            Self::Validate { dialect } => joined([Some(VALIDATE.to_owned()), rendered(*dialect)]),
            Self::Convert { dialect, into, to } => joined([
                Some(format!("{CONVERT}={into}")),
                to.as_ref().map(|to| format!("{TO}={}", encode(&to.to_string()))),
                rendered(*dialect),
            ]),
        }
    }
}

impl Losses {
    fn parse(lossy: Option<String>) -> Result<Self, QueryError> {
        Ok(if flag(LOSSY, lossy)? { Self::Accept } else { Self::Refuse })
    }

    fn rendered(self) -> Option<String> {
        (self == Self::Accept).then(|| LOSSY.to_owned())
    }
}

fn parse_depth(text: &str) -> Result<Depth, QueryError> {
    if text == "all" {
        return Ok(Depth::All);
    }
    let levels = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    levels.map(Depth::Levels).ok_or(QueryError::Invalid { name: DEPTH, expected: "is a number of levels, or \"all\"" })
}

fn rendered(dialect: Option<Dialect>) -> Option<String> {
    dialect.map(|dialect| format!("{DIALECT}={dialect}"))
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading() {
        assert_eq!(NodeQuery::parse(""), Ok(NodeQuery::default()));
        assert_eq!(NodeQuery::default().render(), "");
        let full = NodeQuery {
            depth: Depth::All,
            page: None,
            mapped: Some(ZomFormat::V2),
            form: Form::Flat,
            include: Include::Source,
            dialect: Some(Dialect::Draft),
        };
        assert_eq!(full.render(), "depth=all&as=v2&flat&include=source&dialect=draft");
        let page = Some(MembersPage { limit: 7, cursor: Some(Cursor::from_text("a_b-&%")) });
        let paged = NodeQuery { depth: Depth::Levels(1), page, ..full.clone() };
        assert_eq!(paged.render(), "limit=7&cursor=a_b-%26%25&as=v2&flat&include=source&dialect=draft");
        for query in [full.clone(), NodeQuery { depth: Depth::Levels(0), ..full }, paged] {
            assert_eq!(NodeQuery::parse(&query.render()), Ok(query));
        }
        assert_eq!(NodeQuery::parse("with=origin"), NodeQuery::parse("include=source"), "the name that it had");
        let twice = QueryError::Repeated { name: INCLUDE, known: OF_NODE };
        assert_eq!(NodeQuery::parse("include=source&with=origin"), Err(twice));
        let page = |query| NodeQuery::parse(query).unwrap().page;
        assert_eq!(page("depth=1&limit=10000"), Some(MembersPage { limit: 10_000, cursor: None }));
        let cursor = Some(Cursor::from_text("x"));
        assert_eq!(page("cursor=x"), Some(MembersPage { limit: DEFAULT_LIMIT, cursor }));
        assert_eq!(NodeQuery::parse("depth=4294967295").unwrap().depth, Depth::Levels(u32::MAX));
        for (bad, wrong) in [
            ("depth=", DEPTH),
            ("depth=-1", DEPTH),
            ("depth=+1", DEPTH),
            ("depth=4294967296", DEPTH),
            ("depth=0&limit=1", DEPTH),
            ("depth=2&cursor=x", DEPTH),
            ("limit=1&depth=all", DEPTH),
            ("limit=0", LIMIT),
            ("limit=10001", LIMIT),
            ("limit=", LIMIT),
            ("as=draft", AS),
            ("flat=1", FLAT),
            ("include=", INCLUDE),
            ("include=origin", INCLUDE),
            ("with=", WITH),
            ("with=source", WITH),
            ("dialect=v4", DIALECT),
        ] {
            let error = NodeQuery::parse(bad).unwrap_err();
            assert!(matches!(error, QueryError::Invalid { name, .. } if name == wrong), "{bad}");
        }
        let unknown = QueryError::Unknown { name: "deep".into(), known: OF_NODE };
        assert_eq!(NodeQuery::parse("deep=1"), Err(unknown));
        assert_eq!(NodeQuery::parse("flat&flat"), Err(QueryError::Repeated { name: FLAT, known: OF_NODE }));
    }

    #[test]
    fn changing() {
        let put = NodePutQuery { dialect: Some(Dialect::V2), existing: Existing::Replace, losses: Losses::Accept };
        assert_eq!(put.render(), "dialect=v2&overwrite&lossy");
        assert_eq!(NodePutQuery::parse(&put.render()), Ok(put));
        assert_eq!(NodePutQuery::parse("dialect=v2&replace&lossy"), Ok(put), "its former name");
        let adopt = NodePutQuery { existing: Existing::Adopt, ..NodePutQuery::default() };
        assert_eq!(NodePutQuery::parse(&adopt.render()), Ok(adopt));
        assert!(matches!(NodePutQuery::parse("adopt&overwrite"), Err(QueryError::Invalid { name: ADOPT, .. })));
        assert_eq!(NodePutQuery::parse(""), Ok(NodePutQuery::default()));
        assert!(matches!(NodePutQuery::parse("replace=no"), Err(QueryError::Invalid { name: REPLACE, .. })));
        assert!(matches!(NodePutQuery::parse("depth=1"), Err(QueryError::Unknown { known: OF_NODE_PUT, .. })));

        let patch = NodePatchQuery { dialect: Some(Dialect::V3) };
        assert_eq!(NodePatchQuery::parse(&patch.render()), Ok(patch));
        assert!(matches!(NodePatchQuery::parse("shape=1"), Err(QueryError::Unknown { known: OF_NODE_PATCH, .. })));

        let delete = NodeDeleteQuery { dialect: Some(Dialect::V3), confirm: Confirm::All };
        assert_eq!(delete.render(), "dialect=v3&confirm=all");
        assert_eq!(NodeDeleteQuery::parse(&delete.render()), Ok(delete));
        assert!(matches!(NodeDeleteQuery::parse("confirm=yes"), Err(QueryError::Invalid { name: CONFIRM, .. })));
    }

    #[test]
    fn posting() {
        let validate = NodePostQuery::Validate { dialect: Some(Dialect::V2) };
        assert_eq!(validate.render(), "validate&dialect=v2");
        let convert = NodePostQuery::Convert {
            dialect: None,
            into: Dialect::Draft,
            to: Some(NodePath::parse("/a b/c").unwrap()),
        };
        assert_eq!(convert.render(), "convert=draft&to=/a%20b/c");
        for query in [validate, convert] {
            assert_eq!(NodePostQuery::parse(&query.render()), Ok(query));
        }
        let missing = QueryError::Missing { names: &["validate", "convert"], known: OF_NODE_POST };
        assert_eq!(missing.to_string(), "one of the query parameters \"validate\" and \"convert\" has to be there");
        assert_eq!(NodePostQuery::parse("dialect=v2"), Err(missing.clone()));
        assert_eq!(NodePostQuery::parse("to=/a"), Err(missing));
        for (bad, wrong) in [
            ("validate=1", VALIDATE),
            ("validate&to=/a", TO),
            ("validate&convert=v3", CONVERT),
            ("convert", CONVERT),
            ("convert=v4", CONVERT),
            ("convert=v3&to=a//b", TO),
        ] {
            let error = NodePostQuery::parse(bad).unwrap_err();
            assert!(matches!(error, QueryError::Invalid { name, .. } if name == wrong), "{bad}: {error}");
        }
    }
}
