//! Decoding units.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::future::{Either, select};
use zarrd_codec::{CodecChain, CodecError, Elements, PartialAccess};
use zarrd_executor::{Cost, Work};
use zarrd_store::GetResult;

use super::{context::ReadContext, encoded_chunk::EncodedChunk, sink::ElementSink, unit::DecodeUnit};
use crate::{
    cache::{CacheKind, Cached},
    error::ArrayError,
    running_decodes::{DecodeStep, FetchStep, Interest, Turn},
};

/// The decoded bytes of units that one job leaves to other reads, which decode them at the moment: it has them in memory
/// until it has written its own.
const MAX_DEFERRED: u64 = 1 << 20;

/// A unit that another read decodes.
struct DeferredUnit {
    unit: DecodeUnit,
    interest: Arc<Interest>,
}

/// The next step towards the elements of a unit that is fetched.
enum UnitStep {
    Found(Elements),
    /// Another read decodes it.
    Running(Arc<Interest>),
    /// The caller decodes it, for others too if it has a turn.
    Decode(Option<Turn>),
}

/// A chunk that is fetched to be decoded, or was decoded meanwhile.
enum Fetched {
    Encoded(Bytes),
    Decoded(Elements),
}

/// Decodes the units of a range, of which `opened` is the value if it is being fetched already.
pub(super) async fn decode(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    part: EncodedChunk,
    units: Vec<DecodeUnit>,
    opened: Option<GetResult>,
) -> Result<(), ArrayError> {
    match <[DecodeUnit; 1]>::try_from(units) {
        Ok([unit]) => match unit.interest(&source, &part) {
            Some(interest) => decode_once(source, sink, (part, opened), unit, interest).await,
            None if unit.is_cacheable(&source) => decode_cached(source, sink, (part, opened), unit).await,
            None => decode_all(source, sink, (part, opened), vec![unit]).await,
        },
        Err(units) => decode_all(source, sink, (part, opened), units).await,
    }
}

/// True if these units only have to be copied, and are small; larger ones if the read has nothing else to do.
pub(super) fn is_cheap(source: &ReadContext, leaves: &[DecodeUnit]) -> bool {
    let bytes: u64 = leaves.iter().map(DecodeUnit::decoded_len).sum();
    let work = if source.chunks <= 2 { Work::OnlyCopy } else { Work::RawChunks };
    Cost::of(work, bytes).is_at_once() && leaves.iter().all(DecodeUnit::is_uncompressed)
}

/// Decodes a chunk once for all reads that have an interest in it.
async fn decode_once(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    (part, opened): (EncodedChunk, Option<GetResult>),
    leaf: DecodeUnit,
    interest: Arc<Interest>,
) -> Result<(), ArrayError> {
    // It may have been decoded before the interest began.
    if let Some(elements) = leaf.cached(&source, &part) {
        source.metrics.cached();
        return write(source, sink, leaf.into(), elements).await;
    }
    let cost = Cost::codec(leaf.decode_work());
    let nicer = cost.nicer();
    let mut encoded = match fetch_once(&source, (&part, opened), &interest, nicer).await? {
        Fetched::Encoded(encoded) => encoded,
        Fetched::Decoded(elements) => return write_shared(source, sink, (&part, leaf.into()), elements).await,
    };
    let (part, leaf) = (Arc::new(part), Arc::new(leaf));
    loop {
        if let Some(elements) = interest.ended(nicer).await {
            return write_shared(source, sink, (&part, leaf), elements).await;
        }
        let own = OwnDecode {
            source: source.clone(),
            sink: sink.clone(),
            part: part.clone(),
            leaf: leaf.clone(),
            interest: interest.clone(),
            nicer,
        };
        let job = move || own.run(encoded);
        match source.context.executor().run_unless(cost, interest.decoded(), job).await? {
            Either::Left(elements) | Either::Right(OwnDecodeEnd::Decoded(elements)) => {
                return write_shared(source, sink, (&part, leaf), elements).await;
            }
            Either::Right(OwnDecodeEnd::Running(unused)) => encoded = unused,
            Either::Right(OwnDecodeEnd::Written(written)) => return written,
        }
    }
}

/// A chunk that is fetched, and decoded on a thread unless another read does that.
struct OwnDecode {
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    part: Arc<EncodedChunk>,
    leaf: Arc<DecodeUnit>,
    interest: Arc<Interest>,
    nicer: i32,
}

enum OwnDecodeEnd {
    /// It was decoded and written, or failed.
    Written(Result<(), ArrayError>),
    /// Another read has decoded it.
    Decoded(Elements),
    /// Another read decodes it. The encoded chunk is still needed if that fails.
    Running(Bytes),
}

