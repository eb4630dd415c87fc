//! The queries of elements.

use std::fmt;

use zarrd_meta::{Dialect, limits::MAX_RANK};

use super::{
    APPEND, ComputeQuery, PictureQuery, QueryError, UnknownParameters, dialect_of, flag, name_of, parameters, text,
    values,
};
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
/// True if CSV has a header line with the columns' names: `true` or `false`.
pub const HEADER: &str = "header";
/// The prefix of parameters that select indices of a dimension: `isel.time`.
pub const ISEL: &str = "isel";
/// The prefix of parameters that select labels of a dimension: `sel.time`.
pub const SEL: &str = "sel";
/// The conventions by which elements are decoded: `none` or `cf`.
pub const DECODE: &str = "decode";
/// The dimension whose labels are returned instead of the elements.
pub const LABELS: &str = "labels";
/// The level of an image, whose group is at the path.
pub const LEVEL: &str = "level";
/// The channels of an image that a picture shows, each in its colour: their indices, or `active`.
pub const CHANNELS: &str = "channels";
/// The most channels that a picture shows.
const MAX_CHANNELS: usize = 128;
/// Reads the selection in the body of a `POST`.
pub const READ: &str = "read";

/// The parameters of reading elements.
pub const ELEMENTS_PARAMETERS: &[&str] = &[
    SELECT,
    "isel.DIM",
    "sel.DIM",
    DECODE,
    LABELS,
    LEVEL,
    CHANNELS,
    "reduce",
    "axis",
    "keepdims",
    "ddof",
    "coarsen.DIM",
    "edge",
    "astype",
    "stats",
    "quantiles",
    "bins",
    "range",
    FORMAT,
    DIALECT,
    HEADER,
    "min",
    "max",
    "cmap",
    "scale",
    "linthresh",
    "limits",
    "under",
    "over",
    "nan",
    "rgb",
    "thresholds",
];
/// The parameters of reading elements by `POST`; the body has the selection.
pub const ELEMENTS_POST_PARAMETERS: &[&str] = &[
    READ,
    "isel.DIM",
    "sel.DIM",
    DECODE,
    LABELS,
    LEVEL,
    CHANNELS,
    "reduce",
    "axis",
    "keepdims",
    "ddof",
    "coarsen.DIM",
    "edge",
    "astype",
    "stats",
    "quantiles",
    "bins",
    "range",
    FORMAT,
    DIALECT,
    HEADER,
    "min",
    "max",
    "cmap",
    "scale",
    "linthresh",
    "limits",
    "under",
    "over",
    "nan",
    "rgb",
    "thresholds",
];
/// The parameters of which a `POST` to an array needs one.
const POSTS: &[&str] = &[READ, APPEND];

/// The query of reading elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ElementsQuery {
    /// The text of the selection. A `POST` has it in its body.
    pub select: Option<String>,
    /// The selections along dimensions, in the order of the query.
    pub dimensions: Vec<DimensionParameter>,
    /// The conventions by which elements are decoded. Without any, they are not; what depends on them is an error.
    pub decode: Option<Decode>,
    /// The parameters that compute with the elements.
    pub compute: ComputeQuery,
    /// The dimension whose labels are returned instead of the elements.
    pub labels: Option<String>,
    /// The format; takes precedence over `Accept`.
    pub format: Option<Format>,
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
    /// The parameters of a picture.
    pub picture: PictureQuery,
    /// True if CSV has a header line; by default it has one if the columns have names.
    pub header: Option<CsvHeader>,
    /// The level of the image at the path, counted from the finest.
    pub level: Option<u16>,
    /// The channels that a picture shows.
    pub channels: Option<ShownChannels>,
}

/// The channels of an image that a picture shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownChannels {
    /// Those that the image says are shown at first; all if it says nothing.
    Active,
    /// Those with these indices, at least one.
    Listed(Vec<u64>),
}

/// A selection along one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimensionParameter {
    /// The name or number of the dimension, or the name of a coordinate over it.
    pub dimension: String,
    /// The kind of the selection.
    pub by: SelectBy,
    /// Its text.
    pub text: String,
}

/// The kind of a selection along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectBy {
    /// `isel.DIM`: an item of a selection.
    Index,
    /// `sel.DIM`: labels of the coordinate.
    Label,
}

