//! Logs and metrics, each set up once for the process.
//!
//! Every log line within a request carries that request's fields (`request_id`, `method`, `route`,
//! `caller`, `trace_id`), whichever module writes it, without a span being open. To add a metric,
//! name it as Prometheus has it and describe it where it is counted; the ones of the HTTP edge are
//! described here.

use std::fmt;
use std::io;
use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::app::process;
use crate::base::clock::Clock;
use crate::http::{answering, context, limit, places, shares};

/// Counters that alerts watch. They begin at 0: an increase is only seen from one sample to another.
const WATCHED: [&str; 11] = [
    "headmark_cache_bypasses_total",
    "headmark_http_overloaded_total",
    "headmark_http_panics_total",
    "headmark_lane_commands_total",
    "headmark_lane_refused_total",
    "headmark_lane_set_aside_total",
    "headmark_lane_slow_batches_total",
    "headmark_lane_splits_total",
    "headmark_lane_unknown_commits_total",
    "headmark_log_lines_lost_total",
    "headmark_summary_degraded_total",
];

/// Log lines that could not be written.
pub(crate) const LOST_LINES: &str = "headmark_log_lines_lost_total";

/// The bounds of every histogram in seconds: from a cached poll to a request that waits for a
/// store.
const SECONDS_BUCKETS: [f64; 15] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0];

/// The same of polls that wait, which may be for a minute.
const HELD_SECONDS_BUCKETS: [f64; 11] = [0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];

/// Sends log lines to stderr: JSON with `json`, else for people. `filter` is what `HEADMARK_LOG`
/// says, for example `info,headmark=debug`. Choose `json` when stdout is not a terminal, unless the
/// operator says otherwise.
///
/// # Errors
/// A sentence for the operator: a filter that cannot be read, or logs that are set up already.
pub fn init_logs(filter: &str, json: bool) -> Result<(), String> {
    let filter = read_filter(filter)?;
    // The subscriber itself would tell of a line that it cannot write by a print, which panics
    // where standard error cannot be written.
    let lines = tracing_subscriber::fmt().log_internal_errors(false).with_env_filter(filter).event_format(Lines { json });
    let lines = lines.with_writer(|| Lossy(io::stderr()));
    lines.try_init().map_err(|error| format!("logs are set up already: {error}"))
}

/// A filter that can be read: parses the setting.
///
/// # Errors
/// A sentence for the operator.
pub(crate) fn filter(text: &str) -> Result<String, String> {
    read_filter(text).map(|_| text.to_owned())
}

fn read_filter(filter: &str) -> Result<EnvFilter, String> {
    // A bare word that is no level would be a module, whose lines alone would be logged.
    let is_odd = |part: &&str| !part.is_empty() && !part.contains(['=', '[', ']', '{', '}']) && part.parse::<LevelFilter>().is_err();
    if let Some(odd) = filter.split(',').find(is_odd) {
        return Err(format!(
            "in HEADMARK_LOG, '{odd}' is no level: off, error, warn, info, debug or trace. A module needs one, as in info,headmark=debug"
        ));
    }
    EnvFilter::builder().parse(filter).map_err(|error| format!("HEADMARK_LOG cannot be read: {error}"))
}

/// A writer of log lines that never fails. What cannot be written is lost and counted: a full disk
/// must not end the task that logs.
struct Lossy<W>(W);

impl<W: io::Write> io::Write for Lossy<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.write_all(line).is_err() {
            metrics::counter!(LOST_LINES).increment(1);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Whether a line was lost is known when it is written.
        let _ = self.0.flush();
        Ok(())
    }
}

/// The process's metrics: installed by the first call, the same handle for each.
/// [`PrometheusHandle::render`] is what `/metrics` answers.
///
/// Histograms keep every sample until they are rendered, so call [`PrometheusHandle::run_upkeep`]
/// every few seconds: a server that nobody scrapes would grow without bound.
pub fn metrics() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE.get_or_init(install).clone()
}

fn install() -> PrometheusHandle {
    let builder = PrometheusBuilder::new();
    // The only error is an empty list of buckets, which these are not.
    let builder = builder
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
        .and_then(|builder| builder.set_buckets_for_metric(Matcher::Full(crate::http::HELD_SECONDS.to_owned()), &HELD_SECONDS_BUCKETS))
        .unwrap_or_else(|_| PrometheusBuilder::new());
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::error!("another metrics recorder stands already; /metrics will be empty");
    }
    metrics::describe_counter!(crate::http::REQUESTS, "Requests answered, by method, route and status; 499 is a caller who hung up.");
    metrics::describe_histogram!(crate::http::SECONDS, metrics::Unit::Seconds, "Time from a request's headers to its answer's, by route.");
    metrics::describe_histogram!(crate::http::HELD_SECONDS, metrics::Unit::Seconds, "The same, of requests that were held.");
    metrics::describe_counter!(answering::PANICS, "Panics that were caught and answered with 500.");
    metrics::describe_counter!(places::REFUSED, "Requests refused because too many were in flight, or too much of their bodies.");
    metrics::describe_counter!(places::BODIES_REFUSED, "Of these, the requests refused because of their bodies.");
    metrics::describe_counter!(shares::REFUSED, "Requests refused because their caller held as much as it may, by what it held.");
    metrics::describe_counter!(
        crate::maintenance::scrub::DRIFT,
        "Differences found between what polls show and the rows, by what it was; must be 0."
    );
    metrics::describe_counter!(crate::maintenance::scrub::SCRUBBED, "Users whose numbers were compared with their rows.");
    metrics::describe_counter!(limit::LIMITED, "Requests refused because their caller made too many.");
    metrics::describe_counter!(
        crate::http::traces::SPANS,
        "Spans handed to the collector of traces (sent) and those it did not take (failed)."
    );
    metrics::describe_counter!(LOST_LINES, "Log lines that could not be written.");
    metrics::describe_gauge!(crate::app::serve::CONNECTIONS, "Connections that are open.");
    process::begin();
    begin_watched_counters();
    handle
}