impl OwnDecode {
    fn run(self, encoded: Bytes) -> OwnDecodeEnd {
        let Self { source, sink, part, leaf, interest, nicer } = self;
        match interest.decode_step(nicer) {
            DecodeStep::Decoded(elements) => OwnDecodeEnd::Decoded(elements),
            DecodeStep::Running => OwnDecodeEnd::Running(encoded),
            DecodeStep::Decode(turn) => {
                OwnDecodeEnd::Written(decode_turn(&source, &*sink, (&part, &leaf), encoded, turn))
            }
        }
    }
}

/// Fetches a chunk, unless another read decodes it before. In a near store, where that does not wait, one read fetches it
/// for all.
async fn fetch_once(
    source: &ReadContext,
    (part, opened): (&EncodedChunk, Option<GetResult>),
    interest: &Arc<Interest>,
    nicer: i32,
) -> Result<Fetched, ArrayError> {
    if source.store.near && opened.is_none() {
        return match interest.fetch_step(nicer).await {
            FetchStep::Decoded(elements) => Ok(Fetched::Decoded(elements)),
            FetchStep::Fetched(encoded) => Ok(Fetched::Encoded(encoded)),
            FetchStep::Fetch(turn) => {
                let encoded = source.fetch(&part.key, part.range.clone()).await?;
                turn.fetched(encoded.clone());
                Ok(Fetched::Encoded(encoded))
            }
        };
    }
    if let Some(elements) = interest.ended(nicer).await {
        return Ok(Fetched::Decoded(elements));
    }
    let fetch = async {
        match opened {
            Some(value) => source.receive(value).await,
            None => source.fetch(&part.key, part.range.clone()).await,
        }
    };
    match unless_decoded(interest, fetch).await {
        Either::Left(elements) => Ok(Fetched::Decoded(elements)),
        Either::Right(encoded) => encoded.map(Fetched::Encoded),
    }
}

/// The chunk if it is decoded by another read, or the output of a future.
async fn unless_decoded<T>(interest: &Interest, other: impl Future<Output = T>) -> Either<Elements, T> {
    let (decoded, other) = (std::pin::pin!(interest.decoded()), std::pin::pin!(other));
    match select(decoded, other).await {
        Either::Left((elements, _)) => Either::Left(elements),
        Either::Right((output, _)) => Either::Right(output),
    }
}

/// Decodes a chunk for all reads that have an interest in it, and writes it.
fn decode_turn(
    source: &ReadContext,
    sink: &dyn ElementSink,
    (part, leaf): (&EncodedChunk, &DecodeUnit),
    encoded: Bytes,
    turn: Turn,
) -> Result<(), ArrayError> {
    let (encoded, in_use) = watched(encoded);
    let elements = source.measure_decode(|| leaf.decode(encoded, source.variable_length_budget()));
    let elements = elements.map_err(|error| source.chunk_error(part, error))?;
    let elements = if leaf.is_cacheable(source) && in_use() { copied(&elements) } else { elements };
    cache(source, (part, leaf), &elements);
    turn.decoded(&elements);
    source.spend_decode(leaf.chain(), &elements)?;
    sink.write(source, &leaf.shape, &leaf.selection, &elements)
}

/// Caches the elements of a unit, if the read does that.
fn cache(source: &ReadContext, (part, leaf): (&EncodedChunk, &DecodeUnit), elements: &Elements) {
    if leaf.is_cacheable(source)
        && let Some(key) = source.cache_key(part, leaf.range.start, CacheKind::Chunk)
    {
        source.cache().insert(key.clone(), Cached::Chunk(elements.clone()));
        if !source.store.near {
            source.cache().note_latest(&key);
        }
    }
}

/// Writes what another read decoded, which is work of this one as well.
async fn write_shared(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    (part, leaf): (&EncodedChunk, Arc<DecodeUnit>),
    elements: Elements,
) -> Result<(), ArrayError> {
    source.metrics.shared();
    source.spend_decode(leaf.chain(), &elements)?;
    if leaf.cached(&source, part).is_none() {
        cache(&source, (part, &leaf), &elements);
    }
    write(source, sink, leaf, elements).await
}

/// Writes the elements of a unit.
async fn write(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    leaf: Arc<DecodeUnit>,
    elements: Elements,
) -> Result<(), ArrayError> {
    let cost = Cost::of(Work::Copy, sink.write_work(&source, &leaf.selection));
    if cost.is_at_once() {
        return sink.write(&source, &leaf.shape, &leaf.selection, &elements);
    }
    let work = source.clone();
    source.context.run(cost, move || sink.write(&work, &leaf.shape, &leaf.selection, &elements)).await?
}

