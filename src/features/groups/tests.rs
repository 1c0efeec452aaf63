//! The rules against a naive model of plain sets: who was there when a message was sent, and who
//! has read it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::base::error::Code;
use crate::cache::Parts;
use crate::engine::lanes::{self, Rows};
use crate::engine::marks::{Numbers, StreamKey, numbers};
use crate::features::groups::part::{group_part, groups};
use crate::features::groups::rows::GroupRows;
use crate::features::level::LevelUntil;
use crate::features::receipts::answers::{ScreenfulOut, screenful};
use crate::features::receipts::{Count, Span, Spans};
use crate::features::users::settings::{PatchSettings, SettingsPatch};
use crate::http::polling::Version;

const USERS: i64 = 5;

#[test]
fn who_makes_much_unread_again_waits_for_its_own_turns() {
    let (user, group) = (UserId::try_from(1).unwrap(), GroupId::try_from(9).unwrap());
    let unread = GroupCommand::Unread { user, group, from: 3 };
    assert_eq!((lanes::Command::weight(&unread), lanes::Command::by_user(&unread)), (100, Some(user)));
}

#[derive(Debug, Clone)]
enum Act {
    Join(BTreeSet<i64>),
    Leave(i64),
    Send { user: i64, client: u8, named: Vec<i64>, all: bool },
    Recall { seq: i64, by: Option<i64> },
    Read { user: i64, up_to: Option<i64> },
    One { user: i64, seq: i64 },
    Unread { user: i64, from: i64 },
    Level { user: i64, level: LevelUntil },
    Share { user: i64, shares: bool },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (user, seq) = (1..=USERS, 0..20_i64);
    let level = (0..3_i64, 0..3_i64).prop_map(|(code, until)| LevelUntil::from_row(code, until));
    let named = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(user.clone(), 1..3)];
    let send = (user.clone(), 0..40_u8, named, prop::bool::weighted(0.2));
    let send = send.prop_map(|(user, client, named, all)| Act::Send { user, client, named, all });
    let act = prop_oneof![
        3 => prop::collection::btree_set(user.clone(), 1..4).prop_map(Act::Join),
        2 => user.clone().prop_map(Act::Leave),
        6 => send,
        1 => (seq.clone(), prop::option::of(user.clone())).prop_map(|(seq, by)| Act::Recall { seq, by }),
        3 => (user.clone(), prop::option::of(seq.clone())).prop_map(|(user, up_to)| Act::Read { user, up_to }),
        4 => (user.clone(), seq.clone()).prop_map(|(user, seq)| Act::One { user, seq }),
        3 => (user.clone(), seq).prop_map(|(user, from)| Act::Unread { user, from }),
        1 => (user.clone(), level).prop_map(|(user, level)| Act::Level { user, level }),
        2 => (user, any::<bool>()).prop_map(|(user, shares)| Act::Share { user, shares }),
    ];
    prop::collection::vec(act, 1..80)
}

/// One time that somebody was a member: the messages sent meanwhile, and those of them that were
/// read.
#[derive(Debug, Clone, Default, PartialEq)]
struct Stay {
    from: i64,
    level: LevelUntil,
    there: BTreeSet<i64>,
    read: BTreeSet<i64>,
    /// Those that show as read.
    shown: BTreeSet<i64>,
    /// Messages of which nobody sees whether they are read.
    hidden: BTreeSet<i64>,
    open: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Person {
    ordinal: usize,
    stays: Vec<Stay>,
}

#[derive(Debug, Default)]
struct Model {
    /// The sender and her id of each message, and whether it was recalled.
    messages: Vec<(i64, u8, bool)>,
    /// Whom each message mentions: by name, and all.
    mentions: Vec<(BTreeSet<i64>, bool)>,
    people: BTreeMap<i64, Person>,
    /// Those who do not share receipts.
    hiding: BTreeSet<i64>,
    revisions: BTreeMap<i64, i64>,
}

impl Model {
    fn head(&self) -> i64 {
        self.messages.len().try_into().unwrap()
    }

    fn message(&mut self, seq: i64) -> Option<&mut (i64, u8, bool)> {
        self.messages.get_mut(usize::try_from(seq).ok()?.checked_sub(1)?)
    }

    fn stay(&mut self, user: i64) -> Option<&mut Stay> {
        self.people.get_mut(&user)?.stays.last_mut().filter(|stay| stay.open)
    }

    fn revise(&mut self, user: i64, changed: bool) {
        *self.revisions.entry(user).or_default() += i64::from(changed);
    }

