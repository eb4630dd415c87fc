//! Copies of an array that is written to meanwhile.

use std::time::Duration;

use http::Method;
use tokio::time::{Instant, timeout};

use super::{
    Kind,
    history::Number,
    layout::Dialect,
    model::Effect,
    round::Round,
    site::{Reply, Site},
};

/// The longest that a copy whose client has gone may be there in part.
const SETTLING: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

/// The copies of a round.
pub(super) type Copies = Vec<Copy>;

/// A copy that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    to: Dialect,
    target: String,
    event: Number,
    end: End,
}

/// The answer that its client had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Refused,
    /// Nothing: it left, or the server died.
    Unknown,
}

impl Round {
    /// Asks for a copy at a place of its own, and leaves after some time, if that is said.
    pub(super) async fn copy(&self, site: &Site, to: Dialect, patience: Option<Duration>) -> Reply {
        let number = self.copies.lock().expect("nobody panics with it").len();
        let target = format!("{}/copy-{number}", self.directory_of_copies(to));
        let event = self.history().begin(Effect::Absent);
        let entry = Copy { to, target: target.clone(), event, end: End::Unknown };
        self.copies.lock().expect("nobody panics with it").push(entry);
        let asked = self.ask_for_copy(site, to, &target);
        let reply = match patience {
            Some(patience) => timeout(patience, asked).await.unwrap_or(Reply::Refused(0)),
            None => asked.await,
        };
        let end = match &reply {
            Reply::Done(_) => {
                self.history().done(event, None);
                End::Done
            }
            Reply::Refused(0) | Reply::Lost(_) => End::Unknown,
            Reply::Refused(_) => End::Refused,
            Reply::Undecodable(text) | Reply::Unexpected(text) => {
                self.find(Kind::Other, text.clone());
                End::Refused
            }
        };
        if let Some(copy) = self.copies.lock().expect("nobody panics with it").get_mut(number) {
            copy.end = end;
        }
        reply
    }

    async fn ask_for_copy(&self, site: &Site, to: Dialect, target: &str) -> Reply {
        site.ask_bare(Method::POST, &format!("/node/{}?convert={}&target=/{target}", self.path(), to.name())).await
    }

    /// Notes the elements of all copies.
    pub(super) async fn settle_copies(&self, site: &Site) {
        let copies = self.copies.lock().expect("nobody panics with it").clone();
        for copy in &copies {
            match copy.end {
                End::Done => self.see_copy(site, copy).await,
                End::Refused => {
                    self.history().refused(copy.event);
                    self.see_nothing(site, copy).await;
                }
                End::Unknown => self.settle(site, copy).await,
            }
        }
    }

    /// Erases all copies.
    pub(super) async fn clean_copies(&self, site: &Site) {
        let copies = self.copies.lock().expect("nobody panics with it").clone();
        for copy in &copies {
            self.clean(site, &self.directory_of_copies(copy.to)).await;
        }
    }

    /// The number of copies whose clients were told, and of those whose clients were not.
    pub(super) fn count_copies(&self) -> (u64, u64) {
        let copies = self.copies.lock().expect("nobody panics with it");
        let count = |wanted: End| copies.iter().filter(|copy| copy.end == wanted).count() as u64;
        (count(End::Done), count(End::Unknown))
    }

    async fn see_copy(&self, site: &Site, copy: &Copy) {
        if !self.see_if_there(site, copy.event, &copy.target).await {
            self.history().refused(copy.event);
            self.find(Kind::Mixed, format!("/{} was acknowledged and is not there", copy.target));
        }
    }

    async fn see_nothing(&self, site: &Site, copy: &Copy) {
        match site.keys(&format!("{}/", copy.target)).await {
            Ok(keys) if keys.is_empty() => {}
            Ok(keys) => self.find(Kind::LeftBehind, format!("of a copy that was refused: {keys:?}")),
            Err(reply) => self.find(Kind::Other, format!("{reply:?}")),
        }
    }

    /// Waits until a copy of which nothing is known is there or not, and makes it anew in that case.
    async fn settle(&self, site: &Site, copy: &Copy) {
        let begun = Instant::now();
        let mut keys = Vec::new();
        while begun.elapsed() < SETTLING {
            if self.see_if_there(site, copy.event, &copy.target).await {
                return;
            }
            keys = site.keys(&format!("{}/", copy.target)).await.unwrap_or_default();
            if keys.is_empty() {
                let again = self.history().begin(Effect::Absent);
                match self.ask_for_copy(site, copy.to, &copy.target).await {
                    Reply::Done(_) => {
                        self.history().refused(copy.event);
                        self.history().done(again, None);
                        return self.see_copy(site, &Copy { event: again, ..copy.clone() }).await;
                    }
                    _ => self.history().refused(again),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.history().refused(copy.event);
        self.find(Kind::LeftBehind, format!("of a copy whose client had left, after {SETTLING:?}: {keys:?}"));
    }

    /// Notes the elements of a copy; false where there is none.
    async fn see_if_there(&self, site: &Site, event: Number, target: &str) -> bool {
        match site.ask_bare(Method::GET, &format!("/array/{target}?format=raw")).await {
            Reply::Done(answer) => {
                match answer.image() {
                    Some(image) => self.history().saw(event, Effect::Copied(image)),
                    None => self.find(Kind::Other, format!("not a copy of ours: {answer:?}")),
                }
                true
            }
            Reply::Undecodable(text) => {
                self.history().refused(event);
                self.find(Kind::Undecodable, text);
                true
            }
            Reply::Unexpected(text) | Reply::Lost(text) => {
                self.history().refused(event);
                self.find(Kind::Other, text);
                true
            }
            Reply::Refused(_) => false,
        }
    }
}
