//! nginx, as Debian has it, in front of a directory of files.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::tools::tool;

/// The time after which nginx should have started.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A web server for the files of a directory; stopped on drop.
#[derive(Debug)]
pub struct Site {
    child: Child,
    port: u16,
    /// Its own files.
    _scratch: TempDir,
}

impl Site {
    /// Serves the files of `dir`; `None` if nginx is not installed, which is reported as a skipped test.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(dir: &Path) -> Option<Self> {
        let nginx = tool("nginx", "nginx-light")?;
        let scratch = tempfile::tempdir().expect("a directory can be made");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
        fs::write(scratch.path().join("configuration"), configuration(dir, scratch.path(), port)).expect("a file");
        let mut command = nginx.command(scratch.path());
        command.arg("-p").arg(scratch.path()).args(["-e", "stderr", "-c", "configuration"]).stderr(Stdio::null());
        let site = Self { child: command.spawn().expect("nginx runs"), port, _scratch: scratch };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < TIMEOUT, "nginx does not listen");
            thread::sleep(Duration::from_millis(10));
        }
        Some(site)
    }

    /// The URL of a path that begins with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

fn configuration(dir: &Path, scratch: &Path, port: u16) -> String {
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};", scratch.join(name).display()))
        .join(" ");
    // A single process, which can be killed. As root, files of others have to be readable.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    format!(
        "daemon off; master_process off; pid nginx.pid; {user} events {{}}\n\
         http {{ access_log off; {paths} default_type application/octet-stream; gzip on; gzip_types *;\n\
         server {{ listen 127.0.0.1:{port}; root {}; }} }}\n",
        dir.display()
    )
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
