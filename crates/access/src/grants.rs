//! Lists of grants.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zarrd_store::{Key, Prefix};

use crate::{grant::Grant, right::Right};

/// The maximum number of grants in a list.
pub const MAX_GRANTS: usize = 64;

/// At most [`MAX_GRANTS`] grants, sorted by prefix, none of which is covered by another one.
///
/// Two lists are equal if they allow the same. Cloning one is cheap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Grant>", into = "Vec<Grant>")]
pub struct Grants(Arc<[Grant]>);

/// A list has more than [`MAX_GRANTS`] grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_GRANTS} grants")]
pub struct TooManyGrants;

impl Grants {
    /// Normalises at most [`MAX_GRANTS`] grants.
    pub fn new(grants: impl IntoIterator<Item = Grant>) -> Result<Self, TooManyGrants> {
        let mut given: Vec<Grant> = grants.into_iter().take(MAX_GRANTS + 1).collect();
        if given.len() > MAX_GRANTS {
            return Err(TooManyGrants);
        }
        // A prefix sorts before those below it, and the greatest right on it before the others.
        given.sort_by(|a, b| a.prefix.cmp(&b.prefix).then(b.right.cmp(&a.right)));
        let mut grants: Vec<Grant> = Vec::with_capacity(given.len());
        for grant in given {
            if !grants.iter().any(|other| other.covers(&grant)) {
                grants.push(grant);
            }
        }
        Ok(Self(grants.into()))
    }

    /// No rights at all.
    pub fn none() -> Self {
        Self(Arc::new([]))
    }

    /// A right on all keys.
    pub fn everything(right: Right) -> Self {
        Self::from(Grant::new(right, Prefix::root()))
    }

    /// True if there are no grants.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The grants, sorted by prefix.
    pub fn iter(&self) -> std::slice::Iter<'_, Grant> {
        self.0.iter()
    }

    /// True if the right is granted on all of the prefix.
    pub fn allow(&self, right: Right, prefix: &Prefix) -> bool {
        self.iter().any(|grant| grant.allows(right, prefix))
    }

    /// True if the right is granted on the key.
    pub fn allow_key(&self, right: Right, key: &Key) -> bool {
        self.iter().any(|grant| grant.allows_key(right, key))
    }

    /// True if the right is granted on some prefix.
    pub fn any(&self, right: Right) -> bool {
        self.iter().any(|grant| grant.right.includes(right))
    }

    /// True if these allow nothing that `outer` does not.
    pub fn is_within(&self, outer: &Self) -> bool {
        self.iter().all(|grant| outer.iter().any(|other| other.covers(grant)))
    }

    /// True if these have [`Right::Admin`] on every prefix of `other`, and so may create, list and revoke a token with
    /// them.
    pub fn administer(&self, other: &Self) -> bool {
        self.any(Right::Admin) && other.iter().all(|grant| self.allow(Right::Admin, &grant.prefix))
    }

    /// The direct child prefixes of a prefix that lead to a prefix on which the right is granted, sorted. They are what
    /// a listing of a prefix shows to someone who lacks the right on it. Empty if the right is granted on the prefix
    /// itself, since then nothing of it is hidden.
    pub fn children_towards(&self, right: Right, prefix: &Prefix) -> Vec<Prefix> {
        if self.allow(right, prefix) {
            return Vec::new();
        }
        let child = |grant: &Grant| {
            let rest = grant.prefix.as_str().strip_prefix(prefix.as_str())?;
            let (name, _) = rest.split_once('/')?;
            Prefix::parse(&format!("{prefix}{name}/")).ok()
        };
        let granted = self.iter().filter(|grant| grant.right.includes(right));
        // Grants are sorted, but a child may sort between its siblings' children, such as `a-b/` between `a/` and `a/b/`.
        let mut children: Vec<Prefix> = granted.filter_map(child).collect();
        children.sort();
        children.dedup();
        children
    }
}

impl From<Grant> for Grants {
    fn from(grant: Grant) -> Self {
        Self(Arc::new([grant]))
    }
}

impl TryFrom<Vec<Grant>> for Grants {
    type Error = TooManyGrants;

    fn try_from(grants: Vec<Grant>) -> Result<Self, TooManyGrants> {
        Self::new(grants)
    }
}

impl From<Grants> for Vec<Grant> {
    fn from(grants: Grants) -> Self {
        grants.0.to_vec()
    }
}

