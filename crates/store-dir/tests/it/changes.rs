//! Files that change while they are read.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::common::{Fixture, overwrite, read_to_end, replace, replace_at_once};
use bytes::Bytes;
use tokio::task::JoinSet;
use zarrd_store::{
    ByteRange, Key, Keyed, ListableStore, PageRequest, Prefix, ReadableStore, SnapshotStore, StoreError, Version,
};
use zarrd_store_dir::{DirStore, Faults, Moment, Options};

const LARGE: usize = 2 << 20;

/// A change of a file that is made after a buffer was read.
type Change = fn(&Path);

/// File systems whose files are in memory, so that they are read at once, and others.
fn file_systems() -> [Faults; 2] {
    [Faults::default(), Faults::default().nothing_cached()]
}

/// A directory in which `change` is made once to the file `a`, after so many buffers were read.
async fn changing(faults: Faults, change: Change, buffers: usize) -> Fixture {
    let target = Arc::new(Mutex::new(None::<PathBuf>));
    let (at, read) = (Arc::clone(&target), AtomicUsize::new(0));
    let faults = faults.on_moment(move |moment| {
        let is_now = *moment == Moment::Read && read.fetch_add(1, Ordering::Relaxed) == buffers;
        if is_now {
            change(at.lock().unwrap().as_ref().unwrap());
        }
    });
    let fixture = Fixture::with(Options::new("dir:test").faults(faults)).await;
    *target.lock().unwrap() = Some(fixture.path("a"));
    fixture
}

/// The changes that leave other bytes in the file.
const IN_PLACE: [(&str, Change); 4] = [
    ("overwritten", |path| overwrite(path, b"new")),
    ("shortened", |path| fs::OpenOptions::new().write(true).open(path).unwrap().set_len(100).unwrap()),
    ("extended", |path| {
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(LARGE as u64 + 5).unwrap();
    }),
    ("truncated and written again", |path| fs::write(path, vec![b'n'; LARGE]).unwrap()),
];

/// The changes that leave the file as it is, under no name.
const REMOVING: [(&str, Change); 3] = [
    ("removed", |path| fs::remove_file(path).unwrap()),
    ("replaced", |path| replace(path, &vec![b'n'; LARGE])),
    ("replaced by a shorter one", |path| replace(path, b"")),
];

#[tokio::test]
async fn a_value_that_changes_while_it_is_streamed_fails() {
    for (name, change) in IN_PLACE {
        for (buffers, faults) in
            [1, 3, 7].into_iter().flat_map(|buffers| file_systems().map(|faults| (buffers, faults)))
        {
            let fixture = changing(faults, change, buffers).await;
            fixture.write("a", vec![b'o'; LARGE]);
            let mut value = fixture.get("a").await.unwrap().unwrap();
            let mut read = 0;
            let error = loop {
                match futures::TryStreamExt::try_next(&mut value.stream).await {
                    Ok(Some(buffer)) => {
                        assert!(buffer.iter().all(|byte| *byte == b'o'), "{name} after {buffers}");
                        read += buffer.len();
                    }
                    Ok(None) => panic!("a value that was {name} ended after {read} bytes"),
                    Err(error) => break error,
                }
            };
            assert!(matches!(&error, StoreError::Changed { key } if key.as_str() == "a"), "{name}: {error:?}");
            assert_eq!(read, buffers * (256 << 10), "{name}");
        }
    }
}

