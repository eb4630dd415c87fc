//! Files with a certificate and its private key.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tokio_rustls::rustls::{
    self,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    sign::CertifiedKey,
};
use x509_parser::{certificate::X509Certificate, error::X509Error, prelude::FromDer, time::ASN1Time};

/// The maximum size of either file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Permissions that a key must not grant if it belongs to the user of this process: any, to group and others.
const FORBIDDEN_TO_OWNER: u32 = 0o077;
/// Permissions that a key must not grant if it belongs to another user: all except reading by the group, of which this
/// process is probably a member.
const FORBIDDEN_TO_OTHERS: u32 = 0o037;

/// The paths of a certificate chain and its private key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPairFiles {
    pub(super) cert: PathBuf,
    pub(super) key: PathBuf,
}

/// A certificate with its key.
#[derive(Debug)]
pub(super) struct KeyPair {
    pub(super) certified: CertifiedKey,
    /// The end of the certificate's validity.
    pub(super) valid_until: SystemTime,
}

/// The state of both files, by which a change is detected; `None` for a file that cannot be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint([Option<FileState>; 2]);

/// Device, inode, length, and the times of the last change of content and attributes.
type FileState = [i128; 5];

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {} ({flag})", file.display())]
    Read {
        /// Path of the file.
        file: PathBuf,
        /// The flag that names the file.
        flag: &'static str,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// A path is not that of a regular file.
    #[error("{} ({flag}) is not a regular file", file.display())]
    NotAFile {
        /// The path.
        file: PathBuf,
        /// The flag that names it.
        flag: &'static str,
    },
    /// A file is too large.
    #[error("{} ({flag}) is larger than {MAX_FILE_BYTES} bytes", file.display())]
    TooLarge {
        /// Path of the file.
        file: PathBuf,
        /// The flag that names the file.
        flag: &'static str,
    },
    /// Other users have access to the key.
    #[error(
        "{} (--tls-key) is accessible to other users (mode {mode:04o}): run `chmod 600` on it. Only a key that belongs \
         to another user, such as root, may be readable by its group (mode 0640), as in Kubernetes secrets that are \
         mounted with an fsGroup; without one, set `defaultMode: 0400`",
        file.display()
    )]
    KeyAccessible {
        /// Path of the key.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file is not valid PEM, or has nothing of the required kind.
    #[error("{} ({flag}) has no {content} in PEM", file.display())]
    Pem {
        /// Path of the file.
        file: PathBuf,
        /// The flag that names the file.
        flag: &'static str,
        /// The required content.
        content: &'static str,
        /// Reason.
        #[source]
        source: pem::Error,
    },
    /// The certificate cannot be parsed.
    #[error("{} (--tls-cert) has an invalid certificate", file.display())]
    Invalid {
        /// Path of the certificate.
        file: PathBuf,
        /// Reason.
        #[source]
        source: x509_parser::nom::Err<X509Error>,
    },
    /// The certificate has expired.
    #[error("the certificate in {} (--tls-cert) expired on {}", file.display(), zarrd_wire::time::http_date(*time))]
    Expired {
        /// Path of the certificate.
        file: PathBuf,
        /// The end of its validity.
        time: SystemTime,
    },
    /// The certificate is not valid yet.
    #[error("the certificate in {} (--tls-cert) is not valid before {}", file.display(), zarrd_wire::time::http_date(*time))]
    NotYetValid {
        /// Path of the certificate.
        file: PathBuf,
        /// The start of its validity.
        time: SystemTime,
    },
    /// The key is not that of the certificate.
    #[error("the key in {} (--tls-key) is not that of the certificate in {} (--tls-cert)", key.display(), cert.display())]
    Mismatch {
        /// Path of the certificate.
        cert: PathBuf,
        /// Path of the key.
        key: PathBuf,
    },
    /// The key or the certificate is not supported.
    #[error("cannot use the key in {} (--tls-key) with the certificate in {} (--tls-cert)", key.display(), cert.display())]
    Unusable {
        /// Path of the certificate.
        cert: PathBuf,
        /// Path of the key.
        key: PathBuf,
        /// Reason.
        #[source]
        source: rustls::Error,
    },
}

