//! What of a chat has expired, and was recalled, against a list of the peer's messages.

use proptest::prelude::*;

use super::*;
use crate::base::ids::UserId;

/// A message of the peer.
#[derive(Debug, Clone, Copy)]
struct Theirs {
    seq: i64,
    unread: bool,
    recalled: bool,
    kept: bool,
    /// There were too many runs of expired messages for it.
    left_out: bool,
}

impl Theirs {
    fn is_in_runs(&self) -> bool {
        self.unread && !self.recalled && !self.kept && !self.left_out
    }
}

/// One of the first messages, or of the last.
type At = (bool, usize);

#[derive(Debug, Clone, Copy)]
enum Step {
    /// So many messages come, each so many rows after the one before.
    Send(usize, i64),
    /// So many rows expire.
    Expire(usize),
    /// The user reads up to a message, or to a row so far behind it.
    Read(At, i64),
    Recall(At),
    UnreadAgain(At),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = || (any::<bool>(), prop_oneof![0..12_usize, 0..400_usize]);
    let step = prop_oneof![
        3 => (1..3_usize, 1..3_i64).prop_map(|(count, apart)| Step::Send(count, apart)),
        3 => Just(Step::Expire(1)),
        // Some of these together are more runs than are kept.
        2 => Just(Step::Send(40, 2)),
        2 => Just(Step::Expire(50)),
        2 => (at(), 0..2_i64).prop_map(|(at, behind)| Step::Read(at, behind)),
        4 => at().prop_map(Step::Recall),
        1 => at().prop_map(Step::UnreadAgain),
    ];
    prop::collection::vec(step, 1..60)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap()
}

#[derive(Debug, Default)]
struct Chat {
    direct: Direct,
    list: Vec<Theirs>,
}

impl Chat {
    /// With these steps done.
    fn after(steps: impl IntoIterator<Item = Step>) -> Self {
        let mut chat = Self::default();
        steps.into_iter().for_each(|step| chat.apply(step));
        chat
    }

    fn index(&self, (from_end, n): At) -> Option<usize> {
        let n = n.checked_rem(self.list.len())?;
        Some(if from_end { self.list.len() - 1 - n } else { n })
    }

    fn gone(&self) -> usize {
        self.list.iter().take_while(|of| !of.kept).count()
    }

    fn unread(&self) -> i64 {
        number(self.list.iter().filter(|of| of.unread && !of.recalled).count())
    }

    /// What a row of the inbox is in the chat.
    fn place(&self, up_to: i64) -> Place {
        let recalled_after = number(self.list.iter().filter(|of| of.seq > up_to && of.recalled && of.kept).count());
        match self.list.iter().rposition(|of| of.seq <= up_to && of.kept) {
            Some(at) => Place { peer_seq: number(at + 1), seq: self.list[at].seq, recalled_after },
            None => self.direct.place_of_expired(up_to, recalled_after),
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Send(count, apart) => {
                for _ in 0..count {
                    let seq = self.direct.last_seq + apart;
                    self.list.push(Theirs { seq, unread: true, recalled: false, kept: true, left_out: false });
                    (self.direct.head, self.direct.last_seq) = (self.direct.head + 1, seq);
                }
            }
            Step::Expire(count) => {
                for at in (self.gone()..self.list.len()).take(count) {
                    let Theirs { seq, recalled, .. } = self.list[at];
                    let peer = UserId::try_from(1).unwrap();
                    self.direct.expire(&Oldest { peer, peer_seq: number(at + 1), own: false, recalled, seq });
                    self.list[at].kept = false;
                }
            }
            Step::Read(at, behind) => {
                let Some(at) = self.index(at) else { return };
                let up_to = self.list[at].seq + behind;
                self.direct.read(self.place(up_to), up_to);
                for of in self.list.iter_mut().filter(|of| of.seq <= up_to || of.left_out) {
                    (of.unread, of.left_out) = (false, false);
                }
            }
            Step::Recall(at) => {
                let Some(at) = self.index(at).filter(|at| !self.list[*at].recalled) else { return };
                if self.list[at].kept {
                    self.direct.recall(number(at + 1));
                } else {
                    self.direct.recall_expired(self.list[at].seq);
                }
                self.list[at].recalled = true;
            }
            Step::UnreadAgain(at) => {
                let Some(at) = self.index(at).filter(|at| self.list[*at].kept) else { return };
                let from = self.list[at].seq;
                self.direct.unread_again(self.place(from - 1), from);
                self.list.iter_mut().skip(at).for_each(|of| of.unread = true);
            }
        }
        self.leave_out();
    }

    /// Only the highest runs are kept.
    fn leave_out(&mut self) {
        let (mut runs, mut left_out) = (self.runs(), 0);
        while runs.runs() > MAX_GONE_RUNS {
            left_out = runs.drop_first().unwrap();
        }
        for of in self.list.iter_mut().filter(|of| of.is_in_runs() && of.seq <= left_out) {
            of.left_out = true;
        }
    }

    fn runs(&self) -> Intervals {
        let mut runs = Intervals::default();
        self.list.iter().filter(|of| of.is_in_runs()).for_each(|of| runs.insert(of.seq, of.seq));
        runs
    }
}

proptest! {
    /// Every row is a message of the peer, or is of another chat.
    #[test]
    fn what_expires_and_is_recalled_counts_as_in_a_list(steps in steps()) {
        let mut chat = Chat::default();
        for step in steps {
            chat.apply(step);
            prop_assert_eq!(chat.direct.unread(), chat.unread(), "{:?} {:?}", step, chat);
            prop_assert_eq!(&chat.direct.gone_seqs, &chat.runs(), "{:?} {:?}", step, chat);
        }
    }
}

/// The messages are at 2, 4, … 240; those up to 40 are left out of the runs.
const MANY: [Step; 2] = [Step::Send(120, 2), Step::Expire(120)];

#[test]
fn a_recalled_message_that_was_left_out_is_no_longer_unread() {
    let mut chat = Chat::after(MANY);
    let mut unread = |step| {
        chat.apply(step);
        chat.direct.unread()
    };
    assert_eq!([3, 60, 3].map(|at| unread(Step::Recall((false, at)))), [119, 118, 118]);
    assert_eq!(unread(Step::Read((false, 0), 0)), 99, "one in the runs was recalled");
    assert_eq!(unread(Step::Recall((false, 4))), 99, "it was read");
}

#[test]
fn what_a_read_cleared_stays_read_when_others_are_left_out() {
    let mut chat = Chat::after(MANY);
    for step in [Step::Read((false, 0), 0), Step::Send(1, 2), Step::Expire(1)] {
        chat.apply(step);
    }
    let mut unread = |at| {
        chat.apply(Step::Recall((false, at)));
        chat.direct.unread()
    };
    assert_eq!([5, 20, 5].map(&mut unread), [101, 100, 100], "of those that were left out, only the last is unread");
}

#[test]
fn a_message_that_is_unread_again_is_recalled_below_the_last_read_one() {
    // Of the first three, all of them read, the last two are unread again.
    let first = [Step::Send(3, 2), Step::Read((true, 0), 0), Step::UnreadAgain((false, 1)), Step::Expire(3)];
    let mut chat = Chat::after(first.into_iter().chain(MANY));
    let mut unread = |at| {
        chat.apply(Step::Recall((false, at)));
        chat.direct.unread()
    };
    assert_eq!([4, 5, 0, 2, 1].map(&mut unread), [121, 120, 120, 119, 118]);
}