/// Decodes a small chunk and caches it; waits for another read that is decoding it already.
async fn decode_cached(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    (part, opened): (EncodedChunk, Option<GetResult>),
    leaf: DecodeUnit,
) -> Result<(), ArrayError> {
    let key = source.cache_key(&part, leaf.range.start, CacheKind::Chunk);
    let chain = leaf.chain().clone();
    let cost = Cost::codec(leaf.decode_work());
    let work = source.clone();
    let decoded = source.cached(key, async move {
        let encoded = match opened {
            Some(value) => work.receive(value).await?,
            None => work.fetch(&part.key, part.range.clone()).await?,
        };
        let decoder = work.clone();
        let decode = move || {
            let (encoded, in_use) = watched(encoded);
            let elements = decoder.measure_decode(|| chain.decode(encoded, decoder.variable_length_budget()));
            let elements = elements.map_err(|error| decoder.chunk_error(&part, error))?;
            decoder.spend_decode(&chain, &elements)?;
            Ok(Cached::Chunk(if in_use() { copied(&elements) } else { elements }))
        };
        work.context.run(cost, decode).await?
    });
    let Cached::Chunk(elements) = decoded.await? else { return Err(ArrayError::ShuttingDown) };
    write(source, sink, leaf.into(), elements).await
}

/// Decodes all units of a range, except those that other reads decode at the moment, which it writes last.
async fn decode_all(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    (part, opened): (EncodedChunk, Option<GetResult>),
    leaves: Vec<DecodeUnit>,
) -> Result<(), ArrayError> {
    let leaves = write_cached(&source, &sink, &part, leaves).await?;
    let Some(range) = span(&leaves) else { return Ok(()) };
    let encoded = match opened {
        Some(value) => source.receive(value).await?,
        None => source.fetch(&part.key, range.clone()).await?,
    };
    let write_work = leaves.iter().map(|leaf| sink.write_work(&source, &leaf.selection)).fold(0, u64::saturating_add);
    let light = is_cheap(&source, &leaves) && Cost::of(Work::OnlyCopy, write_work).is_at_once();
    let cost = Cost::codec(leaves.iter().map(DecodeUnit::decode_work).fold(0, u64::saturating_add));
    let (work, own_sink, fetched) = (source.clone(), sink.clone(), part.clone());
    let all = move || decode_fetched(&work, &*own_sink, (&fetched, range, encoded), (leaves, cost.nicer()));
    let deferred = if light { all()? } else { source.context.run(cost, all).await?? };
    for DeferredUnit { unit, interest } in deferred {
        let inner = EncodedChunk { range: unit.range.clone(), ..part.clone() };
        decode_once(source.clone(), sink.clone(), (inner, None), unit, interest).await?;
    }
    Ok(())
}

/// Decodes units of a fetched range, on a thread of this increment of the nice value. Returns those that other reads decode.
fn decode_fetched(
    source: &ReadContext,
    sink: &dyn ElementSink,
    (part, range, encoded): (&EncodedChunk, Range<u64>, Bytes),
    (leaves, nicer): (Vec<DecodeUnit>, i32),
) -> Result<Vec<DeferredUnit>, ArrayError> {
    let (mut deferred, mut deferred_bytes) = (Vec::new(), 0_u64);
    let last = leaves.len().saturating_sub(1);
    let shared = leaves.iter().any(|leaf| leaf.is_cacheable(source)).then(|| encoded.clone());
    let mut encoded = Some(encoded);
    for (index, leaf) in leaves.into_iter().enumerate() {
        let all = if index == last { encoded.take() } else { encoded.clone() };
        let elements = match unit_step(source, (part, &leaf), nicer)? {
            UnitStep::Found(elements) => elements,
            UnitStep::Running(interest) if deferred_bytes.saturating_add(leaf.decoded_len()) <= MAX_DEFERRED => {
                deferred_bytes = deferred_bytes.saturating_add(leaf.decoded_len());
                deferred.push(DeferredUnit { unit: leaf, interest });
                continue;
            }
            UnitStep::Running(_) => decode_part(source, (part, &leaf), (all, &range, shared.as_ref()), None)?,
            UnitStep::Decode(turn) => decode_part(source, (part, &leaf), (all, &range, shared.as_ref()), turn)?,
        };
        sink.write(source, &leaf.shape, &leaf.selection, &elements)?;
    }
    Ok(deferred)
}

/// The next step towards the elements of a unit of a fetched range.
fn unit_step(
    source: &ReadContext,
    (part, leaf): (&EncodedChunk, &DecodeUnit),
    nicer: i32,
) -> Result<UnitStep, ArrayError> {
    let Some(interest) = leaf.interest(source, part) else { return Ok(UnitStep::Decode(None)) };
    // It may have been decoded before the interest began.
    if let Some(elements) = leaf.cached(source, part) {
        source.metrics.cached();
        return Ok(UnitStep::Found(elements));
    }
    Ok(match interest.decode_step(nicer) {
        DecodeStep::Decoded(elements) => {
            source.metrics.shared();
            source.spend_decode(leaf.chain(), &elements)?;
            UnitStep::Found(elements)
        }
        DecodeStep::Running => UnitStep::Running(interest),
        DecodeStep::Decode(turn) => UnitStep::Decode(Some(turn)),
    })
}

