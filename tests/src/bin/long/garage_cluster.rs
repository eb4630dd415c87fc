//! Servers over a bucket of a cluster of Garage, three nodes of which each store everything: see
//! [`zarrd_tests::bucket_failures`].
//!
//! ```text
//! garage-cluster [--stay SECONDS] [--rounds N] [--readers N] [--seed N] [--writers SCRIPT[,…]] [--binary PATH]
//!                [--dir DIR]
//! ```
//!
//! First the answers of a server over each node are compared with those of the embedded store, and with what the
//! writers of the arrays noted. Then nodes and servers are killed under readers. The command fails if any byte is
//! wrong, if a read gets no answer, or if a server fails that lost nothing. Garage has to be installed; otherwise the
//! command prints how to install it.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use http::StatusCode;
use zarrd_store::{Conditions, Writes};
use zarrd_store_object::{BucketStore, Options, WriteMode};
use zarrd_tests::{
    arguments::arguments,
    binary,
    bucket_failures::{Content, NODES, Plan, VOLUME, launches, run, write_volume},
    garage::{Cluster, garage},
    originals::{Extent, Originals},
    python::{python, python_with_clients, python_with_zarr_2},
    sample::{Sample, SampleServer},
    server::{Launch, Server},
    slices::ServedArrays,
};
use zarrd_wire::routes::encode;

/// The archive of the arrays of the 2020 draft.
const DRAFT: &str = "tests/data/draft_v3_zarr218.tar.gz";

struct Arguments {
    plan: Plan,
    /// The scripts of `tests/clients/slices` whose arrays are compared.
    writers: Vec<String>,
    directory: PathBuf,
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let Arguments { plan, writers, directory } = options();
    let Some(garage) = garage() else { return ExitCode::FAILURE };
    println!("Garage {}, seed {}", garage.version(), plan.seed);
    let dir = tempfile::tempdir_in(directory).expect("a temporary directory");
    let mut cluster = garage.start(dir.path(), NODES);
    refuse_writes(&cluster).await;
    let Some(embedded) = fill_sample(&cluster, dir.path()) else { return ExitCode::FAILURE };
    let launches = launches(&cluster);
    compare_sample(&embedded, &launches).await;
    for script in &writers {
        compare_arrays(&cluster, &launches, script);
    }
    let report = run(plan, &mut cluster, &launches, content(&embedded).await).await;
    print!("{report}");
    if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Garage checks no conditions, so that its buckets stay read-only, or are written without conditions.
async fn refuse_writes(cluster: &Cluster) {
    for (mode, expected) in [
        (WriteMode::Conditional, (Writes::None, Conditions::None)),
        (WriteMode::LastWins, (Writes::Key, Conditions::None)),
    ] {
        let variables = cluster.s3(0).environment().into_iter().map(|(name, value)| (name.to_owned(), value));
        let mut options = Options::with_variables(variables);
        options.writes = mode;
        let store = BucketStore::open(&"s3://bucket/written".parse().expect("a URL"), options).await.expect("a store");
        let found = store.guarantees();
        assert_eq!((found.writes, found.conditions), expected, "{found}");
        let reason = found.read_only_reason.is_some_and(|reason| reason.starts_with("changes of this bucket"));
        assert_eq!(reason, mode == WriteMode::Conditional, "{:?}", found.read_only_reason);
    }
    println!("writes: read-only, and without conditions if the last one may win");
}

/// Copies the sample and a volume into the bucket; returns the embedded store of the sample.
fn fill_sample(cluster: &Cluster, dir: &Path) -> Option<SampleServer> {
    let python = python_with_clients()?;
    let sample = Sample::of(&python);
    let begin = Instant::now();
    cluster.fill(&python, &sample.lab(), "lab/");
    let volume = dir.join(VOLUME);
    write_volume(&volume);
    cluster.fill(&python, &volume, &format!("{VOLUME}/"));
    println!("filled in {:.1?}", begin.elapsed());
    Some(sample.serve())
}

async fn compare_sample(embedded: &SampleServer, launches: &[Launch]) {
    let mut trees = Vec::new();
    for launch in launches {
        let server = launch.start();
        embedded.assert_served_by(&server, "lab/").await;
        trees.push(server.answer("/node/lab?depth=all").await);
        server.stop();
    }
    let expected = embedded.server.answer("/node/lab?depth=all").await;
    assert!(expected.0 == StatusCode::OK && trees.iter().all(|tree| tree.0 == StatusCode::OK));
    assert!(trees.iter().all(|tree| *tree == trees[0]), "trees differ");
    println!(
        "sample: {} values, and all arrays and trees, are served by {} servers like by the embedded store",
        embedded.sample.values().len(),
        launches.len()
    );
}

/// Compares the arrays of a script, as the embedded store and as each server over the bucket has them, with the notes
/// of their writer.
fn compare_arrays(cluster: &Cluster, launches: &[Launch], script: &str) {
    let (Some(python), Some(clients)) = (python(), python_with_clients()) else { return };
    let archive = binary::workspace().join(DRAFT);
    let (served, selections) = match script {
        "note_sample.py" => (ServedArrays::by(&python, script, &[archive.to_str().expect("a plain name")]), 20),
        "write_random.py" => (ServedArrays::by(&python, script, &["60"]), 60),
        "write_zarr2.py" => {
            let Some(old) = python_with_zarr_2() else { return };
            (ServedArrays::of(&Originals::by(&old, script, Extent::All)), 1)
        }
        script => (ServedArrays::of(&Originals::by(&python, script, Extent::All)), 1),
    };
    let begin = Instant::now();
    let prefix = script.trim_end_matches(".py");
    cluster.fill(&clients, served.arrays(), &format!("{prefix}/"));
    let expected = served.compare(&python, selections);
    let filled = begin.elapsed();
    for launch in launches {
        let server: Server = launch.start();
        let compared = served.compare_as_served_by(&server, prefix, &python, selections);
        assert_eq!(compared, expected, "{script}");
        server.stop();
    }
    println!(
        "{script}: {} arrays, {} answers are right from the embedded store and from {} servers ({filled:.1?} to fill, \
         {:.1?} in all)",
        expected.arrays,
        expected.answers,
        launches.len(),
        begin.elapsed()
    );
}

/// The values of the sample, and its arrays as the embedded store has them.
async fn content(embedded: &SampleServer) -> Content {
    let mut content = Content::default();
    for (key, bytes) in embedded.sample.values() {
        content.add(format!("/store/lab/{}", encode(&key)), bytes);
        let Some((path, "zarr.json" | ".zarray")) = key.rsplit_once('/') else { continue };
        let target = format!("/array/lab/{}", encode(path));
        if let (StatusCode::OK, elements) = embedded.server.answer(&target).await {
            content.add(target, elements);
        }
    }
    content
}

fn options() -> Arguments {
    let mut plan = Plan { readers: 10, rounds: 3, stay: Duration::from_secs(10), seed: rand::random() };
    let mut writers = vec!["note_sample.py".to_owned(), "write_tensorstore.py".to_owned()];
    let mut directory = std::env::temp_dir();
    for argument in arguments() {
        match argument.name.as_str() {
            "--stay" => plan.stay = Duration::from_secs(argument.number()),
            "--rounds" => plan.rounds = argument.number(),
            "--readers" => plan.readers = argument.number(),
            "--seed" => plan.seed = argument.number(),
            "--writers" => writers = argument.list(),
            "--binary" => binary::use_program(argument.value.into()),
            "--dir" => directory = argument.value.into(),
            _ => argument.reject(),
        }
    }
    Arguments { plan, writers, directory }
}