    /// What the act answers, and what it changes.
    fn act(&mut self, act: &Act) -> Result<(), Code> {
        match act {
            Act::Join(users) => {
                for user in users {
                    let (next, from) = (self.people.len() + 1, self.head());
                    if self.stay(*user).is_none() {
                        let person = self.people.entry(*user).or_insert_with(|| Person { ordinal: next, ..Person::default() });
                        person.stays.push(Stay { from, open: true, ..Stay::default() });
                        self.revise(*user, true);
                    }
                }
            }
            Act::Leave(user) => {
                let left = self.stay(*user).map(|stay| stay.open = false).is_some();
                self.revise(*user, left);
            }
            Act::Send { user, client, named, all } => {
                if let Some((.., recalled)) = self.messages.iter().find(|(sender, id, _)| sender == user && id == client) {
                    return if *recalled { Err(Code::Gone) } else { Ok(()) };
                }
                self.stay(*user).ok_or(Code::Forbidden)?;
                if named.iter().any(|id| self.stay(*id).is_none()) {
                    return Err(Code::InvalidBody);
                }
                let named: BTreeSet<_> = named.iter().copied().filter(|id| id != user).collect();
                named.iter().for_each(|id| self.revise(*id, true));
                self.mentions.push((named, *all));
                self.messages.push((*user, *client, false));
                let seq = self.head();
                for (member, person) in &mut self.people {
                    for stay in person.stays.iter_mut().filter(|stay| stay.open) {
                        stay.there.insert(seq);
                        if self.hiding.contains(member) {
                            stay.hidden.insert(seq);
                        }
                    }
                }
                let stay = self.stay(*user).unwrap();
                stay.read = stay.there.clone();
                stay.shown = stay.there.clone();
                self.revise(*user, true);
            }
            Act::Recall { seq, by } => {
                let stranger = by.is_some_and(|by| self.stay(by).is_none());
                let message = self.message(*seq).ok_or(if stranger { Code::Forbidden } else { Code::NotFound })?;
                if by.is_some_and(|by| by != message.0) {
                    return Err(Code::Forbidden);
                }
                message.2 = true;
            }
            Act::Read { user, up_to } => {
                let up_to = up_to.unwrap_or(i64::MAX);
                let stay = self.stay(*user).ok_or(Code::Forbidden)?;
                let before = (stay.read.len(), stay.shown.len());
                stay.read.extend(stay.there.iter().filter(|seq| **seq <= up_to));
                stay.shown.extend(stay.there.iter().filter(|seq| **seq <= up_to));
                let changed = (stay.read.len(), stay.shown.len()) != before;
                self.revise(*user, changed);
            }
            Act::One { user, seq } => {
                let stay = self.stay(*user).ok_or(Code::Forbidden)?;
                if !stay.there.contains(seq) {
                    return Err(Code::NotFound);
                }
                if self.message(*seq).unwrap().2 {
                    return Err(Code::Gone);
                }
                let stay = self.stay(*user).unwrap();
                let (is_new, is_less) = (stay.read.insert(*seq), stay.shown.insert(*seq));
                self.revise(*user, is_new || is_less);
            }
            Act::Unread { user, from } => {
                let own = (1..).zip(&self.messages).filter(|(_, (by, ..))| by == user).map(|(seq, _)| seq).collect::<BTreeSet<i64>>();
                let stay = self.stay(*user).ok_or(Code::Forbidden)?;
                if !stay.there.contains(from) {
                    return Err(Code::NotFound);
                }
                let before = stay.shown.clone();
                stay.shown.retain(|seq| seq < from || own.contains(seq));
                let changed = stay.shown != before;
                self.revise(*user, changed);
            }
            Act::Level { user, level } => {
                let stay = self.stay(*user).ok_or(Code::Forbidden)?;
                let changed = std::mem::replace(&mut stay.level, *level) != *level;
                self.revise(*user, changed);
            }
            Act::Share { user, shares } => {
                let changed = if *shares { self.hiding.remove(user) } else { self.hiding.insert(*user) };
                let recalled: BTreeSet<i64> = (1..).zip(&self.messages).filter(|(_, message)| message.2).map(|(seq, _)| seq).collect();
                if changed
                    && !shares
                    && let Some(stay) = self.stay(*user)
                {
                    // From the first one that is not read, and still there to be.
                    let is_recalled = |seq: &&i64| recalled.contains(seq);
                    let first = stay.there.difference(&stay.read).find(|seq| !is_recalled(seq)).copied().unwrap_or(i64::MAX);
                    stay.hidden.extend(stay.there.iter().copied().filter(|seq| *seq >= first));
                }
                self.revise(*user, changed);
            }
        }
        Ok(())
    }

