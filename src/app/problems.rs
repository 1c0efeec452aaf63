//! Which problems each operation of the OpenAPI document may answer with. Most follow from what the
//! operation takes. A handler names those of its own rules in the extension `x-problems`; the test
//! client refuses an answer that the document does not have.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{Object, OpenApi, PathItem, Ref, RefOr, Response, ResponseBuilder, Type};

use crate::base::error::{Code, Problem};
use crate::http::METRICS;

/// Where a handler names the codes of its own rules.
const OWN: &str = "x-problems";

const PROBLEM: &str = "application/problem+json";

/// Operations that any caller may send, about anything.
const OPEN: [&str; 4] = ["list_channels", "list_broadcasts", "list_dots", "get_operation"];

/// Operations that name users in their bodies, or members as their callers, without a user in the path.
const NAMING: [&str; 21] = [
    "list_channels",
    "list_broadcasts",
    "list_dots",
    "get_operation",
    "increment_badges",
    "query_badges",
    "retract_badges",
    "get_group",
    "list_members",
    "join_members",
    "list_group_messages",
    "send_group_message",
    "list_group_message_changes",
    "recall_group_message",
    "get_receipts",
    "list_receipts",
    "send_notification",
    "put_posts",
    "query_relations",
    "put_view_items",
    "put_view_item",
];

/// The operation that erases users, which a repeat may do again.
const ERASES: &str = "erase_user";

/// Codes that any operation may answer with, before or beside its handler.
const ALWAYS: [Code; 10] = [
    Code::MalformedRequest,
    Code::InvalidQuery,
    Code::Unauthorized,
    Code::Forbidden,
    Code::CrossOrigin,
    Code::RateLimited,
    Code::InternalError,
    Code::Overloaded,
    Code::StoreUnavailable,
    Code::ShuttingDown,
];
/// What the pages about the server itself answer with: they need no credentials.
const OF_SERVER: [Code; 3] = [Code::MalformedRequest, Code::CrossOrigin, Code::InternalError];
const OF_PATHS: [Code; 1] = [Code::InvalidPath];
const OF_BODIES: [Code; 5] = [Code::MalformedJson, Code::RequestTimeout, Code::BodyTooLarge, Code::UnsupportedMediaType, Code::InvalidBody];
const OF_KEYS: [Code; 3] = [Code::InvalidHeader, Code::IdempotencyInProgress, Code::IdempotencyKeyReused];
const OF_WRITES: [Code; 1] = [Code::OutcomeUnknown];

/// Adds to each operation of the API the problems that it may answer with, each with an example, and
/// the headers that every answer carries.
/// An extension that names an unknown code stays in the document, where a test finds it.
pub(super) fn add(document: &mut OpenApi) {
    let (mut seen, mut shared) = (BTreeMap::new(), BTreeMap::new());
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            for code in codes(path, method, operation) {
                seen.insert(code.as_str(), code);
                add_code(operation, code);
            }
            add_headers(operation);
            share(operation, &mut shared);
        }
    }
    let components = document.components.get_or_insert_default();
    components.examples.extend(seen.into_iter().map(|(name, code)| (name, RefOr::T(example(code)))));
    components.responses.extend(shared);
    components.headers.extend(HEADERS.map(|(name, of, text)| (name.to_owned(), RefOr::T(header(of, text)))));
}

/// Headers that follow from the status, or from what the operation takes.
const HEADERS: [(&str, Type, &str); 6] = [
    ("X-Request-Id", Type::String, "The id of the request: that of the caller, or a new one. The server's log has it, too"),
    ("Retry-After", Type::Integer, "After how many seconds to try again"),
    ("ETag", Type::String, "The version of the response"),
    ("X-Poll-Interval", Type::Integer, "The recommended polling interval, in seconds"),
    ("Preference-Applied", Type::String, "`respond-async`, where the server accepted the write to apply it later"),
    ("Idempotent-Replayed", Type::Boolean, "True where this is the response to an earlier request with the same key"),
];

/// Responses that are kept for a repeat with the same idempotency key, besides success.
const KEPT: [&str; 2] = ["403", "409"];

fn add_headers(operation: &mut Operation) {
    let has_key = takes(operation, &ParameterIn::Header, "Idempotency-Key");
    let prefers = takes(operation, &ParameterIn::Header, "Prefer");
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        add_header(response, "X-Request-Id");
        // OpenAPI asks for a description of each.
        if response.description.is_empty() {
            response.description = reason(status).to_owned();
        }
        if has_key && (status.starts_with('2') || KEPT.contains(&status.as_str())) {
            add_header(response, "Idempotent-Replayed");
        }
        if prefers && status == "202" {
            add_header(response, "Preference-Applied");
        }
        if status == "304" {
            add_header(response, "ETag");
            add_header(response, "X-Poll-Interval");
        }
        if matches!(status.as_str(), "429" | "503") {
            add_header(response, "Retry-After");
        }
    }
}

fn reason(status: &str) -> &'static str {
    status.parse().ok().and_then(|status: StatusCode| status.canonical_reason()).unwrap_or_default()
}

