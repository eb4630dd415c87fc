//! The snapshots of prefixes that clients took.

use std::{
    collections::HashMap,
    fmt,
    str::FromStr,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use zarrd_access::CredentialId;
use zarrd_store::PrefixSnapshot;

/// The maximum number of snapshots.
pub(crate) const MAX_SNAPSHOTS: usize = 4;
/// The time without a use after which a snapshot ends.
pub(crate) const MAX_IDLE: Duration = Duration::from_secs(600);
/// The time without a use after which the caller's next snapshot takes its place: its client has ended.
pub(crate) const ABANDONED: Duration = Duration::from_secs(30);
/// The time after which a snapshot ends, however much it is used.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// All snapshots of a server.
#[derive(Default)]
pub(crate) struct Snapshots(Mutex<State>);

#[derive(Default)]
struct State {
    taken: HashMap<SnapshotId, Taken>,
    /// Those that are being taken.
    pending: Vec<Owner>,
}

/// A snapshot of a client.
struct Taken {
    snapshot: Arc<dyn PrefixSnapshot>,
    owner: Owner,
    ends: Instant,
    used: Instant,
}

/// The id of a snapshot, which cannot be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SnapshotId(u128);

/// Who took a snapshot: a token, or `None` where anybody may.
pub(crate) type Owner = Option<CredentialId>;

/// The place of a snapshot that is being taken.
pub(crate) struct Slot {
    snapshots: Arc<Snapshots>,
    owner: Owner,
}

/// The reason why no snapshot can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are [`MAX_SNAPSHOTS`].
    TooMany,
    /// The token has one that is in use, or is taking one.
    OwnExists,
}

impl Snapshots {
    /// Reserves a place for a snapshot of a caller.
    pub(crate) fn reserve(self: &Arc<Self>, owner: Owner) -> Result<Slot, Refusal> {
        let mut state = self.0.lock();
        state.end_expired();
        let now = Instant::now();
        state.taken.retain(|_, taken| taken.owner != owner || taken.used + ABANDONED > now);
        // Callers without a token cannot be told apart.
        let has_own = state.pending.contains(&owner) || state.taken.values().any(|taken| taken.owner == owner);
        if owner.is_some() && has_own {
            return Err(Refusal::OwnExists);
        }
        if state.taken.len().saturating_add(state.pending.len()) >= MAX_SNAPSHOTS {
            return Err(Refusal::TooMany);
        }
        state.pending.push(owner);
        Ok(Slot { snapshots: Arc::clone(self), owner })
    }

    /// A snapshot that has not ended, which counts as a use.
    pub(crate) fn get(&self, id: SnapshotId) -> Option<Arc<dyn PrefixSnapshot>> {
        let mut state = self.0.lock();
        state.end_expired();
        let taken = state.taken.get_mut(&id)?;
        taken.used = Instant::now();
        Some(Arc::clone(&taken.snapshot))
    }

    /// Ends a snapshot of its owner. Returns false if there is none.
    pub(crate) fn end(&self, id: SnapshotId, owner: Owner) -> bool {
        let mut state = self.0.lock();
        match state.taken.get(&id) {
            Some(taken) if taken.owner == owner => state.taken.remove(&id).is_some(),
            _ => false,
        }
    }

    /// Ends those that are not used any more, also without another request.
    fn watch(this: Weak<Self>) {
        tokio::spawn(async move {
            while let Some(next) = this.upgrade().and_then(|snapshots| snapshots.0.lock().next_end()) {
                tokio::time::sleep_until(next).await;
                if let Some(snapshots) = this.upgrade() {
                    snapshots.0.lock().end_expired();
                }
            }
        });
    }
}

impl State {
    fn end_expired(&mut self) {
        let now = Instant::now();
        self.taken.retain(|_, taken| taken.end() > now && taken.snapshot.is_valid());
    }

    /// The time at which the next snapshot ends if none is used.
    fn next_end(&self) -> Option<Instant> {
        self.taken.values().map(Taken::end).min()
    }
}

impl Taken {
    fn end(&self) -> Instant {
        self.ends.min(self.used + MAX_IDLE)
    }
}

