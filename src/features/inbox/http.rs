//! The routes of inboxes and devices. `directs_http.rs` has those of direct chats.

use std::sync::{Arc, Mutex, PoisonError};

use axum::response::Response;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::device_rules::CursorPut;
use super::page::{Page, WantedPage};
use super::{DeviceOut, DevicesOut, InboxCommand, InboxConfig, InboxOut, SentOut, devices};
use crate::base::clock::Clock;
use crate::base::error::{Problem, Result};
use crate::base::ids::{ClientId, MAX_HEAD, UserId};
use crate::base::lately::Lately;
use crate::db::{Db, in_time};
use crate::engine::entries::Entries;
use crate::engine::lanes::{Answer, Job, Lanes};
use crate::features::inbox::MAX_CONTENT_CHARS;
use crate::http::answer::no_cache;
use crate::http::auth::Caller;
use crate::http::body::{Body, in_range, present, text_within};
use crate::http::pages;
use crate::http::params::{IfNoneMatch, NoParams, Query};
use crate::http::path::{AnyUserPath, UserOrMe, UserPath};
use crate::http::polling::{self, Asked, PolledValue, Polling, Resource, Seen, Wakers};
use crate::http::sender::SenderIn;
use crate::http::served::Served;

/// What the handlers and sweeps of inboxes work with.
#[derive(Debug)]
pub struct InboxContext {
    pub lanes: Lanes,
    pub db: Db,
    pub entries: Arc<Entries>,
    pub polling: Arc<Polling>,
    pub clock: Clock,
    /// How inboxes are kept.
    pub config: InboxConfig,
    /// Devices whose cursors were put again where they were, and woke for that.
    pub repeated: Lately<(UserId, ClientId)>,
}

pub fn routes() -> OpenApiRouter<Served<InboxContext>> {
    OpenApiRouter::new()
        .routes(routes!(get_inbox, send_direct))
        .routes(routes!(put_cursor))
        .routes(routes!(list_devices))
        .routes(routes!(put_device, delete_device))
}

/// A direct message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendDirectIn {
    /// The sender. With a user token, it is always the user of the token, and the field can be
    /// omitted or `me`.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    sender_id: Option<SenderIn>,
    /// An id chosen by the sender: a repeat with the same id changes nothing.
    #[schema(example = "c-117")]
    client_id: ClientId,
    /// The content.
    #[schema(min_length = 1, max_length = 10_000, example = "Are you there?")]
    content: String,
}

/// What of an inbox, and how long to wait for it.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InboxParams {
    /// The last item that the device has. By default, items start with the oldest one kept. Cannot be
    /// combined with `device`.
    #[param(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    after: Option<i64>,
    /// Return the items after the cursor of this device. A new device starts with the oldest item
    /// kept.
    #[param(nullable = false, value_type = Option<ClientId>, example = "phone-1")]
    device: Option<String>,
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// Hold the request for up to this many seconds while there are no such items.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
    /// The `epoch` of the response that `after` is from. If inbox numbering was reset since, the
    /// response is 410 `inbox_reset`.
    #[param(nullable = false, example = "6f1c0b9de2a47785")]
    epoch: Option<String>,
}

/// How far a device has read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutCursorIn {
    /// The last item that the device has.
    #[schema(minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    seq: i64,
}

/// What a device wants.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutDeviceIn {
    /// Whether events of type `unread` tell services of every change of the user's numbers.
    push: bool,
}

pub(super) async fn submit(state: &InboxContext, command: InboxCommand) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// Send a direct message
///
/// Available to services and to the sender. The message appears as unread in the receiver's inbox,
/// and with `own` in the sender's inbox for the sender's other devices. A message to oneself is one
/// item with `own` and counts as read. A repeat with the same `client_id` and receiver changes
/// nothing while the item is kept.
#[utoipa::path(post, path = "/v1/users/{user}/inbox", tag = "inbox",
    extensions(("x-problems" = json!(["blocked", "gone"]))),
    params(("user" = UserOrMe, Path, description = "The receiver")),
    request_body = SendDirectIn,
    responses(
        (status = 200, body = SentOut, description = "Already sent"),
        (status = 201, body = SentOut)))]
async fn send_direct(state: Served<InboxContext>, caller: Caller, path: AnyUserPath, body: Body<SendDirectIn>) -> Result<Answer> {
    let SendDirectIn { sender_id, client_id: client, content } = body.value;
    let sender = SenderIn::resolve(sender_id, &caller)?;
    text_within(&content, 1, MAX_CONTENT_CHARS, "/content")?;
    submit(&state, InboxCommand::Send { receiver: path.user, sender, client, content: content.into() }).await
}

