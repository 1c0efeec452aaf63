//! The routes of receipts.

use std::sync::{Arc, OnceLock};

use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Receipts;
use super::access::{admit, sender_of, senders_of};
use super::answers::{Members, ReceiptsAnswer, ScreenfulOut, Shown, answer, screenful};
use crate::base::error::{Problem, Result};
use crate::base::ids::{GroupId, Seq};
use crate::engine::entries::Entries;
use crate::features::groups::http::GroupPath;
use crate::features::hidden_receipts::must_share;
use crate::http::pages::{self, PageParams};
use crate::http::params::{IfNoneMatch, Query};
use crate::http::polling::{self, Asked, PolledValue, Polling, Resource, Seen, Wakers};
use crate::http::served::Served;

/// The most messages of a screenful.
pub const MAX_SCREENFUL: i64 = 100;

/// What the handlers of receipts work with.
#[derive(Debug)]
pub struct ReceiptContext {
    /// Tells which users hide what they have read.
    pub entries: Arc<Entries>,
    /// Who has read what.
    pub receipts: Arc<Receipts>,
    pub polling: Arc<Polling>,
}

pub fn routes() -> OpenApiRouter<Served<ReceiptContext>> {
    OpenApiRouter::new().routes(routes!(get_receipts)).routes(routes!(list_receipts))
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

/// Get the receipts of a message
///
/// Available to the sender of the message and to services. A member who does not share receipts
/// counts as not having read, and gets 403 `receipts_hidden`. Returns counts by default, a list of
/// recipients with `members`, or bitmaps over the ordinals with `format=bitmap`.
#[utoipa::path(get, path = "/v1/groups/{group}/messages/{seq}/receipts", tag = "receipts",
    extensions(("x-problems" = json!(["not_found", "gone", "cursor_expired", "receipts_disabled", "receipts_hidden", "too_large"]))),
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
    let watch = (wait > 0 && tags.is_present()).then(|| state.receipts.watch(path.group));
    let read = |seen: Seen| {
        let (state, path) = (state.clone(), &path);
        async move {
            admit(&state.receipts, path, Some(seq)).await?;
            let mut asked = state.receipts.asked(path.group, path.user(), seq, seen.revision());
            loop {
                let known = asked.known().await?;
                let sender = sender_of(&state.receipts, &known, path, seq).await?;
                let (value, age) = answer(&known.spans, seq, sender, shown, state.receipts.max_members)?;
                if asked.will_do(age) {
                    must_share(&state.entries, path.user()).await?;
                    return Ok(PolledValue { value, version: Some(age.version), changes_at: None });
                }
            }
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
    let asked = Asked { tags: &tags, about: None, wait };
    let wakers = Wakers { user: path.user(), peer: None, also: watch.map(|watch| watch.changes), shared: false };
    let mut response = polling::poll_on(&state.polling, asked, wakers, Resource { read, write }).await?;
    pages::add_link(&mut response, &uri, next.get().and_then(Option::as_deref))?;
    Ok(response)
}

/// Count the receipts of several messages
///
/// Meant for one screen of messages. Services see all messages; members see their own. A member who
/// does not share receipts gets 403 `receipts_hidden`.
#[utoipa::path(get, path = "/v1/groups/{group}/receipts", tag = "receipts",
    extensions(("x-problems" = json!(["not_found", "gone", "cursor_expired", "receipts_disabled", "receipts_hidden"]))),
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
    let watch = (wait > 0 && tags.is_present()).then(|| state.receipts.watch(path.group));
    let read = |seen: Seen| {
        let (state, path) = (state.clone(), &path);
        async move {
            admit(&state.receipts, path, None).await?;
            let mut asked = state.receipts.asked(path.group, path.user(), to, seen.revision());
            loop {
                let known = asked.known().await?;
                let sent = senders_of(&state.receipts, &known, path, from, to).await?;
                let (value, age) = screenful(&known.spans, from, to, &sent, path.user());
                if asked.will_do(age) {
                    must_share(&state.entries, path.user()).await?;
                    return Ok(PolledValue { value, version: Some(age.version), changes_at: None });
                }
            }
        }
    };
    let write = |value: &ScreenfulOut| polling::json(value);
    let asked = Asked { tags: &tags, about: path.user(), wait };
    let wakers = Wakers { user: path.user(), peer: None, also: watch.map(|watch| watch.changes), shared: false };
    polling::poll_on(&state.polling, asked, wakers, Resource { read, write }).await
}
