//! Servers of buckets.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::{
    environment::clients,
    node::azurite,
    python::{Python, python_with_services},
    server::Launch,
};

/// The access key that the server of a bucket accepts.
pub const ACCESS_KEY: &str = "AKIATEST";

/// The secret that belongs to any access key.
pub const SECRET: &str = "very-secret-0123456789";

/// The account of every emulator of Azure's storage, and its key.
const AZURE_ACCOUNT: (&str, &str) =
    ("devstoreaccount1", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==");

/// A server with the files of a directory as the objects of a bucket called `bucket`.
#[derive(Debug)]
pub struct BucketServer {
    process: Child,
    endpoint: String,
    /// The URL of the bucket.
    pub url: &'static str,
}

/// The S3 interface of a server with a bucket called `bucket`.
#[derive(Clone, Debug)]
pub struct S3 {
    /// The URL of the interface.
    pub endpoint: String,
    /// The access key.
    pub access_key: String,
    /// The secret that belongs to it.
    pub secret: String,
}

impl S3 {
    /// The environment variables with which zarrd finds the server.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let Self { endpoint, access_key, secret } = self.clone();
        [
            ("AWS_ENDPOINT", endpoint),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", access_key),
            ("AWS_SECRET_ACCESS_KEY", secret),
        ]
        .to_vec()
    }

    /// A server of zarrd over the URL of a bucket.
    pub fn launch(&self, url: &str) -> Launch {
        launch(url, self.environment())
    }
}

impl BucketServer {
    /// Starts a server that speaks S3 and whose objects follow the files of the directory.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(python: &Python, dir: &Path) -> Self {
        let mut command = python.command();
        command.arg(clients().join("s3_server.py")).arg(dir).arg(ACCESS_KEY);
        Self::spawn(command, "s3://bucket")
    }

    /// Starts moto, and copies the files of the directory into a bucket. `None` if it cannot be installed, which is
    /// reported as a skipped test.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn moto(python: &Python, dir: &Path) -> Option<Self> {
        let mut command = python_with_services()?.command();
        command.arg(clients().join("moto_server.py"));
        let server = Self::spawn(command, "s3://bucket");
        server.fill(python, "s3", dir);
        Some(server)
    }

    /// Starts Azurite, and copies the files of the directory into a container. `None` if it cannot be installed, which
    /// is reported as a skipped test.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn azurite(python: &Python, dir: &Path) -> Option<Self> {
        let server = Self::spawn(azurite()?, "az://bucket");
        server.fill(python, "azure", dir);
        Some(server)
    }

    /// Starts a server that prints its port, which is not zero, at the end of a line.
    fn spawn(mut command: Command, url: &'static str) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let port = lines.find_map(|line| {
            let line = line.expect("the server prints its port");
            line.trim().rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).filter(|port| *port != 0)
        });
        // Nothing that the server prints later may block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, endpoint: format!("http://127.0.0.1:{}", port.expect("a port")), url }
    }

    fn fill(&self, python: &Python, kind: &str, dir: &Path) {
        python.run("fill_bucket.py", &[kind, &self.endpoint, dir.to_str().expect("the path is UTF-8")]);
    }

    /// The environment variables with which zarrd finds the server.
    pub fn environment(&self, access_key: &str) -> Vec<(&'static str, String)> {
        let (account, key) = AZURE_ACCOUNT;
        match self.url {
            "az://bucket" => [
                ("AZURE_STORAGE_ENDPOINT", format!("{}/{account}", self.endpoint)),
                ("AZURE_ALLOW_HTTP", "true".into()),
                ("AZURE_STORAGE_ACCOUNT_NAME", account.into()),
                ("AZURE_STORAGE_ACCOUNT_KEY", key.into()),
            ]
            .to_vec(),
            _ => {
                let endpoint = self.endpoint.clone();
                S3 { endpoint, access_key: access_key.into(), secret: SECRET.into() }.environment()
            }
        }
    }

    /// A server of zarrd over the URL of a bucket.
    pub fn launch(&self, url: &str, access_key: &str) -> Launch {
        launch(url, self.environment(access_key))
    }
}

fn launch(url: &str, environment: Vec<(&'static str, String)>) -> Launch {
    environment.into_iter().fold(Launch::of(url), |launch, (name, value)| launch.env(name, value))
}

impl Drop for BucketServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