fn begin_watched_counters() {
    for name in WATCHED {
        metrics::counter!(name).increment(0);
    }
    for what in ["number", "entry"] {
        metrics::counter!(crate::maintenance::scrub::DRIFT, "what" => what).increment(0);
    }
    for what in ["in_flight", "waiting", "operations", "bodies"] {
        metrics::counter!(shares::REFUSED, "what" => what).increment(0);
    }
}

/// A log line: the event's own fields, then those of the request being served.
struct Lines {
    json: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if self.json {
            return writeln!(writer, "{}", Value::Object(json_line(event)));
        }
        let mut line = String::new();
        Format::default().with_ansi(false).format_event(ctx, Writer::new(&mut line), event)?;
        writer.write_str(line.trim_end_matches('\n'))?;
        // At debug level the line begins with the request's span, which says the same.
        let in_span = ctx.event_scope().is_some_and(|mut spans| spans.any(|span| span.name() == "request"));
        if !in_span {
            let mut written = Ok(());
            context::with(|context| context.fields(|name, value| written = written.and_then(|()| write!(writer, " {name}={value}"))));
            written?;
        }
        writer.write_char('\n')
    }
}

fn json_line(event: &Event<'_>) -> Map<String, Value> {
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), Clock::System.now().to_string().into());
    line.insert("level".to_owned(), event.metadata().level().as_str().into());
    line.insert("target".to_owned(), event.metadata().target().into());
    event.record(&mut Fields(&mut line));
    context::with(|context| {
        context.fields(|name, value| {
            line.entry(name).or_insert_with(|| value.into());
        });
    });
    line
}

/// Puts an event's fields into a line; numbers and booleans stay what they are.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, header};
    use axum::routing::get;
    use tower::ServiceExt;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use crate::http::auth::{Auth, AuthConfig, Caller};
    use crate::http::edge::{EdgeConfig, EdgeLayer};

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Captured {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// The log of one request with a secret in its header and its query.
    async fn logged(filter: &str, json: bool) -> String {
        let captured = Captured::default();
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(captured.clone()).event_format(Lines { json });
        let _guard = tracing::subscriber::set_default(lines.finish());
        let config = AuthConfig { service_keys: vec!["web:hush-key-of-16-chars".into()], ..AuthConfig::default() };
        let handler = async |_: Caller| -> &'static str {
            tracing::warn!(count = 7, "something inside");
            panic!("broken")
        };
        let app = Router::new().route("/x/{id}", get(handler)).with_state(Arc::new(Auth::new(&config, Clock::System).unwrap()));
        let request = Request::get("/x/1?cursor=hush-query")
            .header("host", "localhost")
            .header(header::AUTHORIZATION, "Bearer hush-key-of-16-chars")
            .header("x-request-id", "r-1");
        let request = request.header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        app.layer(EdgeLayer::new(EdgeConfig::default())).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        String::from_utf8(captured.0.lock().unwrap().clone()).unwrap()
    }

    #[tokio::test]
    async fn every_json_line_of_a_request_names_it_and_no_line_tells_a_secret() {
        let log = logged("trace", true).await;
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for (message, level) in [("something inside", "WARN"), ("a handler panicked", "ERROR"), ("request failed", "ERROR")] {
            let line = lines.iter().find(|line| line["message"] == message).unwrap();
            assert_eq!(
                (&line["request_id"], &line["route"], &line["method"], &line["caller"], &line["level"]),
                (&"r-1".into(), &"/x/{id}".into(), &"GET".into(), &"service:web".into(), &level.into()),
                "{line}"
            );
            assert_eq!(line["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
        }
        assert!(
            lines.iter().any(|line| line["count"] == 7) && lines.iter().any(|line| line["status"] == 500 && line["duration_ms"].is_u64())
        );
        assert!(!log.contains("hush"), "{log}");
    }

    #[tokio::test]
    async fn lines_for_people_name_the_request_once() {
        for filter in ["info", "debug"] {
            let log = logged(filter, false).await;
            let line = log.lines().find(|line| line.contains("something inside")).unwrap();
            assert_eq!(line.matches("r-1").count(), 1, "{line}");
            assert!(!log.contains("hush"), "{log}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_line_that_cannot_be_written_is_counted_and_nothing_else() {
        use std::io::Write as _;
        let handle = metrics();
        let mut full = Lossy(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        assert!(full.write_all(b"lost").is_ok() && full.flush().is_ok());
        assert!(handle.render().contains(LOST_LINES));
    }

    #[test]
    fn refusals_of_a_caller_begin_at_0() {
        let text = metrics().render();
        for what in ["in_flight", "waiting", "operations", "bodies"] {
            assert!(text.contains(&format!("\n{}{{what=\"{what}\"}} ", shares::REFUSED)), "{what}");
        }
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_refused() {
        for wrong in ["headmark=loud", "warning", "verbose", "info,headmark", "loud,headmark=debug"] {
            assert!(filter(wrong).unwrap_err().contains("HEADMARK_LOG"), "{wrong}");
        }
        for right in ["warn", "INFO", "off", "info,headmark::db=trace", "headmark[request]=debug", ""] {
            assert_eq!(filter(right), Ok(right.to_owned()));
        }
    }
}
