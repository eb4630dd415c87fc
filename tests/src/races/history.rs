//! The requests for one path, and a search for an order of them that explains all observations.

use std::collections::{BTreeSet, HashSet};

use super::model::{Effect, Image, State};

/// The maximum number of steps of a search.
const MAX_STEPS: usize = 100_000;

/// The approximate number of elements examined individually to classify a violation.
const MAX_SINGLE_ELEMENTS: usize = 64;

/// The requests so far. Time is counted in events, so any two of them are ordered.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    clock: u64,
    events: Vec<Event>,
}

/// The index of a request.
pub(crate) type Number = usize;

#[derive(Clone, Debug)]
struct Event {
    effect: Effect,
    /// The resulting shape of the array, as reported by the response.
    reported_shape: Option<Vec<u64>>,
    began: u64,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// In progress.
    Open,
    /// Executed at this time.
    Done(u64),
    /// Possibly executed by this time.
    Lost(u64),
    /// Rejected, so it had no effect.
    Rejected,
}

/// The kind of inconsistency of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// An element has a value that must be gone, or lacks one that must be present.
    Resurrected,
    /// Each element is consistent individually, but not all of them together.
    Mixed,
    /// The search had too many orders to examine.
    Undecided,
}

impl History {
    /// Records the start of a request.
    pub(crate) fn begin(&mut self, effect: Effect) -> Number {
        let began = self.tick();
        self.events.push(Event { effect, reported_shape: None, began, end: End::Open });
        self.events.len() - 1
    }

    /// Records the completion of a request, and the shape in its response.
    pub(crate) fn done(&mut self, number: Number, reported_shape: Option<Vec<u64>>) {
        let now = self.tick();
        let event = &mut self.events[number];
        (event.end, event.reported_shape) = (End::Done(now), reported_shape);
    }

    /// Records an observation whose content was unknown when the request started. Marks the request as completed now,
    /// unless it already was.
    pub(crate) fn record_observation(&mut self, number: Number, effect: Effect) {
        let now = self.tick();
        let event = &mut self.events[number];
        event.effect = effect;
        if !matches!(event.end, End::Done(_)) {
            event.end = End::Done(now);
        }
    }

    /// Records the rejection of a request.
    pub(crate) fn rejected(&mut self, number: Number) {
        self.events[number].end = End::Rejected;
    }

    /// Records that a request was executed by now, or is never.
    pub(crate) fn lose(&mut self, number: Number) {
        let now = self.tick();
        self.events[number].end = End::Lost(now);
    }

    /// Records that all requests in progress will not be executed any more unless they already were.
    pub(crate) fn lose_open(&mut self) {
        let now = self.tick();
        for event in self.events.iter_mut().filter(|event| event.end == End::Open) {
            event.end = End::Lost(now);
        }
    }

    /// The number of acknowledged requests that change elements.
    pub(crate) fn acknowledged(&self) -> u64 {
        let writes = self.events.iter().filter(|event| {
            matches!(event.end, End::Done(_)) && matches!(event.effect, Effect::Write { .. } | Effect::Append(_))
        });
        writes.count() as u64
    }

    /// The number of requests that may have been executed without a response.
    pub(crate) fn interrupted(&self) -> u64 {
        self.events.iter().filter(|event| matches!(event.end, End::Lost(_))).count() as u64
    }

    /// The number of observations of all elements.
    pub(crate) fn images(&self) -> u64 {
        self.events.iter().filter(|event| event.image().is_some()).count() as u64
    }

    /// Finds the inconsistent observations: the first one of each kind.
    pub(crate) fn check(&self) -> Vec<(Violation, String)> {
        let all: Vec<&Event> = self.events.iter().filter(|event| event.end != End::Rejected).collect();
        match is_explainable(&all) {
            Some(true) => return Vec::new(),
            None => return vec![(Violation::Undecided, format!("{} requests", all.len()))],
            Some(false) => {}
        }
        let mut violations = Vec::new();
        let is_observation = |event: &&&Event| event.image().is_some() || matches!(event.effect, Effect::Absent);
        let (mut observed, mut consistent): (Vec<&Event>, Vec<&Event>) = all.iter().partition(is_observation);
        observed.sort_by_key(|event| event.ended_by());
        for event in observed {
            consistent.push(event);
            let kind = match is_explainable(&consistent) {
                Some(true) => continue,
                Some(false) => classify(&consistent, event),
                None => Violation::Undecided,
            };
            consistent.pop();
            if !violations.iter().any(|(known, _)| *known == kind) {
                violations.push((kind, format!("{:?}", event.effect)));
            }
        }
        if violations.is_empty() {
            violations.push((Violation::Mixed, "the responses contradict each other".to_owned()));
        }
        violations
    }