impl<'g> IntoIterator for &'g Grants {
    type Item = &'g Grant;
    type IntoIter = std::slice::Iter<'g, Grant>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    fn grants(texts: &[&str]) -> Grants {
        Grants::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
    }

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).unwrap()
    }

    /// Names whose order changes when `/` follows.
    const NAMES: [&str; 4] = ["a", "a-b", "ab", "b"];

    /// The segments of a prefix, at most three.
    fn segments() -> impl Strategy<Value = Vec<&'static str>> {
        vec(select(&NAMES[..]), 0..4)
    }

    fn joined(segments: &[&str]) -> Prefix {
        prefix(&segments.iter().map(|name| format!("{name}/")).collect::<String>())
    }

    fn lists() -> impl Strategy<Value = Vec<(Right, Vec<&'static str>)>> {
        vec((select(&Right::ALL[..]), segments()), 0..5)
    }

    fn built(list: &[(Right, Vec<&str>)]) -> Grants {
        Grants::new(list.iter().map(|(right, segments)| Grant::new(*right, joined(segments)))).unwrap()
    }

    /// The definition, on segments: a grant has the right, and its segments are the first of the others.
    fn allowed(list: &[(Right, Vec<&str>)], right: Right, segments: &[&str]) -> bool {
        list.iter().any(|(granted, above)| *granted >= right && segments.starts_with(above))
    }

    /// All prefixes of up to four segments: one more than grants have.
    fn universe() -> Vec<Vec<&'static str>> {
        let mut all = vec![Vec::new()];
        let mut level = all.clone();
        for _ in 0..4 {
            level = level.iter().flat_map(|above| NAMES.map(|name| [above.as_slice(), &[name]].concat())).collect();
            all.extend(level.iter().cloned());
        }
        all
    }

    proptest! {
        #[test]
        fn rights_are_those_of_the_definition(list in lists(), right in select(&Right::ALL[..]), at in segments()) {
            let grants = built(&list);
            prop_assert_eq!(grants.allow(right, &joined(&at)), allowed(&list, right, &at));
            let key = joined(&at).join("x").unwrap();
            prop_assert_eq!(grants.allow_key(right, &key), allowed(&list, right, &at));
            prop_assert_eq!(grants.any(right), universe().iter().any(|at| allowed(&list, right, at)));
        }

        #[test]
        fn key_named_like_a_prefix_is_outside_of_it(right in select(&Right::ALL[..]), at in vec(select(&NAMES[..]), 1..4)) {
            let grants = Grants::from(Grant::new(right, joined(&at)));
            prop_assert!(!grants.allow_key(right, &Key::parse(&at.join("/")).unwrap()));
        }

        #[test]
        fn inclusion_is_that_of_all_prefixes(inner in lists(), outer in lists()) {
            let is_allowed = |right, at: &Vec<&str>| !allowed(&inner, right, at) || allowed(&outer, right, at);
            let within = universe().iter().all(|at| Right::ALL.iter().all(|right| is_allowed(*right, at)));
            prop_assert_eq!(built(&inner).is_within(&built(&outer)), within);
            let read = |at: &Vec<&str>| !allowed(&inner, Right::Read, at) || allowed(&outer, Right::Admin, at);
            let administered = built(&outer).any(Right::Admin) && universe().iter().all(read);
            prop_assert_eq!(built(&outer).administer(&built(&inner)), administered);
        }

        #[test]
        fn equal_lists_are_those_that_allow_the_same(one in lists(), other in lists()) {
            let (one, other) = (built(&one), built(&other));
            prop_assert_eq!(one == other, one.is_within(&other) && other.is_within(&one));
            prop_assert_eq!(Grants::new(one.iter().rev().cloned()), Ok(one.clone()));
            let json = serde_json::to_string(&one).unwrap();
            prop_assert_eq!(serde_json::from_str::<Grants>(&json).unwrap(), one);
        }

        #[test]
        fn children_lead_to_all_that_is_granted(list in lists(), right in select(&Right::ALL[..]), at in segments()) {
            let below = |child: &Vec<&str>| universe().iter().any(|at| at.starts_with(child) && allowed(&list, right, at));
            let children = NAMES.iter().map(|name| [at.as_slice(), &[*name]].concat()).filter(below);
            let expected: BTreeSet<Prefix> = children.map(|child| joined(&child)).collect();
            let expected = if allowed(&list, right, &at) { BTreeSet::new() } else { expected };
            let found = built(&list).children_towards(right, &joined(&at));
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn covered_grants_are_dropped() {
        let list = grants(&["read:lab/exp1/", "write:lab/", "read:lab/", "admin:lab/exp2/", "write:lab/exp2/x/"]);
        let shown: Vec<String> = list.iter().map(Grant::to_string).collect();
        assert_eq!(shown, ["write:lab/", "admin:lab/exp2/"]);
    }

    #[test]
    fn lists_are_bounded() {
        let many = |count| (0..count).map(|number| Grant::new(Right::Read, prefix(&format!("p{number}/"))));
        assert_eq!(Grants::new(many(MAX_GRANTS)).unwrap().iter().count(), MAX_GRANTS);
        assert_eq!(Grants::new(many(MAX_GRANTS + 1)), Err(TooManyGrants));
        let json = serde_json::to_string(&many(MAX_GRANTS + 1).collect::<Vec<_>>()).unwrap();
        assert!(serde_json::from_str::<Grants>(&json).is_err());
    }

    #[test]
    fn nothing_is_granted_by_no_grants() {
        assert!(Grants::none().is_empty() && !Grants::none().any(Right::Read));
        assert!(!Grants::none().allow(Right::Read, &Prefix::root()));
        assert!(Grants::none().children_towards(Right::Read, &Prefix::root()).is_empty());
        assert!(!Grants::none().administer(&Grants::none()));
        assert!(Grants::everything(Right::Admin).administer(&Grants::everything(Right::Write)));
    }
}
