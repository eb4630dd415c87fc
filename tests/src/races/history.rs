//! The requests of one path, and a search for an order of them that explains everything that was seen.

use std::collections::HashSet;

use super::model::{Effect, State};

/// The most steps of a search before it is given up.
const MOST_STEPS: usize = 100_000;

/// About how many elements are looked at alone to tell what is wrong.
const MOST_ALONE: usize = 64;

/// The requests so far. Time is counted in events, so that of any two one is the earlier.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    clock: u64,
    events: Vec<Event>,
}

/// The number of a request.
pub(crate) type Number = usize;

#[derive(Clone, Debug)]
struct Event {
    effect: Effect,
    /// The shape that the array had afterwards, as the answer has it.
    told: Option<Vec<u64>>,
    began: u64,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is under way.
    Open,
    /// It was done at this time.
    Done(u64),
    /// It may have been done by this time.
    Lost(u64),
    /// It was refused, so nothing was done.
    Refused,
}

/// A way in which an answer cannot be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// An element has a value that must be gone, or lacks one that must be there.
    Resurrected,
    /// Each element can be explained alone, and all of them together cannot.
    Mixed,
    /// There were too many orders to look at.
    Undecided,
}

impl History {
    /// Notes that a request begins.
    pub(crate) fn begin(&mut self, effect: Effect) -> Number {
        let began = self.tick();
        self.events.push(Event { effect, told: None, began, end: End::Open });
        self.events.len() - 1
    }

    /// Notes that it was done, and the shape that the answer told.
    pub(crate) fn done(&mut self, number: Number, told: Option<Vec<u64>>) {
        let now = self.tick();
        let event = &mut self.events[number];
        (event.end, event.told) = (End::Done(now), told);
    }

    /// Notes what was seen by a request of which that was not known when it began. It was done by now, unless that was noted before.
    pub(crate) fn saw(&mut self, number: Number, effect: Effect) {
        let now = self.tick();
        let event = &mut self.events[number];
        event.effect = effect;
        if !matches!(event.end, End::Done(_)) {
            event.end = End::Done(now);
        }
    }

    /// Notes that it was refused.
    pub(crate) fn refused(&mut self, number: Number) {
        self.events[number].end = End::Refused;
    }

    /// Notes that it will not be done any more if it was not done by now: all that are under way.
    pub(crate) fn lose_open(&mut self) {
        let now = self.tick();
        for event in self.events.iter_mut().filter(|event| event.end == End::Open) {
            event.end = End::Lost(now);
        }
    }

