//! The state that the clones of a store share.

use std::{sync::Arc, time::Duration};

use rustix::process::{Resource, getrlimit};
use tokio::sync::Semaphore;
use zarrd_store::{CursorSigner, Key, StoreError, ValueMeta, VersionHash};

use crate::{
    attributes::{Attributes, Versions},
    buffers::Buffers,
    error::StepError,
    held::HeldNames,
    open_files::OpenFiles,
    options::Options,
    quiet::{Precision, Quiet},
    recent::RecentNames,
    root::Root,
    small::SmallDirectories,
    writer::Writer,
};

/// The maximum number of operations that block at a time. A file system that hangs occupies so many threads at most.
const MAX_BLOCKING: usize = 64;

/// The memory for the beginnings of values that are read before their stream is polled, in KiB.
const PREFETCH_KIB: usize = 64 << 10;

/// The maximum number of values that are received and not set: each has a temporary file, which a killed server leaves.
const MAX_RECEIVED: u64 = 512;

/// The part of all file descriptors of which each value that is received has one. It needs two.
const FILES_PER_RECEIVED: u64 = 16;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) root: Root,
    pub(crate) cursors: CursorSigner,
    /// One permit for each KiB.
    pub(crate) prefetch: Arc<Semaphore>,
    pub(crate) buffers: Buffers,
    pub(crate) open_files: OpenFiles,
    pub(crate) held: HeldNames,
    pub(crate) small: SmallDirectories,
    pub(crate) recent: RecentNames,
    /// True if all file systems are those of this machine.
    near: bool,
    /// What writing needs, if the store was opened for that.
    writer: Option<Writer>,
    versions: Versions,
    quiet: Quiet,
    blocking: Arc<Semaphore>,
    /// One permit for each value that is received and not set.
    pub(crate) received: Arc<Semaphore>,
}

impl Inner {
    pub(crate) fn new(root: Root, near: bool, writer: Option<Writer>, options: &Options) -> Self {
        let hash = VersionHash::new(&options.name);
        Self {
            root,
            cursors: hash.cursors(),
            prefetch: Arc::new(Semaphore::new(PREFETCH_KIB)),
            buffers: Buffers::default(),
            open_files: OpenFiles::default(),
            held: HeldNames::default(),
            small: SmallDirectories::default(),
            recent: RecentNames::default(),
            near,
            writer,
            versions: Versions::new(hash),
            quiet: Quiet::default(),
            blocking: Arc::new(Semaphore::new(MAX_BLOCKING)),
            received: Arc::new(Semaphore::new(max_received())),
        }
    }

    /// True if reading the attributes of a file asks no other machine.
    pub(crate) fn is_near(&self) -> bool {
        self.near && !self.root.faults.is_uncached()
    }

    /// Does work that never waits on this thread, since to switch threads takes longer; `None` if it would have to wait.
    pub(crate) fn at_once<T>(&self, work: impl FnOnce(&Self) -> Result<T, StepError>) -> Option<Result<T, StoreError>> {
        if !self.is_near() {
            return None;
        }
        match work(self) {
            Ok(done) => Some(Ok(done)),
            Err(StepError::Failed(error)) => Some(Err(error)),
            Err(StepError::WouldBlock) => None,
        }
    }

    /// Runs work on the thread pool for work that blocks. If the future is dropped, the work still ends before its
    /// place is given to other work.
    pub(crate) async fn run<T: Send + 'static, E: Into<StoreError> + Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, E> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.blocking).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let inner = Arc::clone(self);
        let work = move || {
            let _permit = permit;
            work(&inner).map_err(Into::into)
        };
        zarrd_executor::run_blocking(work).await.unwrap_or(Err(StoreError::Closed))
    }

    /// The metadata of a value whose file is quiet.
    pub(crate) fn meta(&self, key: &Key, attributes: &Attributes) -> ValueMeta {
        self.versions.meta(key, attributes)
    }

    /// The time after which a file has been quiet if its attributes are still the same; `None` if it has been already, or
    /// if this process wrote it.
    pub(crate) fn wait(&self, key: &Key, attributes: &Attributes, precision: Precision) -> Option<Duration> {
        let wait = self.quiet.wait(attributes, || self.meta(key, attributes).version, precision)?;
        let is_own = self.writer.as_ref().is_some_and(|writer| writer.wrote(self.meta(key, attributes).version));
        (!is_own).then_some(wait)
    }

    /// What writing needs. Fails if the store was opened for reading only.
    pub(crate) fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or(StoreError::Unsupported { what: "changes" })
    }
}

/// The maximum number of values that are received and not set.
fn max_received() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(MAX_RECEIVED.min(files / FILES_PER_RECEIVED)).unwrap_or(usize::MAX)
}
