//! Opens the crash states of a recording.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::Path,
    sync::{Arc, Mutex, mpsc},
};

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use crate::crash_states::{
    classes::Class,
    history::Fault,
    image::{EventIndex, Image},
    plan::Plan,
    pool::Opener,
    record::Recording,
    states::{Choice, choices, state},
    trace::Event,
    tree::Tree,
    verify::Outcome,
};

/// The number of crash points that are next to neither an acknowledgement nor a sync.
const OTHER_POINTS: usize = 100;
/// The number of states shown for each failure message.
const MAX_SHOWN: usize = 2;

/// The results of opening a recording's states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) points: usize,
    pub(crate) states: usize,
    /// The number of distinct states.
    pub(crate) opened: usize,
    /// The number of states with each fault.
    pub(crate) faults: BTreeMap<Fault, usize>,
    /// The number of states with any fault.
    pub(crate) failed: usize,
    /// The failures by message, without numbers.
    pub(crate) failures: BTreeMap<(Fault, String), Failure>,
}

/// States that fail with the same message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub(crate) count: usize,
    /// The first ones: the full message, and the command that rebuilds the state.
    pub(crate) first: Vec<(String, String)>,
}

struct Job {
    point: EventIndex,
    choice: Choice,
    tree: Tree,
}

/// The crash points of a recording: before and after each acknowledgement and each completed sync, and some others,
/// limited by the plan.
pub(crate) fn points(events: &[Event], first: EventIndex, plan: &Plan) -> Vec<EventIndex> {
    let end = events.len();
    let mut points = BTreeSet::from([first, end]);
    for (at, event) in events.iter().enumerate().skip(first) {
        let counts = match event {
            Event::SyncEnd { .. } => true,
            Event::Note(text) => text.starts_with("a "),
            _ => false,
        };
        if counts {
            points.extend([at, at + 1]);
        }
    }
    points.extend((first..end).step_by((end - first).div_ceil(OTHER_POINTS).max(1)));
    let points: Vec<EventIndex> = points.into_iter().collect();
    if plan.points == 0 || points.len() <= plan.points {
        return points;
    }
    let shift: f64 = SmallRng::seed_from_u64(plan.seed).random();
    let each = points.len() as f64 / plan.points as f64;
    (0..plan.points).map(|number| points[((number as f64 + shift) * each) as usize]).collect()
}

/// Opens the states of all crash points.
pub(crate) fn explore(recording: &Recording, plan: &Plan, ignored_class: Option<&'static Class>) -> Report {
    let report = Mutex::new(Report::default());
    let known: Mutex<HashMap<u128, Arc<Outcome>>> = Mutex::default();
    let (sender, receiver) = mpsc::sync_channel::<Job>(plan.jobs);
    let receiver = Mutex::new(receiver);
    let points = points(&recording.events, recording.first(), plan);
    std::thread::scope(|scope| {
        for number in 0..plan.jobs {
            let (report, known, receiver) = (&report, &known, &receiver);
            let mut opener = Opener::new(recording.index, &recording.keys(), &plan.states_dir.join(number.to_string()));
            scope.spawn(move || {
                loop {
                    let job = receiver.lock().expect("the jobs").recv();
                    let Ok(job) = job else { return };
                    let hash = job.tree.hash();
                    let cached = known.lock().expect("a consistent report").get(&hash).cloned();
                    let outcome = cached.unwrap_or_else(|| {
                        let outcome = Arc::new(opener.open(&job.tree));
                        known.lock().expect("a consistent report").insert(hash, Arc::clone(&outcome));
                        outcome
                    });
                    let faults = find_faults(recording, job.point, &outcome);
                    if !faults.is_empty()
                        && let Some(keep) = &plan.keep
                    {
                        save_state(recording, &job, keep);
                    }
                    let mut report = report.lock().expect("the report");
                    report.note(&faults, || command(recording, plan, ignored_class, job.point, job.choice));
                }
            });
        }
        let mut image = Image::of(&recording.base, ignored_class, plan.durable);
        for point in &points {
            recording.events[image.now..*point].iter().for_each(|event| image.take(event));
            for choice in choices(&image, plan.singles, plan.random, plan.seed) {
                let tree = state(&image, choice, plan.order, plan.seed);
                sender.send(Job { point: *point, choice, tree }).expect("someone opens the states");
            }
        }
        drop(sender);
    });
    let opened = known.into_inner().expect("a consistent report").len();
    Report { points: points.len(), opened, ..report.into_inner().expect("the report") }
}

/// Builds and opens one state of a saved recording.
pub(crate) fn replay(
    recording: &Recording,
    plan: &Plan,
    ignored_class: Option<&'static Class>,
    at: (EventIndex, Choice),
) -> Report {
    let (point, choice) = at;
    let mut image = Image::of(&recording.base, ignored_class, plan.durable);
    recording.events[..point].iter().for_each(|event| image.take(event));
    let job = Job { point, choice, tree: state(&image, choice, plan.order, plan.seed) };
    if let Some(keep) = &plan.keep {
        save_state(recording, &job, keep);
    }
    let outcome = Opener::new(recording.index, &recording.keys(), &plan.states_dir.join("0")).open(&job.tree);
    let mut report = Report { points: 1, opened: 1, ..Report::default() };
    report.note(&find_faults(recording, point, &outcome), || command(recording, plan, ignored_class, point, choice));
    report
}

