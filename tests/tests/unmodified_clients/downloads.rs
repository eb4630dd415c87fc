//! Programs that download files: wget, rclone, curl and aria2.

use std::{collections::BTreeMap, fs, io::Read, path::Path, process::Stdio};

use zarrd_tests::{
    python::python_with_clients,
    sample::{Busy, FILES, Served, files},
    tools::{Tool, tool},
};

/// wget takes escapes out of names twice, so that this file gets the name `A.txt`.
const TWICE_UNESCAPED: (&str, &str) = ("odd names/%41.txt", "odd names/A.txt");

/// What is below `busy` and does not change: of the group and of the array.
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

fn served() -> Option<Served> {
    Some(Served::with(&python_with_clients()?))
}

/// Compares files with values, with a message that names what differs and does not print it.
fn assert_same(found: &BTreeMap<String, Vec<u8>>, wanted: &BTreeMap<String, Vec<u8>>) {
    let differing = |one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
        one.iter().filter(|(name, value)| other.get(*name) != Some(value)).map(|(name, _)| name.clone()).collect()
    };
    assert!(found == wanted, "found {:?}, wanted {:?}", differing(found, wanted), differing(wanted, found));
}

/// Mirrors all that is below a URL into the directory `place`, and returns what wget reports.
fn mirror(wget: Tool, place: &Path, url: &str) -> String {
    let options = ["--mirror", "--no-parent", "--no-host-directories", "--cut-dirs=1", "--reject=index.html*"];
    let output = wget.output(place, options.into_iter().chain(["--restrict-file-names=nocontrol", url]));
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{report}");
    report
}

/// What wget makes of the sample's files.
fn wanted_by_wget(served: &Served) -> BTreeMap<String, Vec<u8>> {
    let mut wanted = served.sample.values();
    let value = wanted.remove(TWICE_UNESCAPED.0).unwrap();
    wanted.insert(TWICE_UNESCAPED.1.to_owned(), value);
    wanted
}

#[test]
fn wget_mirror_then_fetches_only_changes() {
    let (Some(wget), Some(served)) = (wget(), served()) else { return };
    served.settle();
    let (place, url) = (served.place.path(), served.url("/store/lab/"));
    mirror(wget, place, &url);
    let mut wanted = wanted_by_wget(&served);
    assert_same(&files(&place.join("lab")), &wanted);

    // A second time, with one value that differs in size, all others are known to be there by their time.
    let changed = served.sample.lab().join("large.bin");
    let (changed, put) = (fs::read(changed).unwrap()[..1000].to_vec(), served.place.path().join("changed"));
    fs::write(&put, &changed).unwrap();
    curl().unwrap().run(place, ["-sfT", put.to_str().unwrap(), &served.url("/store/lab/large.bin")]);
    let before = served.requests("/store/{key}", "GET", 200);
    mirror(wget, place, &url);
    wanted.insert("large.bin".to_owned(), changed);
    assert_same(&files(&place.join("lab")), &wanted);
    assert_eq!(served.requests("/store/{key}", "GET", 200) - before, 1);
}

#[test]
fn wget_mirrors_while_values_change() {
    let (Some(wget), Some(served)) = (wget(), served()) else { return };
    let busy = served.busy();
    mirror(wget, served.place.path(), &served.url("/store/"));
    assert!(busy.stop() > 1);
    let mut found = files(served.place.path());
    assert!(DOCUMENTS.iter().all(|name| found.remove(&format!("busy/{name}")).is_some()));
    let changing = found.split_off("busy/").into_iter().partition(|(name, _)| name.starts_with("busy/"));
    let (changing, lab): (BTreeMap<_, _>, BTreeMap<_, _>) = changing;
    assert_eq!(changing.len(), 1 + 25);
    changing.iter().for_each(|(name, value)| assert_uniform(name, value));
    let wanted = wanted_by_wget(&served).into_iter().map(|(name, value)| (format!("lab/{name}"), value));
    assert_same(&lab, &wanted.collect());
}

