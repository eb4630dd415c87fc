//! The queries of nodes.

use zarrd_meta::{Dialect, NodePath, zom::ZomFormat};
use zarrd_operations::{Depth, ExistingDocuments, IfExists, LossPolicy, PatchMode};

use zarrd_store::Cursor;

use super::{
    APPEND, CONFIRM, CURSOR, Confirmation, DEFAULT_LIMIT, DIALECT, LIMIT, QueryError, UnknownParameters, confirmed,
    dialect_of, flag, parse, parse_limit,
};
use crate::routes::encode;

/// The number of levels below the node to return, or `all`.
pub const DEPTH: &str = "depth";
/// The model in which to describe nodes.
pub const AS: &str = "as";
/// Returns the documents by path instead of as a tree.
pub const FLAT: &str = "flat";
/// Additional properties to return: `source` or `files`.
pub const INCLUDE: &str = "include";
/// Replaces an existing node.
pub const OVERWRITE: &str = "overwrite";
/// Makes keys at the path of a new array its chunks.
pub const ADOPT: &str = "adopt";
/// Accepts the loss of properties that the dialect cannot represent, or with `no` rejects it.
pub const ALLOW_LOSSY: &str = "allow_lossy";
/// Changes several documents one after the other, where there are no commits.
pub const PIECEWISE: &str = "piecewise";
/// Compares the node with the ZOM in the body of a `POST`.
pub const VALIDATE: &str = "validate";
/// Converts the node to a dialect.
pub const CONVERT: &str = "convert";
/// The path that a conversion copies to.
pub const TARGET: &str = "target";

/// The names of additional properties.
const SOURCE: &str = "source";
const FILES: &str = "files";

/// The parameters of reading a node.
pub const NODE_PARAMETERS: &[&str] = &[DEPTH, LIMIT, CURSOR, AS, FLAT, INCLUDE, DIALECT];
/// The parameters of creating a node.
pub const NODE_PUT_PARAMETERS: &[&str] = &[DIALECT, OVERWRITE, ADOPT, ALLOW_LOSSY];
/// The parameters of updating a node.
pub const NODE_PATCH_PARAMETERS: &[&str] = &[DIALECT, PIECEWISE];
/// The parameters of erasing a node.
pub const NODE_DELETE_PARAMETERS: &[&str] = &[DIALECT, CONFIRM];
/// The parameters of a `POST` to a node.
pub const NODE_POST_PARAMETERS: &[&str] = &[VALIDATE, CONVERT, TARGET, OVERWRITE, ALLOW_LOSSY, DIALECT];

/// The parameters of which a `POST` to a node needs one.
const POSTS: &[&str] = &[VALIDATE, CONVERT, APPEND];

/// The query of the reading of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeQuery {
    /// The depth of the returned subtree; one level for a page.
    pub depth: Depth,
    /// The page of members to return, if not all.
    pub page: Option<MembersPage>,
    /// The model in which to describe the node, if not its own.
    pub mapped: Option<ZomFormat>,
    /// The form of the response.
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

/// The form of a returned node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// As a tree: groups have their members.
    #[default]
    Tree,
    /// As the document of every node, by path.
    Flat,
}

/// The properties of a node to return in addition to its ZOM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    #[default]
    Nothing,
    /// Its storage properties, and what the ZOM leaves out: [`Source`](crate::node::Source).
    Source,
    /// The same, and what is directly below a group and belongs to no node, with a page of members.
    Files,
}

/// The query of creating a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodePutQuery {
    /// The dialect to store it in.
    pub dialect: Option<Dialect>,
    /// The treatment of an existing node that differs.
    pub if_exists: IfExists,
    /// The treatment of properties that the dialect cannot represent.
    pub losses: LossPolicy,
}

/// The query of updating a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodePatchQuery {
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
    /// The mode of an update of several documents.
    pub mode: PatchMode,
}

/// The query of erasing a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeDeleteQuery {
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
    /// True if erasing everything is confirmed.
    pub confirm: Confirmation,
}

/// The query of a `POST` to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePostQuery {
    /// Compare the node with the ZOM in the body.
    Validate {
        /// The dialect of the node, if several have one at the path.
        dialect: Option<Dialect>,
    },
    /// Convert the node.
    Convert {
        /// The dialect of the node, if several have one at the path.
        dialect: Option<Dialect>,
        /// The dialect to convert to.
        into: Dialect,
        /// The path to copy to; `None` converts in place.
        target: Option<NodePath>,
        /// The treatment of documents that the dialect already has.
        existing: ExistingDocuments,
        /// The treatment of properties that the dialect cannot represent.
        losses: LossPolicy,
    },
}

