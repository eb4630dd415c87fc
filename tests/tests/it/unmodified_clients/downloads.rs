//! Programs that download files: wget, rclone, curl and aria2.

use std::{collections::BTreeMap, fs, io::Read, path::Path, process::Stdio};

use zarrd_tests::{
    python::python_with_clients,
    sample::{BackgroundWriter, FILES, SampleServer, files},
    tools::{Tool, tool},
};

/// wget unescapes names twice, so that this file gets the name `A.txt`.
const TWICE_UNESCAPED: (&str, &str) = ("odd names/%41.txt", "odd names/A.txt");

/// The documents below `busy`, which do not change: of the group and of the array.
const DOCUMENTS: [&str; 2] = ["zarr.json", "array/zarr.json"];

fn wget() -> Option<Tool> {
    tool("wget", "wget")
}

fn rclone() -> Option<Tool> {
    tool("rclone", "rclone")
}

fn curl() -> Option<Tool> {
    tool("curl", "curl")
}

fn aria2() -> Option<Tool> {
    tool("aria2c", "aria2")
}

fn serve_sample() -> Option<SampleServer> {
    Some(SampleServer::with(&python_with_clients()?))
}

/// Compares files with values; the message names the differences without printing the contents.
fn assert_same(found: &BTreeMap<String, Vec<u8>>, wanted: &BTreeMap<String, Vec<u8>>) {
    let differing = |one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
        one.iter().filter(|(name, value)| other.get(*name) != Some(value)).map(|(name, _)| name.clone()).collect()
    };
    assert!(found == wanted, "found {:?}, wanted {:?}", differing(found, wanted), differing(wanted, found));
}

/// Mirrors everything below a URL into a directory; returns the report of wget.
fn mirror(wget: Tool, download_dir: &Path, url: &str) -> String {
    let options = ["--mirror", "--no-parent", "--no-host-directories", "--cut-dirs=1", "--reject=index.html*"];
    let output = wget.output(download_dir, options.into_iter().chain(["--restrict-file-names=nocontrol", url]));
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{report}");
    report
}

/// The files that wget creates for the sample.
fn files_of_wget(sample_server: &SampleServer) -> BTreeMap<String, Vec<u8>> {
    let mut wanted = sample_server.sample.values();
    let value = wanted.remove(TWICE_UNESCAPED.0).unwrap();
    wanted.insert(TWICE_UNESCAPED.1.to_owned(), value);
    wanted
}

#[test]
fn wget_mirror_then_fetches_only_changes() {
    let (Some(wget), Some(sample_server)) = (wget(), serve_sample()) else { return };
    sample_server.settle();
    let (download_dir, url) = (sample_server.download_dir.path(), sample_server.url("/store/lab/"));
    mirror(wget, download_dir, &url);
    let mut wanted = files_of_wget(&sample_server);
    assert_same(&files(&download_dir.join("lab")), &wanted);

    // The second time, only one value has another size; all others are recognized by their time.
    let changed = sample_server.sample.lab().join("large.bin");
    let (changed, put) =
        (fs::read(changed).unwrap()[..1000].to_vec(), sample_server.download_dir.path().join("changed"));
    fs::write(&put, &changed).unwrap();
    curl().unwrap().run(download_dir, ["-sfT", put.to_str().unwrap(), &sample_server.url("/store/lab/large.bin")]);
    let before = sample_server.requests("/store/{key}", "GET", 200);
    mirror(wget, download_dir, &url);
    wanted.insert("large.bin".to_owned(), changed);
    assert_same(&files(&download_dir.join("lab")), &wanted);
    assert_eq!(sample_server.requests("/store/{key}", "GET", 200) - before, 1);
}

#[test]
fn wget_mirrors_while_values_change() {
    let (Some(wget), Some(sample_server)) = (wget(), serve_sample()) else { return };
    let writer = sample_server.start_writer();
    mirror(wget, sample_server.download_dir.path(), &sample_server.url("/store/"));
    assert!(writer.stop() > 1);
    let mut found = files(sample_server.download_dir.path());
    assert!(DOCUMENTS.iter().all(|name| found.remove(&format!("busy/{name}")).is_some()));
    let changing = found.split_off("busy/").into_iter().partition(|(name, _)| name.starts_with("busy/"));
    let (changing, lab): (BTreeMap<_, _>, BTreeMap<_, _>) = changing;
    assert_eq!(changing.len(), 1 + 25);
    changing.iter().for_each(|(name, value)| assert_uniform(name, value));
    let wanted = files_of_wget(&sample_server).into_iter().map(|(name, value)| (format!("lab/{name}"), value));
    assert_same(&lab, &wanted.collect());
}

