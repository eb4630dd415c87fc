//! `zarrd get`: reads elements of an array, and what can be computed of them.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
};

use futures::{TryFutureExt, TryStreamExt};
use zarrd_client::Format;

use crate::{
    config::GetConfig,
    elements::{ElementAnswer, ElementBytes, ElementSource, WriteElementsError},
    error::Error,
    signals::{HangUp, Signals},
    ui,
};

/// Runs the command.
pub(super) async fn run(config: GetConfig) -> Result<(), Error> {
    if config.output.is_none() && is_binary(config.format) && io::stdout().is_terminal() {
        return Err(WriteElementsError::Terminal(config.format).into());
    }
    let mut signals = Signals::install(HangUp::Stop)?;
    let source = signals.finish(ElementSource::open(&config.endpoint)).await?;
    let result = signals.unless_stopped(get(&source, &config)).await;
    result.and(signals.finish(source.close().err_into()).await)
}

async fn get(source: &ElementSource, config: &GetConfig) -> Result<(), Error> {
    let elements = source.read(&config.path, &config.query, config.format).await?;
    if io::stderr().is_terminal() {
        notes(&elements).iter().for_each(ui::note);
    }
    match &config.output {
        Some(file) => write_file(elements.bytes, file).await,
        None => write_stdout(elements.bytes, config.format).await,
    }
}

/// What a reader of the elements might not expect.
fn notes(elements: &ElementAnswer) -> Vec<String> {
    let undecoded = elements.is_undecoded.then(|| {
        "the numbers are as they are stored, packed or with values that mean missing; --decode cf decodes them"
            .to_owned()
    });
    let rows = elements.northward_rows.as_ref();
    let rows = rows.map(|name| format!("the picture has the south at the top; --isel {name}=::-1 turns it"));
    undecoded.into_iter().chain(rows).collect()
}

/// Writes a file, which appears once it is complete.
async fn write_file(mut elements: ElementBytes, file: &Path) -> Result<(), Error> {
    let failed = |source| WriteElementsError::File { file: file.to_owned(), source };
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A file that only this user may read would surprise the others.
    let mut builder = tempfile::Builder::new();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let mut partial = builder.permissions(permissions).tempfile_in(directory).map_err(failed)?;
    while let Some(bytes) = elements.try_next().await? {
        partial.write_all(&bytes).map_err(failed)?;
    }
    partial.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

async fn write_stdout(mut elements: ElementBytes, format: Format) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    let failed = |source| Error::Output(ui::OutputError::of(source));
    while let Some(bytes) = elements.try_next().await? {
        stdout.write_all(&bytes).map_err(failed)?;
    }
    if matches!(format, Format::Json | Format::Xarray) {
        stdout.write_all(b"\n").map_err(failed)?;
    }
    stdout.flush().map_err(failed)
}

fn is_binary(format: Format) -> bool {
    matches!(format, Format::Raw | Format::Npy | Format::Png)
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};

    use super::*;

    #[test]
    fn notes_name_the_options_that_help() {
        let answer = |is_undecoded, rows: Option<&str>| ElementAnswer {
            is_undecoded,
            northward_rows: rows.map(str::to_owned),
            bytes: stream::empty().boxed(),
        };
        assert_eq!(notes(&answer(false, None)), Vec::<String>::new());
        let notes = notes(&answer(true, Some("lat")));
        assert!(notes[0].contains("--decode cf") && notes[1].contains("--isel lat=::-1"), "{notes:?}");
    }
}
