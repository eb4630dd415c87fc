//! The parameters that compute with the selected elements.

use zarrd_meta::limits::MAX_RANK;

use super::{QueryError, flag, name_of, text};
use crate::routes::encode;

/// Functions that reduce the elements: `mean`, or several as `min,max`.
pub const REDUCE: &str = "reduce";
/// The dimensions that are reduced, by name or number: `time,2`.
pub const AXIS: &str = "axis";
/// Gives reduced dimensions an extent of 1.
pub const KEEPDIMS: &str = "keepdims";
/// The elements by which variances have fewer degrees of freedom.
pub const DDOF: &str = "ddof";
/// The prefix of parameters that divide a dimension into windows: `coarsen.x=4`.
pub const COARSEN: &str = "coarsen";
/// The treatment of a last window that is not full: `partial`, `exact` or `trim`.
pub const EDGE: &str = "edge";
/// The number type of the results.
pub const ASTYPE: &str = "astype";
/// Returns statistics of the elements.
pub const STATS: &str = "stats";
/// The quantiles among the statistics: `0.02,0.5,0.98`.
pub const QUANTILES: &str = "quantiles";
/// The number of bins of the histogram among the statistics.
pub const BINS: &str = "bins";
/// The range of the histogram: `0,100`.
pub const RANGE: &str = "range";

/// The parameters of computing, as they are listed.
pub const COMPUTE_PARAMETERS: [&str; 11] =
    [REDUCE, AXIS, KEEPDIMS, DDOF, "coarsen.DIM", EDGE, ASTYPE, STATS, QUANTILES, BINS, RANGE];

/// The most functions of a request.
pub const MAX_FUNCTIONS: usize = 16;
/// The most quantiles of a request.
pub const MAX_QUANTILES: usize = 64;
/// The most bins of a histogram.
pub const MAX_BINS: u64 = 4096;

/// The parameters that compute with the selected elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComputeQuery {
    /// The names of the functions.
    pub reduce: Vec<String>,
    /// The names or numbers of the dimensions that are reduced; by default all, or none if there are windows.
    pub axis: Option<Vec<String>>,
    /// The treatment of reduced dimensions.
    pub keepdims: Keepdims,
    /// The elements by which variances have fewer degrees of freedom.
    pub ddof: u64,
    /// The sizes of windows of dimensions.
    pub coarsen: Vec<(String, u64)>,
    /// The treatment of a last window that is not full.
    pub edge: Edge,
    /// The number type of the results, by its name.
    pub astype: Option<String>,
    /// The statistics.
    pub stats: Option<StatsQuery>,
}

/// The requested statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsQuery {
    /// The quantiles, from 0 to 1.
    pub quantiles: Vec<f64>,
    /// The number of bins of the histogram; 0 for none.
    pub bins: u64,
    /// The range of the histogram; by default from the least to the greatest element.
    pub range: Option<(f64, f64)>,
}

/// The treatment of reduced dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keepdims {
    /// The result does not have them.
    #[default]
    Drop,
    /// They have an extent of 1.
    Keep,
}

/// The treatment of a last window that is not full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edge {
    /// It is reduced as it is.
    #[default]
    Partial,
    /// It is an error.
    Exact,
    /// It is left out.
    Trim,
}

impl Default for StatsQuery {
    fn default() -> Self {
        Self { quantiles: vec![0.02, 0.25, 0.5, 0.75, 0.98], bins: 10, range: None }
    }
}

impl Edge {
    /// The value of the parameter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Partial => "partial",
            Self::Exact => "exact",
            Self::Trim => "trim",
        }
    }
}

impl ComputeQuery {
    /// True if the elements are reduced.
    pub fn reduces(&self) -> bool {
        !self.reduce.is_empty()
    }

    /// Takes the parameters of computing, and returns the others as they were encoded.
    pub(super) fn take<'q>(
        parameters: Vec<&'q str>,
        known: &'static [&'static str],
    ) -> Result<(Self, Vec<&'q str>), QueryError> {
        let mut taken = Taken::default();
        let mut rest = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            if !taken.take(parameter, known)? {
                rest.push(parameter);
            }
        }
        Ok((taken.parse(known)?, rest))
    }

    /// The parameters, rendered.
    pub(super) fn rendered(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.reduces() {
            all.push(format!("{REDUCE}={}", encode(&self.reduce.join(","))));
        }
        if let Some(axis) = &self.axis {
            all.push(format!("{AXIS}={}", encode(&axis.join(","))));
        }
        if self.keepdims == Keepdims::Keep {
            all.push(format!("{KEEPDIMS}=true"));
        }
        if self.ddof != 0 {
            all.push(format!("{DDOF}={}", self.ddof));
        }
        all.extend(self.coarsen.iter().map(|(name, window)| format!("{COARSEN}.{}={window}", encode(name))));
        if self.edge != Edge::Partial {
            all.push(format!("{EDGE}={}", self.edge.name()));
        }
        all.extend(self.astype.as_ref().map(|astype| format!("{ASTYPE}={}", encode(astype))));
        if let Some(stats) = &self.stats {
            let quantiles: Vec<_> = stats.quantiles.iter().map(f64::to_string).collect();
            all.extend([
                STATS.to_owned(),
                format!("{QUANTILES}={}", quantiles.join(",")),
                format!("{BINS}={}", stats.bins),
            ]);
            all.extend(stats.range.map(|(low, high)| format!("{RANGE}={low},{high}")));
        }
        all
    }
}

