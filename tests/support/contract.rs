//! The OpenAPI document, which every answer to the test client must keep to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::Value;

/// The headers that the document names wherever they are sent.
const HEADERS: [&str; 7] = ["etag", "retry-after", "location", "link", "x-request-id", "x-poll-interval", "idempotent-replayed"];

/// What an operation may answer with a status.
struct Answer {
    headers: BTreeSet<String>,
    /// The codes of problems.
    codes: BTreeSet<String>,
}

struct Operation {
    method: String,
    /// None for a parameter.
    segments: Vec<Option<String>>,
    answers: BTreeMap<String, Answer>,
}

static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(&headmark::app::router::openapi_json().unwrap()).unwrap();
    let shared = document["components"]["responses"].as_object().unwrap();
    let full = |response: &Value| {
        let name = response["$ref"].as_str().and_then(|path| path.strip_prefix("#/components/responses/"));
        answer(name.map_or(response, |name| &shared[name]))
    };
    let paths = document["paths"].as_object().unwrap().iter();
    let mut operations = Vec::new();
    for (path, item) in paths {
        let segments = || path.split('/').map(|segment| (!segment.starts_with('{')).then(|| segment.to_owned())).collect();
        let methods = item.as_object().unwrap().iter().filter(|(_, of)| of["responses"].is_object());
        operations.extend(methods.map(|(method, of)| Operation {
            method: method.to_uppercase(),
            segments: segments(),
            answers: of["responses"].as_object().unwrap().iter().map(|(status, of)| (status.clone(), full(of))).collect(),
        }));
    }
    operations
});

fn answer(response: &Value) -> Answer {
    let keys = |of: &Value| of.as_object().into_iter().flat_map(|of| of.keys()).map(|key| key.to_lowercase()).collect();
    Answer { headers: keys(&response["headers"]), codes: keys(&response["content"]["application/problem+json"]["examples"]) }
}

/// The operation of a request: where several paths fit, the one with the most words of its own.
fn operation(method: &Method, path: &str) -> Option<&'static Operation> {
    let segments: Vec<_> = path.split('/').collect();
    let fits = |operation: &&Operation| {
        operation.method == method.as_str()
            && operation.segments.len() == segments.len()
            && operation
                .segments
                .iter()
                .zip(&segments)
                .all(|(known, segment)| known.as_ref().map_or(!segment.is_empty(), |known| known == segment))
    };
    OPERATIONS.iter().filter(fits).max_by_key(|operation| operation.segments.iter().flatten().count())
}

/// Fails the test for an answer that the document does not have.
pub fn check(method: &Method, path: &str, status: StatusCode, headers: &HeaderMap, body: &Value) {
    let Some(operation) = operation(method, path) else { return };
    let answer = operation.answers.get(status.as_str());
    let answer = answer.unwrap_or_else(|| panic!("{method} {path} answered {status}, which its operation does not have: {body}"));
    if headers.get("content-type").is_some_and(|media| media == "application/problem+json") {
        let code = body["code"].as_str().unwrap_or_default();
        assert!(answer.codes.contains(code), "{method} {path} answered {status} {code}, which its operation does not have: {body}");
    }
    let missing = HEADERS.iter().find(|name| headers.contains_key(**name) && !answer.headers.contains(**name));
    assert!(missing.is_none(), "{method} {path} answered {status} with {missing:?}, which its operation does not have");
}
