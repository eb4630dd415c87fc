//! Implicit groups: groups without documents, whose dialect is that of the nodes below them.

use zarrd_meta::{Dialect, NodePath};
use zarrd_store::Prefix;

use super::{
    documents::Check,
    scan::Purpose,
    walker::{BATCH, RESERVED, Walker, paths},
};
use crate::{metadata::error::NodeError, node::keys::node_prefix};

/// The growth of the batches of a probe.
const GROWTH: usize = 16;

/// Paths that a probe looks up together.
pub(crate) struct Batch<'p> {
    pub(crate) paths: &'p [NodePath],
    /// True if a node that was found by then decides, whatever its dialect.
    pub(crate) is_last: bool,
}

/// True if no other node changes what a probe has found.
pub(crate) fn is_preferred(found: Dialect, wanted: Option<Dialect>) -> bool {
    wanted.is_some() || found == Dialect::V3
}

impl Walker<'_> {
    /// The dialect of the implicit group at a path; `None` if there are no nodes below it.
    pub(crate) async fn implied(
        &mut self,
        path: &NodePath,
        dialect: Option<Dialect>,
    ) -> Result<Option<Dialect>, NodeError> {
        let own = node_prefix(path)?;
        let ancestors: Vec<NodePath> = path.ancestors().collect();
        for (ancestor, documents) in ancestors.iter().zip(self.reader.documents(&ancestors, Check::Syntax).await?) {
            let first = path.relative_to(ancestor).and_then(|below| below.split('/').next());
            let reserved = documents.has_entry() && first.is_some_and(|first| RESERVED.contains(&first));
            if documents.has_array() || reserved {
                return Ok(None);
            }
        }
        if dialect == Some(Dialect::Draft) {
            return Ok(None);
        }
        let reserved = if self.entry_point_at(path).await? { RESERVED } else { &[] };
        let mut found = match self.window {
            Some(_) => self.probe_pages(&own, dialect, reserved).await?,
            None => None,
        };
        if found.is_none() {
            found = self.probe(&own, dialect, reserved, self.purpose_at(0)).await?;
        }
        Ok(match path.is_root() {
            // The root is a group, whatever is below it.
            true => Some(found.or(dialect).unwrap_or(Dialect::V3)),
            false => found,
        })
    }

    /// The dialect of the first node below a prefix; of `wanted` if that is given. Among nodes directly below one
    /// prefix the preferred dialect counts, and broken ones only if there are no others.
    pub(crate) async fn probe(
        &mut self,
        prefix: &Prefix,
        wanted: Option<Dialect>,
        reserved: &[&str],
        mut purpose: Purpose,
    ) -> Result<Option<Dialect>, NodeError> {
        let top = prefix;
        if let Some(dialect) = self.probed.get(top).filter(|_| wanted.is_none()) {
            return Ok(Some(*dialect));
        }
        let is_wanted = |found: &Dialect| wanted.is_none_or(|wanted| wanted == *found);
        let mut broken = None;
        let mut open = vec![(prefix.clone(), reserved.to_vec())];
        while let Some((prefix, reserved)) = open.pop() {
            let names = self.reader.list(&prefix, std::mem::replace(&mut purpose, Purpose::FirstNode)).await?.prefixes;
            let paths = paths(prefix.as_str(), &names, &reserved);
            let mut deeper = Vec::new();
            let (mut best, mut is_scanned) = (None, false);
            for Batch { paths, is_last } in self.batches(&paths) {
                for (path, documents) in paths.iter().zip(self.reader.documents(paths, Check::Model).await?) {
                    best = best.into_iter().chain(documents.readable().filter(is_wanted)).min();
                    if documents.broken(path).is_some() {
                        let found = documents.dialects().into_iter().find(is_wanted);
                        broken = broken.or(found.map(|found| (prefix.clone(), found)));
                        continue;
                    }
                    if !documents.has_array()
                        && let Ok(below) = Prefix::parse(&path.key_prefix())
                    {
                        let reserved = if documents.has_entry() { RESERVED.to_vec() } else { Vec::new() };
                        deeper.push((below, reserved));
                    }
                }
                if let Some(found) = best.filter(|best| is_last || is_preferred(*best, wanted)) {
                    self.probe_cached(top, &prefix, found, wanted);
                    return Ok(best);
                }
                if best.is_some() && !std::mem::replace(&mut is_scanned, true) {
                    self.reader.scan_many(&prefix).await?;
                }
            }
            open.extend(deeper.into_iter().rev());
        }
        let Some((last, found)) = broken else { return Ok(None) };
        self.probe_cached(top, &last, found, wanted);
        Ok(Some(found))
    }

    /// The paths that a probe looks up together. Of a near store these are few at first, since the first node of the
    /// preferred dialect decides, and one path takes several calls; of a distant one each batch is a round trip.
    pub(crate) fn batches<'p>(&self, paths: &'p [NodePath]) -> Vec<Batch<'p>> {
        let mut size = if self.reader.near { 1 } else { BATCH };
        let mut batches = Vec::new();
        for whole in paths.chunks(BATCH) {
            let mut rest = whole;
            while !rest.is_empty() {
                let (paths, after) = rest.split_at(size.min(rest.len()));
                batches.push(Batch { paths, is_last: after.is_empty() });
                rest = after;
                size = size.saturating_mul(GROWTH).min(BATCH);
            }
        }
        batches
    }

    /// Caches the result for all prefixes between `top` and the one with the first node.
    fn probe_cached(&mut self, top: &Prefix, last: &Prefix, found: Dialect, wanted: Option<Dialect>) {
        let below = last.as_str().strip_prefix(top.as_str()).filter(|_| wanted.is_none());
        let mut at = top.as_str().to_owned();
        for segment in below.into_iter().flat_map(|below| below.split_terminator('/')) {
            at.push_str(segment);
            at.push('/');
            if let Ok(prefix) = Prefix::parse(&at) {
                self.probed.insert(prefix, found);
            }
        }
    }
}
