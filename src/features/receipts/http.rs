//! The routes of receipts.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::http::Uri;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::store::{self, Terms};
use super::{AtLeast, Receipts, Spans, Watch};
use crate::base::error::{Code, Error, Problem, Result};
use crate::base::fingerprint::Fingerprint;
use crate::base::ids::{GroupId, Seq, UserId};
use crate::db::Db;
use crate::features::groups::http::GroupPath;
use crate::features::groups::{lists, no_member, unknown};
use crate::http::pages::{self, PageOut, PageParams, Position, Wanted};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::polling::{self, Polling, Reading, Resource, Seen, Version};
use crate::http::served::Served;

/// The most messages of a screenful.
pub const MAX_SCREENFUL: i64 = 100;

/// What the handlers of receipts work with.
#[derive(Debug)]
pub struct ReceiptContext {
    pub db: Db,
    /// Who has read what.
    pub receipts: Arc<Receipts>,
    pub polling: Arc<Polling>,
}

pub fn routes() -> OpenApiRouter<Served<ReceiptContext>> {
    OpenApiRouter::new().routes(routes!(get_receipts)).routes(routes!(list_receipts))
}

/// The recipients to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Members {
    /// Those who have read the message.
    Read,
    /// Those who have not.
    Unread,
}

/// A format other than counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Bitmaps over the ordinals.
    Bitmap,
}

/// What is asked of a message's receipts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReceiptsParams {
    /// Return a list of the recipients who have read the message, or of those who have not, instead
    /// of counts.
    #[param(nullable = false, inline)]
    members: Option<Members>,
    /// Return bitmaps instead of counts. Cannot be combined with `members`.
    #[param(nullable = false, inline)]
    format: Option<Format>,
    /// With `members`: the maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 100, default = 20)]
    limit: Option<u32>,
    /// With `members`: the `next_cursor` of the previous page.
    #[param(nullable = false, pattern = "^2[0-9a-f]{36}$")]
    cursor: Option<String>,
    /// Hold the request for up to this many seconds until the response differs from the one that
    /// `If-None-Match` names; then return 304. Requires that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// A stretch of messages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ScreenfulParams {
    /// The first message.
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 21)]
    from: i64,
    /// The last message; the range can have at most 100 messages.
    #[param(minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 40)]
    to: i64,
    /// Hold the request for up to this many seconds until the response differs from the one that
    /// `If-None-Match` names; then return 304. Requires that header.
    #[param(nullable = false, minimum = 0, maximum = 60)]
    wait: Option<u32>,
}

/// Receipt counts of a message. `read_count` and `unread_count` always add up to `recipients`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReceiptsOut {
    /// The message.
    #[schema(minimum = 1, example = 121)]
    pub seq: i64,
    /// The sender.
    pub sender_id: UserId,
    /// The number of members when the message was sent, without the sender.
    #[schema(minimum = 0, example = 199)]
    pub recipients: i64,
    /// The number of recipients who have read the message.
    #[schema(minimum = 0, example = 120)]
    pub read_count: i64,
    /// The number of recipients who have not read the message.
    #[schema(minimum = 0, example = 79)]
    pub unread_count: i64,
    /// The highest ordinal when the message was sent.
    #[schema(minimum = 1, example = 210)]
    pub max_ordinal: i64,
}

/// A recipient of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RecipientOut {
    /// The user.
    pub user_id: UserId,
    /// The member's number in the group.
    #[schema(minimum = 1, example = 7)]
    pub ordinal: i64,
    /// Whether the user has left the group since.
    pub left: bool,
}

/// Receipts of a message as base64 bitmaps: ordinal `i` (from 1) is bit `i - 1`, with the lowest
/// bit of each byte first. Neither bitmap has the sender. A member in neither bitmap, except the
/// sender, is a recipient who has not read the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReceiptBitmapsOut {
    /// The highest ordinal when the message was sent, which is the number of bits.
    #[schema(minimum = 1, example = 12)]
    pub max_ordinal: i64,
    /// The recipients who have read it.
    #[schema(example = "/gM=")]
    pub read_bits: String,
    /// The members who had left before the message was sent.
    #[schema(example = "AAg=")]
    pub quit_bits: String,
}

/// Receipts of a message: counts, a list of recipients, or bitmaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ReceiptsAnswer {
    /// By default.
    Counts(ReceiptsOut),
    /// With `members`.
    Members(PageOut<RecipientOut>),
    /// With `format=bitmap`.
    Bitmaps(ReceiptBitmapsOut),
}