    /// The number of requests that change elements and were acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        let writes = self.events.iter().filter(|event| {
            matches!(event.end, End::Done(_)) && matches!(event.effect, Effect::Write { .. } | Effect::Append(_))
        });
        writes.count() as u64
    }

    /// The number of requests that may have been done without an answer.
    pub(crate) fn interrupted(&self) -> u64 {
        self.events.iter().filter(|event| matches!(event.end, End::Lost(_))).count() as u64
    }

    /// The number of times that all elements were seen.
    pub(crate) fn images(&self) -> u64 {
        self.events.iter().filter(|event| event.image().is_some()).count() as u64
    }

    /// Finds what was seen that no order of the requests explains: the first of each kind.
    pub(crate) fn check(&self) -> Vec<(Wrong, String)> {
        let all: Vec<&Event> = self.events.iter().filter(|event| event.end != End::Refused).collect();
        match explain(&all) {
            Some(true) => return Vec::new(),
            None => return vec![(Wrong::Undecided, format!("{} requests", all.len()))],
            Some(false) => {}
        }
        let mut wrong = Vec::new();
        let is_observation = |event: &&&Event| event.image().is_some() || matches!(event.effect, Effect::Absent);
        let (mut observed, mut right): (Vec<&Event>, Vec<&Event>) = all.iter().partition(is_observation);
        observed.sort_by_key(|event| event.over());
        for event in observed {
            right.push(event);
            let kind = match explain(&right) {
                Some(true) => continue,
                Some(false) => judge(&right, event),
                None => Wrong::Undecided,
            };
            right.pop();
            if !wrong.iter().any(|(known, _)| *known == kind) {
                wrong.push((kind, format!("{:?}", event.effect)));
            }
        }
        if wrong.is_empty() {
            wrong.push((Wrong::Mixed, "the answers contradict each other".to_owned()));
        }
        wrong
    }

    /// All requests, one in a line.
    pub(crate) fn tell(&self) -> String {
        let told = |event: &Event| {
            let Event { effect, told, began, end } = event;
            let told = told.as_ref().map(|shape| format!(" -> {shape:?}")).unwrap_or_default();
            format!("  {began}..{end:?}: {effect:?}{told}")
        };
        self.events.iter().map(told).collect::<Vec<_>>().join("\n")
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Event {
    fn image(&self) -> Option<&super::model::Image> {
        self.effect.image().filter(|_| self.end != End::Refused)
    }

    /// The time at which it was over.
    fn over(&self) -> u64 {
        match self.end {
            End::Done(end) | End::Lost(end) => end,
            End::Open | End::Refused => u64::MAX,
        }
    }

    fn must_be(&self) -> bool {
        matches!(self.end, End::Done(_))
    }
}

/// The way in which an observation cannot be explained.
fn judge(events: &[&Event], observed: &Event) -> Wrong {
    let Some(image) = observed.image() else { return Wrong::Resurrected };
    let can_be = |wanted: &dyn Fn(usize) -> bool| {
        let looked = Event { effect: observed.effect.looking_at(wanted), ..observed.clone() };
        let events: Vec<&Event> =
            events.iter().map(|event| if std::ptr::eq(*event, observed) { &looked } else { *event }).collect();
        explain(&events)
    };
    if can_be(&|_| false) == Some(false) {
        // Its shape or data type is wrong.
        return Wrong::Mixed;
    }
    // Where many elements are the same, some of them are looked at.
    let few = image.values.len().div_ceil(MOST_ALONE);
    let differs = |at: usize| at == 0 || image.values.get(at) != image.values.get(at - 1);
    let mut alone = (0..image.values.len()).filter(|at| at % few == 0 || differs(*at));
    match alone.any(|at| can_be(&|other| other == at) == Some(false)) {
        true => Wrong::Resurrected,
        false => Wrong::Mixed,
    }
}

/// True where there is an order of the requests in which each one that was done can have been answered as it was; `None` where that takes too long to find out.
fn explain(events: &[&Event]) -> Option<bool> {
    assert!(events.len() <= 128, "a round has few requests");
    let mut search = Search { events, seen: HashSet::new(), steps: 0 };
    let all = events.iter().enumerate().fold(0, |set: u128, (number, _)| set | 1 << number);
    match search.go(all, &None) {
        true => Some(true),
        false if search.steps >= MOST_STEPS => None,
        false => Some(false),
    }
}

struct Search<'a> {
    events: &'a [&'a Event],
    seen: HashSet<(u128, State)>,
    steps: usize,
}

