//! `zarrd append`: appends an `.npz` file to the arrays of a group.

use std::{io::ErrorKind, path::Path};

use futures::StreamExt;
use serde_json::json;
use tokio_util::io::ReaderStream;
use zarrd_client::{AppendReport, NodeClient, Payload, StoreError, UploadError};

use crate::{
    config::{AppendConfig, OutputFormat},
    error::Error,
    signals::{HangUp, Signals},
    ui::Output,
};

/// The bytes of a file that are read at a time.
const PIECE: usize = 256 << 10;

/// Runs the command.
pub(super) async fn run(config: AppendConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    signals.unless_stopped(append(&config)).await
}

async fn append(config: &AppendConfig) -> Result<(), Error> {
    let mut builder = NodeClient::builder(config.server.clone());
    if let Some(token) = &config.token {
        builder = builder.token(token.clone());
    }
    let mut nodes = builder.build().map_err(Error::Client)?;
    if let Some(dialect) = config.dialect {
        nodes = nodes.with_dialect(dialect);
    }
    let content = content(&config.file).await?;
    let report = nodes.append(&config.group, &config.dimension, content, &config.options).await?;
    let mut output = Output::default();
    match config.format {
        OutputFormat::Text => output.line(text(config, &report))?,
        OutputFormat::Json => output.json(&json!({
            "dimension": report.dimension,
            "before": report.before,
            "after": report.after,
            "arrays": report.arrays,
        }))?,
    }
    Ok(output.finish()?)
}

/// The content of a file, which is read while it is sent.
async fn content(path: &Path) -> Result<Payload, Error> {
    let failed = |source| Error::ReadFile { file: path.to_owned(), source };
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let about = file.metadata().await.map_err(failed)?;
    if about.is_dir() {
        return Err(failed(ErrorKind::IsADirectory.into()));
    }
    // A pipe has no length before its end.
    let size = about.is_file().then_some(about.len());
    let stream = ReaderStream::with_capacity(file, PIECE);
    let stream = stream.map(|piece| piece.map_err(|error| StoreError::Upload(UploadError::Aborted(Box::new(error)))));
    Ok(Payload { size, ..Payload::from_stream(stream) })
}

fn text(config: &AppendConfig, report: &AppendReport) -> String {
    let AppendReport { dimension, before, after, arrays, .. } = report;
    let names: Vec<&str> = arrays.keys().map(String::as_str).collect();
    format!(
        "{} in {}: {dimension} has {after} elements, {} more",
        names.join(", "),
        config.group,
        after.saturating_sub(*before)
    )
}
