//! Counts of stored chunks over two dimensions.

use zarrd_meta::chunk_keys::ChunkKeyDecoder;
use zarrd_store::{Entry, MAX_PAGE_ENTRIES, PageRequest, Prefix};

use super::{ChunkEntry, ChunkMap, TouchedChunks};
use crate::{
    error::ArrayError,
    work::{STEPS_PER_INNER_CHUNK, STEPS_PER_KEY},
};

/// The most bins along a dimension.
pub const MAX_BINS: u64 = 512;

/// The number of chunks up to which they are looked up one by one instead of listed, in a store that answers at once.
const MAX_LOOKUPS: u64 = 16 << 10;
/// The same for a store in which each answer may take a round trip.
const MAX_DISTANT_LOOKUPS: u64 = 1 << 10;
/// The number of chunks that are looked up in one snapshot.
const BATCH: u64 = 4096;

/// Stored chunks, counted in bins over up to two dimensions. All chunks along other dimensions are in one bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkBins {
    /// The dimensions of the bins.
    pub axes: Vec<BinAxis>,
    /// The number of touched chunks along all other dimensions.
    pub others: u64,
    /// The number of stored chunks in each bin, in C order.
    pub stored: Vec<u64>,
    /// Their size in bytes.
    pub bytes: Vec<u64>,
}

/// The bins along a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinAxis {
    /// The number of the dimension in the array.
    pub dimension: usize,
    /// The index of the first touched chunk in each bin.
    pub starts: Vec<u64>,
    /// The number of touched chunks in each bin.
    pub chunks: Vec<u64>,
}

impl ChunkMap {
    /// Counts the stored chunks in bins over these dimensions, different ones: at most `sizes` along each, which are
    /// capped at [`MAX_BINS`]. Chunks are counted as the store has them while it is asked, which may be different
    /// moments.
    ///
    /// Many chunks are listed instead of looked up, so that the work is that of those that are stored. A store without
    /// listings is asked for at most `max_chunks` chunks.
    pub async fn bins(&self, dimensions: &[usize], sizes: &[u64]) -> Result<ChunkBins, ArrayError> {
        let axes = dimensions.iter().zip(sizes).filter_map(|(&dimension, &size)| {
            let touched = self.axes.get(dimension)?;
            Some((dimension, touched, size.clamp(1, MAX_BINS).min(touched.len())))
        });
        let mut counter = Counter::new(self, axes.collect());
        let touched = self.touched();
        let at_once = if self.context.is_distant_at(self.array.path()) { MAX_DISTANT_LOOKUPS } else { MAX_LOOKUPS };
        match self.prefix() {
            None => {}
            Some(prefix) if touched > at_once && self.is_listed(&prefix) => {
                self.count_listed(&prefix, &mut counter).await?;
            }
            Some(_) => self.count_looked_up(&mut counter).await?,
        }
        Ok(counter.bins)
    }

    async fn count_looked_up(&self, counter: &mut Counter<'_>) -> Result<(), ArrayError> {
        let (touched, limit) = (self.touched(), self.context.options.max_chunks);
        if touched > limit {
            return Err(ArrayError::TooManyChunks { chunks: touched.into(), limit });
        }
        self.budget().spend(touched.saturating_mul(STEPS_PER_KEY))?;
        let mut start = 0;
        while start < touched {
            let end = start.saturating_add(BATCH).min(touched);
            for ChunkEntry { index, bytes, .. } in self.look_up(start..end).await? {
                if let Some(bytes) = bytes {
                    counter.add(&index, bytes);
                }
            }
            start = end;
        }
        Ok(())
    }

