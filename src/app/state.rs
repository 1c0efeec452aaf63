//! What a node is made of: its engines, and the contexts in which the features' handlers and tasks
//! work.

use std::ops::Deref;
use std::sync::Arc;

use crate::app::config::Config;
use crate::app::contexts::Contexts;
use crate::app::engines::Engines;

/// A running node, shared.
#[derive(Debug, Clone)]
pub struct AppState {
    engines: Arc<Engines>,
    /// What handlers and tasks work with.
    pub contexts: Arc<Contexts>,
}

impl AppState {
    /// Gives each feature what it needs of the engines and settings.
    #[must_use]
    pub fn new(engines: Engines, config: &Config) -> Self {
        let contexts = Arc::new(Contexts::new(&engines, config));
        Self { engines: Arc::new(engines), contexts }
    }
}

impl Deref for AppState {
    type Target = Engines;

    fn deref(&self) -> &Engines {
        &self.engines
    }
}
