//! Clients of a closed server: with a token, and through a share link.

use std::fs;

use zarrd_tests::{python::python_with_clients, sample::Sample, skip::note, tools::tool};

#[test]
fn libraries_read_through_a_share_link() {
    let Some(python) = python_with_clients() else { return };
    let server = Sample::of(&python).serve_closed();
    let link = server.share_link();
    for (script, report) in [
        ("read_datasets.py", "compared 45 datasets and arrays, 6 not listed"),
        ("read_images.py", "compared 6 levels"),
        ("list_fsspec.py", "listed 353 values and compared 10 arrays"),
        ("read_tensorstore.py", "compared 353 values and 8 arrays"),
        ("read_rasters.py", "compared 22 rasters"),
        ("read_tables.py", "compared 52 tables"),
    ] {
        let found = server.run_at(&python, script, &link, &[]);
        note(found.trim_end());
        assert!(found.trim_end().ends_with(report), "{script}: {found}");
    }
}

#[test]
fn libraries_read_and_write_with_a_token() {
    let Some(python) = python_with_clients() else { return };
    let server = Sample::of(&python).serve_closed();
    let found = server.run_at(&python, "use_token.py", &server.url(""), &[&server.admin_token()]);
    note(found.trim_end());
    assert!(found.trim_end().ends_with("7 ways to send a token"), "{found}");
}

#[test]
fn programs_download_with_a_token_as_password() {
    let Some(python) = python_with_clients() else { return };
    let (Some(wget), Some(curl), Some(rclone)) = (tool("wget", "wget"), tool("curl", "curl"), tool("rclone", "rclone"))
    else {
        return;
    };
    let server = Sample::of(&python).serve_closed();
    let (token, dir) = (server.admin_token(), server.download_dir.path());
    let url = server.url("/store/lab/large.bin");
    let wanted = fs::read(server.sample.lab().join("large.bin")).unwrap();
    let downloaded = |name: &str| fs::read(dir.join(name)).unwrap() == wanted;
    wget.run(dir, ["--user=any", &format!("--password={token}"), "-O", "wget", &url]);
    assert!(downloaded("wget"));
    curl.run(dir, ["--fail", "--silent", "-u", &format!("any:{token}"), "-o", "curl", &url]);
    assert!(downloaded("curl"));
    let header = format!("Authorization,Bearer {token}");
    let remote = format!(":http,url='{}',headers='{header}':", server.url("/store/lab/"));
    rclone.run(dir, ["copyto", &format!("{remote}large.bin"), "rclone"]);
    assert!(downloaded("rclone"));
    // Without the token none of them gets anything.
    assert!(!wget.output(dir, ["-O", "none", &url]).status.success());
    assert!(!curl.output(dir, ["--fail", "--silent", &url]).status.success());
}
