//! The audit of a copy: opens its store and compares every key with the journal.

use std::{
    fmt,
    fs::File,
    io::BufReader,
    process::{ExitCode, Stdio},
};

use zarrd_store::ReadableStore;
use zarrd_store_local::{LocalStore, Options};

use crate::power_loss::{
    Plan,
    image::Copy,
    journal::{Journal, Operation},
    writer,
};

/// The results of an audit.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    pub(crate) lost: u64,
    pub(crate) failed_open: Option<String>,
    checked: u64,
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failed_open {
            Some(why) => write!(f, "DID NOT OPEN: {why}"),
            None => write!(f, "{} checked, {} lost", self.checked, self.lost),
        }
    }
}

/// Audits a copy in a separate process, since a damaged index might crash it.
pub(crate) fn audit(plan: &Plan, copy: &Copy, journal: &Journal) -> Audit {
    let file = copy.journal();
    journal.save(File::create(&file).expect("make the journal's file"));
    let mut command = plan.command("audit", &copy.store());
    let output = command.stdin(File::open(&file).expect("the journal")).stderr(Stdio::inherit()).output();
    let output = String::from_utf8_lossy(&output.expect("run the audit").stdout).into_owned();
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["audited", checked, lost] = words[..] {
            let number = |text: &str| text.parse().expect("a number");
            return Audit { lost: number(lost), failed_open: None, checked: number(checked) };
        }
    }
    Audit { failed_open: Some(output), ..Audit::default() }
}

/// The audit process: reads the journal from standard input.
pub(crate) fn run(plan: &Plan) -> ExitCode {
    let journal = Journal::load(BufReader::new(std::io::stdin()));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = match LocalStore::open(&plan.dir, Options::new(plan.index)).await {
            Ok(store) => store,
            Err(error) => {
                println!("{error}: {:?}", std::error::Error::source(&error));
                return ExitCode::FAILURE;
            }
        };
        let (mut checked, mut lost) = (0_u64, 0_u64);
        for (number, entry) in journal.entries() {
            checked += 1;
            let state = match state(&store, number).await {
                Ok(state) => state,
                Err(why) => {
                    eprintln!("key {number}: {why}");
                    lost += 1;
                    continue;
                }
            };
            if !entry.allows(state) {
                eprintln!("key {number}: found {state:?}, but expected {entry:?}");
                lost += 1;
            }
        }
        println!("audited {checked} {lost}");
        ExitCode::SUCCESS
    })
}

async fn state(store: &LocalStore, number: u32) -> Result<Operation, String> {
    let value = store.get(&writer::key(number), None).await.map_err(|error| format!("{error:?}"))?;
    let Some(value) = value else { return Ok(Operation::Erase) };
    let bytes = value.bytes().await.map_err(|error| format!("{error:?}"))?;
    let version = bytes.first_chunk::<4>().ok_or("a value of less than four bytes")?;
    let version = u32::from_be_bytes(*version);
    if bytes == writer::value(number, version) { Ok(Operation::Set(version)) } else { Err("other bytes".into()) }
}
