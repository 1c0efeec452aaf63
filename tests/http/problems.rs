//! Bad input of any kind gets a 4xx problem, and changes nothing.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::both_tiers;
use crate::support::{Client, Node, Reply};

const INCREMENT: &str = "/v1/users/42/badges/mention/increment";
const RETRACT: &str = "/v1/users/42/badges/mention/retract";
const RESET: &str = "/v1/users/42/badges/mention/reset";
const RESET_MANY: &str = "/v1/users/42/badges/reset";
const BATCH: &str = "/v1/badges/increment";
const QUERY: &str = "/v1/badges/query";

/// A user with something to lose.
async fn prepare(node: &Node) -> Value {
    node.client.post(INCREMENT, &json!({"by": 5})).await.ok();
    node.client.summary(42).await
}

/// The problem has one pointer, or with None no errors at all.
#[track_caller]
fn refused(reply: Reply, what: &str, status: u16, code: &str, pointer: Option<&str>) {
    assert_eq!(reply.status, status, "{what}: {}", reply.text);
    assert_eq!(reply.pointers(status, code), Vec::from_iter(pointer), "{what}");
}

both_tiers! {
    async fn bodies_that_are_not_json_are_400(world: World) {
        let node = world.node().await;
        let before = prepare(&node).await;
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let bottomless = "[".repeat(100_000);
        for body in [
            "", " ", "{", "}", r#"{"by": 1"#, r#"{"by": }"#, r#"{"by": 1,}"#, r#"{"by": 1} x"#, r#"{"by": 1}{"by": 1}"#, "{by: 1}", "{'by': 1}",
            r#"{"by": 01}"#, r#"{"by": +1}"#, r#"{"by": .5}"#, r#"{"by": NaN}"#, r#"{"by": Infinity}"#, r#"{"by": 1} // one"#, "\u{feff}{}",
            "{\"by\": \"\0\"}", "{\"a\nb\": 1}", r#"{"by": "\x41"}"#, "nul", &format!(r#"{{"by": {deep}}}"#), &bottomless,
        ] {
            for path in [INCREMENT, RETRACT, RESET, RESET_MANY, BATCH, QUERY] {
                refused(node.client.post_text(path, body.to_owned()).await, &format!("{path} {body:.60}"), 400, "malformed_json", None);
            }
        }
        // What JSON's grammar allows, and no reader holds: half a character is no text, while a
        // number is one, of whatever size.
        refused(node.client.post_text(INCREMENT, r#"{"by": "\ud800"}"#).await, "half a character", 400, "malformed_json", None);
        for body in [r#"{"by": 1e400}"#, r#"{"by": -1e400}"#] {
            refused(node.client.post_text(INCREMENT, body).await, body, 422, "invalid_body", Some("/by"));
        }
        for bytes in [&b"\xff"[..], b"{\"by\": \"\xff\"}", b"{\"by\": \"\xc0\x80\"}", b"{\"by\": \"\xed\xa0\x80\"}", b"\xff\xfe{\0}\0"] {
            refused(node.client.post_text(INCREMENT, bytes).await, &format!("{bytes:?}"), 400, "malformed_json", None);
        }
        assert_eq!(node.client.summary(42).await, before);
        node.stop().await;
    }

    async fn bodies_that_are_json_but_not_what_is_asked_are_422_with_the_place(world: World) {
        let node = world.node().await;
        let before = prepare(&node).await;
        let shallow = format!(r#"{{"by": {}{}}}"#, "[".repeat(100), "]".repeat(100));
        for (path, body, pointer) in [
            (INCREMENT, "[]", ""),
            (INCREMENT, "null", ""),
            (INCREMENT, "1", ""),
            (INCREMENT, "\"by\"", ""),
            (INCREMENT, "[1]", ""),
            (INCREMENT, r#"{"by": "1"}"#, "/by"),
            (INCREMENT, r#"{"by": true}"#, "/by"),
            (INCREMENT, r#"{"by": {}}"#, "/by"),
            (INCREMENT, r#"{"by": [1]}"#, "/by"),
            (INCREMENT, r#"{"by": 1.5}"#, "/by"),
            (INCREMENT, r#"{"by": 9223372036854775808}"#, "/by"),
            (INCREMENT, r#"{"by": 99999999999999999999999999999999999999999}"#, "/by"),
            (INCREMENT, r#"{"By": 1}"#, "/By"),
            (INCREMENT, r#"{"by": 1, "a/b~c": 1}"#, "/a~1b~0c"),
            (INCREMENT, r#"{"by": 1, "by": 1}"#, "/by"),
            (INCREMENT, r#"{"by": 1, "b\u0079": 1}"#, "/by"),
            (INCREMENT, r#"{"": 1}"#, "/"),
            (INCREMENT, &shallow, "/by"),
            (RETRACT, r#"{"at": 1, "at": 2}"#, "/at"),
            (RETRACT, r#"{"up_to": 1}"#, "/up_to"),
            (RESET, r#"{"upto": 1}"#, "/upto"),
            (RESET, r#"{"up_to": {"mention": 1}}"#, "/up_to"),
            (RESET_MANY, r#"{"up_to": {"Mention": 1}}"#, "/up_to/Mention"),
            (RESET_MANY, r#"{"up_to": {"mention": 1.5}}"#, "/up_to/mention"),
            (RESET_MANY, r#"{"up_to": {"mention\u0000": 1}}"#, "/up_to/mention\0"),
            (RESET_MANY, r#"{"up_to": {}, "up_to": {}}"#, "/up_to"),
            (BATCH, "{}", "/items"),
            (BATCH, r#"{"items": {}}"#, "/items"),
            (BATCH, r#"{"items": null}"#, "/items"),
            (BATCH, r#"{"items": [{"user_id": 42, "badge": "mention"}], "dry_run": true}"#, "/dry_run"),
            (BATCH, r#"{"items": [{"user_id": 42, "badge": "mention", "badge": "mention"}]}"#, "/items/0/badge"),
            (BATCH, r#"{"items": [{"user_id": 42, "badge": "men\u0000tion"}]}"#, "/items/0/badge"),
            (BATCH, r#"{"items": [{"user_id": "42\u0000", "badge": "mention"}]}"#, "/items/0/user_id"),
            (BATCH, r#"{"items": [{"user_id": 9223372036854775808, "badge": "mention"}]}"#, "/items/0/user_id"),
            (BATCH, r#"{"items": [{"user_id": 42.0, "badge": "mention"}]}"#, "/items/0/user_id"),
            (BATCH, r#"{"items": [{"user_id": "042", "badge": "mention"}]}"#, "/items/0/user_id"),
            (BATCH, r#"{"items": [{"user_id": -42, "badge": "mention"}]}"#, "/items/0/user_id"),
            (QUERY, r#"{"user_ids": 42}"#, "/user_ids"),
            (QUERY, r#"{"user_ids": [42], "include": []}"#, "/include"),
            (QUERY, r#"{"user_ids": [42, null]}"#, "/user_ids/1"),
        ] {
            let reply = node.client.post_text(path, body.to_owned()).await;
            refused(reply, &format!("{path} {body:.60}"), 422, "invalid_body", Some(pointer));
        }
        assert_eq!(node.client.summary(42).await, before);
        node.stop().await;
    }

    async fn only_plain_json_in_utf_8_is_taken(world: World) {
        let node = world.node().await;
        let before = prepare(&node).await;
        for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "json", "", "application/jsonp"] {
            let request = node.client.request(Method::POST, INCREMENT).header("content-type", content_type).body("{}");
            refused(Client::send(request).await, content_type, 415, "unsupported_media_type", None);
        }
        let bare = node.client.request(Method::POST, INCREMENT).body("{}");
        refused(Client::send(bare).await, "no content type", 415, "unsupported_media_type", None);
        let packed = node.client.request(Method::POST, INCREMENT).header("content-type", "application/json").header("content-encoding", "gzip");
        refused(Client::send(packed.body("{}")).await, "gzip", 415, "unsupported_media_type", None);
        assert_eq!(node.client.summary(42).await, before);
        for content_type in ["application/json; charset=utf-8", "Application/JSON", "application/vnd.mine+json"] {
            let request = node.client.request(Method::POST, INCREMENT).header("content-type", content_type).body("{}");
            Client::send(request).await.ok();
        }
        node.stop().await;
    }

    async fn a_body_is_1_mib_at_most(world: World) {
        let node = world.node().await;
        let before = prepare(&node).await;
        let padded = |bytes: usize| format!("{{{}}}", " ".repeat(bytes - 2));
        for bytes in [1024 * 1024 + 1, 3 * 1024 * 1024, 20 * 1024 * 1024] {
            let reply = Client::try_send(node.client.request(Method::POST, RESET).header("content-type", "application/json").body(padded(bytes)));
            match reply.await {
                Ok(reply) => refused(reply, &bytes.to_string(), 413, "body_too_large", None),
                // Far beyond the limit the connection is closed while the client still sends; it
                // may not come to read the answer.
                Err(error) => assert!(bytes > 8 * 1024 * 1024, "{error:?}"),
            }
        }
        assert_eq!(node.client.summary(42).await, before);
        node.client.post_text(RESET, padded(1024 * 1024)).await.ok();
        node.stop().await;
    }

    async fn values_in_the_path_are_checked(world: World) {
        let node = world.node().await;
        let before = prepare(&node).await;
        for user in [
            "",
            "0", "-1", "+42", "007", "042", "9223372036854775808", "99999999999999999999999", "abc", "42a", "4%2F2", "42%2F", "%2e%2e%2f", "42%20",
            "%2042", "42%00", "%00", "%ff", "%zz", "4%", "42.0", "0x2a", "4_2", "%D9%A4%D9%A2", "Me", "{user}",
        ] {
            for (method, path) in [(Method::GET, ""), (Method::POST, "/reset"), (Method::POST, "/mention/reset"), (Method::POST, "/mention/increment")] {
                let path = format!("/v1/users/{user}/badges{path}");
                let reply = Client::send(node.client.request(method.clone(), &path)).await;
                refused(reply, &format!("{method} {path}"), 400, "invalid_path", Some("user"));
            }
        }
        for badge in ["A", "Mention",  "-a", "a%2Fb", "a%20", "%00", "a%00", "%ff", "é", "a+b", "a,b", "a:b", &"a".repeat(65), &"a".repeat(5000)] {
            for what in ["increment", "retract", "reset"] {
                let reply = node.client.post(&format!("/v1/users/42/badges/{badge}/{what}"), &json!({})).await;
                refused(reply, &format!("{what} {badge:.80}"), 400, "invalid_path", Some("badge"));
            }
        }
        assert_eq!(node.client.summary(42).await, before);
        assert_eq!(node.client.get("/v1/users/%34%32/badges").await.ok(), before, "percent-encoding is only a way to write it");
        node.stop().await;
    }

    async fn queries_are_checked(world: World) {
        let node = world.node().await;
        prepare(&node).await;
        for (query, name) in [
            ("nonsense=1", "nonsense"), ("cap=abc", "cap"), ("cap", "cap"), ("cap=1&c%61p=1", "cap"), ("wait=1&wait=1", "wait"), ("cap=%ff", "cap"),
            ("cap=%zz", "cap"), ("cap=%00", "cap"), ("%00=1", ""), ("include=%00", "include"), ("include[]=counters", "include[]"),
            ("cap=1;wait=1", "cap"), ("include=Counters", "include"), ("cap=1%20", "cap"), ("cap=+1", "cap"), ("=1", ""), ("cap=9223372036854775808", "cap"),
        ] {
            refused(node.client.get(&format!("/v1/users/42/badges?{query}")).await, query, 400, "invalid_query", Some(name));
        }
        node.client.get("/v1/users/42/badges?").await.ok();
        let before = node.client.summary(42).await;
        for path in [INCREMENT, RETRACT, RESET, RESET_MANY, BATCH, QUERY] {
            // Ignored, it would mean another thing than the caller meant.
            refused(node.client.post_text(&format!("{path}?up_to=1"), "{}").await, path, 400, "invalid_query", None);
        }
        assert_eq!(node.client.summary(42).await, before);
        node.stop().await;
    }

    async fn unknown_routes_are_404_and_other_methods_405_with_allow(world: World) {
        let node = world.node().await;
        let before = prepare(&node).await;
        for path in ["/v1", "/v2/users/42/badges", "/v1/users", "/v1/users/42/badges/", "//v1/users/42/badges",
            "/v1/users/42/badges/mention/unknown", "/v1/badges", "/V1/users/42/badges", "/v1/users/42/badges%2Fmention", "/.env", "/admin"]
        {
            refused(node.client.get(path).await, path, 404, "unknown_route", None);
        }
        for (method, path, allow) in [
            (Method::POST, "/v1/users/42/badges", "GET,HEAD"),
            (Method::DELETE, "/v1/users/42/badges", "GET,HEAD"),
            (Method::GET, "/v1/users/42", "DELETE"),
            (Method::GET, INCREMENT, "POST"),
            (Method::PUT, RESET, "POST"),
            (Method::PATCH, BATCH, "POST"),
            (Method::GET, QUERY, "POST"),
            (Method::TRACE, QUERY, "POST"),
            (Method::from_bytes(b"PURGE").unwrap(), RESET_MANY, "DELETE,POST"),
            (Method::POST, "/livez", "GET,HEAD"),
        ] {
            let reply = Client::send(node.client.request(method.clone(), path)).await;
            assert_eq!(reply.header("allow"), allow, "{method} {path}");
            refused(reply, &format!("{method} {path}"), 405, "method_not_allowed", None);
        }
        assert_eq!(node.client.summary(42).await, before);
        node.stop().await;
    }

    async fn what_is_not_http_ends_its_own_connection_only(world: World) {
        let node = world.node().await;
        let before = prepare(&node).await;
        let address = node.base.strip_prefix("http://").unwrap();
        let many_headers = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(500));
        let long_path = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(100_000));
        let reset = format!("POST {RESET} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        for (sent, status) in [
            ("\0\u{1}\u{2} nonsense of more than a few bytes\r\n\r\n".to_owned(), "400"),
            ("GET /a path HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), "400"),
            (format!("{reset}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"), "400"),
            (format!("{reset}content-length: -1\r\n\r\n{{}}"), "400"),
            (format!("{reset}transfer-encoding: chunked\r\n\r\nnonsense\r\n{{}}\r\n0\r\n\r\n"), "400"),
            (many_headers, "431"),
            (long_path, "431"),
        ] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            // The answer may come, and the connection end, before all is sent.
            let _ = stream.write_all(sent.as_bytes()).await;
            let mut answer = [0; 12];
            let read = tokio::time::timeout(Duration::from_secs(10), stream.read_exact(&mut answer)).await.expect("an answer in time");
            assert!(read.is_ok(), "no answer to {sent:.60}");
            assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"), "{sent:.120}");
        }
        assert_eq!(node.client.summary(42).await, before);
        node.stop().await;
    }

    async fn a_problem_has_the_shape_of_rfc_9457(world: World) {
        let node = world.node().await;
        let reply = node.client.post(BATCH, &json!({"items": [{"user_id": 42, "badge": "mention", "by": 0}]})).await;
        assert_eq!(reply.header("content-type"), "application/problem+json");
        assert_eq!(reply.header("cache-control"), "no-store");
        insta::assert_json_snapshot!(reply.body, @r#"
        {
          "code": "invalid_body",
          "detail": "One or more values are invalid. See errors.",
          "errors": [
            {
              "detail": "must be between 1 and 1000000",
              "pointer": "/items/0/by"
            }
          ],
          "status": 422,
          "title": "Invalid request body",
          "type": "/problems/invalid_body"
        }
        "#);
        node.stop().await;
    }
}