/// The parameters as texts.
#[derive(Default)]
struct Taken {
    values: [Option<String>; 10],
    coarsen: Vec<(String, u64)>,
}

/// The parameters without names of dimensions, in the order of [`Taken::values`].
const PLAIN: [&str; 10] = [REDUCE, AXIS, KEEPDIMS, DDOF, EDGE, ASTYPE, STATS, QUANTILES, BINS, RANGE];

impl Taken {
    /// Takes a parameter; false if it is none of these.
    fn take(&mut self, parameter: &str, known: &'static [&'static str]) -> Result<bool, QueryError> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let name = name_of(name);
        let value = |name| {
            let value = text(value);
            value.map(|value| value.into_owned()).ok_or(invalid(name, "is not percent-encoded UTF-8"))
        };
        if let Some((COARSEN, dimension)) = name.split_once('.') {
            if self.coarsen.len() >= MAX_RANK {
                return Err(invalid(COARSEN, "is given for at most 64 dimensions"));
            }
            let window = value(COARSEN)?.parse().ok().filter(|&window: &u64| window > 0);
            let window = window.ok_or(invalid(COARSEN, "is a number of elements, at least 1"))?;
            self.coarsen.push((dimension.to_owned(), window));
            return Ok(true);
        }
        let found = PLAIN.into_iter().zip(&mut self.values).find(|(plain, _)| name == *plain);
        let Some((name, slot)) = found else { return Ok(false) };
        match slot.replace(value(name)?) {
            None => Ok(true),
            Some(_) => Err(QueryError::Repeated { name, known }),
        }
    }

    fn parse(self, known: &'static [&'static str]) -> Result<ComputeQuery, QueryError> {
        let [reduce, axis, keepdims, ddof, edge, astype, stats, quantiles, bins, range] = self.values;
        let reduce = reduce.map_or(Ok(Vec::new()), |text| names(REDUCE, &text, MAX_FUNCTIONS))?;
        let missing = |names| Err(QueryError::Missing { names, known });
        if reduce.is_empty() && (axis.is_some() || keepdims.is_some() || ddof.is_some() || !self.coarsen.is_empty()) {
            return missing(&[REDUCE]);
        }
        if self.coarsen.is_empty() && edge.is_some() {
            return missing(&["coarsen.DIM"]);
        }
        let stats = if flag(STATS, stats)? {
            if !reduce.is_empty() || astype.is_some() {
                return Err(invalid(STATS, "excludes \"reduce\", windows and \"astype\""));
            }
            Some(stats_query(quantiles, bins, range)?)
        } else if quantiles.is_some() || bins.is_some() || range.is_some() {
            return missing(&[STATS]);
        } else {
            None
        };
        let keepdims = match keepdims.as_deref() {
            None | Some("false") => Keepdims::Drop,
            Some("" | "true") => Keepdims::Keep,
            Some(_) => return Err(invalid(KEEPDIMS, "is true or false")),
        };
        Ok(ComputeQuery {
            reduce,
            axis: axis.map(|text| names(AXIS, &text, MAX_RANK)).transpose()?,
            keepdims,
            ddof: ddof.map_or(Ok(0), |text| text.parse().map_err(|_| invalid(DDOF, "is a whole number")))?,
            coarsen: self.coarsen,
            edge: edge.map_or(Ok(Edge::Partial), |text| edge_of(&text))?,
            astype,
            stats,
        })
    }
}

fn invalid(name: &'static str, expected: &'static str) -> QueryError {
    QueryError::Invalid { name, expected }
}

/// A list of names; an empty text is an empty list.
fn names(name: &'static str, text: &str, most: usize) -> Result<Vec<String>, QueryError> {
    let names: Vec<String> = text.split(',').filter(|_| !text.is_empty()).take(most + 1).map(str::to_owned).collect();
    match names.len() <= most {
        true if name == REDUCE && names.is_empty() => Err(invalid(name, "names at least one function")),
        true => Ok(names),
        false => Err(invalid(name, "has too many names: at most 16 functions, or 64 dimensions")),
    }
}

