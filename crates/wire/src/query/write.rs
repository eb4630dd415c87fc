//! The queries of writing elements: to a region, along a dimension, to a dataset, and of a new array.

use zarrd_meta::{
    Dialect,
    data_type::Casting,
    limits::{MAX_EXTENT, MAX_RANK},
};
use zarrd_operations::IfExists;

use super::{
    APPEND, DECODE, DIALECT, Decode, DimensionParameter, OVERWRITE, QueryError, SELECT, UnknownParameters, dialect_of,
    elements::{decode_of, dimension_parameters},
    flag, parse, values,
};
use crate::routes::encode;

/// The conversions of types: `safe`, `same_kind` or `unsafe`.
pub const CASTING: &str = "casting";
/// Writes single elements, whose coordinates the body begins with.
pub const POINTS: &str = "points";
/// Creates the array.
pub const CREATE: &str = "create";
/// The shape of a new array.
pub const SHAPE: &str = "shape";
/// The data type of a new array.
pub const DTYPE: &str = "dtype";
/// The names of the dimensions of a new array.
pub const DIMS: &str = "dims";

/// The parameters of writing elements.
pub const WRITE_PARAMETERS: &[&str] = &[SELECT, "isel.DIM", "sel.DIM", POINTS, DECODE, CASTING, CREATE, DIALECT];
/// The parameters of creating an array from elements.
pub const CREATE_PARAMETERS: &[&str] = &[CREATE, SHAPE, DTYPE, DIMS, OVERWRITE, DIALECT];
/// The parameters of appending.
pub const APPEND_PARAMETERS: &[&str] = &[APPEND, CASTING, DECODE, DIALECT];

/// The query of writing elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteQuery {
    /// The text of the selection; `None` for all elements.
    pub select: Option<String>,
    /// The selections along dimensions, in the order of the query.
    pub dimensions: Vec<DimensionParameter>,
    /// True if the body begins with the coordinates of single elements, in place of a selection.
    pub points: bool,
    /// The conventions by which the elements are encoded. Without any they are stored as they are, but for times.
    pub decode: Option<Decode>,
    /// The conversions of the body's type.
    pub casting: Casting,
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
}

/// The query of appending to an array, or to the arrays of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppendQuery {
    /// The dimension that grows: its name, or for an array its number, negative from the end.
    pub dimension: String,
    /// The conventions by which the elements are encoded. Without any they are stored as they are, but for times.
    pub decode: Option<Decode>,
    /// The conversions of the body's types.
    pub casting: Casting,
    /// The dialect of the node, if several have one at the path.
    pub dialect: Option<Dialect>,
}

/// The query of creating an array from its elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateQuery {
    /// The shape; `None` if the body has it.
    pub shape: Option<Vec<u64>>,
    /// The data type: a name of v3, or a dtype of NumPy; `None` if the body has it.
    pub dtype: Option<String>,
    /// The names of the dimensions.
    pub dims: Option<Vec<String>>,
    /// The treatment of an existing node.
    pub if_exists: IfExists,
    /// The dialect to store it in.
    pub dialect: Option<Dialect>,
}

impl WriteQuery {
    /// Parses the query of a `PUT`.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let (dimensions, others) = dimension_parameters(query)?;
        let wanted = [SELECT, POINTS, DECODE, CASTING, DIALECT];
        let [select, points, decode, casting, dialect] =
            values(others, WRITE_PARAMETERS, wanted, UnknownParameters::Reject)?;
        Ok(Self {
            select,
            dimensions,
            points: flag(POINTS, points)?,
            decode: decode.map(|text| decode_of(&text)).transpose()?,
            casting: casting_of(casting)?,
            dialect: dialect_of(dialect)?,
        })
    }

    /// The query's text, without `?`; empty if everything is the default.
    pub fn render(&self) -> String {
        let select = self.select.as_ref().map(|select| format!("{SELECT}={}", encode(select)));
        let dimensions = self.dimensions.iter().map(|parameter| Some(parameter.rendered()));
        let points = self.points.then(|| POINTS.to_owned());
        let others = rendered(self.decode, self.casting, self.dialect);
        let parts: Vec<_> = [select].into_iter().chain(dimensions).chain([points]).chain(others).flatten().collect();
        parts.join("&")
    }
}