/// The conventions by which elements are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decode {
    /// Elements are returned as they are stored.
    #[default]
    None,
    /// The CF conventions, as xarray reads them.
    Cf,
}

impl ElementsQuery {
    /// Parses the query of a `GET`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let (dimensions, others) = dimension_parameters(query)?;
        let (compute, others) = ComputeQuery::take(others, ELEMENTS_PARAMETERS)?;
        let (picture, others) = PictureQuery::take(others, ELEMENTS_PARAMETERS)?;
        let wanted = [SELECT, FORMAT, DIALECT, HEADER, DECODE, LABELS, LEVEL, CHANNELS];
        let [select, rest @ ..] = values(others, ELEMENTS_PARAMETERS, wanted, UnknownParameters::Reject)?;
        Self { select, dimensions, compute, picture, ..Self::default() }.with(rest)
    }

    /// Parses the query of a `POST`, which has to say that it reads.
    pub fn parse_post(query: &str) -> Result<Self, QueryError> {
        let (dimensions, others) = dimension_parameters(query)?;
        let (compute, others) = ComputeQuery::take(others, ELEMENTS_POST_PARAMETERS)?;
        let (picture, others) = PictureQuery::take(others, ELEMENTS_POST_PARAMETERS)?;
        let wanted = [READ, FORMAT, DIALECT, HEADER, DECODE, LABELS, LEVEL, CHANNELS];
        let [read, rest @ ..] = values(others, ELEMENTS_POST_PARAMETERS, wanted, UnknownParameters::Reject)?;
        if !flag(READ, read)? {
            return Err(QueryError::Missing { names: POSTS, known: ELEMENTS_POST_PARAMETERS });
        }
        Self { dimensions, compute, picture, ..Self::default() }.with(rest)
    }

    /// The text of the query of a `GET`, without `?`; empty if everything is the default.
    pub fn render(&self) -> String {
        self.rendered(self.select.as_ref().map(|select| format!("{SELECT}={}", encode(select))))
    }

    /// The text of the query of a `POST`, without `?`.
    pub fn render_post(&self) -> String {
        self.rendered(Some(READ.to_owned()))
    }

    fn with(
        self,
        [format, dialect, header, decode, labels, level, channels]: [Option<String>; 7],
    ) -> Result<Self, QueryError> {
        let format = format.map(|text| text.parse()).transpose();
        Ok(Self {
            format: format
                .map_err(|_| QueryError::Invalid { name: FORMAT, expected: "is json, raw, npy, csv, png or xarray" })?,
            dialect: dialect_of(dialect)?,
            header: header.map(|text| csv_header(&text)).transpose()?,
            decode: decode.map(|text| decode_of(&text)).transpose()?,
            labels,
            level: level.map(|text| level_of(&text)).transpose()?,
            channels: channels.map(|text| ShownChannels::parse(&text)).transpose()?,
            ..self
        })
    }

    fn rendered(&self, first: Option<String>) -> String {
        let format = self.format.map(|format| format!("{FORMAT}={format}"));
        let dialect = self.dialect.map(|dialect| format!("{DIALECT}={dialect}"));
        let header = self.header.map(|header| format!("{HEADER}={}", header.name()));
        let decode = self.decode.map(|decode| format!("{DECODE}={}", decode.name()));
        let labels = self.labels.as_ref().map(|labels| format!("{LABELS}={}", encode(labels)));
        let dimensions = self.dimensions.iter().map(|parameter| Some(parameter.rendered()));
        let picture = self.picture.rendered().map(Some);
        let level = self.level.map(|level| format!("{LEVEL}={level}"));
        let channels = self.channels.as_ref().map(|channels| format!("{CHANNELS}={channels}"));
        let others = [format, dialect, header, decode, labels, level, channels];
        let compute = self.compute.rendered().into_iter().map(Some);
        [first]
            .into_iter()
            .chain(dimensions)
            .chain(compute)
            .chain(others)
            .chain(picture)
            .flatten()
            .collect::<Vec<_>>()
            .join("&")
    }
}

