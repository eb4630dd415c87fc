//! Starting with many keys: after a clean stop, and after a crash.

use store_local::IndexKind;

use crate::{
    common::{peers::Zarrd, spread},
    list::fill,
};

pub(crate) fn run(index: IndexKind, keys: u64) {
    let scratch = tempfile::tempdir().expect("a directory");
    let dir = scratch.path().join("store");
    fill(index, &dir, keys);
    let (mut clean, mut crashed) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let zarrd = Zarrd::start(index, &dir);
        clean.push(zarrd.started_in.as_secs_f64());
        // Dropping it kills it.
        drop(zarrd);
        let zarrd = Zarrd::start(index, &dir);
        crashed.push(zarrd.started_in.as_secs_f64());
        zarrd.stop();
    }
    println!("start with {keys} keys ({index}), after a stop:  {} s", spread(&clean));
    println!("start with {keys} keys ({index}), after a crash: {} s", spread(&crashed));
}
