//! The routes of notifications.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::command::{Step, gone, missing};
use super::{
    Command, DeletedNotificationOut, FIRST_ROWS, Listed, MAX_CONTENT_CHARS, MAX_NAMED, MAX_RECIPIENTS, MAX_TITLE_CHARS, MORE_ROWS,
    NotificationOut, ReadNotificationOut, Status, Text, Which, candidates, lists,
};
use crate::auth::Service;
use crate::clock::UnixMs;
use crate::error::{Error, Fault, Problem, ProblemOut, Result};
use crate::http::body::{Body, IdempotencyKey, NoFields, in_range, present, text_within};
use crate::http::params::{NoParams, Query};
use crate::http::path::{PathParams, UserOrMe, UserPath};
use crate::ids::{Name, NotificationId, UserId};
use crate::lane::{Answer, Job};
use crate::marks::MAX_HEAD;
use crate::page::{self, PageOut, PageParams, Position};
use crate::sheet::UnreadOut;
use crate::state::AppState;

/// The routes of this feature.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(send_notification))
        .routes(routes!(get_notification, withdraw_notification))
        .routes(routes!(list_notifications))
        .routes(routes!(read_notifications))
        .routes(routes!(read_notification))
        .routes(routes!(unread_notification))
        .routes(routes!(delete_notification))
}

/// A notification, and to whom.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendNotificationIn {
    /// Its type: users see a number of unread ones for each. A user may have had notifications of 100 types.
    r#type: Name,
    /// The title.
    #[schema(min_length = 1, max_length = 200, example = "Planned maintenance")]
    title: String,
    /// The content.
    #[schema(max_length = 10_000, example = "Tonight from two to three.")]
    content: String,
    /// To whom, each once.
    #[schema(value_type = HashSet<UserId>, min_items = 1, max_items = 10_000)]
    recipients: Vec<UserId>,
}

/// Which of a user's notifications.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListNotificationsParams {
    /// Those that were not read, those that were, or all.
    #[param(nullable = false, inline)]
    status: Option<Status>,
    /// Those of one type. Without it, of all.
    #[param(nullable = false)]
    r#type: Option<Name>,
    /// How many entries at most.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    cursor: Option<String>,
}

/// An entry of a user's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct UserNotificationOut {
    /// The notification.
    pub notification_id: NotificationId,
    /// Its number among the user's notifications, from 1 on, without gaps.
    #[schema(minimum = 1, example = 57)]
    pub seq: i64,
    /// Its type.
    pub r#type: Name,
    /// The title.
    #[schema(example = "Planned maintenance")]
    pub title: String,
    /// The content.
    #[schema(example = "Tonight from two to three.")]
    pub content: String,
    /// When it was sent.
    pub created_at: UnixMs,
    /// When the user has read it first; left out where it is unread.
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

/// Which notifications were read: some by id, those of a type, or all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"all": true, "up_to_seq": 57}))]
pub struct ReadNotificationsIn {
    /// These, each once.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, value_type = Option<HashSet<NotificationId>>, min_items = 1, max_items = 1000)]
    ids: Option<Vec<NotificationId>>,
    /// All of this type.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    r#type: Option<Name>,
    /// All.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    all: Option<bool>,
    /// Only those up to this seq, such as the highest that the user was shown. Those that came after it stay unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    up_to_seq: Option<i64>,
}

/// What marking many answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReadNotificationsOut {
    /// How many were unread before.
    #[schema(minimum = 0, example = 12)]
    pub changed: i64,
    /// The user's revision after it.
    #[schema(minimum = 0, example = 918)]
    pub revision: i64,
    /// Every type, as the sheet shows it.
    pub notifications: BTreeMap<String, UnreadOut>,
}