impl NodeQuery {
    /// Parses the query of a `GET`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [depth, limit, cursor, mapped, flat, include, dialect] = parse(
            query,
            NODE_PARAMETERS,
            [DEPTH, LIMIT, CURSOR, AS, FLAT, INCLUDE, DIALECT],
            UnknownParameters::Reject,
        )?;
        let mapped = match mapped.as_deref() {
            None => None,
            Some("v2") => Some(ZomFormat::V2),
            Some("v3") => Some(ZomFormat::V3),
            Some(_) => return Err(QueryError::Invalid { name: AS, expected: "is v2 or v3" }),
        };
        let include = match include.as_deref() {
            None => Include::Nothing,
            Some(SOURCE) => Include::Source,
            Some(FILES) => Include::Files,
            Some(_) => return Err(QueryError::Invalid { name: INCLUDE, expected: "is source or files" }),
        };
        let form = if flag(FLAT, flat)? { Form::Flat } else { Form::Tree };
        let depth = depth.as_deref().map(parse_depth).transpose()?.unwrap_or_default();
        let limit = limit.as_deref().map(parse_limit).transpose()?;
        let page = (limit.is_some() || cursor.is_some() || include == Include::Files)
            .then(|| MembersPage { limit: limit.unwrap_or(DEFAULT_LIMIT), cursor: cursor.map(Cursor::from_text) });
        if page.is_some() && depth != Depth::Levels(1) {
            let expected = "is 1 with \"limit\", \"cursor\" or \"include=files\": members come in pages without theirs";
            return Err(QueryError::Invalid { name: DEPTH, expected });
        }
        Ok(Self { depth, page, mapped, form, include, dialect: dialect_of(dialect)? })
    }

    /// The query's text, without `?`; empty if everything is the default.
    pub fn render(&self) -> String {
        let depth = (self.depth != Depth::default()).then(|| match self.depth {
            Depth::Levels(levels) => format!("{DEPTH}={levels}"),
            Depth::All => format!("{DEPTH}=all"),
        });
        let mapped = self.mapped.map(|version| format!("{AS}={}", version.dialect()));
        let flat = (self.form == Form::Flat).then(|| FLAT.to_owned());
        let include = match self.include {
            Include::Nothing => None,
            Include::Source => Some(format!("{INCLUDE}={SOURCE}")),
            Include::Files => Some(format!("{INCLUDE}={FILES}")),
        };
        let limit = self.page.as_ref().map(|page| format!("{LIMIT}={}", page.limit));
        let cursor = self.page.as_ref().and_then(|page| page.cursor.as_ref());
        let cursor = cursor.map(|cursor| format!("{CURSOR}={}", encode(cursor.as_str())));
        joined([depth, limit, cursor, mapped, flat, include, rendered(self.dialect)])
    }
}

impl NodePutQuery {
    /// Parses the query of a `PUT`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let names = [DIALECT, OVERWRITE, ADOPT, ALLOW_LOSSY];
        let [dialect, overwrite, adopt, allow_lossy] =
            parse(query, NODE_PUT_PARAMETERS, names, UnknownParameters::Reject)?;
        let if_exists = match (flag(OVERWRITE, overwrite)?, flag(ADOPT, adopt)?) {
            (false, false) => IfExists::Fail,
            (true, false) => IfExists::Replace,
            (false, true) => IfExists::Adopt,
            (true, true) => {
                let expected = "excludes \"overwrite\": keys are either kept or erased";
                return Err(QueryError::Invalid { name: ADOPT, expected });
            }
        };
        Ok(Self {
            dialect: dialect_of(dialect)?,
            if_exists,
            losses: parse_loss_policy(allow_lossy, LossPolicy::Reject)?,
        })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let if_exists = match self.if_exists {
            IfExists::Fail => None,
            IfExists::Replace => Some(OVERWRITE.to_owned()),
            IfExists::Adopt => Some(ADOPT.to_owned()),
        };
        let allow_lossy = (self.losses == LossPolicy::Allow).then(|| ALLOW_LOSSY.to_owned());
        joined([rendered(self.dialect), if_exists, allow_lossy])
    }
}

impl NodePatchQuery {
    /// Parses the query of a `PATCH`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [dialect, piecewise] =
            parse(query, NODE_PATCH_PARAMETERS, [DIALECT, PIECEWISE], UnknownParameters::Reject)?;
        let mode = if flag(PIECEWISE, piecewise)? { PatchMode::Piecewise } else { PatchMode::Whole };
        Ok(Self { dialect: dialect_of(dialect)?, mode })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let piecewise = (self.mode == PatchMode::Piecewise).then(|| PIECEWISE.to_owned());
        joined([rendered(self.dialect), piecewise])
    }
}

