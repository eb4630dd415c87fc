//! Tests of slots and the activity of connections.

use zarrd_executor::limits::CROWD_CONNECTIONS;

use super::*;

async fn short_delay() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

#[tokio::test]
async fn longest_idle_connection_is_evicted_first() {
    let slots = ConnectionSlots::new(3);
    let (first, source) = slots.acquire(None).unwrap();
    assert_eq!(source, SlotSource::Unused);
    short_delay().await;
    let (second, _) = slots.acquire(None).unwrap();
    short_delay().await;
    let (third, _) = slots.acquire(None).unwrap();
    let in_request = first.activity().begin_request().unwrap();
    short_delay().await;
    let (fourth, source) = slots.acquire(None).unwrap();
    assert_eq!(source, SlotSource::Evicted);
    second.activity().evicted().await;
    assert!(second.activity().begin_request().is_none(), "its request comes too late");
    drop(second);
    assert!(!third.activity().evicted.is_cancelled());
    drop(in_request);
    short_delay().await;
    let (_fifth, _) = slots.acquire(None).unwrap();
    third.activity().evicted().await;
    let busy = [first.activity().begin_request().unwrap(), fourth.activity().begin_request().unwrap()];
    let (sixth, _) = slots.acquire(None).unwrap();
    let _busy = sixth.activity().begin_request().unwrap();
    assert!(slots.acquire(None).is_none(), "nobody is idle");
    drop(busy);
    drop(sixth);
    assert_eq!(slots.acquire(None).unwrap().1, SlotSource::Unused);
}

#[tokio::test]
async fn some_slots_are_reserved_for_callers_with_few_connections() {
    let slots = ConnectionSlots::new(64);
    let (crowd, stranger) = (Some(Caller::new(1)), Some(Caller::new(2)));
    let busy = |caller| {
        let (slot, source) = slots.acquire(caller)?;
        let request = slot.activity().begin_request()?;
        Some((slot, request, source))
    };
    let mut crowded: Vec<_> = std::iter::from_fn(|| busy(crowd)).collect();
    assert_eq!(crowded.len(), 60);
    let (first, _) = slots.acquire(stranger).unwrap();
    assert!(slots.acquire(crowd).is_none(), "it does not make room for one of many");
    drop(first);
    let few: Vec<_> = std::iter::from_fn(|| busy(stranger)).collect();
    assert_eq!(few.len(), 4, "all that are reserved");
    assert!(busy(Some(Caller::new(3))).is_none());
    let (idle, request, _) = crowded.pop().unwrap();
    drop(request);
    let (fifth, source) = slots.acquire(Some(Caller::new(3))).unwrap();
    assert_eq!(source, SlotSource::Evicted, "the crowd's own idle ones do");
    drop(idle);
    drop((crowded, few, fifth));
    let proxied: Vec<_> = std::iter::from_fn(|| busy(None)).collect();
    assert_eq!(proxied.len(), 64, "a proxy has the connections of many");
}

#[tokio::test]
async fn idle_connections_make_room_for_their_own_caller() {
    for capacity in [FEW_CONNECTIONS - 1, FEW_CONNECTIONS, FEW_CONNECTIONS + 1, 100] {
        let slots = ConnectionSlots::new(capacity);
        let all: Vec<_> = (0..2 * capacity).map(|_| slots.acquire(Some(Caller::new(1)))).collect();
        assert!(all.iter().all(Option::is_some), "{capacity} slots");
    }
}

#[tokio::test]
async fn callers_of_few_connections_take_no_more_than_few_reserved_slots() {
    let slots = ConnectionSlots::new(1024);
    let busy = |caller| {
        let (slot, _) = slots.acquire(Some(Caller::new(caller)))?;
        let request = slot.activity().begin_request()?;
        Some((slot, request))
    };
    let crowded: Vec<_> = std::iter::from_fn(|| busy(0)).collect();
    assert_eq!(crowded.len(), 960);
    let few: Vec<_> = (1..=8).map(|caller| std::iter::from_fn(|| busy(caller)).collect::<Vec<_>>()).collect();
    assert!(few.iter().all(|few| few.len() == FEW_CONNECTIONS));
}

#[tokio::test]
async fn connections_beyond_many_are_of_a_crowd() {
    let slots = ConnectionSlots::new(1024);
    let crowded = |caller: Option<u128>| {
        let slots: Vec<_> = (0..100).map(|_| slots.acquire(caller.map(Caller::new)).unwrap().0).collect();
        crowd(&slots)
    };
    assert_eq!([crowded(Some(1)), crowded(Some(2))], [36; 2], "callers are counted apart");
    assert_eq!(crowded(Some(1)), 36, "none of those that ended counts");
    assert_eq!(crowded(None), 0, "a proxy has the connections of many");
}

