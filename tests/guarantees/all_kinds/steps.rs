//! The steps of a case, and which of them come how often.

use proptest::prelude::*;

use super::model::USERS;

/// What is done. Whose routes are asked, and what the numbers of a [`Step`] mean, is said where it
/// is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Increment,
    IncrementMany,
    RetractAt,
    RetractNewest,
    Reset,
    ResetAll,
    DeleteBadge,
    SendNotice,
    Withdraw,
    DeleteChannel,
    ReadNotices,
    Light,
    DeleteDot,
    ClearDot,
    Post,
    PostAgain,
    DeletePost,
    ResetFeed,
    Follow,
    Unfollow,
    RemoveFollower,
    Approve,
    AcceptRequest,
    RefuseRequest,
    Block,
    Unblock,
    Mute,
    Unmute,
    /// What has ended of mutes is removed.
    SweepMutes,
    PutItem,
    DeleteItem,
    Access,
    SendNotification,
    ReadNotification,
    UnreadNotification,
    ReadNotifications,
    DeleteNotification,
    WithdrawNotification,
    EditNotification,
    SeeNotifications,
    PutGroup,
    DeleteGroup,
    Join,
    Leave,
    Say,
    SayAgain,
    Mention,
    MentionAll,
    ReadGroup,
    ReadOne,
    UnreadGroup,
    Recall,
    SetLevel,
    ExpireMessages,
    /// A user has a push device, or no longer.
    PushDevice,
    Tell,
    TellAgain,
    ReadDirect,
    UnreadDirect,
    RecallDirect,
    SilenceDirect,
    LeaveOut,
    ShareReceipts,
    /// An earlier request again, under its key.
    Repeat,
    /// The cache loses one user.
    ForgetUser,
    /// The cache loses everything.
    Forget,
    /// A node loses its lists.
    EvictLists,
    /// A node loses what it knows of shared heads.
    EvictHeads,
    /// A node ends and is started again.
    Restart,
    /// Time passes.
    Pass,
}

/// How often each comes.
const WEIGHTS: [(usize, What); 70] = [
    (5, What::Increment),
    (2, What::IncrementMany),
    (3, What::RetractAt),
    (2, What::RetractNewest),
    (3, What::Reset),
    (1, What::ResetAll),
    (2, What::DeleteBadge),
    (4, What::SendNotice),
    (2, What::Withdraw),
    (2, What::DeleteChannel),
    (3, What::ReadNotices),
    (2, What::Light),
    (1, What::DeleteDot),
    (2, What::ClearDot),
    (6, What::Post),
    (1, What::PostAgain),
    (4, What::DeletePost),
    (3, What::ResetFeed),
    (8, What::Follow),
    (3, What::Unfollow),
    (1, What::RemoveFollower),
    (3, What::Approve),
    (3, What::AcceptRequest),
    (1, What::RefuseRequest),
    (1, What::Block),
    (2, What::Unblock),
    (4, What::Mute),
    (2, What::Unmute),
    (1, What::SweepMutes),
    (5, What::PutItem),
    (2, What::DeleteItem),
    (4, What::Access),
    (6, What::SendNotification),
    (3, What::ReadNotification),
    (2, What::UnreadNotification),
    (2, What::ReadNotifications),
    (1, What::DeleteNotification),
    (3, What::WithdrawNotification),
    (1, What::EditNotification),
    (2, What::SeeNotifications),
    (3, What::PutGroup),
    (1, What::DeleteGroup),
    (6, What::Join),
    (2, What::Leave),
    (8, What::Say),
    (1, What::SayAgain),
    (4, What::Mention),
    (2, What::MentionAll),
    (3, What::ReadGroup),
    (3, What::ReadOne),
    (3, What::UnreadGroup),
    (2, What::Recall),
    (2, What::SetLevel),
    (2, What::ExpireMessages),
    (2, What::PushDevice),
    (6, What::Tell),
    (1, What::TellAgain),
    (3, What::ReadDirect),
    (2, What::UnreadDirect),
    (2, What::RecallDirect),
    (2, What::SilenceDirect),
    (2, What::LeaveOut),
    (4, What::ShareReceipts),
    (4, What::Repeat),
    (2, What::ForgetUser),
    (1, What::Forget),
    (2, What::EvictLists),
    (2, What::EvictHeads),
    (2, What::Restart),
    (2, What::Pass),
];

/// One step. Users and nodes are given by their index.
#[derive(Debug, Clone)]
pub struct Step {
    pub what: What,
    /// Who does it.
    pub user: usize,
    /// To whom.
    pub other: usize,
    /// Which of the things that there are, and other choices.
    pub which: usize,
    /// How far, as a share of what there is; none: all.
    pub percent: Option<usize>,
    /// Which node is asked.
    pub node: usize,
    /// The node is killed so many milliseconds after it was asked.
    pub doom: Option<u64>,
}

/// What every case begins with, so that there is something to meet: two groups with members, one of
/// which is not seen yet, and who follow each other in a ring.
pub fn opening() -> Vec<Step> {
    let step = |what, user, other, which| Step { what, user, other, which, percent: None, node: user, doom: None };
    // The second group writes into inboxes.
    let mut steps = vec![step(What::PutGroup, 0, 0, 0), step(What::PutGroup, 0, 0, 3)];
    for group in 0..2 {
        steps.extend([0, 1, USERS - 1].map(|user| step(What::Join, user, user, group)));
    }
    steps.extend((0..3).map(|user| step(What::Follow, user, (user + 1) % 3, 0)));
    steps.push(step(What::Follow, 1, 0, 0));
    steps
}

/// A case: its steps, and before which of them the last user does nothing that would have it seen.
#[derive(Debug, Clone)]
pub struct Case {
    pub late: usize,
    pub steps: Vec<Step>,
}

/// Cases of so many steps; with `deaths`, one step in so many has its node killed meanwhile.
pub fn cases(steps: std::ops::Range<usize>, deaths: Option<u32>) -> impl Strategy<Value = Case> {
    let kinds: Vec<What> = WEIGHTS.iter().flat_map(|(weight, what)| vec![*what; *weight]).collect();
    let doom = match deaths {
        None => Just(None).boxed(),
        Some(one_in) => prop_oneof![one_in - 1 => Just(None), 1 => (0_u64..9).prop_map(Some)].boxed(),
    };
    let who = (0..USERS, 0..USERS);
    let step = (prop::sample::select(kinds), who, 0_usize..1000, prop::option::of(0_usize..=110), 0_usize..2, doom);
    let step = step.prop_map(|(what, (user, other), which, percent, node, doom)| Step { what, user, other, which, percent, node, doom });
    (10_usize..50, prop::collection::vec(step, steps)).prop_map(|(late, steps)| Case { late, steps })
}
