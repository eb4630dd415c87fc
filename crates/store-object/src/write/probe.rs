//! The probe of a bucket: what it does with writes is tried, not believed.
//!
//! It finds services that ignore conditions, that check them before they write instead of with the write, that lose
//! metadata, and policies that allow some requests only. It is no proof.

use std::time::Duration;

use futures::future::join_all;
use object_store::{PutPayload, UpdateVersion, list::PaginatedListOptions, path::Path};
use zarrd_store::{Key, Version};
use zarrd_store_remote::Failed;

use super::{
    erase::delete,
    put::{Answer, Expected, Found, Write, WriteId},
};
use crate::{failure::Failure, inner::Inner};

/// The answer of a bucket to the probe of its writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probed {
    /// Conditions of writes are checked exactly.
    Exact,
    /// Conditions of writes are not checked exactly, for this reason.
    Inexact(&'static str),
    /// Objects cannot be written, or not erased again, for this reason.
    ReadOnly(&'static str),
}

/// The start of the keys that probes use.
const PROBES: &str = ".zarrd/probe-";

/// The age at which a probe is taken to be left by a server that ended.
const LEFT_AFTER: Duration = Duration::from_secs(3600);

/// The number of times that one object is created by several writes at a time.
const ROUNDS: usize = 3;

/// The number of these writes.
const CREATORS: usize = 8;

/// The number of probes of which none has an answer to each request.
const TRIES: usize = 3;

const CREATED_TWICE: &str = "changes of this bucket: it accepts a create-only write of an object that exists";
const CREATED_AT_ONCE: &str = "changes of this bucket: it accepts several create-only writes of one object at a time";
const NONE_CREATED: &str = "changes of this bucket: of several create-only writes of one object it accepts none";
const WRONG_ACCEPTED: &str = "changes of this bucket: it accepts a write on condition of a version that is not current";
const RIGHT_REFUSED: &str = "changes of this bucket: it refuses a write on condition of the current version";
const NO_METADATA: &str = "changes of this bucket: it does not keep the metadata of objects";
const MAY_NOT_WRITE: &str = "changes of this bucket: objects may not be written";
const MAY_NOT_READ: &str = "changes of this bucket: objects may not be read";
const MAY_NOT_DELETE: &str = "changes of this bucket: objects may not be deleted";

/// The reason why a probe ended early.
enum End {
    Found(Probed),
    /// The bucket cannot be reached, or an answer was lost.
    Failed(Failure),
}

/// Probes the writes of a bucket. Fails if an answer is lost each time.
pub(crate) async fn probe(inner: &Inner) -> Result<Probed, Failure> {
    let mut attempts = inner.attempts();
    for _ in 1..TRIES {
        match try_probe(inner).await {
            Ok(probed) => return Ok(probed),
            Err(failure) => attempts.wait(failure).await?,
        }
    }
    try_probe(inner).await
}

async fn try_probe(inner: &Inner) -> Result<Probed, Failure> {
    let name = format!("{PROBES}{:016x}", rand::random::<u64>());
    let mut objects = Vec::new();
    for suffix in ["", "-1", "-2", "-3"].into_iter().take(ROUNDS.saturating_add(1)) {
        let key = Key::parse(&format!("{name}{suffix}")).map_err(|_| Failure::Other("a probe has no valid name"))?;
        let path = inner.path(&key).ok_or(Failure::Other("the prefix is too long for objects below it"))?;
        objects.push(Object { inner, key, path });
    }
    let outcome = match objects.split_first() {
        Some((first, others)) => try_conditions(inner, first, others).await,
        None => Ok(()),
    };
    if matches!(outcome, Err(End::Found(Probed::ReadOnly(MAY_NOT_WRITE)))) {
        return Ok(Probed::ReadOnly(MAY_NOT_WRITE));
    }
    match (outcome, remove(inner, &objects).await) {
        (Err(End::Failed(failure)), _) | (Ok(()), Err(End::Failed(failure))) => Err(failure),
        (Err(End::Found(probed @ Probed::ReadOnly(_))), _) => Ok(probed),
        (_, Err(End::Found(probed))) | (Err(End::Found(probed)), _) => Ok(probed),
        (Ok(()), Ok(())) => Ok(Probed::Exact),
    }
}

/// Tries the conditions of writes of one object, and creates others by several writes at a time.
async fn try_conditions(inner: &Inner, object: &Object<'_>, others: &[Object<'_>]) -> Result<(), End> {
    let first = WriteId::random();
    match object.put(&first, &Expected::Absent).await {
        Answer::Done(_) => {}
        Answer::Refused(failure) if failure.status() == Some(403) => return Err(read_only(MAY_NOT_WRITE)),
        // The service does not know the condition.
        Answer::Conflict(_) => return Err(object.without_conditions().await),
        Answer::Refused(failure) if matches!(failure.status(), Some(400 | 405 | 501)) => {
            return Err(object.without_conditions().await);
        }
        answer => return Err(End::lost(answer)),
    }
    let found = object.head().await?;
    if !found.was_made_by(&first) {
        return Err(read_only(NO_METADATA));
    }
    remove_old_probes(inner, &found).await;
    let is_refused = |answer, reason| match answer {
        Answer::Conflict(_) => Ok(()),
        Answer::Done(_) | Answer::Refused(_) => Err(End::Found(Probed::Inexact(reason))),
        answer => Err(End::lost(answer)),
    };
    let put = async |expected: &Expected| object.put(&WriteId::random(), expected).await;
    is_refused(put(&Expected::Absent).await, CREATED_TWICE)?;
    is_refused(put(&wrong()).await, WRONG_ACCEPTED)?;
    let right = Expected::of(Some(&found));
    match put(&right).await {
        Answer::Done(_) => {}
        Answer::Conflict(_) | Answer::Refused(_) => return Err(End::Found(Probed::Inexact(RIGHT_REFUSED))),
        answer => return Err(End::lost(answer)),
    }
    is_refused(put(&right).await, WRONG_ACCEPTED)?;
    for other in others {
        create_at_once(other).await?;
    }
    Ok(())
}

