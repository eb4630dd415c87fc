//! Tests of pools.

use std::future::poll_fn;

use futures::future::BoxFuture;

use super::*;

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(3600);
const ONE: Caller = Caller::new(1);
const TWO: Caller = Caller::new(2);
const THREE: Caller = Caller::new(3);

type Waiting = BoxFuture<'static, Result<PoolPermit, Rejection>>;

fn waiting(pool: &Pool, caller: Caller, amount: u64) -> Waiting {
    let pool = pool.clone();
    async move { pool.take(caller, amount, LONG).await }.boxed()
}

async fn polled(waiting: &mut Waiting) -> Option<PoolPermit> {
    poll_fn(|context| match waiting.as_mut().poll(context) {
        std::task::Poll::Ready(done) => std::task::Poll::Ready(done.ok()),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn waits_are_timed_and_amounts_granted_at_once_are_not() {
    let pool = PartitionedPool::new(5, 1);
    let held = pool.take(ONE, 4, RequestSize::Large, LONG).await.unwrap();
    assert_eq!(pool.waits().totals().count, 0);
    assert!(pool.take(TWO, 1, RequestSize::Large, SHORT).await.is_err());
    assert_eq!(pool.waits().totals().count, 1, "a wait in vain counts");
    let small = pool.take(TWO, 1, RequestSize::Small, LONG).await.unwrap();
    assert_eq!(pool.waits().totals().count, 1);
    let mut wait = pool.take(THREE, 1, RequestSize::Small, LONG).boxed();
    assert!((&mut wait).now_or_never().is_none());
    drop(wait);
    assert_eq!(pool.waits().totals().count, 2, "so does one that is given up");
    drop((held, small));
}

#[tokio::test]
async fn small_request_waits_for_both_parts() {
    for large_ends_first in [true, false] {
        let pool = PartitionedPool::new(8, 2);
        let large = pool.take(ONE, 6, RequestSize::Large, LONG).await.unwrap();
        let small = pool.take(TWO, 2, RequestSize::Small, LONG).await.unwrap();
        let mut wait = pool.take(THREE, 1, RequestSize::Small, LONG).boxed();
        assert!((&mut wait).now_or_never().is_none());
        let other = if large_ends_first { (drop(large), small).1 } else { (drop(small), large).1 };
        let granted = wait.now_or_never().expect("a part is free").unwrap();
        assert_eq!(pool.usage().waiting, 0, "it waits for nothing more");
        drop((granted, other));
        assert!(pool.is_unused());
    }
}

#[tokio::test]
async fn callers_are_served_in_turn() {
    let pool = Pool::new(2, Share::WhileOthersWait);
    let mut permits: Vec<PoolPermit> = (0..2).filter_map(|_| pool.try_take(ONE, 1, Priority::Last)).collect();
    let mut queue = Vec::new();
    for caller in [ONE, ONE, TWO, TWO, THREE] {
        let mut wait = waiting(&pool, caller, 1);
        assert!(polled(&mut wait).await.is_none());
        queue.push((caller, wait));
    }
    let mut order = Vec::new();
    while !queue.is_empty() {
        permits.remove(0);
        for index in (0..queue.len()).rev() {
            let Some((caller, wait)) = queue.get_mut(index) else { continue };
            if let Some(permit) = polled(wait).await {
                order.push(*caller);
                permits.push(permit);
                drop(queue.remove(index));
            }
        }
    }
    // The first caller still holds half at first, while the others wait.
    assert_eq!(order, [TWO, ONE, THREE, TWO, ONE]);
}

#[tokio::test]
async fn large_request_is_not_starved() {
    let pool = Pool::new(4, Share::WhileOthersWait);
    let first = pool.try_take(ONE, 3, Priority::Last).unwrap();
    let mut large = waiting(&pool, TWO, 4);
    assert!(polled(&mut large).await.is_none());
    assert!(pool.try_take(THREE, 1, Priority::Last).is_none(), "another caller waits");
    // A caller that holds some goes first, unless it holds half.
    assert!(pool.try_take(THREE, 1, Priority::First).is_some());
    assert!(pool.try_take(ONE, 1, Priority::First).is_none());
    let mut small = waiting(&pool, THREE, 1);
    assert!(polled(&mut small).await.is_none());
    drop(first);
    let all = polled(&mut large).await.unwrap();
    assert!(polled(&mut small).await.is_none());
    drop(all);
    assert!(polled(&mut small).await.is_some());
}

#[tokio::test]
async fn cancelled_waiter_blocks_no_one() {
    let pool = Pool::new(4, Share::WhileOthersWait);
    let first = pool.try_take(ONE, 3, Priority::Last).unwrap();
    let mut large = waiting(&pool, TWO, 4);
    let mut small = waiting(&pool, THREE, 1);
    assert!(polled(&mut large).await.is_none() && polled(&mut small).await.is_none());
    drop(large);
    let one = polled(&mut small).await.unwrap();
    // A permit that was granted but not received is released.
    let mut granted = waiting(&pool, TWO, 4);
    assert!(polled(&mut granted).await.is_none());
    drop((first, one));
    drop(granted);
    assert_eq!(pool.try_take(ONE, 4, Priority::Last).unwrap().amount(), 4);
}

#[tokio::test]
async fn timeout_reports_the_exhausted_limit() {
    let pool = Pool::new(4, Share::WhileOthersWait);
    let permit = pool.try_take(ONE, 4, Priority::Last).unwrap();
    assert_eq!(pool.take(ONE, 1, SHORT).await.unwrap_err(), Rejection::ShareExhausted);
    assert_eq!(pool.take(TWO, 1, SHORT).await.unwrap_err(), Rejection::PoolExhausted);
    drop(permit);
    assert!(pool.0.lock().turns.is_empty() && pool.0.lock().free == 4);
}

#[tokio::test]
async fn small_requests_have_a_reserved_share() {
    let classes = PartitionedPool::new(10, 2);
    let main = classes.take(ONE, 8, RequestSize::Large, LONG).await.unwrap();
    let mut large = async { classes.take(TWO, 2, RequestSize::Large, LONG).await }.boxed_local();
    assert!((&mut large).now_or_never().is_none());
    let small = classes.take(THREE, 1, RequestSize::Small, LONG).await.unwrap();
    assert!(!classes.is_unused());
    drop((main, small));
    drop(large.await);
    assert!(classes.is_unused());
}

#[tokio::test]
async fn no_caller_gets_all_of_the_reserved_part() {
    let classes = PartitionedPool::new(10, 4);
    let main = classes.take(ONE, 6, RequestSize::Large, LONG).await.unwrap();
    let classes = &classes;
    let take = |caller| async move { classes.take(caller, 1, RequestSize::Small, LONG).await.unwrap() }.boxed_local();
    let own = [take(ONE).await, take(ONE).await];
    let mut more = take(ONE);
    assert!((&mut more).now_or_never().is_none(), "it has half, although nobody else waits");
    let other = take(TWO).now_or_never().expect("it waits for nobody");
    drop((own, other));
    drop((more.await, main));
    assert!(classes.is_unused());
}

#[test]
fn permits_split_and_merge() {
    let (pool, other) = (Pool::new(10, Share::WhileOthersWait), Pool::new(10, Share::WhileOthersWait));
    let mut portion = pool.try_take(ONE, 4, Priority::Last).unwrap();
    let part = portion.split(3);
    assert_eq!((portion.amount(), part.amount()), (1, 3));
    assert!(portion.absorb(part).is_none());
    let foreign = portion.absorb(other.try_take(ONE, 1, Priority::Last).unwrap());
    assert_eq!(foreign.map(|foreign| foreign.amount()), Some(1));
    drop(portion);
    assert_eq!(pool.0.lock().free, 10);
    assert_eq!(pool.try_take(TWO, 99, Priority::Last).map(|portion| portion.amount()), Some(10), "the whole capacity");
}
