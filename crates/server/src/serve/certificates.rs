//! The certificate of the server, which is replaced while it runs.

use std::{
    fmt,
    future::Future,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::RwLock;
use tokio::time::sleep;
use tokio_rustls::rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use zarrd_executor::spawn_blocking;

use super::key_pair::{CertificateError, Fingerprint, KeyPair, KeyPairFiles};

/// The interval between checks for changed files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A certificate chain with its private key, loaded from files.
pub struct Certificates {
    files: KeyPairFiles,
    current: RwLock<Current>,
}

struct Current {
    certified: Arc<CertifiedKey>,
    valid_until: SystemTime,
    /// The files when they were last loaded, or could not be.
    files: Fingerprint,
}

impl Certificates {
    /// Loads a certificate chain and its private key, both in PEM.
    ///
    /// # Errors
    ///
    /// If the files cannot be used: they do not match, the certificate is not valid now, or other users have access to
    /// the key.
    pub fn load(cert: PathBuf, key: PathBuf) -> Result<Arc<Self>, CertificateError> {
        let files = KeyPairFiles { cert, key };
        // Before reading, so that a later change is noticed.
        let fingerprint = files.fingerprint();
        let current = Current::new(files.load()?, fingerprint);
        Ok(Arc::new(Self { files, current: RwLock::new(current) }))
    }

    /// The end of the certificate's validity.
    pub fn valid_until(&self) -> SystemTime {
        self.current.read().valid_until
    }

    /// Loads the files again. Connections that exist are not affected.
    ///
    /// # Errors
    ///
    /// If the new files cannot be used. Then the certificate stays in use.
    pub fn reload(&self) -> Result<(), CertificateError> {
        let fingerprint = self.files.fingerprint();
        let loaded = self.files.load();
        let mut current = self.current.write();
        match loaded {
            Ok(pair) => *current = Current::new(pair, fingerprint),
            Err(error) => {
                current.files = fingerprint;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Reloads the files whenever they change, and when the future that `requested` returns completes. Never returns.
    ///
    /// The outcome is logged.
    pub async fn watch<R: Future<Output = ()>>(self: Arc<Self>, mut requested: impl FnMut() -> R) {
        let mut last = self.current.read().files.clone();
        loop {
            let cause = tokio::select! {
                () = sleep(CHECK_INTERVAL) => Cause::Check,
                () = requested() => Cause::Request,
            };
            let certificates = self.clone();
            let checked = spawn_blocking(move || certificates.check(cause, &last)).await;
            // Fails only while the runtime shuts down.
            let Ok(files) = checked else { return };
            last = files;
        }
    }

    /// Reloads the files if that was requested, or if they have changed. Returns their state.
    ///
    /// Changed files are loaded when they have not changed further since `last`, so that files that are being replaced
    /// one after the other are not reported.
    fn check(&self, cause: Cause, last: &Fingerprint) -> Fingerprint {
        let files = self.files.fingerprint();
        let has_settled = files == *last && files != self.current.read().files;
        if cause == Cause::Request || has_settled {
            self.reload_and_log();
        }
        files
    }

    fn reload_and_log(&self) {
        let reloaded = self.reload();
        let valid_until = zarrd_wire::time::http_date(self.valid_until());
        match reloaded {
            Ok(()) => tracing::info!("loaded a new TLS certificate, valid until {valid_until}"),
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot load a new TLS certificate; the one in use is valid until {valid_until}"
            ),
        }
    }
}

/// The cause of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The interval has passed.
    Check,
    /// A reload was requested.
    Request,
}

impl Current {
    fn new(pair: KeyPair, files: Fingerprint) -> Self {
        Self { certified: Arc::new(pair.certified), valid_until: pair.valid_until, files }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().certified.clone())
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("files", &self.files).finish_non_exhaustive()
    }
}
