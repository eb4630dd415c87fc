//! Starting the threads of an opened store.

use std::{
    io,
    sync::{Arc, atomic::AtomicU64, mpsc},
};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use zarrd_store::{CursorSigner, RunId};

use super::{
    format::Format,
    inner::{Queues, StoreInner, Threads},
};
use crate::{
    Options,
    checkpoint::{CheckpointTask, Checkpointer, IndexWriter, Timers, VerifyState},
    commit::{Committer, Publisher, RecentChanges},
    gc::{GarbageCollector, Pins},
    lock::Lock,
    log_key::LogKey,
    open::{Opened, OpenedReadOnly},
    orphans::Orphans,
    read_only_flag::ReadOnlyFlag,
    record::FileId,
    scrub::{Scrub, ScrubSource},
    space::Reserve,
    spill::SpillFiles,
    values::Buffers,
    view::{Memtable, Parts, Views},
};

/// The limit of prefetched data, over all readers, in KiB.
const PREFETCH_KIB: usize = 32 << 10;
/// The limit of small staged values in memory, in bytes; beyond it they are spilled.
const INLINE_BYTES: usize = 16 << 20;
/// The limit of small values that snapshots retain in memory, in bytes; beyond it replaced values expire.
const SNAPSHOT_BYTES: usize = 64 << 20;

impl StoreInner {
    pub(super) fn start(lock: Lock, opened: Opened, options: &Options) -> io::Result<Self> {
        let Opened { paths, identity, sizes, ballast, log, files, index, meta, sweeps, damage, .. } = opened;
        let Opened { index_options, generations, replayed, epoch, directory, verify, .. } = opened;
        let start = FileId::random_start_of(epoch);
        let replayed = (!replayed.is_empty()).then(|| Arc::new(replayed));
        let parts = Parts {
            active: Arc::new(Memtable::default()),
            frozen: replayed,
            index: Arc::clone(&index),
            sweeps: Arc::new(sweeps),
            damage: Arc::new(damage),
        };
        let views = Arc::new(Views::new(parts, start, identity.id));
        let pins = Pins::new(options.pin_timeout, sizes.pins);
        let (collector, collector_thread) = GarbageCollector::start(directory.clone(), &pins)?;
        let read_only = Arc::new(ReadOnlyFlag::new(false));
        let recent = Arc::new(RecentChanges::default());
        let applied = Arc::new(Notify::new());
        let (requests, received) = mpsc::channel();
        let (tasks, received_tasks) = mpsc::channel();
        let orphans = Arc::new(Orphans::new(paths.clone()));
        let spare_bytes = log.segment_size().saturating_mul(2).min(sizes.segment);
        let committer = Committer {
            log,
            directory: directory.clone(),
            read_only: Arc::clone(&read_only),
            recent: Arc::clone(&recent),
            publisher: Publisher {
                views: Arc::clone(&views),
                files: Arc::clone(&files),
                collector: collector.clone(),
                checkpointer: tasks.clone(),
                freeze_bytes: sizes.commit_buffer / 4,
                freeze_log_bytes: sizes.commit_buffer,
            },
            number: start,
            store_id: identity.id,
            unreadable_since: None,
        };
        let checkpointer = Checkpointer {
            paths: paths.clone(),
            index_options,
            store_id: identity.id,
            epoch,
            views: Arc::clone(&views),
            files: Arc::clone(&files),
            directory: directory.clone(),
            collector: collector.clone(),
            ballast: Arc::clone(&ballast),
            orphans: Arc::clone(&orphans),
            reserve: Reserve::new(options.reserve_bytes),
            read_only: Arc::clone(&read_only),
            requests: requests.clone(),
            writer: IndexWriter::new(index, meta),
            generations,
            applied: Arc::clone(&applied),
            verify: if verify { VerifyState::Waiting } else { VerifyState::Done },
            compaction: None,
            retired: Vec::new(),
            rebuilds: 0,
            spare_bytes,
            timers: Timers::default(),
        };
        let threads = Threads::Writing {
            committer: committer.start(received)?,
            checkpointer: checkpointer.start(received_tasks)?,
            collector: collector_thread,
            lock,
        };
        let log_key = LogKey::new(identity.id, identity.secret);
        let source =
            ScrubSource { paths: paths.clone(), views: Arc::clone(&views), directory: directory.clone(), log_key };
        let scrub = options.scrub.map(|interval| Scrub::start(source, interval)).transpose()?;
        // Apply the replayed groups now.
        let _ = tasks.send(CheckpointTask::Apply);
        Ok(Self {
            cursors: CursorSigner::new(identity.secret),
            log_key,
            spill: SpillFiles::new(paths.log()),
            fault: options.sync_fault(),
            paths,
            format: Format::of(&identity),
            identity,
            views,
            recent,
            log_files: files,
            directory,
            buffers: Buffers::default(),
            pins,
            collector,
            read_only,
            reserve: Reserve::new(options.reserve_bytes),
            ballast,
            orphans,
            next_file: AtomicU64::new(start),
            start,
            run: RunId::random(),
            epoch,
            prefetch: Arc::new(Semaphore::new(PREFETCH_KIB)),
            inline: Arc::new(Semaphore::new(INLINE_BYTES)),
            snapshots: Arc::new(Semaphore::new(SNAPSHOT_BYTES)),
            commit_buffer: sizes.commit_buffer,
            min_joined_bytes: options.min_joined_bytes,
            waits: Queues::default(),
            applied,
            scrub: Mutex::new(scrub),
            threads: Mutex::new(Some(threads)),
            requests: Mutex::new(Some(requests)),
            tasks: Mutex::new(Some(tasks)),
        })
    }

