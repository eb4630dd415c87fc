//! Caddy and nginx in front of zarrd, with the configurations in docs/operate/tls.md.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
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

/// The name of the file with the configuration.
const CONFIGURATION: &str = "configuration";

/// The address of the clients. The proxy connects from another one, which the server trusts.
const CLIENT: &str = "127.0.0.2";

/// A proxy for which the page has a configuration.
#[derive(Clone, Copy, Debug)]
enum Program {
    Caddy,
    Nginx,
}

/// A proxy in front of a server; stopped on drop.
struct Proxy {
    child: Child,
    curl: Tool,
    port: u16,
    dir: TempDir,
}

impl Program {
    /// The program; `None` if it is not installed.
    fn tool(self) -> Option<Tool> {
        match self {
            Self::Caddy => tool("caddy", "caddy"),
            Self::Nginx => tool("nginx", "nginx-light"),
        }
    }

    /// The command that runs it in a directory with its configuration.
    fn command(self, tool: Tool, dir: &Path) -> Command {
        let mut command = tool.command(dir);
        match self {
            // Its own files, such as locks of certificates, stay in the directory.
            Self::Caddy => {
                command.env("XDG_DATA_HOME", dir).env("XDG_CONFIG_HOME", dir);
                command.args(["run", "--adapter", "caddyfile", "--config", CONFIGURATION])
            }
            Self::Nginx => command.arg("-p").arg(dir).args(["-e", "stderr", "-c", CONFIGURATION]),
        };
        command
    }

    /// The language of its configuration in the page.
    fn language(self) -> &'static str {
        match self {
            Self::Caddy => "caddy",
            Self::Nginx => "nginx",
        }
    }

    /// The configuration in the page with other ports and files, and what the program needs to run in a directory.
    fn configuration(self, dir: &Path, port: u16, server: &Server) -> String {
        let [certificate, key] = ["cert.pem", "key.pem"].map(|name| dir.join(name).display().to_string());
        let upstream = ("127.0.0.1:8000", server.url("").trim_start_matches("http://").to_owned());
        match self {
            Self::Caddy => {
                let site = format!("{HOST}:{port} {{\n\tbind 127.0.0.1\n\ttls {certificate} {key}");
                let recipe = self.recipe(&[upstream, ("zarr.example.org {", site)]);
                // A certificate is given, and the ports 80 and 2019 are not free on each machine.
                format!("{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{recipe}")
            }
            Self::Nginx => {
                let recipe = self.recipe(&[
                    upstream,
                    ("listen 443 ", format!("listen 127.0.0.1:{port} ")),
                    ("/etc/ssl/zarr/fullchain.pem", certificate),
                    ("/etc/ssl/zarr/privkey.pem", key),
                ]);
                let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|name| format!("{name}_temp_path {};", dir.join(name).display()))
                    .join(" ");
                // A single process, which can be killed.
                let process = "daemon off; master_process off; pid nginx.pid; events {}";
                format!("{process}\nhttp {{ access_log off; {paths}\n{recipe}}}\n")
            }
        }
    }

    /// The configuration in the page with these replacements.
    fn recipe(self, replacements: &[(&str, String)]) -> String {
        let page = fs::read_to_string(workspace().join("docs/operate/tls.md")).unwrap();
        let block = blocks(&page).into_iter().find(|block| block.language == self.language()).unwrap();
        replacements.iter().fold(block.text, |recipe, (documented, actual)| {
            assert!(recipe.contains(documented), "{documented:?} is not in the page");
            recipe.replace(documented, actual)
        })
    }
}

