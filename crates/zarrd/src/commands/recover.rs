//! `zarrd recover`: reads what is whole of a damaged store into a new one.

use std::{
    fs::File,
    io::{BufWriter, Write},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use futures::{TryStreamExt, stream};
use serde_json::{Value, json};
use zarrd_store::{Precondition, StoreError, TransactionalStore, WriteableStore, put_or_stage};
use zarrd_store_local::{Certainty, LocalStore, Loss, Purpose, RecoverableValue, Recovery};

use super::{check_outside_store, copied_access::copy_access};
use crate::{
    config::{CopiedTokens, Doubtful, RecoverConfig},
    error::Error,
    open::{DirectoryState, directory_state, open_for, open_recovery},
    signals::{HangUp, Signals},
    ui::{Progress, error_chain},
};

const IN_USE: &str = "stop it first: a store is recovered while nothing changes it";
const RETRY: &str = "remove it before you retry";

/// The number of small values in one commit.
const BATCH: usize = 1024;

/// The result of a recovery.
#[derive(Debug, Default)]
struct Recovered {
    certain: AtomicU64,
    doubtful: AtomicU64,
    lost: AtomicU64,
}

/// The list of doubtful and lost values.
enum Report {
    /// On stderr, with the messages of the command.
    Messages,
    /// In a file, as lines of JSON.
    File(Mutex<BufWriter<File>>),
}

/// Values that are recovered together: one that has a file, or small ones.
enum Unit<'r> {
    Large(&'r RecoverableValue),
    Small(&'r [RecoverableValue]),
}

/// A recovery in progress.
struct Recovering<'r> {
    recovery: &'r Recovery,
    to: &'r LocalStore,
    config: &'r RecoverConfig,
    report: Report,
    progress: &'r Progress,
    recovered: Recovered,
}

/// Runs the command.
pub(super) async fn run(config: RecoverConfig) -> Result<(), Error> {
    if directory_state(&config.to)? == DirectoryState::NotEmpty {
        return Err(Error::CopyTargetNotEmpty { location: config.to });
    }
    if let Some(directory) = config.to.directory() {
        check_outside_store(directory, &config.from)?;
    }
    if let Some(report) = &config.report {
        check_outside_store(report, &config.from)?;
    }
    let mut signals = Signals::install(HangUp::Stop)?;
    let recovery = signals.unless_stopped(async { Ok::<_, Error>(open_recovery(&config.from, IN_USE).await?) }).await?;
    let report = Report::create(&config)?;
    let to = signals.finish(open_for(Purpose::Fill(None), &config.to, config.write, IN_USE)).await?;
    let progress = Progress::start("recover");
    let recovering = Recovering {
        recovery: &recovery,
        to: &to,
        config: &config,
        report,
        progress: &progress,
        recovered: Recovered::default(),
    };
    let result = signals.unless_stopped(recovering.fill()).await;
    let result = match result {
        Ok(()) => signals.finish(to.complete()).await.map_err(Error::from),
        Err(error) => Err(error),
    };
    let result = result.and(signals.finish(to.close()).await.map_err(Error::from));
    let result = result
        .map_err(|error| Error::CopyIncomplete { location: config.to.clone(), advice: RETRY, source: Box::new(error) })
        .and_then(|()| recovering.recovered.result(config.doubtful));
    progress.finish(&result);
    result
}

impl Recovered {
    /// An error unless everything was recovered with certainty.
    fn result(&self, taken: Doubtful) -> Result<(), Error> {
        let [certain, doubtful, lost] = [&self.certain, &self.doubtful, &self.lost].map(|count| count.load(Relaxed));
        if doubtful == 0 && lost == 0 {
            return Ok(());
        }
        let fate = match taken {
            Doubtful::LeaveOut => "were left out (--doubtful takes them)",
            Doubtful::Take => "were taken",
        };
        Err(Error::PartlyRecovered { certain, doubtful, fate, lost })
    }
}

impl Report {
    fn create(config: &RecoverConfig) -> Result<Self, Error> {
        let Some(file) = &config.report else { return Ok(Self::Messages) };
        let created = File::create_new(file);
        let created = created.map_err(|source| Error::WriteReport { file: file.clone(), source })?;
        Ok(Self::File(Mutex::new(BufWriter::new(created))))
    }
}

impl Recovering<'_> {
    async fn fill(&self) -> Result<(), Error> {
        for loss in self.recovery.losses() {
            self.add_loss(loss)?;
        }
        if self.recovery.operations() > 0 {
            let operations = self.recovery.operations();
            self.progress.message(&format!(
                "{operations} operations on the store were interrupted; they are neither finished nor undone, and nodes \
                 may have chunks of before and after"
            ));
        }
        let counters = self.progress.counters();
        for value in self.recovery.values().iter().filter(|value| self.takes(value)) {
            counters.expect(value.size());
        }
        self.progress.start_processing();
        let units = stream::iter(units(self.recovery.values()).map(Ok));
        units.try_for_each_concurrent(self.config.jobs.get(), |unit| self.put(unit)).await?;
        self.finish_report()?;
        if let (CopiedTokens::All, Some(from), Some(to)) =
            (self.config.tokens, self.config.from.directory(), self.config.to.directory())
        {
            copy_access(from, to).map_err(Error::CopiedAccess)?;
        }
        Ok(())
    }

    fn takes(&self, value: &RecoverableValue) -> bool {
        value.certainty == Certainty::Certain || self.config.doubtful == Doubtful::Take
    }

    async fn put(&self, unit: Unit<'_>) -> Result<(), Error> {
        match unit {
            Unit::Large(value) => self.put_large(value).await,
            Unit::Small(values) => self.put_small(values).await,
        }
    }

    async fn put_large(&self, value: &RecoverableValue) -> Result<(), Error> {
        if !self.takes(value) {
            return self.count(value);
        }
        let written = async {
            let payload = self.recovery.read(value).await?;
            self.to.set(&value.key, payload, Precondition::none()).await
        };
        match written.await {
            Ok(_) => self.count(value),
            // What the stream of the file yields, the new store passes on.
            Err(StoreError::Corrupt { cause, .. }) => self.add_damaged(value, &error_chain(&cause)),
            Err(error) => Err(error.into()),
        }
    }

    async fn put_small(&self, values: &[RecoverableValue]) -> Result<(), Error> {
        let (mut changes, mut taken) = (Vec::with_capacity(values.len()), Vec::new());
        for value in values {
            if !self.takes(value) {
                self.count(value)?;
                continue;
            }
            let read = async {
                let payload = self.recovery.read(value).await?;
                let parts = payload.stream.try_collect::<Vec<_>>().await?;
                Ok((Bytes::from(parts.concat()), payload.attributes))
            };
            match read.await {
                Ok((bytes, attributes)) => {
                    changes.push(put_or_stage(self.to, &value.key, bytes, attributes).await?);
                    taken.push(value);
                }
                Err(StoreError::Corrupt { cause, .. }) => self.add_damaged(value, &error_chain(&cause))?,
                Err(error) => return Err(error.into()),
            }
        }
        self.to.commit(changes).await?;
        taken.into_iter().try_for_each(|value| self.count(value))
    }

    /// Counts a value that was taken, or a doubtful one that was left out.
    fn count(&self, value: &RecoverableValue) -> Result<(), Error> {
        let is_taken = self.takes(value);
        if is_taken {
            let counters = self.progress.counters();
            counters.keys.fetch_add(1, Relaxed);
            counters.bytes.fetch_add(value.size(), Relaxed);
        }
        match value.certainty {
            Certainty::Certain => {
                self.recovered.certain.fetch_add(1, Relaxed);
                Ok(())
            }
            Certainty::Doubtful => {
                self.recovered.doubtful.fetch_add(1, Relaxed);
                let text = if is_taken { "taken" } else { "left out" };
                let line = format!("doubtful, {text}: {:?}", value.key);
                self.add_line(&line, &json!({ "key": value.key.as_str(), "doubtful": true, "taken": is_taken }))
            }
        }
    }

    fn add_damaged(&self, value: &RecoverableValue, cause: &str) -> Result<(), Error> {
        let doubtful = value.certainty == Certainty::Doubtful;
        self.recovered.lost.fetch_add(1, Relaxed);
        self.progress.counters().corrupt.fetch_add(1, Relaxed);
        let kind = if doubtful { "lost, doubtful" } else { "lost" };
        let entry = json!({ "lost": value.key.as_str(), "doubtful": doubtful, "cause": cause });
        self.add_line(&format!("{kind}: {:?}: {cause}", value.key), &entry)
    }

    fn add_loss(&self, loss: &Loss) -> Result<(), Error> {
        let entry = match loss {
            Loss::Value { key, cause } => json!({ "lost": key.as_str(), "cause": cause }),
            Loss::Range { from, to, cause } => json!({ "lost_from": from, "lost_before": to, "cause": cause }),
            Loss::Damage { cause } => json!({ "damaged": cause }),
        };
        if !matches!(loss, Loss::Damage { .. }) {
            self.recovered.lost.fetch_add(1, Relaxed);
        }
        self.add_line(&loss.to_string(), &entry)
    }

    fn add_line(&self, message: &str, entry: &Value) -> Result<(), Error> {
        match (&self.report, &self.config.report) {
            (Report::File(writer), Some(file)) => {
                let mut writer = writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                writeln!(writer, "{entry}").map_err(|source| Error::WriteReport { file: file.clone(), source })
            }
            _ => {
                self.progress.message(message);
                Ok(())
            }
        }
    }

    fn finish_report(&self) -> Result<(), Error> {
        let (Report::File(writer), Some(file)) = (&self.report, &self.config.report) else { return Ok(()) };
        let mut writer = writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let finished = writer.flush().and_then(|()| writer.get_ref().sync_all());
        finished.map_err(|source| Error::WriteReport { file: file.clone(), source })
    }
}

/// Splits values into those with files, and runs of small ones.
fn units(values: &[RecoverableValue]) -> impl Iterator<Item = Unit<'_>> {
    let mut rest = values;
    std::iter::from_fn(move || {
        let (first, others) = rest.split_first()?;
        if first.has_file() {
            rest = others;
            return Some(Unit::Large(first));
        }
        let count = rest.iter().take(BATCH).take_while(|value| !value.has_file()).count();
        let (small, others) = rest.split_at_checked(count)?;
        rest = others;
        Some(Unit::Small(small))
    })
}
