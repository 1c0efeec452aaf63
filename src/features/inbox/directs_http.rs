//! The routes of direct chats.

use std::sync::OnceLock;

use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::direct_lists::{self, Directs};
use super::history::{self, Side};
use super::http::{InboxContext, submit};
use super::receipts;
use super::timed::Ended;
use super::{DirectLevel, DirectMessagesOut, DirectOut, DirectReceiptsOut, DirectSettingsOut, InboxCommand, ReadDirectOut};
use crate::base::clock::UnixMs;
use crate::base::error::{Error, Problem, Result};
use crate::base::ids::{MAX_HEAD, Seq, UserId};
use crate::db::DbResult;
use crate::engine::entries::State;
use crate::engine::lanes::Answer;
use crate::features::hidden_receipts::must_share;
use crate::features::level::LevelUntil;
use crate::http::answer::no_cache;
use crate::http::body::{Body, in_range, present};
use crate::http::pages::{self, PageOut, PageParams, Position};
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::polling::{self, Asked, PolledValue, Resource, Seen, Version, WaitParams, Wakers};
use crate::http::served::Served;

pub fn routes() -> OpenApiRouter<Served<InboxContext>> {
    OpenApiRouter::new()
        .routes(routes!(list_directs))
        .routes(routes!(get_direct))
        .routes(routes!(read_direct))
        .routes(routes!(unread_direct))
        .routes(routes!(list_direct_messages))
        .routes(routes!(recall_direct_message))
        .routes(routes!(get_direct_receipts))
        .routes(routes!(put_direct_settings))
}

/// Which page of a user's direct chats.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListDirectsParams {
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

/// Which messages of a direct chat. At most one of `after`, `before` and `around` may be given.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DirectMessagesParams {
    /// Return messages after this item of the inbox, in ascending order. By default, messages start
    /// with the oldest one kept.
    #[param(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    after: Option<i64>,
    /// Return messages before this item of the inbox, in descending order. A number above `head`
    /// starts with the newest message.
    #[param(nullable = false, minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    before: Option<i64>,
    /// Return messages on both sides of this item of the inbox, in ascending order: up to half of
    /// `limit` before it, and the others from it on.
    #[param(nullable = false, minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    around: Option<i64>,
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
}

impl DirectMessagesParams {
    fn side(&self) -> Result<Side, Problem> {
        let seq = |name: &str, seq: i64| {
            if (1..=MAX_HEAD).contains(&seq) { Ok(seq) } else { Err(Problem::query(name, format!("must be between 1 and {MAX_HEAD}"))) }
        };
        match (pages::after_of(self.after)?, self.before, self.around) {
            (None, None, None) => Ok(Side::Start),
            (Some(after), None, None) => Ok(Side::After(after)),
            (None, Some(before), None) => Ok(Side::Before(seq("before", before)?)),
            (None, None, Some(around)) => Ok(Side::Around(seq("around", around)?)),
            (Some(_), Some(_), _) => Err(Problem::query("before", "must be omitted when 'after' is set")),
            (Some(_), _, Some(_)) => Err(Problem::query("around", "must be omitted when 'after' is set")),
            (_, Some(_), Some(_)) => Err(Problem::query("around", "must be omitted when 'before' is set")),
        }
    }
}

/// How far a user has read a direct chat.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadDirectIn {
    /// An item of the user's own inbox: later messages of the peer stay unread. By default, all
    /// current messages are marked as read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    up_to: Option<i64>,
}

/// From where on a direct chat is unread again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UnreadDirectIn {
    /// An item of the user's own inbox.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 57)]
    from: i64,
}

/// Settings of a direct chat.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutDirectSettingsIn {
    /// What `chats` and `total` count: `all` messages or `none`. The chat keeps its own count.
    level: DirectLevel,
    /// When the level ends and is `all` again. By default, it does not end.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    until: Option<UnixMs>,
}

/// How often the user's own state is read again because the direct chats are of a newer one.
const MAX_READS: u32 = 4;

/// The version of an answer: levels that end change it without a write.
fn version(revision: i64, ended: Ended) -> Version {
    Version::new(revision, ended.versions())
}

