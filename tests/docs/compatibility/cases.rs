//! Each kind of change, and whether it breaks a client.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::document;
use super::operations::breaking_changes;

/// A document with one of each.
fn small() -> Value {
    json!({
        "security": [{"service": []}, {"user": []}],
        "paths": {"/a": {"post": {
            "parameters": [
                {"in": "query", "name": "limit", "schema": {"type": "integer", "maximum": 100, "default": 20}},
                {"in": "query", "name": "kind", "required": true, "schema": {"type": "string", "enum": ["x", "y"]}},
            ],
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}},
            "responses": {
                "200": {
                    "headers": {"ETag": {}},
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Out"}}},
                },
                "404": {},
            },
        }}},
        "components": {"schemas": {
            "In": {"type": "object", "required": ["n"], "properties": {
                "n": {"type": "integer", "format": "int64", "minimum": 1},
                "text": {"type": ["string", "null"], "maxLength": 10},
                "ids": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
            }},
            "Out": {"allOf": [
                {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "more": {"type": "string"}}},
                {"oneOf": [
                    {"title": "A", "type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
                    {"title": "B", "type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}},
                ]},
            ]},
        }},
    })
}

const POST: &str = "/paths/~1a/post";
const IN: &str = "/components/schemas/In";
const OUT: &str = "/components/schemas/Out/allOf";

/// The findings after one value was put where a pointer leads; without a value it is removed.
fn found(pointer: &str, value: Option<Value>) -> Vec<String> {
    let mut new = small();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match (new.pointer_mut(parent).unwrap(), value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(last.replace("~1", "/"), value)),
        (Value::Object(fields), None) => drop(fields.remove(&last.replace("~1", "/")).unwrap()),
        (Value::Array(items), Some(value)) if last == "-" => items.push(value),
        (Value::Array(items), Some(value)) => items[last.parse::<usize>().unwrap()] = value,
        (Value::Array(items), None) => drop(items.remove(last.parse().unwrap())),
        (other, _) => panic!("{pointer} leads into {other}"),
    }
    breaking_changes(&small(), &new).into_iter().collect()
}

#[test]
fn what_breaks_a_client_is_found() {
    let cases = [
        ("/paths/~1a".to_owned(), None, "POST /a: is gone"),
        (format!("{POST}/security"), Some(json!([{"service": []}])), "POST /a: takes fewer kinds of credentials"),
        (format!("{POST}/parameters/0"), None, "POST /a: query limit is gone"),
        (format!("{POST}/parameters/0/required"), Some(json!(true)), "POST /a: query limit is required now"),
        (format!("{POST}/parameters/0/schema/maximum"), Some(json!(50)), "POST /a: query limit: maximum is lower"),
        (format!("{POST}/parameters/0/schema/minimum"), Some(json!(0)), "POST /a: query limit: minimum is higher"),
        (format!("{POST}/parameters/0/schema/default"), Some(json!(10)), "POST /a: query limit: has another default"),
        (format!("{POST}/parameters/0/schema/pattern"), Some(json!("^1")), "POST /a: query limit: pattern is new or another"),
        (format!("{POST}/parameters/1/schema/enum"), Some(json!(["x"])), "POST /a: query kind: has other values"),
        (
            format!("{POST}/parameters/-"),
            Some(json!({"in": "header", "name": "Key", "required": true, "schema": {}})),
            "POST /a: header Key is new and required",
        ),
        (format!("{POST}/requestBody/required"), Some(json!(true)), "POST /a: a body is required now"),
        (format!("{POST}/requestBody/content/application~1json"), None, "POST /a: body: application/json is gone"),
        (format!("{POST}/responses/200"), None, "POST /a: 200 is gone"),
        (format!("{POST}/responses/202"), Some(json!({})), "POST /a: 202 is new"),
        (format!("{POST}/responses/200/headers/ETag"), None, "POST /a: 200: header ETag is gone"),
        (format!("{IN}/required"), Some(json!(["n", "text"])), "In (sent).text: is required now"),
        (format!("{IN}/properties/text"), None, "In (sent).text: is gone"),
        (format!("{IN}/properties/text/type"), Some(json!("string")), "In (sent).text: has another type"),
        (format!("{IN}/properties/text/maxLength"), Some(json!(9)), "In (sent).text: maxLength is lower"),
        (format!("{IN}/properties/text/minLength"), Some(json!(1)), "In (sent).text: minLength is higher"),
        (format!("{IN}/properties/n/format"), Some(json!("int32")), "In (sent).n: has another format"),
        (format!("{IN}/properties/ids/maxItems"), Some(json!(4)), "In (sent).ids: maxItems is lower"),
        (format!("{IN}/properties/ids/uniqueItems"), Some(json!(true)), "In (sent).ids: uniqueItems is new or another"),
        (format!("{IN}/properties/ids/items/type"), Some(json!("string")), "In (sent).ids[items]: has another type"),
        (format!("{IN}/additionalProperties"), Some(json!(false)), "In (sent)[additionalProperties]: is restricted now"),
        (format!("{OUT}/0/required"), Some(json!([])), "Out (received).n: may be missing now"),
        (format!("{OUT}/0/properties/more"), None, "Out (received).more: is gone"),
        (format!("{OUT}/0/properties/n/type"), Some(json!(["integer", "null"])), "Out (received).n: has another type"),
        (format!("{OUT}/1/oneOf/-"), Some(json!({"title": "C", "required": ["c"]})), "Out (received): C may come now"),
    ];
    for (pointer, value, finding) in cases {
        let found = found(&pointer, value);
        assert!(matches!(&found[..], [one] if one.starts_with(finding)), "{pointer}: expected {finding:?}, found {found:?}");
    }
}