#[test]
fn wget_reports_an_empty_prefix() {
    let (Some(wget), Some(sample_server)) = (wget(), serve_sample()) else { return };
    for path in ["/store/nothing/", "/store/nothing"] {
        let output = wget.output(sample_server.download_dir.path(), ["-r", &sample_server.url(path)]);
        let report = String::from_utf8_lossy(&output.stderr);
        // An error response of the server.
        assert!(output.status.code() == Some(8) && report.contains("404"), "{report}");
    }
}

/// The options with which rclone reads below a URL.
fn http_options(url: &str) -> [&str; 4] {
    ["--config=/dev/null", "--log-level=INFO", "--http-url", url]
}

/// Runs rclone; returns its report from stderr.
fn report(rclone: Tool, download_dir: &Path, arguments: &[&str]) -> String {
    let output = rclone.output(download_dir, arguments);
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{report}");
    report
}

#[test]
fn rclone_lists_copies_and_checks_a_hierarchy() {
    let (Some(rclone), Some(sample_server)) = (rclone(), serve_sample()) else { return };
    sample_server.settle();
    let (download_dir, url, wanted) =
        (sample_server.download_dir.path(), sample_server.url("/store"), sample_server.sample.values());
    let run = |arguments: &[&str]| rclone.run(download_dir, arguments.iter().copied().chain(http_options(&url)));
    let reported = |arguments: &[&str]| report(rclone, download_dir, &[arguments, &http_options(&url)].concat());

    // Each line contains a size, in nine columns, and a name.
    let listed = run(&["ls", ":http:lab"]);
    let listed: BTreeMap<_, usize> = listed
        .lines()
        .map(|line| line.split_at(10))
        .map(|(size, name)| (name.to_owned(), size.trim().parse().unwrap()))
        .collect();
    assert_eq!(listed, wanted.iter().map(|(name, value)| (name.clone(), value.len())).collect());
    assert_eq!(run(&["lsf", ":http:lab/v3.zarr"]), "deep/\nempty/\nimage/\nsharded/\nunwritten/\nzarr.json\n");
    assert_eq!(run(&["lsf", ":http:lab/v3.zarr/empty"]), "zarr.json\n");

    reported(&["copy", ":http:lab", "lab"]);
    assert_same(&files(&download_dir.join("lab")), &wanted);
    let checked = reported(&["check", "--download", ":http:lab", "lab"]);
    assert!(checked.contains(&format!("{FILES} matching files")) && checked.contains("0 differences"), "{checked}");
    // Sizes and times are equal, so nothing is copied again.
    let again = reported(&["copy", ":http:lab", "lab"]);
    assert!(again.contains("There was nothing to transfer"), "{again}");

    fs::write(download_dir.join("lab/large.bin"), "other").unwrap();
    let checked =
        rclone.output(download_dir, ["check", "--download", ":http:lab", "lab"].into_iter().chain(http_options(&url)));
    let checked = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.contains("1 differences found"), "{checked}");

    assert_eq!(run(&["cat", "--offset=3", "--count=4", ":http:lab/odd names/50%.txt"]), "50%.");
    let nothing = rclone.output(download_dir, ["ls", ":http:nothing"].into_iter().chain(http_options(&url)));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("directory not found"), "{nothing:?}");
}

#[test]
fn rclone_copies_while_values_change() {
    let (Some(rclone), Some(sample_server)) = (rclone(), serve_sample()) else { return };
    let (download_dir, url) = (sample_server.download_dir.path(), sample_server.url("/store"));
    let writer = sample_server.start_writer();
    report(rclone, download_dir, &[&["copy", ":http:", "all", "--ignore-checksum"][..], &http_options(&url)].concat());
    assert!(writer.stop() > 1);
    let lab = sample_server.sample.values();
    assert_same(&files(&download_dir.join("all/lab")), &lab);
    let mut changing = files(&download_dir.join("all/busy"));
    assert!(DOCUMENTS.iter().all(|name| changing.remove(*name).is_some()));
    assert_eq!(changing.len(), 1 + 25);
    changing.iter().for_each(|(name, value)| assert_uniform(name, value));
}

/// Asserts that a value is not a mix of two versions.
fn assert_uniform(name: &str, value: &[u8]) {
    let first = value.first().copied();
    assert!(first.is_some() && value.iter().all(|byte| Some(*byte) == first), "{name}");
}

