//! The checks of each capability, and running them.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt, future::LocalBoxFuture};
use tokio::runtime;

use super::{
    Factory, FaultInjection, Reopen, attributes, cancel, concurrency, faults, intents, key, list, model, multipart,
    needs::Need, paging, persistence, precondition, prefix_snapshot, prefixes, puts, range, read, scan, snapshot,
    snapshot_reads, tools::panic_message, transaction, transaction_model, upload, watermark, write,
};
use zarrd_store::{SnapshotStore, TransactionalStore};

/// The time limit of one check.
const TIMEOUT: Duration = Duration::from_secs(180);

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
    /// Runs all checks in sequence.
    ///
    /// # Panics
    ///
    /// If a check fails, with its name.
    pub async fn run(&self) {
        for check in &self.checks {
            check.run(self.factory).await;
        }
    }

    /// Runs one check in its own runtime.
    ///
    /// # Panics
    ///
    /// If the check fails, with its name.
    pub fn test(&self, name: &str) {
        let check = self.checks.iter().find(|check| check.name == name);
        let check = check.unwrap_or_else(|| panic!("the conformance check {name} does not exist"));
        let runtime = runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
        runtime.expect("a runtime").block_on(check.run(self.factory));
    }
}

impl<F> Check<F> {
    async fn run(&self, factory: &F) {
        let name = self.name;
        match tokio::time::timeout(TIMEOUT, AssertUnwindSafe((self.run)(factory)).catch_unwind()).await {
            Ok(Ok(())) => {}
            Ok(Err(cause)) => panic!("the conformance check {name} failed: {}", panic_message(&*cause)),
            Err(_) => panic!("the conformance check {name} did not finish within {TIMEOUT:?}"),
        }
    }
}

