//! The routes of groups: members and messages. What a user does with the groups it is in is in
//! `user_http.rs`.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::changes::GroupChanges;
use super::chats::Chats;
use super::deletion::DeleteGroup;
use super::lists::{self, View};
use super::refused::no_member;
use super::{Delivery, GroupCommand, GroupConfig, GroupOut, GroupSentOut, MAX_JOINS, MAX_MENTIONS, MemberOut, MembersOut, NewMessage};
use crate::base::clock::Clock;
use crate::base::error::{Problem, Result};
use crate::base::ids::{ClientId, GroupId, Seq, UserId};
use crate::base::lately::Lately;
use crate::db::{Db, PageReads};
use crate::engine::entries::Entries;
use crate::engine::heads::Heads;
use crate::engine::lanes::{Answer, Job, Lanes};
use crate::features::inbox::MAX_CONTENT_CHARS;
use crate::features::operations::http::located;
use crate::features::operations::{AcceptedOut, OperationId};
use crate::http::answer::no_cache;
use crate::http::auth::{Auth, Caller, Service};
use crate::http::body::{Body, NoFields, present, text_within};
use crate::http::pages::{self, PageOut, PageParams, Position};
use crate::http::params::{NoParams, Query};
use crate::http::path::{LivingCaller, PathParams, Witness};
use crate::http::polling::Polling;
use crate::http::sender::SenderIn;
use crate::http::served::Served;

/// What the handlers and sweeps of groups work with.
#[derive(Debug)]
pub struct GroupContext {
    pub lanes: Lanes,
    pub db: Db,
    /// For messages.
    pub pages: PageReads,
    /// The groups of which this node has recalled something lately.
    pub recalled: Lately<GroupId>,
    pub entries: Arc<Entries>,
    /// What counts the groups of users.
    pub chats: Arc<Chats>,
    pub heads: Arc<Heads>,
    /// Told of each change.
    pub changes: Arc<GroupChanges>,
    pub polling: Arc<Polling>,
    pub clock: Clock,
    /// How groups are kept.
    pub config: GroupConfig,
}

/// The routes of this part.
pub fn routes() -> OpenApiRouter<Served<GroupContext>> {
    OpenApiRouter::new()
        .routes(routes!(put_group, get_group, delete_group))
        .routes(routes!(join_group, leave_group))
        .routes(routes!(list_members, join_members))
        .routes(routes!(send_group_message))
        .routes(routes!(recall_group_message))
}

/// The group in a path, and who asks: routes for members or services.
#[derive(Debug)]
pub(crate) struct GroupPath {
    pub(crate) group: GroupId,
    pub(crate) caller: Caller,
    pub(crate) params: PathParams,
}

impl<S> FromRequestParts<S> for GroupPath
where
    S: Send + Sync,
    Arc<Auth>: FromRef<S>,
    Option<Arc<dyn Witness>>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let LivingCaller(caller) = LivingCaller::from_request_parts(parts, state).await?;
        let params = PathParams::from_request_parts(parts, state).await?;
        Ok(Self { group: params.get("group")?, caller, params })
    }
}

impl GroupPath {
    /// The user who asks; None: a service.
    pub(crate) fn user(&self) -> Option<UserId> {
        match &self.caller {
            Caller::User { id } => Some(*id),
            Caller::Service { .. } => None,
        }
    }

    /// The group as a member or a service sees it.
    ///
    /// # Errors
    /// 404 where there is no such group, 410 where it was deleted, 403 for a user who is no member.
    pub(crate) async fn view(&self, db: &Db) -> Result<View> {
        let user = self.user();
        let view = lists::view_known(db, self.group, user).await?;
        match user {
            Some(user) if view.since.is_none() => Err(no_member(self.group, user).into()),
            _ => Ok(view),
        }
    }
}

pub(super) async fn submit(state: &GroupContext, command: GroupCommand) -> Result<Answer> {
    let group = command.group();
    let answer = state.lanes.submit(Job { command: Arc::new(command), key: None }).await?;
    state.changes.tell(group);
    Ok(answer)
}

/// Settings of a group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PutGroupIn {
    /// How messages reach the members. Default: unchanged, or `read` for a new group.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    delivery: Option<Delivery>,
    /// Whether receipts are enabled. Default: unchanged, or true for a new group.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    receipts: Option<bool>,
}

