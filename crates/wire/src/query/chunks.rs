//! The query of the chunks that a selection touches.

use zarrd_meta::Dialect;
use zarrd_store::Cursor;

use super::{
    AXIS, BINS, CURSOR, DEFAULT_LIMIT, DIALECT, DimensionParameter, LIMIT, QueryError, SELECT, UnknownParameters,
    dialect_of, elements::dimension_parameters, flag, parse_limit, values,
};
use crate::routes::encode;

/// Asks for the chunks that a selection touches.
pub const CHUNKS: &str = "chunks";
/// The most bins along a dimension.
pub const MAX_CHUNK_BINS: u64 = 512;

/// The parameters of the chunks that a selection touches.
pub const CHUNKS_PARAMETERS: &[&str] = &[CHUNKS, SELECT, "isel.DIM", "sel.DIM", DIALECT, LIMIT, CURSOR, BINS, AXIS];

/// The query of the chunks that a selection touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunksQuery {
    /// The text of the selection.
    pub select: Option<String>,
    /// The selections along dimensions, in the order of the query; they exclude `select`.
    pub dimensions: Vec<DimensionParameter>,
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
    /// The form of the answer.
    pub form: ChunksForm,
}

/// The form of an answer about chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunksForm {
    /// A page of chunks.
    Page {
        /// The number of chunks at most.
        limit: usize,
        /// The start of the page.
        cursor: Option<Cursor>,
    },
    /// Numbers of stored chunks.
    Bins {
        /// The number of bins along the first and the last of the dimensions, at most.
        sizes: [u64; 2],
        /// One or two dimensions, by name or number; by default the last two.
        axis: Option<Vec<String>>,
    },
}

impl Default for ChunksQuery {
    fn default() -> Self {
        let form = ChunksForm::Page { limit: DEFAULT_LIMIT, cursor: None };
        Self { select: None, dimensions: Vec::new(), dialect: None, form }
    }
}

impl ChunksQuery {
    /// Parses the query.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let (dimensions, others) = dimension_parameters(query)?;
        let wanted = [CHUNKS, SELECT, DIALECT, LIMIT, CURSOR, BINS, AXIS];
        let [chunks, select, dialect, limit, cursor, bins, axis] =
            values(others, CHUNKS_PARAMETERS, wanted, UnknownParameters::Reject)?;
        if !flag(CHUNKS, chunks)? {
            return Err(QueryError::Missing { names: &[CHUNKS], known: CHUNKS_PARAMETERS });
        }
        let invalid = |name, expected| Err(QueryError::Invalid { name, expected });
        let form = match bins {
            Some(_) if limit.is_some() || cursor.is_some() => {
                return invalid(BINS, "has no pages: omit \"limit\" and \"cursor\"");
            }
            Some(bins) => ChunksForm::Bins { sizes: sizes(&bins)?, axis: axis.as_deref().map(axes).transpose()? },
            None if axis.is_some() => return invalid(AXIS, "is supported with \"bins\" only"),
            None => {
                let limit = limit.as_deref().map(parse_limit).transpose()?.unwrap_or(DEFAULT_LIMIT);
                ChunksForm::Page { limit, cursor: cursor.map(Cursor::from_text) }
            }
        };
        Ok(Self { select, dimensions, dialect: dialect_of(dialect)?, form })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let mut all = vec![CHUNKS.to_owned()];
        all.extend(self.select.as_ref().map(|select| format!("{SELECT}={}", encode(select))));
        all.extend(self.dimensions.iter().map(DimensionParameter::rendered));
        all.extend(self.dialect.map(|dialect| format!("{DIALECT}={dialect}")));
        match &self.form {
            ChunksForm::Page { limit, cursor } => {
                all.push(format!("{LIMIT}={limit}"));
                all.extend(cursor.as_ref().map(|cursor| format!("{CURSOR}={}", encode(cursor.as_str()))));
            }
            ChunksForm::Bins { sizes: [first, last], axis } => {
                all.push(format!("{BINS}={first},{last}"));
                all.extend(axis.as_ref().map(|axis| format!("{AXIS}={}", encode(&axis.join(",")))));
            }
        }
        all.join("&")
    }
}

fn sizes(text: &str) -> Result<[u64; 2], QueryError> {
    let (first, last) = text.split_once(',').unwrap_or((text, text));
    let size = |text: &str| {
        let size = text.parse().ok().filter(|size| (1..=MAX_CHUNK_BINS).contains(size) && !text.starts_with('+'));
        size.ok_or(QueryError::Invalid {
            name: BINS,
            expected: "is one or two numbers from 1 to 512, as in \"64,128\"",
        })
    };
    Ok([size(first)?, size(last)?])
}

fn axes(text: &str) -> Result<Vec<String>, QueryError> {
    let axes: Vec<_> = text.split(',').take(3).map(str::to_owned).collect();
    if axes.len() > 2 {
        return Err(QueryError::Invalid { name: AXIS, expected: "names one or two dimensions" });
    }
    Ok(axes)
}

#[cfg(test)]
mod tests {
    use super::{super::SelectBy, *};

    #[test]
    fn chunk_queries_round_trip() {
        let page = ChunksForm::Page { limit: 7, cursor: Some(Cursor::from_text("9.x&")) };
        let bins = ChunksForm::Bins { sizes: [1, 512], axis: Some(vec!["x y".into(), "0".into()]) };
        for form in [page, bins] {
            let by_position = ChunksQuery {
                select: Some("0:2, 1".into()),
                dialect: Some(Dialect::V2),
                form,
                ..ChunksQuery::default()
            };
            let dimensions = [("x.y +", SelectBy::Label, "1..2"), ("0", SelectBy::Index, "::2")];
            let dimensions = dimensions.map(|(dimension, by, text)| DimensionParameter {
                dimension: dimension.into(),
                by,
                text: text.into(),
            });
            let by_name = ChunksQuery { select: None, dimensions: dimensions.to_vec(), ..by_position.clone() };
            for query in [by_position, by_name] {
                assert_eq!(ChunksQuery::parse(&query.render()), Ok(query));
            }
        }
        assert_eq!(ChunksQuery::parse("chunks"), Ok(ChunksQuery::default()));
        let both = ChunksForm::Bins { sizes: [64; 2], axis: None };
        assert_eq!(ChunksQuery::parse("chunks&bins=64").unwrap().form, both);
    }

    #[test]
    fn invalid_chunk_queries_are_rejected() {
        for (bad, wrong) in [
            ("chunks=1", CHUNKS),
            ("chunks&bins=0", BINS),
            ("chunks&bins=513", BINS),
            ("chunks&bins=1,2,3", BINS),
            ("chunks&bins=+1", BINS),
            ("chunks&bins=8&limit=1", BINS),
            ("chunks&bins=8&axis=a,b,c", AXIS),
            ("chunks&axis=a", AXIS),
            ("chunks&limit=0", LIMIT),
        ] {
            let refused = ChunksQuery::parse(bad);
            assert!(matches!(refused, Err(QueryError::Invalid { name, .. }) if name == wrong), "{bad}: {refused:?}");
        }
        assert!(matches!(ChunksQuery::parse("limit=1"), Err(QueryError::Missing { .. })));
        assert!(matches!(ChunksQuery::parse("chunks&format=json"), Err(QueryError::Unknown { .. })));
    }
}
