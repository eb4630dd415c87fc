//! Scans: listings of the keys that begin with any text.

use std::collections::BTreeSet;

use super::{
    Storage,
    tools::{key, put_names},
};
use zarrd_store::{Fold, ListableStore, Scan, Scanned};

const NAMES: [&str; 16] =
    [" ", "!", "a", "a!b", "a/b", "a/b/c", "a/b/d/e", "a/bc", "a0", "ab", "ab/c", "b/c/d", "b/c0", "ä/x", "ä/y/z", "~"];

/// The entries of a scan, from its definition.
fn expected(prefix: &str, after: &str, fold: Fold) -> Vec<String> {
    let entries = NAMES.iter().filter_map(|name| match name.strip_prefix(prefix)?.split_once('/') {
        Some((child, _)) if fold == Fold::Slash => Some(format!("{prefix}{child}/")),
        _ => Some((*name).to_owned()),
    });
    let is_after = |entry: &String| {
        // A text inside of a folded prefix skips it.
        entry.as_str() > after && !(fold == Fold::Slash && entry.ends_with('/') && after.starts_with(entry.as_str()))
    };
    entries.filter(is_after).collect::<BTreeSet<_>>().into_iter().collect()
}

async fn scanned(store: &impl ListableStore, prefix: &str, after: &str, fold: Fold, limit: usize) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), after.to_owned());
    loop {
        let page = store.scan(&Scan::new(prefix, after.as_str(), fold, limit)).await.unwrap();
        assert!(page.entries.len() <= limit.max(1) && (!page.more || page.entries.len() == limit.max(1)));
        found.extend(page.entries.iter().map(|entry| entry.as_str().to_owned()));
        match page.entries.last() {
            Some(last) if page.more => last.as_str().clone_into(&mut after),
            _ => return found,
        }
    }
}

pub(super) async fn scans_agree_with_their_definition(store: impl Storage) {
    put_names(&store, &NAMES).await;
    let texts = ["", " ", "!", "a", "a!", "a/", "a/b", "a/b/", "a/b/c", "ab", "b", "b/c", "ä/", "zz", "//", "\u{1}"];
    for prefix in texts {
        for after in texts.into_iter().chain(["a/b/d/f", "a/b/zz", "~", "\u{10ffff}", "a\u{0}"]) {
            for (fold, limit) in [(Fold::Nothing, 1), (Fold::Slash, 1), (Fold::Nothing, 3), (Fold::Slash, 1000)] {
                let found = scanned(&store, prefix, after, fold, limit).await;
                assert_eq!(found, expected(prefix, after, fold), "{prefix:?} after {after:?}, {fold:?}");
            }
        }
    }
    let page = store.scan(&Scan::new("a/bc", "", Fold::Nothing, 1)).await.unwrap();
    let [Scanned::Key(entry)] = &page.entries[..] else { panic!("{page:?}") };
    assert_eq!(Some(&entry.meta), store.head(&key("a/bc")).await.unwrap().as_ref());
}
