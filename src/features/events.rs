//! The route of events.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::base::clock::UnixMs;
use crate::base::error::{Code, Fault, Problem, Result};
use crate::db::Db;
use crate::engine::events::publisher::{is_there, with_id};
use crate::engine::events::{Event, EventConfig, EventTypeNames, EventTypes, Publisher, store};
use crate::http::answer::no_cache;
use crate::http::auth::Service;
use crate::http::params::Query;
use crate::http::polling::{Polling, X_POLL_INTERVAL};
use crate::http::served::Served;
use crate::http::{pages, polling};

/// The most events of an answer, and how many where no limit is given.
pub const MAX_EVENTS: usize = 1000;
const DEFAULT_EVENTS: usize = 100;

/// How many seconds a reader pauses whose wait was cut short.
const EARLY_INTERVAL_S: &str = "1";

/// How often one who waits looks without being told.
const RECHECK: Duration = Duration::from_secs(1);

/// How many rows are read first; each may hold many events. Then twice as many each time, up to the
/// most.
const FIRST_ROWS: i64 = 4;
const MOST_ROWS: i64 = 256;

/// How many rows one answer passes by in search of the types that were asked for. Then it says how
/// far it came.
const MAX_ROWS_SEARCHED: i64 = 10_000;

/// What the handlers and sweeps of events work with.
#[derive(Debug)]
pub struct EventContext {
    pub db: Db,
    /// What numbers events.
    pub events: Arc<Publisher>,
    pub polling: Arc<Polling>,
    /// How events are kept.
    pub config: EventConfig,
}

pub fn routes() -> OpenApiRouter<Served<EventContext>> {
    OpenApiRouter::new().routes(routes!(list_events))
}

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventsParams {
    /// Return events after this number: the `next_after` of the previous response. By default,
    /// events start with the oldest one kept. A number beyond the last event returns 410.
    #[param(nullable = false, minimum = 0, maximum = 9_007_199_254_740_991_i64)]
    after: Option<i64>,
    /// The maximum number of items.
    #[param(nullable = false, minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Return events of these types only, comma-separated. All by default.
    #[param(nullable = false, inline, value_type = Option<EventTypeNames>)]
    types: Option<String>,
    /// Hold the request for up to this many seconds while there are no new events.
    #[param(nullable = false, minimum = 0, maximum = 60, default = 0)]
    wait: Option<u32>,
}

/// An event.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventOut {
    /// The number of the event. It becomes readable after all lower numbers.
    #[schema(minimum = 1, example = 918)]
    pub id: i64,
    /// When it happened.
    pub at: UnixMs,
    /// The change.
    #[serde(flatten)]
    pub event: Event,
}

/// A page of events, in the order of their numbers.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventsOut {
    /// The events.
    #[schema(value_type = Vec<EventOut>)]
    items: Vec<Box<RawValue>>,
    /// The value of `after` for the next request. With `types`, it passes by events of other types,
    /// so it also moves where there are no items.
    #[schema(minimum = 0, example = 918)]
    next_after: i64,
    /// Whether there may be more events.
    has_more: bool,
}

/// List events
///
/// Returns all changes of relations, broadcasts, posts, group members, messages and notifications.
/// For users with a push device, it also returns every change of their numbers. Each event has a
/// unique number, so that readers can discard repeats. An event never appears after an event with a
/// higher number was readable. Events of the same pair of users, creator, channel, group,
/// notification or user are in the order in which they happened.
#[utoipa::path(get, path = "/v1/events", tag = "events",
    extensions(("x-problems" = json!(["gone"]))),
    params(EventsParams),
    responses(
        (status = 200, body = EventsOut, headers(
            ("X-Poll-Interval" = u32, description = "How many seconds to pause after an empty response that came too early")))))]
