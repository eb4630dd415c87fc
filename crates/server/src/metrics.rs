//! What the server counts, for Prometheus.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64},
    },
    time::Duration,
};

use array::{Arrays, Usage};
use http::{Method, StatusCode};
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

/// The server's metrics.
pub(crate) struct Metrics {
    registry: Registry,
    counts: Arc<Counts>,
}

/// A request that is being answered; dropping it ends it.
pub(crate) struct Running(Arc<Counts>);

/// A connection that is open; dropping it ends it.
pub(crate) struct Connected(Arc<Counts>);

struct Counts {
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    received: Counter<u64, AtomicU64>,
    sent: Counter<u64, AtomicU64>,
    running: Gauge<i64, AtomicI64>,
    connections: Gauge<i64, AtomicI64>,
    turned_away: Counter<u64, AtomicU64>,
    dismissed: Counter<u64, AtomicU64>,
    memory: Shared,
    threads: Shared,
    decoded: Counter<u64, AtomicU64>,
    cached: Counter<u64, AtomicU64>,
    cache_capacity: Gauge<i64, AtomicI64>,
    cache_used: Gauge<i64, AtomicI64>,
}

/// What requests share, and who waits for it.
#[derive(Clone, Default)]
struct Shared {
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
    pub(crate) fn new() -> Self {
        let counts = Counts {
            requests: Family::default(),
            durations: Family::new_with_constructor(durations),
            received: Counter::default(),
            sent: Counter::default(),
            running: Gauge::default(),
            connections: Gauge::default(),
            turned_away: Counter::default(),
            dismissed: Counter::default(),
            memory: Shared::default(),
            threads: Shared::default(),
            decoded: Counter::default(),
            cached: Counter::default(),
            cache_capacity: Gauge::default(),
            cache_used: Gauge::default(),
        };
        let mut registry = Registry::with_prefix("zarrd");
        registry.register("http_requests", "Requests that were answered", counts.requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time from the head of a request to the head of its answer",
            Unit::Seconds,
            counts.durations.clone(),
        );
        let received = counts.received.clone();
        registry.register_with_unit("http_received", "Bytes of bodies that were received", Unit::Bytes, received);
        registry.register_with_unit("http_sent", "Bytes of bodies that were sent", Unit::Bytes, counts.sent.clone());
        registry.register("http_requests_running", "Requests that are being answered", counts.running.clone());
        registry.register("http_connections", "Connections that are open", counts.connections.clone());
        let turned_away = counts.turned_away.clone();
        registry.register("http_connections_turned_away", "Connections beyond the limit", turned_away);
        let dismissed = counts.dismissed.clone();
        registry.register("http_connections_dismissed", "Idle connections that were closed for new ones", dismissed);
        counts.register_shared(&mut registry);
        registry.register(
            "array_chunks_decoded",
            "Chunks, or parts of shards, that were decoded",
            counts.decoded.clone(),
        );
        let cached = counts.cached.clone();
        registry.register("array_chunks_cached", "Chunks that were wanted and already decoded", cached);
        Self { registry, counts: Arc::new(counts) }
    }

    /// A request came.
    pub(crate) fn begin(&self) -> Running {
        self.counts.running.inc();
        Running(self.counts.clone())
    }

    /// A connection came.
    pub(crate) fn connect(&self) -> Connected {
        self.counts.connections.inc();
        Connected(self.counts.clone())
    }

    /// A connection came that was too many.
    pub(crate) fn turn_away(&self) {
        self.counts.turned_away.inc();
    }

    /// An idle connection was closed for a new one.
    pub(crate) fn dismiss(&self) {
        self.counts.dismissed.inc();
    }

    /// Bytes of a body came.
    pub(crate) fn received(&self, bytes: u64) {
        self.counts.received.inc_by(bytes);
    }

    /// Elements of an array were read.
    pub(crate) fn worked(&self, work: array::ReadStats) {
        self.counts.decoded.inc_by(work.decoded);
        self.counts.cached.inc_by(work.cached);
    }

    /// The metrics in the text format.
    pub(crate) fn render(&self, arrays: &Arrays) -> Result<String, std::fmt::Error> {
        set(&self.counts.cache_capacity, arrays.cache_capacity());
        set(&self.counts.cache_used, arrays.cached_bytes());
        self.counts.memory.set(arrays.memory().usage());
        self.counts.threads.set(arrays.threads());
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Counts {
    fn register_shared(&self, registry: &mut Registry) {
        let Shared { total, taken, waiting } = self.memory.clone();
        registry.register_with_unit("memory", "What all requests together may hold", Unit::Bytes, total);
        registry.register_with_unit("memory_taken", "What they hold", Unit::Bytes, taken);
        registry.register("memory_waiting", "Requests that wait for memory", waiting);
        let Shared { total, taken, waiting } = self.threads.clone();
        registry.register("decoding_threads", "Chunks that are decoded or encoded at a time, at the most", total);
        registry.register("decoding_threads_taken", "Pieces of work that decode or encode", taken);
        registry.register("decoding_threads_waiting", "Pieces of work that wait to", waiting);
        let (capacity, used) = (self.cache_capacity.clone(), self.cache_used.clone());
        registry.register_with_unit("chunk_cache", "Capacity of the cache of decoded chunks", Unit::Bytes, capacity);
        registry.register_with_unit("chunk_cache_used", "Decoded chunks that are cached", Unit::Bytes, used);
    }
}

impl Shared {
    fn set(&self, usage: Usage) {
        set(&self.total, usage.total);
        set(&self.taken, usage.taken);
        set(&self.waiting, usage.waiting);
    }
}

impl Running {
    /// The request was answered, but for the body.
    pub(crate) fn answered(&self, route: &'static str, method: &Method, status: StatusCode, took: Duration) {
        let method = label(method);
        self.0.requests.get_or_create(&RequestLabels { route, method, status: status.as_u16() }).inc();
        self.0.durations.get_or_create(&RouteLabels { route, method }).observe(took.as_secs_f64());
    }

    /// Bytes of the answer's body went.
    pub(crate) fn sent(&self, bytes: u64) {
        self.0.sent.inc_by(bytes);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.dec();
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}

fn set(gauge: &Gauge<i64, AtomicI64>, amount: u64) {
    gauge.set(i64::try_from(amount).unwrap_or(i64::MAX));
}

/// 100 µs to about 26 s.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 10))
}

/// A closed list, so that clients cannot make up labels.
fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
