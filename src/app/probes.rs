//! The server itself: whether it lives, whether it is ready, and its metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::documents::Document;
use crate::app::process;
use crate::app::single_flight::SingleFlight;
use crate::app::state::AppState;
use crate::db::ReplicaState;
use crate::engine::guard::Trust;

/// How long a store may take to answer before it counts as away.
const MAX_ANSWER: Duration = Duration::from_secs(1);

/// How long the threads may take to answer before one of them counts as stuck. The liveness probes in `deploy/` wait
/// for 3 s.
const MAX_THREADS_ANSWER: Duration = Duration::from_millis(2500);

/// How long a caller waits for a look at the threads. One thread looks for all who ask, and with it the time of the look
/// stands still.
const MAX_LOOK: Duration = MAX_THREADS_ANSWER.saturating_add(Duration::from_millis(250));

/// The routes of the server itself. None needs credentials, none tells more than states and counts. Nothing bounds how
/// many ask, so the threads are asked once for all who ask at a time.
pub fn routes() -> OpenApiRouter<AppState> {
    let looks = SingleFlight::<bool>::default();
    OpenApiRouter::new().routes(routes!(get_livez)).routes(routes!(get_healthz)).layer(Extension(looks))
}

/// Those that are for operators. Nothing bounds how many ask, and each answer takes a connection of those for reads, or
/// some work: so one is made at a time.
pub fn admin_routes(compression: bool) -> OpenApiRouter<AppState> {
    let looks = SingleFlight::<Parts>::default();
    let renders = Renders { flight: SingleFlight::default(), compression };
    OpenApiRouter::new().routes(routes!(get_readyz)).routes(routes!(get_metrics)).layer(Extension(looks)).layer(Extension(renders))
}

/// The metrics as text, which all who ask at once share, compressed forms included.
#[derive(Clone)]
struct Renders {
    flight: SingleFlight<Arc<Document>>,
    compression: bool,
}

/// The database, the cache and the replica.
type Parts = (PartState, PartState, Option<PartState>);

/// Liveness.
#[derive(Debug, Serialize, ToSchema)]
pub struct HealthOut {
    /// `ok`; `failed` if only a restart helps.
    status: &'static str,
}

/// The state of a store or a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// It works.
    Ok,
    /// It does not answer.
    Away,
    /// It answers, but what it shows may be too old: what it would be read for comes from the
    /// database.
    Lagging,
    /// It works, but polls go to the database until all nodes agree on the cache again.
    Bypassed,
    /// It is stopping.
    Draining,
    /// A part of it has ended, and does not come back without a restart.
    Failed,
}

/// Readiness.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReadyOut {
    /// Whether the node is ready: it is not stopping, all its parts run, and at least one store
    /// responds. Without the cache, polls read the database. Without the database, polls read the
    /// cache and writes return 503.
    ready: bool,
    /// Whether a store is unavailable.
    degraded: bool,
    /// The database.
    database: PartState,
    /// The cache.
    cache: PartState,
    /// The replica, if there is one. Without it its reads go to the database, so it makes nothing
    /// degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    replica: Option<PartState>,
    /// The node itself.
    node: PartState,
}

/// Check liveness
#[utoipa::path(get, path = "/livez", tag = "server", security(()),
    responses((status = 200, body = HealthOut), (status = 503, body = HealthOut, description = "Only a restart helps")))]
async fn get_livez(State(state): State<AppState>, Extension(looks): Extension<SingleFlight<bool>>) -> Response {
    liveness(state, &looks).await
}

/// Check liveness
#[utoipa::path(get, path = "/healthz", tag = "server", security(()),
    responses((status = 200, body = HealthOut), (status = 503, body = HealthOut, description = "Only a restart helps")))]
async fn get_healthz(State(state): State<AppState>, Extension(looks): Extension<SingleFlight<bool>>) -> Response {
    liveness(state, &looks).await
}

/// As the watchdog of systemd has it, so that whatever else restarts nodes can do the same.
async fn liveness(state: AppState, looks: &SingleFlight<bool>) -> Response {
    let look = async move { tokio::time::timeout(MAX_THREADS_ANSWER, state.are_healthy()).await.unwrap_or(false) };
    match found(looks, look, MAX_LOOK).await {
        true => Json(HealthOut { status: "ok" }).into_response(),
        false => unavailable(HealthOut { status: "failed" }),
    }
}

/// What a look found. Where none comes to its end in time, a thread is stuck.
async fn found(looks: &SingleFlight<bool>, look: impl Future<Output = bool> + Send + 'static, max: Duration) -> bool {
    tokio::time::timeout(max, looks.get(look)).await.unwrap_or(false)
}

fn unavailable(body: impl Serialize) -> Response {
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Check readiness
#[utoipa::path(get, path = "/readyz", tag = "server", security(()),
    responses((status = 200, body = ReadyOut), (status = 503, body = ReadyOut, description = "Not ready")))]
