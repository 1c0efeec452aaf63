//! What is left in groups when a user is erased. Its messages stay as tombstones without a sender, unread
//! for nobody; others' messages mention it no longer; its memberships end and keep the ordinal alone, so
//! that receipts stay what they were. The only event is `user_erased`.

use super::members::end_membership;
use super::messages::take_back;
use super::rows::GroupRows;
use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::{GroupId, UserId};
use crate::db::{Column, Statement, Type, in_time};
use crate::engine::lanes::{self, Answer, Names, Needs, Rows};
use crate::engine::marks::StreamKey;
use crate::features::removals::{Engines, Place, Progress, Step, delete_pages, user_of};

/// How many messages one batch makes tombstones of.
const MESSAGES_AT_ONCE: i64 = 200;

/// How many messages one batch looks at for mentions.
const LOOKED_AT_ONCE: i64 = 5000;

/// The first group after an id in which the user was a member, or is known from a log: an imported message
/// may be all that a group has of its sender. The export lists it, too.
pub(super) static NEXT_GROUP: Statement = Statement::one(
    "select g.group_id
    from (
        select m.group_id from memberships m where m.user_id = $1 and m.group_id > $2
        union
        select l.group_id from group_log_members l where l.user_id = $1 and l.group_id > $2
    ) g
    order by g.group_id
    limit 1",
    &[("user_id", Type::Int), ("after", Type::Int)],
);

static OWN_MESSAGES: Statement = Statement::one(
    "select m.seq
    from group_messages m
    where m.group_id = $1 and m.sender_id = $2
    order by m.client_id
    limit $3",
    &[("group_id", Type::Int), ("sender_id", Type::Int), ("max_rows", Type::Int)],
);

/// Messages, each with whether it mentions the user.
static MENTIONS: Statement = Statement::one(
    "select m.seq, case when m.mentions like $4 then 1 else 0 end
    from group_messages m
    where m.group_id = $1 and m.seq > $2
    order by m.group_id, m.seq
    limit $3",
    &[("group_id", Type::Int), ("after", Type::Int), ("max_rows", Type::Int), ("pattern", Type::Text)],
);

/// Names stand between spaces; where none is left, there is no space either.
static FORGET_MENTIONS: Statement = Statement::new(
    "update group_messages
    set mentions = case
        when replace(group_messages.mentions, r.name, ' ') = ' ' then ''
        else replace(group_messages.mentions, r.name, ' ') end
    from {rows} r
    where group_messages.group_id = r.group_id and group_messages.seq = r.seq",
    &[("group_id", Type::Int), ("seq", Type::Int), ("name", Type::Text)],
)
.by("group_id");

static MEMBERSHIP: Statement =
    Statement::one("select m.group_id from memberships m where m.user_id = $1 order by m.group_id limit 1", &[("user_id", Type::Int)]);

static OWN: [Statement; 1] = [Statement::one(
    "delete from group_log_members
    where user_id = $1 and group_id in (select l.group_id from group_log_members l where l.user_id = $1 order by l.group_id limit $2)",
    &[("user_id", Type::Int), ("max_rows", Type::Int)],
)];

/// Every statement of this file, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    [&OWN_MESSAGES, &MENTIONS, &FORGET_MENTIONS, &MEMBERSHIP].into_iter().chain(&OWN).collect()
}

/// The steps that remove a user from its groups. Each goes from group to group, in the order of their
/// ids; the memberships by which they are found go last.
#[must_use]
pub fn steps() -> Vec<Step> {
    vec![
        Step::new("group_messages", &["group_messages"], |engines, subject, place| async move {
            erase_messages(&engines, user_of(subject)?, place).await
        }),
        Step::new(
            "group_mentions",
            &[],
            |engines, subject, place| async move { forget_mentions(&engines, user_of(subject)?, place).await },
        ),
        Step::new("memberships", &["memberships"], |engines, subject, _| async move {
            let user = user_of(subject)?;
            let Some(group) = membership(&engines, user).await? else { return Ok(Progress::Done) };
            engines.submit(EraseMembership { user, group }).await.map(|()| Progress::More(Place::default()))
        }),
        delete_pages("group_logs", &["group_log_members"], &OWN),
    ]
}

fn ints<const N: usize>(values: [i64; N]) -> [Column; N] {
    values.map(|value| Column::Int(vec![value]))
}

async fn next_group(engines: &Engines, user: UserId, after: i64) -> Result<Option<GroupId>> {
    let rows: Vec<(i64,)> = in_time(engines.db.fetch(&NEXT_GROUP, &ints([user.get(), after]))).await?;
    Ok(rows.first().and_then(|(group,)| GroupId::try_from(*group).ok()))
}

/// The group at which a step is: that of its place, or the first.
async fn group_at(engines: &Engines, user: UserId, place: &Place) -> Result<Option<GroupId>> {
    match GroupId::try_from(place.id) {
        Ok(group) => Ok(Some(group)),
        Err(_) => next_group(engines, user, 0).await,
    }
}

/// A step has nothing left in a group.
async fn leave_behind(engines: &Engines, user: UserId, group: GroupId) -> Result<Progress> {
    Ok(next_group(engines, user, group.get()).await?.map_or(Progress::Done, |next| Progress::More(Place::id(next.get()))))
}