impl Search<'_> {
    /// True where the requests of a set can follow on a state.
    fn go(&mut self, left: u128, state: &State) -> bool {
        let events = self.events;
        let members = || events.iter().enumerate().filter(|(number, _)| left & 1 << number != 0);
        if !members().any(|(_, event)| event.must_be()) {
            return true;
        }
        self.steps += 1;
        if self.steps >= MOST_STEPS || !self.seen.insert((left, state.clone())) {
            return false;
        }
        // Nothing comes after what was done before it began.
        let first_over = members().filter(|(_, event)| event.must_be()).map(|(_, event)| event.over()).min();
        let first_over = first_over.unwrap_or(u64::MAX);
        let mut next: Vec<(usize, &Event)> =
            members().filter(|(_, event)| event.began < first_over).map(|(number, event)| (number, *event)).collect();
        next.sort_by_key(|(_, event)| event.over());
        for (number, event) in next {
            let Some(after) = event.effect.apply(state) else { continue };
            if event.told.as_ref().is_some_and(|told| after.as_ref().is_none_or(|array| array.shape() != told)) {
                continue;
            }
            // What may have been done and was over before this began was not done, if it was not yet.
            let gone = members().filter(|(_, other)| !other.must_be() && other.over() < event.began);
            let gone = gone.fold(1 << number, |set: u128, (number, _)| set | 1 << number);
            if self.go(left & !gone, &after) {
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

    fn begun(extent: u64) -> History {
        let mut history = History::default();
        history.one(Effect::Declare(layout(Element::U16, extent)));
        history
    }

    impl History {
        /// One request after all before it.
        fn one(&mut self, effect: Effect) {
            let number = self.begin(effect);
            self.done(number, None);
        }

        fn read(&mut self, values: &[u16]) -> Vec<Wrong> {
            self.one(Effect::Read(image(Element::U16, values)));
            self.check().into_iter().map(|(wrong, _)| wrong).collect()
        }
    }

    #[test]
    fn concurrent_requests_may_execute_in_any_order() {
        let mut history = begun(4);
        let [one, other] = [history.begin(write(0, 3, 1)), history.begin(write(1, 4, 2))];
        history.done(one, None);
        history.done(other, None);
        assert!(history.clone().read(&[1, 1, 1, 2]).is_empty());
        assert!(history.clone().read(&[1, 2, 2, 2]).is_empty());
        assert_eq!(history.clone().read(&[1, 1, 2, 2]), [Wrong::Mixed]);
        assert_eq!(history.clone().read(&[0, 1, 1, 2]), [Wrong::Resurrected], "an acknowledged write is lost");
        history.one(write(0, 4, 3));
        assert!(history.clone().read(&[3, 3, 3, 3]).is_empty());
        assert_eq!(history.read(&[3, 3, 1, 3]), [Wrong::Resurrected]);
    }

    #[test]
    fn rejected_requests_have_no_effect_and_lost_ones_may() {
        let mut history = begun(2);
        let refused = history.begin(write(0, 2, 1));
        history.refused(refused);
        let lost = history.begin(write(0, 2, 2));
        history.lose_open();
        assert!(lost > refused);
        assert!(history.clone().read(&[0, 0]).is_empty());
        assert!(history.clone().read(&[2, 2]).is_empty());
        assert_eq!(history.clone().read(&[2, 0]), [Wrong::Mixed]);
        assert_eq!(history.clone().read(&[1, 1]), [Wrong::Resurrected]);
        history.one(write(0, 2, 3));
        assert_eq!(history.read(&[2, 2]), [Wrong::Resurrected], "it cannot be done after it was lost");
    }

    #[test]
    fn truncated_elements_do_not_return() {
        let mut history = begun(6);
        let write_before = history.begin(write(0, 6, 1));
        let shrink = history.begin(Effect::Resize(vec![2]));
        history.done(write_before, Some(vec![6]));
        history.done(shrink, None);
        history.one(Effect::Resize(vec![6]));
        assert!(history.clone().read(&[1, 1, 0, 0, 0, 0]).is_empty());
        assert_eq!(history.clone().read(&[1, 1, 1, 1, 1, 1]), [Wrong::Resurrected]);
        assert_eq!(history.clone().read(&[1, 1, 0, 0, 1, 1]), [Wrong::Resurrected]);
        history.one(write(4, 6, 2));
        assert!(history.read(&[1, 1, 0, 0, 2, 2]).is_empty());
    }

    #[test]
    fn reported_shape_orders_the_resize() {
        let mut history = begun(4);
        let [append, shrink] = [history.begin(Effect::Append(Body::Scalar(1))), history.begin(Effect::Resize(vec![2]))];
        history.done(append, Some(vec![3]));
        history.done(shrink, None);
        assert!(history.clone().read(&[0, 0, 1]).is_empty());
        assert_eq!(history.read(&[0, 0]), [Wrong::Mixed]);
    }

    #[test]
    fn erased_or_replaced_elements_do_not_return() {
        for gone in [
            vec![Effect::Erase, Effect::Declare(layout(Element::U8, 4))],
            vec![Effect::Replace(layout(Element::U8, 4))],
        ] {
            let mut history = begun(4);
            let late = history.begin(write(0, 4, 9));
            gone.into_iter().for_each(|effect| history.one(effect));
            history.refused(late);
            let mut right = history.clone();
            right.one(Effect::Read(image(Element::U8, &[0; 4])));
            assert!(right.check().is_empty());
            history.one(Effect::Read(image(Element::U8, &[9, 0, 9, 0])));
            assert_eq!(history.check()[0].0, Wrong::Resurrected);
        }
        let mut history = begun(4);
        history.one(Effect::Erase);
        assert_eq!(history.read(&[0, 0, 0, 0]), [Wrong::Mixed], "there is no array");
    }

    #[test]
    fn copy_is_a_snapshot() {
        let mut history = begun(4);
        history.one(write(0, 4, 1));
        let copy = history.begin(Effect::Absent);
        history.one(write(0, 4, 2));
        history.done(copy, None);
        history.one(write(0, 4, 3));
        let copied = |values: &[u16]| {
            let mut history = history.clone();
            history.saw(copy, Effect::Copied(image(Element::U16, values)));
            history.check().into_iter().map(|(wrong, _)| wrong).collect::<Vec<_>>()
        };
        assert!(copied(&[1; 4]).is_empty());
        assert!(copied(&[2; 4]).is_empty());
        assert_eq!(copied(&[1, 1, 2, 2]), [Wrong::Mixed]);
        assert_eq!(copied(&[3; 4]), [Wrong::Resurrected], "that was written later");
        assert_eq!(copied(&[0; 4]), [Wrong::Resurrected], "that was written over before");
    }

    #[test]
    fn successive_reads_never_go_back_in_time() {
        let mut history = begun(2);
        let during = history.begin(write(0, 2, 1));
        history.one(Effect::Read(image(Element::U16, &[1, 1])));
        history.one(Effect::Read(image(Element::U16, &[0, 0])));
        history.done(during, None);
        assert_eq!(history.check()[0].0, Wrong::Resurrected, "a write that was seen is gone again");
    }
}
