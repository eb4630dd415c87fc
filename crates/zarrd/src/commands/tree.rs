//! `zarrd tree`: shows all nodes below a group.

use std::{collections::BTreeMap, num::NonZeroU32};

use futures::TryFutureExt;
use zarrd_client::{BrokenNode, Dialect, NodeInfo, NodePath, zom};

use super::child_path;
use crate::{
    config::{NodeConfig, OutputFormat},
    error::Error,
    hierarchy::{Hierarchy, NodeKind, NodeReadError, NodeSummary, escape_control, quantity, tuple},
    signals::{HangUp, Signals},
    ui::Output,
};

/// Number of levels that are requested at a time. The depth of JSON that can be parsed is limited to a multiple of it.
const LEVELS_PER_REQUEST: u32 = 32;

/// Runs the command.
pub(super) async fn run(config: NodeConfig, depth: Option<u32>) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    let hierarchy = signals.finish(Hierarchy::open(&config.endpoint)).await?;
    let result = signals.unless_stopped(TreePrinter::new(&hierarchy, config.format).run(&config, depth)).await;
    result.and(signals.finish(hierarchy.close().err_into()).await)
}

/// A node to be printed.
struct TreeNode {
    path: NodePath,
    /// Lines of the tree before the name of the node.
    prefix: String,
    /// Lines of the tree before those of its children.
    child_prefix: String,
    /// Dialect of the parent group; `None` for the top node.
    parent_dialect: Option<Dialect>,
    /// Dialect of the node, if it is restricted to one.
    dialect: Option<Dialect>,
    /// The node, if it was loaded with an ancestor.
    node: Option<LoadedNode>,
    /// Number of levels below the node to be printed; `None` for all.
    levels: Option<NonZeroU32>,
    /// True if the children are to be printed.
    shows_members: bool,
}

/// A node that was loaded.
enum LoadedNode {
    Node(Dialect, zom::ZomFormat, zom::Node),
    Broken(BrokenNode),
}

/// Prints a hierarchy in depth-first order. Only loaded nodes that have not been printed are in memory.
struct TreePrinter<'a> {
    hierarchy: &'a Hierarchy,
    format: OutputFormat,
    output: Output,
    /// Nodes of other dialects, by parent group.
    other_dialects: BTreeMap<NodePath, Vec<(NodePath, Dialect)>>,
    /// Broken nodes, by parent group.
    broken: BTreeMap<NodePath, Vec<BrokenNode>>,
    group_count: u64,
    array_count: u64,
    broken_count: u64,
}

impl<'a> TreePrinter<'a> {
    fn new(hierarchy: &'a Hierarchy, format: OutputFormat) -> Self {
        Self {
            hierarchy,
            format,
            output: Output::default(),
            other_dialects: BTreeMap::new(),
            broken: BTreeMap::new(),
            group_count: 0,
            array_count: 0,
            broken_count: 0,
        }
    }

    async fn run(mut self, config: &NodeConfig, depth: Option<u32>) -> Result<(), Error> {
        let top = TreeNode {
            path: config.path.clone(),
            prefix: String::new(),
            child_prefix: String::new(),
            parent_dialect: None,
            dialect: config.dialect,
            node: None,
            levels: depth.and_then(NonZeroU32::new),
            shows_members: depth != Some(0),
        };
        // A stack instead of recursion, since the depth of a hierarchy is not limited.
        let mut stack = match self.hierarchy.node(&config.path, config.dialect, 0).await {
            Err(error) if error.is_denied() => self.granted(top, error).await?,
            _ => vec![top],
        };
        while let Some(node) = stack.pop() {
            let mut children = self.print_node(node).await?;
            children.reverse();
            stack.append(&mut children);
        }
        if self.format == OutputFormat::Text {
            let (groups, arrays) = (quantity(self.group_count, "group"), quantity(self.array_count, "array"));
            self.output.line("")?;
            let broken = if self.broken_count == 0 { String::new() } else { format!(", {} broken", self.broken_count) };
            self.output.line(format_args!("{groups}, {arrays}{broken}"))?;
        }
        Ok(self.output.finish()?)
    }

    /// The topmost nodes that the caller may read below a node that it may not, in reverse order. Fails with the error of
    /// that if there are none.
    async fn granted(&mut self, top: TreeNode, denied: NodeReadError) -> Result<Vec<TreeNode>, Error> {
        // Who may list nothing is told what the node requires.
        let found = self.hierarchy.readable_below(&top.path, top.dialect).await;
        if found.is_empty() {
            return Err(denied.into());
        }
        let mut nodes = Vec::new();
        for (path, node) in found {
            match node {
                Some(node) => nodes.push(TreeNode {
                    path,
                    prefix: String::new(),
                    child_prefix: String::new(),
                    parent_dialect: None,
                    dialect: Some(node.dialect),
                    node: None,
                    levels: top.levels,
                    shows_members: top.shows_members,
                }),
                None => self.print_line(&NodeSummary::prefix(&path), "", None)?,
            }
        }
        nodes.reverse();
        Ok(nodes)
    }

