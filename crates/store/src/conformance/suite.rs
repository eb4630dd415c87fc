//! The checks of each capability, and how they are run.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt, future::LocalBoxFuture};
use tokio::runtime;

use super::{
    Factory, FaultInjection, Reopen, cancel, concurrency, faults, intents, key, list, model, paging, persistence,
    precondition, prefixes, range, read, snapshot, tools::panic_message, transaction, transaction_model, upload,
    watermark, write,
};
use crate::TransactionalStore;

/// How long one check may take. A store that never answers is told so.
const LIMIT: Duration = Duration::from_secs(180);

/// The checks of one capability, for the stores of one factory.
pub struct Suite<'f, F> {
    factory: &'f F,
    checks: Vec<Check<F>>,
}

struct Check<F> {
    name: &'static str,
    run: for<'f> fn(&'f F) -> LocalBoxFuture<'f, ()>,
}

impl<F> Suite<'_, F> {
    /// Runs all the checks, one after the other.
    ///
    /// # Panics
    ///
    /// Where a check fails, naming it.
    pub async fn run(&self) {
        for check in &self.checks {
            check.run(self.factory).await;
        }
    }

    /// Runs the check of this name in a runtime of its own.
    ///
    /// # Panics
    ///
    /// Where the check fails, naming it.
    pub fn test(&self, name: &str) {
        let check = self.checks.iter().find(|check| check.name == name);
        let check = check.unwrap_or_else(|| panic!("there is no conformance check {name}"));
        let runtime = runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
        runtime.expect("a runtime").block_on(check.run(self.factory));
    }
}

impl<F> Check<F> {
    async fn run(&self, factory: &F) {
        let name = self.name;
        match tokio::time::timeout(LIMIT, AssertUnwindSafe((self.run)(factory)).catch_unwind()).await {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => panic!("the conformance check {name} failed: {}", panic_message(&*cause)),
            Err(_) => panic!("the conformance check {name} did not come to an end within {LIMIT:?}"),
        }
    }
}