impl AppendQuery {
    /// Parses the query of a `POST` that appends.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let wanted = [APPEND, CASTING, DECODE, DIALECT];
        let [append, casting, decode, dialect] = parse(query, APPEND_PARAMETERS, wanted, UnknownParameters::Reject)?;
        let dimension = append.ok_or(QueryError::Missing { names: &[APPEND], known: APPEND_PARAMETERS })?;
        if dimension.is_empty() {
            return Err(QueryError::Invalid { name: APPEND, expected: "is the name or the number of a dimension" });
        }
        let decode = decode.map(|text| decode_of(&text)).transpose()?;
        Ok(Self { dimension, decode, casting: casting_of(casting)?, dialect: dialect_of(dialect)? })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let append = format!("{APPEND}={}", encode(&self.dimension));
        let others = rendered(self.decode, self.casting, self.dialect);
        let parts: Vec<_> = [append].into_iter().chain(others.into_iter().flatten()).collect();
        parts.join("&")
    }
}

impl CreateQuery {
    /// Parses the query of a `PUT` that creates.
    pub fn parse(query: &str) -> Result<Self, QueryError> {
        let wanted = [CREATE, SHAPE, DTYPE, DIMS, OVERWRITE, DIALECT];
        let [create, shape, dtype, dims, overwrite, dialect] =
            parse(query, CREATE_PARAMETERS, wanted, UnknownParameters::Reject)?;
        if !flag(CREATE, create)? {
            return Err(QueryError::Missing { names: &[CREATE], known: CREATE_PARAMETERS });
        }
        if let (Some(_), None) | (None, Some(_)) = (&shape, &dtype) {
            return Err(QueryError::Missing { names: &[SHAPE, DTYPE], known: CREATE_PARAMETERS });
        }
        Ok(Self {
            shape: shape.as_deref().map(shape_of).transpose()?,
            dtype,
            dims: dims.as_deref().map(dims_of).transpose()?,
            if_exists: if flag(OVERWRITE, overwrite)? { IfExists::Replace } else { IfExists::Fail },
            dialect: dialect_of(dialect)?,
        })
    }