impl Slot {
    /// Puts a snapshot in the place.
    pub(crate) fn fill(self, snapshot: Arc<dyn PrefixSnapshot>) -> SnapshotId {
        let id = SnapshotId(rand::random());
        let now = Instant::now();
        let taken = Taken { snapshot, owner: self.owner, ends: now + MAX_AGE, used: now };
        let mut state = self.snapshots.0.lock();
        let is_first = state.taken.is_empty();
        state.taken.insert(id, taken);
        drop(state);
        if is_first {
            Snapshots::watch(Arc::downgrade(&self.snapshots));
        }
        id
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.snapshots.0.lock();
        if let Some(index) = state.pending.iter().position(|owner| *owner == self.owner) {
            state.pending.swap_remove(index);
        }
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for SnapshotId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_id = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_id.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten().ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use zarrd_store::{MemoryStore, Prefix, SnapshotStore};

    use super::*;

    async fn snapshot() -> Arc<dyn PrefixSnapshot> {
        MemoryStore::new().snapshot_below(&Prefix::root()).await.unwrap()
    }

    fn owner(id: u128) -> Owner {
        Some(format!("{id:032x}").parse().unwrap())
    }

    #[tokio::test]
    async fn a_caller_has_one_snapshot_and_all_have_four() {
        let snapshots = Arc::<Snapshots>::default();
        let pending = snapshots.reserve(owner(0)).unwrap();
        assert_eq!(snapshots.reserve(owner(0)).err(), Some(Refusal::OwnExists), "it is being taken");
        let id = pending.fill(snapshot().await);
        assert_eq!(snapshots.reserve(owner(0)).err(), Some(Refusal::OwnExists));
        let others: Vec<_> = (1..4).map(|id| snapshots.reserve(owner(id)).unwrap()).collect();
        assert_eq!(snapshots.reserve(None).err(), Some(Refusal::TooMany));
        drop(others);
        assert!(snapshots.reserve(None).is_ok());
        assert!(!snapshots.end(id, owner(1)), "it belongs to another caller");
        let anonymous: Vec<_> = (0..3).map(|_| snapshots.reserve(None).unwrap()).collect();
        assert_eq!(snapshots.reserve(None).err(), Some(Refusal::TooMany), "all of them are one caller's, or nobody's");
        drop(anonymous);
        assert!(snapshots.end(id, owner(0)) && !snapshots.end(id, owner(0)));
        assert!(snapshots.get(id).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_ends_when_it_is_not_used() {
        let snapshots = Arc::<Snapshots>::default();
        let taken = snapshot().await;
        let id = snapshots.reserve(None).unwrap().fill(Arc::clone(&taken));
        for _ in 0..3 {
            tokio::time::sleep(MAX_IDLE - Duration::from_secs(1)).await;
            assert!(snapshots.get(id).is_some());
        }
        tokio::time::sleep(MAX_IDLE + Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&taken), 1, "it was dropped without another request");
        assert!(snapshots.get(id).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_snapshot_takes_the_place_of_an_abandoned_one() {
        let snapshots = Arc::<Snapshots>::default();
        let id = snapshots.reserve(owner(1)).unwrap().fill(snapshot().await);
        tokio::time::sleep(ABANDONED - Duration::from_secs(1)).await;
        assert!(snapshots.get(id).is_some());
        tokio::time::sleep(ABANDONED - Duration::from_secs(1)).await;
        assert_eq!(snapshots.reserve(owner(1)).err(), Some(Refusal::OwnExists), "it was used");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(snapshots.reserve(owner(1)).is_ok());
        assert!(snapshots.get(id).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_ends_after_a_day() {
        let snapshots = Arc::<Snapshots>::default();
        let id = snapshots.reserve(None).unwrap().fill(snapshot().await);
        let mut uses = 0;
        while snapshots.get(id).is_some() {
            uses += 1;
            tokio::time::sleep(MAX_IDLE / 2).await;
        }
        assert_eq!(uses, 24 * 12);
    }

    #[test]
    fn ids_have_one_spelling() {
        let id: SnapshotId = "00112233445566778899aabbccddeeff".parse().unwrap();
        assert_eq!(id.to_string(), "00112233445566778899aabbccddeeff");
        for bad in ["", "0", "00112233445566778899AABBCCDDEEFF", "+0112233445566778899aabbccddeeff"] {
            assert!(bad.parse::<SnapshotId>().is_err(), "{bad}");
        }
    }
}
