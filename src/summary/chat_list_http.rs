//! The routes of a user's chats: groups and direct chats in one list.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::UnreadSummaryOut;
use super::chat_list::{self, Asked, Chat, ChatListContext, ChatOut, Chats, Page};
use super::http::ShownHead;
use super::kept::PageBody;
use super::read_chats::ReadChats;
use crate::base::error::{Code, Error, Problem, Result};
use crate::base::ids::{GroupId, MAX_HEAD, UserId};
use crate::db::in_time;
use crate::engine::entries::State;
use crate::engine::lanes::Job;
use crate::features::badges::ResetOut;
use crate::features::groups::part::groups;
use crate::features::inbox::direct_lists;
use crate::http::body::{Body, in_range, object, unique_map};
use crate::http::pages::{self, PageOut, PageParams};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::path::{PolledUser, UserOrMe, UserPath};
use crate::http::polling::{self, Resource, Seen, WaitParams};
use crate::http::served::Served;

/// The routes of this part.
pub fn routes() -> OpenApiRouter<Served<ChatListContext>> {
    OpenApiRouter::new()
        .routes(routes!(list_chats))
        .routes(routes!(get_group_chat))
        .routes(routes!(get_direct_chat))
        .routes(routes!(read_chats))
}

/// Which page of a user's chats.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChatsParams {
    /// With `true`, return only chats with unread messages, whatever their level.
    #[param(nullable = false)]
    unread: Option<bool>,
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    cursor: Option<String>,
    /// Hold the request for up to this many seconds until the response differs from the one that
    /// `If-None-Match` names; then return 304. Requires that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// How far the user has read chats.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadChatsIn {
    /// The chats to mark, each up to the `head` that the user saw; later messages stay unread. By
    /// default, all chats are marked as read.
    #[serde(default, deserialize_with = "object")]
    #[schema(nullable = false)]
    up_to: Option<ReadChatsUpToIn>,
}

/// Heads that the user saw, by group and by the other user of a direct chat.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadChatsUpToIn {
    /// The `head` of each group; at most 1000.
    #[serde(default, deserialize_with = "unique_map")]
    #[schema(nullable = false, value_type = Option<BTreeMap<GroupId, ShownHead>>, example = json!({"9": 57}))]
    groups: BTreeMap<GroupId, i64>,
    /// The `head` of each direct chat, a number in the user's own inbox; at most 1000.
    #[serde(default, deserialize_with = "unique_map")]
    #[schema(nullable = false, value_type = Option<BTreeMap<UserId, ShownHead>>, example = json!({"7": 12}))]
    directs: BTreeMap<UserId, i64>,
}

/// The most chats of each kind that a request names.
const MAX_NAMED: usize = 1000;

/// The most direct chats that are marked at once where none are named.
const MAX_DIRECTS: i64 = 5000;

impl ReadChatsUpToIn {
    /// The chats, each with its head.
    fn chats(self, user: UserId) -> Result<ReadChats, Problem> {
        let most = |name: &str, chats: usize| {
            if chats <= MAX_NAMED {
                Ok(())
            } else {
                Err(Problem::invalid(format!("/up_to/{name}"), format!("must have at most {MAX_NAMED} chats")))
            }
        };
        most("groups", self.groups.len())?;
        most("directs", self.directs.len())?;
        let groups = self
            .groups
            .into_iter()
            .map(|(id, head)| in_range(head, 0, MAX_HEAD, || format!("/up_to/groups/{id}")).map(|head| (id, Some(head))));
        let directs = self
            .directs
            .into_iter()
            .map(|(id, head)| in_range(head, 0, MAX_HEAD, || format!("/up_to/directs/{id}")).map(|head| (id, Some(head))));
        let (groups, directs) = (groups.collect::<Result<_, _>>()?, directs.collect::<Result<_, _>>()?);
        Ok(ReadChats { user, groups, directs, are_named: true })
    }
}

/// All chats of a user that have something to read.
async fn all_chats(state: &ChatListContext, user: UserId) -> Result<ReadChats> {
    let State::Current(entry) = state.groups.entries.read(user, 0).await else { return Err(Error::store_unavailable()) };
    // Every group, whatever this node knows of its head: what is there is decided under its lock.
    let groups = groups(&entry.parts).map(|(group, _)| (group, None)).collect();
    let peers = in_time(direct_lists::to_read(&state.groups.db, user, MAX_DIRECTS + 1)).await?;
    if i64::try_from(peers.len()).unwrap_or(i64::MAX) > MAX_DIRECTS {
        let detail = format!("The user has more than {MAX_DIRECTS} unread direct chats. Name the chats in up_to.");
        return Err(Problem::new(Code::TooMany, detail).into());
    }
    let directs = peers.into_iter().map(|peer| (peer, None)).collect();
    Ok(ReadChats { user, groups, directs, are_named: false })
}