/// Receipt counts of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScreenfulItemOut {
    /// The message.
    #[schema(minimum = 1, example = 121)]
    pub seq: i64,
    /// The number of recipients who have read it.
    #[schema(minimum = 0, example = 120)]
    pub read_count: i64,
    /// The number of recipients who have not read it.
    #[schema(minimum = 0, example = 79)]
    pub unread_count: i64,
}

/// Receipt counts of several messages, in order, without recalled messages. Members see only their
/// own messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ScreenfulOut {
    /// One item for each message.
    pub items: Vec<ScreenfulItemOut>,
}

/// What is shown of a message's receipts.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Counts,
    Members(Members, Wanted),
    Bitmaps,
}

impl ReceiptsParams {
    fn shown(&self, group: GroupId, seq: i64) -> Result<Shown, Problem> {
        let page = PageParams { limit: self.limit, cursor: self.cursor.clone() };
        match (self.members, self.format) {
            (Some(_), Some(_)) => Err(Problem::query("format", "must be omitted when 'members' is set")),
            (Some(members), None) => Ok(Shown::Members(members, page.wanted("receipts", format_args!("{group} {seq}"))?)),
            (None, _) if self.limit.is_some() => Err(Problem::query("limit", "requires members")),
            (None, _) if self.cursor.is_some() => Err(Problem::query("cursor", "requires members")),
            (None, Some(Format::Bitmap)) => Ok(Shown::Bitmaps),
            (None, None) => Ok(Shown::Counts),
        }
    }
}

fn disabled(group: GroupId) -> Problem {
    Problem::new(Code::ReceiptsDisabled, format!("Receipts are disabled in group {group}."))
}

/// What a request found out about its messages. A poll that waits asks again only where that may be
/// otherwise by now.
struct Checked<T> {
    /// Tells of changes; None for a request that does not wait.
    watch: Option<Watch>,
    found: Mutex<Option<(Terms, Arc<T>)>>,
}

impl<T> Checked<T> {
    fn new(state: &ReceiptContext, group: GroupId, waits: bool) -> Self {
        Self { watch: waits.then(|| state.receipts.watch(group)), found: Mutex::default() }
    }

    fn changes(&self) -> Option<watch::Receiver<()>> {
        self.watch.as_ref().map(|watch| watch.changes.clone())
    }

    fn found(&self) -> MutexGuard<'_, Option<(Terms, Arc<T>)>> {
        // Every change is one step, so a poisoned lock guards whole data.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found before, where it still holds.
    fn known(&self) -> Option<Arc<T>> {
        let now = self.watch.as_ref()?.terms()?;
        self.found().as_ref().filter(|(terms, _)| now.allow_as(terms)).map(|(_, found)| Arc::clone(found))
    }

    /// Asks. The terms come first: what changes after them is found out later.
    async fn ask(&self, state: &ReceiptContext, group: GroupId, check: impl Future<Output = Result<T>>) -> Result<Arc<T>> {
        let terms = if self.watch.is_some() { store::terms(&state.db, group).await? } else { None };
        let found = Arc::new(check.await?);
        *self.found() = terms.map(|terms| (terms, Arc::clone(&found)));
        Ok(found)
    }
}

/// Who sent a message whose receipts the caller may see (its sender, also one who has left since,
/// or a service), and how many messages there are.
async fn sender_of(state: &ReceiptContext, path: &GroupPath, seq: i64) -> Result<(UserId, i64)> {
    let user = path.user();
    let view = lists::view(&state.db, path.group, user).await?.ok_or_else(|| unknown(path.group))?;
    let sent = store::senders(&state.db, path.group, seq, seq).await?.first().copied();
    let is_own = |sender: UserId| user.is_none_or(|user| user == sender);
    let found = match (user, sent) {
        (_, Some((_, sender, false))) if is_own(sender) => sender,
        // Its sender knows of it, also after leaving.
        (_, Some((_, sender, true))) if is_own(sender) => return Err(no_message(path.group, seq)),
        (Some(user), _) if view.since.is_none() => return Err(no_member(path.group, user).into()),
        (Some(_), Some((.., false))) if view.since.is_some_and(|since| seq > since) => {
            return Err(Problem::new(Code::Forbidden, "Only the sender of a message and services can read its receipts.").into());
        }
        _ => return Err(no_message(path.group, seq)),
    };
    if view.group.receipts { Ok((found, view.head.max(seq))) } else { Err(disabled(path.group).into()) }
}