    async fn count_listed(&self, prefix: &Prefix, counter: &mut Counter<'_>) -> Result<(), ArrayError> {
        let (budget, decoder) = (self.budget(), self.model().chunk_key_decoder());
        let mut cursor = None;
        loop {
            let page = PageRequest { limit: MAX_PAGE_ENTRIES, cursor };
            let page = self.context.store.list_prefix(prefix, page).await?;
            // Lists of many keys delay no small request.
            zarrd_executor::leave().await;
            budget.spend((page.keys.len() as u64).saturating_mul(STEPS_PER_INNER_CHUNK))?;
            for entry in &page.keys {
                if let Some(index) = self.decoded(&decoder, entry) {
                    counter.add(&index, entry.meta.size);
                }
            }
            cursor = page.cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// The index of a chunk; `None` for other keys.
    fn decoded(&self, decoder: &ChunkKeyDecoder, entry: &Entry) -> Option<Vec<u64>> {
        decoder.decode(entry.key.as_str().strip_prefix(self.array.key_prefix())?)
    }
}

/// Counts chunks.
struct Counter<'m> {
    all: &'m [TouchedChunks],
    axes: Vec<(usize, &'m TouchedChunks, u64)>,
    bins: ChunkBins,
}

impl<'m> Counter<'m> {
    fn new(map: &'m ChunkMap, axes: Vec<(usize, &'m TouchedChunks, u64)>) -> Self {
        let count = axes.iter().fold(1_u64, |product, (.., bins)| product.saturating_mul(*bins));
        let others =
            map.axes.iter().enumerate().filter(|(dimension, _)| axes.iter().all(|(axis, ..)| axis != dimension));
        let zeros = vec![0; usize::try_from(count).unwrap_or_default()];
        let bins = ChunkBins {
            axes: axes.iter().map(|&(dimension, touched, bins)| BinAxis::new(dimension, touched, bins)).collect(),
            others: others.fold(1, |product, (_, axis)| product.saturating_mul(axis.len())),
            stored: zeros.clone(),
            bytes: zeros,
        };
        Self { all: &map.axes, axes, bins }
    }

    /// Counts a stored chunk, if the selection touches it.
    fn add(&mut self, index: &[u64], bytes: u64) {
        let is_touched = index.iter().zip(self.all).all(|(&chunk, axis)| axis.rank(chunk).is_some());
        if !is_touched || index.len() != self.all.len() {
            return;
        }
        let mut bin = 0_u64;
        for &(dimension, axis, bins) in &self.axes {
            let Some(rank) = index.get(dimension).and_then(|&chunk| axis.rank(chunk)) else { return };
            bin = bin.saturating_mul(bins).saturating_add(bin_of(rank, axis.len(), bins));
        }
        let Ok(bin) = usize::try_from(bin) else { return };
        if let (Some(stored), Some(sum)) = (self.bins.stored.get_mut(bin), self.bins.bytes.get_mut(bin)) {
            *stored = stored.saturating_add(1);
            *sum = sum.saturating_add(bytes);
        }
    }
}

impl BinAxis {
    fn new(dimension: usize, touched: &TouchedChunks, bins: u64) -> Self {
        let firsts: Vec<_> = (0..=bins).map(|bin| first_rank(bin, touched.len(), bins)).collect();
        let pairs = firsts.iter().zip(firsts.iter().skip(1));
        Self {
            dimension,
            starts: firsts.iter().take(firsts.len().saturating_sub(1)).map(|&rank| touched.at(rank)).collect(),
            chunks: pairs.map(|(first, next)| next.saturating_sub(*first)).collect(),
        }
    }
}

/// The bin of a rank among `len`.
fn bin_of(rank: u64, len: u64, bins: u64) -> u64 {
    let bin = u128::from(rank).saturating_mul(bins.into()).checked_div(len.into());
    bin.and_then(|bin| u64::try_from(bin).ok()).unwrap_or_default()
}

/// The first rank in a bin.
fn first_rank(bin: u64, len: u64, bins: u64) -> u64 {
    let rank = u128::from(bin).saturating_mul(len.into()).div_ceil(u128::from(bins.max(1)));
    u64::try_from(rank).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_at_their_first_rank() {
        for len in [1, 2, 7, 100, 513, u64::MAX] {
            for bins in [1, 2, 5, 512].into_iter().filter(|&bins| bins <= len) {
                for bin in 0..bins {
                    let first = first_rank(bin, len, bins);
                    assert_eq!(bin_of(first, len, bins), bin, "{bin} of {bins} over {len}");
                    assert!(first == 0 || bin_of(first - 1, len, bins) < bin);
                }
            }
        }
    }
}