/// A value, and the same elements as raw bytes and as a NumPy file, each with the expected download.
fn downloads(sample_server: &SampleServer) -> [(&'static str, Vec<u8>); 3] {
    [
        ("/store/lab/large.bin", sample_server.sample.values()["large.bin"].clone()),
        ("/array/lab/large.zarr/numbers?format=raw", sample_server.sample.expected("numbers.raw")),
        ("/array/lab/large.zarr/numbers?format=npy", sample_server.sample.expected("numbers.npy")),
    ]
}

/// The route that a path of [`downloads`] takes.
fn route(path: &str) -> &'static str {
    if path.starts_with("/store/") { "/store/{key}" } else { "/array/{path}" }
}

#[test]
fn curl_resumes_an_interrupted_download() {
    let (Some(curl), Some(sample_server)) = (curl(), serve_sample()) else { return };
    let download_dir = sample_server.download_dir.path();
    for (number, (path, wanted)) in downloads(&sample_server).into_iter().enumerate() {
        let (file, url) = (number.to_string(), sample_server.url(path));
        // The reader stops, so that curl fails halfway.
        let mut cut = curl.command(download_dir).args(["-sf", &url]).stdout(Stdio::piped()).spawn().unwrap();
        let mut started = vec![0; 1_234_567];
        cut.stdout.take().unwrap().read_exact(&mut started).unwrap();
        assert_eq!(cut.wait().unwrap().code(), Some(23), "{path}");
        fs::write(download_dir.join(&file), &started).unwrap();
        let before = sample_server.requests(route(path), "GET", 206);
        let rest = curl.run(download_dir, ["-sf", "-C", "-", "-w", "%{size_download}", "-o", &file, &url]);
        assert_eq!(rest, (wanted.len() - started.len()).to_string(), "{path}");
        assert_eq!(sample_server.requests(route(path), "GET", 206) - before, 1, "{path}");
        assert!(fs::read(download_dir.join(&file)).unwrap() == wanted, "{path}");
    }
}

#[test]
fn wget_resumes_a_download() {
    let (Some(wget), Some(sample_server)) = (wget(), serve_sample()) else { return };
    let download_dir = sample_server.download_dir.path();
    for (number, (path, wanted)) in downloads(&sample_server).into_iter().enumerate() {
        let file = number.to_string();
        fs::write(download_dir.join(&file), &wanted[..1_234_567]).unwrap();
        wget.run(download_dir, ["-q", "-c", "-O", &file, &sample_server.url(path)]);
        assert_eq!(sample_server.requests(route(path), "GET", 206), if number < 2 { 1 } else { 2 }, "{path}");
        assert!(fs::read(download_dir.join(&file)).unwrap() == wanted, "{path}");
    }
}

#[test]
fn curl_restarts_a_changed_download_given_its_etag() {
    let (Some(curl), Some(sample_server)) = (curl(), serve_sample()) else { return };
    let download_dir = sample_server.download_dir.path();
    let changes = [
        ("/store/lab/large.bin", "/store/lab/large.bin"),
        ("/array/lab/large.zarr/numbers?format=raw", "/array/lab/large.zarr/numbers?select=0"),
    ];
    for (number, (path, change)) in changes.into_iter().enumerate() {
        let (file, url) = (number.to_string(), sample_server.url(path));
        let etag = curl.run(download_dir, ["-sf", "--range", "0-99", "-w", "%header{etag}", "-o", &file, &url]);
        assert!(etag.starts_with('"'), "{etag}");
        curl.run(
            download_dir,
            ["-sf", "-X", "PUT", "-H", "Content-Type: application/json", "-d", "7", &sample_server.url(change)],
        );
        let condition = format!("If-Match: {etag}");
        let rejected =
            curl.output(download_dir, ["-sf", "-w", "%{http_code}", "-C", "-", "-H", &condition, "-o", &file, &url]);
        assert_eq!(String::from_utf8_lossy(&rejected.stdout), "412", "{path}");
        assert_eq!(fs::metadata(download_dir.join(&file)).unwrap().len(), 100, "{path}");
    }
}

#[test]
fn curl_never_receives_a_mix_of_two_versions() {
    let (Some(curl), Some(sample_server)) = (curl(), serve_sample()) else { return };
    let download_dir = sample_server.download_dir.path();
    let writer = sample_server.start_writer();
    let mut states = BTreeMap::new();
    for (path, size) in [("/store/busy/value", 1 << 20), ("/array/busy/array?format=raw", BackgroundWriter::ELEMENTS)] {
        for _ in 0..25 {
            curl.run(download_dir, ["-sf", "-o", "value", &sample_server.url(path)]);
            let value = fs::read(download_dir.join("value")).unwrap();
            assert_eq!(value.len(), size, "{path}");
            assert_uniform(path, &value);
            states.entry(path).or_insert_with(BTreeMap::new).insert(value[0], ());
        }
    }
    assert!(writer.stop() > 1);
    assert!(states.values().all(|states| states.len() > 1), "no concurrent write occurred: {states:?}");
}

