//! Metrics of the disk cache.

use prometheus_client::{
    collector::Collector,
    encoding::DescriptorEncoder,
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};
use zarrd_store::{PieceCacheStatus, Pieces};

/// The disk cache of a server.
#[derive(Debug)]
pub(crate) struct DiskCacheMetrics(pub(crate) Pieces);

impl Collector for DiskCacheMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let PieceCacheStatus { hits, misses, written, failures, damaged, .. } = self.0.status();
        let PieceCacheStatus { read_bytes, written_bytes, used_bytes, capacity_bytes, .. } = self.0.status();
        let counters = [
            ("disk_cache_hits", "Pieces of values that were read from the disk cache", None, hits),
            ("disk_cache_misses", "Pieces of values that were read from their stores, and not cached", None, misses),
            ("disk_cache_pieces_written", "Pieces of values that were written to the disk cache", None, written),
            ("disk_cache_read", "Bytes that were read from the disk cache", Some(&Unit::Bytes), read_bytes),
            ("disk_cache_written", "Bytes that were written to the disk cache", Some(&Unit::Bytes), written_bytes),
            ("disk_cache_failures", "Pieces that the disk cache could not write or read", None, failures),
            ("disk_cache_damaged", "Pieces in the disk cache that were damaged", None, damaged),
        ];
        for (name, help, unit, value) in counters {
            let encoder = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
            prometheus_client::encoding::EncodeMetric::encode(&ConstCounter::new(value), encoder)?;
        }
        let gauges = [
            ("disk_cache", "Space that the disk cache may take", capacity_bytes),
            ("disk_cache_used", "Space of the disk cache that is in use", used_bytes),
        ];
        for (name, help, value) in gauges {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            let encoder = encoder.encode_descriptor(name, help, Some(&Unit::Bytes), MetricType::Gauge)?;
            prometheus_client::encoding::EncodeMetric::encode(&ConstGauge::new(value), encoder)?;
        }
        Ok(())
    }
}
