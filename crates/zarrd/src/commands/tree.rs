//! `zarrd tree`: all that is below a node.

use std::{collections::BTreeMap, num::NonZeroU32};

use client::{BrokenNode, Dialect, NodeInfo, NodePath, zom};

use super::below;
use crate::{
    config::{LookConfig, OutputForm},
    exit::Failure,
    hierarchy::{Card, Hierarchy, Kind, LookError, counted, shown, tuple},
    signals::{HangUp, Signals},
    ui::Output,
};

/// How many levels are asked for at a time: JSON that is nested deeper than a multiple of this is not read.
const SPAN: u32 = 32;

/// Shows.
pub(super) async fn run(config: LookConfig, depth: Option<u32>) -> Result<(), Failure> {
    let mut signals = Signals::install(HangUp::Stops)?;
    let hierarchy = signals.finish(Hierarchy::open(&config.place)).await?;
    let result = signals.unless_stopped(Walk::new(&hierarchy, config.form).run(&config, depth)).await;
    result.and(signals.finish(hierarchy.close()).await)
}

/// A node that is to be shown.
struct Branch {
    path: NodePath,
    /// What stands before its name.
    stem: String,
    /// What stands before the names of those below it, beside their own stems.
    indent: String,
    /// The dialect of the group that it is in.
    around: Option<Dialect>,
    /// Its own, where only a node of that is meant.
    dialect: Option<Dialect>,
    /// What it is, where that was told with a node above.
    node: Option<Told>,
    /// How many levels below it are shown; `None` for all.
    levels: Option<NonZeroU32>,
    /// Whether what is below it is shown.
    shows_members: bool,
}

/// What is known of a node.
enum Told {
    Node(Dialect, zom::ZomFormat, zom::Node),
    Broken(BrokenNode),
}

/// A walk through a hierarchy, from which nothing is kept but what was asked for and not shown yet.
struct Walk<'a> {
    hierarchy: &'a Hierarchy,
    form: OutputForm,
    output: Output,
    /// Nodes of other dialects, by the group that they are in.
    others: BTreeMap<NodePath, Vec<(NodePath, Dialect)>>,
    /// Broken nodes, by the group that they are in.
    broken: BTreeMap<NodePath, Vec<BrokenNode>>,
    groups: u64,
    arrays: u64,
    unread: u64,
}

impl<'a> Walk<'a> {
    fn new(hierarchy: &'a Hierarchy, form: OutputForm) -> Self {
        let (output, others, broken) = (Output::default(), BTreeMap::new(), BTreeMap::new());
        Self { hierarchy, form, output, others, broken, groups: 0, arrays: 0, unread: 0 }
    }

    async fn run(mut self, config: &LookConfig, depth: Option<u32>) -> Result<(), Failure> {
        let top = Branch {
            path: config.path.clone(),
            stem: String::new(),
            indent: String::new(),
            around: None,
            dialect: config.dialect,
            node: None,
            levels: depth.and_then(NonZeroU32::new),
            shows_members: depth != Some(0),
        };
        // Not by recursion, since a stranger decides how deep a hierarchy is.
        let mut open = vec![top];
        while let Some(branch) = open.pop() {
            let mut below = self.show(branch).await?;
            below.reverse();
            open.append(&mut below);
        }
        if self.form == OutputForm::Text {
            let (groups, arrays) = (counted(self.groups, "group"), counted(self.arrays, "array"));
            self.output.line("")?;
            let unread = if self.unread == 0 { String::new() } else { format!(", {} broken", self.unread) };
            self.output.line(format_args!("{groups}, {arrays}{unread}"))?;
        }
        self.output.finish()
    }

