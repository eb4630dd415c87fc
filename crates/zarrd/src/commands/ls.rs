//! `zarrd ls`: what is directly below a node.

use client::{NodeInfo, zom};
use futures::{StreamExt, TryStreamExt, stream};

use super::below;
use crate::{
    config::{Detail, LookConfig, OutputForm},
    exit::Failure,
    hierarchy::{Card, Hierarchy, Kind, columns, shown, tuple},
    signals::{HangUp, Signals},
    ui::Output,
};

/// How many nodes of another dialect are asked for at the same time.
const AT_A_TIME: usize = 8;

/// Lists.
pub(super) async fn run(config: LookConfig, detail: Detail) -> Result<(), Failure> {
    let mut signals = Signals::install(HangUp::Stops)?;
    let hierarchy = signals.finish(Hierarchy::open(&config.place)).await?;
    let result = signals.unless_stopped(list(&hierarchy, &config, detail)).await;
    result.and(signals.finish(hierarchy.close()).await)
}

async fn list(hierarchy: &Hierarchy, config: &LookConfig, detail: Detail) -> Result<(), Failure> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let (found, next) = hierarchy.page(&config.path, config.dialect, cursor).await?;
        all.extend(cards(hierarchy, found).await?);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    let cards = all;
    let mut output = Output::default();
    match config.form {
        OutputForm::Json => cards.iter().try_for_each(|card| output.json(card))?,
        OutputForm::Text => {
            let mut rows: Vec<Vec<String>> = cards.iter().map(|card| row(card, detail)).collect();
            if detail == Detail::Long && !rows.is_empty() {
                rows.insert(0, ["name", "kind", "shape", "type", "dialect", "chunks", "codecs"].map(Into::into).into());
            }
            columns(&rows).iter().try_for_each(|line| output.line(line))?;
        }
    }
    output.finish()
}

/// Those below a group that were found; an array itself.
async fn cards(hierarchy: &Hierarchy, found: NodeInfo) -> Result<Vec<Card>, Failure> {
    let NodeInfo { path, dialect, zom, other_dialects: other, broken, .. } = found;
    let zom::Node::Group(group) = &zom.root else {
        return Ok(vec![Card::of(&path, dialect, zom.format, &zom.root)]);
    };
    let members = group.members.iter().flatten();
    let mut cards: Vec<Card> = members
        .map(|(name, node)| Ok(Card::of(&below(&path, name)?, dialect, zom.format, node)))
        .collect::<Result<_, Failure>>()?;
    let others = stream::iter(other.into_iter().filter(|(child, _)| child.parent().as_ref() == Some(&path)));
    let others = others.map(|(child, dialect)| async move {
        match hierarchy.look(&child, Some(dialect), 0).await {
            Ok(found) => Ok(Card::of(&child, dialect, found.zom.format, &found.zom.root)),
            Err(error) => Ok::<_, Failure>(Card::broken(error.into_broken(&child, dialect)?)),
        }
    });
    let others: Vec<Card> = others.buffered(AT_A_TIME).try_collect().await?;
    cards.extend(others);
    cards.extend(broken.into_iter().map(Card::broken));
    Ok(cards)
}

fn row(card: &Card, detail: Detail) -> Vec<String> {
    let kind = match card.kind {
        Kind::Array => "array",
        Kind::Group => "group",
        Kind::Broken => "broken",
    };
    let mut row = vec![shown(&card.name()).into_owned(), kind.to_owned()];
    let array = card.array.as_ref();
    let shape = array.map(|array| tuple(&array.shape));
    row.push(shape.or(card.mark().map(|mark| shown(&mark).into_owned())).unwrap_or_default());
    row.push(array.map(|array| shown(&array.data_type).into_owned()).unwrap_or_default());
    if detail == Detail::Long {
        row.push(card.dialect.to_owned());
        row.push(array.map(|array| array.chunking()).unwrap_or_default());
        row.push(array.map(|array| shown(&array.codecs.join(", ")).into_owned()).unwrap_or_default());
    }
    row
}
