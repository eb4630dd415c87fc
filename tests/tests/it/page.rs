//! The page, in Chromium: what it shows, at which address, and by which means it can be used.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use tempfile::TempDir;
use zarrd_tests::{
    binary::workspace,
    browser::browser,
    dense::write_dense,
    node::node,
    python::{python, python_with_clients},
    server::{Launch, Server, program},
    skip::note,
};

/// The number of arrays of the sample.
const SAMPLE: &str = "61";

/// Runs a check of `page.mjs` on a server.
fn check(server: &Server, name: &str, arguments: &[&str]) {
    let Some(browser) = browser() else { return };
    let arguments: Vec<&str> = [name].into_iter().chain(arguments.iter().copied()).collect();
    note(browser.run("page.mjs", &server.url(""), &arguments).trim_end());
}

fn memory() -> Server {
    Launch::of("memory:").start()
}

/// The output of the program.
fn output(arguments: &[&str], token: Option<&str>) -> String {
    let mut command = program();
    command.args(arguments).envs(token.map(|token| ("ZARRD_TOKEN", token)));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn pixels_are_the_colours_of_values() {
    check(&memory(), "pixels", &[]);
}

#[test]
fn pixels_are_those_of_the_png_route() {
    check(&memory(), "colours", &[]);
}

#[test]
fn lens_tells_which_chunks_are_stored() {
    check(&memory(), "lens", &[]);
}

#[test]
fn coarser_levels_are_read_where_they_are_asked_for() {
    check(&memory(), "levels", &[]);
}

#[test]
fn refusal_offers_a_smaller_part() {
    check(&Launch::of("memory:").arg("--max-selection").arg("64KiB").start(), "smaller", &[]);
}

#[test]
fn work_beyond_the_limit_is_offered_in_part() {
    check(&Launch::of("memory:").arg("--max-work").arg("1MiB").start(), "work", &[]);
}

#[test]
fn address_of_nothing_shows_the_nearest_view() {
    check(&memory(), "broken", &[]);
}

#[test]
fn outage_is_said_and_survived() {
    check(&memory(), "outage", &[]);
}

#[test]
fn members_that_are_left_out_are_marked() {
    check(&memory(), "members_left_out", &[]);
}

#[test]
fn labels_tell_numbers_apart() {
    check(&memory(), "labels", &[]);
}

#[test]
fn flags_structs_and_channels_are_shown_as_what_they_mean() {
    check(&memory(), "meanings", &[]);
}

#[test]
fn of_many_channels_and_wells_some_are_shown() {
    check(&memory(), "manyMembers", &[]);
}

#[test]
fn image_is_shown_in_the_colours_of_its_channels() {
    check(&memory(), "channels", &[]);
}

#[test]
fn array_that_changed_is_shown_as_it_is() {
    check(&memory(), "changed", &[]);
}

#[test]
fn expired_token_is_replaced_in_place() {
    let dir = TempDir::new().unwrap();
    let (server, token) = closed(dir.path());
    let access = dir.path().join("access");
    let command = program();
    let program = command.get_program().to_str().unwrap();
    check(&server, "expiry", &[program, access.to_str().unwrap(), &token]);
}

#[test]
fn every_array_of_the_sample_opens_and_shows_its_elements() {
    let dir = TempDir::new().unwrap();
    let archive = workspace().join("tests/data/draft_v3_zarr218.tar.gz");
    let unpacked = Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(dir.path()).status().unwrap();
    assert!(unpacked.success());
    let store = dir.path().join("draft_v3_zarr218.zr3");
    check(&Launch::of(format_args!("dir:{}", store.display())).start(), "sample", &[SAMPLE]);
}

#[test]
fn state_is_in_the_address() {
    check(&memory(), "state", &[]);
}

#[test]
fn every_control_is_in_the_address() {
    check(&memory(), "controls", &[]);
}

#[test]
fn requests_for_what_is_no_longer_seen_are_aborted() {
    check(&memory(), "abort", &[]);
}

#[test]
fn exports_are_what_is_shown() {
    check(&memory(), "exports", &[]);
}

#[test]
fn elements_labels_and_directions_are_those_of_the_array() {
    check(&memory(), "probe", &[]);
}

#[test]
fn arrays_too_large_to_read_open_on_a_window() {
    check(&memory(), "huge", &[]);
}

#[test]
fn dense_array_of_any_size_is_read_in_small_parts() {
    let dir = TempDir::new().unwrap();
    write_dense(&dir.path().join("dense")).unwrap();
    check(&Launch::of(format_args!("dir:{}", dir.path().display())).start(), "dense", &[]);
}

#[test]
fn names_attributes_and_values_of_strangers_stay_text() {
    check(&memory(), "hostile", &[]);
}

#[test]
fn page_is_accessible_and_fits_narrow_screens() {
    check(&memory(), "access", &[]);
}

#[test]
fn hundred_thousand_members_are_scrolled() {
    check(&memory(), "members", &[]);
}

#[test]
fn growing_array_is_followed_and_exported() {
    check(&memory(), "follow", &[]);
}

#[test]
fn token_is_asked_for_once_and_links_need_none() {
    let dir = TempDir::new().unwrap();
    let (server, token) = closed(dir.path());
    let url = server.url("");
    let link = output(&["share", &url, "lab", "--expires", "1h"], Some(&token));
    check(&server, "token", &[&token, link.strip_prefix(&url).unwrap()]);
}

#[test]
fn visitor_sees_what_everybody_may_read() {
    let dir = TempDir::new().unwrap();
    let (server, token) = open_to(dir.path(), "read:public/");
    check(&server, "visitor", &[&token]);
}

/// A server that asks for a token, and one.
fn closed(dir: &Path) -> (Server, String) {
    open_to(dir, "none")
}

/// A server on which callers without a token have these rights, and a token.
fn open_to(dir: &Path, anonymous: &str) -> (Server, String) {
    let access = dir.join("access");
    let access = access.to_str().unwrap();
    let token = output(&["token", "create", "--access", access, "--name", "page", "--allow", "write:/"], None);
    let server = Launch::of("memory:").arg("--access").arg(access).arg("--anonymous").arg(anonymous).start();
    (server, token)
}

#[test]
fn filter_searches_groups_that_are_not_open() {
    check(&memory(), "filter", &[]);
}

#[test]
fn empty_server_says_how_to_fill_it() {
    check(&memory(), "nothing", &[]);
}

#[test]
fn programs_for_other_libraries_run() {
    let (Some(browser), Some(python), Some(clients)) = (browser(), python(), python_with_clients()) else { return };
    let server = Launch::of("memory:").arg("--s3-listen").arg("127.0.0.1:0").start();
    let dir = TempDir::new().unwrap();
    // What one of the programs imports.
    let array = r#"{"zarr_format":2,"shape":[2],"chunks":[2],"dtype":"|u1","compressor":null,"fill_value":0,"order":"C","filters":null}"#;
    fs::create_dir_all(dir.path().join("data.zarr/a")).unwrap();
    fs::write(dir.path().join("data.zarr/.zgroup"), r#"{"zarr_format":2}"#).unwrap();
    fs::write(dir.path().join("data.zarr/a/.zarray"), array).unwrap();
    let zarrd = program().get_program().to_owned();
    let directory = Path::new(&zarrd).parent().unwrap().to_owned();
    let search = std::env::var_os("PATH").unwrap_or_default();
    let search = std::env::join_paths([directory].into_iter().chain(std::env::split_paths(&search))).unwrap();
    let listed = browser.run("page.mjs", &server.url(""), &["snippets"]);
    let programs: Vec<BTreeMap<String, String>> = serde_json::from_str(&listed).unwrap();
    let mut run = BTreeMap::<&str, usize>::new();
    for program in &programs {
        let (path, name, text) = (&program["path"], program["name"].as_str(), program["text"].as_str());
        if name == "zarrita" {
            let printed = browser.node.run_text("snippet.mjs", text, &[]);
            assert!(printed.as_ref().is_ok_and(|printed| !printed.is_empty()), "{path}: {text}\n{printed:?}");
        } else {
            let mut command = match name {
                "curl" | "a folder" => Command::new("sh"),
                // It needs s3fs.
                "S3" => clients.command(),
                _ => python.command(),
            };
            let output = command.arg("-c").arg(text).env("PATH", &search).current_dir(dir.path()).output().unwrap();
            assert!(output.status.success(), "{path} {name}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        *run.entry(name).or_default() += 1;
    }
    let expected = [
        ("NumPy", 4),
        ("Python", 3),
        // A path whose first segment is no bucket has none.
        ("S3", 3),
        ("a folder", 1),
        ("curl", 8),
        ("tensorstore", 3),
        ("xarray", 2),
        ("zarr-python", 4),
        ("zarrita", 3),
    ];
    assert_eq!(run, expected.into());
}

#[test]
fn page_works_below_the_path_of_a_proxy() {
    let server = Launch::of("memory:").arg("--base-path").arg("/lab/zarr").start();
    check(&server, "prefix", &["/lab/zarr"]);
}

#[test]
fn page_is_built_from_its_sources() {
    let Some(_) = node() else { return };
    let dir = TempDir::new().unwrap();
    let (sources, copies) = (workspace().join("crates/page"), dir.path().join("crates/page"));
    fs::create_dir_all(&copies).unwrap();
    fs::copy(workspace().join("openapi.yaml"), dir.path().join("openapi.yaml")).unwrap();
    assert!(Command::new("cp").arg("-r").arg(sources.join("web")).arg(&copies).status().unwrap().success());
    let web = copies.join("web");
    let _ = fs::remove_dir_all(web.join("node_modules"));
    for arguments in [&["ci", "--no-fund", "--no-audit", "--ignore-scripts"][..], &["run", "build"]] {
        let output = Command::new("npm").args(arguments).current_dir(&web).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for name in ["index.html", "page.js", "page.css", "icon.svg"] {
        let [built, committed] = [&copies, &sources].map(|root| fs::read(root.join("dist").join(name)).unwrap());
        assert!(built == committed, "crates/page/dist/{name} is not what its sources make: npm run build");
    }
}
