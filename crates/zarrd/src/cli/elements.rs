//! The arguments of `get` and `stats`.

use std::path::PathBuf;

use clap::Args;
use zarrd_client::{Dialect, Format, NodePath};
use zarrd_wire::{
    query::{
        ASTYPE, AXIS, BINS, CMAP, COARSEN, DDOF, DECODE, DIALECT, EDGE, ElementsQuery, HEADER, ISEL, KEEPDIMS, LABELS,
        LIMITS, LINTHRESH, MAX, MIN, NAN, OVER, QUANTILES, QueryError, RANGE, REDUCE, RGB, SCALE, SEL, SELECT, STATS,
        UNDER,
    },
    routes::encode,
};

use super::EndpointArgs;

/// An array, and a selection of its elements.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Path of the array, such as lab/exp1/mice
    #[arg(value_parser = super::node_path)]
    pub(crate) path: NodePath,
    /// The store with the array.
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Dialect of the array, if the path has nodes of several: v2, v3 or draft [default: v3 before v2 before draft]
    #[arg(long)]
    dialect: Option<Dialect>,
    /// Selection by indices, as in NumPy, such as 0:10,::2 [default: all elements]
    #[arg(long, value_name = "ITEMS", allow_hyphen_values = true)]
    select: Option<String>,
    /// Selection of indices along a dimension, by its name or number, such as time=0:10; may be repeated
    #[arg(long, value_name = "DIM=ITEM")]
    isel: Vec<String>,
    /// Selection by labels of a dimension's coordinate, such as time=2020-01 or lat=52.5~; may be repeated
    #[arg(long, value_name = "DIM=LABEL")]
    sel: Vec<String>,
    /// Decoding of elements: none, or cf for the CF conventions
    #[arg(long, value_name = "CONVENTIONS")]
    decode: Option<String>,
}

/// The arguments of `get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The elements.
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Functions that reduce dimensions or windows, such as mean or min,max
    #[arg(long, value_name = "FUNCTIONS")]
    reduce: Option<String>,
    /// Dimensions to reduce, by names or numbers, such as time,2 [default: all, with --coarsen the windows only]
    #[arg(long, value_name = "DIMS", allow_hyphen_values = true)]
    axis: Option<String>,
    /// Keep reduced dimensions, with an extent of 1
    #[arg(long)]
    keepdims: bool,
    /// Number to subtract from the count in std and var [default: 0]
    #[arg(long, value_name = "NUMBER")]
    ddof: Option<u64>,
    /// Length of windows to reduce along a dimension, such as y=8; may be repeated
    #[arg(long, value_name = "DIM=LENGTH")]
    coarsen: Vec<String>,
    /// Treatment of a last window that is not full: partial, exact or trim [default: partial]
    #[arg(long, value_name = "TREATMENT")]
    edge: Option<String>,
    /// Data type to cast to, such as float32
    #[arg(long, value_name = "TYPE")]
    astype: Option<String>,
    /// Return the labels along a dimension instead of the elements
    #[arg(long, value_name = "DIM")]
    labels: Option<String>,
    /// Header line of CSV: true, false or labels
    #[arg(long, value_name = "HEADER")]
    header: Option<String>,
    /// Colour map of a picture: grey, viridis, magma, cividis, RdBu or RdBu_r
    #[arg(long, value_name = "NAME")]
    cmap: Option<String>,
    /// Scale of a picture: linear, log or symlog
    #[arg(long, value_name = "SCALE")]
    scale: Option<String>,
    /// Magnitude up to which the scale symlog is linear
    #[arg(long, value_name = "NUMBER")]
    linthresh: Option<String>,
    /// Limits of a picture, if not given: minmax or robust
    #[arg(long, value_name = "LIMITS")]
    limits: Option<String>,
    /// Value with the first colour of a picture
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    min: Option<String>,
    /// Value with the last colour of a picture
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    max: Option<String>,
    /// Colour of values below the first colour's, as RRGGBB or RRGGBBAA [default: the first colour]
    #[arg(long, value_name = "COLOUR")]
    under: Option<String>,
    /// Colour of values above the last colour's, as RRGGBB or RRGGBBAA [default: the last colour]
    #[arg(long, value_name = "COLOUR")]
    over: Option<String>,
    /// Colour of NaN, as RRGGBB or RRGGBBAA [default: transparent]
    #[arg(long, value_name = "COLOUR")]
    nan: Option<String>,
    /// Show the last dimension of a picture as red, green, blue and alpha
    #[arg(long)]
    rgb: bool,
    /// Format: json, raw, npy, csv, png or xarray [default: by the extension of the file, else json]
    #[arg(long, short, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// File to write, such as mean.npy; it appears once it is complete [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The arguments of `stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// The elements.
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Quantiles from 0 to 1, such as 0.05,0.5 [default: 0.02,0.25,0.5,0.75,0.98]
    #[arg(long, value_name = "NUMBERS")]
    quantiles: Option<String>,
    /// Number of bins of the histogram; 0 for none [default: 10]
    #[arg(long, value_name = "NUMBER")]
    bins: Option<u64>,
    /// Range of the histogram, such as 0,100 [default: from the least to the greatest element]
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    range: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

