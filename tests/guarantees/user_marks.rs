//! Marks that an earlier version stored as rows are in the users' rows after an upgrade, and polls show
//! what they showed.

use serde_json::{Value, json};

use super::truth::Truth;
use crate::both_tiers;
use crate::support::Hand;

/// The last migration before the move.
const BEFORE: i64 = 14;

/// More users than move in one transaction.
const MANY: i64 = 12_000;

both_tiers! {
    async fn an_upgrade_moves_marks_into_the_users_rows(world: World) {
        let mut hand = Hand::earlier(&world, BEFORE).await;
        hand.run("insert into users (user_id, revision, counters, enrolled, seen_day) values (1, 7, 2, 0, 99999), (2, 1, 1, 0, 99999)").await;
        hand.run("insert into heads (owner_id, kind, name, head, retracted, floor, version, position, at, lane_id, batch) values
            (0, 2, 'news', 5, '', 0, 5, 9, 1800000000000, 1, 1), (0, 3, 'mall', 3, '', 0, 3, 8, 1800000000000, 1, 1), (0, 7, '', 9, '', 0, 9, 0, 1800000000000, 1, 1)").await;
        hand.run("insert into marks (user_id, kind, name, head, mark, retracted) values
            (1, 1, 'like', 9, 2, '4 6-7'), (1, 1, 'a-b', 3, 3, ''), (1, 1, 'a.b', 4, 1, ''), (1, 2, 'news', 2, 2, ''), (1, 3, 'mall', 3, 3, ''),
            (1, 4, 'room:1', 1, 1, ''), (2, 1, 'like', 1, 0, '')").await;
        let many = format!("with recursive n (id) as (select 100 union all select id + 1 from n where id < {}) ", 99 + MANY);
        hand.run(&format!("insert into users (user_id, revision, counters) {many} select id, 1, 1 from n")).await;
        hand.run(&format!("insert into marks (user_id, kind, name, head, mark, retracted) {many} select id, 1, 'like', id, id - 1, '' from n")).await;

        let node = world.node().await;
        assert_eq!(hand.text("select marks from users where user_id = 1").await, "b:news 2;c:a-b 3;c:a.b 4 3;c:like 9 7 4 6-7;d:mall 3");
        assert_eq!(hand.text("select cast(count(*) as text) from marks").await, "1", "the view's is where it was");
        let mut truth = Truth::of(&world).await;
        for user in [1, 2, 100, 5099, 5100, 99 + MANY] {
            let counters = truth.summary(user).await.counters;
            let counters: Value = counters.into_iter().map(|(name, (unread, head))| (name, json!({"unread": unread, "head": head}))).collect();
            assert_eq!(node.client.summary(user).await["counters"], counters, "user {user}");
        }
        let shown = node.client.summary(1).await;
        assert_eq!(shown["counters"], json!({"a-b": {"unread": 0, "head": 3}, "a.b": {"unread": 3, "head": 4}, "like": {"unread": 4, "head": 9}}));
        assert_eq!((&shown["broadcasts"]["news"], &shown["dots"]["mall"]["lit"]), (&json!({"unread": 3, "head": 5}), &json!(false)));
        assert_eq!(node.client.summary(99 + MANY).await["counters"]["like"], json!({"unread": 1, "head": 99 + MANY}));
        node.client.post("/v1/users/1/badges/like/increment", &json!({})).await.ok();
        assert_eq!(hand.text("select marks from users where user_id = 1").await, "b:news 2;c:a-b 3;c:a.b 4 3;c:like 10 8 4 6-7;d:mall 3");
        node.stop().await;
    }
}