/// The list of all checks by capability, from which both the suites and the tests are made. It is passed to the macro
/// `then`, after `with`. The word before each check is its argument:
///
/// - `fresh`: a new store
/// - `pair`: two new stores
/// - `reopen`: the factory
///
/// The words after it are the guarantees that it needs.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_checks {
    (readable_writeable_listable, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            fresh read::an_absent_key_has_no_value [Listings];
            fresh read::a_prefix_has_no_value [Listings];
            fresh read::get_returns_the_metadata [];
            fresh read::get_head_and_listings_agree [Listings];
            fresh read::the_time_is_that_of_the_set [];
            fresh read::values_of_every_size_are_read_as_written [];
            fresh read::a_value_of_64_mib_streams_in_and_out [];
            fresh read::an_open_value_outlives_its_replacement [CommitReads];
            fresh read::an_open_value_outlives_its_erasure [CommitReads Listings];
            fresh range::partial_values_follow_the_specification [];
            fresh range::ranges_are_clipped_to_the_value [];
            fresh range::ranges_of_an_empty_value [];
            fresh range::ranges_across_blocks [];
            fresh key::keys_are_case_sensitive [Listings];
            fresh key::a_key_and_a_prefix_may_share_a_name [Listings SharedNames];
            fresh key::keys_at_the_limits_of_the_grammar [Listings SharedNames];
            fresh key::unusual_names_are_names [Listings];
            fresh key::similar_keys_are_different_keys [Listings];
            fresh write::a_set_replaces_the_whole_value [Listings];
            fresh write::every_set_gives_a_new_version [Writes Listings];
            fresh write::a_reset_key_gets_a_new_version [Writes Listings];
            fresh write::erase_returns_whether_the_key_had_a_value [Writes Listings];
            fresh write::erase_prefix_erases_and_counts_the_keys_below [Writes Listings];
            fresh write::erase_prefix_leaves_a_key_of_the_same_name [Writes Listings SharedNames];
            fresh write::erase_prefix_of_nothing_erases_nothing [Writes Listings];
            fresh write::erase_prefix_of_the_root_erases_all [Writes Listings];
            fresh write::a_new_store_is_writable [Writes Listings];
            fresh attributes::values_of_every_size_keep_their_attributes [Writes Attributes];
            fresh attributes::the_largest_attributes_are_returned [Writes Attributes];
            fresh attributes::a_set_replaces_attributes [Writes Attributes];
            fresh upload::payloads_may_have_chunks_of_any_size [Writes Listings];
            fresh upload::an_aborted_payload_changes_nothing [Writes Listings];
            fresh upload::a_short_payload_changes_nothing [Writes Listings];
            fresh upload::a_long_payload_changes_nothing [Writes Listings];
            fresh precondition::every_precondition_applies_to_sets [Writes AtomicConditions];
            fresh precondition::every_precondition_applies_to_erases [Writes AtomicConditions ConditionalErases];
            fresh precondition::a_version_of_another_key_does_not_match [Writes AtomicConditions ConditionalErases];
            fresh cancel::a_set_cancelled_midway_changes_nothing [Writes Listings];
            fresh cancel::a_set_cancelled_anywhere_is_atomic [Writes Listings];
            fresh cancel::an_erase_cancelled_anywhere_is_atomic [Writes Listings];
            fresh cancel::dropping_a_value_midway_has_no_effect [];
            fresh list::an_empty_store_lists_as_empty [Listings];
            fresh list::list_prefix_follows_the_specification [Listings];
            fresh list::list_dir_follows_the_specification [Listings];
            fresh list::children_of_a_group_follow_the_specification [Listings];
            fresh list::list_is_list_prefix_of_the_root [Listings];
            fresh list::listings_follow_sets_and_erases [Listings];
            fresh list::siblings_of_a_prefix_are_not_below_it [Listings SharedNames];
            fresh list::listings_are_sorted_by_bytes [Listings SharedNames];
            fresh list::keys_and_prefixes_are_listed_in_one_order [Listings SharedNames];
            fresh list::a_deep_prefix_is_one_child [Listings];
            fresh list::list_all_yields_every_key_once [Listings];
            fresh scan::scans_agree_with_their_definition [Listings SharedNames];
            fresh paging::pages_of_any_size_make_up_the_listing [Listings SharedNames];
            fresh paging::a_limit_of_zero_means_one [Listings];
            fresh paging::paging_continues_after_the_last_key_is_erased [Listings];
            fresh paging::paging_continues_after_the_last_prefix_is_erased [Listings SharedNames];
            fresh paging::forged_cursors_are_rejected [Listings];
            fresh paging::cursors_of_other_listings_are_rejected [Listings];
            pair paging::cursors_of_another_store_are_rejected [Listings];
            fresh paging::key_pages_are_consistent_while_writers_run [Listings SharedNames];
            fresh paging::dir_pages_are_consistent_while_writers_run [Listings SharedNames];
            fresh concurrency::one_creator_wins [Writes AtomicConditions];
            fresh concurrency::one_eraser_wins [Writes AtomicConditions ConditionalErases];
            fresh concurrency::compare_and_swap_loses_no_increment [Writes AtomicConditions];
            fresh concurrency::sets_of_one_key_are_serialized [Writes];
            fresh concurrency::readers_never_see_partial_values [Writes CommitReads];
            fresh concurrency::writers_read_their_writes [Writes Listings];
            pair write::stores_share_nothing [Listings];
            fresh model::operations_agree_with_a_model [CommitWrites AtomicConditions Listings SharedNames];
        }
    };
    (snapshots, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            fresh snapshot_reads::guarantees_do_not_contradict_each_other [];
            fresh snapshot_reads::stores_with_commits_have_watermarks [];
            fresh snapshot_reads::a_snapshot_reads_as_the_store_does [];
            fresh snapshot_reads::a_snapshot_has_only_its_keys [];
            fresh snapshot_reads::the_first_read_fixes_the_version_of_a_key [];
            fresh snapshot_reads::an_open_value_is_never_mixed [];
            fresh snapshot_reads::readers_see_one_value_or_a_change [];
            fresh snapshot_reads::reads_agree_with_a_model [Listings];
        }
    };
    (transactional, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            fresh snapshot_reads::transactional_stores_guarantee_commits [];
            fresh transaction::a_staged_value_is_invisible [];
            fresh transaction::a_staged_value_that_is_dropped_is_discarded [];
            fresh transaction::staged_values_of_every_size_can_be_committed [];
            fresh puts::values_of_every_size_can_be_put [];
            fresh puts::many_values_can_be_put [];
            fresh puts::puts_have_preconditions [];
            fresh transaction::a_failed_commit_leaves_staged_values_unchanged [];
            fresh transaction::a_staged_value_is_committed_once [];
            fresh transaction::staged_values_can_be_read [];
            fresh transaction::outcomes_are_in_the_order_of_the_changes [];
            fresh transaction::an_empty_commit_changes_nothing [];
            fresh transaction::a_failed_commit_changes_nothing [];
            fresh transaction::preconditions_see_the_state_before_the_commit [];
            fresh transaction::checks_guard_a_commit [];
            fresh transaction::duplicate_keys_are_rejected [];
            fresh transaction::too_many_changes_are_rejected [];
            fresh transaction::staging_fails_like_sets [];
            fresh transaction::many_keys_in_one_commit [];
            fresh transaction::one_of_overlapping_commits_wins [];
            fresh transaction::a_cancelled_commit_is_atomic [];
            pair transaction::values_staged_by_another_store_are_rejected [];
            fresh attributes::commits_set_attributes [Attributes];
            fresh attributes::snapshots_have_attributes [Attributes];
            fresh multipart::parts_become_one_value [];
            fresh multipart::some_of_the_parts_may_be_named [];
            fresh multipart::uploads_are_hidden [];
            fresh multipart::parts_are_listed_and_replaced [];
            fresh multipart::uploads_are_listed_by_key [];
            fresh multipart::wrong_parts_are_rejected [];
            fresh multipart::an_upload_is_of_one_key [];
            fresh multipart::an_aborted_upload_leaves_nothing [];
            fresh multipart::a_failed_condition_leaves_the_upload [];
            fresh multipart::a_part_that_fails_leaves_the_one_before [];
            fresh multipart::completing_can_be_repeated [];
            fresh multipart::of_two_completions_one_is_a_repetition [];
            fresh multipart::completing_and_aborting_exclude_each_other [];
            fresh multipart::abandoned_uploads_are_swept [];
            fresh prefixes::a_commit_erases_a_prefix [];
            fresh prefixes::a_commit_replaces_what_is_below_a_prefix [];
            fresh prefixes::preconditions_see_keys_below_an_erased_prefix [];
            fresh prefixes::a_prefix_may_be_named_more_than_once [];
            fresh prefixes::a_prefix_that_is_not_empty_fails_the_commit [];
            fresh prefixes::a_prefix_is_empty_as_long_as_no_key_is_below [];
            fresh prefixes::one_creator_below_an_empty_prefix_wins [];
            fresh prefixes::sets_and_prefix_erases_are_serialized [];
            fresh prefixes::writers_read_their_changes_below_a_prefix [];
            fresh prefixes::a_commit_erases_more_keys_than_are_counted [];
            fresh prefixes::a_cancelled_prefix_erase_is_atomic [];
            fresh prefixes::prefixes_within_each_other_are_set_and_erased [];
            fresh prefixes::writers_find_nothing_below_an_erased_prefix [];
            fresh prefixes::a_listing_continues_after_an_erased_prefix [];
            fresh intents::an_intent_persists_until_it_is_removed [];
            fresh intents::an_intent_is_removed_once [];
            fresh intents::an_intent_is_added_with_its_commit_or_not_at_all [];
            fresh intents::an_intent_is_in_a_commit_of_many_changes [];
            fresh intents::intents_are_not_keys [];
            fresh intents::too_many_or_too_long_intents_are_rejected [];
            fresh intents::a_commit_checks_that_an_intent_exists [];
            fresh intents::a_commit_is_excluded_by_intents_that_match [];
            fresh intents::intents_exclude_each_other [];
            fresh intents::a_cancelled_add_of_an_intent_is_atomic [];
            fresh watermark::every_commit_gives_a_new_watermark [];
            fresh watermark::a_watermark_stays_while_nothing_is_committed [];
            fresh watermark::reads_between_equal_watermarks_see_one_commit [];
            fresh snapshot::a_snapshot_stays_while_its_keys_change [];
            fresh snapshot::a_value_of_a_snapshot_outlives_it [];
            fresh snapshot::commits_are_atomic_to_readers [];
            fresh snapshot::transfers_keep_the_sum [];
            fresh snapshot::large_values_stay_while_writers_replace_and_erase [];
            fresh snapshot::erase_prefix_is_atomic_to_readers [];
            fresh snapshot::replacing_a_prefix_is_atomic_to_readers [];
            fresh snapshot::a_snapshot_outlives_the_erase_of_its_prefix [];
            fresh prefix_snapshot::a_snapshot_of_a_prefix_stays_while_everything_changes [Listings];
            fresh prefix_snapshot::a_snapshot_of_a_prefix_lists_as_the_store_does [Listings SharedNames];
            fresh prefix_snapshot::small_values_of_a_snapshot_come_with_its_listing [Listings];
            fresh prefix_snapshot::a_snapshot_of_a_prefix_has_only_its_keys [Listings];
            fresh prefix_snapshot::snapshots_of_prefixes_are_of_one_commit [Listings];
            fresh prefix_snapshot::a_snapshot_of_a_prefix_has_the_intents_of_its_commit [Listings];
            fresh transaction_model::commits_agree_with_a_model [];
        }
    };
    (persistent, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            reopen persistence::values_versions_and_times_persist [];
            reopen persistence::erased_keys_stay_erased [];
            reopen persistence::versions_are_never_reused [];
            reopen persistence::a_store_can_be_reopened_many_times [];
            reopen persistence::partial_uploads_do_not_persist [];
        }
    };
    (persistent_transactional, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            reopen attributes::attributes_persist [];
            reopen multipart::uploads_persist_between_all_steps [];
            reopen persistence::commits_persist [];
            reopen persistence::staged_values_do_not_persist [];
            reopen persistence::erased_prefixes_stay_erased [];
            reopen persistence::a_large_prefix_stays_erased [];
            reopen intents::intents_persist [];
            reopen intents::each_opening_is_a_run_of_its_own [];
            reopen watermark::watermarks_are_never_reused [];
            reopen transaction_model::commits_agree_with_a_model_when_reopened [];
        }
    };
    (faulty, [$($then:tt)+], $with:tt) => {
        $($then)+! { $with
            reopen faults::changes_are_invisible_until_durable [];
            reopen faults::rejections_wait_until_the_conflicting_commit_is_durable [];
            reopen multipart::a_failed_completion_is_whole_or_absent [];
            reopen faults::a_failed_sync_is_invisible_until_reopened [];
            reopen faults::rejections_fail_if_the_conflicting_commit_does [];
        }
    };
}