impl ReadNotificationsIn {
    /// Which notifications are meant, and up to which seq.
    fn which(&self) -> Result<(Which, i64), Problem> {
        let up_to = self.up_to_seq.map_or(Ok(MAX_HEAD), |up_to| in_range(up_to, 0, MAX_HEAD, || "/up_to_seq".to_owned()))?;
        let which = match (&self.ids, &self.r#type, self.all) {
            (Some(ids), None, None) => {
                count(ids.len(), MAX_NAMED, "/ids")?;
                each_once(ids, "/ids")?;
                Which::Named(ids.clone())
            }
            (None, Some(kind), None) => Which::Oldest(Some(kind.clone()), FIRST_ROWS),
            (None, None, Some(true)) => Which::Oldest(None, FIRST_ROWS),
            (None, None, Some(false)) => return Err(Problem::invalid("/all", "leave it out, or true")),
            _ => return Err(Problem::invalid("", "give either ids, type or all")),
        };
        Ok((which, up_to))
    }
}

fn count(items: usize, most: usize, pointer: &str) -> Result<(), Problem> {
    if (1..=most).contains(&items) { Ok(()) } else { Err(Problem::invalid(pointer, format!("{items} items are not from 1 to {most}"))) }
}

fn each_once<T: std::hash::Hash + Eq>(items: &[T], pointer: &str) -> Result<(), Problem> {
    let mut seen = HashSet::with_capacity(items.len());
    match items.iter().position(|item| !seen.insert(item)) {
        Some(at) => Err(Problem::invalid(format!("{pointer}/{at}"), "it is there more than once")),
        None => Ok(()),
    }
}

/// Of lower ids notifications are kept no longer.
fn kept_from(state: &AppState) -> i64 {
    state.notifications.kept_from(state.clock.now())
}

async fn submit(state: &AppState, command: Command) -> Result<Answer> {
    state.lanes.submit(Job { command: Arc::new(command), key: None }).await
}