    /// Shows a node, and yields those below it in order.
    async fn show(&mut self, branch: Branch) -> Result<Vec<Branch>, Failure> {
        let Branch { path, stem, indent, around, dialect, node, levels, shows_members } = branch;
        let told = match node {
            Some(told) if !told.is_unexplored(shows_members) => told,
            told => {
                let dialect = told.and_then(|told| told.dialect()).or(dialect);
                let levels = if shows_members { levels.map_or(SPAN, |levels| levels.get().min(SPAN)) } else { 0 };
                self.explore(&path, dialect, levels, around).await?
            }
        };
        let (dialect, version, node) = match told {
            Told::Node(dialect, version, node) => (dialect, version, node),
            Told::Broken(node) => {
                self.line(&Card::broken(node), &stem, around)?;
                return Ok(Vec::new());
            }
        };
        self.line(&Card::of(&path, dialect, version, &node), &stem, around)?;
        let zom::Node::Group(group) = node else { return Ok(Vec::new()) };
        let mut children: BTreeMap<NodePath, Branch> = BTreeMap::new();
        if !shows_members {
            return Ok(Vec::new());
        }
        let child = |path: NodePath, own, node| Branch {
            path,
            stem: String::new(),
            indent: String::new(),
            around: Some(dialect),
            dialect: Some(own),
            node,
            levels: levels.and_then(|levels| NonZeroU32::new(levels.get() - 1)),
            shows_members: levels.is_none_or(|levels| levels.get() > 1),
        };
        for (name, node) in group.members.into_iter().flatten() {
            let path = below(&path, &name)?;
            children.insert(path.clone(), child(path, dialect, Some(Told::Node(dialect, version, node))));
        }
        for (path, own) in self.others.remove(&path).unwrap_or_default() {
            children.entry(path.clone()).or_insert_with(|| child(path, own, None));
        }
        for node in self.broken.remove(&path).unwrap_or_default() {
            children.insert(node.path.clone(), child(node.path.clone(), node.dialect, Some(Told::Broken(node))));
        }
        let last = children.len().saturating_sub(1);
        let drawn = children.into_values().enumerate().map(|(number, child)| {
            let (stem, more) = if number == last { ("└── ", "    ") } else { ("├── ", "│   ") };
            Branch { stem: format!("{indent}{stem}"), indent: format!("{indent}{more}"), ..child }
        });
        Ok(drawn.collect())
    }

    /// Asks for a node, with as many levels below it as are told at a time. One that is in a group is told as broken where it cannot be read.
    async fn explore(
        &mut self,
        path: &NodePath,
        dialect: Option<Dialect>,
        levels: u32,
        around: Option<Dialect>,
    ) -> Result<Told, Failure> {
        let found = match self.hierarchy.look(path, dialect, levels).await {
            // Then the groups directly below are asked for one by one.
            Err(LookError::TooMany { .. }) if levels > 1 => self.hierarchy.look(path, dialect, 1).await,
            found => found,
        };
        let found = match (found, dialect.filter(|_| around.is_some())) {
            (Err(error), Some(dialect)) => return Ok(Told::Broken(error.into_broken(path, dialect)?)),
            (found, _) => found?,
        };
        let NodeInfo { dialect, zom, other_dialects: other, broken, .. } = found;
        for (child, dialect) in other {
            if let Some(parent) = child.parent() {
                self.others.entry(parent).or_default().push((child, dialect));
            }
        }
        for node in broken {
            if let Some(parent) = node.path.parent() {
                self.broken.entry(parent).or_default().push(node);
            }
        }
        Ok(Told::Node(dialect, zom.format, zom.root))
    }

    fn line(&mut self, card: &Card, stem: &str, around: Option<Dialect>) -> Result<(), Failure> {
        match card.kind {
            Kind::Array => self.arrays += 1,
            Kind::Group => self.groups += 1,
            Kind::Broken => self.unread += 1,
        }
        if self.form == OutputForm::Json {
            return self.output.json(card);
        }
        let name = if around.is_none() { card.path.clone() } else { card.name() };
        let array = card.array.as_ref().map(|array| format!("  {} {}", tuple(&array.shape), array.data_type));
        let mark = card.mark().map(|mark| format!("  {mark}"));
        let is_usual = around.is_some_and(|around| around.name() == card.dialect);
        let dialect = if is_usual { String::new() } else { format!("  [{}]", card.dialect) };
        let text = format!("{name}{}{dialect}", array.or(mark).unwrap_or_default());
        self.output.line(format_args!("{stem}{}", shown(&text)))
    }
}

impl Told {
    fn dialect(&self) -> Option<Dialect> {
        match self {
            Self::Node(dialect, ..) => Some(*dialect),
            Self::Broken(_) => None,
        }
    }

    /// Whether a group's members are to be shown and were not told.
    fn is_unexplored(&self, shows_members: bool) -> bool {
        shows_members && matches!(self, Self::Node(.., zom::Node::Group(zom::Group { members: None, .. })))
    }
}
