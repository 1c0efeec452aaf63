//! The routes of broadcasts.

use std::sync::Arc;

use axum::Json;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::command::ReadOut;
use super::{BroadcastChannelOut, BroadcastCommand, ContentOut, NoticeOut, store};
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Error, Problem, Result};
use crate::base::ids::{MAX_HEAD, Name, Seq, UserId};
use crate::base::lately::Lately;
use crate::db::{Db, PageReads};
use crate::engine::entries::{Entries, State};
use crate::engine::heads::Heads;
use crate::engine::lanes::{Answer, Job, Lanes, after_commit};
use crate::engine::marks::Kind;
use crate::engine::marks::parts::{enrolled, mark};
use crate::engine::marks::users::NOT_ENROLLED;
use crate::http::auth::{Caller, Service};
use crate::http::body::{Body, IdempotencyKey, in_range, present, raw_object, text_within};
use crate::http::name_pages::{self, NamePageParams};
use crate::http::pages::{self, PageOut, PageParams, Position};
use crate::http::params::{NoParams, Query};
use crate::http::path::{LivingCaller, PathParams, UserOrMe, UserPath};
use crate::http::served::Served;

/// How long a title may be, in characters.
pub const MAX_TITLE: usize = 200;

/// How long a text may be, in characters.
pub const MAX_BODY: usize = 10_000;

/// How long `data` may be, in bytes of JSON.
pub const MAX_DATA_BYTES: usize = 16 * 1024;

/// What the handlers of broadcasts work with.
#[derive(Debug)]
pub struct BroadcastContext {
    pub lanes: Lanes,
    pub db: Db,
    /// For pages behind the first one.
    pub pages: PageReads,
    /// The channels of which this node has withdrawn something lately.
    pub withdrawn: Lately<Name>,
    pub heads: Arc<Heads>,
    pub entries: Arc<Entries>,
    pub clock: Clock,
}

pub fn routes() -> OpenApiRouter<Served<BroadcastContext>> {
    OpenApiRouter::new()
        .routes(routes!(list_channels))
        .routes(routes!(send_broadcast, list_broadcasts, delete_channel))
        .routes(routes!(withdraw_broadcast))
        .routes(routes!(list_user_broadcasts))
        .routes(routes!(read_broadcasts))
}

/// A broadcast to all users.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendBroadcastIn {
    /// The title.
    #[schema(min_length = 1, max_length = 200, example = "Maintenance tonight")]
    title: String,
    /// The text.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, max_length = 10_000)]
    body: Option<String>,
    /// Additional data for clients: a JSON object of up to 16 KiB, kept verbatim. Numbers must fit a double.
    #[serde(default, deserialize_with = "raw_object")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    data: Option<Box<RawValue>>,
    /// When the broadcast expires for all users.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    expires_at: Option<UnixMs>,
}

/// How far a user has read a channel.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadBroadcastsIn {
    /// The head that the user saw. Later items stay unread. By default, all current items are
    /// marked as read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    up_to: Option<i64>,
}

/// The unread broadcasts of a user in a channel.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChannelOut {
    /// The channel.
    channel: Name,
    /// The number of unread broadcasts.
    #[schema(minimum = 0, example = 0)]
    unread: i64,
    /// The total number, including read and removed ones.
    #[schema(minimum = 0, example = 57)]
    head: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 919)]
    revision: i64,
}

/// List the channels
///
/// In the order of their names, without deleted channels.
#[utoipa::path(get, path = "/v1/broadcasts", tag = "broadcasts",
    params(NamePageParams),
    responses(
        (status = 200, body = PageOut<BroadcastChannelOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_channels(
    state: Served<BroadcastContext>,
    LivingCaller(caller): LivingCaller,
    uri: Uri,
    Query(params): Query<NamePageParams>,
) -> Result<Response> {
    let wanted = params.wanted("channels")?;
    let broadcast_state = state.heads.broadcast_state_to_list(caller.is_service()).await?;
    let channels = broadcast_state.channels.iter().filter_map(|(name, channel)| {
        let name: Name = name.parse().ok()?;
        Some((name.clone(), BroadcastChannelOut { channel: name, head: channel.head }))
    });
    name_pages::respond(&uri, &wanted, channels)
}

/// Delete a channel
///
/// Withdraws all broadcasts of the channel, which leaves the unread summary. If a broadcast is sent
/// to it again, its `head` continues. Returns 204 also if there is no such channel.
#[utoipa::path(delete, path = "/v1/broadcasts/{channel}", tag = "broadcasts",
    params(("channel" = Name, Path, example = "system")),
    responses(
        (status = 204, description = "Deleted")))]