/// Creates one object by several writes at a time, of which exactly one has to succeed.
async fn create_at_once(object: &Object<'_>) -> Result<(), End> {
    let ids: Vec<WriteId> = (0..CREATORS).map(|_| WriteId::random()).collect();
    let answers = join_all(ids.iter().map(|id| object.put(id, &Expected::Absent))).await;
    let created = answers.iter().filter(|answer| matches!(answer, Answer::Done(_))).count();
    if created > 1 {
        return Err(End::Found(Probed::Inexact(CREATED_AT_ONCE)));
    }
    match answers
        .into_iter()
        .find(|answer| !matches!(answer, Answer::Done(_) | Answer::Conflict(_) | Answer::NotMade(_)))
    {
        Some(answer) => Err(End::lost(answer)),
        None if created == 1 => Ok(()),
        None => Err(End::Found(Probed::Inexact(NONE_CREATED))),
    }
}

/// The condition on a version that no object has.
fn wrong() -> Expected {
    let (etag, generation) = (rand::random::<u128>(), rand::random::<u32>());
    let update = UpdateVersion { e_tag: Some(format!("\"{etag:032x}\"")), version: Some(generation.to_string()) };
    Expected::At(Version::from_u128(0), update)
}

fn read_only(reason: &'static str) -> End {
    End::Found(Probed::ReadOnly(reason))
}

impl End {
    /// The end of a probe that got no answer, or one that it cannot use.
    fn lost(answer: Answer) -> Self {
        match answer {
            Answer::Refused(failure) | Answer::NotMade(failure) | Answer::Conflict(failure) | Answer::Lost(failure) => {
                Self::Failed(failure)
            }
            Answer::Done(_) => Self::Failed(Failure::Other("an answer was not expected")),
        }
    }
}

