//! One PUT whose outcome is settled: the same write may be sent several times, and is made at most once.
//!
//! The write has an id in the metadata of the object. When an answer is lost, a HEAD finds the id, or the object as it was
//! before the write; then the same PUT with the same condition is sent again. An earlier PUT that arrives late fails its
//! condition.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use object_store::{
    Attribute, Attributes, ObjectMeta, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion, path::Path,
};
use rand::RngExt;
use tokio::time::{Instant, sleep, timeout_at};
use zarrd_store::{Key, StoreError, ValueMeta, Version};
use zarrd_store_remote::Failed;

use crate::{
    failure::{Failure, Refusal},
    http::Purpose,
    inner::Inner,
    read::head_object,
};

/// The action that fails if a value cannot be written.
const ACTION: &str = "write";

/// The name of the write id among the metadata of an object. Azure allows letters and digits only.
pub(crate) const WRITE_ID: &str = "zarrdwriteid";

/// The shortest and the longest wait before a PUT is sent again.
const DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The id of one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteId(String);

/// An object that exists.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) meta: ValueMeta,
    /// The condition on this state of the object.
    update: UpdateVersion,
    write_id: Option<WriteId>,
}

/// The state of an object on which a PUT is conditioned.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Absent,
    /// The object as it is at a version.
    At(Version, UpdateVersion),
    /// Any state: the PUT has no condition.
    Any,
}

/// The outcome of a PUT.
#[derive(Debug)]
pub(crate) enum Put {
    Done(ValueMeta),
    /// The condition did not hold, and the object is as another client left it.
    Conflict,
}

/// The answer to one PUT.
#[derive(Debug)]
pub(crate) enum Answer {
    Done(ValueMeta),
    /// The condition does not hold.
    Conflict(Failure),
    /// The PUT was not made, and may be later.
    NotMade(Failure),
    /// The PUT was not made, and will not be.
    Refused(Failure),
    /// The PUT may have been made.
    Lost(Failure),
}

/// A value that is written to an object.
#[derive(Debug)]
pub(crate) struct Write<'w> {
    pub(crate) inner: &'w Inner,
    pub(crate) key: &'w Key,
    pub(crate) path: &'w Path,
    pub(crate) payload: PutPayload,
    pub(crate) id: WriteId,
}

impl WriteId {
    pub(crate) fn random() -> Self {
        Self(format!("{:032x}", rand::rng().random::<u128>()))
    }

