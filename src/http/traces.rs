//! Traces: one span for each request, sent to an OpenTelemetry collector (OTLP, protobuf over HTTP)
//! when one is configured.
//!
//! The span is not a span of `tracing`: those follow the filter of the logs, and each log line
//! would have to look for its span. It lives in the request's [context](crate::http::context), and
//! without a collector there is none. A thread of its own sends what has ended, so that a collector
//! that is slow or away costs spans and nothing else.

use std::cell::RefCell;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{self, HeaderMap, Method, StatusCode, Uri, Version};
use clap::Args;
use futures_util::future::BoxFuture;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{Span as _, SpanKind, Status, TraceId, Tracer as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider, Span, SpanData, SpanExporter,
};

use tokio::runtime::Handle;

use crate::base::seldom::Seldom;
use crate::http::PROBES;
use crate::http::problem::cut;

/// Spans handed to the collector, and those that it did not take.
pub(crate) const SPANS: &str = "headmark_trace_spans_total";

/// Where OTLP has traces, below the collector's own address.
const TRACES_PATH: &str = "/v1/traces";
/// How often what has ended is sent, unless a batch is full before.
const SEND_EVERY: Duration = Duration::from_secs(1);
/// How many spans are sent at once.
const BATCH: usize = 512;
/// How long the collector may take to answer.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a stop waits for the last spans to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// How much of a path is in its span: who has no credentials may send 64 KiB, and the spans wait in
/// memory.
const MAX_PATH_CHARS: usize = 200;
/// How often it is logged that the collector takes nothing.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Where traces are sent, and how many.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceArgs {
    /// The OpenTelemetry collector that receives a span for each request (OTLP over HTTP), as
    /// http://host:4318. Default: no tracing.
    #[arg(long, env = "HEADMARK_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
    /// The fraction of traces started by this server to send, from 0 to 1. Traces started by a
    /// caller follow the caller's sampling decision.
    #[arg(long, env = "HEADMARK_OTLP_SAMPLE", default_value_t = 1.0, value_parser = share)]
    pub otlp_sample: f64,
    /// The maximum number of spans waiting to be sent. Further spans are dropped.
    #[arg(long, env = "HEADMARK_OTLP_QUEUE", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub otlp_queue: u32,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be a number from 0 to 1".to_owned()),
    }
}

impl TraceArgs {
    /// Checks the address of the collector.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        self.endpoint().map(drop)
    }

    /// Where spans are sent, if anywhere.
    fn endpoint(&self) -> Result<Option<String>, String> {
        let endpoint = self.otlp_endpoint.as_deref().map(endpoint_of_traces).transpose();
        endpoint.map_err(|why| format!("HEADMARK_OTLP_ENDPOINT: {why}"))
    }
}

/// The way to the collector.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Starts the thread that sends, if a collector is configured. The collector itself may be
    /// away.
    ///
    /// # Errors
    /// A sentence for the operator: an address that cannot be used.
    pub fn start(args: &TraceArgs) -> Result<Option<Self>, String> {
        let Some(endpoint) = args.endpoint()? else { return Ok(None) };
        let otlp = opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(endpoint).with_timeout(EXPORT_TIMEOUT);
        let otlp = otlp.with_protocol(Protocol::HttpBinary).with_http_client(Client {
            inner: HyperClient::with_default_connector(EXPORT_TIMEOUT, None),
            runtime: Handle::try_current().map_err(|error| format!("cannot send traces: {error}"))?,
        });
        // A span that is sent late is worth little, and the next batch comes soon.
        let otlp = otlp.with_retry_policy(opentelemetry_otlp::RetryPolicy::disabled());
        let otlp = otlp.build().map_err(|error| format!("cannot send traces: {error}"))?;
        let queue = usize::try_from(args.otlp_queue).unwrap_or(usize::MAX);
        let batches =
            BatchConfigBuilder::default().with_max_queue_size(queue).with_max_export_batch_size(BATCH).with_scheduled_delay(SEND_EVERY);
        let exporter = Exporter { otlp, warnings: Seldom::new(WARN_EVERY) };
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build())
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(args.otlp_sample))))
            .with_resource(
                Resource::builder()
                    .with_service_name("headmark")
                    .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
                    .build(),
            )
            .build();
        Ok(Some(Self { provider }))
    }

    /// What makes the spans.
    #[must_use]
    pub fn tracer(&self) -> Tracer {
        Tracer { tracer: self.provider.tracer("headmark") }
    }

    /// Sends what has ended, as far as the collector takes it in time.
    pub async fn stop(self) {
        let flushed = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(FLUSH_TIMEOUT)).await;
        if !matches!(flushed, Ok(Ok(()))) {
            tracing::warn!("the last spans were not sent: the collector did not take them in time");
        }
    }
}