/// An object of a probe.
struct Object<'o> {
    inner: &'o Inner,
    key: Key,
    path: Path,
}

impl Object<'_> {
    async fn put(&self, id: &WriteId, expected: &Expected) -> Answer {
        // Bodies differ, so that entity tags do.
        let payload = PutPayload::from(format!("zarrd probes whether this bucket can be written: {id}\n").into_bytes());
        let Self { inner, key, path } = self;
        Write { inner, key, path, payload, id: id.clone() }.send(expected).await
    }

    async fn head(&self) -> Result<Found, End> {
        match Found::head(self.inner, &self.key, &self.path).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(read_only(MAY_NOT_READ)),
            Err(failure) if failure.status() == Some(403) => Err(read_only(MAY_NOT_READ)),
            Err(failure) => Err(End::Failed(failure)),
        }
    }

    /// The end of a probe of a service that does not know conditions: it may be written without.
    async fn without_conditions(&self) -> End {
        let id = WriteId::random();
        match self.put(&id, &Expected::Any).await {
            Answer::Done(_) => {}
            Answer::Refused(_) => return read_only(MAY_NOT_WRITE),
            answer => return End::lost(answer),
        }
        match self.head().await {
            Ok(found) if found.was_made_by(&id) => End::Found(Probed::Inexact(RIGHT_REFUSED)),
            Ok(_) => read_only(NO_METADATA),
            Err(end) => end,
        }
    }
}

/// Removes the objects of a probe, and makes sure that they are gone. Those that are left are named in the log.
async fn remove(inner: &Inner, objects: &[Object<'_>]) -> Result<(), End> {
    let result = try_remove(inner, objects).await;
    if result.is_err() {
        let probe = objects.first().map(|object| object.path.as_ref());
        tracing::warn!(bucket = %inner.location, probe, "the objects of a probe could not be removed");
    }
    result
}

async fn try_remove(inner: &Inner, objects: &[Object<'_>]) -> Result<(), End> {
    let paths: Vec<Path> = objects.iter().map(|object| object.path.clone()).collect();
    let mut attempts = inner.attempts();
    while let Err(failure) = inner.request_once(0, delete(inner, paths.clone())).await {
        if !failure.is_transient() {
            return Err(if failure.status().is_some() { read_only(MAY_NOT_DELETE) } else { End::Failed(failure) });
        }
        attempts.wait(failure).await.map_err(End::Failed)?;
    }
    for object in objects {
        match Found::head(inner, &object.key, &object.path).await {
            Ok(None) => {}
            Ok(Some(_)) => return Err(read_only(MAY_NOT_DELETE)),
            // It may not be read, which was found before.
            Err(failure) if failure.status() == Some(403) => {}
            Err(failure) => return Err(End::Failed(failure)),
        }
    }
    Ok(())
}

/// Removes the probes of servers that ended before they did, by the clock of the service.
async fn remove_old_probes(inner: &Inner, now: &Found) {
    let prefix = format!("{}{PROBES}", inner.location.prefix);
    let Ok(listed) = inner.list_page(&prefix, &PaginatedListOptions::default()).await else { return };
    let age = |modified| now.meta.modified.duration_since(modified).unwrap_or_default();
    let old = listed.objects.into_iter().filter(|object| age(object.modified) > LEFT_AFTER);
    let paths: Vec<Path> = old.filter_map(|object| Path::parse(object.name).ok()).collect();
    if paths.is_empty() {
        return;
    }
    let count = paths.len();
    match inner.request_once(0, delete(inner, paths)).await {
        Ok(()) => tracing::info!(bucket = %inner.location, count, "removed probes that were left"),
        Err(failure) => tracing::warn!(bucket = %inner.location, count, %failure, "probes that were left stay"),
    }
}
