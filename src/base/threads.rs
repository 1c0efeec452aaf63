//! Threads that are a runtime each: what runs there wakes no other thread.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// A thread with a runtime of its own, until `end`. What still runs there then is dropped.
///
/// # Errors
/// The system's, for the thread or its files.
pub fn start(name: &str, end: CancellationToken) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(end.cancelled()))?;
    Ok(handle)
}
