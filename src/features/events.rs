//! The route of events.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::base::clock::UnixMs;
use crate::base::error::{Code, Problem, Result};
use crate::db::Db;
use crate::engine::events::publisher::with_id;
use crate::engine::events::{Event, EventConfig, Publisher, store};
use crate::http::answer::no_cache;
use crate::http::auth::Service;
use crate::http::params::Query;
use crate::http::polling::Polling;
use crate::http::served::Served;
use crate::http::{pages, polling};

/// The most events of an answer, and how many where no limit is given.
pub const MAX_EVENTS: usize = 1000;
const DEFAULT_EVENTS: usize = 100;

/// How often one who waits looks without being told.
const RECHECK: Duration = Duration::from_secs(1);

/// How many rows are read first; each may hold the events of a whole batch. Then twice as many each
/// time, up to the most.
const FIRST_ROWS: i64 = 4;
const MOST_ROWS: i64 = 256;

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
    /// The value of `after` for the next request.
    #[schema(minimum = 0, example = 918)]
    next_after: i64,
    /// Whether there are more events.
    has_more: bool,
}

/// List events
///
/// Returns all changes of relations, broadcasts, posts and group members. Each event has a unique
/// number, so that readers can discard repeats. An event never appears after an event with a higher
/// number was readable. Events of the same pair of users, creator or channel are in the order in
/// which they happened.
#[utoipa::path(get, path = "/v1/events", tag = "events",
    extensions(("x-problems" = json!(["gone"]))),
    params(EventsParams),
    responses(
        (status = 200, body = EventsOut)))]
async fn list_events(state: Served<EventContext>, _: Service, Query(params): Query<EventsParams>) -> Result<Response> {
    let (limit, wait) = (params.limit.unwrap_or(DEFAULT_EVENTS), polling::wait_of(params.wait)?);
    if !(1..=MAX_EVENTS).contains(&limit) {
        return Err(Problem::query("limit", format!("must be between 1 and {MAX_EVENTS}")).into());
    }
    let after = pages::after_of(params.after)?;
    let deadline = Instant::now() + Duration::from_secs(u64::from(wait));
    let room = if wait > 0 { state.polling.waiting.take()? } else { None };
    // Listens before it reads: what comes in between would be missed the other way round.
    let mut heads = state.events.listen();
    loop {
        let out = read(&state, after, limit).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        if !out.items.is_empty() || left.is_zero() || room.is_none() || state.polling.draining.is_cancelled() {
            return Ok(no_cache(&out));
        }
        tokio::select! {
            _ = heads.changed() => {}
            () = tokio::time::sleep(left.min(RECHECK)) => {}
            () = state.polling.draining.cancelled() => {}
        }
    }
}

async fn read(state: &EventContext, after: Option<i64>, limit: usize) -> Result<EventsOut> {
    let from = match after {
        Some(after) => after,
        None => store::kept(&state.db).await?.floor,
    };
    let mut items: Vec<Box<RawValue>> = Vec::new();
    let (mut last, mut rows) = (from, FIRST_ROWS);
    while items.len() <= limit {
        let found = store::read(&state.db, last, rows).await?;
        let ended = i64::try_from(found.len()).unwrap_or(i64::MAX) < rows;
        for (first, content) in found {
            let events: Vec<&RawValue> =
                serde_json::from_str(&content).map_err(|error| crate::base::error::Fault::Bug(error.to_string()))?;
            for (id, event) in (first..).zip(events).filter(|(id, _)| *id > from) {
                last = id;
                if items.len() <= limit {
                    items.push(
                        RawValue::from_string(with_id(id, event)).map_err(|error| crate::base::error::Fault::Bug(error.to_string()))?,
                    );
                }
            }
        }
        if ended {
            break;
        }
        rows = (rows * 2).min(MOST_ROWS);
    }
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
    let has_more = items.len() > limit;
    items.truncate(limit);
    let shown = i64::try_from(items.len()).unwrap_or_default();
    Ok(EventsOut { items, next_after: from + shown, has_more })
}
