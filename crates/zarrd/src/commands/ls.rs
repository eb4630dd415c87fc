//! `zarrd ls`: lists the nodes directly below a group.

use futures::{StreamExt, TryFutureExt, TryStreamExt, stream};
use zarrd_client::{NodeInfo, NodePath, zom};

use super::child_path;
use crate::{
    config::{Detail, NodeConfig, OutputFormat},
    error::Error,
    hierarchy::{Hierarchy, NodeKind, NodeReadError, NodeSummary, columns, escape_control, tuple},
    signals::{HangUp, Signals},
    ui::Output,
};

/// Maximum number of concurrent requests for nodes of other dialects.
const MAX_CONCURRENT_REQUESTS: usize = 8;

/// Runs the command.
pub(super) async fn run(config: NodeConfig, detail: Detail) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    let hierarchy = signals.finish(Hierarchy::open(&config.endpoint)).await?;
    let result = signals.unless_stopped(list(&hierarchy, &config, detail)).await;
    result.and(signals.finish(hierarchy.close().err_into()).await)
}

async fn list(hierarchy: &Hierarchy, config: &NodeConfig, detail: Detail) -> Result<(), Error> {
    let (mut nodes, mut cursor) = (Vec::new(), None);
    loop {
        let (page, next) = match hierarchy.members(&config.path, config.dialect, cursor).await {
            Err(error) if error.is_denied() => {
                nodes = granted(hierarchy, config, error).await?;
                break;
            }
            members => members?,
        };
        nodes.extend(summaries(hierarchy, page).await?);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    nodes.sort_by(|a, b| a.path.cmp(&b.path));
    let mut output = Output::default();
    match config.format {
        OutputFormat::Json => nodes.iter().try_for_each(|node| output.json(node))?,
        OutputFormat::Text => {
            let mut rows: Vec<Vec<String>> = nodes.iter().map(|node| row(node, detail)).collect();
            if detail == Detail::Long && !rows.is_empty() {
                rows.insert(0, ["name", "kind", "shape", "type", "dialect", "chunks", "codecs"].map(Into::into).into());
            }
            columns(&rows).iter().try_for_each(|line| output.line(line))?;
        }
    }
    Ok(output.finish()?)
}

/// The topmost nodes that the caller may read below a path that it may not. Fails with the error of that if there are none.
async fn granted(hierarchy: &Hierarchy, config: &NodeConfig, denied: NodeReadError) -> Result<Vec<NodeSummary>, Error> {
    // Who may list nothing is told what the node requires.
    let found = hierarchy.readable_below(&config.path, config.dialect).await;
    if found.is_empty() {
        return Err(denied.into());
    }
    let summary = |(path, node): (NodePath, Option<NodeInfo>)| match node {
        Some(node) => NodeSummary::new(&path, node.dialect, node.zom.format, &node.zom.root).granted(),
        None => NodeSummary::prefix(&path),
    };
    Ok(found.into_iter().map(summary).collect())
}

/// The members of a group, or an array itself.
async fn summaries(hierarchy: &Hierarchy, page: NodeInfo) -> Result<Vec<NodeSummary>, Error> {
    let NodeInfo { path, dialect, zom, other_dialects, broken, .. } = page;
    let zom::Node::Group(group) = &zom.root else {
        return Ok(vec![NodeSummary::new(&path, dialect, zom.format, &zom.root)]);
    };
    let members = group.members.iter().flatten();
    let mut summaries: Vec<NodeSummary> = members
        .map(|(name, node)| Ok(NodeSummary::new(&child_path(&path, name)?, dialect, zom.format, node)))
        .collect::<Result<_, Error>>()?;
    let others = stream::iter(other_dialects.into_iter().filter(|(child, _)| child.parent().as_ref() == Some(&path)));
    let others = others.map(|(child, dialect)| async move {
        match hierarchy.node(&child, Some(dialect), 0).await {
            Ok(node) => Ok(NodeSummary::new(&child, dialect, node.zom.format, &node.zom.root)),
            Err(error) => Ok::<_, Error>(NodeSummary::broken(error.into_broken(&child, dialect)?)),
        }
    });
    let others: Vec<NodeSummary> = others.buffered(MAX_CONCURRENT_REQUESTS).try_collect().await?;
    summaries.extend(others);
    summaries.extend(broken.into_iter().map(NodeSummary::broken));
    Ok(summaries)
}

fn row(node: &NodeSummary, detail: Detail) -> Vec<String> {
    let kind = match node.kind {
        NodeKind::Array => "array",
        NodeKind::Group => "group",
        NodeKind::Broken => "broken",
        NodeKind::Prefix => "prefix",
    };
    let mut row = vec![escape_control(&node.name()).into_owned(), kind.to_owned()];
    let array = node.array.as_ref();
    let shape = array.map(|array| tuple(&array.shape));
    let problem = || node.problem_text().map(|problem| escape_control(&problem).into_owned());
    row.push(shape.or_else(problem).unwrap_or_default());
    row.push(array.map(|array| escape_control(&array.data_type).into_owned()).unwrap_or_default());
    if detail == Detail::Long {
        row.push(node.dialect.to_owned());
        row.push(array.map(|array| array.chunking()).unwrap_or_default());
        row.push(array.map(|array| escape_control(&array.codecs.join(", ")).into_owned()).unwrap_or_default());
    }
    row
}
