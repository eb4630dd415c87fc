//! The configuration file `zarrd.toml`, over which flags and variables take precedence.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use super::{
    AccessOptions, ConfigError, Location, LogOptions, ServeOptions, StoreOptions, TransferOptions, WriteOptions,
};

/// Name of the default file, in the working directory.
const DEFAULT_FILE_NAME: &str = "zarrd.toml";

/// Directory of the default store.
const DEFAULT_DIRECTORY: &str = "./zarrd-data";

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Content of the configuration file. Its keys are the long names of flags, of all commands in one table.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    /// Path of the file; `None` if there is none.
    pub(crate) path: Option<PathBuf>,
    /// Options of the log.
    pub(crate) log: LogOptions,
    /// Location of the store.
    pub(crate) store: StoreOptions,
    /// Location of tokens.
    pub(crate) access: AccessOptions,
    /// Limits of a store that is written to.
    pub(crate) write: WriteOptions,
    /// Options of the server.
    pub(crate) serve: ServeOptions,
    /// Options of transfers.
    pub(crate) transfer: TransferOptions,
}

impl ConfigFile {
    /// Loads the given file, which must exist, or `zarrd.toml` in the working directory if it exists.
    pub(crate) fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let is_default = path.is_none();
        let path = path.unwrap_or(Path::new(DEFAULT_FILE_NAME));
        let text = match read(path) {
            Err(error) if is_default && error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read.map_err(|source| ConfigError::Read { file: path.to_owned(), source })?,
        };
        Self::parse(path, &text)
    }

    /// The location of the store: that of the flags, of this file, or the default.
    pub(crate) fn location(&self, flags: StoreOptions) -> Location {
        let location = flags.store.or_else(|| self.store.store.clone());
        location.unwrap_or_else(|| Location::Sled(DEFAULT_DIRECTORY.into()))
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let table: toml::Table = group(path, text)?;
        let known = known_keys();
        if let Some(unknown) = table.keys().find(|key| !known.contains(key)) {
            return Err(ConfigError::UnknownKey {
                file: path.to_owned(),
                key: unknown.clone(),
                known: known.join(", "),
            });
        }
        // Each group of options is parsed from the complete text, so that errors can refer to its lines.
        Ok(Self {
            path: Some(path.to_owned()),
            log: group(path, text)?,
            store: group(path, text)?,
            access: group(path, text)?,
            write: group(path, text)?,
            serve: group(path, text)?,
            transfer: group(path, text)?,
        })
    }
}

fn read(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {MAX_FILE_BYTES} bytes")));
    }
    fs::read_to_string(path)
}

fn group<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|source| ConfigError::Syntax { file: PathBuf::from(path), source: Box::new(source) })
}

/// The valid keys, derived from the flags so that they cannot differ.
fn known_keys() -> Vec<String> {
    let flags = clap::Command::new("zarrd");
    let flags = <LogOptions as clap::Args>::augment_args(flags);
    let flags = <StoreOptions as clap::Args>::augment_args(flags);
    let flags = <AccessOptions as clap::Args>::augment_args(flags);
    let flags = <WriteOptions as clap::Args>::augment_args(flags);
    let flags = <ServeOptions as clap::Args>::augment_args(flags);
    let flags = <TransferOptions as clap::Args>::augment_args(flags);
    let names = |flag: &clap::Arg| {
        flag.get_long().into_iter().chain(flag.get_all_aliases().unwrap_or_default()).map(str::to_owned).collect()
    };
    flags.get_arguments().flat_map::<Vec<_>, _>(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LogFormat;

    fn parse(text: &str) -> Result<ConfigFile, ConfigError> {
        ConfigFile::parse(Path::new("zarrd.toml"), text)
    }

    #[test]
    fn every_setting_is_read_from_the_file() {
        let file = parse(
            r#"
            log = "json"
            log-level = "debug"
            store = "redb:/data"
            access = "/access"
            listen = "0.0.0.0:80"
            mount = ["lab=dir:/lab", "web=https://h/a"]
            read-only = true
            anonymous = "read"
            tls-cert = "/tls/cert.pem"
            tls-key = "/tls/key.pem"
            allow-host = ["zarr.example.org"]
            cors-origin = ["https://viewer.example.org"]
            max-body = "64MiB"
            max-selection = "1GiB"
            max-text-selection = "1MiB"
            max-chunks = 1000
            max-memory = "256MiB"
            chunk-cache = "0"
            result-cache = "1MiB"
            disk-cache = "/var/cache/zarrd:50GiB"
            max-connections = 10
            header-timeout = "10s"
            upload-timeout = "20s"
            download-timeout = "1h"
            shutdown-timeout = "2m"
            jobs = 4
            commit-buffer = "32MiB"
            max-retained = "2GiB"
            snapshot-space = "5GiB"
            "#,
        )
        .unwrap();
        assert_eq!(file.log.log, Some(LogFormat::Json));
        assert_eq!(file.store.store, Some(Location::Redb("/data".into())));
        assert_eq!(file.access.access, Some("/access".into()));
        assert_eq!(file.serve.allow_host, ["zarr.example.org".parse().unwrap()]);
        assert_eq!(file.serve.mount, ["lab=dir:/lab", "web=https://h/a/"].map(|mount| mount.parse().unwrap()));
        assert_eq!(file.serve.read_only, Some(true));
        assert_eq!(file.serve.tls_cert, Some("/tls/cert.pem".into()));
        assert_eq!(file.serve.tls_key, Some("/tls/key.pem".into()));
        assert_eq!(file.serve.max_body, Some(bytesize::ByteSize::mib(64)));
        assert_eq!(file.serve.max_memory, Some(bytesize::ByteSize::mib(256)));
        assert_eq!(file.serve.chunk_cache, Some(bytesize::ByteSize(0)));
        assert_eq!(file.serve.result_cache, Some(bytesize::ByteSize::mib(1)));
        assert_eq!(file.serve.disk_cache, Some("/var/cache/zarrd:50GiB".parse().unwrap()));
        assert_eq!(file.serve.max_chunks.map(|chunks| chunks.get()), Some(1000));
        assert_eq!(file.serve.shutdown_timeout.map(|time| time.as_secs()), Some(120));
        assert_eq!(file.write.commit_buffer, Some(bytesize::ByteSize::mib(32)));
        assert_eq!(file.write.max_retained, Some(bytesize::ByteSize::gib(2)));
        assert_eq!(file.write.snapshot_space, Some(bytesize::ByteSize::gib(5)));
        assert_eq!(file.transfer.jobs.map(|jobs| jobs.get()), Some(4));
    }

    #[test]
    fn errors_name_the_key() {
        let message = parse("listen = \"127.0.0.1:1\"\nlisten-on = 5\n").unwrap_err().to_string();
        assert!(message.contains("`listen-on`") && message.contains("allow-host"), "{message}");
        for (text, part) in [
            ("max-body = \"12 parsecs\"", "max-body"),
            ("listen = \"nowhere\"", "IP:PORT"),
            ("disk-cache = \"/var/cache\"", "DIR:SIZE"),
            ("max-retained = 12", "max-retained"),
            ("jobs = 0", "jobs"),
            ("max-chunks = 0", "max-chunks"),
            ("cors-origin = [\"*\"]", "cors-origin"),
            ("mount = [\"a/b=dir:/data\"]", "without `/`"),
            ("store = ", "line 1"),
            ("[serve]\nlisten = \"127.0.0.1:1\"", "`serve`"),
        ] {
            let error = parse(text).unwrap_err();
            let message = crate::ui::error_chain(&error);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