/// Send a notification
///
/// To up to 10,000 users, in one transaction: all or nothing. Each finds it in its own list, unread.
#[utoipa::path(post, path = "/v1/notifications", tag = "notifications",
    params(("Idempotency-Key" = IdempotencyKey, Header, description = "The same key with the same body replays the first answer")),
    request_body = SendNotificationIn,
    responses(
        (status = 201, body = NotificationOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn send_notification(
    State(state): State<AppState>,
    service: Service,
    key: IdempotencyKey,
    body: Body<SendNotificationIn>,
) -> Result<Answer> {
    let SendNotificationIn { r#type: kind, title, content, recipients } = body.value;
    text_within(&title, 1, MAX_TITLE_CHARS, "/title")?;
    text_within(&content, 0, MAX_CONTENT_CHARS, "/content")?;
    count(recipients.len(), MAX_RECIPIENTS, "/recipients")?;
    each_once(&recipients, "/recipients")?;
    let stored = serde_json::to_string(&Text { title, content }).map_err(|error| Fault::Bug(error.to_string()))?;
    let command = Command::Send { ids: candidates(state.clock.now()), kind, stored, recipients };
    state.lanes.submit(Job { command: Arc::new(command), key: key.of(&service.caller(), &body.digest) }).await
}

/// Read a notification
///
/// With how many of its recipients have read it, which is exact.
#[utoipa::path(get, path = "/v1/notifications/{notification_id}", tag = "notifications",
    params(("notification_id" = NotificationId, Path)),
    responses(
        (status = 200, body = NotificationOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn get_notification(State(state): State<AppState>, _service: Service, path: PathParams, _: Query<NoParams>) -> Result<Response> {
    let id = path.get("notification_id")?;
    let found = lists::read(&state.db, id).await?.ok_or_else(|| missing(id, kept_from(&state)))?;
    if found.withdrawn {
        return Err(gone(id).into());
    }
    Ok(fresh(Json(NotificationOut::new(id, &found.notification, found.read))))
}

/// Withdraw a notification
///
/// From everybody's list: whoever had not read it has one less. Also answers 204 when it was withdrawn before.
#[utoipa::path(delete, path = "/v1/notifications/{notification_id}", tag = "notifications",
    params(("notification_id" = NotificationId, Path)),
    responses(
        (status = 204, description = "The notification is in no list"),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn withdraw_notification(State(state): State<AppState>, _service: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    let id = path.get("notification_id")?;
    if lists::read(&state.db, id).await?.ok_or_else(|| missing(id, kept_from(&state)))?.withdrawn {
        return Ok(Answer::no_content());
    }
    // Read ahead of the transaction, which must know whose rows to lock: to whom a notification was sent never changes.
    let recipients = lists::recipients(&state.db, id).await?;
    submit(&state, Command::Withdraw { id, recipients }).await
}

/// List a user's notifications
///
/// Newest first.
#[utoipa::path(get, path = "/v1/users/{user}/notifications", tag = "notifications",
    params(("user" = UserOrMe, Path), ListNotificationsParams),
    responses(
        (status = 200, body = PageOut<UserNotificationOut>, headers(("Link" = String, description = "The next page, where there is one"))),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn list_notifications(
    State(state): State<AppState>,
    path: UserPath,
    uri: Uri,
    Query(params): Query<ListNotificationsParams>,
) -> Result<Response> {
    let ListNotificationsParams { status, r#type: kind, limit, cursor } = params;
    let wanted = PageParams { limit, cursor }.wanted("notifications", path.user)?;
    let rows = lists::page(&state.db, path.user, status.unwrap_or_default(), kind.as_ref(), wanted.after.at, wanted.rows()).await?;
    page::respond(&uri, wanted, &rows, |row| Position { at: row.seq, id: 0 }, |row| UserNotificationOut::from(row))
}

/// Mark notifications as read
///
/// Some by id, those of a type, or all; with `up_to_seq` only those that the user was shown. Those named by id are marked together or not at all; of a type or
/// of all, some thousands at a time, the oldest first, until none is left.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/read", tag = "notifications",
    params(("user" = UserOrMe, Path)),
    request_body = ReadNotificationsIn,
    responses(
        (status = 200, body = ReadNotificationsOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn read_notifications(State(state): State<AppState>, path: UserPath, body: Body<ReadNotificationsIn>) -> Result<Response> {
    let user = path.user;
    let (mut which, mut up_to) = body.value.which()?;
    let mut changed = 0;
    loop {
        let command = Command::MarkMany { user, which: which.clone(), up_to, kept_from: kept_from(&state) };
        let answer = submit(&state, command).await?;
        let step: Step = serde_json::from_str(&answer.body).map_err(|error| Error::from(Fault::Bug(error.to_string())))?;
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
/// A repeat changes nothing, not even the time.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/{notification_id}/read", tag = "notifications",
    params(("user" = UserOrMe, Path), ("notification_id" = NotificationId, Path)),
    request_body(content = NoFields, description = "May be left out: there is nothing to say"),
    responses(
        (status = 200, body = ReadNotificationOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn read_notification(State(state): State<AppState>, path: UserPath, _: Body<NoFields>) -> Result<Answer> {
    submit(&state, Command::Mark { user: path.user, id: path.get("notification_id")?, read: true, kept_from: kept_from(&state) }).await
}

/// Mark a notification as unread
///
/// A repeat changes nothing.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/{notification_id}/unread", tag = "notifications",
    params(("user" = UserOrMe, Path), ("notification_id" = NotificationId, Path)),
    request_body(content = NoFields, description = "May be left out: there is nothing to say"),
    responses(
        (status = 200, body = ReadNotificationOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn unread_notification(State(state): State<AppState>, path: UserPath, _: Body<NoFields>) -> Result<Answer> {
    submit(&state, Command::Mark { user: path.user, id: path.get("notification_id")?, read: false, kept_from: kept_from(&state) }).await
}

/// Delete a notification from a user's list
///
/// Whether the user has read it stays counted with the notification. A repeat changes nothing.
#[utoipa::path(delete, path = "/v1/users/{user}/notifications/{notification_id}", tag = "notifications",
    params(("user" = UserOrMe, Path), ("notification_id" = NotificationId, Path)),
    responses(
        (status = 200, body = DeletedNotificationOut),
        (status = "4XX", body = ProblemOut, content_type = "application/problem+json"),
        (status = "5XX", body = ProblemOut, content_type = "application/problem+json")))]
async fn delete_notification(State(state): State<AppState>, path: UserPath, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, Command::Delete { user: path.user, id: path.get("notification_id")?, kept_from: kept_from(&state) }).await
}

/// What must be asked for anew each time.
fn fresh(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"))], body).into_response()
}