/// The address of traces at a collector that is named by its own address, or by that of traces.
fn endpoint_of_traces(endpoint: &str) -> Result<String, String> {
    let uri: Uri = endpoint.parse().map_err(|error| format!("'{endpoint}' is not a URL: {error}"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err("https is not spoken; send to a collector nearby over http, which may send on over https".to_owned()),
        _ => return Err(format!("'{endpoint}' must begin with http://, as in http://collector:4318")),
    }
    if uri.query().is_some() || uri.host().is_none_or(str::is_empty) {
        return Err(format!("'{endpoint}' must be a host, a port and perhaps a path, as in http://collector:4318"));
    }
    let base = endpoint.trim_end_matches('/');
    Ok(if base.ends_with(TRACES_PATH) { base.to_owned() } else { format!("{base}{TRACES_PATH}") })
}

/// Sends requests on the runtime: the thread of the batch processor has none, and the client needs
/// one.
#[derive(Debug)]
struct Client {
    inner: HyperClient,
    runtime: Handle,
}

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(&'a self, request: http::Request<Bytes>) -> BoxFuture<'b, Result<http::Response<Bytes>, HttpError>>
    where
        'a: 'b,
    {
        let inner = self.inner.clone();
        let sent = self.runtime.spawn(async move { inner.send_bytes(request).await });
        Box::pin(async move { sent.await? })
    }
}

/// Sends batches, on the thread of the batch processor, and tells how it went.
#[derive(Debug)]
struct Exporter {
    otlp: opentelemetry_otlp::SpanExporter,
    /// Of failures, as an absent collector must not become a flood of lines.
    warnings: Seldom,
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let sent = self.otlp.export(batch).await;
        metrics::counter!(SPANS, "result" => if sent.is_ok() { "sent" } else { "failed" }).increment(spans);
        if let Err(error) = &sent
            && self.warnings.may()
        {
            tracing::warn!(%error, spans, "the collector of traces does not take spans; they are dropped. At most one such line a minute");
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.otlp.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}

/// Makes the spans of requests.
#[derive(Debug, Clone)]
pub struct Tracer {
    tracer: SdkTracer,
}

impl Tracer {
    /// Begins the span of a request to a route, as a child of the one that `traceparent` and `tracestate`
    /// name.
    pub(crate) fn begin(&self, request: &Request, route: Option<&str>) -> Option<RequestSpan> {
        if route.is_some_and(|route| PROBES.contains(&route)) {
            return None;
        }
        // From an empty context, not the current one: a thread may be in the middle of another
        // request.
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(request.headers()));
        let method = method_name(request.method());
        let mut attributes = vec![
            KeyValue::new("http.request.method", method.unwrap_or("_OTHER")),
            KeyValue::new("url.scheme", "http"),
            KeyValue::new("url.path", cut(request.uri().path(), MAX_PATH_CHARS)),
            KeyValue::new("network.protocol.version", if request.version() == Version::HTTP_2 { "2" } else { "1.1" }),
        ];
        let method = method.unwrap_or("HTTP");
        let name = match route {
            Some(route) => {
                attributes.push(KeyValue::new("http.route", route.to_owned()));
                format!("{method} {route}").into()
            }
            None => method.into(),
        };
        let span: Span = self.tracer.build_with_context(
            opentelemetry::trace::SpanBuilder {
                span_kind: Some(SpanKind::Server),
                attributes: Some(attributes),
                name,
                ..Default::default()
            },
            &parent,
        );
        Some(RequestSpan { trace_id: span.span_context().trace_id(), span: RefCell::new(span) })
    }
}

/// A method that is standardised; a caller may make up others.
fn method_name(method: &Method) -> Option<&'static str> {
    const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"];
    METHODS.into_iter().find(|name| *name == method.as_str())
}

/// The span of the request being served.
#[derive(Debug)]
pub(crate) struct RequestSpan {
    trace_id: TraceId,
    span: RefCell<Span>,
}

impl RequestSpan {
    /// The id under which the collector has the trace, for the log.
    pub(crate) fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    /// Ends it with the answer's status.
    pub(crate) fn end(&self, status: StatusCode) {
        // Never borrowed elsewhere.
        let Ok(mut span) = self.span.try_borrow_mut() else { return };
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if status.is_server_error() {
            span.set_attribute(KeyValue::new("error.type", status.as_str().to_owned()));
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

/// Headers, as OpenTelemetry reads them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_its_address() {
        for (given, traces) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("http://gateway/otlp", "http://gateway/otlp/v1/traces"),
            ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
        ] {
            assert_eq!(endpoint_of_traces(given).unwrap(), traces);
        }
        for (bad, says) in [
            ("collector:4318", "must begin with http://"),
            ("grpc://collector:4317", "must begin with http://"),
            ("https://collector:4318", "https is not spoken"),
            ("http://collector:4318?x=1", "must be a host"),
            ("http://", "is not a URL"),
        ] {
            let why = endpoint_of_traces(bad).unwrap_err();
            assert!(why.contains(says), "{bad}: {why}");
        }
    }

    #[test]
    fn a_share_is_from_0_to_1() {
        assert_eq!((share("0"), share("0.25"), share("1")), (Ok(0.0), Ok(0.25), Ok(1.0)));
        for bad in ["-0.1", "1.1", "NaN", "half", ""] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