#[test]
fn wget_reports_an_empty_prefix() {
    let (Some(wget), Some(served)) = (wget(), served()) else { return };
    for path in ["/store/nothing/", "/store/nothing"] {
        let output = wget.output(served.place.path(), ["-r", &served.url(path)]);
        let report = String::from_utf8_lossy(&output.stderr);
        // A server's answer is an error.
        assert!(output.status.code() == Some(8) && report.contains("404"), "{report}");
    }
}

/// The options with which rclone reads below a URL.
fn below(url: &str) -> [&str; 4] {
    ["--config=/dev/null", "--log-level=INFO", "--http-url", url]
}

/// Runs rclone, and returns what it reports on stderr.
fn report(rclone: Tool, place: &Path, arguments: &[&str]) -> String {
    let output = rclone.output(place, arguments);
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{report}");
    report
}

#[test]
fn rclone_lists_copies_and_checks_a_hierarchy() {
    let (Some(rclone), Some(served)) = (rclone(), served()) else { return };
    served.settle();
    let (place, url, wanted) = (served.place.path(), served.url("/store"), served.sample.values());
    let run = |arguments: &[&str]| rclone.run(place, arguments.iter().copied().chain(below(&url)));
    let reported = |arguments: &[&str]| report(rclone, place, &[arguments, &below(&url)].concat());

    // A size and a name a line, the size in nine columns.
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
    assert_same(&files(&place.join("lab")), &wanted);
    let checked = reported(&["check", "--download", ":http:lab", "lab"]);
    assert!(checked.contains(&format!("{FILES} matching files")) && checked.contains("0 differences"), "{checked}");
    // Sizes and times are the same, so that nothing is copied again.
    let again = reported(&["copy", ":http:lab", "lab"]);
    assert!(again.contains("There was nothing to transfer"), "{again}");

    fs::write(place.join("lab/large.bin"), "other").unwrap();
    let checked = rclone.output(place, ["check", "--download", ":http:lab", "lab"].into_iter().chain(below(&url)));
    let checked = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.contains("1 differences found"), "{checked}");

    assert_eq!(run(&["cat", "--offset=3", "--count=4", ":http:lab/odd names/50%.txt"]), "50%.");
    let nothing = rclone.output(place, ["ls", ":http:nothing"].into_iter().chain(below(&url)));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("directory not found"), "{nothing:?}");
}

#[test]
fn rclone_copies_while_values_change() {
    let (Some(rclone), Some(served)) = (rclone(), served()) else { return };
    let (place, url) = (served.place.path(), served.url("/store"));
    let busy = served.busy();
    report(rclone, place, &[&["copy", ":http:", "all", "--ignore-checksum"][..], &below(&url)].concat());
    assert!(busy.stop() > 1);
    let lab = served.sample.values();
    assert_same(&files(&place.join("all/lab")), &lab);
    let mut changing = files(&place.join("all/busy"));
    assert!(DOCUMENTS.iter().all(|name| changing.remove(*name).is_some()));
    assert_eq!(changing.len(), 1 + 25);
    changing.iter().for_each(|(name, value)| assert_uniform(name, value));
}

/// Checks that a value was not put together from two.
fn assert_uniform(name: &str, value: &[u8]) {
    let first = value.first().copied();
    assert!(first.is_some() && value.iter().all(|byte| Some(*byte) == first), "{name}");
}

/// A value and the same elements as raw bytes and in a file of NumPy's: each with what must be downloaded.
fn downloads(served: &Served) -> [(&'static str, Vec<u8>); 3] {
    [
        ("/store/lab/large.bin", served.sample.values()["large.bin"].clone()),
        ("/array/lab/large.zarr/numbers?format=raw", served.sample.expected("numbers.raw")),
        ("/array/lab/large.zarr/numbers?format=npy", served.sample.expected("numbers.npy")),
    ]
}

/// The route that a path of [`downloads`] takes.
fn route(path: &str) -> &'static str {
    if path.starts_with("/store/") { "/store/{key}" } else { "/array/{path}" }
}