/// The one list of all checks by capability, which both the suites and the tests are made from. It is handed to the
/// macro `then`, after `with`. Before each check stands what it is given:
///
/// - `fresh`: a new store
/// - `pair`: two new stores
/// - `reopen`: the factory
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_checks {
    (readable_writeable_listable, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            fresh read::an_absent_key_has_no_value;
            fresh read::a_pure_prefix_has_no_value;
            fresh read::a_value_comes_with_what_is_known_of_it;
            fresh read::get_head_and_listings_agree;
            fresh read::the_time_is_that_of_the_set;
            fresh read::values_of_every_size_are_read_as_written;
            fresh read::a_value_of_64_mib_streams_in_and_out;
            fresh read::an_open_value_outlives_its_replacement;
            fresh read::an_open_value_outlives_its_erasure;
            fresh range::partial_values_as_in_the_specification;
            fresh range::ranges_and_their_edges;
            fresh range::ranges_of_an_empty_value;
            fresh range::ranges_across_blocks;
            fresh key::case_matters_as_in_the_specification;
            fresh key::a_key_and_a_prefix_may_share_a_name;
            fresh key::keys_at_the_limits_of_the_grammar;
            fresh key::similar_keys_are_different_keys;
            fresh write::a_set_replaces_the_whole_value;
            fresh write::every_set_gives_a_new_version;
            fresh write::a_reset_key_gets_a_new_version;
            fresh write::erase_tells_whether_there_was_a_value;
            fresh write::erase_prefix_erases_what_lies_below_and_counts_it;
            fresh write::erase_prefix_of_nothing_erases_nothing;
            fresh write::erase_prefix_of_the_root_erases_all;
            fresh write::a_new_store_takes_sets;
            fresh upload::content_may_come_in_any_pieces;
            fresh upload::content_that_breaks_off_changes_nothing;
            fresh upload::content_that_is_short_changes_nothing;
            fresh upload::content_that_is_long_changes_nothing;
            fresh precondition::all_forms_on_sets;
            fresh precondition::all_forms_on_erases;
            fresh precondition::a_version_of_another_key_does_not_match;
            fresh cancel::a_set_that_is_dropped_midway_changes_nothing;
            fresh cancel::a_set_that_is_dropped_anywhere_is_made_or_not_made;
            fresh cancel::an_erase_that_is_dropped_anywhere_is_made_or_not_made;
            fresh cancel::a_value_that_is_dropped_midway_harms_nothing;
            fresh list::an_empty_store_lists_as_empty;
            fresh list::list_prefix_as_in_the_specification;
            fresh list::list_dir_as_in_the_specification;
            fresh list::children_of_a_group_as_in_the_specification;
            fresh list::list_is_list_prefix_of_the_root;
            fresh list::listings_follow_sets_and_erases;
            fresh list::siblings_of_a_prefix_are_not_below_it;
            fresh list::listings_are_sorted_by_bytes;
            fresh list::children_are_in_joint_order;
            fresh list::a_deep_prefix_is_one_child;
            fresh list::walk_yields_every_key_once;
            fresh paging::pages_of_any_size_make_up_the_listing;
            fresh paging::a_page_of_zero_is_a_page_of_one;
            fresh paging::a_page_goes_on_where_its_last_key_was_erased;
            fresh paging::a_page_goes_on_where_its_last_prefix_was_erased;
            fresh paging::cursors_that_were_not_issued_are_refused;
            fresh paging::cursors_of_other_listings_are_refused;
            pair paging::cursors_of_another_store_are_refused;
            fresh paging::key_pages_hold_while_writers_run;
            fresh paging::dir_pages_hold_while_writers_run;
            fresh concurrency::one_creator_wins;
            fresh concurrency::one_eraser_wins;
            fresh concurrency::compare_and_swap_loses_no_increment;
            fresh concurrency::sets_of_one_key_come_one_after_the_other;
            fresh concurrency::readers_see_whole_values;
            fresh concurrency::writers_read_what_they_wrote;
            pair write::stores_share_nothing;
            fresh model::operations_agree_with_a_model;
        }
    };
    (transactional, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            fresh transaction::a_staged_value_is_invisible;
            fresh transaction::a_staged_value_that_is_dropped_is_discarded;
            fresh transaction::staged_values_of_every_size_can_be_committed;
            fresh transaction::a_commit_that_fails_leaves_staged_values_as_they_were;
            fresh transaction::a_staged_value_is_committed_once;
            fresh transaction::staged_values_can_be_read;
            fresh transaction::outcomes_stand_in_the_order_of_the_changes;
            fresh transaction::an_empty_commit_changes_nothing;
            fresh transaction::a_commit_that_fails_changes_nothing;
            fresh transaction::preconditions_are_judged_before_the_commit;
            fresh transaction::checks_guard_a_commit;
            fresh transaction::a_key_named_twice_is_refused;
            fresh transaction::the_limit_of_changes_is_kept;
            fresh transaction::staging_fails_as_sets_do;
            fresh transaction::many_keys_in_one_commit;
            fresh transaction::one_of_overlapping_commits_wins;
            fresh transaction::a_commit_that_is_dropped_is_made_or_not_made;
            pair transaction::values_that_another_store_staged_are_refused;
            fresh prefixes::a_commit_erases_a_prefix;
            fresh prefixes::a_commit_replaces_what_is_below_a_prefix;
            fresh prefixes::keys_below_an_erased_prefix_are_judged_before;
            fresh prefixes::a_prefix_may_be_named_more_than_once;
            fresh prefixes::a_prefix_that_is_not_empty_fails_the_commit;
            fresh prefixes::a_prefix_is_empty_as_long_as_no_key_is_below;
            fresh prefixes::one_creator_below_an_empty_prefix_wins;
            fresh prefixes::sets_and_erases_of_prefixes_come_one_after_the_other;
            fresh prefixes::writers_read_what_they_left_below_a_prefix;
            fresh prefixes::more_keys_than_are_counted_are_erased_in_one_commit;
            fresh prefixes::an_erase_of_a_prefix_that_is_dropped_is_made_or_not_made;
            fresh prefixes::prefixes_within_each_other_are_set_and_erased;
            fresh prefixes::writers_find_nothing_below_an_erased_prefix;
            fresh prefixes::a_listing_goes_on_behind_an_erased_prefix;
            fresh intents::an_intent_stays_until_it_is_settled;
            fresh intents::an_intent_is_settled_once;
            fresh intents::an_intent_is_added_with_its_commit_or_not_at_all;
            fresh intents::an_intent_is_in_a_commit_of_many_changes;
            fresh intents::intents_are_no_keys;
            fresh intents::the_limits_of_intents_are_kept;
            fresh intents::an_intent_that_is_dropped_is_added_or_not_added;
            fresh watermark::every_commit_gives_a_new_watermark;
            fresh watermark::a_watermark_stays_while_nothing_is_committed;
            fresh watermark::what_is_read_between_equal_watermarks_is_of_one_commit;
            fresh snapshot::a_snapshot_reads_as_the_store_does;
            fresh snapshot::a_snapshot_stays_while_its_keys_change;
            fresh snapshot::a_value_of_a_snapshot_outlives_it;
            fresh snapshot::a_snapshot_knows_its_own_keys_only;
            fresh snapshot::commits_are_seen_whole;
            fresh snapshot::transfers_keep_the_sum;
            fresh snapshot::large_values_stay_while_writers_replace_and_erase;
            fresh snapshot::erase_prefix_is_seen_whole;
            fresh snapshot::a_replaced_prefix_is_seen_whole;
            fresh snapshot::a_snapshot_outlives_the_erase_of_its_prefix;
            fresh transaction_model::commits_agree_with_a_model;
        }
    };
    (persistent, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            reopen persistence::values_versions_and_times_stay;
            reopen persistence::erased_keys_stay_erased;
            reopen persistence::versions_are_never_given_again;
            reopen persistence::a_store_can_be_opened_many_times;
            reopen persistence::what_was_sent_in_part_is_gone;
        }
    };
    (persistent_transactional, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            reopen persistence::commits_stay;
            reopen persistence::staged_values_do_not_stay;
            reopen persistence::erased_prefixes_stay_erased;
            reopen persistence::a_large_prefix_stays_erased;
            reopen intents::intents_stay;
            reopen watermark::watermarks_are_never_given_again;
            reopen transaction_model::commits_agree_with_a_model_when_reopened;
        }
    };
    (faulty, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            reopen faults::what_is_not_durable_is_not_seen;
            reopen faults::what_is_not_durable_decides_nothing;
            reopen faults::a_commit_that_failed_is_not_seen_before_a_restart;
            reopen faults::what_waits_for_a_commit_that_fails_is_not_answered_by_it;
        }
    };
}

