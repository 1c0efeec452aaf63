//! The route of a group's history: pages of its messages, in both directions.

use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::history::{FoundMessages, HistoryPage, Place, Stretch, Window};
use super::http::{GroupContext, GroupPath};
use super::last_read::{LastRead, PageBody};
use super::{Message, expired, lists};
use crate::base::clock::UnixMs;
use crate::base::error::{Problem, Result};
use crate::base::ids::{GroupId, MAX_HEAD, UserId};
use crate::db::DbResult;
use crate::http::pages;
use crate::http::params::{IfNoneMatch, Query};
use crate::http::polling::{self, Asked, PolledValue, Resource, Seen, Wakers};
use crate::http::served::Served;

/// The routes of this part.
pub fn routes() -> OpenApiRouter<Served<GroupContext>> {
    OpenApiRouter::new().routes(routes!(list_group_messages))
}

/// Which messages. At most one of `after`, `before` and `around` may be given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GroupMessagesParams {
    /// Return messages after this number, in ascending order. By default, messages start with the
    /// oldest one kept after the member joined.
    #[param(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    after: Option<i64>,
    /// Return messages before this number, in descending order. A number above `head` starts with
    /// the newest message.
    #[param(nullable = false, minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    before: Option<i64>,
    /// Return messages on both sides of this number, in ascending order: up to half of `limit`
    /// before it, and the others from it on.
    #[param(nullable = false, minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    around: Option<i64>,
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// Hold the request for up to this many seconds while there are no messages after `after`. With
    /// `before` or `around`: until the response differs from the one that `If-None-Match` names,
    /// which is then required.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

impl GroupMessagesParams {
    fn place(&self) -> Result<Place, Problem> {
        let seq = |name: &str, seq: i64| {
            if (1..=MAX_HEAD).contains(&seq) { Ok(seq) } else { Err(Problem::query(name, format!("must be between 1 and {MAX_HEAD}"))) }
        };
        match (pages::after_of(self.after)?, self.before, self.around) {
            (None, None, None) => Ok(Place::Start),
            (Some(after), None, None) => Ok(Place::After(after)),
            (None, Some(before), None) => Ok(Place::Before(seq("before", before)?)),
            (None, None, Some(around)) => Ok(Place::Around(seq("around", around)?)),
            (Some(_), Some(_), _) => Err(Problem::query("before", "must be omitted when 'after' is set")),
            (Some(_), _, Some(_)) => Err(Problem::query("around", "must be omitted when 'after' is set")),
            (_, Some(_), Some(_)) => Err(Problem::query("around", "must be omitted when 'before' is set")),
        }
    }
}

/// A group message. A recalled message has only its number and sender, and one of an erased user its
/// number alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupMessageOut {
    /// The number of the message in the group.
    #[schema(minimum = 1, example = 121)]
    pub seq: i64,
    /// The sender; omitted if that user was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sender_id: Option<UserId>,
    /// The content.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub content: Option<String>,
    /// When it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sent_at: Option<UnixMs>,
    /// True if the message was recalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub recalled: Option<bool>,
}

impl GroupMessageOut {
    pub(crate) fn new((seq, message): (i64, Message)) -> Self {
        let shown = !message.recalled;
        Self {
            seq,
            sender_id: message.sender,
            content: shown.then_some(message.content),
            sent_at: shown.then_some(message.sent_at),
            recalled: (!shown).then_some(true),
        }
    }
}

/// A page of group messages: in descending order with `before`, otherwise in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GroupMessagesOut {
    /// The messages.
    pub items: Vec<GroupMessageOut>,
    /// The value of `after` that continues with newer messages.
    #[schema(minimum = 0, example = 140)]
    pub next_after: i64,
    /// With `before` and `around`: the value of `before` that continues with older messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, example = 121)]
    pub next_before: Option<i64>,
    /// Whether there are more messages in the direction of the page: older ones with `before`,
    /// otherwise newer ones.
    pub has_more: bool,
    /// With `around`: whether there are older messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub has_older: Option<bool>,
    /// The number of messages ever sent.
    #[schema(minimum = 0, example = 240)]
    pub head: i64,
}

