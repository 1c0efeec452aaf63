//! How old what a replica shows may be, reckoned from beats.
//!
//! A node writes a number, the *beat*, to the primary again and again. A replica that shows a beat
//! shows every commit that was acknowledged before that beat was sent, as it replays the log in its
//! order. So what it shows is no older than the time since then. This needs no clock but the node's
//! own. It holds on an idle primary, and for a replica that follows another primary by now: it shows
//! no new beat.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How long a replica is left alone after a read of it has failed.
const SHUT: Duration = Duration::from_secs(2);

/// How many beats are remembered that the replica has not shown. It is far behind by then.
const MAX_SENT: usize = 64;

/// What may be done with a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaState {
    /// Read it.
    Ok,
    /// It answers, and what it shows may be too old.
    Lagging,
    /// It does not answer, or a read of it has failed recently.
    Away,
}

/// What is known of a replica.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    sent: VecDeque<(i64, Instant)>,
    /// It shows everything that was acknowledged by then.
    as_of: Option<Instant>,
    answers: bool,
    shut_until: Option<Instant>,
}

impl Freshness {
    /// A beat is sent to the primary now.
    pub(super) fn send(&mut self, beat: i64, now: Instant) {
        self.sent.push_back((beat, now));
        if self.sent.len() > MAX_SENT {
            self.sent.pop_front();
        }
    }

    /// The replica shows this beat. Returns whether it is the last one.
    pub(super) fn show(&mut self, beat: i64) -> bool {
        self.answers = true;
        while let Some((_, at)) = self.sent.pop_front_if(|(sent, _)| *sent <= beat) {
            self.as_of = Some(at);
        }
        self.sent.is_empty()
    }

    /// The replica does not answer.
    pub(super) fn lose(&mut self) {
        self.answers = false;
    }

    /// A read of the replica has failed.
    pub(super) fn shut(&mut self, now: Instant) {
        self.shut_until = Some(now + SHUT);
    }

    /// How old what it shows may be; None where it has shown no beat yet.
    pub(super) fn age(&self, now: Instant) -> Option<Duration> {
        self.as_of.map(|as_of| now.saturating_duration_since(as_of))
    }

    pub(super) fn state(&self, now: Instant, max_lag: Duration) -> ReplicaState {
        if !self.answers || self.shut_until.is_some_and(|until| now < until) {
            ReplicaState::Away
        } else if self.age(now).is_some_and(|age| age <= max_lag) {
            ReplicaState::Ok
        } else {
            ReplicaState::Lagging
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: Duration = Duration::from_millis(500);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_is_as_old_as_the_last_beat_that_it_shows() {
        let (mut known, start) = (Freshness::default(), Instant::now());
        assert_eq!((known.state(start, LAG), known.age(start)), (ReplicaState::Away, None));
        assert!(known.show(0), "there is nothing to show yet");
        assert_eq!(known.state(start, LAG), ReplicaState::Lagging, "it answers, and nobody knows how old that is");
        known.send(1, start);
        known.send(2, start + ms(200));
        assert!(!known.show(1));
        assert_eq!(known.age(start + ms(300)), Some(ms(300)));
        assert!(known.show(2));
        assert_eq!(known.age(start + ms(300)), Some(ms(100)));
        assert!(known.show(2));
        assert_eq!(known.state(start + ms(700), LAG), ReplicaState::Ok);
        assert_eq!(known.state(start + ms(701), LAG), ReplicaState::Lagging);
        known.send(3, start + ms(800));
        assert!(!known.show(1), "an older beat makes it no older");
        assert_eq!(known.age(start + ms(800)), Some(ms(600)));
    }

    #[test]
    fn a_failure_keeps_reads_away_for_a_while_and_silence_until_it_answers() {
        let (mut known, start) = (Freshness::default(), Instant::now());
        known.send(1, start);
        known.show(1);
        known.shut(start);
        assert_eq!(known.state(start + ms(400), LAG), ReplicaState::Away);
        known.send(2, start + SHUT);
        known.show(2);
        assert_eq!(known.state(start + SHUT, LAG), ReplicaState::Ok);
        known.lose();
        assert_eq!(known.state(start + SHUT, LAG), ReplicaState::Away);
        known.show(2);
        assert_eq!(known.state(start + SHUT, LAG), ReplicaState::Ok);
    }

    #[test]
    fn beats_that_were_forgotten_say_nothing() {
        let (mut known, start) = (Freshness::default(), Instant::now());
        let count = i64::try_from(MAX_SENT).unwrap() + 10;
        (0..count).for_each(|beat| known.send(beat, start));
        assert_eq!(known.sent.len(), MAX_SENT);
        assert!(!known.show(5));
        assert_eq!(known.age(start), None);
    }
}
