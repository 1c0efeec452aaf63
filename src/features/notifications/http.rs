//! The routes of notifications.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::command::{Step, gone, missing};
use super::{
    DeletedNotificationOut, FIRST_ROWS, Listed, MAX_CONTENT_CHARS, MAX_NAMED, MAX_RECIPIENTS, MAX_TITLE_CHARS, MORE_ROWS,
    NotificationCommand, NotificationConfig, NotificationOut, ReadNotificationOut, Status, Text, Which, candidates, lists,
};
use crate::base::clock::{Clock, UnixMs};
use crate::base::error::{Fault, Problem, Result};
use crate::base::ids::{MAX_HEAD, Name, NotificationId, UserId};
use crate::db::Db;
use crate::engine::lanes::{Answer, Job, Lanes};
use crate::features::summary_part::UnreadOut;
use crate::http::answer::no_cache;
use crate::http::auth::Service;
use crate::http::body::{Body, IdempotencyKey, NoFields, count_within, in_range, present, text_within};
use crate::http::pages::{self, PageOut, PageParams, Position};
use crate::http::params::{NoParams, Query};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::http::polling::Polling;
use crate::http::served::Served;

/// What the handlers and sweeps of notifications work with.
#[derive(Debug)]
pub struct NotificationContext {
    pub lanes: Lanes,
    pub db: Db,
    pub polling: Arc<Polling>,
    pub clock: Clock,
    /// How notifications are kept.
    pub config: NotificationConfig,
}

pub fn routes() -> OpenApiRouter<Served<NotificationContext>> {
    OpenApiRouter::new()
        .routes(routes!(send_notification))
        .routes(routes!(get_notification, withdraw_notification))
        .routes(routes!(list_notifications))
        .routes(routes!(read_notifications))
        .routes(routes!(read_notification))
        .routes(routes!(unread_notification))
        .routes(routes!(delete_notification))
}

/// A notification and its recipients.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendNotificationIn {
    /// The type. Each type has its own unread count; a user can have notifications of up to 100
    /// types.
    r#type: Name,
    /// The title.
    #[schema(min_length = 1, max_length = 200, example = "Planned maintenance")]
    title: String,
    /// The content.
    #[schema(max_length = 10_000, example = "Tonight from two to three.")]
    content: String,
    /// The recipients, without duplicates.
    #[schema(value_type = HashSet<UserId>, min_items = 1, max_items = 10_000)]
    recipients: Vec<UserId>,
}

/// Which of a user's notifications.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListNotificationsParams {
    /// Return unread notifications, read ones, or all.
    #[param(nullable = false, inline)]
    status: Option<Status>,
    /// Return notifications of this type. All types by default.
    #[param(nullable = false)]
    r#type: Option<Name>,
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    cursor: Option<String>,
}

/// A notification in a user's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserNotificationOut {
    /// The notification.
    pub notification_id: NotificationId,
    /// The number of the notification in the user's list, from 1, without gaps.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// The type.
    pub r#type: Name,
    /// The title.
    #[schema(example = "Planned maintenance")]
    pub title: String,
    /// The content.
    #[schema(example = "Tonight from two to three.")]
    pub content: String,
    /// When it was sent.
    pub created_at: UnixMs,
    /// When the user first read it; omitted if it is unread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub read_at: Option<UnixMs>,
}

impl From<&Listed> for UserNotificationOut {
    fn from(listed: &Listed) -> Self {
        let Text { title, content } = listed.notification.text();
        Self {
            notification_id: listed.id,
            seq: listed.seq,
            r#type: listed.notification.kind.clone(),
            title,
            content,
            created_at: listed.notification.created_at,
            read_at: Some(listed.read_at).filter(|at| *at != UnixMs(0)),
        }
    }
}

/// The notifications to mark: by id, by type, or all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"all": true, "up_to_seq": 57}))]
pub struct ReadNotificationsIn {
    /// Mark these notifications, without duplicates.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, value_type = Option<HashSet<NotificationId>>, min_items = 1, max_items = 1000)]
    ids: Option<Vec<NotificationId>>,
    /// Mark all notifications of this type.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    r#type: Option<Name>,
    /// Mark all notifications.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    all: Option<bool>,
    /// Mark only notifications up to this seq, such as the highest one that the user saw. Later
    /// ones stay unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    up_to_seq: Option<i64>,
}

