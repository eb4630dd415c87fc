//! The engine: survey, then move.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use backon::{ExponentialBuilder, Retryable};
use futures::{StreamExt, TryStreamExt, stream};
use store::{Key, Payload};

use super::{
    Found, Refused, Sink, Source, TransferError,
    error::MoveError,
    order::{Turn, turn},
};
use crate::{
    config::OnRefused,
    exit,
    ui::{Progress, Tally},
};

/// A value that is tried again is tried so often, while the other machine is away or busy.
const RETRIES: usize = 5;

/// The keys of one source on their way to one sink.
pub(crate) struct Transfer<'a> {
    /// Where the values come from.
    pub(crate) source: &'a dyn Source,
    /// Where they go.
    pub(crate) sink: &'a dyn Sink,
    /// How many values are on their way at the same time.
    pub(crate) jobs: NonZeroUsize,
    /// What to do about names that cannot be moved.
    pub(crate) refused: OnRefused,
    /// Where it is shown.
    pub(crate) progress: &'a Progress,
}

impl Transfer<'_> {
    /// Moves everything. What cannot be moved is named; unless it is to be skipped, nothing is moved at all where a
    /// name is refused, and a value that fails does not keep the others from being moved.
    pub(crate) async fn run(self) -> Result<(), TransferError> {
        self.survey().await?;
        self.progress.begin_moving();
        let later = self.move_data().await?;
        for (_, names) in later {
            self.move_all(stream::iter(names.into_iter().map(Ok))).await?;
        }
        let tally = self.progress.tally();
        match tally.failed.load(Ordering::Relaxed) {
            0 => Ok(()),
            failed => Err(TransferError::Incomplete { failed, damaged: tally.corrupt.load(Ordering::Relaxed) }),
        }
    }

    /// Lists everything once, for the totals and for the names that cannot be moved.
    async fn survey(&self) -> Result<(), TransferError> {
        let tally = self.progress.tally();
        let mut admission = self.sink.admission();
        let mut found = self.source.list();
        while let Some(next) = found.try_next().await.map_err(TransferError::List)? {
            match next {
                Found::Value { name, size } => match admission(&name) {
                    Ok(()) => tally.expect(size),
                    Err(reason) => self.refuse(&format!("{name:?}"), &reason),
                },
                Found::Refused { name, reason } => self.refuse(&name, &reason),
            }
        }
        match (self.refused, tally.skipped.load(Ordering::Relaxed)) {
            (OnRefused::Stop, count @ 1..) => Err(TransferError::Refused { count }),
            _ => Ok(()),
        }
    }

    fn refuse(&self, name: &str, reason: &Refused) {
        self.progress.tally().skipped.fetch_add(1, Ordering::Relaxed);
        self.progress.report(&format!("cannot be moved: {name}: {}", exit::chain(reason)));
    }

    /// Moves what has its turn first while it is listed, and returns the names of what comes later.
    async fn move_data(&self) -> Result<BTreeMap<Turn, Vec<Key>>, TransferError> {
        let mut later: BTreeMap<Turn, Vec<Key>> = BTreeMap::new();
        let mut admission = self.sink.admission();
        let first = self.source.list().map_err(TransferError::List).try_filter_map(|found| {
            let name = match found {
                Found::Value { name, .. } if admission(&name).is_ok() => Some(name),
                _ => None,
            };
            let name = name.and_then(|name| match turn(&name) {
                Turn::Data => Some(name),
                turn => {
                    later.entry(turn).or_default().push(name);
                    None
                }
            });
            std::future::ready(Ok(name))
        });
        self.move_all(first).await?;
        Ok(later)
    }

    async fn move_all(
        &self,
        names: impl futures::Stream<Item = Result<Key, TransferError>>,
    ) -> Result<(), TransferError> {
        names.try_for_each_concurrent(self.jobs.get(), |name| self.move_one(name)).await
    }

    async fn move_one(&self, name: Key) -> Result<(), TransferError> {
        let waits = ExponentialBuilder::new().with_min_delay(Duration::from_millis(500)).with_max_times(RETRIES);
        let moved = (|| self.try_once(&name))
            .retry(waits)
            .when(MoveError::is_transient)
            .adjust(|error, wait| wait.map(|wait| error.retry_after().unwrap_or(wait).min(Duration::from_secs(60))))
            .await;
        let tally = self.progress.tally();
        match moved {
            Ok(Moved::Whole) => tally.keys.fetch_add(1, Ordering::Relaxed),
            Ok(Moved::Vanished) => tally.vanished.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.is_of_one_key() => {
                self.progress.report(&format!("not moved: {name:?}: {}", exit::chain(&error)));
                tally.corrupt.fetch_add(u64::from(error.is_damage()), Ordering::Relaxed);
                tally.failed.fetch_add(1, Ordering::Relaxed)
            }
            Err(error) => return Err(TransferError::Stopped { key: name, source: Box::new(error) }),
        };
        Ok(())
    }

    async fn try_once(&self, name: &Key) -> Result<Moved, MoveError> {
        let Some(content) = self.source.open(name).await.map_err(MoveError::Source)? else {
            return Ok(Moved::Vanished);
        };
        let mut attempt = Attempt::new(self.progress.tally());
        let put = self.sink.put(name, attempt.metered(content)).await;
        put.map(|()| attempt.succeed()).map_err(|error| match attempt.content_broke() {
            true => MoveError::Content(error),
            false => MoveError::Sink(error),
        })
    }
}

/// What became of a value.
enum Moved {
    Whole,
    /// It was erased since it was listed.
    Vanished,
}

/// One try of moving a value. Its bytes count as they go by, and no more when it is dropped without success.
struct Attempt {
    meter: Arc<Meter>,
    whole: bool,
}

/// What is known of a content on its way.
struct Meter {
    tally: Arc<Tally>,
    bytes: AtomicU64,
    broke: AtomicBool,
}

impl Attempt {
    fn new(tally: &Arc<Tally>) -> Self {
        let meter = Meter { tally: Arc::clone(tally), bytes: AtomicU64::new(0), broke: AtomicBool::new(false) };
        Self { meter: Arc::new(meter), whole: false }
    }

    fn metered(&self, content: Payload) -> Payload {
        let meter = Arc::clone(&self.meter);
        let stream = content.stream.inspect(move |piece| match piece {
            Ok(bytes) => meter.count(bytes.len() as u64),
            Err(_) => meter.broke.store(true, Ordering::Relaxed),
        });
        Payload { size: content.size, stream: stream.boxed() }
    }

    fn content_broke(&self) -> bool {
        self.meter.broke.load(Ordering::Relaxed)
    }

    fn succeed(&mut self) -> Moved {
        self.whole = true;
        Moved::Whole
    }
}

impl Meter {
    fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.tally.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.whole {
            self.meter.tally.bytes.fetch_sub(self.meter.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}
