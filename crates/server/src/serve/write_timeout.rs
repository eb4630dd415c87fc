//! Timeouts for clients that do not accept data.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use crate::progress_timeout::ProgressTimeout;

/// A stream whose writes fail if the client accepts data more slowly than its [`ProgressTimeout`] allows.
pub(super) struct WriteTimeoutStream<S> {
    stream: S,
    progress: ProgressTimeout,
    /// The start of the pending write's wait.
    waiting_since: Option<Instant>,
    /// The timer for the end of the wait; created at the first wait.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeoutStream<S> {
    pub(super) fn new(stream: S, progress: ProgressTimeout) -> Self {
        Self { stream, progress, waiting_since: None, deadline: None }
    }

    /// Records the result of a write, and fails a pending write that exceeds the timeout.
    fn account_write(&mut self, context: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Ok(bytes)) => {
                let waited = self.waiting_since.take().map_or_else(Default::default, |since| since.elapsed());
                self.progress.record(waited, bytes as u64);
                result
            }
            Poll::Ready(Err(_)) => result,
            Poll::Pending => self.poll_deadline(context).map(|()| Err(io::ErrorKind::TimedOut.into())),
        }
    }

    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.waiting_since.is_none() {
            let now = Instant::now();
            self.waiting_since = Some(now);
            let end = now + self.progress.remaining();
            match &mut self.deadline {
                Some(deadline) => deadline.as_mut().reset(end),
                None => self.deadline = Some(Box::pin(sleep_until(end))),
            }
        }
        match &mut self.deadline {
            Some(deadline) => deadline.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.account_write(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.account_write(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{num::NonZeroU64, time::Duration};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::settings::Limits;

    const TIMEOUT: Duration = Duration::from_millis(600);

    /// 1,000 bytes per second.
    fn progress() -> ProgressTimeout {
        ProgressTimeout::for_downloads(&Limits {
            download_timeout: TIMEOUT,
            min_rate: NonZeroU64::new(1000),
            ..Limits::default()
        })
    }

    #[tokio::test]
    async fn stalled_client_times_out() {
        let (server, _client) = duplex(16);
        let started = Instant::now();
        let error = WriteTimeoutStream::new(server, progress()).write_all(&[0; 17]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= TIMEOUT);
    }

    #[tokio::test]
    async fn trickling_client_times_out() {
        let (server, mut client) = duplex(16);
        let started = Instant::now();
        let reader = tokio::spawn(async move {
            while client.read_u8().await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        // The full write would take ten minutes at this rate.
        let error = WriteTimeoutStream::new(server, progress()).write_all(&[0; 6000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() >= TIMEOUT);
        reader.abort();
    }

    #[tokio::test]
    async fn steady_client_receives_everything() {
        let (server, mut client) = duplex(1000);
        let reader = tokio::spawn(async move {
            let mut buffer = [0; 1000];
            let mut pieces = 0;
            while client.read_exact(&mut buffer).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
                pieces += 1;
            }
            pieces
        });
        WriteTimeoutStream::new(server, progress()).write_all(&[0; 60_000]).await.unwrap();
        assert_eq!(reader.await.unwrap(), 60);
    }
}
