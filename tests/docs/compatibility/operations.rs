//! What of a change of the document breaks its clients.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::schemas::{Schemas, Way};

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// Each change that breaks a client of the old document, a line each.
pub fn breaking_changes(old: &Value, new: &Value) -> BTreeSet<String> {
    let mut schemas = Schemas::new(old, new);
    for (path, methods) in old["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            let Some(operation) = methods.get(method) else { continue };
            let at = format!("{} {path}", method.to_uppercase());
            match new["paths"][path].get(method) {
                Some(now) => compare_operation(&mut schemas, &at, operation, now),
                None => drop(schemas.found.insert(format!("{at}: is gone"))),
            }
        }
    }
    schemas.found
}

fn compare_operation<'a>(schemas: &mut Schemas<'a>, at: &str, old: &'a Value, new: &'a Value) {
    compare_credentials(schemas, at, old, new);
    compare_parameters(schemas, at, old, new);
    compare_body(schemas, at, &old["requestBody"], &new["requestBody"]);
    let statuses = |operation: &'a Value| operation["responses"].as_object().into_iter().flatten();
    for (status, response) in statuses(old) {
        let at = format!("{at}: {status}");
        match new["responses"].get(status) {
            Some(now) if is_success(status) => compare_response(schemas, &at, resolve(schemas.old, response), resolve(schemas.new, now)),
            None if is_success(status) => drop(schemas.found.insert(format!("{at} is gone"))),
            _ => {}
        }
    }
    for (status, _) in statuses(new).filter(|(status, _)| is_success(status) && old["responses"].get(*status).is_none()) {
        schemas.found.insert(format!("{at}: {status} is new"));
    }
}

/// A client handles the statuses that it knows. Those of errors are grouped by their first digit.
fn is_success(status: &str) -> bool {
    status.starts_with(['2', '3'])
}

/// Whoever could call it can call it still.
fn compare_credentials(schemas: &mut Schemas<'_>, at: &str, old: &Value, new: &Value) {
    let (old, new) = (credentials(schemas.old, old), credentials(schemas.new, new));
    let is_open = new.is_empty() || new.iter().any(|way| way.as_object().is_some_and(serde_json::Map::is_empty));
    if !is_open && (old.is_empty() || old.iter().any(|way| !new.contains(way))) {
        schemas.found.insert(format!("{at}: takes fewer kinds of credentials"));
    }
}

/// The kinds of credentials of an operation, of which one is enough.
fn credentials<'a>(document: &'a Value, operation: &'a Value) -> &'a [Value] {
    let own = operation.get("security").unwrap_or(&document["security"]);
    own.as_array().map_or(&[], Vec::as_slice)
}

fn compare_parameters<'a>(schemas: &mut Schemas<'a>, at: &str, old: &'a Value, new: &'a Value) {
    let (old, new) = (parameters(schemas.old, old), parameters(schemas.new, new));
    for (key, parameter) in &old {
        let at = format!("{at}: {key}");
        let Some(now) = new.get(key) else {
            schemas.found.insert(format!("{at} is gone"));
            continue;
        };
        if now["required"] == true && parameter["required"] != true {
            schemas.found.insert(format!("{at} is required now"));
        }
        schemas.compare(&at, Way::Sent, &parameter["schema"], &now["schema"]);
    }
    for (key, parameter) in &new {
        if parameter["required"] == true && !old.contains_key(key) {
            schemas.found.insert(format!("{at}: {key} is new and required"));
        }
    }
}

/// By where each stands and its name.
fn parameters<'a>(document: &'a Value, operation: &'a Value) -> BTreeMap<String, &'a Value> {
    let parameters = operation["parameters"].as_array().into_iter().flatten().map(|parameter| resolve(document, parameter));
    parameters
        .map(|parameter| (format!("{} {}", parameter["in"].as_str().unwrap(), parameter["name"].as_str().unwrap()), parameter))
        .collect()
}

fn compare_body<'a>(schemas: &mut Schemas<'a>, at: &str, old: &'a Value, new: &'a Value) {
    if new["required"] == true && old["required"] != true {
        schemas.found.insert(format!("{at}: a body is required now"));
    }
    compare_contents(schemas, &format!("{at}: body"), Way::Sent, old, new);
}

fn compare_response<'a>(schemas: &mut Schemas<'a>, at: &str, old: &'a Value, new: &'a Value) {
    compare_contents(schemas, at, Way::Received, old, new);
    for (header, _) in old["headers"].as_object().into_iter().flatten() {
        if new["headers"].get(header).is_none() {
            schemas.found.insert(format!("{at}: header {header} is gone"));
        }
    }
}

fn compare_contents<'a>(schemas: &mut Schemas<'a>, at: &str, way: Way, old: &'a Value, new: &'a Value) {
    for (media, content) in old["content"].as_object().into_iter().flatten() {
        match new["content"].get(media) {
            Some(now) => schemas.compare(at, way, &content["schema"], &now["schema"]),
            None => drop(schemas.found.insert(format!("{at}: {media} is gone"))),
        }
    }
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    value["$ref"]
        .as_str()
        .map_or(value, |path| document.pointer(path.trim_start_matches('#')).unwrap_or_else(|| panic!("{path} leads nowhere")))
}
