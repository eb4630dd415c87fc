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
    headers::{MULTIPART_MEDIA_TYPE, NPZ_MEDIA_TYPES},
    node::AppendAnswer,
    query::AppendQuery,
};

use super::{
    decode::{Conversions, DecodeError, DecodedBody, ExpectedElements, decode_body},
    form::FormReader,
};
use crate::{
    engine::Engine,
    error::ApiError,
    extract::{NodePathParam, Query},
    request_body::ElementsBody,
};

/// `POST` with `append`: grows all arrays of a group over a dimension, by the arrays of an `.npz` file or of a form.
pub(crate) async fn append(
    Engine { app, arrays, .. }: Engine,
    NodePathParam(path): NodePathParam,
    Query(query): Query<AppendQuery>,
    body: ElementsBody,
) -> Result<Json<AppendAnswer>, ApiError> {
    let members = MemberStreams::new(body, app.settings().limits.value)?;
    let mut dataset = arrays.append_dataset(&path, query.dialect, &query.dimension).await?;
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

/// The media types of datasets.
const MEDIA_TYPES: [&str; 3] = [NPZ_MEDIA_TYPES[0], NPZ_MEDIA_TYPES[1], MULTIPART_MEDIA_TYPE];

/// The members of a body, as bodies that are read one after the other.
struct MemberStreams {
    reader: Arc<Mutex<MemberReader>>,
    claim: Claim,
}

enum MemberReader {
    Archive(ArchiveReader),
    Form(FormReader),
}

struct ArchiveReader {
    stream: ByteStream,
    reader: NpzReader,
}

impl MemberStreams {
    /// The members of a body, which together have at most `limit` bytes.
    fn new(body: ElementsBody, limit: u64) -> Result<Self, ApiError> {
        let reader = match body.media_type.as_deref() {
            Some(MULTIPART_MEDIA_TYPE) => {
                MemberReader::Form(FormReader::new(body.stream, body.boundary).map_err(DecodeError::from)?)
            }
            Some(found) if NPZ_MEDIA_TYPES.contains(&found) => {
                MemberReader::Archive(ArchiveReader { stream: body.stream, reader: NpzReader::new(limit) })
            }
            _ => return Err(ApiError::unsupported_media_type(&MEDIA_TYPES)),
        };
        Ok(Self { reader: Arc::new(Mutex::new(reader)), claim: body.claim })
    }

    /// The name of the next member; `None` at the end. The member before it has to be read.
    async fn next(&self) -> Result<Option<String>, DecodeError> {
        match &mut *self.reader.lock().await {
            MemberReader::Archive(archive) => archive.next().await,
            MemberReader::Form(form) => form.next().await,
        }
    }

    /// The member that began last, as the body of a request.
    fn body(&self) -> ElementsBody {
        let stream = stream::try_unfold(self.reader.clone(), |reader| async move {
            let data = match &mut *reader.lock().await {
                MemberReader::Archive(archive) => archive.data().await,
                MemberReader::Form(form) => form.data().await,
            };
            let data = data.map_err(DecodeError::into_stream_error)?;
            Ok::<_, StoreError>(data.map(|data| (data, reader)))
        });
        let media_type = Some(Format::Npy.media_type().to_owned());
        ElementsBody { media_type, boundary: None, size: None, stream: stream.boxed(), claim: self.claim.clone() }
    }
}

impl ArchiveReader {
    /// The name of the next member; `None` at the end.
    async fn next(&mut self) -> Result<Option<String>, DecodeError> {
        loop {
            match self.next_event().await? {
                NpzEvent::Member(name) => return Ok(Some(name)),
                NpzEvent::End => return Ok(None),
                // What a decoder left is checked too.
                NpzEvent::Data(_) | NpzEvent::MemberEnd | NpzEvent::More => {}
            }
        }
    }

    /// The next bytes of the member that began last; `None` at its end.
    async fn data(&mut self) -> Result<Option<Bytes>, DecodeError> {
        Ok(match self.next_event().await? {
            NpzEvent::Data(piece) => Some(Bytes::from(piece)),
            _ => None,
        })
    }

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
