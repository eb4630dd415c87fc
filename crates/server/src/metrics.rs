//! Prometheus metrics.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{Method, StatusCode};
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, text},
    metrics::{
        MetricType,
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use zarrd_array::{Arrays, Usage};
use zarrd_store::{DiskSpace, Pieces, ScrubStatus, WaitTimes, WaitTotals};

use crate::{disk_cache_metrics::DiskCacheMetrics, request_log::RequestLogs, store_totals::Totals};

/// The server's metrics.
pub(crate) struct Metrics {
    registry: Registry,
    instruments: Arc<Instruments>,
}

/// A request in progress, until dropped.
pub(crate) struct InFlightGuard(Arc<Instruments>);

/// An open connection, until dropped.
pub(crate) struct ConnectionGuard(Arc<Instruments>);

struct Instruments {
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    received: Counter<u64, AtomicU64>,
    sent: Counter<u64, AtomicU64>,
    in_flight: Gauge<i64, AtomicI64>,
    connections: Gauge<i64, AtomicI64>,
    rejected_connections: Counter<u64, AtomicU64>,
    evicted_connections: Counter<u64, AtomicU64>,
    memory: SharedResource,
    threads: SharedResource,
    decoded: Counter<u64, AtomicU64>,
    cached: Counter<u64, AtomicU64>,
    shared: Counter<u64, AtomicU64>,
    cache_capacity: Gauge<i64, AtomicI64>,
    cache_used: Gauge<i64, AtomicI64>,
    result_cache_capacity: Gauge<i64, AtomicI64>,
    result_cache_used: Gauge<i64, AtomicI64>,
    store: StoreGauges,
}

/// The values of the store at the last request for metrics, as far as they are known.
#[derive(Clone, Debug, Default)]
struct StoreGauges(Arc<Mutex<StoreValues>>);

#[derive(Clone, Debug, Default)]
struct StoreValues {
    totals: Option<Totals>,
    space: Option<DiskSpace>,
    scrub: Option<ScrubStatus>,
}

/// The times that requests waited in queues, by the queue's name.
#[derive(Debug)]
struct QueueWaits(Vec<(&'static str, Arc<WaitTimes>)>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QueueLabels {
    queue: &'static str,
}

/// Usage of a resource shared by all requests.
#[derive(Clone, Default)]
struct SharedResource {
    total: Gauge<i64, AtomicI64>,
    taken: Gauge<i64, AtomicI64>,
    waiting: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
    method: &'static str,
}

impl Metrics {
    /// New metrics: of the logs, of these queues by name, and of the disk cache if there is one.
    pub(crate) fn new(
        logs: &RequestLogs,
        queues: Vec<(&'static str, Arc<WaitTimes>)>,
        disk_cache: Option<Pieces>,
    ) -> Self {
        let instruments = Instruments {
            requests: Family::default(),
            durations: Family::new_with_constructor(duration_histogram),
            received: Counter::default(),
            sent: Counter::default(),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            rejected_connections: Counter::default(),
            evicted_connections: Counter::default(),
            memory: SharedResource::default(),
            threads: SharedResource::default(),
            decoded: Counter::default(),
            cached: Counter::default(),
            shared: Counter::default(),
            cache_capacity: Gauge::default(),
            cache_used: Gauge::default(),
            result_cache_capacity: Gauge::default(),
            result_cache_used: Gauge::default(),
            store: StoreGauges::default(),
        };
        let mut registry = Registry::with_prefix("zarrd");
        registry.register("http_requests", "Requests by route, method and status", instruments.requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time from the head of a request to the head of its response",
            Unit::Seconds,
            instruments.durations.clone(),
        );
        let received = instruments.received.clone();
        registry.register_with_unit("http_received", "Received bytes of request bodies", Unit::Bytes, received);
        registry.register_with_unit(
            "http_sent",
            "Sent bytes of response bodies",
            Unit::Bytes,
            instruments.sent.clone(),
        );
        registry.register("http_requests_running", "Requests in progress", instruments.in_flight.clone());
        registry.register("http_connections", "Open connections", instruments.connections.clone());
        let rejected_connections = instruments.rejected_connections.clone();
        registry.register(
            "http_connections_turned_away",
            "Connections rejected because of the limit",
            rejected_connections,
        );
        let evicted_connections = instruments.evicted_connections.clone();
        registry.register(
            "http_connections_dismissed",
            "Idle connections closed in favour of new ones",
            evicted_connections,
        );
        instruments.register_shared(&mut registry);
        registry.register(
            "array_chunks_decoded",
            "Decoded chunks, including inner chunks of shards",
            instruments.decoded.clone(),
        );
        let cached = instruments.cached.clone();
        registry.register("array_chunks_cached", "Chunks served from the cache of decoded chunks", cached);
        let shared = instruments.shared.clone();
        registry.register("array_chunks_shared", "Chunks that another read was decoding", shared);
        let dropped = logs.dropped().clone();
        registry.register("log_lines_dropped", "Lines of the access log and the audit log that were lost", dropped);
        registry.register_collector(Box::new(QueueWaits(queues)));
        if let Some(pieces) = disk_cache {
            registry.register_collector(Box::new(DiskCacheMetrics(pieces)));
        }
        registry.register_collector(Box::new(instruments.store.clone()));
        Self { registry, instruments: Arc::new(instruments) }
    }

    /// Counts a request in progress.
    pub(crate) fn start_request(&self) -> InFlightGuard {
        self.instruments.in_flight.inc();
        InFlightGuard(self.instruments.clone())
    }

    /// Counts an open connection.
    pub(crate) fn open_connection(&self) -> ConnectionGuard {
        self.instruments.connections.inc();
        ConnectionGuard(self.instruments.clone())
    }

    /// Counts a connection rejected because of the limit.
    pub(crate) fn connection_rejected(&self) {
        self.instruments.rejected_connections.inc();
    }

    /// Counts an idle connection closed in favour of a new one.
    pub(crate) fn connection_evicted(&self) {
        self.instruments.evicted_connections.inc();
    }

    /// Counts received bytes of bodies.
    pub(crate) fn record_received(&self, bytes: u64) {
        self.instruments.received.inc_by(bytes);
    }

    /// Counts decoded, cached and shared chunks of a read.
    pub(crate) fn record_read(&self, stats: zarrd_array::ReadStats) {
        self.instruments.decoded.inc_by(stats.decoded);
        self.instruments.cached.inc_by(stats.cached);
        self.instruments.shared.inc_by(stats.shared);
    }

    /// Sets the values of the store, the space of its file system, and the state of its scrub.
    pub(crate) fn set_store(&self, totals: Option<Totals>, space: Option<DiskSpace>, scrub: Option<ScrubStatus>) {
        *self.instruments.store.0.lock() = StoreValues { totals, space, scrub };
    }

    /// Renders the metrics in the OpenMetrics text format.
    pub(crate) fn render(&self, arrays: &Arrays) -> Result<String, std::fmt::Error> {
        set_gauge(&self.instruments.cache_capacity, arrays.cache_capacity());
        set_gauge(&self.instruments.cache_used, arrays.cached_bytes());
        set_gauge(&self.instruments.result_cache_capacity, arrays.result_cache_capacity());
        set_gauge(&self.instruments.result_cache_used, arrays.result_cache_used());
        self.instruments.memory.set(arrays.memory().usage());
        self.instruments.threads.set(arrays.threads());
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Collector for QueueWaits {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let help = "Time that requests waited in a queue; those that did not wait are not counted";
        let mut encoder = encoder.encode_descriptor("queue_wait", help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (queue, waits) in &self.0 {
            let WaitTotals { count, sum, classes } = waits.totals();
            let bound = |bound: Option<Duration>| bound.map_or(f64::INFINITY, |bound| bound.as_micros() as f64 / 1e6);
            let buckets: Vec<_> = classes.into_iter().map(|(most, count)| (bound(most), count)).collect();
            let labels = QueueLabels { queue };
            let mut encoder = encoder.encode_family(&labels)?;
            encoder.encode_histogram::<QueueLabels>(sum.as_secs_f64(), count, &buckets, None)?;
        }
        Ok(())
    }
}

impl Collector for StoreGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let StoreValues { totals, space, scrub } = self.0.lock().clone();
        let scrub = scrub.as_ref();
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let gauges = [
            ("store_keys", "Keys of the store, as last counted", None, totals.map(|totals| totals.keys)),
            (
                "store",
                "Size of the values of the store, as last counted",
                Some(&Unit::Bytes),
                totals.map(|totals| totals.bytes),
            ),
            (
                "store_free",
                "Free space of the file system of the store",
                Some(&Unit::Bytes),
                space.map(|space| space.free_bytes),
            ),
            (
                "store_orphans",
                "Size of value files without a key that a crash left, in the directory orphans",
                Some(&Unit::Bytes),
                space.map(|space| space.orphan_bytes),
            ),
            (
                "store_damaged",
                "Damaged values and files of the store that its scrub found",
                None,
                scrub.map(|scrub| scrub.damaged),
            ),
            (
                "store_scrub_keys",
                "Keys that the running scrub of the store has checked, or the last one",
                None,
                scrub.map(|scrub| scrub.keys),
            ),
            (
                "store_scrub_read",
                "Size of what the running scrub of the store has read, or the last one",
                Some(&Unit::Bytes),
                scrub.map(|scrub| scrub.bytes),
            ),
            (
                "store_scrub_finished_time",
                "End of the last scrub of the store, since the Unix epoch; 0 if there was none",
                Some(&Unit::Seconds),
                scrub.map(|scrub| scrub.finished.map_or(0, seconds)),
            ),
        ];
        for (name, help, unit, value) in gauges {
            if let Some(value) = value {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }
}

impl Instruments {
    fn register_shared(&self, registry: &mut Registry) {
        let SharedResource { total, taken, waiting } = self.memory.clone();
        registry.register_with_unit("memory", "Memory available to all requests together", Unit::Bytes, total);
        registry.register_with_unit("memory_taken", "Memory held by requests", Unit::Bytes, taken);
        registry.register("memory_waiting", "Requests waiting for memory", waiting);
        let SharedResource { total, taken, waiting } = self.threads.clone();
        registry.register("decoding_threads", "Maximum number of concurrent decoding and encoding jobs", total);
        registry.register("decoding_threads_taken", "Decoding and encoding jobs in progress", taken);
        registry.register("decoding_threads_waiting", "Decoding and encoding jobs waiting for a thread", waiting);
        let (capacity, used) = (self.cache_capacity.clone(), self.cache_used.clone());
        registry.register_with_unit("chunk_cache", "Capacity of the cache of decoded chunks", Unit::Bytes, capacity);
        registry.register_with_unit("chunk_cache_used", "Size of the cached decoded chunks", Unit::Bytes, used);
        let (capacity, used) = (self.result_cache_capacity.clone(), self.result_cache_used.clone());
        registry.register_with_unit("result_cache", "Capacity of the cache of results", Unit::Bytes, capacity);
        registry.register_with_unit("result_cache_used", "Size of the cached results", Unit::Bytes, used);
    }
}

impl SharedResource {
    fn set(&self, usage: Usage) {
        set_gauge(&self.total, usage.total);
        set_gauge(&self.taken, usage.taken);
        set_gauge(&self.waiting, usage.waiting);
    }
}

impl InFlightGuard {
    /// Counts the response and its latency, up to the head.
    pub(crate) fn record_response(&self, route: &'static str, method: &Method, status: StatusCode, elapsed: Duration) {
        let method = method_label(method);
        self.0.requests.get_or_create(&RequestLabels { route, method, status: status.as_u16() }).inc();
        self.0.durations.get_or_create(&RouteLabels { route, method }).observe(elapsed.as_secs_f64());
    }

    /// Counts sent bytes of bodies.
    pub(crate) fn record_sent(&self, bytes: u64) {
        self.0.sent.inc_by(bytes);
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}

fn set_gauge(gauge: &Gauge<i64, AtomicI64>, amount: u64) {
    gauge.set(i64::try_from(amount).unwrap_or(i64::MAX));
}

/// Buckets from 100 µs to about 26 s.
fn duration_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 10))
}

/// Returns a label from a closed set, since clients choose the method.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => match method.as_str() {
            "PROPFIND" => "PROPFIND",
            "PROPPATCH" => "PROPPATCH",
            "MKCOL" => "MKCOL",
            "COPY" => "COPY",
            "MOVE" => "MOVE",
            _ => "other",
        },
    }
}