    pub(super) fn start_read_only(opened: OpenedReadOnly, options: &Options) -> io::Result<Self> {
        let OpenedReadOnly {
            lock,
            paths,
            identity,
            sizes,
            files,
            ballast,
            index,
            copy,
            sweeps,
            damage,
            replayed,
            epoch,
            directory,
        } = opened;
        let parts = Parts {
            active: Arc::new(replayed),
            frozen: None,
            index: Arc::clone(&index),
            sweeps: Arc::new(sweeps),
            damage: Arc::new(damage),
        };
        // All numbers assigned so far are visible.
        let visible = FileId::first_of(epoch.saturating_add(1));
        let pins = Pins::new(options.pin_timeout, sizes.pins);
        let (collector, collector_thread) = GarbageCollector::start(directory.clone(), &pins)?;
        let (requests, _) = mpsc::channel();
        let orphans = Arc::new(Orphans::new(paths.clone()));
        let threads = Threads::ReadOnly { index, copy, collector: collector_thread, lock };
        Ok(Self {
            cursors: CursorSigner::new(identity.secret),
            log_key: LogKey::new(identity.id, identity.secret),
            spill: SpillFiles::new(paths.log()),
            fault: options.sync_fault(),
            views: Arc::new(Views::new(parts, visible, identity.id)),
            paths,
            format: Format::of(&identity),
            identity,
            recent: Arc::new(RecentChanges::default()),
            log_files: files,
            directory,
            buffers: Buffers::default(),
            pins,
            collector,
            read_only: Arc::new(ReadOnlyFlag::new(true)),
            reserve: Reserve::new(options.reserve_bytes),
            ballast,
            orphans,
            next_file: AtomicU64::new(visible),
            start: visible,
            run: RunId::random(),
            epoch,
            prefetch: Arc::new(Semaphore::new(PREFETCH_KIB)),
            inline: Arc::new(Semaphore::new(INLINE_BYTES)),
            snapshots: Arc::new(Semaphore::new(SNAPSHOT_BYTES)),
            commit_buffer: sizes.commit_buffer,
            min_joined_bytes: options.min_joined_bytes,
            waits: Queues::default(),
            applied: Arc::new(Notify::new()),
            scrub: Mutex::new(None),
            threads: Mutex::new(Some(threads)),
            requests: Mutex::new(Some(requests)),
            tasks: Mutex::new(None),
        })
    }
}