#[test]
fn curl_resumes_an_interrupted_download() {
    let (Some(curl), Some(served)) = (curl(), served()) else { return };
    let place = served.place.path();
    for (number, (path, wanted)) in downloads(&served).into_iter().enumerate() {
        let (file, url) = (number.to_string(), served.url(path));
        // Nobody reads on, so that curl gives up in the middle.
        let mut cut = curl.command(place).args(["-sf", &url]).stdout(Stdio::piped()).spawn().unwrap();
        let mut begun = vec![0; 1_234_567];
        cut.stdout.take().unwrap().read_exact(&mut begun).unwrap();
        assert_eq!(cut.wait().unwrap().code(), Some(23), "{path}");
        fs::write(place.join(&file), &begun).unwrap();
        let before = served.requests(route(path), "GET", 206);
        let rest = curl.run(place, ["-sf", "-C", "-", "-w", "%{size_download}", "-o", &file, &url]);
        assert_eq!(rest, (wanted.len() - begun.len()).to_string(), "{path}");
        assert_eq!(served.requests(route(path), "GET", 206) - before, 1, "{path}");
        assert!(fs::read(place.join(&file)).unwrap() == wanted, "{path}");
    }
}

#[test]
fn wget_resumes_a_download() {
    let (Some(wget), Some(served)) = (wget(), served()) else { return };
    let place = served.place.path();
    for (number, (path, wanted)) in downloads(&served).into_iter().enumerate() {
        let file = number.to_string();
        fs::write(place.join(&file), &wanted[..1_234_567]).unwrap();
        wget.run(place, ["-q", "-c", "-O", &file, &served.url(path)]);
        assert_eq!(served.requests(route(path), "GET", 206), if number < 2 { 1 } else { 2 }, "{path}");
        assert!(fs::read(place.join(&file)).unwrap() == wanted, "{path}");
    }
}

#[test]
fn curl_restarts_a_changed_download_given_its_etag() {
    let (Some(curl), Some(served)) = (curl(), served()) else { return };
    let place = served.place.path();
    let changes = [
        ("/store/lab/large.bin", "/store/lab/large.bin"),
        ("/array/lab/large.zarr/numbers?format=raw", "/array/lab/large.zarr/numbers?select=0"),
    ];
    for (number, (path, change)) in changes.into_iter().enumerate() {
        let (file, url) = (number.to_string(), served.url(path));
        let etag = curl.run(place, ["-sf", "--range", "0-99", "-w", "%header{etag}", "-o", &file, &url]);
        assert!(etag.starts_with('"'), "{etag}");
        curl.run(place, ["-sf", "-X", "PUT", "-H", "Content-Type: application/json", "-d", "7", &served.url(change)]);
        let condition = format!("If-Match: {etag}");
        let refused = curl.output(place, ["-sf", "-w", "%{http_code}", "-C", "-", "-H", &condition, "-o", &file, &url]);
        assert_eq!(String::from_utf8_lossy(&refused.stdout), "412", "{path}");
        assert_eq!(fs::metadata(place.join(&file)).unwrap().len(), 100, "{path}");
    }
}

#[test]
fn curl_never_receives_a_mix_of_two_versions() {
    let (Some(curl), Some(served)) = (curl(), served()) else { return };
    let place = served.place.path();
    let busy = served.busy();
    let mut states = BTreeMap::new();
    for (path, size) in [("/store/busy/value", 1 << 20), ("/array/busy/array?format=raw", Busy::ELEMENTS)] {
        for _ in 0..25 {
            curl.run(place, ["-sf", "-o", "value", &served.url(path)]);
            let value = fs::read(place.join("value")).unwrap();
            assert_eq!(value.len(), size, "{path}");
            assert_uniform(path, &value);
            states.entry(path).or_insert_with(BTreeMap::new).insert(value[0], ());
        }
    }
    assert!(busy.stop() > 1);
    assert!(states.values().all(|states| states.len() > 1), "nothing was written meanwhile: {states:?}");
}