    /// Finds the inconsistent observations of single chunks: the first one of each kind. What is observed of several chunks
    /// may be of several moments.
    pub(crate) fn check_chunks(&self, chunk: &[u64]) -> Vec<(Violation, String)> {
        let chunk_of = |image: &Image, at: usize| {
            let columns = image.shape.get(1).copied().unwrap_or(1).max(1);
            let side = |axis: usize| chunk.get(axis).copied().unwrap_or(1);
            (at as u64 / columns / side(0), at as u64 % columns / side(1))
        };
        let images = self.events.iter().filter_map(Event::image);
        let chunks: BTreeSet<(u64, u64)> =
            images.flat_map(|image| (0..image.values.len()).map(|at| chunk_of(image, at))).collect();
        let mut violations: Vec<(Violation, String)> = Vec::new();
        for wanted in chunks {
            let mut of_chunk = self.clone();
            for event in &mut of_chunk.events {
                // Chunks of one write may be written before and after a change of the shape, which leaves them where they are.
                if matches!(event.effect, Effect::Write { .. }) {
                    event.reported_shape = None;
                }
                if let Some(image) = event.image().cloned() {
                    event.effect = event.effect.restricted_to(|at| chunk_of(&image, at) == wanted);
                }
            }
            for (kind, text) in of_chunk.check() {
                if !violations.iter().any(|(known, _)| *known == kind) {
                    violations.push((kind, format!("the chunk {wanted:?}: {text}")));
                }
            }
        }
        violations
    }

    /// All requests, one per line.
    pub(crate) fn describe(&self) -> String {
        let line = |event: &Event| {
            let Event { effect, reported_shape, began, end } = event;
            let reported_shape = reported_shape.as_ref().map(|shape| format!(" -> {shape:?}")).unwrap_or_default();
            format!("  {began}..{end:?}: {effect:?}{reported_shape}")
        };
        self.events.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Event {
    fn image(&self) -> Option<&Image> {
        self.effect.image().filter(|_| self.end != End::Rejected)
    }

    /// The time at which it ended.
    fn ended_by(&self) -> u64 {
        match self.end {
            End::Done(end) | End::Lost(end) => end,
            End::Open | End::Rejected => u64::MAX,
        }
    }

    fn must_execute(&self) -> bool {
        matches!(self.end, End::Done(_))
    }
}

/// Classifies an inconsistent observation.
fn classify(events: &[&Event], observed: &Event) -> Violation {
    let Some(image) = observed.image() else { return Violation::Resurrected };
    let can_be = |wanted: &dyn Fn(usize) -> bool| {
        let examined = Event { effect: observed.effect.restricted_to(wanted), ..observed.clone() };
        let events: Vec<&Event> =
            events.iter().map(|event| if std::ptr::eq(*event, observed) { &examined } else { *event }).collect();
        is_explainable(&events)
    };
    if can_be(&|_| false) == Some(false) {
        // Its shape or data type is wrong.
        return Violation::Mixed;
    }
    // Of many equal elements, only some are examined.
    let few = image.values.len().div_ceil(MAX_SINGLE_ELEMENTS);
    let differs = |at: usize| at == 0 || image.values.get(at) != image.values.get(at - 1);
    let mut alone = (0..image.values.len()).filter(|at| at % few == 0 || differs(*at));
    match alone.any(|at| can_be(&|other| other == at) == Some(false)) {
        true => Violation::Resurrected,
        false => Violation::Mixed,
    }
}

/// True if some order of the requests is consistent with every response; `None` if the search takes too long.
fn is_explainable(events: &[&Event]) -> Option<bool> {
    assert!(events.len() <= 128, "a round has few requests");
    let mut search = Search { events, visited: HashSet::new(), steps: 0 };
    let all = events.iter().enumerate().fold(0, |set: u128, (number, _)| set | 1 << number);
    match search.search_from(all, &None) {
        true => Some(true),
        false if search.steps >= MAX_STEPS => None,
        false => Some(false),
    }
}

struct Search<'a> {
    events: &'a [&'a Event],
    visited: HashSet<(u128, State)>,
    steps: usize,
}

