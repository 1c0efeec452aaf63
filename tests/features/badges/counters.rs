//! Increment, retract, reset.

use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{Client, Node};

const MENTION: &str = "/v1/users/42/badges/mention";

async fn increment(client: &Client, by: i64) -> Value {
    client.post(&format!("{MENTION}/increment"), &json!({ "by": by })).await.ok()
}

async fn retract(client: &Client, body: Value) -> Value {
    client.post(&format!("{MENTION}/retract"), &body).await.ok()
}

async fn reset(client: &Client, body: Value) -> Value {
    client.post(&format!("{MENTION}/reset"), &body).await.ok()
}

/// Unread, head and revision of an answer about one badge.
fn numbers(answer: &Value) -> (i64, i64, i64) {
    let number = |name: &str| answer[name].as_i64().unwrap_or_else(|| panic!("no {name} in {answer}"));
    (number("unread"), number("head"), number("revision"))
}

both_tiers! {
    async fn the_main_answers_have_these_bodies(world: World) {
        let node = world.node().await;
        let path = |what: &str| format!("{MENTION}/{what}");
        let raised = node.client.post(&path("increment"), &json!({"by": 5})).await;
        insta::assert_snapshot!(raised.text, @r#"{"badge":"mention","unread":5,"head":5,"revision":1}"#);
        assert_eq!((raised.status.as_u16(), raised.header("content-type")), (200, "application/json"));
        let retracted = node.client.post(&path("retract"), &json!({"at": 2})).await;
        insta::assert_snapshot!(retracted.text, @r#"{"badge":"mention","unread":4,"head":5,"revision":2}"#);
        let reset = node.client.post(&path("reset"), &json!({"up_to": 3})).await;
        insta::assert_snapshot!(reset.text, @r#"{"badge":"mention","unread":2,"head":5,"revision":4}"#);
        let all = node.client.post("/v1/users/42/badges/reset", &json!({})).await;
        insta::assert_snapshot!(
            all.without_epoch(),
            @r#"{"user_id":"42","epoch":"EPOCH","revision":5,"shared_revision":0,"total":0,"degraded":false,"counters":{"mention":{"unread":0,"head":5}},"broadcasts":{},"dots":{},"feed":{"unread":0},"chats":{"unread":0,"mentions":0,"groups":0,"directs":0},"notifications":{}}"#
        );
        node.stop().await;
    }

    async fn an_increment_without_a_number_is_by_one(world: World) {
        let node = world.node().await;
        let path = format!("{MENTION}/increment");
        assert_eq!(numbers(&node.client.post(&path, &json!({})).await.ok()), (1, 1, 1));
        let empty = node.client.request(reqwest::Method::POST, &path);
        assert_eq!(numbers(&Client::send(empty).await.ok()), (2, 2, 2), "no body counts as {{}}");
        node.stop().await;
    }

    async fn an_increment_is_by_1_to_1_000_000(world: World) {
        let node = world.node().await;
        let path = format!("{MENTION}/increment");
        for by in [0, -1, 1_000_001, i64::MIN, i64::MAX] {
            assert_eq!(node.client.post(&path, &json!({ "by": by })).await.pointers(422, "invalid_body"), ["/by"], "{by}");
        }
        assert_eq!(numbers(&increment(&node.client, 1).await), (1, 1, 1), "none of those changed anything");
        assert_eq!(numbers(&increment(&node.client, 1_000_000).await), (1_000_001, 1_000_001, 2));
        node.stop().await;
    }

    async fn retract_at_takes_back_that_item_once_and_only_while_it_is_unread(world: World) {
        let node = world.node().await;
        increment(&node.client, 4).await;
        let fifth = increment(&node.client, 1).await["head"].as_i64().unwrap();
        increment(&node.client, 1).await;
        assert_eq!(numbers(&retract(&node.client, json!({ "at": fifth })).await), (5, 6, 4));
        assert_eq!(numbers(&retract(&node.client, json!({ "at": fifth })).await), (5, 6, 4), "it was taken back before");
        assert_eq!(numbers(&reset(&node.client, json!({"up_to": 3})).await), (2, 6, 6));
        assert_eq!(numbers(&retract(&node.client, json!({"at": 2})).await), (2, 6, 6), "it was read");
        assert_eq!(numbers(&reset(&node.client, json!({ "up_to": fifth })).await), (1, 6, 7), "the one after the retracted one stays");
        node.stop().await;
    }

    async fn retract_at_a_position_that_never_was_is_404(world: World) {
        let node = world.node().await;
        let path = format!("{MENTION}/retract");
        node.client.post(&path, &json!({"at": 1})).await.problem(404, "not_found");
        increment(&node.client, 3).await;
        node.client.post(&path, &json!({"at": 4})).await.problem(404, "not_found");
        for at in [0, -1, 9_007_199_254_740_992_i64] {
            assert_eq!(node.client.post(&path, &json!({ "at": at })).await.pointers(422, "invalid_body"), ["/at"], "{at}");
        }
        assert_eq!(node.client.summary(42).await["counters"]["mention"], json!({"unread": 3, "head": 3}));
        node.stop().await;
    }

    async fn retract_by_takes_the_newest_unread_ones_and_never_goes_below_0(world: World) {
        let node = world.node().await;
        increment(&node.client, 10).await;
        assert_eq!(numbers(&retract(&node.client, json!({"by": 3})).await), (7, 10, 2));
        // Positions 8 to 10 went: reading up to 7 leaves nothing.
        assert_eq!(numbers(&reset(&node.client, json!({"up_to": 6})).await), (1, 10, 4));
        assert_eq!(numbers(&retract(&node.client, json!({"by": 1_000_000})).await), (0, 10, 5));
        assert_eq!(numbers(&retract(&node.client, json!({"by": 1})).await), (0, 10, 5), "nothing is left to take back");
        assert_eq!(numbers(&increment(&node.client, 1).await), (1, 11, 6));
        node.stop().await;
    }

    async fn retract_takes_at_or_by_or_neither_but_not_both(world: World) {
        let node = world.node().await;
        increment(&node.client, 5).await;
        let path = format!("{MENTION}/retract");
        let both = node.client.post(&path, &json!({"at": 1, "by": 1})).await;
        assert_eq!(both.pointers(422, "invalid_body"), ["/by"]);
        for by in [0, -1, 1_000_001] {
            assert_eq!(node.client.post(&path, &json!({ "by": by })).await.pointers(422, "invalid_body"), ["/by"], "{by}");
        }
        assert_eq!(numbers(&retract(&node.client, json!({})).await), (4, 5, 2), "neither: the newest one");
        assert_eq!(numbers(&reset(&node.client, json!({"up_to": 4})).await), (0, 5, 4), "the newest was the fifth");
        node.stop().await;
    }

    async fn what_was_taken_back_is_kept_by_position(world: World) {
        let node = world.node().await;
        increment(&node.client, 115).await;
        for at in [20, 60, 114, 115] {
            retract(&node.client, json!({ "at": at })).await;
        }
        let five_more = increment(&node.client, 5).await;
        assert_eq!((&five_more["unread"], &five_more["head"]), (&json!(116), &json!(120)));
        let seen = reset(&node.client, json!({"up_to": 115})).await;
        assert_eq!((&seen["unread"], &seen["head"]), (&json!(5), &json!(120)));
        node.stop().await;
    }

    async fn reset_clears_exactly_what_was_shown(world: World) {
        let node = world.node().await;
        increment(&node.client, 3).await;
        let shown = node.client.summary(42).await["counters"]["mention"]["head"].clone();
        increment(&node.client, 2).await;
        assert_eq!(numbers(&reset(&node.client, json!({ "up_to": shown })).await), (2, 5, 4), "what arrived in between stays");
        assert_eq!(numbers(&reset(&node.client, json!({})).await), (0, 5, 5), "without up_to all that is there now");
        node.stop().await;
    }

    async fn reset_without_a_body_reads_everything(world: World) {
        let node = world.node().await;
        increment(&node.client, 3).await;
        let empty = node.client.request(reqwest::Method::POST, &format!("{MENTION}/reset"));
        assert_eq!(numbers(&Client::send(empty).await.ok()), (0, 3, 3));
        node.stop().await;
    }

    async fn reset_beyond_the_head_is_clamped_to_it(world: World) {
        let node = world.node().await;
        increment(&node.client, 3).await;
        assert_eq!(numbers(&reset(&node.client, json!({"up_to": 9_007_199_254_740_991_i64})).await), (0, 3, 3));
        assert_eq!(numbers(&increment(&node.client, 1).await), (1, 4, 4), "the mark did not run ahead of the head");
        for up_to in [-1, 9_007_199_254_740_992_i64] {
            let reply = node.client.post(&format!("{MENTION}/reset"), &json!({ "up_to": up_to })).await;
            assert_eq!(reply.pointers(422, "invalid_body"), ["/up_to"], "{up_to}");
        }
        node.stop().await;
    }

    async fn marks_never_go_back_and_a_repeat_changes_nothing(world: World) {
        let node = world.node().await;
        increment(&node.client, 9).await;
        assert_eq!(numbers(&reset(&node.client, json!({"up_to": 6})).await), (3, 9, 3));
        let etag = node.client.get("/v1/users/42/badges").await.header("etag").to_owned();
        for up_to in [6, 5, 1, 0] {
            assert_eq!(numbers(&reset(&node.client, json!({ "up_to": up_to })).await), (3, 9, 3), "{up_to}");
        }
        let many = node.client.post("/v1/users/42/badges/reset", &json!({"up_to": {"mention": 2}})).await.ok();
        assert_eq!((&many["revision"], &many["total"]), (&json!(3), &json!(3)));
        assert_eq!(node.client.get_if_changed("/v1/users/42/badges", &etag).await.status, 304);
        node.stop().await;
    }

    async fn reset_of_many_reads_those_named_as_far_as_named(world: World) {
        let node = world.node().await;
        for badge in ["mention", "like", "comment"] {
            node.client.post(&format!("/v1/users/42/badges/{badge}/increment"), &json!({"by": 10})).await.ok();
        }
        let some = node.client.post("/v1/users/42/badges/reset", &json!({"up_to": {"mention": 7, "like": 99, "never": 3}})).await.ok();
        assert_eq!(some["counters"], json!({
            "comment": {"unread": 10, "head": 10}, "like": {"unread": 0, "head": 10}, "mention": {"unread": 3, "head": 10},
        }));
        assert_eq!((&some["total"], &some["revision"]), (&json!(13), &json!(5)), "one revision for the whole request");
        assert_eq!(some, node.client.summary(42).await, "it answers with the summary");
        let all = node.client.post("/v1/users/42/badges/reset", &json!({})).await.ok();
        assert_eq!((&all["total"], &all["revision"]), (&json!(0), &json!(6)));
        node.stop().await;
    }

    async fn reset_of_many_refuses_repeats_too_many_and_what_is_no_position(world: World) {
        let node = world.node().await;
        increment(&node.client, 3).await;
        let path = "/v1/users/42/badges/reset";
        let repeated = node.client.post_text(path, r#"{"up_to": {"mention": 1, "like": 1, "mention": 3}}"#).await;
        assert_eq!(repeated.pointers(422, "invalid_body"), ["/up_to/mention"]);
        let badges = |n: i64| json!({"up_to": (0..n).map(|n| (format!("b{n}"), json!(1))).collect::<serde_json::Map<_, _>>()});
        assert_eq!(node.client.post(path, &badges(101)).await.pointers(422, "invalid_body"), ["/up_to"]);
        node.client.post(path, &badges(100)).await.ok();
        for (body, pointer) in [
            (json!({"up_to": {"mention": -1}}), "/up_to/mention"),
            (json!({"up_to": {"mention": "3"}}), "/up_to/mention"),
            (json!({"up_to": {"mention": null}}), "/up_to/mention"),
            (json!({"up_to": null}), "/up_to"),
            (json!({"up_to": 3}), "/up_to"),
        ] {
            assert_eq!(node.client.post(path, &body).await.pointers(422, "invalid_body"), [pointer], "{body}");
        }
        assert_eq!(node.client.summary(42).await["counters"]["mention"], json!({"unread": 3, "head": 3}));
        node.stop().await;
    }

    async fn a_null_is_no_way_to_leave_a_field_out(world: World) {
        let node = world.node().await;
        increment(&node.client, 3).await;
        for (what, body, pointer) in [
            ("increment", json!({"by": null}), "/by"),
            ("retract", json!({"at": null}), "/at"),
            ("retract", json!({"by": null}), "/by"),
            // A client that lost the head it was shown must not mark everything.
            ("reset", json!({"up_to": null}), "/up_to"),
        ] {
            let reply = node.client.post(&format!("{MENTION}/{what}"), &body).await;
            assert_eq!(reply.pointers(422, "invalid_body"), [pointer], "{what} {body}");
        }
        assert_eq!(node.client.summary(42).await["counters"]["mention"], json!({"unread": 3, "head": 3}));
        node.stop().await;
    }

    async fn unknown_users_and_badges_answer_zeros(world: World) {
        let node = world.node().await;
        let summary = node.client.get("/v1/users/9223372036854775807/badges").await;
        insta::assert_snapshot!(
            summary.without_epoch(),
            @r#"{"user_id":"9223372036854775807","epoch":"EPOCH","revision":1,"shared_revision":0,"total":0,"degraded":false,"counters":{},"broadcasts":{},"dots":{},"feed":{"unread":0},"chats":{"unread":0,"mentions":0,"groups":0,"directs":0},"notifications":{}}"#
        );
        for (what, body) in [("reset", json!({})), ("reset", json!({"up_to": 9})), ("retract", json!({"by": 2}))] {
            let answer = node.client.post(&format!("{MENTION}/{what}"), &body).await.ok();
            assert_eq!(answer, json!({"badge": "mention", "unread": 0, "head": 0, "revision": 1}), "{what}");
        }
        let many = node.client.post("/v1/users/42/badges/reset", &json!({})).await.ok();
        assert_eq!((&many["counters"], &many["revision"]), (&json!({}), &json!(1)), "the enrolment is all that these wrote");
        node.stop().await;
    }

    async fn every_write_answers_with_the_revision_that_the_summary_then_has(world: World) {
        let node = world.node().await;
        assert_eq!(node.client.summary(42).await["revision"], 1, "the enrolment");
        for (n, (what, body)) in
            [("increment", json!({"by": 7})), ("retract", json!({"at": 3})), ("retract", json!({"by": 2})), ("reset", json!({"up_to": 2})), ("reset", json!({}))]
                .into_iter()
                .enumerate()
        {
            let answer = node.client.post(&format!("{MENTION}/{what}"), &body).await.ok();
            assert_eq!(answer["revision"], n + 2, "{what} {body}");
            let summary = node.client.summary(42).await;
            assert_eq!((&summary["revision"], &summary["total"]), (&answer["revision"], &answer["unread"]));
        }
        node.stop().await;
    }

    async fn a_write_shows_at_once_on_every_node(world: World) {
        let nodes = world.nodes().await;
        let (writer, reader) = (&nodes[0].client, &nodes.last().unwrap().client);
        for n in 1..=20 {
            increment(writer, 1).await;
            assert_eq!(reader.summary(42).await["total"], n);
        }
        assert_eq!(numbers(&reset(reader, json!({})).await).0, 0);
        assert_eq!(writer.summary(42).await["total"], 0);
        Node::stop_all(nodes).await;
    }

    async fn names_follow_the_rule(world: World) {
        let node = world.node().await;
        let longest = "a".repeat(64);
        for good in ["a", "0", "new.fan-2_x", &longest, "reset", "increment"] {
            let answer = node.client.post(&format!("/v1/users/42/badges/{good}/increment"), &json!({})).await.ok();
            assert_eq!(answer["badge"], good);
        }
        for bad in ["A", "_a", ".a", "-a", "a%20b", "%C3%A9", &format!("{longest}a")] {
            let reply = node.client.post(&format!("/v1/users/42/badges/{bad}/increment"), &json!({})).await;
            assert_eq!(reply.pointers(400, "invalid_path"), ["badge"], "{bad}");
        }
        node.stop().await;
    }
}
