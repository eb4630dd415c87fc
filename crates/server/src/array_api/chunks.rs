//! `?chunks`: the chunks that a selection touches.

use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY},
};
use zarrd_array::{ArrayError, ChunkMap};
use zarrd_executor::{Cost, Work};
use zarrd_store::{Cursor, StoreError};
use zarrd_wire::{
    array as wire_array, chunks,
    headers::{DATA_TYPE, DIALECT, DIALECTS_DIFFER, JSON, SHAPE},
    problem::{Members, Problem, ProblemType},
    query::{ChunksForm, ChunksQuery},
};

use super::{request, response::VARY_ACCEPT};
use crate::{
    content_encoding,
    engine::Engine,
    error::ApiError,
    extract::{ArrayPath, ContentNegotiation, Query},
    headers::{REVALIDATE, dialects_differ},
};

/// The memory of a chunk in an answer: twice its key, its index, and their texts.
const BYTES_PER_CHUNK: u64 = 1 << 10;
/// The memory of a bin: two numbers and their texts.
const BYTES_PER_BIN: u64 = 64;
/// The memory of an answer, in bytes, that needs no permit.
const UNRESERVED_LIMIT: u64 = 64 << 10;

/// `GET` and `HEAD` with `chunks`: the chunks that a selection touches, or the numbers of those that are stored.
pub(crate) async fn chunks(
    engine: Engine,
    ArrayPath(path): ArrayPath,
    Query(query): Query<ChunksQuery>,
    negotiation: ContentNegotiation,
) -> Result<Response, ApiError> {
    let map = request::chunk_map(&engine, &path, &query).await?;
    let memory = match query.form {
        ChunksForm::Page { limit, .. } => map.touched().min(limit as u64).saturating_mul(BYTES_PER_CHUNK),
        ChunksForm::Bins { sizes: [first, last], .. } => first.saturating_mul(last).saturating_mul(BYTES_PER_BIN),
    };
    let permit = match memory {
        ..=UNRESERVED_LIMIT => None,
        memory => Some(engine.claim.take(memory).await.map_err(ArrayError::from)?),
    };
    let answer = match query.form {
        ChunksForm::Page { limit, cursor } => page(&engine, &map, limit, cursor).await?,
        ChunksForm::Bins { sizes, axis } => bins(&map, sizes, axis.as_deref()).await?,
    };
    let encoding = negotiation.encoding();
    let encode = move || {
        let text = serde_json::to_vec(&answer).map_err(std::io::Error::from)?;
        content_encoding::compress(Bytes::from(text), encoding)
    };
    let encoded = engine.arrays.run(Cost::of(Work::Documents, memory), encode).await?;
    let (body, encoding) = encoded.map_err(|error| ApiError::with_cause(ProblemType::Internal, error))?;
    let body = match permit {
        Some(permit) => permit.attach_to(body),
        None => body,
    };
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CACHE_CONTROL, REVALIDATE);
    headers.insert(VARY, VARY_ACCEPT);
    // Of the selection, as for its elements.
    headers.insert(DIALECT, HeaderValue::from_static(map.model().dialect.name()));
    headers.extend(dialects_differ(map.relation()).map(|differ| (DIALECTS_DIFFER, differ)));
    headers.extend(wire_array::data_type(&map.model().data_type.name()).map(|name| (DATA_TYPE, name)));
    headers.extend(wire_array::shape(map.selected_shape()).map(|shape| (SHAPE, shape)));
    headers.extend(encoding.header().map(|encoding| (CONTENT_ENCODING, encoding)));
    Ok(response)
}

async fn page(
    engine: &Engine,
    map: &ChunkMap,
    limit: usize,
    cursor: Option<Cursor>,
) -> Result<chunks::ChunkMap, ApiError> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let cursor = engine.session.unbind(&cursor)?;
            cursor.as_str().parse().map_err(|_| StoreError::InvalidCursor)?
        }
    };
    let entries = map.page(start, limit).await?;
    let next = start.saturating_add(entries.len() as u64);
    let cursor = (next < map.touched()).then(|| engine.session.bind(Cursor::from_text(next.to_string())));
    let chunk = |entry: zarrd_array::ChunkEntry| chunks::Chunk {
        index: entry.index,
        key: entry.key.map(|key| key.to_string()),
        bytes: entry.bytes,
    };
    Ok(chunks::ChunkMap {
        chunks: Some(entries.into_iter().map(chunk).collect()),
        cursor: cursor.map(|cursor| cursor.as_str().to_owned()),
        ..described(map)?
    })
}

async fn bins(map: &ChunkMap, sizes: [u64; 2], axis: Option<&[String]>) -> Result<chunks::ChunkMap, ApiError> {
    let rank = map.model().shape.len();
    let dimensions = match axis {
        None => (rank.saturating_sub(2)..rank).collect::<Vec<_>>(),
        Some(names) => names.iter().map(|name| dimension(map, name)).collect::<Result<_, _>>()?,
    };
    if let [first, last] = dimensions[..]
        && first == last
    {
        let detail = format!("dimension {first} is named twice");
        return Err(ApiError::new(
            Problem::new(ProblemType::DimensionRepeated)
                .with_detail(detail)
                .with_members(Members { name: axis.and_then(|names| names.last().cloned()), ..Members::default() }),
        ));
    }
    // One dimension has the number of bins of the last one.
    let sizes = if dimensions.len() == 2 { &sizes[..] } else { &sizes[1..] };
    let bins = map.bins(&dimensions, sizes).await?;
    let axis = |axis: zarrd_array::BinAxis| chunks::BinAxis {
        dimension: axis.dimension,
        starts: axis.starts,
        chunks: axis.chunks,
    };
    let bins = chunks::Bins {
        axes: bins.axes.into_iter().map(axis).collect(),
        others: bins.others,
        stored: bins.stored,
        bytes: bins.bytes,
    };
    Ok(chunks::ChunkMap { bins: Some(bins), ..described(map)? })
}

fn described(map: &ChunkMap) -> Result<chunks::ChunkMap, ApiError> {
    let model = map.model();
    let chunk_shape = model.grid.regular_shape();
    let chunk_bytes = chunk_shape
        .iter()
        .flatten()
        .try_fold(model.data_type.fixed_size().map_or(0, |size| size as u64), |product, &extent| {
            product.checked_mul(extent)
        });
    Ok(chunks::ChunkMap {
        shape: model.shape.clone(),
        grid: map.grid_shape(),
        chunk_bytes: chunk_bytes.filter(|_| chunk_shape.is_some() && model.data_type.fixed_size().is_some()),
        chunk_shape,
        inner_chunk_shape: map.inner_chunk_shape()?,
        touched: map.touched(),
        chunks: None,
        cursor: None,
        bins: None,
    })
}

/// The number of the dimension with a name, or else with this number.
fn dimension(map: &ChunkMap, name: &str) -> Result<usize, ApiError> {
    let model = map.model();
    let named = model.dimension_names.iter().position(|known| known.as_deref() == Some(name));
    let numbered = || name.parse().ok().filter(|&number: &usize| number < model.shape.len());
    named.or_else(numbered).ok_or_else(|| {
        let detail = format!("{} has no dimension {name:?}", map.path());
        let members = Members { name: Some(name.to_owned()), ..Members::default() };
        ApiError::new(Problem::new(ProblemType::UnknownDimension).with_detail(detail).with_members(members))
    })
}
