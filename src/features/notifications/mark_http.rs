//! The routes by which a user marks and deletes entries of its list.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::{NotificationContext, each_once, kept_from, submit};
use super::many::Step;
use super::{
    DeletedNotificationOut, FIRST_ROWS, MAX_NAMED, MORE_ROWS, NotificationCommand, ReadNotificationOut, ReadNotificationsOut,
    SeenNotificationsOut, Which,
};
use crate::base::error::{Problem, Result};
use crate::base::ids::{MAX_HEAD, Name, NotificationId};
use crate::engine::lanes::{Answer, after_commit};
use crate::http::body::{Body, NoFields, count_within, in_range, present};
use crate::http::params::{NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::served::Served;

pub fn routes() -> OpenApiRouter<Served<NotificationContext>> {
    OpenApiRouter::new()
        .routes(routes!(see_notifications))
        .routes(routes!(read_notifications))
        .routes(routes!(read_notification))
        .routes(routes!(unread_notification))
        .routes(routes!(delete_notification))
}

/// The entries to mark: by id, by type, or all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"all": true, "up_to_seq": 57}))]
pub struct ReadNotificationsIn {
    /// Mark these entries, without duplicates.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, value_type = Option<HashSet<NotificationId>>, min_items = 1, max_items = 1000)]
    ids: Option<Vec<NotificationId>>,
    /// Mark all entries of this type.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    r#type: Option<Name>,
    /// Mark all entries.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    all: Option<bool>,
    /// Mark only entries up to this seq, such as the highest one that the user saw. Later ones stay
    /// unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    up_to_seq: Option<i64>,
}

/// How far the user has seen the list.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenNotificationsIn {
    /// The highest seq that the user saw. By default, the whole list was seen.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 57)]
    up_to_seq: Option<i64>,
}

fn up_to(seq: Option<i64>) -> Result<i64, Problem> {
    seq.map_or(Ok(MAX_HEAD), |seq| in_range(seq, 0, MAX_HEAD, || "/up_to_seq".to_owned()))
}

impl ReadNotificationsIn {
    /// Which entries are meant, and up to which seq.
    fn which(&self) -> Result<(Which, i64), Problem> {
        let up_to = up_to(self.up_to_seq)?;
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

/// Mark the list of notifications as seen
///
/// One mark for the whole list: unread entries up to it stay unread, and are no longer unseen. The
/// mark never goes back. A seq beyond the list is clamped to its end.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/seen", tag = "notifications",
    params(("user" = UserOrMe, Path)),
    request_body(content = SeenNotificationsIn, description = "Optional. Default: the whole list"),
    responses(
        (status = 200, body = SeenNotificationsOut)))]
async fn see_notifications(state: Served<NotificationContext>, path: UserPath, body: Body<SeenNotificationsIn>) -> Result<Answer> {
    submit(&state, NotificationCommand::See { user: path.user, up_to: up_to(body.value.up_to_seq)? }).await
}

/// Mark notifications as read
///
/// Marks entries by id, by type, or all; with `up_to_seq`, only those that the user saw. Entries
/// named by id are marked together or not at all. By type, or all, they are marked in batches of
/// some thousands, oldest first.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/read", tag = "notifications",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("user" = UserOrMe, Path)),
    request_body = ReadNotificationsIn,
    responses(
        (status = 200, body = ReadNotificationsOut)))]
async fn read_notifications(state: Served<NotificationContext>, path: UserPath, body: Body<ReadNotificationsIn>) -> Result<Response> {
    let user = path.user;
    let (mut which, mut up_to) = body.value.which()?;
    let (mut changed, mut is_first) = (0, true);
    loop {
        let command = NotificationCommand::MarkMany { user, which: which.clone(), up_to, kept_from: kept_from(&state) };
        let answer = submit(&state, command).await.map_err(|error| if is_first { error } else { after_commit(error) })?;
        is_first = false;
        let step: Step = answer.value()?;
        changed += step.changed;
        let Some(more) = step.more_up_to else {
            return Ok(Json(ReadNotificationsOut { changed, revision: step.revision, notifications: step.counts }).into_response());
        };
        up_to = more;
        if let Which::Oldest(_, rows) = &mut which {
            *rows = MORE_ROWS;
        }
    }
}

async fn mark(state: &NotificationContext, path: &UserPath, read: bool) -> Result<Answer> {
    submit(state, NotificationCommand::Mark { user: path.user, id: path.get("id")?, read, kept_from: kept_from(state) }).await
}

/// Mark a notification as read
///
/// Marks one entry. A repeat changes nothing, and keeps the first `read_at`.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/{id}/read", tag = "notifications",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("user" = UserOrMe, Path), ("id" = NotificationId, Path, description = "The entry")),
    request_body(content = NoFields, description = "Optional. It has no fields"),
    responses(
        (status = 200, body = ReadNotificationOut)))]
async fn read_notification(state: Served<NotificationContext>, path: UserPath, _: Body<NoFields>) -> Result<Answer> {
    mark(&state, &path, true).await
}

/// Mark a notification as unread
///
/// Marks one entry. With a group key, notifications join it again. A repeat changes nothing.
/// Returns 409 if the user has unread notifications of 100 other types.
#[utoipa::path(post, path = "/v1/users/{user}/notifications/{id}/unread", tag = "notifications",
    extensions(("x-problems" = json!(["not_found", "gone", "too_many"]))),
    params(("user" = UserOrMe, Path), ("id" = NotificationId, Path, description = "The entry")),
    request_body(content = NoFields, description = "Optional. It has no fields"),
    responses(
        (status = 200, body = ReadNotificationOut)))]
async fn unread_notification(state: Served<NotificationContext>, path: UserPath, _: Body<NoFields>) -> Result<Answer> {
    mark(&state, &path, false).await
}

/// Delete a notification from a user's list
///
/// Deletes one entry. Its notifications still count the user among their readers if the user has
/// read the entry. A repeat changes nothing.
#[utoipa::path(delete, path = "/v1/users/{user}/notifications/{id}", tag = "notifications",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("user" = UserOrMe, Path), ("id" = NotificationId, Path, description = "The entry")),
    responses(
        (status = 200, body = DeletedNotificationOut)))]
async fn delete_notification(state: Served<NotificationContext>, path: UserPath, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, NotificationCommand::Delete { user: path.user, id: path.get("id")?, kept_from: kept_from(&state) }).await
}
