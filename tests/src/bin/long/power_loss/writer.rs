//! The writer: loads the keys, then overwrites and erases them until it is killed.

use std::{
    io::Write,
    process::ExitCode,
    sync::{Arc, Mutex},
};

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use zarrd_store::{Key, Payload, Precondition, WriteableStore};
use zarrd_store_local::{LocalStore, Options};

use crate::power_loss::Plan;

/// The work of the tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Load,
    LoadAndChurn,
}

/// The number of concurrent tasks, each with keys of its own.
const WRITERS: u32 = 32;

/// The key with a number. Some keys are long and share most of their text.
pub(crate) fn key(number: u32) -> Key {
    let text = match number % 10 {
        0 => format!("lab/long/{}/c/{number}", "x".repeat(200)),
        kind => format!("lab/exp{kind}/array/c/{}/{number}", number % 97),
    };
    Key::parse(&text).expect("a key")
}

/// The value that the set with this number writes: mostly small, sometimes stored in a file of its own.
pub(crate) fn value(key: u32, number: u32) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64((u64::from(key) << 32) | u64::from(number));
    let len = match random.random_range(0..1000) {
        0..970 => random.random_range(0..400),
        970..995 => random.random_range(400..4097),
        _ => random.random_range(4097..40_000),
    };
    let mut bytes = vec![0; len];
    random.fill(&mut bytes[..]);
    let mut value = number.to_be_bytes().to_vec();
    value.extend_from_slice(&bytes);
    value
}

/// Runs until it is killed.
pub(crate) fn run(plan: &Plan) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = LocalStore::open(&plan.dir, Options::new(plan.index)).await.expect("open the store");
        let out = Arc::new(Mutex::new(std::io::stdout()));
        let note = {
            let out = Arc::clone(&out);
            move |line: String| out.lock().unwrap().write_all(line.as_bytes()).expect("the driver reads")
        };
        let keys = plan.keys;
        let tasks = |work: Work| {
            let tasks = (0..WRITERS).map(|writer| {
                let (store, note) = (store.clone(), note.clone());
                tokio::spawn(async move {
                    let mut random = SmallRng::seed_from_u64(u64::from(writer));
                    let mine: Vec<u32> = (0..keys).filter(|key| key % WRITERS == writer).collect();
                    let mut number = 0;
                    for key in &mine {
                        set(&store, *key, number, &note).await;
                    }
                    if work == Work::Load {
                        return;
                    }
                    loop {
                        number += 1;
                        let key = mine[random.random_range(0..mine.len())];
                        if random.random_ratio(1, 20) {
                            erase(&store, key, &note).await;
                        }
                        set(&store, key, number, &note).await;
                    }
                })
            });
            futures::future::join_all(tasks)
        };
        tasks(Work::Load).await;
        note("loaded\n".to_owned());
        tasks(Work::LoadAndChurn).await;
    });
    ExitCode::FAILURE
}

async fn set(store: &LocalStore, number: u32, version: u32, note: &impl Fn(String)) {
    note(format!("b {number} {version}\n"));
    let content = Payload::from_bytes(value(number, version));
    store.set(&key(number), content, Precondition::none()).await.expect("set");
    note(format!("a {number} {version}\n"));
}

async fn erase(store: &LocalStore, number: u32, note: &impl Fn(String)) {
    note(format!("b {number} -\n"));
    store.erase(&key(number), Precondition::none()).await.expect("erase");
    note(format!("a {number} -\n"));
}