fn is_full(rows: usize, most: i64) -> bool {
    i64::try_from(rows).unwrap_or(i64::MAX) >= most
}

async fn erase_messages(engines: &Engines, user: UserId, place: Place) -> Result<Progress> {
    let Some(group) = group_at(engines, user, &place).await? else { return Ok(Progress::Done) };
    let columns = ints([group.get(), user.get(), MESSAGES_AT_ONCE]);
    let rows: Vec<(i64,)> = in_time(engines.db.fetch(&OWN_MESSAGES, &columns)).await?;
    if rows.is_empty() {
        return leave_behind(engines, user, group).await;
    }
    engines.submit(EraseMessages { group, seqs: rows.into_iter().map(|(seq,)| seq).collect() }).await?;
    Ok(Progress::More(Place::id(group.get())))
}

async fn forget_mentions(engines: &Engines, user: UserId, place: Place) -> Result<Progress> {
    let Some(group) = group_at(engines, user, &place).await? else { return Ok(Progress::Done) };
    let name = format!(" {user} ");
    let [of_group, after, most] = ints([group.get(), place.seq, LOOKED_AT_ONCE]);
    let rows: Vec<(i64, i32)> =
        in_time(engines.db.fetch(&MENTIONS, &[of_group, after, most, Column::Text(vec![format!("%{name}%")])])).await?;
    let seqs: Vec<_> = rows.iter().filter(|(_, names)| *names == 1).map(|(seq, _)| *seq).collect();
    if !seqs.is_empty() {
        let of_group = Column::Int(vec![group.get(); seqs.len()]);
        let columns = [of_group, Column::Int(seqs.clone()), Column::Text(vec![name; seqs.len()])];
        in_time(engines.db.run(&FORGET_MENTIONS, &columns)).await?;
    }
    match rows.last().filter(|_| is_full(rows.len(), LOOKED_AT_ONCE)) {
        Some((seq, _)) => Ok(Progress::More(Place::of(group.get(), *seq))),
        None => leave_behind(engines, user, group).await,
    }
}

/// A group of which the user still has memberships.
async fn membership(engines: &Engines, user: UserId) -> Result<Option<GroupId>> {
    let rows: Vec<(i64,)> = in_time(engines.db.fetch(&MEMBERSHIP, &ints([user.get()]))).await?;
    Ok(rows.first().and_then(|(group,)| GroupId::try_from(*group).ok()))
}

/// Messages of a user that is erased.
#[derive(Debug, Clone)]
struct EraseMessages {
    group: GroupId,
    seqs: Vec<i64>,
}

impl lanes::Command for EraseMessages {
    fn needs(&self, needs: &mut Needs) {
        needs.head(StreamKey::group(self.group));
        let of = needs.of::<GroupRows>();
        of.groups.insert(self.group);
        of.messages.extend(self.seqs.iter().map(|seq| (self.group, *seq)));
    }

    fn lane_key(&self) -> i64 {
        self.group.get()
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn weight(&self) -> u32 {
        u32::try_from(self.seqs.len()).unwrap_or(u32::MAX)
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        let is_deleted = rows.get::<GroupRows>().group(self.group).is_some_and(|group| group.deleted);
        for seq in &self.seqs {
            if let Some(message) = rows.get::<GroupRows>().message(self.group, *seq) {
                rows.get_mut::<GroupRows>().erase_sender(self.group, *seq);
                let message = super::Message { sender: None, ..message };
                if is_deleted {
                    // The message itself goes soon; what it says goes now.
                    rows.get_mut::<GroupRows>().recall(self.group, *seq, &message);
                } else if message.recalled {
                    last_changed(rows, self.group, *seq);
                } else {
                    take_back(rows, self.group, *seq, &message, now)?;
                }
            }
        }
        Ok(Answer::no_content())
    }
}

/// Lists of chats show the last message of a group, also one that was recalled. It names its sender no
/// longer, so they are another answer.
fn last_changed(rows: &mut Rows, group: GroupId, seq: i64) {
    let key = StreamKey::group(group);
    let mut stream = rows.head(&key);
    if stream.head == seq {
        stream.version += 1;
        rows.set_head(&key, stream);
    }
}

/// A user that is erased leaves a group, and its memberships lose its id.
#[derive(Debug, Clone, Copy)]
struct EraseMembership {
    user: UserId,
    group: GroupId,
}

impl lanes::Command for EraseMembership {
    fn needs(&self, needs: &mut Needs) {
        needs.user(self.user);
        needs.head(StreamKey::group(self.group));
        let of = needs.of::<GroupRows>();
        of.groups.insert(self.group);
        of.spans.insert((self.user, self.group));
    }

    fn lane_key(&self) -> i64 {
        self.group.get()
    }

    fn names(&self) -> Names {
        Vec::new()
    }

    fn apply(&self, rows: &mut Rows, now: UnixMs) -> Result<Answer, Problem> {
        end_membership(rows, self.group, self.user, now);
        rows.get_mut::<GroupRows>().forget_member(self.user, self.group);
        Ok(Answer::no_content())
    }
}
