//! The nodes that are up, for clients that outlive some of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Client, Dice};

/// The nodes that are up, which may change meanwhile.
#[derive(Debug, Clone, Default)]
pub struct Nodes(Arc<Mutex<Vec<Option<Client>>>>);

impl Nodes {
    pub fn of(clients: impl IntoIterator<Item = Client>) -> Self {
        Self(Arc::new(Mutex::new(clients.into_iter().map(Some).collect())))
    }

    /// Puts a node into its place, or takes it out.
    pub fn set(&self, at: usize, client: Option<Client>) {
        let mut nodes = self.0.lock().unwrap();
        if nodes.len() <= at {
            nodes.resize(at + 1, None);
        }
        nodes[at] = client;
    }

    pub fn up(&self) -> Vec<Client> {
        self.0.lock().unwrap().iter().flatten().cloned().collect()
    }

    /// One that is up; waits while none is.
    pub async fn any(&self, dice: &mut Dice) -> Client {
        loop {
            let up = self.up();
            if !up.is_empty() {
                return up[dice.roll(up.len())].clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
