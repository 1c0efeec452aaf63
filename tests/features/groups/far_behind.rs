//! Members who are so far behind that the head of a group does not tell what is unread to them.

use serde_json::json;

use super::{make, read, recall};
use crate::both_tiers;
use crate::support::{Client, Node, Tier, eventually};

/// More than a head keeps at hand.
const RECALLED: i64 = 210;
const MEMBERS: i64 = 20;

async fn send(client: &Client, seq: i64, mention_all: bool) {
    let message = json!({"sender_id": 1, "client_id": format!("m{seq}"), "content": "text", "mention_all": mention_all});
    assert_eq!(client.post("/v1/groups/9/messages", &message).await.ok()["seq"], seq);
}

/// Unread messages, and those that mention the user.
async fn numbers(client: &Client, user: i64) -> (i64, i64) {
    let chats = &client.summary(user).await["chats"];
    (chats["unread"].as_i64().unwrap(), chats["mentions"].as_i64().unwrap())
}

both_tiers! {
    async fn the_rows_are_read_once_for_all_of_them(world: World) {
        let mut nodes = vec![world.node_with(&["--scrub-users", "0"]).await];
        if world.tier == Tier::Server {
            nodes.push(world.node_with(&["--scrub-users", "0"]).await);
        }
        let (writer, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        make(writer, 9, &(1..=MEMBERS).collect::<Vec<_>>()).await;
        let (mut head, mut gone) = (2 * RECALLED + 10, (1..=RECALLED).map(|n| 2 * n).collect::<Vec<_>>());
        for seq in 1..=head {
            send(writer, seq, seq == 3).await;
        }
        for seq in &gone {
            recall(writer, 9, *seq).await;
        }
        let mark = |user: i64| user % 4;
        for user in (2..=MEMBERS).filter(|user| mark(*user) > 0) {
            read(writer, user, 9, Some(mark(user))).await.ok();
        }
        for round in 1..=4 {
            // The last one changes what the rows tell.
            if round == 4 {
                recall(writer, 9, 5).await;
                gone.push(5);
            } else {
                head += 1;
                send(writer, head, false).await;
            }
            let unread = |user: i64| (mark(user) + 1..=head).filter(|seq| !gone.contains(seq)).count();
            let expected = |user: i64| (i64::try_from(unread(user)).unwrap(), i64::from(mark(user) < 3));
            eventually("the other node knows of it", async || numbers(other, 4).await == expected(4)).await;
            let before = other.metric("headmark_database_statements_total").await;
            for user in 2..=MEMBERS {
                assert_eq!(numbers(other, user).await, expected(user), "user {user} in round {round}");
            }
            let asked = other.metric("headmark_database_statements_total").await - before;
            // The first round reads what else belongs to them. A node also asks by itself.
            assert!(round == 1 || asked < 20.0, "{asked} statements in round {round}");
        }
        Node::stop_all(nodes).await;
    }
}