async fn get_readyz(State(state): State<AppState>, Extension(looks): Extension<SingleFlight<Parts>>) -> Response {
    let (database, cache, replica) = looks.get(look(state.clone())).await;
    let node = match state.polling.draining.is_cancelled() {
        true => PartState::Draining,
        false if state.lanes.have_failed() => PartState::Failed,
        false => PartState::Ok,
    };
    let ready = is_ready(node == PartState::Ok, database == PartState::Ok, cache != PartState::Away);
    let degraded = database == PartState::Away || cache != PartState::Ok;
    let out = ReadyOut { ready, degraded, database, cache, replica, node };
    if ready { Json(out).into_response() } else { unavailable(out) }
}

/// Asks the stores.
async fn look(state: AppState) -> Parts {
    let database = tokio::time::timeout(MAX_ANSWER, state.db.ping());
    let cache = tokio::time::timeout(MAX_ANSWER, state.cache.run_id());
    let (database, cache) = tokio::join!(database, cache);
    let part = |ok: bool| if ok { PartState::Ok } else { PartState::Away };
    let database = part(matches!(database, Ok(Ok(()))) && state.guard.may_write());
    let cache = match cache {
        // Another run than the one that all nodes read answers until it is taken over.
        Ok(Ok(run)) if state.guard.trust() == Trust::Bypass || !state.cache.is_trusted_run(&run) => PartState::Bypassed,
        cache => part(matches!(cache, Ok(Ok(_)))),
    };
    let replica = state.pages.replica_state().map(|replica| match replica {
        ReplicaState::Ok => PartState::Ok,
        ReplicaState::Lagging => PartState::Lagging,
        ReplicaState::Away => PartState::Away,
    });
    (database, cache, replica)
}

/// Whether a node is ready whose parts are up.
fn is_ready(node: bool, database: bool, cache: bool) -> bool {
    node && (database || cache)
}

/// The parts as this node saw them when it last asked, each second: a scrape must not wait for a
/// store.
fn measure_parts(state: &AppState) {
    let up = |part: &'static str, up: bool| metrics::gauge!("headmark_part_up", "part" => part).set(f64::from(u8::from(up)));
    let database = state.guard.may_write() && state.guard.trust() != Trust::Unsure;
    // The breaker knows sooner that it is away, and the guard alone that it takes no writes.
    let cache = !state.cache.is_away() && state.guard.cache_answers();
    let node = !state.polling.draining.is_cancelled() && !state.lanes.have_failed();
    up("database", database);
    up("cache", cache);
    up("node", node);
    if let Some(replica) = state.pages.replica_state() {
        up("replica", replica == ReplicaState::Ok);
    }
    metrics::gauge!("headmark_ready").set(f64::from(u8::from(is_ready(node, database, cache))));
}

/// Get metrics in the Prometheus text format
#[utoipa::path(get, path = "/metrics", tag = "server", security(()),
    responses((status = 200, content_type = "text/plain", body = String)))]
async fn get_metrics(State(state): State<AppState>, Extension(renders): Extension<Renders>, asked: HeaderMap) -> Response {
    renders.flight.get(render(state)).await.full(renders.compression, &asked)
}

/// Measures, and writes down all metrics.
async fn render(state: AppState) -> Arc<Document> {
    #[expect(clippy::cast_precision_loss, reason = "queues are far below 2^52")]
    let set = |name: &'static str, value: usize| metrics::gauge!(name).set(value as f64);
    set("headmark_lane_waiting", state.lanes.waiting());
    set("headmark_fan_out_waiting", state.fan_out.waiting());
    let oldest_ms = state.fan_out.oldest_ms(state.clock.now());
    metrics::gauge!("headmark_fan_out_oldest_seconds").set(Duration::from_millis(oldest_ms.unsigned_abs()).as_secs_f64());
    set("headmark_polls_waiting", state.polling.waiting.taken());
    set("headmark_polls_waiting_limit", state.polling.waiting.size());
    measure_parts(&state);
    if let Err(error) = tokio::task::spawn_blocking(process::measure).await {
        tracing::warn!(%error, "cannot measure this process");
    }
    Arc::new(Document::new("text/plain; version=0.0.4", state.metrics.render().into()))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn who_asks_is_answered_where_the_thread_that_looks_is_stuck() {
        let (looks, max) = (SingleFlight::default(), Duration::from_millis(50));
        let answers = async { tokio::join!(found(&looks, pending(), max), found(&looks, async { true }, max)) };
        assert_eq!(tokio::time::timeout(Duration::from_secs(60), answers).await, Ok((false, false)), "each by its own time");
        assert!(found(&SingleFlight::default(), async { true }, Duration::from_secs(60)).await);
    }
}
