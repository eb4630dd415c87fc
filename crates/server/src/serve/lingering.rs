//! Lingering close, so that the last response arrives.

use std::{
    future::Future,
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::slots::Activity;

/// The limits of time and bytes for reading after the last response.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 64 << 20;

/// A stream that, when closed, drains input until the client closes too.
///
/// A client whose body is rejected early is still sending. If its socket were closed at once, the system would answer
/// with a reset, which can discard the response before the client reads it. During shutdown there is no lingering. The
/// stream also reports writes and flushes to the connection's [`Activity`].
pub(super) struct Lingering {
    stream: TcpStream,
    activity: Arc<Activity>,
    stopping: CancellationToken,
    /// The deadline of a close in progress.
    closing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    remaining: usize,
}

impl Lingering {
    pub(super) fn new(stream: TcpStream, activity: Arc<Activity>, stopping: CancellationToken) -> Self {
        Self { stream, activity, stopping, closing: None, remaining: LINGER_BYTES }
    }

    /// Reads and discards input; ready at its end or at the byte limit.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.remaining > 0 {
            let mut scratch = [MaybeUninit::uninit(); 16 << 10];
            let mut scratch = ReadBuf::uninit(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut scratch)) {
                Ok(()) if !scratch.filled().is_empty() => {
                    self.remaining = self.remaining.saturating_sub(scratch.filled().len())
                }
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.activity.mark_unsent();
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.activity.mark_unsent();
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.activity.mark_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.activity.mark_closing();
            let stopping = self.stopping.clone();
            self.closing = Some(Box::pin(async move {
                tokio::select! { () = sleep(LINGER_TIMEOUT) => (), () = stopping.cancelled() => () }
            }));
        }
        let overdue = self.closing.as_mut().is_none_or(|closing| closing.as_mut().poll(context).is_ready());
        if !overdue {
            ready!(self.poll_drain(context));
        }
        Poll::Ready(Ok(()))
    }
}