impl NodeDeleteQuery {
    /// Parses the query of a `DELETE`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [dialect, confirm] = parse(query, NODE_DELETE_PARAMETERS, [DIALECT, CONFIRM], UnknownParameters::Reject)?;
        Ok(Self { dialect: dialect_of(dialect)?, confirm: confirmed(confirm)? })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let confirm = (self.confirm == Confirmation::All).then(|| self.confirm.render().to_owned());
        joined([rendered(self.dialect), confirm])
    }
}

impl NodePostQuery {
    /// Parses the query of a `POST`, which needs an operation.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let names = [VALIDATE, CONVERT, TARGET, OVERWRITE, ALLOW_LOSSY, DIALECT];
        let [validate, convert, target, overwrite, allow_lossy, dialect] =
            parse(query, NODE_POST_PARAMETERS, names, UnknownParameters::Reject)?;
        let dialect = dialect_of(dialect)?;
        let Some(into) = convert else {
            if !flag(VALIDATE, validate)? {
                return Err(QueryError::Missing { names: POSTS, known: NODE_POST_PARAMETERS });
            }
            let others = [(TARGET, target), (OVERWRITE, overwrite), (ALLOW_LOSSY, allow_lossy)];
            return match others.into_iter().find(|(_, value)| value.is_some()) {
                Some((name, _)) => Err(QueryError::Invalid { name, expected: "is valid only with \"convert\"" }),
                None => Ok(Self::Validate { dialect }),
            };
        };
        if validate.is_some() {
            return Err(QueryError::Invalid { name: CONVERT, expected: "excludes \"validate\"" });
        }
        let into = into.parse();
        let into = into.map_err(|_| QueryError::Invalid { name: CONVERT, expected: "is v2, v3 or draft" })?;
        let target = target.map(|target| NodePath::parse(&target)).transpose();
        let target = target.map_err(|_| QueryError::Invalid { name: TARGET, expected: "is the path of a node" })?;
        let existing = match flag(OVERWRITE, overwrite)? {
            true if target.is_some() => {
                return Err(QueryError::Invalid { name: OVERWRITE, expected: "excludes \"target\"" });
            }
            true => ExistingDocuments::Overwrite,
            false => ExistingDocuments::Keep,
        };
        let losses = parse_loss_policy(allow_lossy, LossPolicy::Allow)?;
        Ok(Self::Convert { dialect, into, target, existing, losses })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        match self {
            Self::Validate { dialect } => joined([Some(VALIDATE.to_owned()), rendered(*dialect)]),
            Self::Convert { dialect, into, target, existing, losses } => joined([
                Some(format!("{CONVERT}={into}")),
                target.as_ref().map(|target| format!("{TARGET}={}", encode(&target.to_string()))),
                (*existing == ExistingDocuments::Overwrite).then(|| OVERWRITE.to_owned()),
                (*losses == LossPolicy::Reject).then(|| format!("{ALLOW_LOSSY}=no")),
                rendered(*dialect),
            ]),
        }
    }
}

