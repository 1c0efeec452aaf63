//! What tells polls that wait for receipts: one look for each group, however many wait.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::watch::{Look, Seen, Watch};
use super::{AtLeast, Receipts};
use crate::base::error::{Code, Error, Result};
use crate::base::ids::GroupId;

/// How often a group is looked at for what other nodes changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Two looks are at least so far apart, however fast this node's own members read.
const LOOKS_APART: Duration = Duration::from_millis(50);

impl Receipts {
    /// To be told of changes in a group. The first who asks has it looked at; looking ends with the
    /// last one.
    #[must_use]
    pub fn watch(self: &Arc<Self>, group: GroupId) -> Watch {
        match self.watched.lock().entry(group) {
            Entry::Occupied(of) => of.get().watch(),
            Entry::Vacant(of) => {
                let watch = of.insert(Arc::default()).watch();
                tokio::spawn(Arc::clone(self).look_after(group, Arc::clone(&watch.seen)));
                watch
            }
        }
    }

    /// How many groups are looked at.
    #[must_use]
    pub fn watched_groups(&self) -> usize {
        self.watched.lock().len()
    }

    async fn look_after(self: Arc<Self>, group: GroupId, seen: Arc<Seen>) {
        let mut changes = self.changes.listen(group);
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = changed(&mut changes) => tokio::time::sleep(LOOKS_APART).await,
            }
            if !self.is_watched(group) {
                return;
            }
            match self.look(group).await {
                Ok(look) => {
                    let before = seen.last().replace(look);
                    if before != Some(look) {
                        seen.changes.send_modify(|()| {});
                    }
                }
                // The group is gone: the polls that wait read it, and answer so.
                Err(Error::Problem(problem)) if matches!(problem.code, Code::NotFound | Code::Gone) => seen.changes.send_modify(|()| {}),
                // Those who wait look for themselves at the end of their time.
                Err(error) => tracing::debug!(?error, "cannot look for changes of receipts"),
            }
        }
    }

    /// Whether anybody waits; if nobody does, the group is no longer watched.
    fn is_watched(&self, group: GroupId) -> bool {
        let mut watched = self.watched.lock();
        let waits = watched.get(&group).is_some_and(|seen| seen.changes.receiver_count() > 0);
        if !waits {
            watched.remove(&group);
        }
        waits
    }

    async fn look(&self, group: GroupId) -> Result<Look> {
        let least = AtLeast { at: Some(Instant::now()), ..AtLeast::default() };
        let known = self.group(group, least).await?;
        Ok(Look { terms: known.terms, progress: known.spans.progress() })
    }
}

async fn changed(changes: &mut Option<watch::Receiver<()>>) {
    if let Some(changes) = changes
        && changes.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