impl GetArgs {
    /// The query of the elements.
    pub(crate) fn query(&self) -> Result<ElementsQuery, QueryError> {
        let mut parameters = self.selection.parameters();
        let plain = [
            (REDUCE, &self.reduce),
            (AXIS, &self.axis),
            (EDGE, &self.edge),
            (ASTYPE, &self.astype),
            (LABELS, &self.labels),
            (HEADER, &self.header),
            (CMAP, &self.cmap),
            (SCALE, &self.scale),
            (LINTHRESH, &self.linthresh),
            (LIMITS, &self.limits),
            (MIN, &self.min),
            (MAX, &self.max),
            (UNDER, &self.under),
            (OVER, &self.over),
            (NAN, &self.nan),
        ];
        parameters.extend(plain.into_iter().filter_map(|(name, value)| Some(parameter(name, value.as_ref()?))));
        let flags = [(KEEPDIMS, self.keepdims), (RGB, self.rgb)];
        parameters.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned()));
        parameters.extend(self.ddof.map(|ddof| format!("{DDOF}={ddof}")));
        parameters.extend(self.coarsen.iter().map(|text| along(COARSEN, text)));
        ElementsQuery::parse(&parameters.join("&"))
    }
}

impl StatsArgs {
    /// The query of the statistics.
    pub(crate) fn query(&self) -> Result<ElementsQuery, QueryError> {
        let mut parameters = self.selection.parameters();
        parameters.push(STATS.to_owned());
        parameters.extend(self.quantiles.as_ref().map(|text| parameter(QUANTILES, text)));
        parameters.extend(self.bins.map(|bins| format!("{BINS}={bins}")));
        parameters.extend(self.range.as_ref().map(|text| parameter(RANGE, text)));
        ElementsQuery::parse(&parameters.join("&"))
    }
}

impl SelectionArgs {
    fn parameters(&self) -> Vec<String> {
        let mut parameters = Vec::new();
        parameters.extend(self.select.as_ref().map(|text| parameter(SELECT, text)));
        parameters.extend(self.isel.iter().map(|text| along(ISEL, text)));
        parameters.extend(self.sel.iter().map(|text| along(SEL, text)));
        parameters.extend(self.decode.as_ref().map(|text| parameter(DECODE, text)));
        parameters.extend(self.dialect.map(|dialect| format!("{DIALECT}={dialect}")));
        parameters
    }
}

fn parameter(name: &str, value: &str) -> String {
    format!("{name}={}", encode(value))
}

/// The parameter of a text such as `time=0:10`.
fn along(name: &str, text: &str) -> String {
    let (dimension, value) = text.split_once('=').unwrap_or((text, ""));
    format!("{name}.{}={}", encode(dimension), encode(value))
}
