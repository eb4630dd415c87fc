//! The states of listings: equal only if nothing was changed in between.

use std::{fs, os::unix::fs::symlink, time::Duration};

use zarrd_store::{ListableStore, ListingState, PageRequest, Prefix};

use crate::common::{Fixture, overwrite, replace};

/// Longer than the time for which what has changed has no state.
const QUIET: Duration = Duration::from_millis(2_100);

/// A change of a directory.
type Change = fn(&Fixture);

async fn state(fixture: &Fixture, prefix: &str) -> Option<ListingState> {
    let prefix = Prefix::parse(prefix).unwrap();
    fixture.store.list_prefix(&prefix, PageRequest::first(100)).await.unwrap().state
}

#[tokio::test]
async fn states_are_equal_until_something_changes() {
    let fixture = Fixture::new().await;
    fixture.write_names(&["g/a/.zarray", "g/a/0", "g/b/.zarray", "h/c"]);
    assert_eq!(state(&fixture, "g/").await, None, "what has just changed may change again within a tick");
    tokio::time::sleep(QUIET).await;
    let mut before = state(&fixture, "g/").await.unwrap();
    assert_eq!(state(&fixture, "g/").await, Some(before));
    fixture.write("h/d", "elsewhere");
    assert_eq!(state(&fixture, "g/").await, Some(before));
    let changes: [(&str, Change); 6] = [
        ("a new file", |fixture| fixture.write("g/b/0", "0")),
        ("a removed file", |fixture| fs::remove_file(fixture.path("g/b/0")).unwrap()),
        ("a replaced file", |fixture| replace(&fixture.path("g/a/0"), b"g/a/1")),
        ("a file written in place", |fixture| overwrite(&fixture.path("g/a/0"), b"g/a/2")),
        ("a new directory", |fixture| fs::create_dir(fixture.path("g/c")).unwrap()),
        ("another name", |fixture| fs::rename(fixture.path("g/c"), fixture.path("g/e")).unwrap()),
    ];
    for (change, make) in changes {
        make(&fixture);
        assert_eq!(state(&fixture, "g/").await, None, "{change}");
        tokio::time::sleep(QUIET).await;
        let after = state(&fixture, "g/").await;
        assert!(after.is_some_and(|after| after != before), "{change}");
        before = after.unwrap();
    }
}

/// What a link leads to changes without the directory of the link.
#[tokio::test]
async fn listings_with_links_have_no_state() {
    let fixture = Fixture::new().await;
    fixture.write_names(&["g/a", "other/b"]);
    symlink("../other", fixture.path("g/link")).unwrap();
    tokio::time::sleep(QUIET).await;
    assert_eq!(fixture.keys("g/", 10).await, ["g/a", "g/link/b"]);
    assert_eq!(state(&fixture, "g/").await, None);
    assert!(state(&fixture, "other/").await.is_some());
    assert_eq!(state(&fixture, "missing/").await, None);
}