async fn list_events(state: Served<EventContext>, _: Service, Query(params): Query<EventsParams>) -> Result<Response> {
    let (limit, wait) = (params.limit.unwrap_or(DEFAULT_EVENTS), polling::wait_of(params.wait)?);
    if !(1..=MAX_EVENTS).contains(&limit) {
        return Err(Problem::query("limit", format!("must be between 1 and {MAX_EVENTS}")).into());
    }
    let types = params.types.as_deref().map_or(Ok(EventTypes::ALL), EventTypes::parse).map_err(|why| Problem::query("types", why))?;
    let mut after = pages::after_of(params.after)?;
    let deadline = Instant::now() + Duration::from_secs(u64::from(wait));
    let room = if wait > 0 { state.polling.waiting.take()? } else { None };
    // Listens before it reads: what comes in between would be missed the other way round.
    let mut published = state.events.listen();
    loop {
        let out = read(&state, after, types, limit).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        if !out.items.is_empty() || left.is_zero() || room.is_none() || state.polling.draining.is_cancelled() {
            let mut response = no_cache(&out);
            // For a request that is answered before its time. The interval of polls is for many users, and long.
            response.headers_mut().insert(X_POLL_INTERVAL.clone(), HeaderValue::from_static(EARLY_INTERVAL_S));
            return Ok(response);
        }
        // What was passed by is not searched again.
        after = Some(out.next_after);
        if out.has_more {
            continue;
        }
        tokio::select! {
            _ = published.wait_for(|published| published.has(types, out.next_after)) => {}
            () = tokio::time::sleep(left.min(RECHECK)) => {}
            () = state.polling.draining.cancelled() => {}
        }
    }
}

/// A page as it is read.
#[derive(Debug)]
struct Page {
    items: Vec<Box<RawValue>>,
    /// The number of the last event that was looked at, or of the last that fits.
    reached: i64,
    has_more: bool,
}

/// The type of an event in a row.
#[derive(Deserialize)]
struct TypeOf<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
}

fn is_wanted(types: EventTypes, event: &RawValue) -> serde_json::Result<bool> {
    Ok(types == EventTypes::ALL || types.has_name(&serde_json::from_str::<TypeOf<'_>>(event.get())?.r#type))
}

impl Page {
    /// Takes in a row; whether it has room for more.
    fn take(&mut self, row: &store::EventRow, types: EventTypes, limit: usize) -> serde_json::Result<bool> {
        let events: Vec<&RawValue> = if row.content.is_empty() { Vec::new() } else { serde_json::from_str(&row.content)? };
        let from = self.reached;
        for (id, event) in (row.first..).zip(events) {
            if id <= from || !is_there(event) || !is_wanted(types, event)? {
                continue;
            }
            if self.items.len() == limit {
                self.has_more = true;
                return Ok(false);
            }
            self.items.push(RawValue::from_string(with_id(id, event))?);
            self.reached = id;
        }
        self.reached = self.reached.max(row.last);
        Ok(true)
    }
}

/// Events after a number, and how far that is.
async fn search(db: &Db, from: i64, types: EventTypes, limit: usize) -> Result<Page> {
    let broken = |error: serde_json::Error| Fault::Bug(error.to_string());
    let mut page = Page { items: Vec::new(), reached: from, has_more: false };
    let (mut rows, mut searched) = (FIRST_ROWS, 0);
    loop {
        let found = store::read(db, page.reached, types, rows).await?;
        let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
        for row in &found {
            if !page.take(row, types, limit).map_err(broken)? {
                return Ok(page);
            }
        }
        if count < rows {
            return Ok(page);
        }
        searched += count;
        if searched >= MAX_ROWS_SEARCHED {
            return Ok(Page { has_more: true, ..page });
        }
        rows = (rows * 2).min(MOST_ROWS);
    }
}

async fn read(state: &EventContext, after: Option<i64>, types: EventTypes, limit: usize) -> Result<EventsOut> {
    let from = match after {
        Some(after) => after,
        None => store::kept(&state.db).await?.floor,
    };
    let Page { items, reached, has_more } = search(&state.db, from, types, limit).await?;
    // After the rows: what was swept meanwhile would be missing among them, and the head is no
    // lower than any of them.
    let store::Kept { floor, head } = store::kept(&state.db).await?;
    if from < floor {
        let detail = format!("Events up to {floor} have expired. Continue with after={floor}, or without after.");
        return Err(Problem::new(Code::Gone, detail).into());
    }
    // What is committed is numbered a moment later, and may be asked for meanwhile by anyone who
    // has counted it.
    if from > head && from > store::end(&state.db).await? {
        let detail = format!(
            "The last event is {head}, so event {from} is from before the database was restored. Continue without after, and \
             discard the ids that you stored."
        );
        return Err(Problem::new(Code::Gone, detail).into());
    }
    Ok(EventsOut { items, next_after: reached, has_more })
}