/// The result of marking notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadNotificationsOut {
    /// The number of notifications that were unread before.
    #[schema(minimum = 0, example = 12)]
    pub changed: i64,
    /// The user's revision after the write.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
    /// The unread count of each type, as in the unread summary.
    pub notifications: BTreeMap<String, UnreadOut>,
}

impl ReadNotificationsIn {
    /// Which notifications are meant, and up to which seq.
    fn which(&self) -> Result<(Which, i64), Problem> {
        let up_to = self.up_to_seq.map_or(Ok(MAX_HEAD), |up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to_seq".to_owned()))?;
        let which = match (&self.ids, &self.r#type, self.all) {
            (Some(ids), None, None) => {
                count_within(ids.len(), MAX_NAMED, "/ids")?;
                each_once(ids, "/ids")?;
                Which::Named(ids.clone())
            }
            (None, Some(kind), None) => Which::Oldest(Some(kind.clone()), FIRST_ROWS),
            (None, None, Some(true)) => Which::Oldest(None, FIRST_ROWS),
            (None, None, Some(false)) => return Err(Problem::invalid("/all", "must be true or omitted")),
            _ => return Err(Problem::invalid("", "must have exactly one of ids, type and all")),
        };
        Ok((which, up_to))
    }
}

fn each_once<T: std::hash::Hash + Eq>(items: &[T], pointer: &str) -> Result<(), Problem> {
    let mut seen = HashSet::with_capacity(items.len());
    match items.iter().position(|item| !seen.insert(item)) {
        Some(at) => Err(Problem::invalid(format!("{pointer}/{at}"), "must not be repeated")),
        None => Ok(()),
    }
}

/// Of lower ids notifications are kept no longer.
fn kept_from(state: &NotificationContext) -> i64 {
    state.config.kept_from(state.clock.now())
}

async fn submit(state: &NotificationContext, command: NotificationCommand) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// Send a notification
///
/// Sends a notification to up to 10,000 users in one transaction: all or nothing. It appears as
/// unread in the list of each recipient.
#[utoipa::path(post, path = "/v1/notifications", tag = "notifications",
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
    let SendNotificationIn { r#type: kind, title, content, recipients } = body.value;
    text_within(&title, 1, MAX_TITLE_CHARS, "/title")?;
    text_within(&content, 0, MAX_CONTENT_CHARS, "/content")?;
    count_within(recipients.len(), MAX_RECIPIENTS, "/recipients")?;
    each_once(&recipients, "/recipients")?;
    let stored = serde_json::to_string(&Text { title, content }).map_err(|error| Fault::Bug(error.to_string()))?;
    let command = NotificationCommand::Send { ids: candidates(state.clock.now()), kind, stored, recipients };
    state.lanes.submit(Job { command: Arc::new(command), key: key.of(&service.caller(), &body.digest) }).await
}

/// Get a notification
///
/// Includes the exact number of recipients who have read it.
#[utoipa::path(get, path = "/v1/notifications/{notification_id}", tag = "notifications",
    params(("notification_id" = NotificationId, Path)),
    responses(
        (status = 200, body = NotificationOut)))]
async fn get_notification(state: Served<NotificationContext>, _service: Service, path: PathParams, _: Query<NoParams>) -> Result<Response> {
    let id = path.get("notification_id")?;
    let found = lists::read(&state.db, id).await?.ok_or_else(|| missing(id, kept_from(&state)))?;
    if found.withdrawn {
        return Err(gone(id).into());
    }
    Ok(no_cache(&NotificationOut::new(id, &found.notification, found.read)))
}

/// Withdraw a notification
///
/// Removes the notification from all lists. Recipients who have not read it get an unread count
/// lower by one. Returns 204 also if it was already withdrawn.
#[utoipa::path(delete, path = "/v1/notifications/{notification_id}", tag = "notifications",
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
    if lists::read(&state.db, id).await?.ok_or_else(|| missing(id, kept_from(&state)))?.withdrawn {
        return Ok(Answer::no_content());
    }
    // Read ahead of the transaction, which must know whose rows to lock: to whom a notification was
    // sent never changes.
    let recipients = lists::recipients(&state.db, id).await?;
    submit(&state, NotificationCommand::Withdraw { id, recipients }).await
}

