//! Progress of a response over HTTP/2, where the client may stall each stream by its flow-control window.

use std::{
    future::Future,
    io::IoSlice,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::slots::RequestInFlight;
use crate::progress_timeout::ProgressTimeout;

tokio::task_local! {
    /// The progress of the stream that the current task serves.
    static CURRENT: Arc<StreamProgress>;
}

/// The amount of data of a response that waits for the client.
///
/// Data counts from the moment when the response's body returns it until it is written to the connection. In between it
/// waits for the stream's window, in hyper or in h2.
pub(super) struct StreamProgress {
    state: Mutex<State>,
    /// Notified when no data is left.
    drained: Notify,
    /// The request, which is in progress as long as its data waits.
    request: Mutex<Option<RequestInFlight>>,
}

struct State {
    /// The time left to wait for the client.
    timeout: ProgressTimeout,
    /// The number of bytes that wait.
    unsent: u64,
    /// The start of the wait, or the time of the last write; `None` if nothing waits.
    waiting_since: Option<Instant>,
}

/// The maximum size of the pieces that are passed on, in bytes.
///
/// h2 queues a piece completely, and only a stream with further pieces can be reset when it stalls.
pub(super) const PIECE_BYTES: usize = 128 << 10;

/// A response's body that reports its data to a [`StreamProgress`].
pub(super) struct TrackedBody {
    body: Body,
    /// The rest of a large piece.
    rest: Bytes,
    progress: Arc<StreamProgress>,
}

/// Data of a body that is reported as sent when it is consumed or dropped.
pub(super) struct TrackedData {
    data: Bytes,
    progress: Arc<StreamProgress>,
}

impl StreamProgress {
    /// A stream without data yet.
    pub(super) fn new(timeout: ProgressTimeout) -> Arc<Self> {
        let state = State { timeout, unsent: 0, waiting_since: None };
        Arc::new(Self { state: Mutex::new(state), drained: Notify::new(), request: Mutex::new(None) })
    }

    /// The progress of the stream that the current task serves.
    pub(super) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Runs `stream`, whose [`TrackedBody`] reports to this progress.
    pub(super) async fn observe(self: &Arc<Self>, stream: impl Future<Output = ()>) {
        CURRENT.scope(self.clone(), stream).await;
    }

    /// Completes when the client has accepted data more slowly than the timeout allows.
    pub(super) async fn stalled(&self) {
        loop {
            let left = {
                let state = self.state.lock();
                let waited = state.waiting_since.map_or_else(Default::default, |since| since.elapsed());
                state.timeout.remaining().saturating_sub(waited)
            };
            if left.is_zero() {
                return;
            }
            // No event shortens the time that is left.
            sleep(left).await;
        }
    }

    /// Completes when all data is sent.
    pub(super) async fn drained(&self) {
        loop {
            let drained = self.drained.notified();
            if self.state.lock().unsent == 0 {
                return;
            }
            drained.await;
        }
    }

    fn add(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.unsent = state.unsent.saturating_add(bytes);
        if state.unsent > 0 {
            state.waiting_since.get_or_insert_with(Instant::now);
        }
    }

    fn remove(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mut state = self.state.lock();
        let waited = state.waiting_since.map_or_else(Default::default, |since| since.elapsed());
        state.timeout.record(waited, bytes);
        state.unsent = state.unsent.saturating_sub(bytes);
        state.waiting_since = (state.unsent > 0).then(Instant::now);
        if state.unsent == 0 {
            self.drained.notify_waiters();
        }
    }
}

impl TrackedBody {
    /// Wraps the body of the response to `request`.
    pub(super) fn new(body: Body, progress: Arc<StreamProgress>, request: RequestInFlight) -> Self {
        *progress.request.lock() = Some(request);
        Self { body, rest: Bytes::new(), progress }
    }

    /// Passes on the next piece of `data`, and stores the rest.
    fn track(&mut self, mut data: Bytes) -> TrackedData {
        let piece = data.split_to(data.len().min(PIECE_BYTES));
        self.rest = data;
        TrackedData::new(piece, self.progress.clone())
    }
}

impl http_body::Body for TrackedBody {
    type Data = TrackedData;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<TrackedData>, axum::Error>>> {
        if !self.rest.is_empty() {
            let rest = mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(Frame::data(self.track(rest)))));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_ok(|frame| frame.map_data(|data| self.track(data)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(body.lower().saturating_add(rest));
        hint
    }
}

impl TrackedData {
    fn new(data: Bytes, progress: Arc<StreamProgress>) -> Self {
        progress.add(data.len() as u64);
        Self { data, progress }
    }
}

impl Buf for TrackedData {
    fn remaining(&self) -> usize {
        self.data.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.data
    }

    fn chunks_vectored<'a>(&'a self, pieces: &mut [IoSlice<'a>]) -> usize {
        self.data.chunks_vectored(pieces)
    }

    fn advance(&mut self, bytes: usize) {
        self.data.advance(bytes);
        self.progress.remove(bytes as u64);
    }
}

impl Drop for TrackedData {
    fn drop(&mut self) {
        self.progress.remove(self.data.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU64, time::Duration};

    use http_body_util::BodyExt;
    use tokio::time::timeout;

    use super::*;
    use crate::{serve::slots::ConnectionSlots, settings::Limits};

    const SECOND: Duration = Duration::from_secs(1);

    /// 60 seconds, and 1,000 bytes per second.
    fn progress() -> Arc<StreamProgress> {
        let limits = Limits { download_timeout: 60 * SECOND, min_rate: NonZeroU64::new(1000), ..Limits::default() };
        StreamProgress::new(ProgressTimeout::for_downloads(&limits))
    }

    fn data(progress: &Arc<StreamProgress>, bytes: usize) -> TrackedData {
        TrackedData::new(vec![0; bytes].into(), progress.clone())
    }

    async fn ends_within(progress: &StreamProgress, seconds: u32) -> bool {
        timeout(seconds * SECOND, progress.stalled()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn stream_without_unsent_data_never_stalls() {
        let progress = progress();
        assert!(!ends_within(&progress, 600).await);
        drop(data(&progress, 10));
        assert!(!ends_within(&progress, 600).await);
    }

    #[tokio::test(start_paused = true)]
    async fn unsent_data_stalls_after_the_timeout() {
        let progress = progress();
        let _data = data(&progress, 10);
        assert!(!ends_within(&progress, 59).await);
        assert!(ends_within(&progress, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn trickled_data_stalls_below_the_minimum_rate() {
        let progress = progress();
        let mut data = data(&progress, 100_000);
        for _ in 0..5 {
            assert!(!ends_within(&progress, 10).await);
            data.advance(1);
        }
        assert!(ends_within(&progress, 11).await);
    }

    #[tokio::test(start_paused = true)]
    async fn steady_data_does_not_stall() {
        let progress = progress();
        let mut data = data(&progress, 1_000_000);
        for _ in 0..100 {
            assert!(!ends_within(&progress, 10).await);
            data.advance(10_000);
        }
        progress.drained().await;
    }

    #[tokio::test]
    async fn request_is_in_progress_until_its_data_is_sent() {
        let slots = ConnectionSlots::new(1);
        let (slot, _) = slots.acquire(None).unwrap();
        let request = slot.activity().begin_request().unwrap();
        let progress = progress();
        let mut body = TrackedBody::new(Body::from("hello"), progress.clone(), request);
        drop(progress);
        let frame = body.frame().await.unwrap().unwrap();
        drop(body);
        assert_eq!(slot.activity().requests(), 1);
        drop(frame);
        assert_eq!(slot.activity().requests(), 0);
    }

    #[tokio::test]
    async fn large_pieces_are_split() {
        let slots = ConnectionSlots::new(1);
        let (slot, _) = slots.acquire(None).unwrap();
        let request = slot.activity().begin_request().unwrap();
        let bytes = 2 * PIECE_BYTES + 5;
        let mut body = TrackedBody::new(Body::from(vec![1; bytes]), progress(), request);
        for (piece, left) in [(PIECE_BYTES, PIECE_BYTES + 5), (PIECE_BYTES, 5), (5, 0)] {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.data_ref().unwrap().remaining(), piece);
            assert_eq!(http_body::Body::size_hint(&body).exact(), Some(left as u64));
            assert_eq!(http_body::Body::is_end_stream(&body), left == 0);
        }
        assert!(body.frame().await.is_none());
    }
}