async fn delete_channel(state: Served<BroadcastContext>, _: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    let channel = path.name("channel")?;
    let answer = state.lanes.submit(Job { command: Arc::new(BroadcastCommand::Delete(channel.clone())), key: None }).await;
    state.withdrawn.changed(channel);
    answer
}

/// Send a broadcast
///
/// Sends one broadcast to all users. The cost does not depend on the number of users.
#[utoipa::path(post, path = "/v1/broadcasts/{channel}", tag = "broadcasts",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("channel" = Name, Path, example = "system"),
        ("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body = SendBroadcastIn,
    responses(
        (status = 201, body = NoticeOut)))]
async fn send_broadcast(
    state: Served<BroadcastContext>,
    service: Service,
    path: PathParams,
    key: IdempotencyKey,
    body: Body<SendBroadcastIn>,
) -> Result<Answer> {
    let channel = path.name("channel")?;
    let SendBroadcastIn { title, body: text, data, expires_at } = body.value;
    text_within(&title, 1, MAX_TITLE, "/title")?;
    text.as_ref().map_or(Ok(()), |text| text_within(text, 0, MAX_BODY, "/body"))?;
    if data.as_ref().is_some_and(|data| data.get().len() > MAX_DATA_BYTES) {
        return Err(Problem::invalid("/data", format!("must have at most {MAX_DATA_BYTES} bytes")).into());
    }
    let content = ContentOut { title, body: text, data };
    let content = serde_json::to_string(&content).map_err(|error| crate::base::error::Fault::Bug(error.to_string()))?;
    let command = BroadcastCommand::Send { channel, content: content.into(), expires_at };
    state.lanes.submit(Job { command: Arc::new(command), key: key.of(&service.caller(), &body.digest) }).await
}

/// List the broadcasts of a channel
///
/// Newest first, without withdrawn and expired broadcasts.
#[utoipa::path(get, path = "/v1/broadcasts/{channel}", tag = "broadcasts",
    params(("channel" = Name, Path, example = "system"), PageParams),
    responses(
        (status = 200, body = PageOut<NoticeOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_broadcasts(
    state: Served<BroadcastContext>,
    LivingCaller(caller): LivingCaller,
    path: PathParams,
    uri: Uri,
    Query(params): Query<PageParams>,
) -> Result<Response> {
    let channel = path.name("channel")?;
    let wanted = params.wanted("broadcasts", &channel)?;
    let read = |db| store::page(db, &channel, wanted.after.at, state.clock.now(), wanted.rows());
    // Behind the first page nothing is new. The first one must have what unread numbers count.
    let is_old = wanted.after != Position::TOP && matches!(caller, Caller::User { .. }) && !state.withdrawn.has(&channel);
    let notices = if is_old { state.pages.read(read).await? } else { read(&state.db).await? };
    pages::respond(&uri, wanted, &notices, place, |(seq, notice)| NoticeOut::new(&channel, *seq, notice, None))
}

fn place<T>((seq, _): &(i64, T)) -> Position {
    Position { at: *seq, id: 0 }
}

/// Withdraw a broadcast
///
/// Users who have not read the broadcast get an unread count lower by one. Returns 204 also if it
/// was already withdrawn.
#[utoipa::path(delete, path = "/v1/broadcasts/{channel}/{seq}", tag = "broadcasts",
    extensions(("x-problems" = json!(["not_found"]))),
    params(("channel" = Name, Path, example = "system"), ("seq" = Seq, Path, example = 57)),
    responses(
        (status = 204, description = "Withdrawn")))]
async fn withdraw_broadcast(state: Served<BroadcastContext>, _: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    let channel = path.name("channel")?;
    let command = BroadcastCommand::Withdraw { channel: channel.clone(), seq: path.get::<Seq>("seq")?.get() };
    let answer = state.lanes.submit(Job { command: Arc::new(command), key: None }).await;
    state.withdrawn.changed(channel);
    answer
}

