//! Queries: what a server computes of the elements of an array, and shows of them.

use zarrd_meta::{
    Dialect, NodePath,
    selection::{Selection, Slice},
};
use zarrd_wire::{
    array::Format,
    query::{
        Decode, DimensionParameter, Edge, ElementsQuery, Keepdims, PictureAnswer, PictureQuery, SelectBy, StatsQuery,
    },
    routes,
};

/// A query of elements: a selection, and what the server makes of the elements before it sends them. The steps are
/// applied in the order select, decode, reduce, cast, whatever the order of the calls.
///
/// ```
/// use zarrd_client::Query;
///
/// let january = Query::new().sel("time", "2020-01").sel("lat", "52.5~").decode_cf().reduce(["mean"], ["time"]);
/// # let _ = january;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query(ElementsQuery);

impl Query {
    /// All elements, as they are stored.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects elements by indices. It cannot be combined with selections along dimensions.
    #[must_use]
    pub fn select(mut self, selection: &Selection) -> Self {
        self.0.select = Some(selection.to_string());
        self
    }

    /// Selects indices along a dimension, by its name or number.
    #[must_use]
    pub fn isel(self, dimension: impl Into<String>, slice: impl Into<Slice>) -> Self {
        self.along(dimension.into(), SelectBy::Index, slice.into().to_string())
    }

    /// Selects labels of a dimension's coordinate: `"52.5"`, `"52.5~"` for the nearest, `"2020-01..2020-03"` for a
    /// range, `"(1,5)"` for a list.
    #[must_use]
    pub fn sel(self, dimension: impl Into<String>, label: impl Into<String>) -> Self {
        self.along(dimension.into(), SelectBy::Label, label.into())
    }

    /// Decodes elements by the CF conventions.
    #[must_use]
    pub fn decode_cf(mut self) -> Self {
        self.0.decode = Some(Decode::Cf);
        self
    }

    /// Takes elements as they are stored, where attributes say that they would have to be decoded.
    #[must_use]
    pub fn decode_none(mut self) -> Self {
        self.0.decode = Some(Decode::None);
        self
    }

    /// Reduces dimensions, by their names or numbers, by NumPy's functions; without dimensions all, or the windows of
    /// [`coarsen`](Self::coarsen). Several functions are along a new first dimension.
    #[must_use]
    pub fn reduce<F: Into<String>, D: Into<String>>(
        mut self,
        functions: impl IntoIterator<Item = F>,
        dimensions: impl IntoIterator<Item = D>,
    ) -> Self {
        self.0.compute.reduce = functions.into_iter().map(Into::into).collect();
        let dimensions: Vec<String> = dimensions.into_iter().map(Into::into).collect();
        self.0.compute.axis = (!dimensions.is_empty()).then_some(dimensions);
        self
    }

    /// Keeps reduced dimensions, with an extent of 1.
    #[must_use]
    pub fn keepdims(mut self) -> Self {
        self.0.compute.keepdims = Keepdims::Keep;
        self
    }

    /// Subtracts a number from the count in `std` and `var`.
    #[must_use]
    pub fn ddof(mut self, ddof: u64) -> Self {
        self.0.compute.ddof = ddof;
        self
    }

    /// Reduces windows of so many elements along a dimension.
    #[must_use]
    pub fn coarsen(mut self, dimension: impl Into<String>, window: u64) -> Self {
        self.0.compute.coarsen.push((dimension.into(), window));
        self
    }

    /// Treats a last window that is incomplete in this way.
    #[must_use]
    pub fn edge(mut self, edge: Edge) -> Self {
        self.0.compute.edge = edge;
        self
    }

    /// Casts the results to a data type of numbers.
    #[must_use]
    pub fn astype(mut self, data_type: impl Into<String>) -> Self {
        self.0.compute.astype = Some(data_type.into());
        self
    }

    /// Takes the labels along a dimension instead of the elements.
    #[must_use]
    pub fn labels(mut self, dimension: impl Into<String>) -> Self {
        self.0.labels = Some(dimension.into());
        self
    }

    /// The colours of a picture, for [`Format::Png`].
    #[must_use]
    pub fn picture(mut self, picture: PictureQuery) -> Self {
        self.0.picture = picture;
        self
    }

    /// The quantiles and the histogram of [`ArrayClient::stats`](crate::ArrayClient::stats).
    #[must_use]
    pub fn stats(mut self, stats: StatsQuery) -> Self {
        self.0.compute.stats = Some(stats);
        self
    }

    fn along(mut self, dimension: String, by: SelectBy, text: String) -> Self {
        self.0.dimensions.push(DimensionParameter { dimension, by, text });
        self
    }

    /// The target of a request for the elements in a format.
    pub(super) fn target(&self, path: &NodePath, dialect: Option<Dialect>, format: Option<Format>) -> String {
        let query = ElementsQuery { format, dialect: dialect.or(self.0.dialect), ..self.0.clone() };
        format!("{}?{}", routes::array_path(path), query.render())
    }

    /// The same query for statistics.
    pub(super) fn with_stats(&self) -> Self {
        let mut query = self.clone();
        query.0.compute.stats.get_or_insert_default();
        query
    }

    /// The same query for the thresholds of a picture.
    pub(super) fn with_thresholds(&self) -> Self {
        let mut query = self.clone();
        query.0.picture.answer = PictureAnswer::Thresholds;
        query
    }
}

/// A query as the server parses it.
impl From<ElementsQuery> for Query {
    fn from(query: ElementsQuery) -> Self {
        Self(query)
    }
}
