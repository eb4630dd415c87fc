//! The command line.

use std::path::PathBuf;

use zarrd_store_local::IndexKind;

use crate::crash_states::{
    classes::Class,
    image::EventIndex,
    kinds::{self, KINDS, Kind},
    states::{Choice, Order},
};

/// The options of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) indexes: Vec<IndexKind>,
    pub(crate) kinds: Vec<&'static Kind>,
    /// The number of random states at each crash point.
    pub(crate) random: u64,
    /// The number of pending changes that are tried both missing and alone at each crash point.
    pub(crate) singles: usize,
    /// The maximum number of crash points of a recording; 0 for all.
    pub(crate) points: usize,
    pub(crate) seed: u64,
    pub(crate) order: Order,
    pub(crate) ignored_class: Option<&'static Class>,
    /// The class whose bytes are durable without a sync, to reveal other failures.
    pub(crate) durable: Option<&'static Class>,
    pub(crate) controls: bool,
    pub(crate) keep: Option<PathBuf>,
    /// The directory where recordings are made and retained.
    pub(crate) dir: PathBuf,
    /// The directory where states are opened.
    pub(crate) states_dir: PathBuf,
    pub(crate) jobs: usize,
    /// A recording from which one state is replayed.
    pub(crate) replay: Option<PathBuf>,
    pub(crate) point: EventIndex,
    pub(crate) state: Choice,
}

pub(crate) fn index(name: &str) -> IndexKind {
    match name {
        "sled" => IndexKind::Sled,
        "redb" => IndexKind::Redb,
        _ => panic!("no index is called {name}"),
    }
}

impl Plan {
    pub(crate) fn parse(arguments: &[String]) -> Self {
        let mut plan = Self {
            indexes: vec![IndexKind::Sled, IndexKind::Redb],
            kinds: KINDS.iter().collect(),
            random: 4,
            singles: 4,
            points: 0,
            seed: 1,
            order: Order::Ordered,
            ignored_class: None,
            durable: None,
            controls: false,
            keep: None,
            dir: std::env::temp_dir().join("crash-states"),
            states_dir: PathBuf::from("/dev/shm").join(format!("crash-states-{}", std::process::id())),
            jobs: std::thread::available_parallelism().map_or(2, usize::from),
            replay: None,
            point: 0,
            state: Choice::Everything,
        };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            if name == "--controls" {
                plan.controls = true;
                continue;
            }
            let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
            let number = || value.parse::<usize>().unwrap_or_else(|_| panic!("{name} takes a number"));
            match name.as_str() {
                "--index" if value == "both" => {}
                "--index" => plan.indexes = vec![index(value)],
                "--kind" => plan.kinds = value.split(',').map(kinds::named).collect(),
                "--states" => plan.random = number() as u64,
                "--singles" => plan.singles = number(),
                "--points" => plan.points = number(),
                "--seed" => plan.seed = number() as u64,
                "--entries" if value == "any" => plan.order = Order::Any,
                "--entries" if value == "ordered" => plan.order = Order::Ordered,
                "--leave-out" => plan.ignored_class = Some(Class::named(value)),
                "--durable" => plan.durable = Some(Class::named(value)),
                "--keep" => plan.keep = Some(value.into()),
                "--dir" => plan.dir = value.into(),
                "--jobs" => plan.jobs = number().max(1),
                "--replay" => plan.replay = Some(value.into()),
                "--point" => plan.point = number(),
                "--state" => plan.state = Choice::parse(value),
                _ => panic!("unknown: {name} {value}"),
            }
        }
        plan
    }
}