fn parse_loss_policy(allow_lossy: Option<String>, default: LossPolicy) -> Result<LossPolicy, QueryError> {
    match allow_lossy.as_deref() {
        None => Ok(default),
        Some("" | "yes") => Ok(LossPolicy::Allow),
        Some("no") => Ok(LossPolicy::Reject),
        Some(_) => Err(QueryError::Invalid { name: ALLOW_LOSSY, expected: "is yes or no" }),
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
    fn read_queries_round_trip() {
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
        let files = NodeQuery::parse("include=files").unwrap();
        assert_eq!(files.render(), "limit=1000&include=files", "files come in pages");
        assert_eq!(NodeQuery::parse(&files.render()), Ok(files));
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
            ("depth=0&include=files", DEPTH),
            ("limit=0", LIMIT),
            ("limit=10001", LIMIT),
            ("limit=", LIMIT),
            ("as=draft", AS),
            ("flat=1", FLAT),
            ("include=", INCLUDE),
            ("include=origin", INCLUDE),
            ("dialect=v4", DIALECT),
        ] {
            let error = NodeQuery::parse(bad).unwrap_err();
            assert!(matches!(error, QueryError::Invalid { name, .. } if name == wrong), "{bad}");
        }
        let unknown = QueryError::Unknown { name: "deep".into(), known: NODE_PARAMETERS };
        assert_eq!(NodeQuery::parse("deep=1"), Err(unknown));
        assert_eq!(NodeQuery::parse("flat&flat"), Err(QueryError::Repeated { name: FLAT, known: NODE_PARAMETERS }));
    }

    #[test]
    fn change_queries_round_trip() {
        let put = NodePutQuery { dialect: Some(Dialect::V2), if_exists: IfExists::Replace, losses: LossPolicy::Allow };
        assert_eq!(put.render(), "dialect=v2&overwrite&allow_lossy");
        assert_eq!(NodePutQuery::parse(&put.render()), Ok(put));
        let adopt = NodePutQuery { if_exists: IfExists::Adopt, ..NodePutQuery::default() };
        assert_eq!(NodePutQuery::parse(&adopt.render()), Ok(adopt));
        assert!(matches!(NodePutQuery::parse("adopt&overwrite"), Err(QueryError::Invalid { name: ADOPT, .. })));
        assert_eq!(NodePutQuery::parse(""), Ok(NodePutQuery::default()));
        assert!(matches!(NodePutQuery::parse("overwrite=no"), Err(QueryError::Invalid { name: OVERWRITE, .. })));
        assert!(matches!(NodePutQuery::parse("depth=1"), Err(QueryError::Unknown { known: NODE_PUT_PARAMETERS, .. })));

        let patch = NodePatchQuery { dialect: Some(Dialect::V3), mode: PatchMode::Piecewise };
        assert_eq!(patch.render(), "dialect=v3&piecewise");
        assert_eq!(NodePatchQuery::parse(&patch.render()), Ok(patch));
        assert_eq!(NodePatchQuery::parse(""), Ok(NodePatchQuery::default()));
        assert!(matches!(NodePatchQuery::parse("piecewise=no"), Err(QueryError::Invalid { name: PIECEWISE, .. })));
        assert!(matches!(
            NodePatchQuery::parse("shape=1"),
            Err(QueryError::Unknown { known: NODE_PATCH_PARAMETERS, .. })
        ));

        let delete = NodeDeleteQuery { dialect: Some(Dialect::V3), confirm: Confirmation::All };
        assert_eq!(delete.render(), "dialect=v3&confirm=all");
        assert_eq!(NodeDeleteQuery::parse(&delete.render()), Ok(delete));
        assert!(matches!(NodeDeleteQuery::parse("confirm=yes"), Err(QueryError::Invalid { name: CONFIRM, .. })));
    }

    #[test]
    fn post_queries_round_trip() {
        let validate = NodePostQuery::Validate { dialect: Some(Dialect::V2) };
        assert_eq!(validate.render(), "validate&dialect=v2");
        let convert = NodePostQuery::Convert {
            dialect: None,
            into: Dialect::Draft,
            target: Some(NodePath::parse("/a b/c").unwrap()),
            existing: ExistingDocuments::Keep,
            losses: LossPolicy::Allow,
        };
        assert_eq!(convert.render(), "convert=draft&target=/a%20b/c");
        let lossless = NodePostQuery::Convert {
            dialect: None,
            into: Dialect::V2,
            target: None,
            existing: ExistingDocuments::Overwrite,
            losses: LossPolicy::Reject,
        };
        assert_eq!(lossless.render(), "convert=v2&overwrite&allow_lossy=no");
        assert_eq!(NodePostQuery::parse("convert=draft&target=/a%20b/c&allow_lossy"), Ok(convert.clone()));
        assert_eq!(NodePutQuery::parse("allow_lossy=no"), Ok(NodePutQuery::default()));
        for query in [validate, convert, lossless] {
            assert_eq!(NodePostQuery::parse(&query.render()), Ok(query));
        }
        let missing = QueryError::Missing { names: &["validate", "convert", "append"], known: NODE_POST_PARAMETERS };
        assert_eq!(
            missing.to_string(),
            "one of the query parameters \"validate\", \"convert\" and \"append\" is required"
        );
        assert_eq!(NodePostQuery::parse("dialect=v2"), Err(missing.clone()));
        assert_eq!(NodePostQuery::parse("target=/a"), Err(missing));
        for (bad, wrong) in [
            ("validate=1", VALIDATE),
            ("validate&target=/a", TARGET),
            ("validate&allow_lossy=no", ALLOW_LOSSY),
            ("validate&overwrite", OVERWRITE),
            ("convert=v3&target=/a&overwrite", OVERWRITE),
            ("convert=v3&allow_lossy=maybe", ALLOW_LOSSY),
            ("validate&convert=v3", CONVERT),
            ("convert", CONVERT),
            ("convert=v4", CONVERT),
            ("convert=v3&target=a//b", TARGET),
        ] {
            let error = NodePostQuery::parse(bad).unwrap_err();
            assert!(matches!(error, QueryError::Invalid { name, .. } if name == wrong), "{bad}: {error}");
        }
    }
}