impl InboxContext {
    /// Direct chats, not older than what the client has seen. They change with the user's revision and
    /// with levels that end, so the database need not be asked where the client has them already.
    async fn poll_directs<F>(
        &self,
        user: UserId,
        seen: Seen,
        tags: &IfNoneMatch,
        read: impl Fn(UnixMs) -> F,
    ) -> Result<PolledValue<Directs>>
    where
        F: Future<Output = DbResult<Directs>>,
    {
        let mut revision = seen.revision();
        for read_again in (0..MAX_READS).rev() {
            let State::Current(entry) = self.entries.read(user, revision).await else { break };
            let now = self.clock.now();
            let ended = Ended::of(&entry.parts, now);
            let version = version(entry.revision, ended);
            let polled = |value| PolledValue { value, version: Some(version), changes_at: ended.next };
            if tags.matches(&seen.tag(version)) {
                return Ok(polled(Directs::default()));
            }
            let directs = self.entries.in_turn(read(now)).await?;
            // Both should be of one state of the user. One who changes faster than that can be read has the older tag.
            if directs.revision <= entry.revision || read_again == 0 {
                return Ok(polled(directs));
            }
            revision = directs.revision;
        }
        Err(Error::store_unavailable())
    }
}

/// Poll a user's direct chats
///
/// Most recently active first.
#[utoipa::path(get, path = "/v1/users/{user}/directs", tag = "inbox",
    params(("user" = UserOrMe, Path), ListDirectsParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = PageOut<DirectOut>, headers(
            ("ETag" = String, description = "The version of the response"),
            ("Link" = String, description = "The next page, if any"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn list_directs(
    state: Served<InboxContext>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<ListDirectsParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let (user, wait) = (path.user, polling::wait_of(params.wait)?);
    let wanted = PageParams { limit: params.limit, cursor: params.cursor }.wanted("directs", user)?;
    let read = |seen: Seen| {
        let (state, tags) = (state.clone(), &tags);
        async move {
            let before = (wanted.after.at, wanted.after.id);
            state.poll_directs(user, seen, tags, |now| direct_lists::list(&state.db, user, before, wanted.rows(), now)).await
        }
    };
    let next = OnceLock::new();
    let write = |directs: &Directs| {
        let position = |chat: &DirectOut| Position { at: chat.last_seq, id: chat.peer_id.get() };
        let page = pages::page(wanted, &directs.chats, position, DirectOut::clone);
        next.get_or_init(|| page.next_cursor.clone());
        polling::json(&page)
    };
    let mut response = polling::poll_own(&state.polling, user, wait, &tags, Resource { read, write }).await?;
    pages::add_link(&mut response, &uri, next.get().and_then(Option::as_deref))?;
    Ok(response)
}

/// Poll a direct chat
///
/// Returns zeros for a user with whom there is no chat.
#[utoipa::path(get, path = "/v1/users/{user}/directs/{peer}", tag = "inbox",
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other user", example = "7"), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = DirectOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_direct(state: Served<InboxContext>, path: UserPath, Query(params): Query<WaitParams>, tags: IfNoneMatch) -> Result<Response> {
    let (user, peer, wait) = (path.user, path.get("peer")?, polling::wait_of(params.wait)?);
    let read = |seen: Seen| {
        let (state, tags) = (state.clone(), &tags);
        async move {
            // Also where the client has the answer: without a message, the erasure changes nothing in the chat.
            state.entries.refuse_erased_peer(peer).await?;
            state.poll_directs(user, seen, tags, |now| direct_lists::one(&state.db, user, peer, now)).await
        }
    };
    let write = |directs: &Directs| match directs.chats.first() {
        Some(chat) => polling::json(chat),
        None => Err(Error::store_unavailable()),
    };
    polling::poll_own(&state.polling, user, wait, &tags, Resource { read, write }).await
}

/// Mark a direct chat as read
///
/// Marks messages as read up to an item of the user's own inbox, or all current messages. Marks
/// never go back. An expired message stays unread until it is marked by the number of its item.
#[utoipa::path(post, path = "/v1/users/{user}/directs/{peer}/read", tag = "inbox",
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other user", example = "7")),
    request_body(content = ReadDirectIn, description = "Optional. Default: all current items"),
    responses(
        (status = 200, body = ReadDirectOut)))]
async fn read_direct(state: Served<InboxContext>, path: UserPath, body: Body<ReadDirectIn>) -> Result<Answer> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    submit(&state, InboxCommand::Read { user: path.user, peer: path.get("peer")?, up_to }).await
}

/// Mark a direct chat as unread
///
/// The peer's messages from an item of the user's own inbox on show as unread again. A later read
/// moves that point forward; sending a message or reading everything ends it. `read_seq` and the
/// peer's receipts do not change. Returns 410 `cursor_expired` with `earliest_seq` if the item has
/// expired.
#[utoipa::path(post, path = "/v1/users/{user}/directs/{peer}/unread", tag = "inbox",
    extensions(("x-problems" = json!(["not_found", "cursor_expired"]))),
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other user", example = "7")),
    request_body = UnreadDirectIn,
    responses(
        (status = 200, body = ReadDirectOut)))]
