//! Copies of an array during writes to it.

use std::time::Duration;

use http::Method;
use tokio::time::{Instant, timeout};

use super::{
    Kind,
    client::{Reply, ServerClient},
    history::Number,
    layout::Dialect,
    model::Effect,
    round::Round,
};

/// The maximum time for which an abandoned copy may exist in part.
const SETTLING: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// The copies of a round.
pub(super) type Copies = Vec<Copy>;

/// A requested copy.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    to: Dialect,
    target: String,
    event: Number,
    end: End,
}

/// The response that the client received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Rejected,
    /// None: the client disconnected, or the server died.
    Unknown,
}

impl Round {
    /// Requests a copy to a new path, and disconnects after `leaves_after`, if set.
    pub(super) async fn copy(&self, client: &ServerClient, to: Dialect, leaves_after: Option<Duration>) -> Reply {
        let number = self.copies.lock().expect("the lock is not poisoned").len();
        let target = format!("{}/copy-{number}", self.directory_of_copies(to));
        let event = self.history().begin(Effect::Absent);
        let entry = Copy { to, target: target.clone(), event, end: End::Unknown };
        self.copies.lock().expect("the lock is not poisoned").push(entry);
        let requested = self.request_copy(client, to, &target);
        let reply = match leaves_after {
            Some(leaves_after) => timeout(leaves_after, requested).await.unwrap_or(Reply::Rejected(0)),
            None => requested.await,
        };
        let end = match &reply {
            Reply::Done(_) => {
                self.history().done(event, None);
                End::Done
            }
            Reply::Rejected(0) | Reply::Lost(_) | Reply::Partly => End::Unknown,
            Reply::Rejected(_) => End::Rejected,
            Reply::Undecodable(text) | Reply::Unexpected(text) => {
                self.find(Kind::Other, text.clone());
                End::Rejected
            }
        };
        if let Some(copy) = self.copies.lock().expect("the lock is not poisoned").get_mut(number) {
            copy.end = end;
        }
        reply
    }

    async fn request_copy(&self, client: &ServerClient, to: Dialect, target: &str) -> Reply {
        client.send_empty(Method::POST, &format!("/node/{}?convert={}&target=/{target}", self.path(), to.name())).await
    }

    /// Records the elements of all copies.
    pub(super) async fn settle_copies(&self, client: &ServerClient) {
        let copies = self.copies.lock().expect("the lock is not poisoned").clone();
        for copy in &copies {
            match copy.end {
                End::Done => self.record_copy(client, copy).await,
                End::Rejected => {
                    self.history().rejected(copy.event);
                    self.record_absence(client, copy).await;
                }
                End::Unknown => self.settle(client, copy).await,
            }
        }
    }

    /// Erases all copies.
    pub(super) async fn clean_copies(&self, client: &ServerClient) {
        let copies = self.copies.lock().expect("the lock is not poisoned").clone();
        for copy in &copies {
            self.clean(client, &self.directory_of_copies(copy.to)).await;
        }
    }

    /// The number of confirmed copies, and of copies with unknown outcome.
    pub(super) fn count_copies(&self) -> (u64, u64) {
        let copies = self.copies.lock().expect("the lock is not poisoned");
        let count = |wanted: End| copies.iter().filter(|copy| copy.end == wanted).count() as u64;
        (count(End::Done), count(End::Unknown))
    }

    async fn record_copy(&self, client: &ServerClient, copy: &Copy) {
        if !self.record_copy_if_present(client, copy.event, &copy.target).await {
            self.history().rejected(copy.event);
            self.find(Kind::Mixed, format!("/{} was acknowledged and is not there", copy.target));
        }
    }

    async fn record_absence(&self, client: &ServerClient, copy: &Copy) {
        match client.keys(&format!("{}/", copy.target)).await {
            Ok(keys) if keys.is_empty() => {}
            Ok(keys) => self.find(Kind::LeftBehind, format!("keys of a rejected copy: {keys:?}")),
            Err(reply) => self.find(Kind::Other, format!("{reply:?}")),
        }
    }

    /// Waits until a copy with unknown outcome is complete or absent; copies again if it is absent.
    async fn settle(&self, client: &ServerClient, copy: &Copy) {
        let started = Instant::now();
        let mut keys = Vec::new();
        while started.elapsed() < SETTLING {
            if self.record_copy_if_present(client, copy.event, &copy.target).await {
                return;
            }
            keys = client.keys(&format!("{}/", copy.target)).await.unwrap_or_default();
            if keys.is_empty() {
                let again = self.history().begin(Effect::Absent);
                match self.request_copy(client, copy.to, &copy.target).await {
                    Reply::Done(_) => {
                        self.history().rejected(copy.event);
                        self.history().done(again, None);
                        return self.record_copy(client, &Copy { event: again, ..copy.clone() }).await;
                    }
                    _ => self.history().rejected(again),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.history().rejected(copy.event);
        self.find(Kind::LeftBehind, format!("of a copy whose client had left, after {SETTLING:?}: {keys:?}"));
    }

    /// Records the elements of a copy; false if there is none.
    async fn record_copy_if_present(&self, client: &ServerClient, event: Number, target: &str) -> bool {
        match client.send_empty(Method::GET, &format!("/array/{target}?format=raw")).await {
            Reply::Done(answer) => {
                match answer.image() {
                    Some(image) => self.history().record_observation(event, Effect::Copied(image)),
                    None => self.find(Kind::Other, format!("not a copy of ours: {answer:?}")),
                }
                true
            }
            Reply::Undecodable(text) => {
                self.history().rejected(event);
                self.find(Kind::Undecodable, text);
                true
            }
            Reply::Unexpected(text) | Reply::Lost(text) => {
                self.history().rejected(event);
                self.find(Kind::Other, text);
                true
            }
            Reply::Rejected(_) | Reply::Partly => false,
        }
    }
}