impl GroupMessagesOut {
    fn new(page: HistoryPage, place: Place) -> Self {
        let HistoryPage { messages, next_after, next_before, has_older, has_newer, head } = page;
        let items = messages.into_iter().map(GroupMessageOut::new).collect();
        let (has_more, has_older) = match place {
            Place::Before(_) => (has_older.unwrap_or_default(), None),
            _ => (has_newer, has_older),
        };
        Self { items, next_after, next_before, has_more, has_older, head }
    }
}

/// List the messages of a group
///
/// A member sees the messages sent since the last time the member joined. Oldest first by default
/// and with `after`, newest first with `before`, and in ascending order with `around`. With `wait`,
/// the request is held while there are no messages after `after`. Returns 410 `cursor_expired` with
/// `earliest_seq` if the message at which the page begins has expired.
#[utoipa::path(get, path = "/v1/groups/{group}/messages", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone", "cursor_expired"]))),
    params(("group" = GroupId, Path), GroupMessagesParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = GroupMessagesOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn list_group_messages(
    state: Served<GroupContext>,
    path: GroupPath,
    Query(params): Query<GroupMessagesParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let (place, limit, wait) = (params.place()?, pages::limit_of(params.limit)?, polling::wait_of(params.wait)?);
    let (user, changes) = (path.user(), (wait > 0).then(|| state.changes.listen(path.group)).flatten());
    let last = LastRead::new(&state, path.group, user, wait > 0);
    // A replica may be behind what the client has seen, and a recall raises no number in its tag.
    let may_be_late = wait == 0 && !tags.is_present();
    let read = |_: Seen| {
        let (state, path, last) = (&state, &path, &last);
        async move {
            let page = last.read(read(state, path, place, limit, may_be_late)).await?;
            Ok(PolledValue { version: Some(page.version), value: page, changes_at: None })
        }
    };
    let resource = Resource { read, write: |page: &PageBody| Ok(page.bytes.clone()) };
    let (asked, wakers) = (Asked { tags: &tags, about: None, wait }, Wakers { user, peer: None, also: changes, shared: true });
    match place {
        Place::Start | Place::After(_) => polling::poll_after(&state.polling, asked, wakers, resource, |page| page.is_empty).await,
        Place::Before(_) | Place::Around(_) => polling::poll_on(&state.polling, asked, wakers, resource).await,
    }
}

async fn read(state: &GroupContext, path: &GroupPath, place: Place, limit: u32, may_be_late: bool) -> Result<PageBody> {
    let view = path.view(&state.db).await?;
    // Up to the head that was read first: then head and messages belong together.
    let window = Window::new(place, limit, view.since.unwrap_or(0), view.head);
    // Where there is nothing to read, it needs no turn.
    let [wants_older, wants_newer] = [window.older, window.newer].map(|stretch| stretch.filter(|stretch| stretch.up_to > stretch.above));
    let older = match wants_older {
        Some(stretch) => state.entries.in_turn(lists::messages_down(&state.db, path.group, stretch)).await?,
        None => Vec::new(),
    };
    let newer = match wants_newer {
        Some(stretch) => state.entries.in_turn(newer(state, path, stretch, may_be_late)).await?,
        None => Vec::new(),
    };
    match window.page(older, newer) {
        Ok(page) => {
            let page = GroupMessagesOut::new(page, place);
            PageBody::new(&page, page.head, page.items.is_empty())
        }
        Err(_) => Err(expired(path.group, lists::earliest(&state.db, path.group).await?).into()),
    }
}

/// Reads messages upwards, from a replica too where a member asks once, without a tag. Head and membership
/// are the primary's, so what a replica does not have yet is missed and read there. What this node has
/// recalled shows here at once. A held poll keeps what it read, so it reads from the primary.
async fn newer(state: &GroupContext, path: &GroupPath, stretch: Stretch, may_be_late: bool) -> DbResult<FoundMessages> {
    let read = |db| lists::messages(db, path.group, stretch);
    if path.user().is_some() && may_be_late && !state.recalled.has(&path.group) {
        let messages = state.pages.read(read).await?;
        let last = messages.last().map_or(stretch.above, |(seq, _)| *seq);
        if last == stretch.up_to || i64::try_from(messages.len()) == Ok(stretch.rows()) {
            return Ok(messages);
        }
    }
    read(&state.db).await
}
