//! From a request to the result that answers it: select, then the steps that follow.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use zarrd_array::{
    ArrayError, ArrayResult, ChunkMap, Decode, Indices, NamedSelection, Selected, StatisticsOf, StatisticsRead,
};
use zarrd_cf::LabelSelection;
use zarrd_codec::Elements;
use zarrd_compute::FUNCTION_DIMENSION;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    Dialect, NodePath,
    json::Json,
    selection::{Item, ReadRequest, Region, RequestError, Selection},
};
use zarrd_store::Reads;
use zarrd_wire::{
    array::Format,
    problem::{Members, Problem, ProblemType},
    query::{CHUNKS, ChunksQuery, DimensionParameter, ElementsQuery, ISEL, LABELS, QueryError, SEL, SELECT, SelectBy},
};

use super::{
    encode::{AnswerLabels, LabelledAnswer, ShownChannel},
    response::{CoordinateNotes, ResponseSpec},
};
use crate::{engine::Engine, error::ApiError, headers::guarantees_at};

/// The number of attempts to read an array and its coordinates as of one commit.
const MAX_ATTEMPTS: usize = 8;

/// The members of a body that select by name, as its text has them.
const NAMED_MEMBERS: [&[u8]; 2] = [b"\"sel\"", b"\"isel\""];

/// The elements that a request asks for.
#[derive(Clone, Debug)]
pub(super) struct ElementsRequest {
    pub(super) selection: Requested,
    labels: Option<String>,
}

/// A selection, before it is compared with an array.
#[derive(Clone, Debug)]
pub(super) enum Requested {
    /// By the positions of dimensions.
    Positions(ReadRequest),
    /// By the names of dimensions.
    Names(Vec<NamedSelection>),
}

impl ElementsRequest {
    /// The request of a query; by default it selects all elements.
    pub(super) fn of_query(query: &ElementsQuery) -> Result<Self, ApiError> {
        Ok(Self::with(query, Requested::of(query.select.as_deref(), &query.dimensions)?))
    }

    /// The request of a query and a body.
    pub(super) fn of_body(query: &ElementsQuery, body: &Bytes) -> Result<Self, ApiError> {
        let mut dimensions = named(&query.dimensions)?;
        let may_name = body.trim_ascii() == b"{}"
            || NAMED_MEMBERS.iter().any(|member| body.windows(member.len()).any(|text| text == *member));
        if !may_name {
            let request = ReadRequest::from_json(body)?;
            if !dimensions.is_empty() {
                return Err(conflict(SEL, "the body selects by position, and the query by name"));
            }
            return Ok(Self::with(query, Requested::Positions(request)));
        }
        let json = Json::parse(body.clone());
        // Text that is not JSON, or another value, has the errors of a request by position.
        let Some(json) = json.ok().filter(Json::is_object) else {
            return Ok(Self::with(query, Requested::Positions(ReadRequest::from_json(body)?)));
        };
        for member in json.members() {
            let (name, value) = (member.name().unwrap_or_default(), member.value);
            match name.as_str() {
                SEL => members_of(&value, SEL, &mut dimensions, |value| {
                    LabelSelection::from_json(value).map(Indices::Labels).map_err(ApiError::from)
                })?,
                ISEL => members_of(&value, ISEL, &mut dimensions, |value| {
                    Ok(Indices::Item(checked(Item::from_json(value.as_bytes())?)?))
                })?,
                "select" | "points" | "stack" => {
                    return Err(conflict(&name, "the body selects both by position and by name"));
                }
                _ => return Err(unknown_member(&name)),
            }
        }
        if dimensions.is_empty() && json.members().next().is_none() {
            return Ok(Self::with(query, Requested::Positions(ReadRequest::from_json(body)?)));
        }
        Ok(Self::with(query, Requested::Names(dimensions)))
    }

    fn with(query: &ElementsQuery, selection: Requested) -> Self {
        Self { selection, labels: query.labels.clone() }
    }

