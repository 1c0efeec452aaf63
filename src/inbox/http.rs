//! The routes of inboxes, direct chats and devices.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Command, CursorOut, DevicesOut, DirectOut, DirectSettingsOut, InboxOut, ReadDirectOut, SentOut, devices, lists};
use crate::auth::Caller;
use crate::db::DbResult;
use crate::error::{Code, Error, Fault, Problem, ProblemOut, Result};
use crate::groups::MAX_CONTENT_CHARS;
use crate::http::body::{Body, in_range, present, text_within};
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{AnyUserPath, UserOrMe, UserPath};
use crate::http::sender::SenderIn;
use crate::ids::{ClientId, UserId};
use crate::lane::{Answer, Job};
use crate::marks::MAX_HEAD;
use crate::page::{self, PageOut, PageParams, Position};
use crate::poll::{self, Reading, Resource, Seen, Version};
use crate::sheet::{self, store_away};
use crate::state::AppState;

/// How long a look into the database may take.
const MAX_READ: Duration = Duration::from_secs(4);

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(get_inbox, send_direct))
        .routes(routes!(list_directs))
        .routes(routes!(read_direct))
        .routes(routes!(put_direct_settings))
        .routes(routes!(put_cursor))
        .routes(routes!(list_devices))
        .routes(routes!(delete_device))
}

/// A direct message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendDirectIn {
    /// Who sends it. A user's token sends as its user, and may leave the field out or say `me`.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    sender_id: Option<SenderIn>,
    /// An id that the sender makes up for it: sent again, it changes nothing.
    #[schema(example = "c-117")]
    client_id: ClientId,
    /// What it says.
    #[schema(min_length = 1, max_length = 10_000, example = "Are you there?")]
    content: String,
}

/// What of an inbox, and how long to wait for it.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InboxParams {
    /// The last row that the device has. Without it, from the first that is kept.
    #[param(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    after: Option<i64>,
    /// How many rows at most.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// Hold the request for up to so many seconds while there is nothing after `after`.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
    /// The `epoch` of the answer that `after` is from: 410 `inbox_reset` where inboxes have been numbered anew since.
    #[param(nullable = false, example = "6f1c0b9de2a47785")]
    epoch: Option<String>,
}

/// Which page of a user's direct chats.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListDirectsParams {
    /// How many entries at most.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    cursor: Option<String>,
    /// Hold the request for up to so many seconds until the answer is another than `If-None-Match` names; then 304. Needs that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// How far a direct chat is read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadDirectIn {
    /// A row of the user's own inbox: what the peer sent after it stays unread. Without it, all that is there now is read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    up_to: Option<i64>,
}

/// How a direct chat is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutDirectSettingsIn {
    /// Whether it counts in neither `chats` nor `total`. It keeps its own number.
    muted: bool,
}

/// How far a device has read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutCursorIn {
    /// The last row that it has.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    seq: i64,
}

async fn submit(state: &AppState, command: Command) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// What the database answers within its time.
async fn in_time<T>(read: impl Future<Output = DbResult<T>>) -> Result<T> {
    match tokio::time::timeout(MAX_READ, read).await {
        Ok(read) => Ok(read?),
        Err(_) => Err(store_away()),
    }
}

