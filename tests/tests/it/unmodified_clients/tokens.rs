//! Clients of a closed server: with a token, and through a share link.

use std::{fs, path::Path};

use zarrd_tests::{
    python::python_with_clients,
    sample::{Sample, SampleServer},
    skip::note,
    tools::{Tool, tool},
};

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
fn libraries_write_with_a_token_or_reject_to_write() {
    let Some(python) = python_with_clients() else { return };
    let server = Sample::of(&python).serve_closed();
    let found = server.run_at(&python, "write_with_token.py", &server.url(""), &[&server.admin_token()]);
    note(found.trim_end());
    assert!(found.trim_end().ends_with("6 ways to write with a token"), "{found}");
}

#[test]
fn rasterio_reads_with_a_token() {
    let Some(python) = python_with_clients() else { return };
    let server = Sample::of(&python).serve_closed();
    let token = server.admin_token();
    let password = format!("GDAL_HTTP_USERPWD=any:{token}");
    for options in [
        &[password.as_str()][..],
        &["GDAL_HTTP_AUTH=BASIC", &password],
        &["GDAL_HTTP_AUTH=BEARER", &format!("GDAL_HTTP_BEARER={token}")],
        &[&format!("GDAL_HTTP_HEADERS=Authorization: Bearer {token}")],
    ] {
        let found = server.run_at(&python, "read_rasters.py", &server.url(""), options);
        note(found.trim_end());
        assert!(found.trim_end().ends_with("compared 22 rasters"), "{options:?}: {found}");
    }
}

/// A closed server, and programs for it.
struct Programs {
    server: SampleServer,
    wget: Tool,
    curl: Tool,
    rclone: Tool,
    token: String,
    /// The token as a user's password.
    user: String,
}

impl Programs {
    /// `None` if a program is missing.
    fn new() -> Option<Self> {
        let python = python_with_clients()?;
        let [wget, curl, rclone] = ["wget", "curl", "rclone"].map(|name| tool(name, name));
        let (wget, curl, rclone) = (wget?, curl?, rclone?);
        let server = Sample::of(&python).serve_closed();
        let token = server.admin_token();
        let user = format!("any:{token}");
        Some(Self { server, wget, curl, rclone, token, user })
    }

    fn dir(&self) -> &Path {
        self.server.download_dir.path()
    }

    /// The URL of a value below `made/`, and its content if it exists.
    fn made(&self, name: &str) -> (String, Option<Vec<u8>>) {
        let url = self.server.url(&format!("/store/made/{name}"));
        let read = self.curl.output(self.dir(), ["--fail", "--silent", "-u", &self.user, &url]);
        (url, read.status.success().then_some(read.stdout))
    }
}

#[test]
fn programs_download_with_a_token_as_password() {
    let (Some(programs), Some(aria2)) = (Programs::new(), tool("aria2c", "aria2")) else { return };
    let Programs { server, wget, curl, rclone, token, user } = &programs;
    let dir = programs.dir();
    let url = server.url("/store/lab/large.bin");
    let wanted = fs::read(server.sample.lab().join("large.bin")).unwrap();
    let downloaded = |name: &str| fs::read(dir.join(name)).unwrap() == wanted;
    wget.run(dir, ["--user=any", &format!("--password={token}"), "-O", "wget", &url]);
    assert!(downloaded("wget"));
    curl.run(dir, ["--fail", "--silent", "-u", user, "-o", "curl", &url]);
    assert!(downloaded("curl"));
    let header = format!("Authorization,Bearer {token}");
    let remote = format!(":http,url='{}',headers='{header}':", server.url("/store/lab/"));
    rclone.run(dir, ["copyto", &format!("{remote}large.bin"), "rclone"]);
    assert!(downloaded("rclone"));
    let password = format!("--http-passwd={token}");
    aria2.run(dir, ["--quiet", "--no-conf", "-x4", "--http-user=any", &password, "-o", "aria2", &url]);
    assert!(downloaded("aria2"));
    // Without the token none of them gets anything.
    assert!(!wget.output(dir, ["-O", "none", &url]).status.success());
    assert!(!curl.output(dir, ["--fail", "--silent", &url]).status.success());
    assert!(!aria2.output(dir, ["--quiet", "--no-conf", "-o", "none", &url]).status.success());
}

#[test]
fn wget_and_curl_upload_with_a_token() {
    let Some(programs) = Programs::new() else { return };
    let Programs { server, wget, curl, token, user, .. } = &programs;
    let dir = programs.dir();
    let wanted = fs::read(server.sample.lab().join("large.bin")).unwrap();
    fs::write(dir.join("body"), &wanted).unwrap();
    fs::write(dir.join("netrc"), format!("machine 127.0.0.1 login any password {token}")).unwrap();

    let (url, _) = programs.made("refused");
    let put = ["-nv", "--method=PUT", "--body-file=body", "-O", "answer"];
    // Authentication failed.
    assert_eq!(wget.output(dir, put.into_iter().chain([url.as_str()])).status.code(), Some(6));
    let upload = ["--fail", "--silent", "-T", "body"];
    assert_eq!(curl.output(dir, upload.into_iter().chain([url.as_str()])).status.code(), Some(22));
    assert_eq!(server.requests("/store/{key}", "PUT", 401), 2);
    assert_eq!(programs.made("refused").1, None);

    let password = format!("--password={token}");
    let ways: [(Tool, &[&str], &[&str]); 4] = [
        (*wget, &put, &["--user=any", &password]),
        (*curl, &upload, &["-u", user]),
        (*curl, &upload, &["--oauth2-bearer", token]),
        (*curl, &upload, &["--netrc-file", "netrc"]),
    ];
    for (number, (tool, put, credentials)) in ways.into_iter().enumerate() {
        let name = number.to_string();
        let (url, before) = programs.made(&name);
        assert_eq!(before, None);
        tool.run(dir, [put, credentials, &[&url]].concat());
        assert!(programs.made(&name).1.as_ref() == Some(&wanted), "{credentials:?}");
    }
    assert_eq!(server.requests("/store/{key}", "PUT", 201), 4);
}

#[test]
fn rclone_uploads_over_webdav_with_a_token() {
    let Some(programs) = Programs::new() else { return };
    let Programs { server, rclone, token, .. } = &programs;
    let dir = programs.dir();
    fs::write(dir.join("body"), "body").unwrap();
    let url = server.url("/store/");
    for (remote, reason) in [
        (format!(":http,url='{url}',headers='Authorization,Bearer {token}':"), "http remotes are read only"),
        (format!(":webdav,url='{url}':"), "401"),
    ] {
        let upload = rclone.output(dir, ["copyto", "--retries=1", "body", &format!("{remote}made/rclone")]);
        let message = String::from_utf8_lossy(&upload.stderr);
        assert!(!upload.status.success() && message.contains(reason), "{message}");
        assert_eq!(programs.made("rclone").1, None);
    }
    let remote = format!(":webdav,url='{url}',bearer_token='{token}':made/rclone");
    rclone.run(dir, ["copyto", "--retries=1", "body", &remote]);
    assert_eq!(programs.made("rclone").1.as_deref(), Some(&b"body"[..]));
}