/// Nothing was yielded yet, so the value is read again.
#[tokio::test]
async fn a_value_that_changes_before_its_first_byte_is_read_as_it_is_then() {
    for (name, change) in IN_PLACE {
        for (size, faults) in [1_000, LARGE].into_iter().flat_map(|size| file_systems().map(|faults| (size, faults))) {
            let fixture = changing(faults, change, 0).await;
            fixture.write("a", vec![b'o'; size]);
            let (version, bytes) = fixture.read("a").await.unwrap();
            assert!(bytes == fs::read(fixture.path("a")).unwrap(), "{name}");
            assert_eq!(
                fixture.store.head(&Key::parse("a").unwrap()).await.unwrap().unwrap().version,
                version,
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn a_value_that_is_replaced_or_removed_is_read_to_its_end() {
    for (name, change) in REMOVING {
        for (size, buffers) in [(1_000, 0), (LARGE, 0), (LARGE, 1), (LARGE, 7)] {
            let fixture = changing(Faults::default(), change, buffers).await;
            let old = vec![b'o'; size];
            fixture.write("a", &old);
            let value = fixture.get("a").await.unwrap().unwrap();
            assert!(read_to_end(value).await.unwrap() == old, "{name} after {buffers}");
            assert_ne!(fs::read(fixture.path("a")).ok(), Some(old), "{name}");
        }
    }
}

/// The link of a file that zarr-python removes after it has made another one.
#[tokio::test]
async fn a_value_whose_other_name_is_removed_is_read() {
    let fixture = changing(Faults::default(), |path| fs::remove_file(path.with_extension("partial")).unwrap(), 0).await;
    fixture.write("a.partial", "value");
    fs::hard_link(fixture.path("a.partial"), fixture.path("a")).unwrap();
    assert_eq!(fixture.read("a").await.unwrap().1, "value");
}

/// A change with which the time of modification is as it was, and one of two names is gone.
fn overwrite_and_remove_another_name(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"new", LARGE as u64 / 2).unwrap();
    file.set_modified(modified).unwrap();
    fs::remove_file(path.with_extension("other")).unwrap();
}

#[tokio::test]
async fn a_value_that_changes_while_another_name_is_removed_is_not_torn() {
    for (buffers, faults) in [1, 3].into_iter().flat_map(|buffers| file_systems().map(|faults| (buffers, faults))) {
        let fixture = changing(faults, overwrite_and_remove_another_name, buffers).await;
        fixture.write("a", vec![b'o'; LARGE]);
        fs::hard_link(fixture.path("a"), fixture.path("a.other")).unwrap();
        let value = fixture.get("a").await.unwrap().unwrap();
        let result = read_to_end(value).await;
        assert!(matches!(&result, Err(StoreError::Changed { .. })), "{:?}", result.map(|bytes| bytes.len()));
    }
}

/// A writer, which runs until it is dropped.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Writer {
    fn start(mut write: impl FnMut(u8) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for number in (1..=u8::MAX).cycle().take_while(|_| !stopped.load(Ordering::Relaxed)) {
                write(number);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Reads a value of equal bytes with many readers, until they have read it so many times. Returns the numbers of
/// values and of changes. Asserts that no value is a mixture, and that equal versions are equal bytes.
async fn read_many(store: &DirStore, reads: usize) -> (usize, usize) {
    let known: Arc<Mutex<HashMap<Version, Bytes>>> = Arc::default();
    let count = Arc::new(AtomicUsize::new(0));
    let mut readers = JoinSet::new();
    for _ in 0..10 {
        let (store, known, count) = (store.clone(), Arc::clone(&known), Arc::clone(&count));
        readers.spawn(async move {
            let (mut values, mut changes) = (0, 0);
            while count.fetch_add(1, Ordering::Relaxed) < reads {
                let value = store.get(&Key::parse("a").unwrap(), None).await;
                let read = match value {
                    Ok(value) => {
                        let value = value.unwrap();
                        let version = value.meta.version;
                        value.bytes().await.map(|bytes| (version, bytes))
                    }
                    Err(error) => Err(error),
                };
                match read {
                    Ok((version, bytes)) => {
                        values += 1;
                        // All bytes are equal if each equals the next one.
                        assert!(bytes[1..] == bytes[..bytes.len() - 1], "a torn value");
                        let mut known = known.lock().unwrap();
                        let first = known.entry(version).or_insert_with(|| bytes.slice(..1));
                        assert_eq!(*first, bytes[..1], "two values of one version");
                    }
                    Err(StoreError::Changed { .. }) => changes += 1,
                    Err(error) => panic!("{error:?}"),
                }
            }
            (values, changes)
        });
    }
    let counts = readers.join_all().await;
    counts.into_iter().fold((0, 0), |sum, (values, changes)| (sum.0 + values, sum.1 + changes))
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_are_written_in_place_are_never_torn() {
    let fixture = Fixture::new().await;
    let path = fixture.path("a");
    fixture.write("a", vec![0; 400_000]);
    let mut pauses = [0, 3, 2_200, 1, 120, 20, 0, 0, 2_500].into_iter().cycle();
    let writer = Writer::start(move |number| {
        overwrite(&path, &vec![number; 400_000]);
        std::thread::sleep(Duration::from_millis(pauses.next().unwrap()));
    });
    let (values, changes) = read_many(&fixture.store, 3_000).await;
    drop(writer);
    println!("{values} values, {changes} changes");
    assert!(values > 1_000, "{values} values, {changes} changes");
}

/// Another program gives the file a mode or a name within a write, which says nothing about the writer.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_written_in_place_is_not_torn_if_its_file_changes_in_another_way_meanwhile() {
    let touches: [fn(&Path); 3] = [
        |path| fs::set_permissions(path, fs::metadata(path).unwrap().permissions()).unwrap(),
        |path| fs::hard_link(path, path.with_extension("other")).unwrap(),
        |path| {
            fs::rename(path, path.with_extension("moved")).unwrap();
            fs::rename(path.with_extension("moved"), path).unwrap();
        },
    ];
    let fixture = Fixture::new().await;
    let names: Vec<_> = (0..touches.len()).map(|number| format!("a{number}")).collect();
    names.iter().for_each(|name| fixture.write(name, [b'o'; 1_000]));
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    let mut reads = JoinSet::new();
    for (name, touch) in names.iter().zip(touches) {
        let (path, store, key) = (fixture.path(name), fixture.store.clone(), Key::parse(name).unwrap());
        overwrite(&path, &[b'n'; 500]);
        std::thread::sleep(crate::common::TICK);
        touch(&path);
        reads.spawn(async move {
            let read =
                tokio::spawn(async move { store.get(&key, None).await.unwrap().unwrap().bytes().await.unwrap() });
            tokio::time::sleep(Duration::from_millis(500)).await;
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &[b'n'; 500], 500).unwrap();
            read.await.unwrap()
        });
    }
    for bytes in reads.join_all().await {
        assert!(bytes.iter().all(|byte| *byte == b'n'), "a torn value");
    }
}

#[tokio::test]
async fn a_value_that_was_written_to_another_file_and_renamed_is_read_soon() {
    let fixture = Fixture::new().await;
    fixture.write("a", "old");
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    replace(&fixture.path("a"), b"new");
    let begun = Instant::now();
    assert_eq!(fixture.read("a").await.unwrap().1, "new");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_are_written_without_a_pause_are_changed_and_their_versions_unique() {
    let fixture = Fixture::new().await;
    let path = fixture.path("a");
    fixture.write("a", vec![0; 400_000]);
    let writer = Writer::start(move |number| overwrite(&path, &vec![number; 400_000]));
    let (values, changes) = read_many(&fixture.store, 20).await;
    // A busy machine may stop the writer for longer than the quiet time, so that a read succeeds.
    assert!(changes > 15, "{values} values, {changes} changes");
    let mut versions = HashSet::new();
    for _ in 0..2 {
        let meta = fixture.store.head(&Key::parse("a").unwrap()).await.unwrap().unwrap();
        assert!(versions.insert(meta.version));
    }
    drop(writer);
    assert_eq!(fixture.read("a").await.unwrap().1.len(), 400_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_are_replaced_all_the_time_can_be_read() {
    let fixture = Fixture::new().await;
    let path = fixture.path("a");
    fixture.write("a", vec![0; 400_000]);
    let writer = Writer::start(move |number| replace(&path, &vec![number; 400_000]));
    let (values, changes) = read_many(&fixture.store, 200).await;
    drop(writer);
    assert_eq!((values, changes), (200, 0));
}

/// A snapshot looks at a value before it reads it. Each file has equal times, since it is renamed within the tick in
/// which it is written, and so it is waited for while others take its place.
///
/// On a busy machine a file may be gone before it is opened, so some attempts may find it changed; without a file that is
/// kept all do, since it is replaced between the reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_waited_for_is_read_though_others_have_replaced_it() {
    let fixture = Fixture::new().await;
    let path = fixture.path("a");
    replace_at_once(&path, &[0; 100]);
    let writer = Writer::start(move |number| {
        replace_at_once(&path, &[number; 100]);
        std::thread::sleep(Duration::from_millis(300));
    });
    let keyed = Keyed::new(fixture.store.clone(), fixture.store.guarantees());
    let key = Key::parse("a").unwrap();
    let (keyed, key) = (&keyed, &key);
    let attempt = async |looks: bool| -> Result<(), StoreError> {
        let snapshot = keyed.snapshot(std::slice::from_ref(key)).await?;
        let range = |start, end| Some(ByteRange::bounded(start, end).unwrap());
        if looks {
            snapshot.meta(key).await?.unwrap();
        }
        let mut values = HashSet::new();
        for part in [range(0, 50), range(50, 100)] {
            let value = snapshot.get(key, part).await?.unwrap();
            values.extend(value.bytes().await?);
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        assert_eq!(values.len(), 1, "looks: {looks}");
        Ok(())
    };
    for looks in [true, false] {
        let mut attempts = 0;
        while let Err(error) = attempt(looks).await {
            attempts += 1;
            assert!(attempts < 8 && matches!(error, StoreError::Changed { .. }), "looks: {looks}: {error:?}");
        }
    }
    drop(writer);
}

/// On a file system with times in seconds, a second write in the same second leaves the attributes as they were.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_write_within_the_same_tick_is_another_version() {
    let fixture = Fixture::with(Options::new("dir:test").faults(Faults::default().times_in_seconds())).await;
    let key = Key::parse("a").unwrap();
    fixture.write("a", "0");
    // Begin early in a second, so that all writes are in it.
    while SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_millis() > 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut known: HashMap<Version, Bytes> = HashMap::new();
    let mut reads = JoinSet::new();
    for number in 1..=4 {
        overwrite(&fixture.path("a"), format!("{number}").as_bytes());
        let (store, key) = (fixture.store.clone(), key.clone());
        reads.spawn(async move {
            let value = store.get(&key, None).await.unwrap().unwrap();
            (value.meta.version, value.bytes().await.unwrap())
        });
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    for (version, bytes) in reads.join_all().await {
        assert_eq!(known.entry(version).or_insert_with(|| bytes.clone()), &bytes, "two values of one version");
    }
    let (version, bytes) = fixture.read("a").await.unwrap();
    assert_eq!((known.get(&version), bytes.as_ref()), (Some(&bytes), &b"4"[..]));
}

/// A snapshot that looks at a new file several times sees one version, before and after the file is quiet.
#[tokio::test]
async fn a_new_file_has_one_version_at_any_age() {
    for faults in [Faults::default(), Faults::default().times_in_seconds()] {
        let fixture = Fixture::with(Options::new("dir:test").faults(faults)).await;
        let keyed = Keyed::new(fixture.store.clone(), fixture.store.guarantees());
        let key = Key::parse("a").unwrap();
        fixture.write("a", "value");
        let snapshot = keyed.snapshot(std::slice::from_ref(&key)).await.unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2_500) {
            let value = snapshot.get(&key, None).await.unwrap().unwrap();
            assert_eq!(value.bytes().await.unwrap(), "value");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn a_file_that_was_not_touched_for_a_while_is_read_without_waiting() {
    let fixture = Fixture::new().await;
    fixture.write("a", "value");
    let wait = |begun: Instant| begun.elapsed();
    let begun = Instant::now();
    fixture.read("a").await.unwrap();
    assert!(wait(begun) >= Duration::from_millis(30), "{:?}", wait(begun));
    let begun = Instant::now();
    for _ in 0..10 {
        fixture.read("a").await.unwrap();
    }
    assert!(wait(begun) < Duration::from_millis(300), "{:?}", wait(begun));
}

/// A program that truncates a file and then writes it leaves it empty for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_empty_for_a_moment_is_not_an_empty_value() {
    let fixture = Fixture::new().await;
    fixture.write("a", vec![1; 100]);
    fixture.read("a").await.unwrap();
    let path = fixture.path("a");
    for _ in 0..5 {
        let file = fs::File::create(&path).unwrap();
        let (store, range) = (fixture.store.clone(), ByteRange::From(50));
        let read = tokio::spawn(async move {
            store.get(&Key::parse("a").unwrap(), Some(range)).await.unwrap().unwrap().bytes().await.unwrap()
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        std::io::Write::write_all(&mut &file, &[2; 100]).unwrap();
        assert_eq!(read.await.unwrap(), [2; 50][..]);
    }
}

/// The version that a listing or a look returns is never that of other bytes.
#[tokio::test]
async fn versions_are_returned_when_a_second_write_would_give_another_one() {
    for listed in [false, true] {
        let fixture = Fixture::with(Options::new("dir:test").faults(Faults::default().times_in_seconds())).await;
        let key = Key::parse("a").unwrap();
        while SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_millis() > 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        fixture.write("a", "0");
        let first = if listed {
            fixture.store.list(PageRequest::first(1)).await.unwrap().keys[0].meta.version
        } else {
            fixture.store.head(&key).await.unwrap().unwrap().version
        };
        overwrite(&fixture.path("a"), b"1");
        assert_ne!(fixture.read("a").await.unwrap(), (first, Bytes::from_static(b"1")), "listed: {listed}");
    }
}

#[tokio::test]
async fn a_new_file_is_listed_with_the_version_that_it_is_read_with() {
    let fixture = Fixture::new().await;
    for number in 0..3 {
        replace(&fixture.path("a"), format!("{number}").as_bytes());
        let page = fixture.store.list(PageRequest::first(1)).await.unwrap();
        let children = fixture.store.list_dir(&Prefix::root(), PageRequest::first(1)).await.unwrap();
        let version = fixture.read("a").await.unwrap().0;
        assert_eq!((page.keys[0].meta.version, children.keys[0].meta.version), (version, version));
    }
}