impl Search<'_> {
    /// True if the remaining requests can follow a state.
    fn search_from(&mut self, remaining: u128, state: &State) -> bool {
        let events = self.events;
        let members = || events.iter().enumerate().filter(|(number, _)| remaining & 1 << number != 0);
        if !members().any(|(_, event)| event.must_execute()) {
            return true;
        }
        self.steps += 1;
        if self.steps >= MAX_STEPS || !self.visited.insert((remaining, state.clone())) {
            return false;
        }
        // No request can precede one that completed before it started.
        let first_end = members().filter(|(_, event)| event.must_execute()).map(|(_, event)| event.ended_by()).min();
        let first_end = first_end.unwrap_or(u64::MAX);
        let mut next: Vec<(usize, &Event)> =
            members().filter(|(_, event)| event.began < first_end).map(|(number, event)| (number, *event)).collect();
        next.sort_by_key(|(_, event)| event.ended_by());
        for (number, event) in next {
            let Some(after) = event.effect.apply(state) else { continue };
            if event
                .reported_shape
                .as_ref()
                .is_some_and(|reported_shape| after.as_ref().is_none_or(|array| array.shape() != reported_shape))
            {
                continue;
            }
            // A request that ended before this one started and has not been executed yet is never executed.
            let impossible = members().filter(|(_, other)| !other.must_execute() && other.ended_by() < event.began);
            let impossible = impossible.fold(1 << number, |set: u128, (number, _)| set | 1 << number);
            if self.search_from(remaining & !impossible, &after) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::races::{
        layout::{Dialect, Element, Layout, Storage},
        model::{Body, Image},
    };

    fn layout(element: Element, extent: u64) -> Arc<Layout> {
        let (shape, chunk) = (vec![extent], vec![2]);
        Arc::new(Layout { dialect: Dialect::V3, element, shape, chunk, storage: Storage::Raw, fill: 0 })
    }

    fn write(start: u64, end: u64, value: u16) -> Effect {
        Effect::Write { select: std::iter::once(start..end).collect(), body: Body::Scalar(value) }
    }

    fn image(element: Element, values: &[u16]) -> Image {
        let shape = vec![values.len() as u64];
        Image { element, shape, values: values.iter().copied().map(Some).collect() }
    }

    fn started(extent: u64) -> History {
        let mut history = History::default();
        history.one(Effect::Declare(layout(Element::U16, extent)));
        history
    }

    impl History {
        /// Executes one request after all previous ones.
        fn one(&mut self, effect: Effect) {
            let number = self.begin(effect);
            self.done(number, None);
        }

        fn read(&mut self, values: &[u16]) -> Vec<Violation> {
            self.one(Effect::Read(image(Element::U16, values)));
            self.check().into_iter().map(|(violation, _)| violation).collect()
        }
    }

    #[test]
    fn concurrent_requests_may_execute_in_any_order() {
        let mut history = started(4);
        let [one, other] = [history.begin(write(0, 3, 1)), history.begin(write(1, 4, 2))];
        history.done(one, None);
        history.done(other, None);
        assert!(history.clone().read(&[1, 1, 1, 2]).is_empty());
        assert!(history.clone().read(&[1, 2, 2, 2]).is_empty());
        assert_eq!(history.clone().read(&[1, 1, 2, 2]), [Violation::Mixed]);
        assert_eq!(history.clone().read(&[0, 1, 1, 2]), [Violation::Resurrected], "an acknowledged write is lost");
        history.one(write(0, 4, 3));
        assert!(history.clone().read(&[3, 3, 3, 3]).is_empty());
        assert_eq!(history.read(&[3, 3, 1, 3]), [Violation::Resurrected]);
    }

    #[test]
    fn rejected_requests_have_no_effect_and_lost_ones_may() {
        let mut history = started(2);
        let rejected = history.begin(write(0, 2, 1));
        history.rejected(rejected);
        let lost = history.begin(write(0, 2, 2));
        history.lose_open();
        assert!(lost > rejected);
        assert!(history.clone().read(&[0, 0]).is_empty());
        assert!(history.clone().read(&[2, 2]).is_empty());
        assert_eq!(history.clone().read(&[2, 0]), [Violation::Mixed]);
        assert_eq!(history.clone().read(&[1, 1]), [Violation::Resurrected]);
        history.one(write(0, 2, 3));
        assert_eq!(history.read(&[2, 2]), [Violation::Resurrected], "it cannot be done after it was lost");
    }

    #[test]
    fn truncated_elements_do_not_return() {
        let mut history = started(6);
        let write_before = history.begin(write(0, 6, 1));
        let shrink = history.begin(Effect::Resize(vec![2]));
        history.done(write_before, Some(vec![6]));
        history.done(shrink, None);
        history.one(Effect::Resize(vec![6]));
        assert!(history.clone().read(&[1, 1, 0, 0, 0, 0]).is_empty());
        assert_eq!(history.clone().read(&[1, 1, 1, 1, 1, 1]), [Violation::Resurrected]);
        assert_eq!(history.clone().read(&[1, 1, 0, 0, 1, 1]), [Violation::Resurrected]);
        history.one(write(4, 6, 2));
        assert!(history.read(&[1, 1, 0, 0, 2, 2]).is_empty());
    }

    #[test]
    fn reported_shape_orders_the_resize() {
        let mut history = started(4);
        let [append, shrink] = [history.begin(Effect::Append(Body::Scalar(1))), history.begin(Effect::Resize(vec![2]))];
        history.done(append, Some(vec![3]));
        history.done(shrink, None);
        assert!(history.clone().read(&[0, 0, 1]).is_empty());
        assert_eq!(history.read(&[0, 0]), [Violation::Mixed]);
    }

    #[test]
    fn erased_or_replaced_elements_do_not_return() {
        for impossible in [
            vec![Effect::Erase, Effect::Declare(layout(Element::U8, 4))],
            vec![Effect::Replace(layout(Element::U8, 4))],
        ] {
            let mut history = started(4);
            let late = history.begin(write(0, 4, 9));
            impossible.into_iter().for_each(|effect| history.one(effect));
            history.rejected(late);
            let mut consistent = history.clone();
            consistent.one(Effect::Read(image(Element::U8, &[0; 4])));
            assert!(consistent.check().is_empty());
            history.one(Effect::Read(image(Element::U8, &[9, 0, 9, 0])));
            assert_eq!(history.check()[0].0, Violation::Resurrected);
        }
        let mut history = started(4);
        history.one(Effect::Erase);
        assert_eq!(history.read(&[0, 0, 0, 0]), [Violation::Mixed], "no array exists");
    }

    #[test]
    fn copy_is_a_snapshot() {
        let mut history = started(4);
        history.one(write(0, 4, 1));
        let copy = history.begin(Effect::Absent);
        history.one(write(0, 4, 2));
        history.done(copy, None);
        history.one(write(0, 4, 3));
        let copied = |values: &[u16]| {
            let mut history = history.clone();
            history.record_observation(copy, Effect::Copied(image(Element::U16, values)));
            history.check().into_iter().map(|(violation, _)| violation).collect::<Vec<_>>()
        };
        assert!(copied(&[1; 4]).is_empty());
        assert!(copied(&[2; 4]).is_empty());
        assert_eq!(copied(&[1, 1, 2, 2]), [Violation::Mixed]);
        assert_eq!(copied(&[3; 4]), [Violation::Resurrected], "that was written later");
        assert_eq!(copied(&[0; 4]), [Violation::Resurrected], "that was written over before");
    }

    #[test]
    fn successive_reads_never_go_back_in_time() {
        let mut history = started(2);
        let during = history.begin(write(0, 2, 1));
        history.one(Effect::Read(image(Element::U16, &[1, 1])));
        history.one(Effect::Read(image(Element::U16, &[0, 0])));
        history.done(during, None);
        assert_eq!(history.check()[0].0, Violation::Resurrected, "an observed write disappeared");
    }
}