/// The users to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinMembersIn {
    /// The users, without duplicates.
    #[schema(value_type = HashSet<UserId>, min_items = 1, max_items = 1000)]
    user_ids: Vec<UserId>,
}

/// A group message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendGroupMessageIn {
    /// The sender, who must be a member. With a user token, it is always the user of the token, and
    /// the field can be omitted or `me`.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    sender_id: Option<SenderIn>,
    /// An id chosen by the sender: a repeat with the same id changes nothing.
    client_id: ClientId,
    /// The content.
    #[schema(min_length = 1, max_length = 10000, example = "Lunch at one?")]
    content: String,
    /// Members to mention by name. For them, the message counts in `mentions` while it is unread.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, max_items = 50)]
    mentions: Option<Vec<UserId>>,
    /// Whether to mention all members.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, default = false)]
    mention_all: Option<bool>,
}

/// Create or update a group
///
/// Omitted fields keep their values.
#[utoipa::path(put, path = "/v1/groups/{group}", tag = "groups",
    extensions(("x-problems" = json!(["gone"]))),
    params(("group" = GroupId, Path)),
    request_body(content = PutGroupIn, description = "Optional"),
    responses(
        (status = 200, body = GroupOut, description = "The group already exists and is updated"),
        (status = 201, body = GroupOut)))]
async fn put_group(state: Served<GroupContext>, _service: Service, path: PathParams, body: Body<PutGroupIn>) -> Result<Answer> {
    submit(&state, GroupCommand::Put { group: path.get("group")?, delivery: body.value.delivery, receipts: body.value.receipts }).await
}

/// Get a group
///
/// Available to members of the group and to services.
#[utoipa::path(get, path = "/v1/groups/{group}", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("group" = GroupId, Path)),
    responses(
        (status = 200, body = GroupOut)))]
async fn get_group(state: Served<GroupContext>, path: GroupPath, _: Query<NoParams>) -> Result<Response> {
    let view = path.view(&state.db).await?;
    Ok(no_cache(&GroupOut::new(path.group, &view.group, view.head)))
}

/// Delete a group
///
/// From the response on, no message of the group is unread, no list shows it, and every route about it
/// returns 410 `gone`. Its members, messages and receipts are then removed in the background; poll the
/// operation in `Location` to learn when that is done. What the group put into inboxes stays as
/// tombstones. The id cannot be used again. A repeat returns the same operation.
#[utoipa::path(delete, path = "/v1/groups/{group}", tag = "groups",
    extensions(("x-problems" = json!(["not_found"]))),
    params(("group" = GroupId, Path)),
    responses(
        (status = 202, body = AcceptedOut, headers(("Location" = String, description = "The operation")))))]
async fn delete_group(state: Served<GroupContext>, service: Service, path: PathParams, _: Query<NoParams>) -> Result<Response> {
    let group: GroupId = path.get("group")?;
    let command = DeleteGroup { group, operation: OperationId::new(state.clock.now()), caller: service.caller().id() };
    let answer = state.lanes.submit(Job { command: Arc::new(command), key: None }).await;
    state.recalled.changed(group);
    let accepted: AcceptedOut = answer?.value()?;
    state.changes.tell(group);
    let id = accepted.operation_id.clone();
    located(Answer::accepted(accepted), &id)
}

/// Add a member to a group
///
/// The member receives messages sent from now on. Adding a current member changes nothing. A member
/// who rejoins keeps the ordinal.
#[utoipa::path(put, path = "/v1/groups/{group}/members/{user}", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone", "too_many"]))),
    params(("group" = GroupId, Path), ("user" = UserId, Path)),
    request_body(content = NoFields, description = "Optional"),
    responses(
        (status = 200, body = MemberOut, description = "The user is already a member"),
        (status = 201, body = MemberOut)))]
async fn join_group(state: Served<GroupContext>, _service: Service, path: PathParams, _body: Body<NoFields>) -> Result<Answer> {
    submit(&state, GroupCommand::Join { group: path.get("group")?, user: path.get("user")? }).await
}

/// Remove a member from a group
///
/// Returns 204 also if the user is not a member. The user stays a recipient of messages sent
/// before.
#[utoipa::path(delete, path = "/v1/groups/{group}/members/{user}", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("group" = GroupId, Path), ("user" = UserId, Path)),
    responses(
        (status = 204, description = "Removed")))]
