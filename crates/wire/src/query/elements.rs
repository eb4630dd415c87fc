//! The queries of elements.

use meta::Dialect;

use super::{QueryError, UnknownParameters, dialect_of, flag, parse};
use crate::{
    array::{CsvHeader, Format},
    routes::encode,
};

/// The selection, as text.
pub const SELECT: &str = "select";
/// The format.
pub const FORMAT: &str = "format";
/// The dialect of the node.
pub const DIALECT: &str = "dialect";
/// The value that a PNG shows black, and all below it.
pub const MIN: &str = "min";
/// The value that a PNG shows white, and all above it.
pub const MAX: &str = "max";
/// True if CSV has a header line with the columns' names: `true` or `false`.
pub const HEADER: &str = "header";
/// Reads the selection in the body of a `POST`.
pub const READ: &str = "read";

/// Appends along a dimension.
pub const APPEND: &str = "append";

/// The parameters of reading elements.
pub const ELEMENTS_PARAMETERS: &[&str] = &[SELECT, FORMAT, DIALECT, MIN, MAX, HEADER];
/// The parameters of reading elements by `POST`; the body has the selection.
pub const ELEMENTS_POST_PARAMETERS: &[&str] = &[READ, FORMAT, DIALECT, MIN, MAX, HEADER];
/// The parameters of writing elements.
pub const WRITE_PARAMETERS: &[&str] = &[SELECT, DIALECT];
/// The parameters of appending.
pub const APPEND_PARAMETERS: &[&str] = &[APPEND, DIALECT];

/// The parameters of which a `POST` to an array needs one.
const POSTS: &[&str] = &[READ, APPEND];

/// The query of reading elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElementsQuery {
    /// The text of the selection. A `POST` has it in its body.
    pub select: Option<String>,
    /// The format; takes precedence over `Accept`.
    pub format: Option<Format>,
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
    /// The value that a PNG shows black; finite.
    pub min: Option<f64>,
    /// The value that a PNG shows white; finite, and above `min` where both are given.
    pub max: Option<f64>,
    /// True if CSV has a header line; by default it has one if the columns have names.
    pub header: Option<CsvHeader>,
}

/// The query of writing elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteQuery {
    /// The text of the selection; `None` for all elements.
    pub select: Option<String>,
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
}

/// The query of appending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendQuery {
    /// The dimension that grows, negative from the end.
    pub dimension: i64,
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
}

impl WriteQuery {
    /// Parses the query of a `PUT`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [select, dialect] = parse(query, WRITE_PARAMETERS, [SELECT, DIALECT], UnknownParameters::Reject)?;
        Ok(Self { select, dialect: dialect_of(dialect)? })
    }

    /// The query's text, without `?`; empty if everything is the default.
    pub fn render(&self) -> String {
        ElementsQuery { select: self.select.clone(), dialect: self.dialect, ..ElementsQuery::default() }.render()
    }
}

impl AppendQuery {
    /// Parses the query of a `POST` that appends.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [append, dialect] = parse(query, APPEND_PARAMETERS, [APPEND, DIALECT], UnknownParameters::Reject)?;
        let append = append.ok_or(QueryError::Missing { names: &[APPEND], known: APPEND_PARAMETERS })?;
        let dimension = append.parse().ok().filter(|_| !append.starts_with('+'));
        let dimension =
            dimension.ok_or(QueryError::Invalid { name: APPEND, expected: "is the number of a dimension" })?;
        Ok(Self { dimension, dialect: dialect_of(dialect)? })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let dialect = self.dialect.map(|dialect| format!("&{DIALECT}={dialect}")).unwrap_or_default();
        format!("{APPEND}={}{dialect}", self.dimension)
    }
}

impl ElementsQuery {
    /// Parses the query of a `GET`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [select, rest @ ..] =
            parse(query, ELEMENTS_PARAMETERS, [SELECT, FORMAT, DIALECT, MIN, MAX, HEADER], UnknownParameters::Reject)?;
        Self { select, ..Self::default() }.with(rest)
    }

    /// Parses the query of a `POST`, which has to say that it reads.
    pub fn parse_post(query: &str) -> Result<Self, QueryError> {
        let [read, rest @ ..] = parse(
            query,
            ELEMENTS_POST_PARAMETERS,
            [READ, FORMAT, DIALECT, MIN, MAX, HEADER],
            UnknownParameters::Reject,
        )?;
        if !flag(READ, read)? {
            return Err(QueryError::Missing { names: POSTS, known: ELEMENTS_POST_PARAMETERS });
        }
        Self::default().with(rest)
    }

    /// The text of the query of a `GET`, without `?`; empty if everything is the default.
    pub fn render(&self) -> String {
        self.rendered(self.select.as_ref().map(|select| format!("{SELECT}={}", encode(select))))
    }

    /// The text of the query of a `POST`, without `?`.
    pub fn render_post(&self) -> String {
        self.rendered(Some(READ.to_owned()))
    }

    fn with(self, [format, dialect, min, max, header]: [Option<String>; 5]) -> Result<Self, QueryError> {
        let format = format.map(|text| text.parse()).transpose();
        let query = Self {
            format: format
                .map_err(|_| QueryError::Invalid { name: FORMAT, expected: "is json, raw, npy, csv or png" })?,
            dialect: dialect_of(dialect)?,
            min: min.map(|text| limit(MIN, &text)).transpose()?,
            max: max.map(|text| limit(MAX, &text)).transpose()?,
            header: header.map(|text| csv_header(&text)).transpose()?,
            ..self
        };
        match (query.min, query.max) {
            (Some(min), Some(max)) if min >= max => {
                Err(QueryError::Invalid { name: MAX, expected: "is larger than \"min\"" })
            }
            _ => Ok(query),
        }
    }

    fn rendered(&self, first: Option<String>) -> String {
        let format = self.format.map(|format| format!("{FORMAT}={format}"));
        let dialect = self.dialect.map(|dialect| format!("{DIALECT}={dialect}"));
        let [min, max] = [(MIN, self.min), (MAX, self.max)].map(|(name, limit)| Some(format!("{name}={}", limit?)));
        let header = self.header.map(|header| format!("{HEADER}={}", header == CsvHeader::Present));
        [first, format, dialect, min, max, header].into_iter().flatten().collect::<Vec<_>>().join("&")
    }
}