/// How far a user has read a channel: a notice is read by either.
struct ReadUpTo {
    /// Notices up to this seq are read.
    mark: i64,
    /// Notices up to this head of the broadcast state came before the user.
    enrolled: i64,
}

async fn read_up_to(state: &BroadcastContext, user: UserId, channel: &Name) -> Result<ReadUpTo> {
    let entries = state.entries.read_many(&[user]).await?;
    let entry = entries.first().ok_or_else(Error::store_unavailable)?;
    let mark = mark(&entry.parts, Kind::Broadcast, channel.as_str());
    // Everything that is there is old to somebody who was not seen yet.
    let enrolled = Some(enrolled(&entry.parts)).filter(|at| *at > NOT_ENROLLED).unwrap_or(i64::MAX);
    Ok(ReadUpTo { mark, enrolled })
}

/// List a user's broadcasts of a channel
///
/// Newest first, with the read status of each. Broadcasts sent before the user was enrolled count
/// as read.
#[utoipa::path(get, path = "/v1/users/{user}/broadcasts/{channel}", tag = "broadcasts",
    params(("user" = UserOrMe, Path), ("channel" = Name, Path, example = "system"), PageParams),
    responses(
        (status = 200, body = PageOut<NoticeOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_user_broadcasts(
    state: Served<BroadcastContext>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<PageParams>,
) -> Result<Response> {
    let channel = path.name("channel")?;
    let wanted = params.wanted("broadcasts", &channel)?;
    let since = read_up_to(&state, path.user, &channel).await?;
    let notices = store::page(&state.db, &channel, wanted.after.at, state.clock.now(), wanted.rows()).await?;
    let read = |seq: i64, notice: &super::Notice| seq <= since.mark || notice.position <= since.enrolled;
    pages::respond(&uri, wanted, &notices, place, |(seq, notice)| NoticeOut::new(&channel, *seq, notice, Some(read(*seq, notice))))
}

/// Mark a channel as read
///
/// Send back the `head` of the unread summary as `up_to` to clear exactly what the user saw. A
/// repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/broadcasts/{channel}/read", tag = "broadcasts",
    params(("user" = UserOrMe, Path), ("channel" = Name, Path, example = "system")),
    request_body(content = ReadBroadcastsIn, description = "Optional. Default: all current items"),
    responses(
        (status = 200, body = ChannelOut)))]
async fn read_broadcasts(state: Served<BroadcastContext>, path: UserPath, body: Body<ReadBroadcastsIn>) -> Result<Response> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    let (user, channel) = (path.user, path.name("channel")?);
    let deleted = state.heads.broadcast_state().deleted.clone();
    let command = BroadcastCommand::Read { user, channel: channel.clone(), up_to, deleted };
    let answer = state.lanes.submit(Job { command: Arc::new(command), key: None }).await?;
    let ReadOut { head, revision } = answer.value()?;
    if state.heads.broadcast_state().head_of(Kind::Broadcast, channel.as_str()) < head {
        // Another node sent what this one has not heard of yet.
        state.heads.catch_up().await.map_err(after_commit)?;
    }
    let unread = unread(&state, user, &channel, revision).await.ok_or_else(|| after_commit(Error::store_unavailable()))?;
    Ok(Json(ChannelOut { channel, unread, head, revision }).into_response())
}

/// How many notices of a channel a user has not read, at this revision or a later one. None where that is not known.
async fn unread(state: &BroadcastContext, user: UserId, channel: &Name, revision: i64) -> Option<i64> {
    let (State::Current(entry) | State::LastKnown(entry)) = state.entries.read(user, revision).await else { return None };
    if entry.revision < revision {
        return None;
    }
    if !state.heads.is_fresh() {
        // Where none comes through, what was last known is shown.
        state.entries.catch_up().await;
    }
    let (since, mark) = (enrolled(&entry.parts), mark(&entry.parts, Kind::Broadcast, channel.as_str()));
    Some(state.heads.broadcast_state().channels.get(channel.as_str()).map_or(0, |channel| channel.unread(since, mark)))
}
