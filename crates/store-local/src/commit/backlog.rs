//! The requests that the committer has not taken yet.

use std::{collections::VecDeque, sync::mpsc};

use super::Request;

/// Requests that wait, in two queues: commits that share a round, and requests that need a round of their own. The
/// committer takes from both in turn, so a small commit waits for one large commit at most, not for all that came before.
#[derive(Default)]
pub(super) struct Backlog {
    shared: VecDeque<Request>,
    alone: VecDeque<Request>,
    stops: bool,
}

impl Backlog {
    /// Takes in all that has been sent; waits for a request if there is none. False after the last one.
    pub(super) fn wait(&mut self, requests: &mpsc::Receiver<Request>) -> bool {
        if self.shared.is_empty() && self.alone.is_empty() {
            let Some(request) = (!self.stops).then(|| requests.recv().ok()).flatten() else { return false };
            self.push(request);
        }
        self.fill(requests);
        !(self.stops && self.shared.is_empty() && self.alone.is_empty())
    }

    /// The next commit that shares a round with others, also one that was sent just now.
    pub(super) fn next_shared(&mut self, requests: &mpsc::Receiver<Request>) -> Option<Request> {
        self.fill(requests);
        self.shared.pop_front()
    }

    /// The next request that needs a round of its own.
    pub(super) fn next_alone(&mut self) -> Option<Request> {
        self.alone.pop_front()
    }

    /// Takes in what has been sent before a request to stop.
    fn fill(&mut self, requests: &mpsc::Receiver<Request>) {
        while !self.stops
            && let Ok(request) = requests.try_recv()
        {
            self.push(request);
        }
    }

    fn push(&mut self, request: Request) {
        match request {
            Request::Stop => self.stops = true,
            request if request.is_alone() => self.alone.push_back(request),
            request => self.shared.push_back(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use store::{IntentId, Key, Precondition};
    use tokio::sync::oneshot;

    use super::*;
    use crate::commit::{Action, PlainChange};

    fn plain(key: &str) -> Request {
        let (reply, _) = oneshot::channel();
        let key = Key::parse(key).unwrap();
        let change = PlainChange::Key { key, precondition: Precondition::none(), action: Action::Erase };
        Request::Commit { changes: vec![change], reply }
    }

    fn intent() -> Request {
        let (reply, _) = oneshot::channel();
        let change = PlainChange::Intent { id: IntentId::random(), record: None };
        Request::Commit { changes: vec![change], reply }
    }

    fn name(request: &Request) -> String {
        match request {
            Request::Commit { changes, .. } => {
                changes.iter().map(|change| change.key().map_or("intent", Key::as_str)).collect()
            }
            _ => "other".to_owned(),
        }
    }

    #[test]
    fn a_small_commit_waits_for_one_other_round_at_most() {
        let (sender, requests) = mpsc::channel();
        let mut backlog = Backlog::default();
        for request in [intent(), intent(), Request::Freeze, plain("a"), plain("b")] {
            sender.send(request).unwrap();
        }
        let (mut order, mut sender) = (Vec::new(), Some(sender));
        while backlog.wait(&requests) {
            order.extend(std::iter::from_fn(|| backlog.next_shared(&requests)).map(|request| name(&request)));
            order.extend(backlog.next_alone().as_ref().map(name));
            if let Some(sender) = sender.take() {
                sender.send(plain("c")).unwrap();
            }
        }
        assert_eq!(order, ["a", "b", "intent", "c", "intent", "other"]);
    }

    #[test]
    fn what_was_sent_before_a_stop_is_taken_and_nothing_after() {
        let (sender, requests) = mpsc::channel();
        let mut backlog = Backlog::default();
        for request in [intent(), plain("a"), Request::Stop, plain("b")] {
            sender.send(request).unwrap();
        }
        let mut order = Vec::new();
        while backlog.wait(&requests) {
            order.extend(backlog.next_shared(&requests).as_ref().map(name));
            order.extend(backlog.next_alone().as_ref().map(name));
        }
        assert_eq!(order, ["a", "intent"]);
        assert!(requests.try_recv().is_ok_and(|request| name(&request) == "b"), "it is still to be refused");
    }
}