/// List a user's notifications
///
/// Newest first.
#[utoipa::path(get, path = "/v1/users/{user}/notifications", tag = "notifications",
    params(("user" = UserOrMe, Path), ListNotificationsParams),
    responses(
        (status = 200, body = PageOut<UserNotificationOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_notifications(
    state: Served<NotificationContext>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<ListNotificationsParams>,
) -> Result<Response> {
    let ListNotificationsParams { status, r#type: kind, limit, cursor } = params;
    let wanted = PageParams { limit, cursor }.wanted("notifications", path.user)?;
    let rows = lists::page(&state.db, path.user, status.unwrap_or_default(), kind.as_ref(), wanted.after.at, wanted.rows()).await?;
    pages::respond(&uri, wanted, &rows, |row| Position { at: row.seq, id: 0 }, |row| UserNotificationOut::from(row))
}

/// Mark notifications as read
///
/// Marks notifications by id, by type, or all; with `up_to_seq`, only those that the user saw.
/// Notifications named by id are marked together or not at all. By type, or all, they are marked in
/// batches of some thousands, oldest first.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/read", tag = "notifications",
    params(("user" = UserOrMe, Path)),
    request_body = ReadNotificationsIn,
    responses(
        (status = 200, body = ReadNotificationsOut)))]
async fn read_notifications(state: Served<NotificationContext>, path: UserPath, body: Body<ReadNotificationsIn>) -> Result<Response> {
    let user = path.user;
    let (mut which, mut up_to) = body.value.which()?;
    let mut changed = 0;
    loop {
        let command = NotificationCommand::MarkMany { user, which: which.clone(), up_to, kept_from: kept_from(&state) };
        let answer = submit(&state, command).await?;
        let step: Step = answer.value()?;
        changed += step.changed;
        let Some(more) = step.more_up_to else {
            let notifications = step.unread.into_iter().map(|(kind, unread)| (kind, UnreadOut { unread, capped: None })).collect();
            return Ok(Json(ReadNotificationsOut { changed, revision: step.revision, notifications }).into_response());
        };
        up_to = more;
        if let Which::Oldest(_, rows) = &mut which {
            *rows = MORE_ROWS;
        }
    }
}

/// Mark a notification as read
///
/// A repeat changes nothing, and keeps the first `read_at`.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/{notification_id}/read", tag = "notifications",
    params(("user" = UserOrMe, Path), ("notification_id" = NotificationId, Path)),
    request_body(content = NoFields, description = "Optional. It has no fields"),
    responses(
        (status = 200, body = ReadNotificationOut)))]
async fn read_notification(state: Served<NotificationContext>, path: UserPath, _: Body<NoFields>) -> Result<Answer> {
    submit(
        &state,
        NotificationCommand::Mark { user: path.user, id: path.get("notification_id")?, read: true, kept_from: kept_from(&state) },
    )
    .await
}

/// Mark a notification as unread
///
/// A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/{notification_id}/unread", tag = "notifications",
    params(("user" = UserOrMe, Path), ("notification_id" = NotificationId, Path)),
    request_body(content = NoFields, description = "Optional. It has no fields"),
    responses(
        (status = 200, body = ReadNotificationOut)))]
async fn unread_notification(state: Served<NotificationContext>, path: UserPath, _: Body<NoFields>) -> Result<Answer> {
    submit(
        &state,
        NotificationCommand::Mark { user: path.user, id: path.get("notification_id")?, read: false, kept_from: kept_from(&state) },
    )
    .await
}

/// Delete a notification from a user's list
///
/// The notification still counts the user among its readers if the user has read it. A repeat
/// changes nothing.
#[utoipa::path(delete, path = "/v1/users/{user}/notifications/{notification_id}", tag = "notifications",
    params(("user" = UserOrMe, Path), ("notification_id" = NotificationId, Path)),
    responses(
        (status = 200, body = DeletedNotificationOut)))]
async fn delete_notification(state: Served<NotificationContext>, path: UserPath, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, NotificationCommand::Delete { user: path.user, id: path.get("notification_id")?, kept_from: kept_from(&state) }).await
}
