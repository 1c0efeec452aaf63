use std::collections::BTreeMap;
use std::io;

use axum::body::{Body as AxumBody, Bytes};
use axum::extract::{FromRequestParts as _, Request};
use axum::http::{StatusCode, Uri};
use futures_util::stream;
use http_body_util::BodyExt;
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemIn {
    #[serde(rename = "user_id")]
    _user_id: crate::base::ids::UserId,
    #[serde(rename = "by")]
    _by: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchIn {
    #[serde(default, deserialize_with = "objects")]
    items: Vec<ItemIn>,
    #[serde(default)]
    data: Option<Box<serde_json::value::RawValue>>,
    #[serde(default, deserialize_with = "raw_object")]
    object: Option<Box<serde_json::value::RawValue>>,
    #[serde(default, deserialize_with = "unique_map")]
    up_to: BTreeMap<String, u64>,
}

fn request(content_type: Option<&str>, body: impl Into<AxumBody>) -> Request {
    let mut request = Request::post("/v1/x");
    if let Some(content_type) = content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    request.body(body.into()).unwrap()
}

async fn read_batch(request: Request) -> Result<Body<BatchIn>, (StatusCode, Code, String, String)> {
    let problem = match Body::from_request(request, &()).await {
        Ok(body) => return Ok(body),
        Err(refusal) => refusal.problem,
    };
    let (pointer, detail) = match problem.errors.first() {
        Some(error) => (error.pointer.clone(), error.detail.clone()),
        None => (String::new(), problem.detail.into_owned()),
    };
    Err((problem.code.status(), problem.code, pointer, detail))
}

#[tokio::test]
async fn each_bad_body_is_told_what_and_where() {
    let deep = format!("{{\"data\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    for (body, code, pointer, detail) in [
        ("", Code::MalformedJson, "", "The body is empty, but its content type is JSON"),
        ("{", Code::MalformedJson, "", "EOF while parsing an object at line 1 column 1"),
        ("{\"items\": [1,}", Code::MalformedJson, "", "line 1 column 14"),
        ("{} x", Code::MalformedJson, "", "trailing characters at line 1 column 4"),
        ("{\"items\":7} {", Code::MalformedJson, "", "trailing characters"),
        ("{\"up_to\":{\"a\":\"\\ud800\"}}", Code::MalformedJson, "", "hex escape"),
        (&deep, Code::MalformedJson, "", "nest deeper than 127"),
        ("[]", Code::InvalidBody, "", "must be a JSON object"),
        ("null", Code::InvalidBody, "", "must be a JSON object"),
        ("{\"items\": 7}", Code::InvalidBody, "/items", "invalid type: integer `7`, expected a sequence"),
        ("{\"items\": [{\"user_id\":1,\"by\":1},{\"user_id\":1}]}", Code::InvalidBody, "/items/1/by", "missing field `by`"),
        ("{\"items\": [{\"user_id\":1,\"by\":-1}]}", Code::InvalidBody, "/items/0/by", "expected an integer"),
        ("{\"items\": [{\"user_id\":0,\"by\":1}]}", Code::InvalidBody, "/items/0/user_id", "must be a whole number"),
        ("{\"items\": [{\"user_id\":1,\"by\":1,\"bye\":2}]}", Code::InvalidBody, "/items/0/bye", "unknown field `bye`"),
        ("{\"items\": [{\"user_id\":1,\"by\":1,\"by\":2}]}", Code::InvalidBody, "/items/0/by", "duplicate field `by`"),
        ("{\"items\": [5]}", Code::InvalidBody, "/items/0", "expected an object"),
        ("{\"items\": [[1, 1]]}", Code::InvalidBody, "/items/0", "invalid type: sequence, expected an object"),
        ("{\"items\": [{\"user_id\":1,\"by\":1e400}]}", Code::InvalidBody, "/items/0/by", "out of range"),
        (
            "{\"items\": [{\"user_id\":1,\"by\":1e40}]}",
            Code::InvalidBody,
            "/items/0/by",
            "invalid type: floating point `1e+40`, expected an integer",
        ),
        ("{\"up_to\": {\"a/b~c\": \"x\"}}", Code::InvalidBody, "/up_to/a~1b~0c", "invalid type: string"),
        ("{\"up_to\": {\"a\": 1, \"b\": 2, \"a\": 3}}", Code::InvalidBody, "/up_to/a", "duplicate field `a`"),
        ("{\"up_to\": [1]}", Code::InvalidBody, "/up_to", "expected an object"),
        ("{\"data\": {\"a\": [\"\", \"x\\u0000\"]}}", Code::InvalidBody, "/data/a/1", "U+0000"),
        ("{\"object\": {\"a\": \"\\ud800\"}}", Code::MalformedJson, "", "hex escape at line 1 column"),
        ("{\"object\": {\"a\": [{\"\\udc00\": 1}]}}", Code::MalformedJson, "", "hex escape"),
        ("{\"object\": {\"a\": \"\\ud83dx\"}}", Code::MalformedJson, "", "hex escape"),
        ("{\"object\": {\"a\": [1, -1e999]}}", Code::InvalidBody, "/object", "number out of range"),
        ("{\"object\": {\"a\": 1e999}, }", Code::MalformedJson, "", "line 1 column"),
        ("{\"object\": [1e999]}", Code::InvalidBody, "/object", "expected an object"),
    ] {
        let (status, found, at, text) = read_batch(request(Some("application/json"), body.to_owned())).await.unwrap_err();
        assert_eq!((found, at.as_str()), (code, pointer), "{body}: {text}");
        assert!(text.contains(detail) && !text.contains("ItemIn"), "{body}: {text}");
        assert_eq!(status, code.status());
    }
    let (_, code, ..) = read_batch(request(Some("application/json"), &b"{\"up_to\":{\"\xff\":1}}"[..])).await.unwrap_err();
    assert_eq!(code, Code::MalformedJson);
    let long = format!("{{\"{}\":1}}", "x".repeat(5000));
    let (.., pointer, detail) = read_batch(request(Some("application/json"), long)).await.unwrap_err();
    assert!(pointer.len() < 200 && detail.len() < 400);
    let long = "x".repeat(100_000);
    for nul in [format!("{{\"{long}\":{{\"{long}/\":\"\\u0000\"}}}}"), format!("{{\"\\u0000{long}\":1}}")] {
        let (.., pointer, detail) = read_batch(request(Some("application/json"), nul)).await.unwrap_err();
        assert!(pointer.len() < 300 && detail.contains("U+0000"), "{} bytes, {detail}", pointer.len());
    }
}

#[tokio::test]
async fn good_bodies_pass_and_escaped_backslashes_are_no_nul() {
    for (content_type, body) in [
        (Some("application/json"), r#"{"items":[{"user_id":"1","by":1}],"data":"\\u0000"}"#),
        (Some("application/json; charset=UTF-8"), "{}"),
        (Some("Application/JSON;charset=\"utf-8\""), " {\n}\n "),
        (Some("application/merge-patch+json"), "{}"),
        (None, ""),
    ] {
        assert!(read_batch(request(content_type, body)).await.is_ok(), "{content_type:?} {body}");
    }
    let batch = read_batch(request(Some("application/json"), r#"{"items":[{"user_id":1,"by":1}]}"#)).await.unwrap().value;
    assert_eq!((batch.items.len(), batch.data.is_none(), batch.up_to.len()), (1, true, 0));
    let object = r#"{"z":"\ud83d\ude00", "a":-1.7e308,"b":[12345678901234567890.5,1e-999, null,true]}"#;
    let batch = read_batch(request(Some("application/json"), format!("{{\"object\": {object} }}"))).await.unwrap().value;
    assert_eq!(batch.object.unwrap().get(), object, "its text is kept");
}

#[tokio::test]
async fn only_json_is_taken() {
    for content_type in [None, Some("text/plain"), Some("application/jsonx"), Some("application/json; charset=latin1"), Some("+json")] {
        let (status, ..) = read_batch(request(content_type, "{}")).await.unwrap_err();
        assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{content_type:?}");
    }
    let mut compressed = request(Some("application/json"), "{}");
    compressed.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    assert_eq!(read_batch(compressed).await.unwrap_err().0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn the_digest_tells_requests_apart() {
    let with_key = |body: &'static str| {
        let mut request = request(Some("application/json"), body);
        request.headers_mut().insert(IDEMPOTENCY_KEY, HeaderValue::from_static("k"));
        request
    };
    let of = async |body: &'static str| read_batch(with_key(body)).await.unwrap().digest;
    let one = of(r#"{"up_to":{"like":1,"mention":2}}"#).await;
    assert_eq!(one, of(" {\"up_to\" : {\"ment\\u0069on\": 2, \"like\":1}}\n").await, "the same JSON");
    assert_ne!(one, of(r#"{"up_to":{"like":2,"mention":1}}"#).await);
    let mut other = with_key(r#"{"up_to":{"like":1,"mention":2}}"#);
    *other.uri_mut() = Uri::from_static("/v1/y");
    assert_ne!(one, read_batch(other).await.unwrap().digest);
    let without_key = read_batch(request(Some("application/json"), "{}")).await.unwrap().digest;
    assert_eq!(without_key, [0; 32], "nobody will compare it");
}

#[tokio::test]
async fn a_long_body_is_413_with_and_without_a_length() {
    let long = vec![b' '; 1024 * 1024 + 1];
    let whole = read_batch(request(Some("application/json"), long.clone())).await.unwrap_err();
    let chunks = stream::iter(long.chunks(4096).map(|chunk| Ok::<_, io::Error>(Bytes::copy_from_slice(chunk))).collect::<Vec<_>>());
    let chunked = read_batch(request(Some("application/json"), AxumBody::from_stream(chunks))).await.unwrap_err();
    assert_eq!((whole.1, chunked.1), (Code::BodyTooLarge, Code::BodyTooLarge));
    // What has no end is not read to its end.
    let endless = stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(&[b' '; 4096])));
    let response = Body::<BatchIn>::from_request(request(Some("application/json"), AxumBody::from_stream(endless)), &()).await;
    let response = response.unwrap_err().into_response();
    assert_eq!((response.status(), response.headers()[header::CONNECTION].as_bytes()), (StatusCode::PAYLOAD_TOO_LARGE, &b"close"[..]));
    assert!(response.into_body().collect().await.is_ok());
}

#[tokio::test]
async fn idempotency_keys_are_visible_and_single() {
    let read = async |values: &[&[u8]]| {
        let mut request = request(None, "");
        for value in values {
            request.headers_mut().append("idempotency-key", HeaderValue::from_bytes(value).unwrap());
        }
        let (mut parts, _) = request.into_parts();
        IdempotencyKey::from_request_parts(&mut parts, &()).await.map(|key| key.0).map_err(|problem| problem.code)
    };
    assert_eq!(read(&[]).await, Ok(None));
    assert_eq!(read(&[b"k-1"]).await, Ok(Some("k-1".to_owned())));
    assert_eq!(read(&[&[b'k'; 255]]).await, Ok(Some("k".repeat(255))));
    for bad in [&[&b""[..]][..], &[b"a b"], &["é".as_bytes()], &[&[b'k'; 256]], &[b"a", b"a"]] {
        assert_eq!(read(bad).await, Err(Code::InvalidHeader), "{bad:?}");
    }
}
