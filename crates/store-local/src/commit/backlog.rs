//! The queue of the committer.

use std::{collections::VecDeque, sync::mpsc};

use super::Request;

/// Waiting requests in two queues: commits that share a group, and requests that need their own group. The committer
/// alternates between them, so a small commit waits for at most one large commit, not for all earlier ones.
#[derive(Default)]
pub(super) struct Backlog {
    shared: VecDeque<Request>,
    exclusive: VecDeque<Request>,
    stops: bool,
}

impl Backlog {
    /// Receives all requests sent so far, or waits for one. Returns false after the last one.
    pub(super) fn wait(&mut self, requests: &mpsc::Receiver<Request>) -> bool {
        if self.shared.is_empty() && self.exclusive.is_empty() {
            let Some(request) = (!self.stops).then(|| requests.recv().ok()).flatten() else { return false };
            self.push(request);
        }
        self.fill(requests);
        !(self.stops && self.shared.is_empty() && self.exclusive.is_empty())
    }

    /// The next commit that shares a group with others, including those sent just now.
    pub(super) fn next_shared(&mut self, requests: &mpsc::Receiver<Request>) -> Option<Request> {
        self.fill(requests);
        self.shared.pop_front()
    }

    /// The next request that needs its own group.
    pub(super) fn next_exclusive(&mut self) -> Option<Request> {
        self.exclusive.pop_front()
    }

    /// Receives the requests sent before a request to stop.
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
            request if request.is_exclusive() => self.exclusive.push_back(request),
            request => self.shared.push_back(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::oneshot;
    use zarrd_store::{IntentId, Key, WaitTimes};

    use super::*;
    use crate::commit::{Action, KeyCondition, PlainChange};

    fn plain(key: &str) -> Request {
        let (reply, _) = oneshot::channel();
        let key = Key::parse(key).unwrap();
        let change = PlainChange::Key { key, condition: KeyCondition::None, action: Action::Erase };
        Request::Commit { changes: vec![change], reply, wait: Arc::<WaitTimes>::default().start() }
    }

    fn intent() -> Request {
        let (reply, _) = oneshot::channel();
        let change = PlainChange::Intent { id: IntentId::random(), record: None };
        Request::Commit { changes: vec![change], reply, wait: Arc::<WaitTimes>::default().start() }
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
    fn small_commit_waits_for_one_exclusive_request_at_most() {
        let (sender, requests) = mpsc::channel();
        let mut backlog = Backlog::default();
        for request in [intent(), intent(), Request::Freeze, plain("a"), plain("b")] {
            sender.send(request).unwrap();
        }
        let (mut order, mut sender) = (Vec::new(), Some(sender));
        while backlog.wait(&requests) {
            order.extend(std::iter::from_fn(|| backlog.next_shared(&requests)).map(|request| name(&request)));
            order.extend(backlog.next_exclusive().as_ref().map(name));
            if let Some(sender) = sender.take() {
                sender.send(plain("c")).unwrap();
            }
        }
        assert_eq!(order, ["a", "b", "intent", "c", "intent", "other"]);
    }

    #[test]
    fn requests_before_a_stop_are_handled_and_later_ones_are_not() {
        let (sender, requests) = mpsc::channel();
        let mut backlog = Backlog::default();
        for request in [intent(), plain("a"), Request::Stop, plain("b")] {
            sender.send(request).unwrap();
        }
        let mut order = Vec::new();
        while backlog.wait(&requests) {
            order.extend(backlog.next_shared(&requests).as_ref().map(name));
            order.extend(backlog.next_exclusive().as_ref().map(name));
        }
        assert_eq!(order, ["a", "intent"]);
        assert!(requests.try_recv().is_ok_and(|request| name(&request) == "b"), "it is still to be rejected");
    }
}