/// The number of connections that are of a crowd.
fn crowd(slots: &[ConnectionSlot]) -> usize {
    slots.iter().filter(|slot| slot.activity().priority() == Priority::Crowd).count()
}

#[tokio::test(start_paused = true)]
async fn idle_connections_leave_normal_priority_to_active_ones() {
    let slots = ConnectionSlots::new(1024);
    let connect = |number: usize| -> Vec<_> {
        let new = || {
            let (slot, _) = slots.acquire(Some(Caller::new(1))).unwrap();
            let activity = slot.activity().clone();
            tokio::spawn(async move { activity.observe_presence().await });
            slot
        };
        std::iter::repeat_with(new).take(number).collect()
    };
    let idle = connect(512);
    assert_eq!(crowd(&idle), 512 - CROWD_CONNECTIONS, "all are active at first");
    let busy: Vec<_> = idle.iter().take(2).map(|slot| slot.activity().begin_request().unwrap()).collect();
    sleep(2 * QUIET).await;
    assert!(idle.iter().skip(2).all(|slot| !slot.activity().state.lock().presence.is_active()));
    assert_eq!(crowd(&idle), 510, "a request in progress is no idle time, and the crowd parses what comes next");
    let active = connect(CROWD_CONNECTIONS);
    assert_eq!(crowd(&active), 2);
    let request = |slot: &ConnectionSlot| drop(slot.activity().begin_request().unwrap());
    active.iter().for_each(request);
    assert_eq!(crowd(&active), 2, "those in progress count");
    drop(busy);
    sleep(QUIET / 2).await;
    active.iter().for_each(request);
    sleep(QUIET * 2 / 3).await;
    active.iter().for_each(request);
    assert_eq!(crowd(&active), 0, "their places are free");
    idle.iter().for_each(request);
    assert_eq!((crowd(&active), crowd(&idle)), (0, 512), "active ones keep theirs");
}

#[tokio::test(start_paused = true)]
async fn connections_of_few_keep_normal_priority_while_they_are_idle() {
    let slots = ConnectionSlots::new(1024);
    let few: Vec<_> = (0..CROWD_CONNECTIONS).map(|_| slots.acquire(Some(Caller::new(1))).unwrap().0).collect();
    sleep(2 * QUIET).await;
    assert!(few.iter().all(|slot| slot.activity().end_presence()));
    assert_eq!(crowd(&few), 0);
    let request = few[0].activity().begin_request().unwrap();
    assert!(!request.moves && few[0].activity().state.lock().presence.is_active());
}

#[tokio::test]
async fn unsent_response_is_not_idle() {
    let slots = ConnectionSlots::new(1);
    let (slot, _) = slots.acquire(None).unwrap();
    let activity = slot.activity();
    let in_request = activity.begin_request().unwrap();
    activity.mark_unsent();
    drop(in_request);
    assert!(slots.acquire(None).is_none());
    activity.mark_flushed();
    let next_id = activity.begin_request().unwrap();
    activity.mark_flushed();
    assert!(slots.acquire(None).is_none(), "a piece of the answer was flushed, and more is to come");
    activity.mark_closing();
    drop(next_id);
    assert!(slots.acquire(None).is_some());
}

#[tokio::test]
async fn connection_is_busy_until_its_last_request_ends() {
    let slots = ConnectionSlots::new(1);
    let (slot, _) = slots.acquire(None).unwrap();
    let activity = slot.activity();
    let (first, second) = (activity.begin_request().unwrap(), activity.begin_request().unwrap());
    assert_eq!(activity.requests(), 2);
    drop(first);
    assert!(slots.acquire(None).is_none(), "one of two requests has ended");
    drop(second);
    assert!(slots.acquire(None).is_some());
}

#[tokio::test(start_paused = true)]
async fn idle_time_begins_after_the_last_request() {
    let limit = Duration::from_secs(10);
    let activity = Arc::new(Activity::new(Presence::new(None)));
    let started = Instant::now();
    let request = activity.begin_request().unwrap();
    let ends = async {
        sleep(Duration::from_secs(25)).await;
        drop(request);
    };
    tokio::join!(activity.idle_for(limit), ends);
    assert!((35..=36).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}