async fn leave_group(state: Served<GroupContext>, _service: Service, path: PathParams, _: Query<NoParams>) -> Result<Answer> {
    submit(&state, GroupCommand::Leave { group: path.get("group")?, user: path.get("user")? }).await
}

/// Add many members to a group
///
/// Adds up to 1000 users in one transaction: all or nothing.
#[utoipa::path(post, path = "/v1/groups/{group}/members", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone", "too_many"]))),
    params(("group" = GroupId, Path)),
    request_body = JoinMembersIn,
    responses(
        (status = 200, body = MembersOut)))]
async fn join_members(state: Served<GroupContext>, _service: Service, path: PathParams, body: Body<JoinMembersIn>) -> Result<Answer> {
    let users = body.value.user_ids;
    if !(1..=MAX_JOINS).contains(&users.len()) {
        return Err(Problem::invalid("/user_ids", format!("must have between 1 and {MAX_JOINS} users")).into());
    }
    let mut seen = HashSet::with_capacity(users.len());
    if let Some(at) = users.iter().position(|user| !seen.insert(*user)) {
        return Err(Problem::invalid(format!("/user_ids/{at}"), "must not be repeated").into());
    }
    submit(&state, GroupCommand::JoinMany { group: path.get("group")?, users }).await
}

/// List the members of a group
///
/// Sorted by ordinal.
#[utoipa::path(get, path = "/v1/groups/{group}/members", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("group" = GroupId, Path), PageParams),
    responses(
        (status = 200, body = PageOut<MemberOut>, headers(("Link" = String, description = "The next page, if any")))))]
async fn list_members(state: Served<GroupContext>, path: GroupPath, uri: Uri, Query(params): Query<PageParams>) -> Result<Response> {
    let wanted = params.wanted("members", path.group)?;
    path.view(&state.db).await?;
    let rows = lists::members(&state.db, path.group, wanted.after_id(), wanted.rows()).await?;
    pages::respond(&uri, wanted, &rows, |row| Position { at: 0, id: row.ordinal }, Clone::clone)
}

/// Send a message to a group
///
/// Marks the group as read by the sender, up to this message. A repeat with the same `client_id`
/// returns 200 with the same `seq`, also after a mentioned member has left. Returns 422 if a
/// mentioned user is not a member.
#[utoipa::path(post, path = "/v1/groups/{group}/messages", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone", "too_many"]))),
    params(("group" = GroupId, Path)),
    request_body = SendGroupMessageIn,
    responses(
        (status = 200, body = GroupSentOut, description = "Already sent"),
        (status = 201, body = GroupSentOut)))]
async fn send_group_message(state: Served<GroupContext>, path: GroupPath, body: Body<SendGroupMessageIn>) -> Result<Answer> {
    let SendGroupMessageIn { sender_id, client_id, content, mentions, mention_all } = body.value;
    let sender = SenderIn::resolve(sender_id, &path.caller)?;
    text_within(&content, 1, MAX_CONTENT_CHARS, "/content")?;
    let (mentions, mention_all) = (mentions.unwrap_or_default(), mention_all.unwrap_or(false));
    if mentions.len() > MAX_MENTIONS {
        return Err(Problem::invalid("/mentions", format!("must have at most {MAX_MENTIONS} users")).into());
    }
    let message = NewMessage { client_id, content, mentions, mention_all };
    submit(&state, GroupCommand::Send { group: path.group, sender, message }).await
}

/// Recall a group message
///
/// The message becomes read for all members, and a tombstone replaces it. Returns 204 also if it
/// was already recalled.
#[utoipa::path(delete, path = "/v1/groups/{group}/messages/{seq}", tag = "groups",
    extensions(("x-problems" = json!(["not_found", "gone"]))),
    params(("group" = GroupId, Path), ("seq" = Seq, Path)),
    responses(
        (status = 204, description = "Recalled")))]
async fn recall_group_message(state: Served<GroupContext>, path: GroupPath, _: Query<NoParams>) -> Result<Answer> {
    let seq: Seq = path.params.get("seq")?;
    let answer = submit(&state, GroupCommand::Recall { group: path.group, seq: seq.get(), by: path.user() }).await;
    state.recalled.changed(path.group);
    answer
}