macro_rules! suite {
    ([$factory:ident] $($shape:ident $module:ident::$name:ident [$($need:ident)*];)+) => {
        Suite {
            factory: $factory,
            checks: vec![$(Check {
                name: stringify!($name),
                run: |factory| Box::pin(run_check!($shape, factory, $module::$name, [$(Need::$need),*])),
            }),+],
        }
    };
}

macro_rules! run_check {
    (fresh, $factory:ident, $check:path, $needs:expr) => {
        async move {
            let (store, _fixture) = $factory.create().await;
            if has_all($factory, &store, &$needs) {
                $check(store).await;
            }
        }
    };
    (pair, $factory:ident, $check:path, $needs:expr) => {
        async move {
            let (store, _fixture) = $factory.create().await;
            let (other, _other_keep) = $factory.create().await;
            if has_all($factory, &store, &$needs) {
                $check(store, other).await;
            }
        }
    };
    (reopen, $factory:ident, $check:path, []) => {
        $check($factory)
    };
}

/// True if the store declares all guarantees that a check needs. Otherwise the check is skipped, and says so.
fn has_all<F: Factory>(factory: &F, store: &F::Store, needs: &[Need]) -> bool {
    let guarantees = factory.guarantees(store);
    let missing: Vec<_> = needs.iter().filter(|need| !need.is_met_by(&guarantees)).collect();
    if !missing.is_empty() {
        println!("skipped: the store does not guarantee {missing:?}");
    }
    missing.is_empty()
}

