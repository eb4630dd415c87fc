//! One round of a race: requests are made, and afterwards everything is compared with the model.

use std::{sync::Mutex, time::Duration};

use futures::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Finding, Kind,
    copies::Copies,
    history::{History, Wrong},
    kinds::{Race, Script, Step},
    layout::{Dialect, Element, Layout, group},
    model::Effect,
    site::{Reply, Site},
    strays::strays,
};

/// The time for which a request that has to be done is tried again.
const PATIENCE: Duration = Duration::from_secs(30);
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

    /// The directory of everything of this round, in a dialect.
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

    fn top(&self) -> String {
        format!("{}/{}", self.directory(self.script.dialect), self.script.top)
    }

    /// Makes the requests before the race.
    pub(super) async fn set_up(&self, site: &Site) {
        for step in &self.script.setup {
            self.insist(site, step).await;
        }
    }

    /// Makes the requests that race.
    pub(super) async fn race(&self, site: &Site) {
        join_all(self.script.racing.iter().map(async |steps| {
            for (wait, step) in steps {
                tokio::time::sleep(*wait).await;
                if let Reply::Lost(why) = self.perform(site, step).await {
                    self.lost.lock().expect("nobody panics with it").push(why);
                    break;
                }
            }
        }))
        .await;
    }

    /// The server that was asked is gone: what was under way will not be done any more.
    pub(super) fn killed(&self) {
        self.lost.lock().expect("nobody panics with it").clear();
        self.history().lose_open();
    }

    /// Makes the requests after the race, and compares.
    pub(super) async fn close(&self, site: &Site) {
        for why in std::mem::take(&mut *self.lost.lock().expect("nobody panics with it")) {
            self.find(Kind::Other, why);
        }
        self.history().lose_open();
        self.settle_copies(site).await;
        self.look_for_strays(site).await;
        for step in &self.script.closing {
            self.insist(site, step).await;
        }
        self.look_for_strays(site).await;
        let wrong = self.history().check();
        for (wrong, text) in wrong {
            let kind = match wrong {
                Wrong::Resurrected => Kind::Resurrected,
                Wrong::Mixed => Kind::Mixed,
                Wrong::Undecided => Kind::Undecided,
            };
            self.find(kind, text);
        }
        let all = self.history().tell();
        for finding in self.findings.lock().expect("nobody panics with it").iter_mut() {
            finding.text.push('\n');
            finding.text.push_str(&all);
        }
        self.clean(site, &self.directory(self.script.dialect)).await;
        self.clean_copies(site).await;
    }

    /// Makes a request again and again while the server has no room for it.
    async fn insist(&self, site: &Site, step: &Step) {
        let begun = Instant::now();
        loop {
            match self.perform(site, step).await {
                Reply::Refused(429 | 503) if begun.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
                Reply::Refused(status @ (429 | 503)) => {
                    return self.find(Kind::Other, format!("{step:?} was answered {status} for {PATIENCE:?}"));
                }
                Reply::Lost(why) => return self.find(Kind::Other, why),
                _ => return,
            }
        }
    }

    /// Makes a request, and notes what became of it.
    async fn perform(&self, site: &Site, step: &Step) -> Reply {
        if let Step::Copy { to, patience } = step {
            return self.copy(site, *to, *patience).await;
        }
        let number = self.history().begin(effect(step));
        let reply = self.request(site, step).await;
        let mut history = self.history();
        match &reply {
            Reply::Done(answer) if matches!(step, Step::Read) => match answer.image() {
                Some(image) => history.saw(number, Effect::Read(image)),
                None => {
                    history.refused(number);
                    self.find(Kind::Other, format!("not an array of ours: {answer:?}"));
                }
            },
            Reply::Done(answer) => history.done(number, answer.shape()),
            Reply::Refused(404) if matches!(step, Step::Read) => history.done(number, None),
            Reply::Lost(_) => {}
            Reply::Refused(_) => history.refused(number),
            Reply::Undecodable(text) => {
                history.refused(number);
                self.find(Kind::Undecodable, text.clone());
            }
            Reply::Unexpected(text) => {
                history.refused(number);
                self.find(Kind::Other, text.clone());
            }
        }
        reply
    }

    async fn request(&self, site: &Site, step: &Step) -> Reply {
        let (path, top) = (self.path(), self.top());
        let dialect = self.script.dialect.name();
        match step {
            Step::Declare(layout) => {
                site.ask_json(Method::PUT, &format!("/node/{path}?dialect={dialect}"), &layout.zom()).await
            }
            Step::DeclareTree(layout) => {
                site.ask_json(Method::PUT, &format!("/node/{top}?dialect={dialect}"), &self.tree(layout)).await
            }
            Step::Replace(layout) => {
                let target = format!("/node/{path}?dialect={dialect}&{}", super::REPLACE);
                site.ask_json(Method::PUT, &target, &layout.zom()).await
            }
            Step::Erase => site.ask_bare(Method::DELETE, &format!("/node/{path}")).await,
            Step::EraseTree => site.ask_bare(Method::DELETE, &format!("/node/{top}")).await,
            Step::Resize(shape) => {
                site.ask_json(Method::PATCH, &format!("/node/{path}"), &json!({"shape": shape})).await
            }
            Step::Write { select, body } => {
                let ranges: Vec<String> = select.iter().map(|range| format!("{}:{}", range.start, range.end)).collect();
                let target = format!("/array/{path}?select={}", ranges.join(","));
                site.ask_elements(Method::PUT, &target, body).await
            }
            Step::Append(body) => site.ask_elements(Method::POST, &format!("/array/{path}?append=0"), body).await,
            Step::Read | Step::Copy { .. } => site.ask_bare(Method::GET, &format!("/array/{path}?format=raw")).await,
        }
    }

    /// The tree of the groups below the top, with the array.
    fn tree(&self, layout: &Layout) -> Value {
        let below = self.script.node.strip_prefix(self.script.top).unwrap_or_default();
        let names = below.split('/').filter(|name| !name.is_empty());
        names.rev().fold(layout.zom(), |member, name| group(layout.dialect, name, &member))
    }

    async fn look_for_strays(&self, site: &Site) {
        let dialect = self.script.dialect;
        let directory = format!("{}/", self.directory(dialect));
        let array = match site.ask_bare(Method::GET, &format!("/node/{}", self.path())).await {
            Reply::Done(_) => self.request(site, &Step::Read).await,
            absent => absent,
        };
        let grid = match array {
            Reply::Done(answer) => answer.image().and_then(|image| self.grid(&image.shape, image.element)),
            Reply::Refused(404) => Some(Vec::new()),
            // It was found already.
            _ => return,
        };
        let Some(grid) = grid else { return };
        match site.keys(&directory).await {
            Ok(keys) => {
                let strays = strays(dialect, &directory, self.script.node, &grid, &keys);
                if !strays.is_empty() {
                    self.find(Kind::LeftBehind, format!("beyond {grid:?} chunks: {strays:?}"));
                }
            }
            Err(reply) => self.find(Kind::Other, format!("{reply:?}")),
        }
    }

    /// The number of chunks in each dimension of an array of this shape and data type.
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

    /// Erases everything, and looks for what is left.
    pub(super) async fn clean(&self, site: &Site, directory: &str) {
        let begun = Instant::now();
        loop {
            match site.ask_bare(Method::DELETE, &format!("/node/{directory}")).await {
                Reply::Refused(429 | 503) if begun.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
                Reply::Done(_) | Reply::Refused(404) => break,
                other => return self.find(Kind::Other, format!("{other:?}")),
            }
        }
        match site.keys(&format!("{directory}/")).await {
            Ok(keys) if keys.is_empty() => {}
            Ok(keys) => self.find(Kind::LeftBehind, format!("below an erased group: {keys:?}")),
            Err(reply) => self.find(Kind::Other, format!("{reply:?}")),
        }
    }

    /// Notes something wrong: the first of its kind.
    pub(super) fn find(&self, kind: Kind, text: String) {
        let Self { race, number, seed, .. } = *self;
        let found = Finding { kind, race, round: number, seed, text };
        let mut findings = self.findings.lock().expect("nobody panics with it");
        if !findings.iter().any(|known| known.kind == kind) {
            findings.push(found);
        }
    }

    pub(super) fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().expect("nobody panics with it")
    }
}

/// The effect of a request that is done; of one that reads, that nothing is there.
fn effect(step: &Step) -> Effect {
    match step {
        Step::Declare(layout) | Step::DeclareTree(layout) => Effect::Declare(layout.clone()),
        Step::Replace(layout) => Effect::Replace(layout.clone()),
        Step::Erase => Effect::Erase,
        Step::EraseTree => Effect::EraseAbove,
        Step::Resize(shape) => Effect::Resize(shape.clone()),
        Step::Write { select, body } => Effect::Write { select: select.clone(), body: body.clone() },
        Step::Append(body) => Effect::Append(body.clone()),
        Step::Read | Step::Copy { .. } => Effect::Absent,
    }
}