    /// Plans the result.
    ///
    /// With labels, the array is read as of a commit at which the coordinates are those that were searched: they are
    /// compared after the read is planned.
    pub(super) async fn plan(
        &self,
        spec: &ResponseSpec,
        engine: &Engine,
        (path, dialect): (&NodePath, Option<Dialect>),
    ) -> Result<(ArrayResult, CoordinateNotes), ApiError> {
        for _ in 0..MAX_ATTEMPTS {
            let mut selected = self.selection.select(engine, (path, dialect)).await?;
            let mut planned = self.plan_selected(spec, engine, (path, dialect), selected.as_ref()).await;
            if let (Ok((result, _)), Some(selected)) = (&planned, &mut selected)
                && result.shape().len() > spec.max_rank()
                && selected.drop_single_dates()
            {
                planned = self.plan_selected(spec, engine, (path, dialect), Some(selected)).await;
            }
            let mut selected = selected.unwrap_or_default();
            let mut notes = CoordinateNotes::default();
            if let Ok((result, channels)) = &planned {
                notes.channels.clone_from(channels);
                if spec.has_labels() {
                    notes.labels = Some(Box::pin(label(spec, engine, result, &mut selected)).await?);
                }
                if spec.is_picture() && guarantees_at(&engine.app, path).reads == Reads::Commit {
                    // Whatever prevents that coordinates are read, the picture needs none.
                    notes.northward_rows = Box::pin(engine.arrays.northward_rows(result)).await.unwrap_or_default();
                }
            }
            if engine.arrays.are_current(&selected.coordinates).await? {
                let (result, _) = planned?;
                let is_plain = selected == Selected::default();
                return Ok((if is_plain { result } else { result.with_selected(selected) }, notes));
            }
        }
        Err(ArrayError::TooManyConflicts { path: path.clone() }.into())
    }

    async fn plan_selected(
        &self,
        spec: &ResponseSpec,
        engine: &Engine,
        (path, dialect): (&NodePath, Option<Dialect>),
        selected: Option<&Selected>,
    ) -> Result<(ArrayResult, Option<Arc<[ShownChannel]>>), ApiError> {
        let mut request = self.selection.read_request(selected);
        let mut shown = None;
        if let Some(channels) = spec.channels() {
            let of_channels = async {
                let (model, _) = engine.arrays.model(path, dialect).await?;
                channels.select(&request, &model)
            };
            let (of_channels, colors) = Box::pin(of_channels).await?;
            (request, shown) = (Cow::Owned(of_channels), Some(colors));
        }
        let result = match &self.labels {
            Some(name) => Box::pin(read_labels(spec, engine, (path, dialect), &request, name)).await?,
            None => spec.read(engine, path, dialect, &request).await?,
        };
        check_texts(spec.format(), &result)?;
        Ok((result, shown))
    }

    /// Plans statistics, of an array and coordinates as [`plan`](Self::plan) reads them.
    pub(super) async fn plan_statistics(
        &self,
        statistics: &StatisticsOf,
        engine: &Engine,
        (path, dialect): (&NodePath, Option<Dialect>),
    ) -> Result<StatisticsRead, ApiError> {
        for _ in 0..MAX_ATTEMPTS {
            let selected = self.selection.select(engine, (path, dialect)).await?;
            let request = self.selection.read_request(selected.as_ref());
            let planned = engine.arrays.statistics(path, dialect, (&request, statistics)).await;
            let Some(selected) = selected else { return Ok(planned?) };
            if engine.arrays.are_current(&selected.coordinates).await? {
                return Ok(planned?.with_selected(&selected));
            }
        }
        Err(ArrayError::TooManyConflicts { path: path.clone() }.into())
    }
}

impl Requested {
    /// The selection of the parameters of a query; by default all elements.
    pub(super) fn of(select: Option<&str>, dimensions: &[DimensionParameter]) -> Result<Self, ApiError> {
        match select {
            Some(_) if !dimensions.is_empty() => {
                Err(conflict(SELECT, "`select` cannot be combined with `isel.DIM` or `sel.DIM`"))
            }
            None if !dimensions.is_empty() => Ok(Self::Names(named(dimensions)?)),
            select => Ok(Self::Positions(ReadRequest::Select(Selection::parse(select.unwrap_or_default())?))),
        }
    }

    /// The selection that names and labels make, if there are any.
    pub(super) async fn select(
        &self,
        engine: &Engine,
        (path, dialect): (&NodePath, Option<Dialect>),
    ) -> Result<Option<Selected>, ApiError> {
        match self {
            Self::Positions(_) => Ok(None),
            Self::Names(dimensions) => Ok(Some(Box::pin(engine.arrays.select(path, dialect, dimensions)).await?)),
        }
    }

