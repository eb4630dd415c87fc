//! Turns on keys.

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::Key;

/// Turns on keys: whoever asks for a key waits until nobody else has it. So those that want the same thing at the same
/// time ask for it one after the other, and find what the first of them left.
#[derive(Clone, Default)]
pub struct KeyTurns(Arc<Mutex<HashMap<Key, Arc<AsyncMutex<()>>>>>);

/// A turn on a key, until it is dropped.
pub struct KeyTurn {
    turns: KeyTurns,
    key: Key,
    lock: Arc<AsyncMutex<()>>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl KeyTurns {
    /// Waits for the turn on a key.
    pub async fn take(&self, key: &Key) -> KeyTurn {
        let lock = Arc::clone(self.0.lock().entry(key.clone()).or_default());
        let mut turn = KeyTurn { turns: self.clone(), key: key.clone(), lock, guard: None };
        turn.guard = Some(Arc::clone(&turn.lock).lock_owned().await);
        turn
    }

    /// The number of keys on which there are turns, or waits for one.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// True if there are no turns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for KeyTurn {
    fn drop(&mut self) {
        // Ends the turn before the lock is counted, since the guard has a reference to it as well.
        self.guard = None;
        let mut turns = self.turns.0.lock();
        // That of the map, and the one here: nobody waits, and nobody begins to while the map is locked.
        if Arc::strong_count(&self.lock) == 2 {
            turns.remove(&self.key);
        }
    }
}

impl fmt::Debug for KeyTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyTurns").field("len", &self.len()).finish()
    }
}

impl fmt::Debug for KeyTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyTurn").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_key_is_had_by_one_at_a_time_and_then_forgotten() {
        let turns = KeyTurns::default();
        let (a, b) = (Key::parse("a").unwrap(), Key::parse("b").unwrap());
        let first = turns.take(&a).await;
        let _other = turns.take(&b).now_or_never().expect("another key is free");
        let mut second = Box::pin(turns.take(&a));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(turns.take(&a).now_or_never().is_none(), "this one gives up");
        drop(first);
        let second = second.as_mut().now_or_never().expect("its turn");
        assert_eq!(turns.len(), 2);
        drop(second);
        assert_eq!(turns.len(), 1, "a key that nobody wants takes no memory");
    }

    #[tokio::test]
    async fn the_last_one_to_give_up_leaves_nothing() {
        let turns = KeyTurns::default();
        let a = Key::parse("a").unwrap();
        let first = turns.take(&a).await;
        let mut second = Box::pin(turns.take(&a));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert_eq!(turns.len(), 1, "one is waiting");
        drop(second);
        assert!(turns.is_empty());
    }
}
