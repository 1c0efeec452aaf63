//! Threads that are a runtime each: what runs there wakes no other thread.

use std::sync::mpsc;
use std::{io, thread};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// A thread with a runtime of its own, until `end`. What still runs there then is dropped.
///
/// # Errors
/// The system's, for the thread or its files.
pub fn start(name: &str, end: CancellationToken) -> io::Result<Handle> {
    let (made, handle) = mpsc::sync_channel(1);
    // Made there: a runtime must not be dropped in another one, as it would be if the thread did not start.
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        // It is waited for.
        let _ = match runtime {
            Ok(runtime) => {
                let sent = made.send(Ok(runtime.handle().clone()));
                runtime.block_on(end.cancelled());
                sent
            }
            Err(error) => made.send(Err(error)),
        };
    })?;
    handle.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended before it began")))
}