fn no_message(group: GroupId, seq: i64) -> Error {
    Problem::new(Code::NotFound, format!("Message {seq} of group {group} does not exist or was recalled.")).into()
}

/// Who sent each message of a screenful that is still there, and how many messages there are.
async fn senders_of(state: &ReceiptContext, path: &GroupPath, from: i64, to: i64) -> Result<(Vec<(i64, UserId)>, i64)> {
    let view = path.view(&state.db).await?;
    if !view.group.receipts {
        return Err(disabled(path.group).into());
    }
    let sent = store::senders(&state.db, path.group, from, to).await?;
    let head = view.head.max(sent.last().map_or(0, |(seq, ..)| *seq));
    Ok((sent.into_iter().filter(|(.., recalled)| !recalled).map(|(seq, sender, _)| (seq, sender)).collect(), head))
}

/// What the answer depends on: the progress of all, and a fingerprint of what is shown.
fn version(spans: &Spans, numbers: impl IntoIterator<Item = i64>) -> Version {
    let mut shown = Fingerprint::default();
    numbers.into_iter().for_each(|number| shown.add(number));
    Version { revision: spans.progress(), shared: shown.finish() }
}

/// Get the receipts of a message
///
/// Available to the sender of the message and to services. Returns counts by default, a list of
/// recipients with `members`, or bitmaps over the ordinals with `format=bitmap`.
#[utoipa::path(get, path = "/v1/groups/{group}/messages/{seq}/receipts", tag = "receipts",
    params(("group" = GroupId, Path), ("seq" = Seq, Path), ReceiptsParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = ReceiptsAnswer, headers(
            ("Link" = String, description = "The next page, if any"),
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn get_receipts(
    state: Served<ReceiptContext>,
    path: GroupPath,
    uri: Uri,
    Query(params): Query<ReceiptsParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let seq = path.params.get::<Seq>("seq")?.get();
    let (shown, wait) = (params.shown(path.group, seq)?, polling::wait_of(params.wait)?);
    let checked = Checked::new(&state, path.group, wait > 0 && tags.is_present());
    let read = |seen: Seen| {
        let (state, path, checked) = (state.clone(), &path, &checked);
        async move {
            let found = match checked.known() {
                Some(found) => found,
                None => checked.ask(&state, path.group, sender_of(&state, path, seq)).await?,
            };
            let (sender, head) = *found;
            let least = AtLeast { progress: seen.revision(), seq, at: None };
            let spans = state.receipts.spans(path.group, least, head).await?;
            let value = answer(&spans, seq, sender, shown, state.receipts.max_members)?;
            let version = Some(version_of(&spans, &value));
            Ok(Reading { value, version })
        }
    };
    let next = OnceLock::new();
    let write = |value: &ReceiptsAnswer| {
        if let ReceiptsAnswer::Members(page) = value {
            next.get_or_init(|| page.next_cursor.clone());
        }
        polling::json(value)
    };
    // A sender and a service are shown the same.
    let mut response = polling::poll_also(&state.polling, None, wait, &tags, checked.changes(), Resource { read, write }).await?;
    pages::add_link(&mut response, &uri, next.get().and_then(Option::as_deref))?;
    Ok(response)
}

fn answer(spans: &Arc<Spans>, seq: i64, sender: UserId, shown: Shown, most: i64) -> Result<ReceiptsAnswer, Error> {
    match shown {
        Shown::Counts => {
            let count = spans.counts(seq, &[Some(sender)]).first().copied().unwrap_or_default();
            let unread_count = count.recipients - count.read;
            let max_ordinal = spans.max_ordinal(seq);
            let (recipients, read_count) = (count.recipients, count.read);
            Ok(ReceiptsAnswer::Counts(ReceiptsOut { seq, sender_id: sender, recipients, read_count, unread_count, max_ordinal }))
        }
        Shown::Members(members, wanted) => {
            let rows = usize::try_from(wanted.rows()).unwrap_or(usize::MAX);
            let recipients = spans.recipients(seq, sender, members == Members::Read, wanted.after_id());
            let recipients: Vec<_> = recipients.take(rows).collect();
            let position = |of: &super::Recipient| Position { at: 0, id: of.ordinal };
            let out = |of: &super::Recipient| RecipientOut { user_id: of.user, ordinal: of.ordinal, left: of.left };
            Ok(ReceiptsAnswer::Members(pages::page(wanted, &recipients, position, out)))
        }
        Shown::Bitmaps => {
            let max_ordinal = spans.max_ordinal(seq);
            if max_ordinal > most {
                let detail = format!("The group has {max_ordinal} ordinals. A bitmap can have at most {most}.");
                return Err(Problem::new(Code::TooLarge, detail).into());
            }
            let bits = spans.bitmaps(seq, sender);
            let (read_bits, quit_bits) = (BASE64.encode(&bits.read), BASE64.encode(&bits.quit));
            Ok(ReceiptsAnswer::Bitmaps(ReceiptBitmapsOut { max_ordinal, read_bits, quit_bits }))
        }
    }
}

fn version_of(spans: &Spans, value: &ReceiptsAnswer) -> Version {
    match value {
        ReceiptsAnswer::Counts(of) => version(spans, [of.recipients, of.read_count]),
        ReceiptsAnswer::Members(page) => version(spans, page.items.iter().flat_map(|of| [of.ordinal, i64::from(of.left)])),
        ReceiptsAnswer::Bitmaps(of) => version(spans, of.read_bits.bytes().chain(of.quit_bits.bytes()).map(i64::from)),
    }
}

/// Count the receipts of several messages
///
/// Meant for one screen of messages. Services see all messages; members see their own.
#[utoipa::path(get, path = "/v1/groups/{group}/receipts", tag = "receipts",
    params(("group" = GroupId, Path), ScreenfulParams,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier response")),
    responses(
        (status = 200, body = ScreenfulOut, headers(
            ("ETag" = String, description = "The version of the response"),
            ("X-Poll-Interval" = u32, description = "The recommended polling interval, in seconds"))),
        (status = 304, description = "Not modified")))]
async fn list_receipts(
    state: Served<ReceiptContext>,
    path: GroupPath,
    Query(params): Query<ScreenfulParams>,
    tags: IfNoneMatch,
) -> Result<Response> {
    let (ScreenfulParams { from, to, .. }, wait) = (&params, polling::wait_of(params.wait)?);
    let (from, to) = (*from, *to);
    for (name, value) in [("from", from), ("to", to)] {
        if !(1..=crate::base::ids::MAX_HEAD).contains(&value) {
            return Err(Problem::query(name, format!("must be between 1 and {}", crate::base::ids::MAX_HEAD)).into());
        }
    }
    if !(0..MAX_SCREENFUL).contains(&(to - from)) {
        return Err(Problem::query("to", format!("must be between 'from' and 'from' + {}", MAX_SCREENFUL - 1)).into());
    }
    let checked = Checked::new(&state, path.group, wait > 0 && tags.is_present());
    let read = |seen: Seen| {
        let (state, path, checked) = (state.clone(), &path, &checked);
        async move {
            let check = || checked.ask(&state, path.group, senders_of(&state, path, from, to));
            let known = checked.known();
            let mut found = match &known {
                Some(found) => Arc::clone(found),
                None => check().await?,
            };
            let seq = found.0.last().map_or(0, |(seq, _)| *seq);
            let spans = state.receipts.spans(path.group, AtLeast { progress: seen.revision(), seq, at: None }, found.1).await?;
            // A member who has left meanwhile is refused.
            if known.is_some() && path.user().is_some_and(|user| !spans.is_member(user)) {
                found = check().await?;
            }
            let value = screenful(&spans, from, to, &found.0, path.user());
            let numbers = value.items.iter().flat_map(|of| [of.seq, of.read_count, of.unread_count]);
            let version = Some(version(&spans, numbers));
            Ok(Reading { value, version })
        }
    };
    let write = |value: &ScreenfulOut| polling::json(value);
    polling::poll_also(&state.polling, path.user(), wait, &tags, checked.changes(), Resource { read, write }).await
}

fn screenful(spans: &Spans, from: i64, to: i64, senders: &[(i64, UserId)], user: Option<UserId>) -> ScreenfulOut {
    let mut by_seq = vec![None; usize::try_from(to - from + 1).unwrap_or(0)];
    for (seq, sender) in senders.iter().filter(|(_, sender)| user.is_none_or(|user| user == *sender)) {
        if let Some(place) = usize::try_from(seq - from).ok().and_then(|at| by_seq.get_mut(at)) {
            *place = Some(*sender);
        }
    }
    let counts = spans.counts(from, &by_seq);
    let shown = (from..).zip(by_seq).zip(counts).filter(|((_, sender), _)| sender.is_some());
    let item = |((seq, _), count): ((i64, Option<UserId>), super::Count)| ScreenfulItemOut {
        seq,
        read_count: count.read,
        unread_count: count.recipients - count.read,
    };
    ScreenfulOut { items: shown.map(item).collect() }
}