    /// Prints a node, and returns its children in order.
    async fn print_node(&mut self, node: TreeNode) -> Result<Vec<TreeNode>, Error> {
        let TreeNode { path, prefix, child_prefix, parent_dialect, dialect, node, levels, shows_members } = node;
        let loaded = match node {
            Some(loaded) if !(shows_members && loaded.lacks_members()) => loaded,
            loaded => {
                let dialect = loaded.and_then(|loaded| loaded.dialect()).or(dialect);
                let depth = levels.map_or(LEVELS_PER_REQUEST, |levels| levels.get().min(LEVELS_PER_REQUEST));
                let depth = if shows_members { depth } else { 0 };
                self.load(&path, dialect, depth, parent_dialect).await?
            }
        };
        let (dialect, format, node) = match loaded {
            LoadedNode::Node(dialect, format, node) => (dialect, format, node),
            LoadedNode::Broken(node) => {
                self.print_line(&NodeSummary::broken(node), &prefix, parent_dialect)?;
                return Ok(Vec::new());
            }
        };
        self.print_line(&NodeSummary::new(&path, dialect, format, &node), &prefix, parent_dialect)?;
        let zom::Node::Group(group) = node else { return Ok(Vec::new()) };
        let mut children: BTreeMap<NodePath, TreeNode> = BTreeMap::new();
        if !shows_members {
            return Ok(Vec::new());
        }
        let child = |path: NodePath, own, node| TreeNode {
            path,
            prefix: String::new(),
            child_prefix: String::new(),
            parent_dialect: Some(dialect),
            dialect: Some(own),
            node,
            levels: levels.and_then(|levels| NonZeroU32::new(levels.get() - 1)),
            shows_members: levels.is_none_or(|levels| levels.get() > 1),
        };
        for (name, node) in group.members.into_iter().flatten() {
            let path = child_path(&path, &name)?;
            children.insert(path.clone(), child(path, dialect, Some(LoadedNode::Node(dialect, format, node))));
        }
        for (path, own) in self.other_dialects.remove(&path).unwrap_or_default() {
            children.entry(path.clone()).or_insert_with(|| child(path, own, None));
        }
        for node in self.broken.remove(&path).unwrap_or_default() {
            children.insert(node.path.clone(), child(node.path.clone(), node.dialect, Some(LoadedNode::Broken(node))));
        }
        let last = children.len().saturating_sub(1);
        let children = children.into_values().enumerate().map(|(number, child)| {
            let (own, below) = if number == last { ("└── ", "    ") } else { ("├── ", "│   ") };
            TreeNode { prefix: format!("{child_prefix}{own}"), child_prefix: format!("{child_prefix}{below}"), ..child }
        });
        Ok(children.collect())
    }

    /// Loads a node with its descendants down to a depth. A node within a group becomes a broken node if it cannot be
    /// read.
    async fn load(
        &mut self,
        path: &NodePath,
        dialect: Option<Dialect>,
        depth: u32,
        parent_dialect: Option<Dialect>,
    ) -> Result<LoadedNode, Error> {
        let result = match self.hierarchy.node(path, dialect, depth).await {
            // The child groups are then loaded one by one.
            Err(NodeReadError::TooManyNodes { .. }) if depth > 1 => self.hierarchy.node(path, dialect, 1).await,
            result => result,
        };
        let node = match (result, dialect.filter(|_| parent_dialect.is_some())) {
            (Err(error), Some(dialect)) => return Ok(LoadedNode::Broken(error.into_broken(path, dialect)?)),
            (result, _) => result?,
        };
        let NodeInfo { dialect, zom, other_dialects, broken, .. } = node;
        for (child, dialect) in other_dialects {
            if let Some(parent) = child.parent() {
                self.other_dialects.entry(parent).or_default().push((child, dialect));
            }
        }
        for node in broken {
            if let Some(parent) = node.path.parent() {
                self.broken.entry(parent).or_default().push(node);
            }
        }
        Ok(LoadedNode::Node(dialect, zom.format, zom.root))
    }

    fn print_line(&mut self, node: &NodeSummary, prefix: &str, parent_dialect: Option<Dialect>) -> Result<(), Error> {
        match node.kind {
            NodeKind::Array => self.array_count += 1,
            NodeKind::Group => self.group_count += 1,
            NodeKind::Broken => self.broken_count += 1,
            NodeKind::Prefix => {}
        }
        if self.format == OutputFormat::Json {
            return Ok(self.output.json(node)?);
        }
        let name = if parent_dialect.is_none() { node.path.clone() } else { node.name() };
        let array = node.array.as_ref().map(|array| format!("  {} {}", tuple(&array.shape), array.data_type));
        let problem = node.problem_text().map(|problem| format!("  {problem}"));
        let same_dialect =
            node.kind == NodeKind::Prefix || parent_dialect.is_some_and(|parent| parent.name() == node.dialect);
        let dialect = if same_dialect { String::new() } else { format!("  [{}]", node.dialect) };
        let text = format!("{name}{}{dialect}", array.or(problem).unwrap_or_default());
        Ok(self.output.line(format_args!("{prefix}{}", escape_control(&text)))?)
    }
}

impl LoadedNode {
    fn dialect(&self) -> Option<Dialect> {
        match self {
            Self::Node(dialect, ..) => Some(*dialect),
            Self::Broken(_) => None,
        }
    }

    /// True for a group that was loaded without its members.
    fn lacks_members(&self) -> bool {
        matches!(self, Self::Node(.., zom::Node::Group(zom::Group { members: None, .. })))
    }
}
