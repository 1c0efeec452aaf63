//! The routes of broadcasts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::store;
use super::{Command, ContentOut, NoticeOut, ReadOut};
use crate::auth::{Caller, Service};
use crate::clock::UnixMs;
use crate::error::{Problem, ProblemOut, Result};
use crate::http::body::{Body, IdempotencyKey, in_range, present, raw_object, text_within};
use crate::http::params::{NoParams, Query};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::ids::{Name, Seq};
use crate::lane::{Answer, Job};
use crate::marks::MAX_HEAD;
use crate::page::{self, PageOut, PageParams, Position};
use crate::poll::Seen;
use crate::sheet::Wanted;
use crate::state::AppState;

/// How long a title may be, in characters.
pub const MAX_TITLE: usize = 200;

/// How long a text may be, in characters.
pub const MAX_BODY: usize = 10_000;

/// How long `data` may be, in bytes of JSON.
pub const MAX_DATA_BYTES: usize = 16 * 1024;

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(send_broadcast, list_broadcasts))
        .routes(routes!(withdraw_broadcast))
        .routes(routes!(list_user_broadcasts))
        .routes(routes!(read_broadcasts))
}

/// A notice to everybody.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendBroadcastIn {
    /// Its title.
    #[schema(min_length = 1, max_length = 200, example = "Maintenance tonight")]
    title: String,
    /// Its text.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, max_length = 10_000)]
    body: Option<String>,
    /// Whatever else the clients are to know: a JSON object of up to 16 KiB. Its text is kept, with its numbers and the order of its fields.
    #[serde(default, deserialize_with = "raw_object")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    data: Option<Box<RawValue>>,
    /// From when on it is gone for everybody, by itself.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    expires_at: Option<UnixMs>,
}

/// How far a channel was read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadBroadcastsIn {
    /// The head that the user was shown. What came after it stays unread. Without it, all that is there now is read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    up_to: Option<i64>,
}

/// What a user has not read in a channel.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChannelOut {
    /// The channel.
    channel: Name,
    /// How many notices the user has not read.
    #[schema(minimum = 0, example = 0)]
    unread: i64,
    /// How many there ever were.
    #[schema(minimum = 0, example = 57)]
    head: i64,
    /// The user's revision after it.
    #[schema(minimum = 0, example = 919)]
    revision: i64,
}

/// Send a broadcast
///
/// One notice to everybody, at the same cost for ten users and for a hundred million.
#[utoipa::path(post, path = "/v1/broadcasts/{channel}", tag = "broadcasts",
    params(("channel" = Name, Path, example = "system"),
        ("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first answer")),
    request_body = SendBroadcastIn,
    responses(
        (status = 201, body = NoticeOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn send_broadcast(
    State(state): State<AppState>,
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
        return Err(Problem::invalid("/data", format!("more than {MAX_DATA_BYTES} bytes")).into());
    }
    super::check_room(&state.heads.board(), &channel)?;
    let content = ContentOut { title, body: text, data };
    let content = serde_json::to_string(&content).map_err(|error| crate::error::Fault::Bug(error.to_string()))?;
    let command = Command::Send { channel, content: content.into(), expires_at };
    state.lanes.submit(Job { command: Arc::new(command), key: key.of(&service.caller(), &body.digest) }).await
}

/// List the broadcasts of a channel
///
/// Newest first, without those that were withdrawn or have expired.
#[utoipa::path(get, path = "/v1/broadcasts/{channel}", tag = "broadcasts",
    params(("channel" = Name, Path, example = "system"), PageParams),
    responses(
        (status = 200, body = PageOut<NoticeOut>, headers(("Link" = String, description = "The next page, if there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_broadcasts(
    State(state): State<AppState>,
    _: Caller,
    path: PathParams,
    uri: Uri,
    Query(params): Query<PageParams>,
) -> Result<Response> {
    let channel = path.name("channel")?;
    let wanted = params.wanted("broadcasts", &channel)?;
    let notices = store::page(&state.db, &channel, wanted.after.at, state.clock.now(), wanted.rows()).await?;
    page::respond(&uri, wanted, &notices, place, |(seq, notice)| NoticeOut::new(&channel, *seq, notice, None))
}

fn place<T>((seq, _): &(i64, T)) -> Position {
    Position { at: *seq, id: 0 }
}

/// Withdraw a broadcast
///
/// Users who had not read it see one less; for the others nothing changes. Also answers 204 when it was withdrawn before.
#[utoipa::path(delete, path = "/v1/broadcasts/{channel}/{seq}", tag = "broadcasts",
    params(("channel" = Name, Path, example = "system"), ("seq" = Seq, Path, example = 57)),
    responses(
        (status = 204, description = "It is gone"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn withdraw_broadcast(State(state): State<AppState>, _: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    let command = Command::Withdraw { channel: path.name("channel")?, seq: path.get::<Seq>("seq")?.get() };
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// List a user's broadcasts of a channel
///
/// Newest first, each with whether the user has read it. What was sent before the user was first seen counts as read.
#[utoipa::path(get, path = "/v1/users/{user}/broadcasts/{channel}", tag = "broadcasts",
    params(("user" = UserOrMe, Path), ("channel" = Name, Path, example = "system"), PageParams),
    responses(
        (status = 200, body = PageOut<NoticeOut>, headers(("Link" = String, description = "The next page, if there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_user_broadcasts(
    State(state): State<AppState>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<PageParams>,
) -> Result<Response> {
    let channel = path.name("channel")?;
    let wanted = params.wanted("broadcasts", &channel)?;
    let since = state.sheets.read_up_to(path.user, &channel).await?;
    let notices = store::page(&state.db, &channel, wanted.after.at, state.clock.now(), wanted.rows()).await?;
    let read = |seq: i64, notice: &super::Notice| seq <= since.mark || notice.position <= since.enrolled;
    page::respond(&uri, wanted, &notices, place, |(seq, notice)| NoticeOut::new(&channel, *seq, notice, Some(read(*seq, notice))))
}

/// Mark a channel as read
///
/// Clears what the user was shown: send back the `head` of the sheet as `up_to`. A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/broadcasts/{channel}/read", tag = "broadcasts",
    params(("user" = UserOrMe, Path), ("channel" = Name, Path, example = "system")),
    request_body(content = ReadBroadcastsIn, description = "May be left out: all that is there now"),
    responses(
        (status = 200, body = ChannelOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn read_broadcasts(State(state): State<AppState>, path: UserPath, body: Body<ReadBroadcastsIn>) -> Result<Response> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    let (user, channel) = (path.user, path.name("channel")?);
    let command = Command::Read { user, channel: channel.clone(), up_to };
    let answer = state.lanes.submit(Job { command: Arc::new(command), key: None }).await?;
    let ReadOut { head, revision } = answer.read()?;
    if state.heads.board().channels.get(channel.as_str()).map_or(0, |channel| channel.head) < head {
        // Another node sent what this one has not heard of yet.
        state.heads.catch_up().await?;
    }
    let wanted = Wanted { counters: false, dots: false, feed: false, notifications: false, ..Wanted::default() };
    let sheet = state.sheets.sheet(user, wanted, Seen::revision_alone(revision)).await;
    let unread = sheet.channel(channel.as_str()).map_or(0, |(unread, _)| unread);
    Ok(Json(ChannelOut { channel, unread, head, revision }).into_response())
}
