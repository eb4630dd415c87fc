//! `zarrd stats`: shows statistics of the elements of an array.

use futures::TryFutureExt;
use serde_json::Value;

use crate::{
    config::{OutputFormat, StatsConfig},
    elements::ElementSource,
    error::Error,
    hierarchy::columns,
    signals::{HangUp, Signals},
    ui::Output,
};

/// Runs the command.
pub(super) async fn run(config: StatsConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    let source = signals.finish(ElementSource::open(&config.endpoint)).await?;
    let result = signals.unless_stopped(show(&source, &config)).await;
    result.and(signals.finish(source.close().err_into()).await)
}

async fn show(source: &ElementSource, config: &StatsConfig) -> Result<(), Error> {
    let stats = source.stats(&config.path, &config.query).await?;
    let mut output = Output::default();
    match config.format {
        OutputFormat::Json => output.json(&stats)?,
        OutputFormat::Text => {
            let mut rows = Vec::new();
            for name in ["count", "missing", "min", "max", "sum", "mean", "std"] {
                rows.push(vec![name.to_owned(), text(stats.get(name).unwrap_or(&Value::Null))]);
            }
            for quantile in stats.get("quantiles").and_then(Value::as_array).into_iter().flatten() {
                if let [quantile, value] = quantile.as_array().map_or(&[][..], Vec::as_slice) {
                    rows.push(vec![format!("quantile {quantile}"), text(value)]);
                }
            }
            columns(&rows).iter().try_for_each(|line| output.line(line))?;
            histogram(stats.get("histogram").unwrap_or(&Value::Null), &mut output)?;
        }
    }
    Ok(output.finish()?)
}

/// Writes the edges and the count of each bin.
fn histogram(histogram: &Value, output: &mut Output) -> Result<(), Error> {
    let list = |name: &str| histogram.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let (edges, counts) = (list("edges"), list("counts"));
    let bins = edges.iter().zip(edges.iter().skip(1)).zip(&counts);
    let rows: Vec<_> =
        bins.map(|((low, high), count)| vec![format!("{} to {}", text(low), text(high)), text(count)]).collect();
    if !rows.is_empty() {
        output.line("histogram")?;
        columns(&rows).iter().try_for_each(|line| output.line(format!("  {line}")))?;
    }
    Ok(())
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