#[test]
fn aria2_downloads_with_many_connections_and_resumes() {
    let (Some(aria2), Some(served)) = (aria2(), served()) else { return };
    let place = served.place.path();
    // Four parts of a MiB are what it makes of 4 MiB, however many connections it may have.
    let many = ["--quiet", "--no-conf", "-x8", "-s8", "-k1M"];
    for (number, (path, wanted)) in downloads(&served).into_iter().enumerate() {
        let (file, url) = (format!("whole-{number}"), served.url(path));
        let before = served.requests(route(path), "GET", 206);
        // Slowly enough that the first connection does not get all of it before the others begin.
        aria2.run(place, many.into_iter().chain(["--max-overall-download-limit=2M", "-o", &file, &url]));
        let parts = served.requests(route(path), "GET", 206) - before;
        assert!(parts >= 2, "{path}: {parts} parts");
        assert!(fs::read(place.join(&file)).unwrap() == wanted, "{path}");

        let file = format!("parts-{number}");
        let slow = ["--quiet", "--no-conf", "--max-overall-download-limit=1M", "--stop=2", "-o", &file, &url];
        let cut = aria2.output(place, slow);
        // Some downloads were not finished.
        assert_eq!(cut.status.code(), Some(7), "{cut:?}");
        assert!(place.join(format!("{file}.aria2")).exists(), "{path}");
        // What it has is not downloaded again: a byte that is changed in it stays.
        let (mut begun, mut wanted) = (fs::read(place.join(&file)).unwrap(), wanted);
        (begun[0], wanted[0]) = (!begun[0], !wanted[0]);
        fs::write(place.join(&file), begun).unwrap();
        aria2.run(place, many.into_iter().chain(["-c", "-o", &file, &url]));
        assert!(fs::read(place.join(&file)).unwrap() == wanted, "{path}");
    }
}

#[test]
fn aria2_detects_a_change_between_parts_given_the_etag() {
    let (Some(aria2), Some(curl), Some(served)) = (aria2(), curl(), served()) else { return };
    let (place, url) = (served.place.path(), served.url("/store/lab/large.bin"));
    let condition = format!("If-Match: {}", curl.run(place, ["-sfI", "-w", "%header{etag}", "-o", "headers", &url]));
    let options = ["--quiet", "--no-conf", "-x8", "-s8", "-k1M", "--header", &condition, "-o", "parts", &url];
    let slow = ["--max-overall-download-limit=1M", "--stop=1"];
    assert_eq!(aria2.output(place, slow.into_iter().chain(options)).status.code(), Some(7));
    fs::write(place.join("other"), vec![7; 4 << 20]).unwrap();
    curl.run(place, ["-sfT", "other", &url]);
    let resumed = aria2.output(place, ["-c"].into_iter().chain(options));
    // The server refused.
    assert_eq!(resumed.status.code(), Some(22), "{resumed:?}");
    assert!(place.join("parts.aria2").exists());
}

#[test]
fn downloads_are_named_after_their_arrays() {
    let (Some(curl), Some(wget), Some(aria2), Some(served)) = (curl(), wget(), aria2(), served()) else { return };
    let url = |path: &str| served.url(&format!("/array/lab/{path}"));
    let numbers = ("numbers.raw", url("large.zarr/numbers?format=raw"), Some(served.sample.expected("numbers.raw")));
    let odd = ("x y&z.npy", url("odd%20names/50%25%20a%2Bb%20%C3%BC.zarr/x%20y%26z?format=npy"), None);
    let options = [(curl, "-sfOJ"), (wget, "--content-disposition"), (aria2, "--quiet")];
    for ((tool, option), number) in options.into_iter().zip(0..) {
        let place = served.place.path().join(format!("{number}"));
        fs::create_dir(&place).unwrap();
        for (name, url, wanted) in [&numbers, &odd] {
            tool.run(&place, [option, url.as_str()]);
            let found = files(&place);
            assert_eq!(found.keys().collect::<Vec<_>>(), [name]);
            assert!(wanted.as_ref().is_none_or(|wanted| found[*name] == *wanted), "{name}");
            fs::remove_file(place.join(name)).unwrap();
        }
    }
}
