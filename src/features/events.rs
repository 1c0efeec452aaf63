//! The route of events. `page.rs` reads them.

mod page;

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

use self::page::{Page, search};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Error, Problem, Result};
use crate::db::Db;
use crate::engine::epoch;
use crate::engine::events::{Event, EventConfig, EventTypeNames, EventTypes, Publisher, store};
use crate::failpoint;
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
    // A client that names none misses nothing, whatever expires while it waits.
    let named_position = after.is_some();
    let deadline = Instant::now() + Duration::from_secs(u64::from(wait));
    let room = if wait > 0 { state.polling.waiting.take()? } else { None };
    // Listens before it reads: what comes in between would be missed the other way round.
    let mut published = state.events.listen();
    loop {
        let out = read(&state, after, named_position, types, limit).await?;
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

async fn read(state: &EventContext, after: Option<i64>, named_position: bool, types: EventTypes, limit: usize) -> Result<EventsOut> {
    let from = match after {
        Some(after) => after,
        None => store::kept(&state.db).await?.floor,
    };
    let page = search(&state.db, from, types, limit).await?;
    failpoint("events::searched");
    // After the rows: what was swept meanwhile would be missing among them, and the head is no
    // lower than any of them.
    let store::Kept { floor, head } = store::kept(&state.db).await?;
    if from < floor && named_position {
        let detail = format!("Events up to {floor} have expired. Continue with after={floor}, or without after.");
        return Err(Problem::new(Code::Gone, detail).into());
    }
    if from > head {
        refuse_beyond(&state.db, from, head).await?;
    }
    let Page { items, reached, has_more } = page.above(floor);
    Ok(EventsOut { items: items.into_iter().map(|(_, event)| event).collect(), next_after: reached, has_more })
}

/// Refuses a number beyond the head, unless an event has it soon.
async fn refuse_beyond(db: &Db, from: i64, head: i64) -> Result<()> {
    // A database that has failed over raises its head soon. Asked first, as both begin at once.
    if !epoch::reads_noted_history(db).await? {
        return Err(Error::store_unavailable());
    }
    // What is committed is numbered a moment later, and may be asked for meanwhile by anyone who
    // has counted it.
    if from <= store::end(db).await? {
        return Ok(());
    }
    let detail = format!(
        "The last event is {head}, so event {from} is from before the database was restored. Continue without after, and \
         discard the ids that you stored."
    );
    Err(Problem::new(Code::Gone, detail).into())
}
