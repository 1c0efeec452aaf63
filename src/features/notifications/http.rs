//! The routes of senders of notifications. Those of users are in `list_http.rs` and
//! `mark_http.rs`.

use std::collections::HashSet;
use std::sync::Arc;

use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::rules::{gone, missing};
use super::{
    Content, Edit, MAX_CONTENT_CHARS, MAX_DATA_BYTES, MAX_RECIPIENTS, MAX_TITLE_CHARS, NewNotification, NotificationCommand,
    NotificationConfig, NotificationOut, candidates, reads,
};
use crate::base::clock::Clock;
use crate::base::error::{Problem, Result};
use crate::base::ids::{ClientId, Name, NotificationId, UserId};
use crate::db::Db;
use crate::engine::entries::Entries;
use crate::engine::lanes::{Answer, Job, Lanes};
use crate::http::answer::no_cache;
use crate::http::auth::Service;
use crate::http::body::{Body, IdempotencyKey, count_within, present, raw_object, text_within};
use crate::http::params::{NoParams, Query};
use crate::http::path::PathParams;
use crate::http::polling::Polling;
use crate::http::served::Served;

/// What the handlers and sweeps of notifications work with.
#[derive(Debug)]
pub struct NotificationContext {
    pub lanes: Lanes,
    pub db: Db,
    pub entries: Arc<Entries>,
    pub polling: Arc<Polling>,
    pub clock: Clock,
    /// How notifications are kept.
    pub config: NotificationConfig,
}

pub fn routes() -> OpenApiRouter<Served<NotificationContext>> {
    OpenApiRouter::new().routes(routes!(send_notification)).routes(routes!(get_notification, edit_notification, withdraw_notification))
}

/// A notification and its recipients.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendNotificationIn {
    /// The type. Each type has its own unread count; a user can have unread notifications of up to
    /// 100 types.
    r#type: Name,
    /// The title.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, min_length = 1, max_length = 200, example = "Planned maintenance")]
    title: Option<String>,
    /// The content.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, max_length = 10_000, example = "Tonight from two to three.")]
    content: Option<String>,
    /// Additional data for clients: a JSON object of up to 16 KiB, kept verbatim. Numbers must fit a double.
    #[serde(default, deserialize_with = "raw_object")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    data: Option<Box<RawValue>>,
    /// The recipients, without duplicates.
    #[schema(value_type = HashSet<UserId>, min_items = 1, max_items = 10_000)]
    recipients: Vec<UserId>,
    /// The notification joins each recipient's unread entry with this type and key, or begins one.
    /// Without it, the notification is an entry of its own.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, example = "post:117:like")]
    group_key: Option<ClientId>,
    /// The user whose act the notification tells of.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    actor_id: Option<UserId>,
}

/// What of a notification is edited. What is omitted stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditNotificationIn {
    /// The new title.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, min_length = 1, max_length = 200, example = "Planned maintenance")]
    title: Option<String>,
    /// The new content.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, max_length = 10_000, example = "Tonight from three to four.")]
    content: Option<String>,
    /// The new data: a JSON object of up to 16 KiB, kept verbatim. Numbers must fit a double.
    #[serde(default, deserialize_with = "raw_object")]
    #[schema(nullable = false, value_type = Option<std::collections::HashMap<String, serde_json::Value>>)]
    data: Option<Box<RawValue>>,
}

/// Bounds what a notification says.
fn check(title: Option<&str>, content: Option<&str>, data: Option<&RawValue>) -> Result<(), Problem> {
    title.map_or(Ok(()), |title| text_within(title, 1, MAX_TITLE_CHARS, "/title"))?;
    content.map_or(Ok(()), |content| text_within(content, 0, MAX_CONTENT_CHARS, "/content"))?;
    if data.is_some_and(|data| data.get().len() > MAX_DATA_BYTES) {
        return Err(Problem::invalid("/data", format!("must have at most {MAX_DATA_BYTES} bytes")));
    }
    Ok(())
}

pub(super) fn each_once<T: std::hash::Hash + Eq>(items: &[T], pointer: &str) -> Result<(), Problem> {
    let mut seen = HashSet::with_capacity(items.len());
    match items.iter().position(|item| !seen.insert(item)) {
        Some(at) => Err(Problem::invalid(format!("{pointer}/{at}"), "must not be repeated")),
        None => Ok(()),
    }
}