/// Poll a user's chats
///
/// Groups and direct chats in one list, the latest activity first. Reading, settings and recalls are
/// not activity. A chat with a new message moves to the top: a client that walks through the pages
/// finds it there when it polls the first page again.
#[utoipa::path(get, path = "/v1/users/{user}/chats", tag = "chats",
    params(("user" = UserOrMe, Path), ChatsParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = PageOut<ChatOut>, headers(
            ("ETag" = String, description = "The version of the response"),
            ("Link" = String, description = "The next page, if any"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn list_chats(
    state: Served<ChatListContext>,
    PolledUser(user): PolledUser,
    uri: Uri,
    Query(params): Query<ChatsParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let ChatsParams { unread, limit, cursor, wait } = params;
    let (wait, unread_only) = (polling::wait_of(wait)?, unread == Some(true));
    let wanted = PageParams { limit, cursor }.wanted("chats", user)?;
    let asked = Asked::Page(Page { after: wanted.after, rows: wanted.rows(), unread_only });
    let read = |seen: Seen| {
        let (state, tags) = (&state, &tags);
        async move { chat_list::read(state, user, asked, seen, tags).await }
    };
    let next = OnceLock::new();
    let write = |found: &Chats| {
        let page = match &found.shown {
            Some(page) => page.clone(),
            None => new_page(&state, user, wanted, found)?,
        };
        next.get_or_init(|| page.next_cursor);
        Ok(page.bytes)
    };
    let polling = &state.groups.polling;
    let mut response = polling::poll(polling, user, wait, &tags, Resource { read, write }).await?;
    pages::add_link(&mut response, &uri, next.get().and_then(Option::as_deref))?;
    Ok(response)
}

/// Makes a page, and keeps it for the next poll.
fn new_page(state: &ChatListContext, user: UserId, wanted: pages::Wanted, found: &Chats) -> Result<PageBody> {
    let page = pages::page(wanted, &found.chats, Chat::position, |chat| found.out(chat));
    let page = PageBody { bytes: polling::json(&page)?, next_cursor: page.next_cursor };
    found.keep(state, user, &page);
    Ok(page)
}

/// Poll a user's group chat
///
/// The same as in the list of chats.
#[utoipa::path(get, path = "/v1/users/{user}/chats/group/{group}", tag = "chats",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("user" = UserOrMe, Path), ("group" = GroupId, Path), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = ChatOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_group_chat(
    state: Served<ChatListContext>,
    path: UserPath,
    Query(params): Query<WaitParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let group = path.get("group")?;
    one(&state, path.user, Asked::Group(group), params, &tags).await
}

/// Poll a user's direct chat
///
/// The same as in the list of chats. A chat without a message has no unread messages.
#[utoipa::path(get, path = "/v1/users/{user}/chats/direct/{peer}", tag = "chats",
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other user", example = "7"), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = ChatOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_direct_chat(
    state: Served<ChatListContext>,
    path: UserPath,
    Query(params): Query<WaitParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let peer = path.get("peer")?;
    one(&state, path.user, Asked::Direct(peer), params, &tags).await
}

async fn one(state: &ChatListContext, user: UserId, asked: Asked, params: WaitParams, tags: &IfNoneMatch) -> Result<Response> {
    let wait = polling::wait_of(params.wait)?;
    let read = |seen: Seen| async move {
        // Also where the client has the answer: without a message, the erasure changes nothing in the chat.
        if let Asked::Direct(peer) = asked {
            state.groups.entries.refuse_erased_peer(peer).await?;
        }
        chat_list::read(state, user, asked, seen, tags).await
    };
    let write = |found: &Chats| polling::json(&found.chats.first().map(|chat| found.out(chat)));
    match asked {
        Asked::Direct(_) => polling::poll_own(&state.groups.polling, user, wait, tags, Resource { read, write }).await,
        Asked::Page(_) | Asked::Group(_) => polling::poll(&state.groups.polling, user, wait, tags, Resource { read, write }).await,
    }
}

/// Mark chats as read
///
/// Marks all chats, or several chats up to the heads that the user saw, in one transaction. Messages
/// that arrive meanwhile stay unread. Returns the unread summary. With more than 5000 unread direct
/// chats, a request for all chats gets 409: name the chats then.
#[utoipa::path(post, path = "/v1/users/{user}/chats/read", tag = "chats",
    extensions(("x-problems" = json!(["not_found", "gone", "too_many"]))),
    params(("user" = UserOrMe, Path)),
    request_body(content = ReadChatsIn, description = "Optional. Default: all chats"),
    responses(
        (status = 200, body = UnreadSummaryOut)))]
async fn read_chats(state: Served<ChatListContext>, path: UserPath, body: Body<ReadChatsIn>) -> Result<Response> {
    let user = path.user;
    let command = Arc::new(match body.value.up_to {
        Some(up_to) => up_to.chats(user)?,
        None => all_chats(&state, user).await?,
    });
    let answer = state.groups.lanes.submit(Job { command: command.clone(), key: None }).await?;
    // Receipts show it at once.
    command.groups.iter().for_each(|(group, _)| state.groups.changes.tell(*group));
    let written: ResetOut = answer.value()?;
    state.summaries.after_write(user, written.revision).await
}
