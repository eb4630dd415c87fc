//! The table of limits: where each kind of work runs.
//!
//! The unit of work is a step, which is about a nanosecond. A switch to another thread and back takes 13 µs if a core is
//! free, and 80 if all are busy (`cargo run -p zarrd-executor --example switch`), so what takes less than some tens of microseconds runs
//! at once. What runs on the threads of small requests delays them, so it takes at most about a millisecond.

use std::time::Duration;

/// The number of steps up to which a job is small: it has a thread of normal priority, and one that is reserved for small
/// jobs if no other is free. Larger jobs run in the background, since each of them may delay a small request by its length:
/// with 2²⁰ steps by about a millisecond.
pub const SMALL_JOB_STEPS: u64 = 1 << 20;

/// The threads that run jobs at a time, for each processor: two, so that none is idle while a permit passes from one job
/// to the next.
pub const THREADS_PER_CORE: u64 = 2;

/// The threads that only small jobs get.
pub const THREADS_FOR_SMALL_JOBS: u64 = 1;

/// The longest wait for a thread. A job holds its memory by then, so the number of waiting jobs is bounded.
pub const THREAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of clients from which on requests that are not small leave: a small one waits for the steps of all others
/// that come at the same time. With 1,024 clients that read points, or gzip, a GET of a value waited for 20 to 60 ms.
pub const CROWD: usize = 64;

/// The number of a caller's connections from which on others of the same caller run in the runtime of crowds: the requests of
/// others wait for neither their parsing nor their responses. Browsers and libraries have fewer.
pub const CROWD_CONNECTIONS: usize = 64;

/// The increment of the nice value of background threads: if cores are short, the operating system's scheduler gives them
/// a ninth of what it gives to others.
pub const BACKGROUND_NICER: i32 = 10;

/// The same for connections of callers that have many: a third.
pub const CROWD_NICER: i32 = 5;

/// A kind of work. The variants say what one unit of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Steps of decoding, encoding or ordering elements.
    Codec,
    /// Bytes of elements that are copied, filled in or added to a result.
    Copy,
    /// Bytes of elements that are copied, where a read has nothing else to do for them.
    OnlyCopy,
    /// Bytes of uncompressed chunks that are copied, of several at a time.
    RawChunks,
    /// Bytes of chunks that are assembled and encoded. The steps depend on their codecs.
    Encode,
    /// Steps of computing with labels, or of merging partial results.
    Compute,
    /// Chunks or points that are planned.
    Plan,
    /// Bytes of documents that are parsed or searched, or of text that is rendered.
    Documents,
    /// Bytes of a document that a request declares a node with, whose parts are checked against their specifications.
    Declaration,
    /// Bytes of memory of a tree, or of a response that is encoded at once.
    Tree,
    /// Nodes of a tree that are put together.
    Nodes,
    /// Keys that are looked up.
    Lookups,
    /// Keys that are listed to find the nodes of a tree.
    Scan,
    /// Bytes of consolidated metadata that is updated.
    ConsolidatedMetadata,
    /// Bytes of a response that are compressed in one step.
    Compression,
    /// Bytes of a request's body, of which a small request has few.
    RequestBody,
    /// Chunks of a request, of which a small request has few.
    RequestChunks,
}

/// The effect of a job that is not small on its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargeJob {
    /// The job runs in the background, and its request stays.
    AloneInBackground,
    /// The request moves to the background first, with all that it starts afterwards: many such jobs follow each other.
    WithItsRequest,
}