/// Fetch a user's inbox
///
/// Returns the items after the last item that the device has, in ascending order. With `device`, the
/// server knows that item by the cursor of the device. Numbers have no gaps: no new item appears at or below a number that a device has fetched. With `wait`, the
/// request is held while there are no new items. Returns 410 `cursor_expired` with `earliest_seq`
/// if items after `after` have expired. Returns 410 `inbox_reset` if `after` is from an earlier
/// numbering, for example after a restore; read again without `after`.
#[utoipa::path(get, path = "/v1/users/{user}/inbox", tag = "inbox",
    extensions(("x-problems" = json!(["inbox_reset", "cursor_expired"]))),
    params(("user" = UserOrMe, Path), InboxParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = InboxOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_inbox(state: Served<InboxContext>, path: UserPath, Query(params): Query<InboxParams>, tags: IfNoneMatch) -> Result<Response> {
    let InboxParams { after, device, limit, wait, epoch } = params;
    let (user, wait) = (path.user, polling::wait_of(wait)?);
    let limit = pages::limit_of(limit)?;
    let after = pages::after_of(after)?;
    let device = device.map(|device| device.parse::<ClientId>()).transpose().map_err(|rule| Problem::query("device", rule.0))?;
    if after.is_some() && device.is_some() {
        return Err(Problem::query("device", "must be omitted when 'after' is set").into());
    }
    let wanted = WantedPage { user, after, device, limit, epoch };
    let held: Mutex<Option<Page>> = Mutex::new(None);
    let read = |seen: Seen| {
        let (state, wanted, held, tags) = (state.clone(), &wanted, &held, &tags);
        async move {
            let has_it = |page: &Page| tags.matches(&seen.tag(page.version));
            let before = held.lock().unwrap_or_else(PoisonError::into_inner).take();
            let before = before.filter(|page| page.is_empty || has_it(page));
            let mut page = wanted.read(&state.db, &state.entries, state.polling.heads.history(), before).await?;
            if page.is_empty || has_it(&page) {
                page.forget_items();
                *held.lock().unwrap_or_else(PoisonError::into_inner) = Some(page.clone());
            }
            Ok(PolledValue { version: Some(page.version), value: page, changes_at: None })
        }
    };
    let write = |page: &Page| Ok(page.body.clone());
    // A recall of a group's message adds a row to the user's own inbox. These raise no revision, and need
    // not wake anybody: a group's messages that expire or are deleted with it, rows that expire and that no
    // list of direct chats shows, and a recalled message of a group that loses the id of an erased sender.
    let asked = Asked { tags: &tags, about: Some(user), wait };
    polling::poll_after(&state.polling, asked, Wakers::of_user_alone(user), Resource { read, write }, |page: &Page| page.is_empty).await
}

/// Update a device's inbox cursor
///
/// The first call registers the device. A cursor never goes back, and one beyond the head of the
/// inbox is set to the head. Items that an active device has not fetched are kept beyond the
/// retention period.
#[utoipa::path(put, path = "/v1/users/{user}/devices/{device_id}/cursor", tag = "inbox",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("user" = UserOrMe, Path), ("device_id" = ClientId, Path, example = "phone-1")),
    request_body = PutCursorIn,
    responses(
        (status = 200, body = DeviceOut)))]
async fn put_cursor(state: Served<InboxContext>, path: UserPath, body: Body<PutCursorIn>) -> Result<Answer> {
    let seq = in_range(body.value.seq, 0, MAX_HEAD, || "/seq".to_owned())?;
    let device: ClientId = path.get("device_id")?;
    let answer = submit(&state, InboxCommand::PutCursor { user: path.user, device: device.clone(), seq }).await?;
    let put: CursorPut = answer.value()?;
    // No revision has changed, but what the peers of the user's chats are shown: receipts. And the pages of the device
    // begin elsewhere. A repeat may be of one that moved it, on a node that ended before it woke anybody.
    let of = (path.user, device);
    if put.has_moved || !state.repeated.has(&of) {
        state.polling.cache.wake(path.user).await;
        if !put.has_moved {
            state.repeated.changed(of);
        }
    }
    Ok(Answer::ok(put.device))
}

/// Set whether a device gets pushes
///
/// The first call registers the device, which needs no cursor. With `push`, events of type `unread`
/// tell services of every change of the user's numbers, for as long as any device of the user has
/// it. A repeat changes it. The device counts as seen.
#[utoipa::path(put, path = "/v1/users/{user}/devices/{device_id}", tag = "inbox",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("user" = UserOrMe, Path), ("device_id" = ClientId, Path, example = "phone-1")),
    request_body = PutDeviceIn,
    responses(
        (status = 200, body = DeviceOut)))]
async fn put_device(state: Served<InboxContext>, path: UserPath, body: Body<PutDeviceIn>) -> Result<Answer> {
    submit(&state, InboxCommand::PutPush { user: path.user, device: path.get("device_id")?, push: body.value.push }).await
}

/// List a user's devices
///
/// Returns all devices, at most 100, most recently seen first.
#[utoipa::path(get, path = "/v1/users/{user}/devices", tag = "inbox",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = DevicesOut)))]
async fn list_devices(state: Served<InboxContext>, path: UserPath, _: Query<NoParams>) -> Result<Response> {
    let (head, devices) = in_time(devices::list(&state.db, path.user)).await?;
    let items = devices.into_iter().filter_map(|(id, row)| Some(DeviceOut::new(id.parse().ok()?, row, head))).collect();
    Ok(no_cache(&DevicesOut { items, head }))
}

/// Delete a device
///
/// Inbox items are no longer kept for this device, and its pushes end.
#[utoipa::path(delete, path = "/v1/users/{user}/devices/{device_id}", tag = "inbox",
    extensions(("x-problems" = json!(["not_found"]))),
    params(("user" = UserOrMe, Path), ("device_id" = ClientId, Path, example = "phone-1")),
    responses(
        (status = 204, description = "Deleted")))]
async fn delete_device(state: Served<InboxContext>, path: UserPath, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, InboxCommand::DeleteDevice { user: path.user, device: path.get("device_id")? }).await
}