#[test]
fn what_breaks_no_client_is_not_found() {
    let cases = [
        ("/paths/~1b".to_owned(), Some(json!({"get": {"responses": {}}}))),
        (format!("{POST}/security"), Some(json!([{}]))),
        (format!("{POST}/parameters/-"), Some(json!({"in": "query", "name": "more", "schema": {"type": "string"}}))),
        (format!("{POST}/parameters/0/schema/maximum"), Some(json!(200))),
        (format!("{POST}/parameters/0/schema/maximum"), None),
        (format!("{POST}/parameters/1/required"), Some(json!(false))),
        (format!("{POST}/parameters/1/schema/enum"), Some(json!(["x", "y", "z"]))),
        (format!("{POST}/responses/404"), None),
        (format!("{POST}/responses/409"), Some(json!({}))),
        (format!("{POST}/responses/200/headers/Link"), Some(json!({}))),
        (format!("{IN}/required"), Some(json!([]))),
        (format!("{IN}/properties/new"), Some(json!({"type": "string"}))),
        (format!("{OUT}/0/required"), Some(json!(["n", "more"]))),
        (format!("{OUT}/0/properties/new"), Some(json!({"type": "string"}))),
        (format!("{OUT}/1/oneOf/0"), None),
    ];
    for (pointer, value) in cases {
        assert_eq!(found(&pointer, value), Vec::<String>::new(), "{pointer}");
    }
}

/// Every field of every schema of what is answered, taken out of the real document one by one, is found;
/// so no part of it is out of sight.
#[test]
fn no_field_that_is_received_can_go_unseen() {
    let document = document("openapi/openapi.json");
    let mut seen = BTreeSet::new();
    for path in document["paths"].as_object().unwrap().keys() {
        let old = of_path(&document, path);
        let mut new = old.clone();
        for (pointer, field) in received(&old).difference(&seen) {
            let schema = taken_out(&mut new, pointer, field);
            assert!(!breaking_changes(&old, &new).is_empty(), "{path}: {pointer}/{field}");
            new.pointer_mut(pointer).unwrap()[field] = schema;
        }
        seen.append(&mut received(&old));
    }
    assert!(seen.len() > 100, "{} fields", seen.len());
}

/// The document with one path alone: the whole one takes long to compare a thousand times.
fn of_path(document: &Value, path: &str) -> Value {
    let mut document = document.clone();
    document["paths"].as_object_mut().unwrap().retain(|other, _| other == path);
    document
}

fn taken_out(document: &mut Value, pointer: &str, field: &str) -> Value {
    document.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(field).unwrap()
}

/// Where the fields of schemas of answers stand: a pointer to `properties`, and the field.
fn received(document: &Value) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let operations = document["paths"].as_object().unwrap().values().flat_map(|methods| methods.as_object().unwrap().values());
    for operation in operations {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let schema = &response["content"]["application/json"]["schema"];
            if let Some(path) = schema["$ref"].as_str().filter(|_| status.starts_with('2')) {
                collect(document, path.trim_start_matches('#'), &mut found);
            }
        }
    }
    found
}

fn collect(document: &Value, at: &str, found: &mut BTreeSet<(String, String)>) {
    let schema = document.pointer(at).unwrap();
    for (word, value) in schema.as_object().into_iter().flatten() {
        match (word.as_str(), value) {
            ("$ref", Value::String(path)) => collect(document, path.trim_start_matches('#'), found),
            ("properties", Value::Object(fields)) => {
                for field in fields.keys() {
                    if found.insert((format!("{at}/properties"), field.clone())) {
                        collect(document, &format!("{at}/properties/{field}"), found);
                    }
                }
            }
            ("items" | "additionalProperties", Value::Object(_)) => collect(document, &format!("{at}/{word}"), found),
            ("allOf" | "oneOf", Value::Array(parts)) => {
                (0..parts.len()).for_each(|part| collect(document, &format!("{at}/{word}/{part}"), found));
            }
            _ => {}
        }
    }
}
