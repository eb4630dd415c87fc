//! One round of a race: sends requests, then compares the results with the model.

use std::{sync::Mutex, time::Duration};

use futures::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Finding, Kind,
    client::{Reply, ServerClient},
    copies::Copies,
    history::{History, Violation},
    kinds::{Converted, Existing, Race, Script, Step},
    layout::{Dialect, Element, Layout, group},
    model::Effect,
    strays::strays,
};

/// The time for which a required request is retried.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// A round of a race.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) race: Race,
    pub(super) number: u64,
    pub(super) seed: u64,
    pub(super) script: Script,
    pub(super) history: Mutex<History>,
    pub(super) copies: Mutex<Copies>,
    pub(super) lost: Mutex<Vec<String>>,
    pub(super) findings: Mutex<Vec<Finding>>,
}

impl Round {
    pub(super) fn new(race: Race, number: u64, seed: u64) -> Self {
        let script = race.script(seed);
        let (history, copies, lost, findings) =
            (Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default());
        Self { race, number, seed, script, history, copies, lost, findings }
    }

    /// The directory of all nodes of this round in a dialect.
    pub(super) fn directory(&self, dialect: Dialect) -> String {
        format!("{}/{}-{}", dialect.name(), self.race.name(), self.number)
    }

    /// The directory of the copies in a dialect.
    pub(super) fn directory_of_copies(&self, dialect: Dialect) -> String {
        format!("{}/copies-{}-{}", dialect.name(), self.race.name(), self.number)
    }

