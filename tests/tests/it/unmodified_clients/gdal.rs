//! GDAL's own programs, in Debian's version, through `/vsicurl/`.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};
use zarrd_tests::{
    python::python_with_clients,
    sample::{Sample, SampleServer},
    skip::note,
    tools::{Tool, tool},
};

/// Since this version GDAL sends its name in `User-Agent`, so that it gets listings as links.
const NAMES_ITSELF: u32 = 307;
/// Since this version it reads the published v3.
const READS_V3: u32 = 308;

/// The programs.
struct Gdal {
    info: Tool,
    mdim: Tool,
    translate: Tool,
    /// 306 is version 3.6.
    version: u32,
    /// Arguments for every call.
    options: Vec<String>,
}

fn gdal_and_sample() -> Option<(Gdal, SampleServer)> {
    gdal_and(Sample::serve)
}

fn gdal_and(serve: impl FnOnce(Sample) -> SampleServer) -> Option<(Gdal, SampleServer)> {
    let [info, mdim, translate] = ["gdalinfo", "gdalmdiminfo", "gdal_translate"].map(|name| tool(name, "gdal-bin"));
    let sample_server = serve(Sample::of(&python_with_clients()?));
    let info = info?;
    let version = info.run(sample_server.download_dir.path(), ["--version"]);
    let numbers = version.trim_start_matches("GDAL ").split('.').map(|number| number.parse::<u32>().ok());
    let [Some(major), Some(minor)] = numbers.take(2).collect::<Vec<_>>()[..] else { panic!("{version}") };
    note(version.trim_end());
    let version = 100 * major + minor;
    let gdal = Gdal { info, mdim: mdim?, translate: translate?, version, options: Vec::new() };
    Some((gdal, sample_server))
}

/// The GDAL name of an array or a group.
fn name(sample_server: &SampleServer, path: &str) -> String {
    format!("ZARR:\"/vsicurl/{}\"", sample_server.url(&format!("/store/lab/{path}")))
}

impl Gdal {
    fn run(&self, program: Tool, download_dir: &Path, arguments: &[&str]) -> String {
        program.run(download_dir, self.options.iter().map(String::as_str).chain(arguments.iter().copied()))
    }

    /// The output of `gdalmdiminfo` for an array or a group.
    fn describe(&self, download_dir: &Path, arguments: &[&str]) -> Value {
        // An old GDAL does not identify itself.
        let named = ["--config", "GDAL_HTTP_USERAGENT", "GDAL/3"];
        let named = if self.version < NAMES_ITSELF { &named[..] } else { &[] };
        serde_json::from_str(&self.run(self.mdim, download_dir, &[named, arguments].concat())).unwrap()
    }
}

/// The names of the members of one kind, `arrays` or `groups`.
fn members<'d>(description: &'d Value, kind: &str) -> BTreeSet<&'d str> {
    description[kind].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// All numbers in nested lists, in order.
fn numbers(nested: &Value) -> Vec<i64> {
    nested.as_array().map_or_else(|| vec![nested.as_i64().unwrap()], |lists| lists.iter().flat_map(numbers).collect())
}

/// The two-dimensional arrays whose elements GDAL translates to raw bytes.
const RASTERS: [&str; 3] = ["image", "deep/relief", "unwritten"];

fn translates(gdal: &Gdal, sample_server: &SampleServer, root: &str) {
    let download_dir = sample_server.download_dir.path();
    for path in RASTERS {
        let path = format!("{root}/{path}");
        gdal.run(gdal.translate, download_dir, &["-q", "-of", "ENVI", &name(sample_server, &path), "elements"]);
        let found = fs::read(download_dir.join("elements")).unwrap();
        assert!(found == sample_server.sample.expected(&format!("{path}.raw")), "{path}");
    }
    let info = gdal.run(gdal.info, download_dir, &["-json", &name(sample_server, &format!("{root}/image"))]);
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!((&info["size"], &info["bands"][0]["type"]), (&json!([80, 60]), &json!("Byte")));
}

#[test]
fn gdal_reads_v2_arrays() {
    let Some((gdal, sample_server)) = gdal_and_sample() else { return };
    translates(&gdal, &sample_server, "v2.zarr");
    let counts = gdal.describe(
        sample_server.download_dir.path(),
        &["-detailed", "-array", "/deep/counts", &name(&sample_server, "v2.zarr")],
    );
    let wanted = sample_server.sample.expected("v2.zarr/deep/counts.raw");
    let wanted: Vec<_> = wanted.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(numbers(&counts["values"]), wanted);
    assert_eq!(counts["dimension_size"], json!([7, 8, 9]));
}

#[test]
fn gdal_lists_groups_with_and_without_consolidated_metadata() {
    let Some((gdal, sample_server)) = gdal_and_sample() else { return };
    let download_dir = sample_server.download_dir.path();
    let root = gdal.describe(download_dir, &[&name(&sample_server, "v2.zarr")]);
    assert_eq!(root["attributes"]["title"], "Über v2");
    assert_eq!(members(&root, "arrays"), ["image", "unwritten"].into());
    assert_eq!(members(&root, "groups"), ["deep", "empty"].into());
    assert_eq!(members(&root["groups"]["deep"], "arrays"), ["counts", "relief"].into());
    assert!(members(&root["groups"]["empty"], "arrays").is_empty());
    for kind in ["consolidated", "plain"] {
        let weather = gdal.describe(download_dir, &[&name(&sample_server, &format!("weather-v2-{kind}.zarr"))]);
        assert_eq!(members(&weather, "arrays"), ["count", "rain", "time", "x", "y"].into(), "{kind}");
        assert_eq!(weather["arrays"]["rain"]["unit"], "mm", "{kind}");
    }
}

#[test]
fn gdal_reads_v3_arrays_if_new_enough() {
    let Some((gdal, sample_server)) = gdal_and_sample() else { return };
    if gdal.version >= READS_V3 {
        return translates(&gdal, &sample_server, "v3.zarr");
    }
    // It supports a draft of v3.
    let output = gdal.info.output(sample_server.download_dir.path(), [&name(&sample_server, "v3.zarr/image")]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("No such file"), "{output:?}");
}

#[test]
fn gdal_reads_and_lists_with_a_token_as_password() {
    let Some((mut gdal, sample_server)) = gdal_and(Sample::serve_closed) else { return };
    let refused = gdal.info.output(sample_server.download_dir.path(), [&name(&sample_server, "v2.zarr/image")]);
    assert!(!refused.status.success(), "{refused:?}");
    let password = format!("any:{}", sample_server.admin_token());
    gdal.options = ["--config", "GDAL_HTTP_USERPWD", &password].map(str::to_owned).into();
    translates(&gdal, &sample_server, "v2.zarr");
    let root = gdal.describe(sample_server.download_dir.path(), &[&name(&sample_server, "v2.zarr")]);
    assert_eq!(members(&root, "arrays"), ["image", "unwritten"].into());
    assert_eq!(members(&root["groups"]["deep"], "arrays"), ["counts", "relief"].into());
}