impl ShownChannels {
    fn parse(text: &str) -> Result<Self, QueryError> {
        let invalid =
            QueryError::Invalid { name: CHANNELS, expected: "is active, or lists up to 128 channels by index" };
        if text == "active" {
            return Ok(Self::Active);
        }
        let index = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()));
        let indices: Option<Vec<u64>> = text.split(',').take(MAX_CHANNELS.saturating_add(1)).map(index).collect();
        match indices {
            Some(indices) if indices.len() <= MAX_CHANNELS => Ok(Self::Listed(indices)),
            _ => Err(invalid),
        }
    }
}

impl fmt::Display for ShownChannels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Active => f.write_str("active"),
            Self::Listed(indices) => {
                let indices: Vec<String> = indices.iter().map(u64::to_string).collect();
                f.write_str(&indices.join(","))
            }
        }
    }
}

impl Decode {
    /// The value of the parameter.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cf => "cf",
        }
    }
}

impl DimensionParameter {
    /// The parameter, rendered.
    pub(super) fn rendered(&self) -> String {
        format!("{}.{}={}", self.by.name(), encode(&self.dimension), encode(&self.text))
    }
}

impl SelectBy {
    /// The name of parameters, before the dot.
    pub fn name(self) -> &'static str {
        match self {
            Self::Index => ISEL,
            Self::Label => SEL,
        }
    }
}

/// Takes the parameters `isel.DIM` and `sel.DIM` out of a query, and returns the others as they were encoded.
pub(super) fn dimension_parameters(query: &str) -> Result<(Vec<DimensionParameter>, Vec<&str>), QueryError> {
    let (mut dimensions, mut rest) = (Vec::new(), Vec::new());
    for parameter in parameters(query) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let name = name_of(name);
        let found = name.split_once('.').and_then(|(kind, dimension)| {
            let by = [SelectBy::Index, SelectBy::Label].into_iter().find(|by| by.name() == kind)?;
            Some((by, dimension))
        });
        let Some((by, dimension)) = found else {
            rest.push(parameter);
            continue;
        };
        let invalid = |expected| QueryError::Invalid { name: by.name(), expected };
        if dimensions.len() >= MAX_RANK {
            return Err(invalid("is given for at most 64 dimensions"));
        }
        let text = text(value).ok_or_else(|| invalid("is not percent-encoded UTF-8"))?.into_owned();
        dimensions.push(DimensionParameter { dimension: dimension.to_owned(), by, text });
    }
    Ok((dimensions, rest))
}

/// The conventions of the value of [`DECODE`].
pub(super) fn decode_of(text: &str) -> Result<Decode, QueryError> {
    match text {
        "none" => Ok(Decode::None),
        "cf" => Ok(Decode::Cf),
        _ => Err(QueryError::Invalid { name: DECODE, expected: "is none or cf" }),
    }
}

fn level_of(text: &str) -> Result<u16, QueryError> {
    let level = text.parse().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()));
    level.ok_or(QueryError::Invalid { name: LEVEL, expected: "is the number of a level of the image" })
}

fn csv_header(text: &str) -> Result<CsvHeader, QueryError> {
    match text {
        "true" => Ok(CsvHeader::Present),
        "false" => Ok(CsvHeader::Absent),
        "labels" => Ok(CsvHeader::Labels),
        _ => Err(QueryError::Invalid { name: HEADER, expected: "is true, false or labels" }),
    }
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
            picture: PictureQuery { min: Some(-0.5), max: Some(1e300), ..PictureQuery::default() },
            header: Some(CsvHeader::Present),
            dimensions: vec![
                DimensionParameter { dimension: "my.time ~+".into(), by: SelectBy::Label, text: "2020-01..".into() },
                DimensionParameter { dimension: "0".into(), by: SelectBy::Index, text: "::2".into() },
            ],
            decode: Some(Decode::Cf),
            compute: ComputeQuery { reduce: vec!["mean".into(), "max".into()], ..ComputeQuery::default() },
            labels: Some("x&y".into()),
            level: Some(2),
            channels: Some(ShownChannels::Listed(vec![3, 0])),
        };
        assert!(full.render().starts_with(
            "select=0%3A10%2C%3A%3A-2%2C%20%5B1%5D&sel.my.time%20~%2B=2020-01..&isel.0=%3A%3A2&reduce=mean%2Cmax&format=png"
        ));
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
}
