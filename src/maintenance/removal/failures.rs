//! Removals that fail each time: nobody asks for them any more, so somebody has to be told.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::features::operations::OperationId;

/// How many failures in a row are told, and how many more after that: each is followed by the rest of a lease.
const TOLD_EACH: u32 = 10;

/// How long a failure is remembered: another node may have gone on.
const REMEMBERED: Duration = Duration::from_secs(600);

/// How often each removal has failed in a row on this node, and when it did last.
#[derive(Debug, Default)]
pub(super) struct Failures(BTreeMap<OperationId, (u32, Instant)>);

impl Failures {
    /// What became of a turn, which ended at this step.
    pub(super) fn note(&mut self, id: &OperationId, step: &str, has_failed: bool, now: Instant) {
        if let Some(failures) = self.count(id, has_failed, now) {
            // Of the error only the log at debug level tells: what a database says may quote contents.
            tracing::warn!(operation = %id, step, failures, "a removal fails each time; it is tried again");
        }
    }

    /// How often it has failed in a row, where that is to be told.
    fn count(&mut self, id: &OperationId, has_failed: bool, now: Instant) -> Option<u32> {
        self.0.retain(|_, (_, last)| now.duration_since(*last) < REMEMBERED);
        if !has_failed {
            self.0.remove(id);
            return None;
        }
        let (failures, last) = self.0.entry(id.clone()).or_insert((0, now));
        (*failures, *last) = (*failures + 1, now);
        Some(*failures).filter(|failures| failures % TOLD_EACH == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_each_time_is_told() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let [one, other] = ["0190163d8694739b3d5c2a7f00112233", "0190163d8694739b3d5c2a7f00112234"].map(|id| id.parse().unwrap());
        let mut told = |id: &OperationId, times: u32, has_failed, seconds| {
            let at = now + Duration::from_secs(seconds);
            (0..times).filter_map(|_| failures.count(id, has_failed, at)).collect::<Vec<_>>()
        };
        assert_eq!(told(&one, 9, true, 0), [] as [u32; 0]);
        assert_eq!(told(&other, 1, true, 0), [] as [u32; 0]);
        assert_eq!(told(&one, 11, true, 0), [10, 20]);
        assert_eq!(told(&one, 1, false, 0), [] as [u32; 0]);
        assert_eq!(told(&one, 9, true, 1), [] as [u32; 0], "from the start");
        assert_eq!(told(&one, 1, true, 700), [] as [u32; 0], "long ago");
    }
}