/// A file, and the flag that names it.
#[derive(Clone, Copy)]
struct Source<'a> {
    file: &'a Path,
    flag: &'static str,
}

impl KeyPairFiles {
    /// Reads both files and checks that they can be used now.
    pub(super) fn load(&self) -> Result<KeyPair, CertificateError> {
        let (cert, key) = (self.cert_source(), self.key_source());
        let (chain, _) = cert.read()?;
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(&chain).collect::<Result<_, _>>().map_err(|error| cert.pem_error(error))?;
        let leaf = chain.first().ok_or_else(|| cert.pem_error(pem::Error::NoItemsFound))?;
        let valid_until = self.check_validity(leaf)?;
        let (text, metadata) = key.read()?;
        self.check_permissions(&metadata)?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| key.pem_error(error))?;
        let certified = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
        let certified = certified.map_err(|error| self.unusable(error))?;
        Ok(KeyPair { certified, valid_until })
    }

    /// The current state of both files.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        let state = |file| fs::metadata(file).ok().map(|metadata| file_state(&metadata));
        Fingerprint([state(&self.cert), state(&self.key)])
    }

    fn cert_source(&self) -> Source<'_> {
        Source { file: &self.cert, flag: "--tls-cert" }
    }

    fn key_source(&self) -> Source<'_> {
        Source { file: &self.key, flag: "--tls-key" }
    }

    /// Checks that a certificate is valid now; returns until when.
    fn check_validity(&self, certificate: &CertificateDer<'_>) -> Result<SystemTime, CertificateError> {
        let file = || self.cert.clone();
        let (_, certificate) = X509Certificate::from_der(certificate)
            .map_err(|source| CertificateError::Invalid { file: file(), source })?;
        let now = SystemTime::now();
        let (start, end) =
            (system_time(certificate.validity().not_before), system_time(certificate.validity().not_after));
        if now < start {
            return Err(CertificateError::NotYetValid { file: file(), time: start });
        }
        if now > end {
            return Err(CertificateError::Expired { file: file(), time: end });
        }
        Ok(end)
    }

    fn check_permissions(&self, key: &Metadata) -> Result<(), CertificateError> {
        let is_owner = key.uid() == rustix::process::geteuid().as_raw();
        let forbidden = if is_owner { FORBIDDEN_TO_OWNER } else { FORBIDDEN_TO_OTHERS };
        let mode = key.mode() & 0o7777;
        if mode & forbidden == 0 {
            return Ok(());
        }
        Err(CertificateError::KeyAccessible { file: self.key.clone(), mode })
    }

    fn unusable(&self, source: rustls::Error) -> CertificateError {
        let (cert, key) = (self.cert.clone(), self.key.clone());
        match source {
            rustls::Error::InconsistentKeys(_) => CertificateError::Mismatch { cert, key },
            source => CertificateError::Unusable { cert, key, source },
        }
    }
}

impl Source<'_> {
    /// Reads the file, with a limit; a pipe, for example, could block.
    fn read(self) -> Result<(Vec<u8>, Metadata), CertificateError> {
        let fails = |source| CertificateError::Read { file: self.file.to_owned(), flag: self.flag, source };
        if !fs::metadata(self.file).map_err(fails)?.is_file() {
            return Err(CertificateError::NotAFile { file: self.file.to_owned(), flag: self.flag });
        }
        let file = File::open(self.file).map_err(fails)?;
        let metadata = file.metadata().map_err(fails)?;
        let mut content = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content).map_err(fails)?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(CertificateError::TooLarge { file: self.file.to_owned(), flag: self.flag });
        }
        Ok((content, metadata))
    }

    fn pem_error(self, source: pem::Error) -> CertificateError {
        let content = if self.flag == "--tls-key" { "private key" } else { "certificate" };
        CertificateError::Pem { file: self.file.to_owned(), flag: self.flag, content, source }
    }
}

fn file_state(metadata: &Metadata) -> FileState {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    [
        metadata.dev().into(),
        metadata.ino().into(),
        metadata.len().into(),
        nanos(metadata.mtime(), metadata.mtime_nsec()),
        nanos(metadata.ctime(), metadata.ctime_nsec()),
    ]
}

/// Times before 1970 become 1970.
fn system_time(time: ASN1Time) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or_default())
}