    /// The request by positions.
    pub(super) fn read_request(&self, selected: Option<&Selected>) -> Cow<'_, ReadRequest> {
        match (self, selected) {
            (_, Some(selected)) => Cow::Owned(ReadRequest::Select(selected.selection.clone())),
            (Self::Positions(request), None) => Cow::Borrowed(request),
            (Self::Names(_), None) => Cow::Owned(ReadRequest::Select(Selection::default())),
        }
    }
}

/// Looks up the chunks that a query selects, of an array and coordinates as [`ElementsRequest::plan`] reads them.
pub(super) async fn chunk_map(engine: &Engine, path: &NodePath, query: &ChunksQuery) -> Result<ChunkMap, ApiError> {
    let requested = Requested::of(query.select.as_deref(), &query.dimensions)?;
    for _ in 0..MAX_ATTEMPTS {
        let selected = requested.select(engine, (path, query.dialect)).await?;
        let request = requested.read_request(selected.as_ref());
        let ReadRequest::Select(selection) = &*request else {
            return Err(QueryError::Invalid { name: CHUNKS, expected: "is not supported for points and stacks" }.into());
        };
        let map = engine.arrays.chunk_map(path, query.dialect, selection).await;
        let Some(selected) = selected else { return Ok(map?) };
        if engine.arrays.are_current(&selected.coordinates).await? {
            return Ok(map?);
        }
    }
    Err(ArrayError::TooManyConflicts { path: path.clone() }.into())
}

/// The labels of a result as text, whose coordinates join those by whose labels was selected.
async fn label(
    spec: &ResponseSpec,
    engine: &Engine,
    result: &ArrayResult,
    selected: &mut Selected,
) -> Result<Arc<AnswerLabels>, ApiError> {
    let limit = engine.app.settings().limits.text_selection;
    let (labels, versions) = engine.arrays.labels_of(result, limit).await?;
    selected.coordinates.extend(versions);
    let all = || labels.iter().filter_map(|labelled| labelled.labels.as_ref()).map(|labels| &labels.elements);
    let bytes = all().map(Elements::memory_size).fold(0, u64::saturating_add);
    let count = result.shape().iter().fold(0, |count: u64, extent| count.saturating_add(*extent));
    let needed = AnswerLabels::memory(count, bytes);
    let memory = engine.claim.take(needed).await?;
    let (answer, format) = (LabelledAnswer::of(result), spec.format());
    let render = move || match format {
        Format::Xarray => AnswerLabels::of_xarray(&answer, &labels, memory),
        _ => AnswerLabels::of_csv(&answer, &labels, memory),
    };
    Ok(engine.arrays.run(Cost::of(Work::Documents, needed), render).await??)
}

/// Plans a read of the labels that a selection has along a dimension, in place of its elements.
async fn read_labels(
    spec: &ResponseSpec,
    engine: &Engine,
    (path, dialect): (&NodePath, Option<Dialect>),
    request: &ReadRequest,
    name: &str,
) -> Result<ArrayResult, ApiError> {
    if name.ends_with(FUNCTION_DIMENSION) && spec.steps().functions() > 1 {
        let results = spec.read(engine, path, dialect, request).await?;
        if results.dimension_names().first().and_then(Option::as_deref) == Some(name) {
            return Ok(results.into_function_labels()?);
        }
    }
    let ReadRequest::Select(selection) = request else {
        return Err(QueryError::Invalid { name: LABELS, expected: "is not supported for points and stacks" }.into());
    };
    let (model, _) = engine.arrays.model(path, dialect).await?;
    let (dimension, coordinate) = engine.arrays.locate_coordinate(path, dialect, name).await?;
    let region = selection.resolve(&model.view_shape()).map_err(ArrayError::from)?;
    let dimensions = region.dimensions.into_iter().skip(dimension).take(1).collect();
    let along = ReadRequest::Select(Region { dimensions }.to_selection());
    let limit = engine.app.settings().limits.text_selection;
    let mut names = model.dimension_names.clone();
    names.resize(model.shape.len(), None);
    let along = (&along, dimension, names.as_slice());
    let labels = spec.steps().plan_labels(engine, (&coordinate, model.dialect), along, limit).await;
    labels.map_err(|error| ApiError::of_limited_read(error, "--max-text-selection", None))
}