impl Proxy {
    /// Starts a proxy; `None` if it is not installed.
    fn start(program: Program, server: &Server) -> Option<Self> {
        let (tool, curl) = (program.tool()?, tool("curl", "curl")?);
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        write_certificate(dir.path());
        fs::write(dir.path().join(CONFIGURATION), program.configuration(dir.path(), port, server)).unwrap();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let child = program.command(tool, dir.path()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut proxy = Self { child, curl, port, dir };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = proxy.child.try_wait().unwrap();
            let log = fs::read_to_string(proxy.file("log")).unwrap();
            assert!(
                ended.is_none() && started.elapsed() < Duration::from_secs(30),
                "{program:?} does not listen: {log}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(proxy)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs curl with more arguments; returns its output.
    fn curl(&self, path: &str, arguments: &[&str]) -> String {
        let port = self.port;
        let (resolve, url) = (format!("{HOST}:{port}:127.0.0.1"), format!("https://{HOST}:{port}{path}"));
        let common = ["-sS", "--http2", "--path-as-is", "--interface", CLIENT];
        let tls = ["--cacert", "cert.pem", "--resolve", &resolve, &url];
        self.curl.run(self.dir.path(), [&common, &tls, arguments].concat())
    }

    /// The status of the response, and the version of HTTP.
    fn status(&self, path: &str, arguments: &[&str]) -> String {
        let status = ["-o", "/dev/null", "-w", "%{http_code} %{http_version}"];
        self.curl(path, &[arguments, &status].concat())
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

/// A server that trusts the proxy, and logs the clients that the proxy names.
fn server_behind_proxy() -> Launch {
    let arguments = ["--behind-proxy", "127.0.0.1", "--allow-host", HOST, "--access-log", "all"];
    arguments.into_iter().fold(Launch::of("memory:"), Launch::arg)
}

fn requests_are_passed_on(program: Program) {
    let server = server_behind_proxy().arg("--anonymous").arg("write").start();
    let Some(proxy) = Proxy::start(program, &server) else { return };
    let large: Vec<u8> = (0..32_u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(proxy.file("large"), &large).unwrap();
    let put = ["-T", "large"];
    // An escaped slash, percent sign and space, and a doubled one, which must not be normalized.
    assert_eq!(proxy.status("/store/a%25b%20c/%C3%A9", &put), "201 2");
    proxy.curl("/store/a%25b%20c/%C3%A9", &["-o", "got"]);
    assert!(fs::read(proxy.file("got")).unwrap() == large);
    proxy.curl("/store/a%25b%20c/%C3%A9", &["-o", "part", "-r", "1000000-1000999"]);
    assert!(fs::read(proxy.file("part")).unwrap() == large[1_000_000..1_001_000]);
    assert_eq!(proxy.status("/store/x%2Fy%2fz%3F%23", &["-X", "PUT", "-d", "1"]), "201 2");
    for path in ["/store/a//b", "/store/x/%2e%2e/y", "/store/x/../y"] {
        assert_eq!(proxy.status(path, &put), "400 2", "{path}");
    }
    let listing = proxy.curl("/store/?list=keys", &[]);
    assert!(listing.contains("[\"a%b c/é\",\"x/y/z?#\"]"), "{listing}");
}

fn client_cannot_choose_its_address(program: Program) {
    let server = server_behind_proxy().arg("--anonymous").arg("read").start();
    let Some(proxy) = Proxy::start(program, &server) else { return };
    for (number, header) in [
        "X-None: 1",
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-For: 127.0.0.1",
        "Forwarded: for=192.0.2.1",
        "Forwarded: for=127.0.0.1",
        "Forwarded: for=\"",
        "X-Real-IP: 192.0.2.1",
        "Via: 1.1 x",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(proxy.status(&format!("/healthz?{number}"), &["-H", header]), "200 2", "{header}");
        let is_logged = |line: &&str| line.contains(&format!("\"query\":\"{number}\""));
        server.wait_for_log(&format!("\"query\":\"{number}\""));
        let log = server.log();
        let line = log.lines().find(is_logged).unwrap();
        assert!(line.contains(&format!("\"client\":\"{CLIENT}\"")), "{header}: {line}");
    }
}

fn untrusted_proxy_is_refused(program: Program) {
    let server = Launch::of("memory:").arg("--allow-host").arg(HOST).start();
    let Some(proxy) = Proxy::start(program, &server) else { return };
    let problem = proxy.curl("/healthz", &[]);
    assert!(problem.contains("problems/untrusted-proxy") && problem.contains("--behind-proxy"), "{problem}");
    assert!(problem.contains("x-forwarded-for") && problem.contains("127.0.0.1"), "{problem}");
}

fn server_is_closed_by_default(program: Program) {
    let access = tempfile::tempdir().unwrap();
    let closed = server_behind_proxy().arg("--access").arg(access.path());
    let (open, closed) = (closed.clone().arg("--anonymous").arg("read").start(), closed.start());
    let token = fs::read_to_string(access.path().join("admin-token")).unwrap();
    let authorization = format!("Authorization: Bearer {}", token.trim());
    let Some(proxy) = Proxy::start(program, &closed) else { return };
    assert_eq!(proxy.status("/store/", &[]), "401 2");
    assert_eq!(proxy.status("/store/", &["-H", &authorization]), "200 2");
    drop(proxy);
    let Some(proxy) = Proxy::start(program, &open) else { return };
    assert_eq!(proxy.status("/store/", &[]), "200 2");
}

#[test]
fn caddy_passes_on_requests_as_documented() {
    requests_are_passed_on(Program::Caddy);
}

#[test]
fn nginx_passes_on_requests_as_documented() {
    requests_are_passed_on(Program::Nginx);
}

#[test]
fn client_of_caddy_cannot_choose_its_address() {
    client_cannot_choose_its_address(Program::Caddy);
}

#[test]
fn client_of_nginx_cannot_choose_its_address() {
    client_cannot_choose_its_address(Program::Nginx);
}

#[test]
fn untrusted_caddy_is_refused() {
    untrusted_proxy_is_refused(Program::Caddy);
}

#[test]
fn untrusted_nginx_is_refused() {
    untrusted_proxy_is_refused(Program::Nginx);
}

#[test]
fn server_behind_caddy_is_closed_by_default() {
    server_is_closed_by_default(Program::Caddy);
}

#[test]
fn server_behind_nginx_is_closed_by_default() {
    server_is_closed_by_default(Program::Nginx);
}