/// The limits of a kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The kind.
    pub work: Work,
    /// The amount up to which it runs at once, on the thread that asks; `None` if it never does.
    pub at_once: Option<u64>,
    /// The steps that a unit takes.
    pub steps: u64,
    /// The effect of a large job on its request.
    pub large: LargeJob,
    /// The reason for these numbers.
    pub reason: &'static str,
    /// The measurement that they rest on.
    pub measured: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl Work {
    /// All kinds, in the order of the table.
    pub const ALL: [Self; 17] = [
        Self::Codec,
        Self::Copy,
        Self::OnlyCopy,
        Self::RawChunks,
        Self::Encode,
        Self::Compute,
        Self::Plan,
        Self::Documents,
        Self::Declaration,
        Self::Tree,
        Self::Nodes,
        Self::Lookups,
        Self::Scan,
        Self::ConsolidatedMetadata,
        Self::Compression,
        Self::RequestBody,
        Self::RequestChunks,
    ];

    /// The row of the table.
    #[inline]
    #[rustfmt::skip]
    pub const fn limits(self) -> Limits {
        use LargeJob::{AloneInBackground as Alone, WithItsRequest as With};
        match self {
            Self::Codec => row(self, None, 1, Alone,
                "a decoder may take longer than its estimate, so none runs on a worker",
                "a byte takes 2 ns with zstd, 5 with deflate, 30 with lzma and 60 with bz2"),
            Self::Copy => row(self, Some(64 * KIB), 1, Alone,
                "copying takes less time than a switch of threads",
                "64 KiB are copied in 2 to 11 µs, and a switch takes 13 to 80"),
            Self::OnlyCopy => row(self, Some(2 * MIB), 1, Alone,
                "one copy is all that the read has to do, so no other part of it waits",
                "2 MiB are copied in 0.8 to 1 ms"),
            Self::RawChunks => row(self, Some(128 * KIB), 1, Alone,
                "several are fetched at a time, so their copies follow each other on one worker",
                "128 KiB are copied in 20 to 50 µs"),
            Self::Encode => row(self, Some(32 * KIB), 1, Alone,
                "assembling and encoding take longer than a copy",
                "32 KiB take 5 µs to copy, and 65 to 650 with zstd at level 1"),
            Self::Compute => row(self, Some(64 * KIB), 1, Alone,
                "it takes less time than a switch of threads",
                "2¹⁶ steps are 65 µs, and a switch takes 13 to 80"),
            Self::Plan => row(self, Some(1024), KIB, Alone,
                "a small job, and so little memory that it needs no permit",
                "1,024 at 1 Ki steps each are 1 ms"),
            Self::Documents => row(self, Some(64 * KIB), 16, With,
                "up to a millisecond, which is what small requests bear; above, several such jobs follow each other",
                "64 KiB at 16 ns for a byte are 1 ms; with 400 clients that read trees of 10,000 nodes, p99 of others' GET fell from 47 to 15 ms"),
            Self::Declaration => row(self, Some(16 * KIB), 16, With,
                "checking takes some times as long as parsing",
                "beside the same 400 clients, p99 of a PUT of a node fell from 144 to 62 ms"),
            Self::Tree => row(self, Some(4 * KIB), 16, With,
                "nodes are small and many, so bytes of memory take longer than those of text",
                "4 KiB at 16 ns for a byte are 65 µs, and a switch takes 13 to 80"),
            Self::Nodes => row(self, Some(1024), KIB, With,
                "a node is charged like 64 bytes of documents",
                "1,024 nodes at 1 Ki steps each are 1 ms"),
            Self::Lookups => row(self, Some(256), KIB, With,
                "indexes are in memory or cached, so a switch of threads takes longer than some look-ups",
                "without a switch one element at a time went from 25,200/s to 33,500/s with 16 connections"),
            Self::Scan => row(self, Some(128), KIB, With,
                "a walk lists a page for each group, and a page of this size is one look-up",
                "with 400 listings at once, the median of others' GET fell from 4.8 s to 17 ms in a debug build"),
            Self::ConsolidatedMetadata => row(self, Some(64 * KIB), 16, With,
                "a document is edited as text, while others wait for the commit",
                "64 KiB at 16 ns for a byte are 1 ms"),
            Self::Compression => row(self, Some(128 * KIB), 1, Alone,
                "a response of this size has its length in its head, and takes one step",
                "128 KiB take 0.3 to 3 ms with zstd at level 1"),
            Self::RequestBody => row(self, Some(256), 1, With,
                "a small request names a few numbers",
                "with 1,024 clients that read points, a GET of a value waited for 20 to 60 ms"),
            Self::RequestChunks => row(self, Some(8), 1, With,
                "a small request reads the chunks at a corner of three dimensions",
                "the same 20 to 60 ms, before such requests left"),
        }
    }
}

const fn row(
    work: Work,
    at_once: Option<u64>,
    steps: u64,
    large: LargeJob,
    reason: &'static str,
    measured: &'static str,
) -> Limits {
    Limits { work, at_once, steps, large, reason, measured }
}
