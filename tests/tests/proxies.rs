//! nginx in front of zarrd, with the configuration in the README.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use zarrd_tests::{
    binary::workspace,
    readme::blocks,
    server::{Launch, Server},
    tools::{Tool, tool},
};

const HOST: &str = "zarr.example.org";

/// nginx in front of a server; stopped on drop.
struct Proxy {
    child: Child,
    curl: Tool,
    port: u16,
    dir: TempDir,
}

impl Proxy {
    /// Starts nginx; `None` if it is not installed.
    fn start(server: &Server) -> Option<Self> {
        let (nginx, curl) = (tool("nginx", "nginx-light")?, tool("curl", "curl")?);
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        write_certificate(dir.path());
        fs::write(dir.path().join("nginx.conf"), configuration(dir.path(), port, server)).unwrap();
        let mut command = nginx.command(dir.path());
        let log = fs::File::create(dir.path().join("log")).unwrap();
        command.arg("-p").arg(dir.path()).args(["-c", "nginx.conf", "-e", "stderr"]);
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut proxy = Self { child, curl, port, dir };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = proxy.child.try_wait().unwrap();
            let log = fs::read_to_string(proxy.dir.path().join("log")).unwrap();
            assert!(ended.is_none() && started.elapsed() < Duration::from_secs(20), "nginx does not listen: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(proxy)
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Runs curl with more arguments; returns its output.
    fn curl(&self, path: &str, arguments: &[&str]) -> String {
        let port = self.port;
        let (resolve, url) = (format!("{HOST}:{port}:127.0.0.1"), format!("https://{HOST}:{port}{path}"));
        let common = ["-sS", "--http2", "--cacert", "cert.pem", "--resolve", &resolve, &url];
        self.curl.run(self.dir.path(), [common.as_slice(), arguments].concat())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_certificate(dir: &Path) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new([HOST.to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(dir.join("cert.pem"), certificate.pem()).unwrap();
    fs::write(dir.join("key.pem"), key.serialize_pem()).unwrap();
}

/// The configuration in the README with other ports and files, and what nginx needs to run in a directory.
fn configuration(dir: &Path, port: u16, server: &Server) -> String {
    let readme = fs::read_to_string(workspace().join("README.md")).unwrap();
    let block = blocks(&readme, "TLS").into_iter().find(|block| block.language == "nginx").unwrap();
    let mut recipe = block.text;
    for (documented, actual) in [
        ("127.0.0.1:8000", server.url("").trim_start_matches("http://").to_owned()),
        ("listen 443 ", format!("listen 127.0.0.1:{port} ")),
        ("/etc/ssl/zarr/fullchain.pem", dir.join("cert.pem").display().to_string()),
        ("/etc/ssl/zarr/privkey.pem", dir.join("key.pem").display().to_string()),
    ] {
        assert!(recipe.contains(documented), "{documented:?} is not in the README");
        recipe = recipe.replace(documented, &actual);
    }
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};", dir.join(name).display()))
        .join(" ");
    // A single process, which can be killed.
    format!("daemon off; master_process off; pid nginx.pid; events {{}}\nhttp {{ access_log off; {paths}\n{recipe}}}\n")
}

#[test]
fn nginx_passes_on_requests_as_documented() {
    let server = Launch::of("memory:")
        .arg("--anonymous")
        .arg("write")
        .arg("--behind-proxy")
        .arg("127.0.0.1")
        .arg("--allow-host")
        .arg(HOST)
        .start();
    let Some(proxy) = Proxy::start(&server) else { return };
    let large: Vec<u8> = (0..32_u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(proxy.file("large"), &large).unwrap();
    let status = ["-o", "/dev/null", "-w", "%{http_code} %{http_version}"];
    let put = [["-T", "large"].as_slice(), &status].concat();
    // An escaped slash, percent sign and space, and a doubled one, which must not be normalized.
    assert_eq!(proxy.curl("/store/a%25b%20c/%C3%A9", &put), "201 2");
    proxy.curl("/store/a%25b%20c/%C3%A9", &["-o", "got"]);
    assert!(fs::read(proxy.file("got")).unwrap() == large);
    proxy.curl("/store/a%25b%20c/%C3%A9", &["-o", "part", "-r", "1000000-1000999"]);
    assert!(fs::read(proxy.file("part")).unwrap() == large[1_000_000..1_001_000]);
    let listing = proxy.curl("/store/?list=keys", &[]);
    assert!(listing.contains("\"a%b c/é\""), "{listing}");
    assert_eq!(proxy.curl("/store/a//b", &put), "400 2");
    assert_eq!(proxy.curl("/store/x/%2e%2e/y", &status), "400 2");
    // A client cannot choose its address.
    assert_eq!(proxy.curl("/healthz", &[["-H", "Forwarded: for=192.0.2.1"].as_slice(), &status].concat()), "200 2");
}

#[test]
fn untrusted_nginx_is_refused() {
    let server = Launch::of("memory:").arg("--allow-host").arg(HOST).start();
    let Some(proxy) = Proxy::start(&server) else { return };
    let problem = proxy.curl("/healthz", &[]);
    assert!(problem.contains("problems/untrusted-proxy") && problem.contains("--behind-proxy"), "{problem}");
    assert!(problem.contains("x-forwarded-for") && problem.contains("127.0.0.1"), "{problem}");
}