/// Fails if times became texts that a binary format would have to hold.
fn check_texts(format: Format, result: &ArrayResult) -> Result<(), ApiError> {
    let is_text = result.decoding() != Decode::Stored
        && result.data_type().fixed_size().is_none()
        && result.model().data_type.fixed_size().is_some();
    if !is_text || matches!(format, Format::Json | Format::Csv | Format::Xarray) {
        return Ok(());
    }
    if result.model().data_type.number().is_none() {
        let detail = format!("{format} has no texts of byte strings, json and csv have them");
        let members = Members { unsupported: Some("texts of byte strings".to_owned()), ..Members::default() };
        return Err(ApiError::new(
            Problem::new(ProblemType::UnsupportedNode).with_detail(detail).with_members(members),
        ));
    }
    let calendar = result.model().attributes.get("calendar").and_then(|calendar| calendar.to_text());
    let calendar: String = calendar.unwrap_or_default().chars().take(64).collect();
    let times = match result.decoding() {
        Decode::CfTexts => "outside of the range of datetime64[ns], or before the calendar is Gregorian".to_owned(),
        _ => format!("of the calendar {calendar}"),
    };
    let reason = format!("has no times {times}; json, csv and xarray have texts of them");
    Err(ApiError::format_not_supported(format, &reason, &[Format::Json, Format::Csv, Format::Xarray]))
}

fn named(parameters: &[DimensionParameter]) -> Result<Vec<NamedSelection>, ApiError> {
    let one = |DimensionParameter { dimension, by, text }: &DimensionParameter| {
        let indices = match by {
            SelectBy::Index => Item::parse(text).map_err(RequestError::from).map_err(ApiError::from).and_then(checked),
            SelectBy::Label => return LabelSelection::parse(text).map(Indices::Labels).map_err(ApiError::from),
        };
        indices
            .map(Indices::Item)
            .map_err(|error| error.with_members(|members| members.parameter = Some(format!("{ISEL}.{dimension}"))))
    };
    let named = |parameter: &DimensionParameter| {
        Ok(NamedSelection { name: parameter.dimension.clone(), indices: one(parameter)? })
    };
    parameters.iter().map(named).collect()
}

/// Reads the members of `sel` or `isel`.
fn members_of(
    value: &Json,
    member: &str,
    dimensions: &mut Vec<NamedSelection>,
    read: impl Fn(&Json) -> Result<Indices, ApiError>,
) -> Result<(), ApiError> {
    if !value.is_object() {
        return Err(invalid_body(member, "an object is expected, with a member for each dimension".to_owned()));
    }
    for entry in value.members() {
        let (name, value) = (entry.name().unwrap_or_default(), entry.value);
        if dimensions.len() >= zarrd_meta::limits::MAX_RANK {
            return Err(invalid_body(member, format!("there are at most {} dimensions", zarrd_meta::limits::MAX_RANK)));
        }
        dimensions.push(NamedSelection { name, indices: read(&value)? });
    }
    Ok(())
}

/// An item of one dimension.
fn checked(item: Item) -> Result<Item, ApiError> {
    match item {
        Item::Ellipsis => {
            let detail = "`...` is no item of one dimension, `:` is all of it";
            Err(ApiError::new(Problem::new(ProblemType::InvalidSelection).with_detail(detail)))
        }
        item => Ok(item),
    }
}

pub(super) fn conflict(parameter: &str, detail: &str) -> ApiError {
    let members = Members { parameter: Some(parameter.to_owned()), ..Members::default() };
    ApiError::new(Problem::new(ProblemType::SelectionConflict).with_detail(detail).with_members(members))
}

fn unknown_member(name: &str) -> ApiError {
    let name: String = name.chars().take(64).collect();
    invalid_body(
        "",
        format!("`{name}` is unknown, known are `sel` and `isel`, or one of `select`, `points` and `stack`"),
    )
}

fn invalid_body(member: &str, detail: String) -> ApiError {
    let pointer = if member.is_empty() { String::new() } else { format!("/{member}") };
    let members = Members { pointer: Some(pointer), ..Members::default() };
    ApiError::new(Problem::new(ProblemType::InvalidSelection).with_detail(detail).with_members(members))
}