macro_rules! suite {
    ([$factory:ident] $($shape:ident $module:ident::$name:ident;)+) => {
        Suite {
            factory: $factory,
            checks: vec![$(Check {
                name: stringify!($name),
                run: |factory| Box::pin(run_check!($shape, factory, $module::$name)),
            }),+],
        }
    };
}

macro_rules! run_check {
    (fresh, $factory:ident, $check:path) => {
        async move {
            let (store, _keep) = $factory.create().await;
            $check(store).await;
        }
    };
    (pair, $factory:ident, $check:path) => {
        async move {
            let (store, _keep) = $factory.create().await;
            let (other, _other_keep) = $factory.create().await;
            $check(store, other).await;
        }
    };
    (reopen, $factory:ident, $check:path) => {
        $check($factory)
    };
}

/// What every store does.
pub fn readable_writeable_listable<F: Factory>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(readable_writeable_listable, [suite], [factory])
}

/// What a store does that changes many keys in one commit.
pub fn transactional<F: Factory<Store: TransactionalStore>>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(transactional, [suite], [factory])
}

/// What a store does whose values outlive it.
pub fn persistent<F: Reopen>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(persistent, [suite], [factory])
}

/// What a transactional store does whose values outlive it.
pub fn persistent_transactional<F: Reopen<Store: TransactionalStore>>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(persistent_transactional, [suite], [factory])
}

/// What a transactional store does on a disk that is slow or fails.
pub fn faulty<F: FaultInjection<Store: TransactionalStore>>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(faulty, [suite], [factory])
}

/// Makes a test of each check of the given capabilities, for the stores of the given factory.
///
/// The tests bear the names of the checks, so where there are several factories, each goes into a module of its own.
/// See [`conformance`](crate::conformance) for an example.
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr => $($capability:ident),+ $(,)?) => {
        $($crate::conformance_checks!($capability, [$crate::conformance_test], [$capability, $factory]);)+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_test {
    ([$capability:ident, $factory:expr] $($shape:ident $module:ident::$name:ident;)+) => {
        $(
            #[test]
            fn $name() {
                $crate::conformance::$capability(&$factory).test(stringify!($name));
            }
        )+
    };
}