#[test]
fn aria2_downloads_with_many_connections_and_resumes() {
    let (Some(aria2), Some(sample_server)) = (aria2(), serve_sample()) else { return };
    let download_dir = sample_server.download_dir.path();
    // aria2 downloads 4 MiB in four parts of a MiB, for any number of connections.
    let many = ["--quiet", "--no-conf", "-x8", "-s8", "-k1M"];
    for (number, (path, wanted)) in downloads(&sample_server).into_iter().enumerate() {
        let (file, url) = (format!("whole-{number}"), sample_server.url(path));
        let before = sample_server.requests(route(path), "GET", 206);
        // Slow enough that the first connection does not receive everything before the others start.
        aria2.run(download_dir, many.into_iter().chain(["--max-overall-download-limit=2M", "-o", &file, &url]));
        let parts = sample_server.requests(route(path), "GET", 206) - before;
        assert!(parts >= 2, "{path}: {parts} parts");
        assert!(fs::read(download_dir.join(&file)).unwrap() == wanted, "{path}");

        let file = format!("parts-{number}");
        let slow = ["--quiet", "--no-conf", "--max-overall-download-limit=1M", "--stop=2", "-o", &file, &url];
        let cut = aria2.output(download_dir, slow);
        // Some downloads were incomplete.
        assert_eq!(cut.status.code(), Some(7), "{cut:?}");
        assert!(download_dir.join(format!("{file}.aria2")).exists(), "{path}");
        // The downloaded part is not transferred again: a modified byte in it remains.
        let (mut started, mut wanted) = (fs::read(download_dir.join(&file)).unwrap(), wanted);
        (started[0], wanted[0]) = (!started[0], !wanted[0]);
        fs::write(download_dir.join(&file), started).unwrap();
        aria2.run(download_dir, many.into_iter().chain(["-c", "-o", &file, &url]));
        assert!(fs::read(download_dir.join(&file)).unwrap() == wanted, "{path}");
    }
}

#[test]
fn aria2_detects_a_change_between_parts_given_the_etag() {
    let (Some(aria2), Some(curl), Some(sample_server)) = (aria2(), curl(), serve_sample()) else { return };
    let (download_dir, url) = (sample_server.download_dir.path(), sample_server.url("/store/lab/large.bin"));
    let condition =
        format!("If-Match: {}", curl.run(download_dir, ["-sfI", "-w", "%header{etag}", "-o", "headers", &url]));
    let options = ["--quiet", "--no-conf", "-x8", "-s8", "-k1M", "--header", &condition, "-o", "parts", &url];
    let slow = ["--max-overall-download-limit=1M", "--stop=1"];
    assert_eq!(aria2.output(download_dir, slow.into_iter().chain(options)).status.code(), Some(7));
    fs::write(download_dir.join("other"), vec![7; 4 << 20]).unwrap();
    curl.run(download_dir, ["-sfT", "other", &url]);
    let resumed = aria2.output(download_dir, ["-c"].into_iter().chain(options));
    // The server rejected it.
    assert_eq!(resumed.status.code(), Some(22), "{resumed:?}");
    assert!(download_dir.join("parts.aria2").exists());
}

#[test]
fn downloads_are_named_after_their_arrays() {
    let (Some(curl), Some(wget), Some(aria2), Some(sample_server)) = (curl(), wget(), aria2(), serve_sample()) else {
        return;
    };
    let url = |path: &str| sample_server.url(&format!("/array/lab/{path}"));
    let numbers =
        ("numbers.raw", url("large.zarr/numbers?format=raw"), Some(sample_server.sample.expected("numbers.raw")));
    let odd = ("x y&z.npy", url("odd%20names/50%25%20a%2Bb%20%C3%BC.zarr/x%20y%26z?format=npy"), None);
    let options = [(curl, "-sfOJ"), (wget, "--content-disposition"), (aria2, "--quiet")];
    for ((tool, option), number) in options.into_iter().zip(0..) {
        let download_dir = sample_server.download_dir.path().join(format!("{number}"));
        fs::create_dir(&download_dir).unwrap();
        for (name, url, wanted) in [&numbers, &odd] {
            tool.run(&download_dir, [option, url.as_str()]);
            let found = files(&download_dir);
            assert_eq!(found.keys().collect::<Vec<_>>(), [name]);
            assert!(wanted.as_ref().is_none_or(|wanted| found[*name] == *wanted), "{name}");
            fs::remove_file(download_dir.join(name)).unwrap();
        }
    }
}
