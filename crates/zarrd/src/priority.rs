//! The priority of commands that read a whole store, which give way to everything else on the machine.

/// The increment of the nice value: on a busy machine a command gets a third of what others get, and is not starved.
#[cfg(target_os = "linux")]
const NICER: i32 = 5;

/// The largest nice value.
#[cfg(target_os = "linux")]
const NICEST: i32 = 19;

/// Lowers the priority of the current thread and of all threads that it starts. If that fails, the command runs as usual.
#[cfg(target_os = "linux")]
pub(crate) fn lower() {
    use rustix::process::{getpriority_process, setpriority_process};

    let lowered =
        getpriority_process(None).and_then(|nice| setpriority_process(None, nice.saturating_add(NICER).min(NICEST)));
    if let Err(error) = lowered {
        tracing::debug!(%error, "cannot lower the priority");
    }
}

/// Leaves the priority unchanged.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lower() {}