fn csv_header(text: &str) -> Result<CsvHeader, QueryError> {
    match text {
        "true" => Ok(CsvHeader::Present),
        "false" => Ok(CsvHeader::Absent),
        _ => Err(QueryError::Invalid { name: HEADER, expected: "is true or false" }),
    }
}

fn limit(name: &'static str, text: &str) -> Result<f64, QueryError> {
    let limit = text.parse().ok().filter(|limit: &f64| limit.is_finite());
    limit.ok_or(QueryError::Invalid { name, expected: "is a finite number" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_queries_round_trip() {
        let full = ElementsQuery {
            select: Some("0:10,::-2, [1]".into()),
            format: Some(Format::Png),
            dialect: Some(Dialect::Draft),
            min: Some(-0.5),
            max: Some(1e300),
            header: Some(CsvHeader::Present),
        };
        assert!(
            full.render().starts_with("select=0%3A10%2C%3A%3A-2%2C%20%5B1%5D&format=png&dialect=draft&min=-0.5&max=1")
        );
        assert_eq!(ElementsQuery::parse(&full.render()), Ok(full.clone()));
        assert_eq!(ElementsQuery::parse_post(&full.render_post()), Ok(ElementsQuery { select: None, ..full }));
        assert_eq!(ElementsQuery::parse(""), Ok(ElementsQuery::default()));
        assert_eq!(
            (ElementsQuery::default().render(), ElementsQuery::default().render_post()),
            ("".into(), READ.into())
        );
    }

    #[test]
    fn invalid_queries_are_rejected() {
        let refused = |query| ElementsQuery::parse(query).unwrap_err();
        assert_eq!(refused("slect=1"), QueryError::Unknown { name: "slect".into(), known: ELEMENTS_PARAMETERS });
        assert_eq!(refused("read"), QueryError::Unknown { name: READ.into(), known: ELEMENTS_PARAMETERS });
        assert_eq!(refused("select=1&select=1"), QueryError::Repeated { name: SELECT, known: ELEMENTS_PARAMETERS });
        for (bad, wrong) in [
            ("format=npz", FORMAT),
            ("format=", FORMAT),
            ("dialect=v4", DIALECT),
            ("min=x", MIN),
            ("min=nan", MIN),
            ("max=inf", MAX),
            ("max=1e999", MAX),
            ("min=1&max=1", MAX),
            ("header=", HEADER),
            ("header=1", HEADER),
            ("header=TRUE", HEADER),
            ("select=%ff", SELECT),
        ] {
            assert!(matches!(refused(bad), QueryError::Invalid { name, .. } if name == wrong), "{bad}");
        }
        let refused = |query| ElementsQuery::parse_post(query).unwrap_err();
        assert_eq!(refused("format=raw"), QueryError::Missing { names: POSTS, known: ELEMENTS_POST_PARAMETERS });
        assert_eq!(
            refused("read&select=1"),
            QueryError::Unknown { name: SELECT.into(), known: ELEMENTS_POST_PARAMETERS }
        );
        assert!(matches!(refused("read=1"), QueryError::Invalid { name: READ, .. }));
    }

    #[test]
    fn write_queries_round_trip() {
        let write = WriteQuery { select: Some("0:2, 1".into()), dialect: Some(Dialect::V2) };
        assert_eq!(write.render(), "select=0%3A2%2C%201&dialect=v2");
        for query in [write, WriteQuery::default()] {
            assert_eq!(WriteQuery::parse(&query.render()), Ok(query));
        }
        let unknown = QueryError::Unknown { name: FORMAT.into(), known: WRITE_PARAMETERS };
        assert_eq!(WriteQuery::parse("format=raw"), Err(unknown));
        let append = AppendQuery { dimension: -1, dialect: Some(Dialect::Draft) };
        assert_eq!(append.render(), "append=-1&dialect=draft");
        assert_eq!(AppendQuery::parse(&append.render()), Ok(append));
        for bad in ["append", "append=", "append=time", "append=+1", "append=99999999999999999999"] {
            assert!(matches!(AppendQuery::parse(bad), Err(QueryError::Invalid { name: APPEND, .. })), "{bad}");
        }
        assert!(matches!(AppendQuery::parse(""), Err(QueryError::Missing { .. })));
        assert!(matches!(
            AppendQuery::parse("append=0&read"),
            Err(QueryError::Unknown { known: APPEND_PARAMETERS, .. })
        ));
    }
}
