//! State shared by all sections: options, directories, the Python environment, and the arrays.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use zarrd_store_local::IndexKind;
use zarrd_tests::{
    benchmark::machine,
    binary::target_dir,
    python::{Python, python_for_benchmarks},
};

use crate::{
    nodes::{Large, fill},
    options::Options,
    python::Process,
    servers::{Nginx, Zarrd},
};

/// A run of the benchmark.
pub(crate) struct Bench {
    pub(crate) options: Options,
    /// The commit when the run began.
    pub(crate) commit: String,
    scratch: TempDir,
    python: Option<Python>,
    arrays: OnceCell<Arrays>,
    large: [OnceCell<Large>; 2],
    /// The digests of the elements read, by array and selection.
    digests: RefCell<HashMap<String, Value>>,
}

/// The arrays, as files and imported into a store.
#[derive(Clone)]
pub(crate) struct Arrays {
    pub(crate) files: PathBuf,
    pub(crate) store: PathBuf,
}

impl Bench {
    pub(crate) fn new(options: Options) -> Self {
        let scratch = tempfile::Builder::new().prefix("benchmark-").tempdir_in(target_dir()).expect("a directory");
        Self {
            options,
            commit: machine::commit(),
            scratch,
            python: python_for_benchmarks(),
            arrays: OnceCell::new(),
            large: Default::default(),
            digests: RefCell::default(),
        }
    }

    /// A directory for the data, on the disk of `target/`.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A new directory, removed on drop.
    pub(crate) fn directory(&self) -> TempDir {
        tempfile::tempdir_in(self.scratch()).expect("a directory")
    }

    /// The interpreter with the clients, or the reason why there is none.
    pub(crate) fn python(&self) -> Result<&Python, &'static str> {
        self.python
            .as_ref()
            .ok_or("it takes Python 3.12 or later, with the packages of tests/clients/requirements-benchmarks.txt")
    }

    /// The arrays, created on first use.
    pub(crate) fn arrays(&self) -> Result<Arrays, &'static str> {
        let python = self.python()?;
        let make = || {
            let (files, store) = (self.scratch().join("files"), self.scratch().join("store"));
            fs::create_dir(&files).expect("make a directory");
            let request = json!({"do": "make", "side": self.options.scale.side, "directory": files});
            Process::start(python, "writer").request(&request);
            Zarrd::import(self.options.index, &files, &store);
            Arrays { files, store }
        };
        Ok(self.arrays.get_or_init(make).clone())
    }

    /// The store of many keys, created on first use. The caller stops any server that it starts on it.
    pub(crate) fn large(&self, index: IndexKind) -> &Large {
        self.large[usize::from(index == IndexKind::Redb)].get_or_init(|| fill(self, index))
    }

    /// Starts zarrd on the arrays.
    pub(crate) fn zarrd(&self, arrays: &Arrays) -> Zarrd {
        Zarrd::start(self.options.index, &arrays.store, &self.cache().each_ref().map(String::as_str))
    }

    /// The arguments that set the size of zarrd's chunk cache.
    pub(crate) fn cache(&self) -> [String; 2] {
        ["--chunk-cache".to_owned(), self.options.scale.cache.to_string()]
    }

    /// Starts nginx on the files of the arrays.
    pub(crate) fn nginx(&self, arrays: &Arrays) -> Result<Nginx, String> {
        Nginx::start(&arrays.files, self.scratch())
    }

    /// Checks that every client read the same elements.
    pub(crate) fn check(&self, array: &str, what: &Value, digest: &Value) {
        let mut digests = self.digests.borrow_mut();
        let known = digests.entry(format!("{array} {what}")).or_insert_with(|| digest.clone());
        assert_eq!(known, digest, "{array} {what}: clients read different elements");
    }

    /// The date, commit, command, machine, and the versions and settings of the peers.
    pub(crate) fn description(&self) -> String {
        let scale = &self.options.scale;
        let peers = self.python().map_or_else(
            |reason| format!("no clients in Python ({reason})"),
            |python| {
                let versions = Process::start(python, "versions").request(&json!({"do": "versions"}));
                let versions = versions.as_object().expect("versions").iter();
                let versions =
                    versions.map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default()));
                versions.collect::<Vec<_>>().join(", ")
            },
        );
        let nginx = machine::nginx().map_or_else(|| "no nginx".to_owned(), |version| format!("nginx {version}"));
        let quick = if scale.quick { " (a quick run, whose figures mean little)" } else { "" };
        format!(
            "| | |\n|---|---|\n| date | {}{quick} |\n| commit | {} |\n| command | `cargo bench -p zarrd-tests --bench report --{}` |\n\
             | machine | {} |\n| zarrd | index {}, `--chunk-cache` {} MiB, defaults otherwise |\n| peers | {nginx}, {peers} |\n",
            machine::today(),
            self.commit,
            self.options.arguments,
            machine::machine(self.scratch()),
            self.options.index,
            scale.cache >> 20,
        )
    }
}