/// Of lower ids notifications are kept no longer.
pub(super) fn kept_from(state: &NotificationContext) -> i64 {
    state.config.kept_from(state.clock.now())
}

pub(super) async fn submit(state: &NotificationContext, command: NotificationCommand) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// Send a notification
///
/// Sends a notification to up to 10,000 users in one transaction: all or nothing. It appears as
/// unread in the list of each recipient, at the top. With `group_key`, it joins the recipient's
/// unread entry of the same type and key; the unread count does not change then. An entry holds at
/// most 1000 notifications; the next one begins a new entry.
#[utoipa::path(post, path = "/v1/notifications", tag = "notifications",
    extensions(("x-problems" = json!(["too_many"]))),
    params(("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first response")),
    request_body = SendNotificationIn,
    responses(
        (status = 201, body = NotificationOut)))]
async fn send_notification(
    state: Served<NotificationContext>,
    service: Service,
    key: IdempotencyKey,
    body: Body<SendNotificationIn>,
) -> Result<Answer> {
    let SendNotificationIn { r#type: kind, title, content, data, recipients, group_key, actor_id } = body.value;
    check(title.as_deref(), content.as_deref(), data.as_deref())?;
    count_within(recipients.len(), MAX_RECIPIENTS, "/recipients")?;
    each_once(&recipients, "/recipients")?;
    let content = Content { title, content, data, group_key, actor_id, edited_at: None };
    let stored = content.stored()?;
    let command = NotificationCommand::Send(NewNotification { ids: candidates(state.clock.now()), kind, content, stored, recipients });
    state.lanes.submit(Job { command: Arc::new(command), key: key.of(&service.caller(), &body.digest) }).await
}

/// Get a notification
///
/// Includes the exact number of recipients who have read it.
#[utoipa::path(get, path = "/v1/notifications/{notification_id}", tag = "notifications",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("notification_id" = NotificationId, Path)),
    responses(
        (status = 200, body = NotificationOut)))]
async fn get_notification(state: Served<NotificationContext>, _service: Service, path: PathParams, _: Query<NoParams>) -> Result<Response> {
    let id = path.get("notification_id")?;
    let found = reads::read(&state.db, id).await?.ok_or_else(|| missing(id, kept_from(&state)))?;
    if found.withdrawn {
        return Err(gone(id).into());
    }
    Ok(no_cache(&NotificationOut::new(id, &found.notification, found.read)))
}

/// Edit a notification
///
/// Changes what the notification says, in every list that shows it. Unread counts do not change.
/// Fields that are omitted stay as they are.
#[utoipa::path(put, path = "/v1/notifications/{notification_id}", tag = "notifications",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("notification_id" = NotificationId, Path)),
    request_body = EditNotificationIn,
    responses(
        (status = 200, body = NotificationOut)))]
async fn edit_notification(
    state: Served<NotificationContext>,
    _service: Service,
    path: PathParams,
    body: Body<EditNotificationIn>,
) -> Result<Answer> {
    let EditNotificationIn { title, content, data } = body.value;
    check(title.as_deref(), content.as_deref(), data.as_deref())?;
    let (id, kept_from) = (path.get("notification_id")?, kept_from(&state));
    let recipients = reads::recipients(&state.db, id).await?;
    submit(&state, NotificationCommand::Edit { id, edit: Edit { title, content, data }, recipients, kept_from }).await
}

/// Withdraw a notification
///
/// Removes the notification from all lists. An entry that holds others stays in its place, without
/// it. An entry that holds no other disappears, and if it was unread, the unread count falls by
/// one. Returns 204 also if the notification was already withdrawn.
#[utoipa::path(delete, path = "/v1/notifications/{notification_id}", tag = "notifications",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("notification_id" = NotificationId, Path)),
    responses(
        (status = 204, description = "Withdrawn")))]
async fn withdraw_notification(
    state: Served<NotificationContext>,
    _service: Service,
    path: PathParams,
    _: Query<NoParams>,
) -> Result<Answer> {
    let id = path.get("notification_id")?;
    if reads::read(&state.db, id).await?.ok_or_else(|| missing(id, kept_from(&state)))?.withdrawn {
        return Ok(Answer::no_content());
    }
    // Read ahead of the transaction, which must know whose rows to lock: they never become more.
    let (recipients, kept_from) = (reads::recipients(&state.db, id).await?, kept_from(&state));
    submit(&state, NotificationCommand::Withdraw { id, recipients, kept_from }).await
}