/// Decodes a unit of a fetched range, all of which `shared` is if the unit is cached.
fn decode_part(
    source: &ReadContext,
    (part, leaf): (&EncodedChunk, &DecodeUnit),
    (all, range, shared): (Option<Bytes>, &Range<u64>, Option<&Bytes>),
    turn: Option<Turn>,
) -> Result<Elements, ArrayError> {
    let undecodable = |error| source.chunk_error(part, error);
    let stored = all.and_then(|all| slice_fetched(&all, range, &leaf.range));
    let stored = stored.ok_or_else(|| undecodable(out_of_bounds()))?;
    // The decoder of the last unit frees what it no longer needs.
    let elements =
        source.measure_decode(|| leaf.decode(stored, source.variable_length_budget())).map_err(undecodable)?;
    let elements = match shared {
        Some(fetched) if leaf.is_cacheable(source) && is_part_of(&elements, fetched) => copied(&elements),
        _ => elements,
    };
    cache(source, (part, leaf), &elements);
    if let Some(turn) = turn {
        turn.decoded(&elements);
    }
    source.spend_decode(leaf.chain(), &elements)?;
    Ok(elements)
}

/// Writes the units that are cached; returns the others.
async fn write_cached(
    source: &Arc<ReadContext>,
    sink: &Arc<dyn ElementSink>,
    part: &EncodedChunk,
    leaves: Vec<DecodeUnit>,
) -> Result<Vec<DecodeUnit>, ArrayError> {
    let (mut left, mut cached, mut steps) = (Vec::with_capacity(leaves.len()), Vec::new(), 0_u64);
    for leaf in leaves {
        match leaf.cached(source, part) {
            Some(elements) => {
                source.metrics.cached();
                steps = steps.saturating_add(sink.write_work(source, &leaf.selection));
                cached.push((leaf, elements));
            }
            None => left.push(leaf),
        }
    }
    let (work, sink) = (source.clone(), sink.clone());
    let write = move || {
        cached.iter().try_for_each(|(leaf, elements)| sink.write(&work, &leaf.shape, &leaf.selection, elements))
    };
    source.context.run(Cost::of(Work::OnlyCopy, steps), write).await??;
    Ok(left)
}

fn span(leaves: &[DecodeUnit]) -> Option<Range<u64>> {
    let start = leaves.iter().map(|leaf| leaf.range.start).min()?;
    let end = leaves.iter().map(|leaf| leaf.range.end).max()?;
    Some(start..end)
}

fn slice_fetched(encoded: &Bytes, fetched: &Range<u64>, range: &Range<u64>) -> Option<Bytes> {
    let start = usize::try_from(range.start.checked_sub(fetched.start)?).ok()?;
    let end = usize::try_from(range.end.checked_sub(fetched.start)?).ok()?;
    (start <= end && end <= encoded.len()).then(|| encoded.slice(start..end))
}

/// A copy of elements that are a part of what was fetched, all of which they would keep in memory.
fn copied(elements: &Elements) -> Elements {
    match elements {
        Elements::Fixed(bytes) => Elements::Fixed(Bytes::copy_from_slice(bytes)),
        Elements::Variable(_) => elements.clone(),
    }
}

/// True if elements are a part of what was fetched.
fn is_part_of(elements: &Elements, fetched: &Bytes) -> bool {
    matches!(elements, Elements::Fixed(bytes) if fetched.as_ptr_range().contains(&bytes.as_ptr()))
}

/// The bytes, and a function that returns true while any of them are in use.
fn watched(bytes: Bytes) -> (Bytes, impl Fn() -> bool) {
    struct Watched {
        bytes: Bytes,
        _user: Arc<()>,
    }
    impl AsRef<[u8]> for Watched {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    let users = Arc::new(());
    let watched = Watched { bytes, _user: users.clone() };
    (Bytes::from_owner(watched), move || Arc::strong_count(&users) > 1)
}

fn out_of_bounds() -> CodecError {
    CodecError::Malformed { codec: "sharding_indexed", reason: "a part lies outside what was fetched" }
}

impl ReadContext {
    /// Counts the work of a decoded unit, and fails if the budget is exceeded: an estimate does not know the size of
    /// elements of variable length, nor that a chunk is decoded twice for lack of memory.
    fn spend_decode(&self, chain: &CodecChain, elements: &Elements) -> Result<(), ArrayError> {
        match (chain.partial_access(), elements) {
            (PartialAccess::Elements(_), Elements::Fixed(bytes)) => self.work_budget.spend(bytes.len() as u64),
            _ => self.work_budget.spend(chain.decode_work(elements.memory_size())),
        }
    }
}
