//! The runtimes of connections: each runs in the one of its priority, and moves when that changes.

use std::{future::poll_fn, sync::Arc, task::Poll};

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::{priority::Priority, slots::Activity};

/// The tasks of connections.
#[derive(Clone)]
pub(super) struct ConnectionTasks {
    pub(super) tracker: TaskTracker,
    /// The runtime of connections of normal priority.
    pub(super) normal: Handle,
}

impl ConnectionTasks {
    /// Runs a connection as a task of the runtime of its priority, and as another one from when that changes on.
    pub(super) fn spawn(&self, activity: Arc<Activity>, mut connection: BoxFuture<'static, ()>) {
        let (tasks, priority) = (self.clone(), activity.priority());
        let runtime = match priority {
            Priority::Normal => self.normal.clone(),
            Priority::Crowd => zarrd_executor::crowd_runtime(),
        };
        let run = async move {
            let has_ended = poll_fn(|context| match connection.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending if activity.priority() != priority => Poll::Ready(false),
                Poll::Pending => Poll::Pending,
            });
            if !has_ended.await {
                tasks.spawn(activity, connection);
            }
        };
        self.tracker.spawn_on(run, &runtime);
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;
    use zarrd_executor::limits::CROWD_CONNECTIONS;

    use super::*;
    use crate::serve::{
        priority::{CallerConnections, Presence},
        slots::Activity,
    };

    fn is_of_crowd() -> bool {
        std::thread::current().name() == Some("zarrd-crowd")
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn connection_moves_to_the_runtime_of_its_priority_before_its_request_is_handled() {
        let tasks = ConnectionTasks { tracker: TaskTracker::new(), normal: Handle::current() };
        let caller = Arc::<CallerConnections>::default();
        let mut others: Vec<_> = (0..CROWD_CONNECTIONS).map(|_| Presence::new(Some(caller.clone()))).collect();
        let activity = Arc::new(Activity::new(Presence::new(Some(caller))));
        let (started, own) = (is_of_crowd(), activity.clone());
        let (sender, places) = tokio::sync::oneshot::channel();
        let connection = async move {
            let before = is_of_crowd();
            others.pop();
            yield_now().await;
            let parsed = is_of_crowd();
            let request = own.begin_request().unwrap().in_place().await;
            let handled = is_of_crowd();
            drop(request);
            let again = own.begin_request().unwrap().in_place().await;
            let _ = sender.send([before, parsed, handled, is_of_crowd()]);
            drop((again, others));
        };
        tasks.spawn(activity, Box::pin(connection));
        assert_eq!((started, places.await), (false, Ok([true, true, false, false])));
        tasks.tracker.close();
        tasks.tracker.wait().await;
    }
}
