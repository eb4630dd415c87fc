//! The queries of elements.

use meta::Dialect;

use super::{QueryError, Unknown, parse};
use crate::{array::Format, routes::encode};

/// Which elements, as the text of a selection.
pub const SELECT: &str = "select";
/// In which format.
pub const FORMAT: &str = "format";
/// Of the node of which dialect.
pub const DIALECT: &str = "dialect";
/// The value that a PNG shows black, and all below it.
pub const MIN: &str = "min";
/// The value that a PNG shows white, and all above it.
pub const MAX: &str = "max";
/// Says that a `POST` reads.
pub const READ: &str = "read";

/// What the reading of elements knows.
pub const OF_ELEMENTS: &[&str] = &[SELECT, FORMAT, DIALECT, MIN, MAX];
/// What the reading of elements by `POST` knows; its body says which.
pub const OF_ELEMENTS_POST: &[&str] = &[READ, FORMAT, DIALECT, MIN, MAX];

/// The query of the reading of elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElementsQuery {
    /// The text of the selection. A `POST` has it in its body.
    pub select: Option<String>,
    /// In which format, whatever `Accept` says.
    pub format: Option<Format>,
    /// Of the node of which dialect, where the path answers in several.
    pub dialect: Option<Dialect>,
    /// The value that a PNG shows black; finite.
    pub min: Option<f64>,
    /// The value that a PNG shows white; finite, and above `min` where both are given.
    pub max: Option<f64>,
}

impl ElementsQuery {
    /// Parses the query of a `GET`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let [select, format, dialect, min, max] =
            parse(query, OF_ELEMENTS, [SELECT, FORMAT, DIALECT, MIN, MAX], Unknown::Refuse)?;
        Self { select, ..Self::default() }.with([format, dialect, min, max])
    }

    /// Parses the query of a `POST`, which has to say that it reads.
    pub fn parse_post(query: &str) -> Result<Self, QueryError> {
        let [read, format, dialect, min, max] =
            parse(query, OF_ELEMENTS_POST, [READ, FORMAT, DIALECT, MIN, MAX], Unknown::Refuse)?;
        match read.as_deref() {
            Some("") => Self::default().with([format, dialect, min, max]),
            Some(_) => Err(QueryError::Invalid { name: READ, expected: "takes no value" }),
            None => Err(QueryError::Missing { name: READ, known: OF_ELEMENTS_POST }),
        }
    }

    /// The text of the query of a `GET`, without `?`; empty where everything is the default.
    pub fn render(&self) -> String {
        self.rendered(self.select.as_ref().map(|select| format!("{SELECT}={}", encode(select))))
    }

    /// The text of the query of a `POST`, without `?`.
    pub fn render_post(&self) -> String {
        self.rendered(Some(READ.to_owned()))
    }

    fn with(self, [format, dialect, min, max]: [Option<String>; 4]) -> Result<Self, QueryError> {
        let format = format.map(|text| text.parse()).transpose();
        let dialect = dialect.map(|text| text.parse()).transpose();
        let query = Self {
            format: format
                .map_err(|_| QueryError::Invalid { name: FORMAT, expected: "is json, raw, npy, csv or png" })?,
            dialect: dialect.map_err(|_| QueryError::Invalid { name: DIALECT, expected: "is v2, v3 or draft" })?,
            min: min.map(|text| limit(MIN, &text)).transpose()?,
            max: max.map(|text| limit(MAX, &text)).transpose()?,
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
        [first, format, dialect, min, max].into_iter().flatten().collect::<Vec<_>>().join("&")
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
    fn there_and_back() {
        let full = ElementsQuery {
            select: Some("0:10,::-2, [1]".into()),
            format: Some(Format::Png),
            dialect: Some(Dialect::Draft),
            min: Some(-0.5),
            max: Some(1e300),
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
    fn what_is_refused() {
        let refused = |query| ElementsQuery::parse(query).unwrap_err();
        assert_eq!(refused("slect=1"), QueryError::Unknown { name: "slect".into(), known: OF_ELEMENTS });
        assert_eq!(refused("read"), QueryError::Unknown { name: READ.into(), known: OF_ELEMENTS });
        assert_eq!(refused("select=1&select=1"), QueryError::Repeated { name: SELECT, known: OF_ELEMENTS });
        for (bad, wrong) in [
            ("format=npz", FORMAT),
            ("format=", FORMAT),
            ("dialect=v4", DIALECT),
            ("min=x", MIN),
            ("min=nan", MIN),
            ("max=inf", MAX),
            ("max=1e999", MAX),
            ("min=1&max=1", MAX),
            ("select=%ff", SELECT),
        ] {
            assert!(matches!(refused(bad), QueryError::Invalid { name, .. } if name == wrong), "{bad}");
        }
        let refused = |query| ElementsQuery::parse_post(query).unwrap_err();
        assert_eq!(refused("format=raw"), QueryError::Missing { name: READ, known: OF_ELEMENTS_POST });
        assert_eq!(refused("read&select=1"), QueryError::Unknown { name: SELECT.into(), known: OF_ELEMENTS_POST });
        assert!(matches!(refused("read=1"), QueryError::Invalid { name: READ, .. }));
    }
}