fn takes(operation: &Operation, place: &ParameterIn, name: &str) -> bool {
    let parameters = operation.parameters.iter().flatten();
    parameters.filter_map(inline).any(|of| of.parameter_in == *place && of.name == name)
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("get", item.get.as_mut()),
        ("post", item.post.as_mut()),
        ("put", item.put.as_mut()),
        ("patch", item.patch.as_mut()),
        ("delete", item.delete.as_mut()),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation?)))
}

/// The codes of an operation, those of its own rules among them.
fn codes(path: &str, method: &str, operation: &mut Operation) -> Vec<Code> {
    if operation.tags.iter().flatten().any(|tag| tag == "server") {
        // The other probes are answered however many ask.
        let overloaded = (path == METRICS).then_some(Code::Overloaded);
        return OF_SERVER.into_iter().chain(overloaded).collect();
    }
    let takes = |place: ParameterIn, name: &str| takes(operation, &place, name);
    let mut codes: BTreeMap<String, Code> = BTreeMap::new();
    let mut with = |when: bool, more: &[Code]| {
        if when {
            codes.extend(more.iter().map(|code| (code.as_str(), *code)));
        }
    };
    with(true, &ALWAYS);
    with(path.contains('{'), &OF_PATHS);
    with(operation.request_body.is_some(), &OF_BODIES);
    with(takes(ParameterIn::Header, "Idempotency-Key"), &OF_KEYS);
    with(takes(ParameterIn::Header, "Prefer"), &[Code::OperationsPending]);
    with(takes(ParameterIn::Query, "cursor"), &[Code::InvalidCursor]);
    with(takes(ParameterIn::Query, "wait") && takes(ParameterIn::Header, "If-None-Match"), &[Code::WaitNeedsTag]);
    with(method != "get", &OF_WRITES);
    let id = operation.operation_id.as_deref().unwrap_or_default();
    with((path.contains("{user}") || NAMING.contains(&id)) && id != ERASES, &[Code::Erased]);
    if operation.operation_id.as_deref().is_some_and(|id| OPEN.contains(&id)) {
        codes.remove(&Code::Forbidden.as_str());
    }
    if let Some(extensions) = &mut operation.extensions
        && let Some(own) = extensions.get(OWN).and_then(|own| serde_json::from_value::<Vec<Code>>(own.clone()).ok())
    {
        codes.extend(own.into_iter().map(|code| (code.as_str(), code)));
        extensions.remove(OWN);
    }
    codes.into_values().collect()
}

fn inline(parameter: &RefOr<Parameter>) -> Option<&Parameter> {
    match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    }
}

/// Adds a code to the response with its status, which a handler may have described.
fn add_code(operation: &mut Operation, code: Code) {
    let status = code.status().as_str().to_owned();
    let response = operation.responses.responses.entry(status).or_insert_with(|| RefOr::T(ResponseBuilder::new().build()));
    let RefOr::T(response) = response else { return };
    let content = response
        .content
        .entry(PROBLEM.to_owned())
        .or_insert_with(|| RefOr::T(ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemOut"))).build()));
    if let RefOr::T(content) = content {
        content.examples.insert(code.as_str(), RefOr::Ref(Ref::new(format!("#/components/examples/{}", code.as_str()))));
        response.description = content.examples.keys().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ");
    }
}

/// Puts responses that are problems alone where operations share them, by status and codes.
fn share(operation: &mut Operation, shared: &mut BTreeMap<String, RefOr<Response>>) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(of) = &*response else { continue };
        let [(media, RefOr::T(content))] = of.content.iter().collect::<Vec<_>>()[..] else { continue };
        if media != PROBLEM {
            continue;
        }
        let replayed = of.headers.contains_key("Idempotent-Replayed").then_some("replayed");
        let parts = [status.as_str()].into_iter().chain(content.examples.keys().map(String::as_str)).chain(replayed);
        let name = parts.collect::<Vec<_>>().join(".");
        let to = RefOr::Ref(Ref::from_response_name(&name));
        shared.insert(name, std::mem::replace(response, to));
    }
}

fn add_header(response: &mut Response, name: &str) {
    response.headers.entry(name.to_owned()).or_insert_with(|| RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))));
}

fn header(of: Type, description: &str) -> Header {
    HeaderBuilder::new().schema(Some(Object::with_type(of))).description(Some(description)).build()
}

/// A problem as it is sent.
fn example(code: Code) -> utoipa::openapi::example::Example {
    let problem = match code {
        Code::InvalidBody => Problem::invalid("/items/3/by", "must be between 1 and 1000000"),
        Code::InvalidQuery => Problem::query("limit", "must be between 1 and 100"),
        Code::InvalidPath => Problem::new(code, "One or more values are invalid. See errors.").at("user", "must be a number"),
        Code::CursorExpired => Problem::new(code, "Older items have expired.").kept_from(4001),
        _ => Problem::new(code, code.title()),
    };
    ExampleBuilder::new().summary(code.title()).value(serde_json::to_value(problem.body()).ok()).build()
}