    fn unread(&self, stay: &Stay) -> impl Iterator<Item = i64> {
        let counts = |seq: &&i64| !self.messages[usize::try_from(**seq - 1).unwrap()].2;
        stay.there.difference(&stay.shown).filter(counts).copied()
    }

    fn numbers(&self, user: i64, stay: &Stay) -> Numbers {
        let unread: Vec<_> = self.unread(stay).collect();
        let mentions = |seq: &&i64| {
            let at = usize::try_from(**seq - 1).unwrap();
            self.messages[at].0 != user && (self.mentions[at].1 || self.mentions[at].0.contains(&user))
        };
        let count = |count: usize| i64::try_from(count).unwrap();
        let mentions = count(unread.iter().filter(mentions).count());
        Numbers { unread: count(unread.len()), mentions, first: unread.first().copied() }
    }

    /// The recipients of a message with their ordinals, whether they have read it, and whether they
    /// have left since.
    fn recipients(&self, seq: i64) -> Vec<(i64, usize, bool, bool)> {
        let sender = self.messages[usize::try_from(seq - 1).unwrap()].0;
        let mut all = Vec::new();
        for (user, person) in self.people.iter().filter(|(user, _)| **user != sender) {
            let stays = person.stays.iter().filter(|stay| stay.there.contains(&seq));
            all.extend(stays.map(|stay| (*user, person.ordinal, stay.read.contains(&seq) && !stay.hidden.contains(&seq), !stay.open)));
        }
        all.sort_by_key(|(_, ordinal, ..)| *ordinal);
        all
    }
}

fn user(id: i64) -> UserId {
    UserId::try_from(id).unwrap()
}

fn the_group() -> GroupId {
    GroupId::try_from(9).unwrap()
}

fn command(act: &Act, rows: &Rows) -> Arc<dyn lanes::Command> {
    let group = the_group();
    let command = match act.clone() {
        Act::Join(users) if users.len() == 1 => GroupCommand::Join { group, user: user(*users.first().unwrap()) },
        Act::Join(users) => GroupCommand::JoinMany { group, users: users.into_iter().map(user).collect() },
        Act::Leave(id) => GroupCommand::Leave { group, user: user(id) },
        Act::Send { user: id, client, named, all } => {
            let (client_id, content) = (format!("c{client}").parse().unwrap(), "hello".to_owned());
            let message = NewMessage { client_id, content, mentions: named.into_iter().map(user).collect(), mention_all: all };
            GroupCommand::Send { group, sender: user(id), message }
        }
        Act::Recall { seq, by } => GroupCommand::Recall { group, seq, by: by.map(user) },
        Act::Read { user: id, up_to } => GroupCommand::Read { user: user(id), group, up_to },
        Act::One { user: id, seq } => GroupCommand::ReadOne { user: user(id), group, seq },
        Act::Unread { user: id, from } => GroupCommand::Unread { user: user(id), group, from },
        Act::Level { user: id, level } => GroupCommand::SetLevel { user: user(id), group, level },
        Act::Share { user: id, shares } => {
            let is_in = rows.get::<GroupRows>().latest(user(id), group).is_some_and(|(_, of)| of.is_open());
            let patch = SettingsPatch { share_receipts: Some(shares), ..SettingsPatch::default() };
            return Arc::new(PatchSettings { user: user(id), patch, groups: is_in.then_some(group).into_iter().collect() });
        }
    };
    Arc::new(command)
}

fn run(rows: &mut Rows, command: &dyn lanes::Command) -> Result<Value, Code> {
    match command.apply(rows, UnixMs(1)) {
        Ok(answer) => {
            rows.settle();
            Ok(serde_json::from_str(&answer.json().unwrap()).unwrap_or_default())
        }
        Err(problem) => {
            rows.undo();
            Err(problem.code)
        }
    }
}

/// As the rows would be read.
fn spans(rows: &Rows) -> Spans {
    let span = |(id, of): (UserId, Membership)| Span {
        ordinal: of.ordinal,
        user: Some(id),
        from_seq: of.from_seq,
        to_seq: of.to_seq,
        reading: Reading::from_row(of.reading.read_seq(), &of.reading.extra_data()),
        hidden: Hidden::from_row(&of.hidden.to_row()),
    };
    let mut spans: Vec<_> = rows.get::<GroupRows>().all_memberships().into_iter().map(span).collect();
    spans.sort_by_key(|span| (span.ordinal, span.from_seq));
    Spans::new(spans)
}

fn bits(ordinals: impl Iterator<Item = usize>, max_ordinal: usize) -> Vec<u8> {
    let mut bits = vec![0; max_ordinal.div_ceil(8)];
    ordinals.for_each(|ordinal| bits[(ordinal - 1) / 8] |= 1 << ((ordinal - 1) % 8));
    bits
}

/// Every number that follows from the memberships.
fn compare(model: &Model, rows: &Rows) {
    let stream = rows.head(&StreamKey::group(the_group()));
    assert_eq!(stream.head, model.head());
    let group = rows.get::<GroupRows>().group(the_group()).unwrap();
    let open = |person: &&Person| person.stays.last().is_some_and(|stay| stay.open);
    assert_eq!(group.members, i64::try_from(model.people.values().filter(open).count()).unwrap());
    assert_eq!(group.ordinals, i64::try_from(model.people.len()).unwrap());
    for (id, person) in &model.people {
        let (_, of) = rows.get::<GroupRows>().latest(user(*id), the_group()).unwrap();
        let level = person.stays.last().filter(|stay| stay.open).map(|stay| stay.level).unwrap_or_default();
        assert_eq!((of.ordinal, of.level, of.is_open()), (person.ordinal.try_into().unwrap(), level, open(&person)));
        if of.is_open() {
            let gone = stream.retracted.union(&of.shown().extra_runs());
            let counted = numbers(stream.head, of.shown().read_seq(), &gone, &stream.mention_all.union(&of.mentions));
            assert_eq!(counted, model.numbers(*id, person.stays.last().unwrap()));
            let mut parts = Parts::new();
            parts.extend([group_part(the_group(), Some(&GroupMark::from(of)))]);
            assert_eq!(groups(&parts).next(), Some((the_group(), GroupMark::from(of))), "the entry holds all of it");
        }
        assert_eq!(rows.user(user(*id)).chat_groups, i64::from(of.is_open()));
    }
    for (id, revision) in &model.revisions {
        assert_eq!(rows.revision(user(*id)), *revision, "user {id}");
    }
    compare_receipts(model, &spans(rows));
}

fn compare_receipts(model: &Model, spans: &Spans) {
    let senders: Vec<_> = model.messages.iter().map(|(sender, ..)| Some(user(*sender))).collect();
    let counts = spans.counts(1, &senders);
    for (seq, count) in (1..).zip(&counts) {
        // A recalled message has no receipts: nobody can ask for them.
        if model.messages[usize::try_from(seq - 1).unwrap()].2 {
            continue;
        }
        let recipients = model.recipients(seq);
        let read = recipients.iter().filter(|(_, _, read, _)| *read).count();
        let model_count = Count { recipients: recipients.len().try_into().unwrap(), read: read.try_into().unwrap() };
        assert_eq!(*count, model_count, "message {seq}");
        let sender = model.messages[usize::try_from(seq - 1).unwrap()].0;
        assert_eq!(spans.counts(seq, &[Some(user(sender))]), [model_count], "alone as in a screenful");
        for wanted in [true, false] {
            let listed: Vec<_> =
                spans.recipients(seq, user(sender), wanted, 0).map(|of| (of.user.unwrap().get(), of.ordinal, of.left)).collect();
            let these = recipients.iter().filter(|(_, _, read, _)| *read == wanted);
            assert_eq!(listed, these.map(|(id, ordinal, _, left)| (*id, (*ordinal).try_into().unwrap(), *left)).collect::<Vec<_>>());
        }
        let known: Vec<_> = model.people.iter().filter(|(_, person)| person.stays[0].from < seq).collect();
        let max_ordinal = known.iter().map(|(_, person)| person.ordinal).max().unwrap();
        let bitmaps = spans.bitmaps(seq, user(sender));
        assert_eq!(bitmaps.max_ordinal, i64::try_from(max_ordinal).unwrap());
        assert_eq!(bitmaps.read, bits(recipients.iter().filter(|(_, _, read, _)| *read).map(|(_, ordinal, ..)| *ordinal), max_ordinal));
        let quit = known.iter().filter(|(_, person)| person.stays.iter().all(|stay| !stay.there.contains(&seq)));
        assert_eq!(bitmaps.quit, bits(quit.map(|(_, person)| person.ordinal), max_ordinal));
    }
}

/// Of each message who is seen to have read it, and who is not; its sender among them.
fn shown_reads(rows: &Rows) -> Vec<[Vec<i64>; 2]> {
    let (spans, head) = (spans(rows), rows.head(&StreamKey::group(the_group())).head);
    let of = |seq: i64, read: bool| spans.recipients(seq, user(i64::from(u32::MAX)), read, 0).map(|of| of.ordinal).collect();
    (1..=head).map(|seq| [of(seq, true), of(seq, false)]).collect()
}

/// What each user is shown of its own messages, with the version that the tag is made from.
fn screens(model: &Model, rows: &Rows) -> Vec<(ScreenfulOut, Version)> {
    let sent: Vec<_> = (1..).zip(&model.messages).map(|(seq, (sender, _, recalled))| (seq, Some(user(*sender)), *recalled)).collect();
    let spans = spans(rows);
    let screen = |of: i64| {
        let (out, age) = screenful(&spans, 1, model.head(), &sent, Some(user(of)));
        (out, age.version)
    };
    (1..=USERS).map(screen).collect()
}

proptest! {
    #[test]
    fn groups_are_plain_sets(acts in acts()) {
        let (mut model, mut rows) = (Model::default(), Rows::new(crate::app::ROW_SETS));
        run(&mut rows, &GroupCommand::Put { group: the_group(), delivery: None, receipts: None }).unwrap();
        let (mut progress, mut shown) = (0, Vec::new());
        let mut before = screens(&model, &rows);
        for act in &acts {
            let (wanted, got) = (model.act(act), {
                let command = command(act, &rows);
                run(&mut rows, &*command)
            });
            prop_assert_eq!(wanted.err(), got.as_ref().err().copied(), "{:?}", act);
            if let (Act::Read { user, .. } | Act::One { user, .. } | Act::Unread { user, .. }, Ok(body)) = (act, &got) {
                let unread = model.unread(model.people[user].stays.last().unwrap()).count();
                prop_assert_eq!(body["unread"].as_u64(), u64::try_from(unread).ok(), "{:?}", act);
            }
            compare(&model, &rows);
            let now = spans(&rows).progress();
            prop_assert!(now >= progress, "what wakes polls never goes back");
            let shows = shown_reads(&rows);
            let is_same = shows.iter().take(shown.len()).eq(&shown);
            prop_assert!(is_same || now > progress, "what is shown has changed: {:?}", act);
            if matches!(act, Act::Read { .. } | Act::One { .. } | Act::Unread { .. }) && is_same {
                prop_assert_eq!(now, progress, "what is read and hidden shows: {:?}", act);
            }
            (progress, shown) = (now, shows);
            let after = screens(&model, &rows);
            for ((out, version), (out_before, version_before)) in after.iter().zip(&before) {
                prop_assert_eq!(out == out_before, version == version_before, "a tag tells what is shown, and nothing else: {:?}", act);
                let least = version_before.revision + i64::from(out != out_before && !matches!(act, Act::Send { .. }));
                prop_assert!(version.revision >= least || matches!(act, Act::Share { .. }), "a node tells which is newer: {:?}", act);
            }
            before = after;
        }
    }
}

#[test]
fn nothing_is_done_in_a_group_that_is_not_there() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    for act in [
        Act::Join([1].into()),
        Act::Leave(1),
        Act::Read { user: 1, up_to: None },
        Act::Send { user: 1, client: 1, named: vec![], all: false },
    ] {
        let command = command(&act, &rows);
        assert_eq!(run(&mut rows, &*command), Err(Code::NotFound), "{act:?}");
    }
}

#[test]
fn the_limits_are_exact() {
    let mut rows = Rows::new(crate::app::ROW_SETS);
    for n in 1..=MAX_GROUPS + 1 {
        let group = GroupId::try_from(n).unwrap();
        run(&mut rows, &GroupCommand::Put { group, delivery: None, receipts: None }).unwrap();
        let joined = run(&mut rows, &GroupCommand::Join { group, user: user(1) });
        assert_eq!(joined.err(), (n > MAX_GROUPS).then_some(Code::TooMany));
    }
    run(&mut rows, &GroupCommand::Leave { group: GroupId::try_from(7).unwrap(), user: user(1) }).unwrap();
    run(&mut rows, &GroupCommand::Join { group: GroupId::try_from(MAX_GROUPS + 1).unwrap(), user: user(1) }).unwrap();
}
