//! The handler that appends to the arrays of a group.

use std::{collections::BTreeSet, sync::Arc};

use axum::Json;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Mutex;
use zarrd_array::Claim;
use zarrd_store::{ByteStream, StoreError};
use zarrd_wire::{
    array::Format,
    elements::{
        Extents,
        npz::{NpzEvent, NpzReader},
    },
    headers::NPZ_MEDIA_TYPES,
    node::AppendAnswer,
    query::AppendQuery,
};

use super::decode::{Conversions, DecodeError, DecodedBody, ExpectedElements, decode_body};
use crate::{
    engine::Engine,
    error::ApiError,
    extract::{NodePathParam, Query},
    request_body::ElementsBody,
};

/// `POST` with `append`: grows all arrays of a group over a dimension, by the arrays of an `.npz` file.
pub(crate) async fn append(
    Engine { app, arrays, .. }: Engine,
    NodePathParam(path): NodePathParam,
    Query(query): Query<AppendQuery>,
    body: ElementsBody,
) -> Result<Json<AppendAnswer>, ApiError> {
    if !body.media_type.as_deref().is_some_and(|found| NPZ_MEDIA_TYPES.contains(&found)) {
        return Err(ApiError::unsupported_media_type(&NPZ_MEDIA_TYPES));
    }
    let mut dataset = arrays.append_dataset(&path, query.dialect, &query.dimension).await?;
    let members = MemberStreams::new(body, app.settings().limits.value);
    let mut memory = Vec::new();
    let mut names = BTreeSet::new();
    while let Some(name) = members.next().await? {
        let (model, axis) = dataset.array(&name)?;
        let conversions = Conversions::new(&path, model, query.decode, query.casting)?;
        let expected = ExpectedElements::new(model, Extents::open(&model.view_shape(), axis), conversions);
        if !names.insert(name.clone()) {
            return Err(DecodeError::RepeatedMember { name }.into());
        }
        let in_member = |error: ApiError| error.in_array(&name);
        let decoded = decode_body(&app, members.body(), expected).await;
        let DecodedBody { elements, count, memory: permit } = decoded.map_err(|error| in_member(error.into()))?;
        memory.extend(permit);
        dataset.receive(&name, count, elements).await.map_err(ApiError::from)?;
    }
    let report = dataset.execute().await?;
    drop(memory);
    Ok(Json(report.into()))
}

/// The members of an archive, as bodies that are read one after the other.
struct MemberStreams {
    reader: Arc<Mutex<ArchiveReader>>,
    claim: Claim,
}

struct ArchiveReader {
    stream: ByteStream,
    reader: NpzReader,
}

impl MemberStreams {
    /// The members of a body, which together have at most `limit` bytes.
    fn new(body: ElementsBody, limit: u64) -> Self {
        let reader = ArchiveReader { stream: body.stream, reader: NpzReader::new(limit) };
        Self { reader: Arc::new(Mutex::new(reader)), claim: body.claim }
    }

    /// The name of the next member; `None` at the end. The member before it has to be read.
    async fn next(&self) -> Result<Option<String>, DecodeError> {
        let mut reader = self.reader.lock().await;
        loop {
            match reader.next_event().await? {
                NpzEvent::Member(name) => return Ok(Some(name)),
                NpzEvent::End => return Ok(None),
                // What a decoder left is checked too.
                NpzEvent::Data(_) | NpzEvent::MemberEnd | NpzEvent::More => {}
            }
        }
    }

    /// The member that began last, as the body of a request.
    fn body(&self) -> ElementsBody {
        let reader = self.reader.clone();
        let stream = stream::try_unfold(Some(reader), |reader| async move {
            let Some(reader) = reader else { return Ok(None) };
            let event = reader.lock().await.next_event().await.map_err(DecodeError::into_stream_error)?;
            Ok::<_, StoreError>(match event {
                NpzEvent::Data(piece) => Some((Bytes::from(piece), Some(reader))),
                _ => None,
            })
        });
        let media_type = Some(Format::Npy.media_type().to_owned());
        ElementsBody { media_type, size: None, stream: stream.boxed(), claim: self.claim.clone() }
    }
}

impl ArchiveReader {
    /// The next event that is not that more bytes are needed.
    async fn next_event(&mut self) -> Result<NpzEvent, DecodeError> {
        loop {
            match self.reader.next_event()? {
                NpzEvent::More => match self.stream.try_next().await? {
                    Some(bytes) => self.reader.push(&bytes),
                    None => {
                        self.reader.finish()?;
                        return Ok(NpzEvent::End);
                    }
                },
                // The body has to end with the archive, and its checks are at its end.
                NpzEvent::End => match self.stream.try_next().await? {
                    Some(bytes) => self.reader.push(&bytes),
                    None => {
                        self.reader.finish()?;
                        return Ok(NpzEvent::End);
                    }
                },
                event => return Ok(event),
            }
        }
    }
}
