//! Stops the program at a failpoint until the test lets it go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

/// The program stands still where it first comes to a failpoint.
pub struct Pause {
    failpoint: &'static str,
    both: Arc<Barrier>,
}

impl Pause {
    pub fn at(failpoint: &'static str) -> Self {
        let both = Arc::new(Barrier::new(2));
        let (here, is_over) = (Arc::clone(&both), AtomicBool::new(false));
        let wait = move || {
            if !is_over.swap(true, Ordering::SeqCst) {
                here.wait();
                here.wait();
            }
        };
        fail::cfg_callback(failpoint, wait).unwrap();
        Self { failpoint, both }
    }

    /// Waits until the program stands there.
    pub async fn reached(&self) {
        let both = Arc::clone(&self.both);
        tokio::task::spawn_blocking(move || both.wait()).await.unwrap();
    }

    /// Lets it go on.
    pub async fn go_on(self) {
        self.reached().await;
        fail::remove(self.failpoint);
    }
}