/// A random state of a recording that opens without faults.
pub(crate) fn sound_state(recording: &Recording, plan: &Plan) -> Option<(EventIndex, Tree)> {
    let mut opener = Opener::new(recording.index, &recording.keys(), &plan.states_dir.join("0"));
    let mut random = SmallRng::seed_from_u64(plan.seed ^ u64::from(recording.level));
    (0..30).find_map(|number| {
        let point = random.random_range(recording.first()..recording.events.len());
        let mut image = Image::of(&recording.base, None, plan.durable);
        recording.events[..point].iter().for_each(|event| image.take(event));
        let tree = state(&image, Choice::Random(number), plan.order, plan.seed);
        find_faults(recording, point, &opener.open(&tree)).is_empty().then_some((point, tree))
    })
}

fn find_faults(recording: &Recording, point: EventIndex, outcome: &Outcome) -> Vec<(Fault, String)> {
    if let Some(why) = &outcome.open_error {
        return vec![(Fault::Unopened, why.clone())];
    }
    let mut faults = recording.history.find_faults(point, &outcome.found);
    faults.extend(outcome.problems.iter().map(|problem| (Fault::Unsound, problem.clone())));
    faults
}

fn save_state(recording: &Recording, job: &Job, keep: &Path) {
    let name = format!("{}-{}-{}-{}", recording.index, recording.kind.name, job.point, job.choice).replace(':', "-");
    std::fs::create_dir_all(keep.join(&name)).expect("make a directory for a state");
    job.tree.write(&keep.join(name));
}

/// The command that rebuilds and opens a state.
fn command(
    recording: &Recording,
    plan: &Plan,
    ignored_class: Option<&Class>,
    point: EventIndex,
    choice: Choice,
) -> String {
    let out = ignored_class.map(|class| format!(" --leave-out {}", class.name)).unwrap_or_default();
    let durable = plan.durable.map(|class| format!(" --durable {}", class.name)).unwrap_or_default();
    let order = if plan.order == crate::crash_states::states::Order::Any { " --entries any" } else { "" };
    let (dir, seed) = (recording.dir.display(), plan.seed);
    format!("crash-states --replay {dir} --point {point} --state {choice} --seed {seed}{order}{out}{durable}")
}

impl Report {
    pub(crate) fn note(&mut self, faults: &[(Fault, String)], command: impl Fn() -> String) {
        self.states += 1;
        self.failed += usize::from(!faults.is_empty());
        let kinds: BTreeSet<Fault> = faults.iter().map(|(fault, _)| *fault).collect();
        for kind in kinds {
            *self.faults.entry(kind).or_default() += 1;
            let texts: Vec<&String> = faults.iter().filter(|(fault, _)| *fault == kind).map(|(_, text)| text).collect();
            let failure = self.failures.entry((kind, without_numbers(texts[0]))).or_default();
            failure.count += 1;
            if failure.first.len() < MAX_SHOWN {
                let more = if texts.len() > 1 { format!(" (and {} more)", texts.len() - 1) } else { String::new() };
                failure.first.push((format!("{}{more}", texts[0]), command()));
            }
        }
    }

    /// Records a failure that belongs to no state.
    pub(crate) fn record_failure(&mut self, why: &str) {
        self.failed += 1;
        *self.faults.entry(Fault::Unopened).or_default() += 1;
        let failure = self.failures.entry((Fault::Unopened, without_numbers(why))).or_default();
        failure.count += 1;
        failure.first.push((why.to_owned(), "no state: it is the run's own store".to_owned()));
    }

    /// Merges another report.
    pub(crate) fn add(&mut self, other: Self) {
        self.points += other.points;
        self.states += other.states;
        self.opened += other.opened;
        self.failed += other.failed;
        for (fault, count) in other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        for (describe, failure) in other.failures {
            let known = self.failures.entry(describe).or_default();
            known.count += failure.count;
            known.first.extend(failure.first);
            known.first.truncate(MAX_SHOWN);
        }
    }
}

/// The message without keys and numbers, which identifies a kind of failure.
fn without_numbers(text: &str) -> String {
    let short: String = text.chars().take(300).collect();
    let describe = short.split(' ').map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word });
    describe.collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |fault| self.faults.get(&fault).copied().unwrap_or_default();
        write!(
            f,
            "{:>5} points {:>6} states ({:>6} distinct)  unopened {:>5}  lost {:>5}  partial {:>4}  unsound {:>5}",
            self.points,
            self.states,
            self.opened,
            of(Fault::Unopened),
            of(Fault::Lost),
            of(Fault::Partial),
            of(Fault::Unsound)
        )
    }
}