    /// The query's text, without `?`.
    pub fn render(&self) -> String {
        let join = |values: &[u64]| values.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let parts = [
            Some(CREATE.to_owned()),
            self.shape.as_ref().map(|shape| format!("{SHAPE}={}", join(shape))),
            self.dtype.as_ref().map(|dtype| format!("{DTYPE}={}", encode(dtype))),
            self.dims.as_ref().map(|dims| format!("{DIMS}={}", encode(&dims.join(",")))),
            (self.if_exists == IfExists::Replace).then(|| OVERWRITE.to_owned()),
            self.dialect.map(|dialect| format!("{DIALECT}={dialect}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("&")
    }
}

/// The parameters that all writes have in common, rendered.
fn rendered(decode: Option<Decode>, casting: Casting, dialect: Option<Dialect>) -> [Option<String>; 3] {
    [
        decode.map(|decode| format!("{DECODE}={}", decode.name())),
        (casting != Casting::default()).then(|| format!("{CASTING}={casting}")),
        dialect.map(|dialect| format!("{DIALECT}={dialect}")),
    ]
}

fn casting_of(text: Option<String>) -> Result<Casting, QueryError> {
    let casting = text.map(|text| text.parse()).transpose();
    let casting = casting.map_err(|_| QueryError::Invalid { name: CASTING, expected: "is safe, same_kind or unsafe" });
    Ok(casting?.unwrap_or_default())
}

fn shape_of(text: &str) -> Result<Vec<u64>, QueryError> {
    let invalid =
        || QueryError::Invalid { name: SHAPE, expected: "has at most 64 extents, separated by commas, as in 4,3" };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let extent = |text: &str| {
        let extent = text.parse().ok().filter(|extent| *extent <= MAX_EXTENT);
        extent.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit())).ok_or_else(invalid)
    };
    let mut extents = Vec::new();
    for text in text.split(',') {
        if extents.len() == MAX_RANK {
            return Err(invalid());
        }
        extents.push(extent(text)?);
    }
    Ok(extents)
}

fn dims_of(text: &str) -> Result<Vec<String>, QueryError> {
    let names: Vec<String> = text.split(',').take(MAX_RANK + 1).map(str::to_owned).collect();
    match names.len() > MAX_RANK || names.iter().any(String::is_empty) {
        true => Err(QueryError::Invalid { name: DIMS, expected: "has at most 64 names, separated by commas" }),
        false => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FORMAT, SelectBy};
    use super::*;

    #[test]
    fn write_queries_round_trip() {
        let write = WriteQuery {
            select: Some("0:2, 1".into()),
            dimensions: vec![DimensionParameter {
                dimension: "time".into(),
                by: SelectBy::Label,
                text: "2020-01-01".into(),
            }],
            points: false,
            decode: Some(Decode::Cf),
            casting: Casting::Unsafe,
            dialect: Some(Dialect::V2),
        };
        assert_eq!(write.render(), "select=0%3A2%2C%201&sel.time=2020-01-01&decode=cf&casting=unsafe&dialect=v2");
        let points = WriteQuery { points: true, ..WriteQuery::default() };
        assert_eq!(points.render(), "points");
        for query in [write, points, WriteQuery::default()] {
            assert_eq!(WriteQuery::parse(&query.render()), Ok(query));
        }
        let unknown = QueryError::Unknown { name: FORMAT.into(), known: WRITE_PARAMETERS };
        assert_eq!(WriteQuery::parse("format=raw"), Err(unknown));
        assert!(matches!(WriteQuery::parse("casting=no"), Err(QueryError::Invalid { name: CASTING, .. })));
        assert!(matches!(WriteQuery::parse("points=1"), Err(QueryError::Invalid { name: POINTS, .. })));
        assert!(matches!(WriteQuery::parse("decode=x"), Err(QueryError::Invalid { name: DECODE, .. })));
    }

    #[test]
    fn append_queries_round_trip() {
        for (query, text) in [
            (
                AppendQuery { dimension: "-1".into(), dialect: Some(Dialect::Draft), ..AppendQuery::default() },
                "append=-1&dialect=draft",
            ),
            (
                AppendQuery {
                    dimension: "a b".into(),
                    decode: Some(Decode::Cf),
                    casting: Casting::Safe,
                    dialect: None,
                },
                "append=a%20b&decode=cf&casting=safe",
            ),
        ] {
            assert_eq!(query.render(), text);
            assert_eq!(AppendQuery::parse(text), Ok(query));
        }
        for bad in ["append", "append="] {
            assert!(matches!(AppendQuery::parse(bad), Err(QueryError::Invalid { name: APPEND, .. })), "{bad}");
        }
        assert!(matches!(AppendQuery::parse(""), Err(QueryError::Missing { .. })));
        assert!(matches!(
            AppendQuery::parse("append=0&read"),
            Err(QueryError::Unknown { known: APPEND_PARAMETERS, .. })
        ));
    }

    #[test]
    fn create_queries_round_trip() {
        let full = CreateQuery {
            shape: Some(vec![4, 3]),
            dtype: Some("<f4".into()),
            dims: Some(vec!["time".into(), "x y".into()]),
            if_exists: IfExists::Replace,
            dialect: Some(Dialect::V3),
        };
        assert_eq!(full.render(), "create&shape=4,3&dtype=%3Cf4&dims=time%2Cx%20y&overwrite&dialect=v3");
        let scalar = CreateQuery { shape: Some(vec![]), dtype: Some("bool".into()), ..CreateQuery::default() };
        for query in [full, scalar, CreateQuery::default()] {
            assert_eq!(CreateQuery::parse(&query.render()), Ok(query));
        }
        for (bad, wrong) in [
            ("create=1", CREATE),
            ("create&shape=4,&dtype=bool", SHAPE),
            ("create&shape=+4&dtype=bool", SHAPE),
            ("create&shape=9223372036854775808&dtype=bool", SHAPE),
            ("create&dims=", DIMS),
            ("create&dims=a,,b", DIMS),
        ] {
            let error = CreateQuery::parse(bad).unwrap_err();
            assert!(matches!(error, QueryError::Invalid { name, .. } if name == wrong), "{bad}: {error}");
        }
        let many = format!("create&dtype=bool&shape={}", vec!["1"; 65].join(","));
        assert!(matches!(CreateQuery::parse(&many), Err(QueryError::Invalid { name: SHAPE, .. })));
        for missing in ["", "shape=1&dtype=bool", "create&shape=1", "create&dtype=bool"] {
            assert!(matches!(CreateQuery::parse(missing), Err(QueryError::Missing { .. })), "{missing}");
        }
    }
}