    /// The path of the array.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.directory(self.script.dialect), self.script.node)
    }

    /// The path of the topmost group.
    pub(super) fn top(&self) -> String {
        format!("{}/{}", self.directory(self.script.dialect), self.script.top)
    }

    /// Sends the requests before the race.
    pub(super) async fn set_up(&self, client: &ServerClient) {
        for step in &self.script.setup {
            self.perform_with_retry(client, step).await;
        }
    }

    /// Sends the racing requests.
    pub(super) async fn race(&self, client: &ServerClient) {
        join_all(self.script.racing.iter().map(async |steps| {
            for (wait, step) in steps {
                tokio::time::sleep(*wait).await;
                if let Reply::Lost(why) = self.perform(client, step).await {
                    self.lost.lock().expect("the lock is not poisoned").push(why);
                    break;
                }
            }
        }))
        .await;
    }

    /// Records that the server was killed: requests in progress will not be executed.
    pub(super) fn killed(&self) {
        self.lost.lock().expect("the lock is not poisoned").clear();
        self.history().lose_open();
    }

    /// Sends the requests after the race, and checks the results.
    pub(super) async fn finish_requests(&self, client: &ServerClient) {
        for why in std::mem::take(&mut *self.lost.lock().expect("the lock is not poisoned")) {
            self.find(Kind::Other, why);
        }
        self.history().lose_open();
        self.settle_copies(client).await;
        // A write that races with a shrink is told that it wrote a part, which is outside until the next shrink.
        if !self.race.is_keyed() {
            self.find_stray_keys(client).await;
        }
        for step in &self.script.closing {
            self.perform_with_retry(client, step).await;
        }
        self.find_stray_keys(client).await;
        if self.race == Race::Convert {
            self.find_stale_copies(client).await;
        }
        let violations = match self.race.is_keyed() {
            true => self.chunk_violations(),
            false => self.history().check(),
        };
        for (violation, text) in violations {
            let kind = match violation {
                Violation::Resurrected => Kind::Resurrected,
                Violation::Mixed => Kind::Mixed,
                Violation::Undecided => Kind::Undecided,
            };
            self.find(kind, text);
        }
        let all = self.history().describe();
        for finding in self.findings.lock().expect("the lock is not poisoned").iter_mut() {
            finding.text.push('\n');
            finding.text.push_str(&all);
        }
        self.clean(client, &self.directory(self.script.dialect)).await;
        self.clean_copies(client).await;
    }

    /// Retries a request while the server is busy.
    async fn perform_with_retry(&self, client: &ServerClient, step: &Step) {
        let started = Instant::now();
        loop {
            match self.perform(client, step).await {
                Reply::Rejected(429 | 503) if started.elapsed() < RETRY_TIMEOUT => tokio::time::sleep(PAUSE).await,
                Reply::Rejected(status @ (429 | 503)) => {
                    return self.find(Kind::Other, format!("{step:?} was answered {status} for {RETRY_TIMEOUT:?}"));
                }
                Reply::Lost(why) => return self.find(Kind::Other, why),
                Reply::Partly if started.elapsed() < RETRY_TIMEOUT => tokio::time::sleep(PAUSE).await,
                // Nothing races with it.
                Reply::Rejected(status) if self.race.is_keyed() => {
                    return self.find(Kind::Other, format!("{step:?} was answered {status}"));
                }
                _ => return,
            }
        }
    }

    /// Sends a request and records its outcome.
    async fn perform(&self, client: &ServerClient, step: &Step) -> Reply {
        if let Step::Copy { to, leaves_after } = step {
            return self.copy(client, *to, *leaves_after).await;
        }
        let number = self.history().begin(effect(step));
        let reply = self.request(client, step).await;
        let mut history = self.history();
        match &reply {
            Reply::Done(answer) if matches!(step, Step::Read | Step::ReadAs(_)) => match answer.image() {
                Some(image) => history.record_observation(number, Effect::Read(image)),
                None => {
                    history.rejected(number);
                    self.find(Kind::Other, format!("not an array of ours: {answer:?}"));
                }
            },
            // Nothing that a read shows.
            Reply::Done(_) if matches!(step, Step::Consolidate | Step::Convert { .. } | Step::Settle) => {
                history.rejected(number)
            }
            Reply::Done(answer) => history.done(number, answer.shape()),
            Reply::Rejected(404) if matches!(step, Step::Read) => history.done(number, None),
            Reply::Lost(_) => {}
            Reply::Partly => history.lose(number),
            Reply::Rejected(_) => history.rejected(number),
            Reply::Undecodable(text) => {
                history.rejected(number);
                self.find(Kind::Undecodable, text.clone());
            }
            Reply::Unexpected(text) => {
                history.rejected(number);
                self.find(Kind::Other, text.clone());
            }
        }
        reply
    }

    async fn request(&self, client: &ServerClient, step: &Step) -> Reply {
        let (path, top) = (self.path(), self.top());
        let dialect = self.script.dialect.name();
        match step {
            Step::Declare(layout) => {
                client.send_json(Method::PUT, &format!("/node/{path}?dialect={dialect}"), &layout.zom()).await
            }
            Step::DeclareTree(layout) => {
                client.send_json(Method::PUT, &format!("/node/{top}?dialect={dialect}"), &self.tree(layout)).await
            }
            Step::Replace(layout) => {
                let target = format!("/node/{path}?dialect={dialect}&{}", super::REPLACE);
                client.send_json(Method::PUT, &target, &layout.zom()).await
            }
            Step::Erase => client.send_empty(Method::DELETE, &format!("/node/{path}")).await,
            Step::EraseTree => client.send_empty(Method::DELETE, &format!("/node/{top}")).await,
            Step::Resize(shape) => {
                client.send_json(Method::PATCH, &format!("/node/{path}"), &json!({"shape": shape})).await
            }
            Step::Settle => match client.send_empty(Method::GET, &format!("/node/{path}")).await {
                Reply::Done(answer) => {
                    let shape = answer.json()["shape"].take();
                    client.send_json(Method::PATCH, &format!("/node/{path}"), &json!({"shape": shape})).await
                }
                other => other,
            },
            Step::Write { select, body } => {
                let ranges: Vec<String> = select.iter().map(|range| format!("{}:{}", range.start, range.end)).collect();
                let target = format!("/array/{path}?select={}", ranges.join(","));
                client.send_elements(Method::PUT, &target, body).await
            }
            Step::Append(body) => client.send_elements(Method::POST, &format!("/array/{path}?append=0"), body).await,
            Step::Read | Step::Copy { .. } => {
                client.send_empty(Method::GET, &format!("/array/{path}?format=raw")).await
            }
            Step::ReadAs(dialect) => {
                client.send_empty(Method::GET, &format!("/array/{path}?format=raw&dialect={}", dialect.name())).await
            }
            Step::Consolidate => self.consolidate(client).await,
            Step::Convert { what, existing } => {
                let at = if *what == Converted::Array { path } else { top };
                let overwrite = if *existing == Existing::Overwrite { "&overwrite" } else { "" };
                client.send_empty(Method::POST, &format!("/node/{at}?dialect=v2&convert=v3{overwrite}")).await
            }
        }
    }

    /// The tree of the groups below the top, with the array.
    fn tree(&self, layout: &Layout) -> Value {
        let below = self.script.node.strip_prefix(self.script.top).unwrap_or_default();
        let names = below.split('/').filter(|name| !name.is_empty());
        names.rev().fold(layout.zom(), |member, name| group(layout.dialect, name, &member))
    }

    async fn find_stray_keys(&self, client: &ServerClient) {
        let dialect = self.script.dialect;
        let directory = format!("{}/", self.directory(dialect));
        let array = match client.send_empty(Method::GET, &format!("/node/{}", self.path())).await {
            Reply::Done(_) => self.request(client, &Step::Read).await,
            absent => absent,
        };
        let grid = match array {
            Reply::Done(answer) => answer.image().and_then(|image| self.grid(&image.shape, image.element)),
            Reply::Rejected(404) => Some(Vec::new()),
            // Already recorded.
            _ => return,
        };
        let Some(grid) = grid else { return };
        match client.keys(&directory).await {
            Ok(keys) => {
                let strays = strays(dialect, &directory, self.script.node, &grid, &keys);
                if !strays.is_empty() {
                    self.find(Kind::LeftBehind, format!("beyond {grid:?} chunks: {strays:?}"));
                }
            }
            Err(reply) => self.find(Kind::Other, format!("{reply:?}")),
        }
    }

    /// The violations of single chunks, and of the answers after the race.
    fn chunk_violations(&self) -> Vec<(Violation, String)> {
        let declared = self.script.setup.iter().find_map(|step| match step {
            Step::Declare(layout) | Step::DeclareTree(layout) => Some(layout.chunk.clone()),
            _ => None,
        });
        self.history().check_chunks(&declared.expect("a round declares its array"))
    }

    /// The number of chunks in each dimension of an array with this shape and data type.
    fn grid(&self, shape: &[u64], element: Element) -> Option<Vec<u64>> {
        let declared = |step: &Step| match step {
            Step::Declare(layout) | Step::DeclareTree(layout) | Step::Replace(layout) => Some(layout.clone()),
            _ => None,
        };
        let script = &self.script;
        let steps = script.setup.iter().chain(&script.closing);
        let mut layouts = steps.chain(script.racing.iter().flatten().map(|(_, step)| step)).filter_map(declared);
        // The two arrays of a round have different data types.
        let layout = layouts.find(|layout| layout.element == element)?;
        Some(shape.iter().zip(&layout.chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect())
    }

    /// Erases everything, and checks for remaining keys.
    pub(super) async fn clean(&self, client: &ServerClient, directory: &str) {
        let started = Instant::now();
        loop {
            match client.send_empty(Method::DELETE, &format!("/node/{directory}")).await {
                Reply::Rejected(429 | 503) if started.elapsed() < RETRY_TIMEOUT => tokio::time::sleep(PAUSE).await,
                Reply::Done(_) | Reply::Rejected(404) => break,
                other => return self.find(Kind::Other, format!("{other:?}")),
            }
        }
        match client.keys(&format!("{directory}/")).await {
            Ok(keys) if keys.is_empty() => {}
            Ok(keys) => self.find(Kind::LeftBehind, format!("below an erased group: {keys:?}")),
            Err(reply) => self.find(Kind::Other, format!("{reply:?}")),
        }
    }

    /// Records a violation, the first one of its kind.
    pub(super) fn find(&self, kind: Kind, text: String) {
        let Self { race, number, seed, .. } = *self;
        let found = Finding { kind, race, round: number, seed, text };
        let mut findings = self.findings.lock().expect("the lock is not poisoned");
        if !findings.iter().any(|known| known.kind == kind) {
            findings.push(found);
        }
    }

    pub(super) fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().expect("the lock is not poisoned")
    }
}

/// The effect of an executed request; for a read, the observation that no node exists.
fn effect(step: &Step) -> Effect {
    match step {
        Step::Declare(layout) | Step::DeclareTree(layout) => Effect::Declare(layout.clone()),
        Step::Replace(layout) => Effect::Replace(layout.clone()),
        Step::Erase => Effect::Erase,
        Step::EraseTree => Effect::EraseAbove,
        Step::Resize(shape) => Effect::Resize(shape.clone()),
        Step::Write { select, body } => Effect::Write { select: select.clone(), body: body.clone() },
        Step::Append(body) => Effect::Append(body.clone()),
        Step::Read | Step::ReadAs(_) | Step::Copy { .. } | Step::Consolidate | Step::Convert { .. } | Step::Settle => {
            Effect::Absent
        }
    }
}