async fn unread_direct(state: Served<InboxContext>, path: UserPath, body: Body<UnreadDirectIn>) -> Result<Answer> {
    let from = in_range(body.value.from, 1, MAX_HEAD, || "/from".to_owned())?;
    submit(&state, InboxCommand::Unread { user: path.user, peer: path.get("peer")?, from }).await
}

/// List the messages of a direct chat
///
/// Returns the messages of both sides, as the user's own inbox has them. Oldest first by default and
/// with `after`, newest first with `before`, and in ascending order with `around`. Returns 410
/// `cursor_expired` with `earliest_seq` if the item at which the page begins has expired.
#[utoipa::path(get, path = "/v1/users/{user}/directs/{peer}/messages", tag = "inbox",
    extensions(("x-problems" = json!(["cursor_expired"]))),
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other user", example = "7"), DirectMessagesParams),
    responses(
        (status = 200, body = DirectMessagesOut)))]
async fn list_direct_messages(state: Served<InboxContext>, path: UserPath, Query(params): Query<DirectMessagesParams>) -> Result<Response> {
    let (peer, side, limit) = (path.get("peer")?, params.side()?, pages::limit_of(params.limit)?);
    let page = history::page(&state.db, path.user, peer, side, i64::from(limit)).await?;
    state.entries.refuse_erased_peer(peer).await?;
    Ok(no_cache(&page))
}

/// Poll the receipts of a direct chat
///
/// Returns the last of the user's own messages that a device of the other user has fetched, by the
/// cursors of its devices, and the last one that the other user has read. Messages that the other
/// user read while it did not share receipts do not show as read. A user who does not share receipts
/// gets 403 `receipts_hidden`.
#[utoipa::path(get, path = "/v1/users/{user}/directs/{peer}/receipts", tag = "inbox",
    extensions(("x-problems" = json!(["receipts_hidden"]))),
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other user", example = "7"), WaitParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = DirectReceiptsOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_direct_receipts(
    state: Served<InboxContext>,
    path: UserPath,
    Query(params): Query<WaitParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let (user, peer, wait) = (path.user, path.get::<UserId>("peer")?, polling::wait_of(params.wait)?);
    let read = |_: Seen| {
        let state = state.clone();
        async move {
            let value = state.entries.in_turn(receipts::read(&state.db, user, peer)).await?;
            state.entries.refuse_erased_peer(peer).await?;
            must_share(&state.entries, Some(user)).await?;
            Ok(PolledValue { version: Some(receipts::version(value)), value, changes_at: None })
        }
    };
    // What the peer has read, and whether the user may see it.
    let wakers = Wakers { user: Some(user), peer: Some(peer), also: None, shared: false };
    let asked = Asked { tags: &tags, about: Some(user), wait };
    polling::poll_on(&state.polling, asked, wakers, Resource { read, write: polling::json::<DirectReceiptsOut> }).await
}

/// Recall a direct message
///
/// The message is no longer unread, and a tombstone replaces it in both inboxes. Both inboxes get an
/// item with the number of the message in that inbox as `recall`. Returns 204 also if the message
/// was already recalled.
#[utoipa::path(delete, path = "/v1/users/{user}/directs/{peer}/messages/{seq}", tag = "inbox",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other user", example = "7"),
        ("seq" = Seq, Path, description = "The number of the message in the user's own inbox")),
    responses(
        (status = 204, description = "Recalled")))]
async fn recall_direct_message(state: Served<InboxContext>, path: UserPath, _: Query<NoParams>) -> Result<Answer> {
    let seq = path.get::<Seq>("seq")?.get();
    submit(&state, InboxCommand::Recall { user: path.user, peer: path.get("peer")?, seq }).await
}

/// Update the settings of a direct chat
///
/// A chat of level `none` keeps its own count, which `chats` and `total` exclude. At `until` the
/// level is `all` again. While the user blocks or mutes the other user, the level is `none`; this
/// setting applies again after that ends.
#[utoipa::path(put, path = "/v1/users/{user}/directs/{peer}/settings", tag = "inbox",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other user", example = "7")),
    request_body = PutDirectSettingsIn,
    responses(
        (status = 200, body = DirectSettingsOut)))]
async fn put_direct_settings(state: Served<InboxContext>, path: UserPath, body: Body<PutDirectSettingsIn>) -> Result<Answer> {
    let PutDirectSettingsIn { level, until } = body.value;
    let level = LevelUntil::asked(level.into(), until, state.clock.now())?;
    submit(&state, InboxCommand::SetLevel { user: path.user, peer: path.get("peer")?, level }).await
}