/// Send a direct message
///
/// By a service, or by its sender. The receiver finds it in its inbox, unread; the sender's other devices find it in the sender's own, with `own`. Whom one
/// sends to may be oneself: then there is one row, with `own`, and nothing is unread. The same `client_id` to the same receiver again changes nothing, for as
/// long as the row is kept.
#[utoipa::path(post, path = "/v1/users/{user}/inbox", tag = "inbox",
    params(("user" = UserOrMe, Path, description = "To whom")),
    request_body = SendDirectIn,
    responses(
        (status = 200, body = SentOut, description = "It was sent before"),
        (status = 201, body = SentOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn send_direct(State(state): State<AppState>, caller: Caller, path: AnyUserPath, body: Body<SendDirectIn>) -> Result<Answer> {
    let SendDirectIn { sender_id, client_id: client, content } = body.value;
    let sender = SenderIn::resolve(sender_id, &caller)?;
    text_within(&content, 1, MAX_CONTENT_CHARS, "/content")?;
    submit(&state, Command::Send { receiver: path.user, sender, client, content: content.into() }).await
}

/// Fetch an inbox
///
/// What comes after a row that the device has, ascending. Numbers are without gaps and in the order of commits: whoever has seen a row never finds a new one at
/// or below it later. With `wait` it holds while there is nothing. 410 `cursor_expired`, with `earliest_seq`, where rows between `after` and what is kept
/// are gone; 410 `inbox_reset` where `after` is from another numbering, as after a restore: begin anew without `after`.
#[utoipa::path(get, path = "/v1/users/{user}/inbox", tag = "inbox",
    params(("user" = UserOrMe, Path), InboxParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")),
    responses(
        (status = 200, body = InboxOut, headers(
            ("ETag" = String, description = "The version of the answer"),
            ("X-Poll-Interval" = u32, description = "The pace asked for, in seconds"))),
        (status = 304, description = "Nothing changed"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_inbox(
    State(state): State<AppState>,
    path: UserPath,
    Query(params): Query<InboxParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let InboxParams { after, limit, wait, epoch } = params;
    let (user, wait) = (path.user, poll::wait_of(wait)?);
    let limit = page::limit_of(limit)?;
    let after = page::after_of(after)?;
    // What a waiting poll found to be nothing, and at which revision: it is so for as long as the user has that one.
    let nothing: Mutex<Option<(i64, Found)>> = Mutex::new(None);
    let read = |_: Seen| {
        let (state, epoch, nothing) = (state.clone(), epoch.as_deref(), &nothing);
        async move {
            let known = nothing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some((revision, found)) = known
                && matches!(state.sheets.read(user, 0).await, sheet::State::Current(entry) if entry.revision == revision)
            {
                return Ok(Reading { version: Some(found.version), value: found });
            }
            let read = in_time(lists::read(&state.db, user, after.unwrap_or(0), i64::from(limit))).await?;
            let read = read.ok_or_else(|| Error::from(Fault::Bug("there is no epoch of inboxes".to_owned())))?;
            let revision = read.revision;
            let found = Found::new(read, after, epoch)?;
            *nothing.lock().unwrap_or_else(PoisonError::into_inner) = Some((revision, found.clone())).filter(|_| found.is_empty);
            Ok(Reading { version: Some(found.version), value: found })
        }
    };
    let write = |found: &Found| Ok(found.body.to_vec());
    poll::poll_after(&state, user, wait, &tags, Resource { read, write }, |found: &Found| found.is_empty).await
}

/// Some of an inbox, as it is sent.
#[derive(Debug, Clone)]
struct Found {
    body: Arc<[u8]>,
    version: Version,
    is_empty: bool,
}

impl Found {
    /// Checks that nothing between `after` and what was read is missing. The tag is made from the body, as a group's message may be recalled without a change of
    /// the user's own rows.
    fn new(read: lists::Read, after: Option<i64>, known_epoch: Option<&str>) -> Result<Self> {
        let lists::Read { epoch, head, earliest, items, .. } = read;
        if known_epoch.is_some_and(|known| known != epoch) {
            return Err(Problem::new(Code::InboxReset, "Inboxes are numbered anew: begin without 'after' and 'epoch'.").into());
        }
        if after.is_some_and(|after| after > head) {
            let detail = format!("The inbox ends at {head}, so 'after' is from another numbering: begin without it.");
            return Err(Problem::new(Code::InboxReset, detail).into());
        }
        if after.is_some_and(|after| after + 1 < earliest) {
            let detail = format!("Rows before {earliest} are kept no longer.");
            return Err(Problem::new(Code::CursorExpired, detail).kept_from(earliest).into());
        }
        let next_after = items.last().map_or(head, |item| item.seq);
        let is_empty = items.is_empty();
        let body = poll::json(&InboxOut { items, epoch, head, next_after, has_more: next_after < head })?;
        let mut print = [0; 8];
        print.iter_mut().zip(Sha256::digest(&body)).for_each(|(to, from)| *to = from);
        let version = Version { revision: head, shared: u64::from_be_bytes(print) };
        Ok(Self { body: body.into(), version, is_empty })
    }
}

/// Poll a user's direct chats
///
/// The one in which something came last first.
#[utoipa::path(get, path = "/v1/users/{user}/directs", tag = "inbox",
    params(("user" = UserOrMe, Path), ListDirectsParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer")),
    responses(
        (status = 200, body = PageOut<DirectOut>, headers(
            ("ETag" = String, description = "The version of the answer"),
            ("Link" = String, description = "The next page, where there is one"),
            ("X-Poll-Interval" = u32, description = "The pace asked for, in seconds"))),
        (status = 304, description = "Nothing changed"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_directs(
    State(state): State<AppState>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<ListDirectsParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let (user, wait) = (path.user, poll::wait_of(params.wait)?);
    let wanted = PageParams { limit: params.limit, cursor: params.cursor }.wanted("directs", user)?;
    let read = |seen: Seen| {
        let (state, tags) = (state.clone(), &tags);
        async move {
            // The list changes with the user's revision alone, so where the client has this one already the database need not be asked.
            if let sheet::State::Current(entry) = state.sheets.read(user, seen.revision()).await
                && tags.matches(&seen.tag(entry.revision.into()))
            {
                return Ok(Reading { value: Vec::new(), version: Some(entry.revision.into()) });
            }
            let before = (wanted.after.at, wanted.after.id);
            let (revision, chats) = in_time(lists::directs(&state.db, user, before, wanted.rows())).await?;
            Ok(Reading { value: chats, version: Some(revision.into()) })
        }
    };
    let next = OnceLock::new();
    let write = |chats: &Vec<DirectOut>| {
        let position = |chat: &DirectOut| Position { at: chat.head, id: chat.peer_id.get() };
        let page = page::page(wanted, chats, position, DirectOut::clone);
        next.get_or_init(|| page.next_cursor.clone());
        poll::json(&page)
    };
    let mut response = poll::poll(&state, user, wait, &tags, Resource { read, write }).await?;
    page::add_link(&mut response, &uri, next.get().and_then(Option::as_deref))?;
    Ok(response)
}

/// Mark a direct chat as read
///
/// Up to a row of the user's own inbox, or all that is there now. Marks never go back. A message that has expired counts until it is marked so, and is marked
/// by the row that it was.
#[utoipa::path(post, path = "/v1/users/{user}/directs/{peer}/read", tag = "inbox",
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other side", example = "7")),
    request_body(content = ReadDirectIn, description = "May be left out: all that is there now"),
    responses(
        (status = 200, body = ReadDirectOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn read_direct(State(state): State<AppState>, path: UserPath, body: Body<ReadDirectIn>) -> Result<Answer> {
    let up_to = body.value.up_to.map(|up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to".to_owned())).transpose()?;
    submit(&state, Command::Read { user: path.user, peer: path.get("peer")?, up_to }).await
}

/// Set a direct chat
///
/// Muted, it keeps its own number, and counts in neither `chats` nor `total`. While the user blocks the other side, the chat counts
/// as muted whatever is set here; the setting holds once the block ends.
#[utoipa::path(put, path = "/v1/users/{user}/directs/{peer}/settings", tag = "inbox",
    params(("user" = UserOrMe, Path), ("peer" = UserId, Path, description = "The other side", example = "7")),
    request_body = PutDirectSettingsIn,
    responses(
        (status = 200, body = DirectSettingsOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn put_direct_settings(State(state): State<AppState>, path: UserPath, body: Body<PutDirectSettingsIn>) -> Result<Answer> {
    submit(&state, Command::Mute { user: path.user, peer: path.get("peer")?, muted: body.value.muted }).await
}

/// Say how far a device has read
///
/// The first time makes the device. Its cursor never goes back, and one beyond the inbox's head is clamped to it. What a device that said something within the
/// days that rows are kept has yet to fetch is kept beyond them.
#[utoipa::path(put, path = "/v1/users/{user}/devices/{device_id}/cursor", tag = "inbox",
    params(("user" = UserOrMe, Path), ("device_id" = ClientId, Path, example = "phone-1")),
    request_body = PutCursorIn,
    responses(
        (status = 200, body = CursorOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn put_cursor(State(state): State<AppState>, path: UserPath, body: Body<PutCursorIn>) -> Result<Answer> {
    let seq = in_range(body.value.seq, 0, MAX_HEAD, || "/seq".to_owned())?;
    submit(&state, Command::PutCursor { user: path.user, device: path.get("device_id")?, seq }).await
}

/// List a user's devices
///
/// All of them, at most 100, those that were seen last first.
#[utoipa::path(get, path = "/v1/users/{user}/devices", tag = "inbox",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = DevicesOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_devices(State(state): State<AppState>, path: UserPath, _: Query<NoParams>) -> Result<Response> {
    let (head, devices) = in_time(devices::list(&state.db, path.user)).await?;
    let items = devices.into_iter().filter_map(|(id, row)| Some(CursorOut::new(id.parse().ok()?, row, head))).collect();
    let fresh = [(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"))];
    Ok((StatusCode::OK, fresh, Json(DevicesOut { items, head })).into_response())
}

/// Delete a device
///
/// What it had yet to fetch is kept for its sake no longer.
#[utoipa::path(delete, path = "/v1/users/{user}/devices/{device_id}", tag = "inbox",
    params(("user" = UserOrMe, Path), ("device_id" = ClientId, Path, example = "phone-1")),
    responses(
        (status = 204, description = "The device is gone"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn delete_device(State(state): State<AppState>, path: UserPath, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, Command::DeleteDevice { user: path.user, device: path.get("device_id")? }).await
}