/// The checks of every store.
pub fn readable_writeable_listable<F: Factory>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(readable_writeable_listable, [suite], [factory])
}

/// The checks of a store with snapshots.
pub fn snapshots<F: Factory<Store: SnapshotStore>>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(snapshots, [suite], [factory])
}

/// The checks of a transactional store.
pub fn transactional<F: Factory<Store: TransactionalStore>>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(transactional, [suite], [factory])
}

/// The checks of a store whose values survive a restart.
pub fn persistent<F: Reopen>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(persistent, [suite], [factory])
}

/// The checks of a transactional store whose values survive a restart.
pub fn persistent_transactional<F: Reopen<Store: TransactionalStore>>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(persistent_transactional, [suite], [factory])
}

/// The checks of a transactional store on a slow or failing disk.
pub fn faulty<F: FaultInjection<Store: TransactionalStore>>(factory: &F) -> Suite<'_, F> {
    conformance_checks!(faulty, [suite], [factory])
}

/// Defines a test for each check of the given capabilities, for the stores of the given factory.
///
/// The tests have the names of the checks, so each factory needs a module of its own. See
/// [the crate](crate) for an example.
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr => $($capability:ident),+ $(,)?) => {
        $($crate::conformance_checks!($capability, [$crate::conformance_test], [$capability, $factory]);)+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_test {
    ([$capability:ident, $factory:expr] $($shape:ident $module:ident::$name:ident [$($need:ident)*];)+) => {
        $(
            #[test]
            fn $name() {
                $crate::$capability(&$factory).test(stringify!($name));
            }
        )+
    };
}