    /// The attributes of an object that this write made.
    pub(crate) fn attributes(&self) -> Attributes {
        Attributes::from_iter([(Attribute::Metadata(WRITE_ID.into()), self.0.clone())])
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Found {
    /// Requests the state of an object; `None` if it does not exist.
    pub(crate) async fn head(inner: &Inner, key: &Key, path: &Path) -> Result<Option<Self>, Failure> {
        let Some(answer) = head_object(inner, path).await? else { return Ok(None) };
        let (meta, _) = inner.validators.meta(key, &answer.meta)?;
        let write_id = answer.attributes.get(&Attribute::Metadata(WRITE_ID.into()));
        let write_id = write_id.map(|id| WriteId(id.as_ref().to_owned()));
        let ObjectMeta { e_tag, version, .. } = answer.meta;
        Ok(Some(Self { meta, update: UpdateVersion { e_tag, version }, write_id }))
    }

    pub(crate) fn was_made_by(&self, id: &WriteId) -> bool {
        self.write_id.as_ref() == Some(id)
    }
}

impl Expected {
    /// The state of an object that was found.
    pub(crate) fn of(found: Option<&Found>) -> Self {
        found.map_or(Self::Absent, |found| Self::At(found.meta.version, found.update.clone()))
    }

    /// The version of the object; `None` if it does not exist or is not known.
    pub(crate) fn version(&self) -> Option<Version> {
        match self {
            Self::At(version, _) => Some(*version),
            Self::Absent | Self::Any => None,
        }
    }

    pub(crate) fn is_met_by(&self, found: Option<&Found>) -> bool {
        match (self, found) {
            (Self::Any, _) | (Self::Absent, None) => true,
            (Self::At(version, _), Some(found)) => found.meta.version == *version,
            _ => false,
        }
    }

    fn mode(&self) -> PutMode {
        match self {
            Self::Absent => PutMode::Create,
            Self::At(_, update) => PutMode::Update(update.clone()),
            Self::Any => PutMode::Overwrite,
        }
    }
}

impl Write<'_> {
    /// Sends the PUT until its outcome is known. Fails with [`StoreError::OutcomeUnknown`] if it is not in time.
    pub(crate) async fn settle(&self, expected: &Expected) -> Result<Put, StoreError> {
        let mut turns = Turns::new(self.inner.settle);
        // The failure of an earlier PUT that may have been made, or may still be.
        let mut doubt: Option<Failure> = None;
        loop {
            let (failure, may_repeat) = match (self.send(expected).await, doubt.is_some()) {
                (Answer::Done(meta), _) => return Ok(Put::Done(meta)),
                (Answer::Conflict(_), false) => return Ok(Put::Conflict),
                (Answer::Refused(failure), false) => return Err(self.error(failure)),
                (Answer::NotMade(failure), false) => {
                    turns.wait(&failure).await.map_err(|()| self.error(failure))?;
                    continue;
                }
                (Answer::Refused(failure), true) => (failure, false),
                (Answer::Conflict(failure) | Answer::NotMade(failure) | Answer::Lost(failure), _) => (failure, true),
            };
            let failure = doubt.insert(failure);
            let found = self.request_state(&mut turns, failure).await?;
            if let Some(found) = &found
                && found.was_made_by(&self.id)
            {
                return Ok(Put::Done(found.meta.clone()));
            }
            if !may_repeat || !expected.is_met_by(found.as_ref()) || turns.wait(failure).await.is_err() {
                return Err(self.unknown(failure));
            }
        }
    }

    /// Sends the PUT once.
    pub(crate) async fn send(&self, expected: &Expected) -> Answer {
        let mut options =
            PutOptions { mode: expected.mode(), attributes: self.id.attributes(), ..PutOptions::default() };
        options.extensions.insert(Purpose::Object);
        let put = async {
            let put = self.inner.bucket.put_opts(self.path, self.payload.clone(), options).await;
            put.map_err(|error| Failure::of(&error))
        };
        match self.inner.request_once(self.payload.content_length() as u64, put).await {
            Ok(put) => self.made(put, self.payload.content_length() as u64).map_or_else(Answer::Lost, Answer::Done),
            Err(failure) => Answer::of(failure, expected),
        }
    }

    /// The metadata of the object that a PUT made.
    pub(crate) fn made(&self, put: PutResult, size: u64) -> Result<ValueMeta, Failure> {
        self.inner.mark_seen();
        let PutResult { e_tag, version, .. } = put;
        let last_modified = SystemTime::now().into();
        let object = ObjectMeta { location: self.path.clone(), last_modified, size, e_tag, version };
        self.inner.validators.meta(self.key, &object).map(|(meta, _)| meta)
    }

    /// Requests the state of the object, again and again until there is an answer.
    pub(crate) async fn request_state(&self, turns: &mut Turns, doubt: &Failure) -> Result<Option<Found>, StoreError> {
        loop {
            let head = Found::head(self.inner, self.key, self.path);
            match turns.until_deadline(head).await {
                Some(Ok(found)) => return Ok(found),
                Some(Err(failure)) if failure.is_transient() => {
                    turns.wait(&failure).await.map_err(|()| self.unknown(doubt))?;
                }
                Some(Err(_)) | None => return Err(self.unknown(doubt)),
            }
        }
    }

    pub(crate) fn error(&self, failure: Failure) -> StoreError {
        self.inner.error(ACTION, self.key.as_str(), failure)
    }

    pub(crate) fn unknown(&self, failure: &Failure) -> StoreError {
        self.inner.unknown(ACTION, self.key, failure.clone())
    }
}

impl Answer {
    /// The answer that a failure of a PUT is.
    pub(crate) fn of(failure: Failure, expected: &Expected) -> Self {
        let Failure::Refused(refusal) = &failure else {
            return match failure {
                // Nothing was sent.
                Failure::Credentials(_) => Self::Refused(failure),
                failure => Self::Lost(failure),
            };
        };
        if refusal.is_conflict(matches!(expected, Expected::At(..))) {
            return Self::Conflict(failure);
        }
        match refusal.status {
            429 => Self::NotMade(failure),
            // Of two conditional writes at the same time, the service did not take this one.
            409 if refusal.is(&["ConditionalRequestConflict", "OperationAborted"]) => Self::NotMade(failure),
            _ if refusal.is(&["SlowDown", "ServerBusy"]) => Self::NotMade(failure),
            408 | 500 | 502..=504 | 506.. => Self::Lost(failure),
            _ => Self::Refused(failure),
        }
    }
}

impl Refusal {
    /// True if the condition of a write does not hold. Services answer 404 to a condition on an object that is gone.
    fn is_conflict(&self, on_version: bool) -> bool {
        match self.status {
            304 | 412 => true,
            404 => on_version && !self.is_missing_bucket(),
            409 => self.is(&["BlobAlreadyExists"]),
            _ => false,
        }
    }
}

/// The waits between the requests of one write, up to its deadline.
#[derive(Debug)]
pub(crate) struct Turns {
    delay: Duration,
    deadline: Instant,
}

impl Turns {
    pub(crate) fn new(limit: Duration) -> Self {
        let now = Instant::now();
        Self { delay: DELAYS.0, deadline: now.checked_add(limit).unwrap_or(now) }
    }

    /// The result of a future that ends before the deadline.
    pub(crate) async fn until_deadline<F: Future>(&self, future: F) -> Option<F::Output> {
        timeout_at(self.deadline, future).await.ok()
    }

    /// Waits before the next request. Fails if there is no time for one.
    pub(crate) async fn wait(&mut self, failure: &Failure) -> Result<(), ()> {
        let random = rand::rng().random_range(0.5..1.0);
        let delay = self.delay.mul_f64(random).saturating_add(failure.retry_after().unwrap_or_default());
        self.delay = self.delay.saturating_mul(2).min(DELAYS.1);
        if Instant::now().checked_add(delay).is_none_or(|at| at >= self.deadline) {
            return Err(());
        }
        tracing::debug!(%failure, ?delay, "settling a write to a bucket");
        sleep(delay).await;
        Ok(())
    }
}