fn edge_of(text: &str) -> Result<Edge, QueryError> {
    let edges = [Edge::Partial, Edge::Exact, Edge::Trim];
    edges.into_iter().find(|edge| edge.name() == text).ok_or(invalid(EDGE, "is partial, exact or trim"))
}

fn stats_query(
    quantiles: Option<String>,
    bins: Option<String>,
    range: Option<String>,
) -> Result<StatsQuery, QueryError> {
    let default = StatsQuery::default();
    let quantiles = match quantiles {
        None => default.quantiles,
        Some(text) => numbers(&text, MAX_QUANTILES)
            .filter(|all| all.iter().all(|quantile| (0.0..=1.0).contains(quantile)))
            .ok_or(invalid(QUANTILES, "is a list of at most 64 numbers from 0 to 1"))?,
    };
    let bins = match bins {
        None => default.bins,
        Some(text) => {
            let bins = text.parse().ok().filter(|&bins: &u64| bins <= MAX_BINS);
            bins.ok_or(invalid(BINS, "is a number from 0 to 4096"))?
        }
    };
    let range = range.map(|text| match numbers(&text, 2).as_deref() {
        Some(&[low, high]) if low <= high => Ok((low, high)),
        _ => Err(invalid(RANGE, "is two finite numbers, such as 0,100")),
    });
    Ok(StatsQuery { quantiles, bins, range: range.transpose()? })
}

/// A list of finite numbers; `None` if it is not one, or has too many.
fn numbers(text: &str, most: usize) -> Option<Vec<f64>> {
    let numbers = text.split(',').filter(|_| !text.is_empty()).take(most + 1);
    let numbers: Vec<f64> = numbers.map(|number| number.parse().ok()).collect::<Option<_>>()?;
    (numbers.len() <= most && numbers.iter().all(|number| number.is_finite())).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{super::parameters, *};

    const KNOWN: &[&str] = &[];

    fn parsed(query: &str) -> Result<(ComputeQuery, Vec<&str>), QueryError> {
        ComputeQuery::take(parameters(query).collect(), KNOWN)
    }

    #[test]
    fn parameters_round_trip() {
        for query in [
            "reduce=mean",
            "reduce=min,max&axis=time%2C2&keepdims&ddof=1&astype=float32",
            "reduce=mode&coarsen.y=2&coarsen.my.x%20~=3&edge=trim",
            "reduce=mean&axis=",
            "stats&quantiles=0.5&bins=0",
            "stats&quantiles=&bins=20&range=-1.5,3",
            "astype=int64",
        ] {
            let full = format!("select=1&{query}&format=npy");
            let (compute, rest) = parsed(&full).unwrap();
            assert_eq!(rest, ["select=1", "format=npy"]);
            let rendered = compute.rendered().join("&");
            assert_eq!(parsed(&rendered).unwrap(), (compute, Vec::new()), "{query}: {rendered}");
        }
        let (stats, _) = parsed("stats").unwrap();
        assert_eq!(stats.stats, Some(StatsQuery::default()));
        assert_eq!(parsed("").unwrap().0, ComputeQuery::default());
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let many = format!("reduce={}", vec!["sum"; MAX_FUNCTIONS + 1].join(","));
        for (query, wrong) in [
            ("reduce=", REDUCE),
            (&many, REDUCE),
            ("reduce=mean&ddof=-1", DDOF),
            ("reduce=mean&coarsen.x=0", COARSEN),
            ("reduce=mean&coarsen.x=9223372036854775808000", COARSEN),
            ("reduce=mean&coarsen.x=2&edge=cut", EDGE),
            ("reduce=mean&keepdims=maybe", KEEPDIMS),
            ("stats&reduce=mean", STATS),
            ("stats&quantiles=2", QUANTILES),
            ("stats&quantiles=nan", QUANTILES),
            ("stats&bins=5000", BINS),
            ("stats&range=3,1", RANGE),
            ("stats&range=1", RANGE),
            ("stats&range=0,inf", RANGE),
        ] {
            let error = parsed(query).unwrap_err();
            assert!(matches!(error, QueryError::Invalid { name, .. } if name == wrong), "{query}: {error}");
        }
        assert!(matches!(parsed("reduce=sum&reduce=sum"), Err(QueryError::Repeated { name: REDUCE, .. })));
        for query in ["axis=0", "keepdims", "ddof=1", "coarsen.x=2"] {
            assert!(matches!(parsed(query), Err(QueryError::Missing { names: &[REDUCE], .. })), "{query}");
        }
        for query in ["bins=3", "quantiles=0.5", "range=0,1"] {
            assert!(matches!(parsed(query), Err(QueryError::Missing { names: &[STATS], .. })), "{query}");
        }
    }
}
