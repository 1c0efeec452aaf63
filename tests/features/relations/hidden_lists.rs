//! Who may see a user's lists, over HTTP, as the contract has it.

use reqwest::Method;
use serde_json::json;

use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, Tier, eventually};

const LISTS: [&str; 3] = ["following", "followers", "mutuals"];

async fn show(client: &Client, user: i64, lists: &str) {
    let settings = json!({"lists": lists});
    let set = Client::send(client.request(Method::PATCH, &format!("/v1/users/{user}/settings")).json(&settings)).await.ok();
    assert_eq!(set["lists"], lists);
}

/// Which of the lists are shown.
async fn shown(client: &Client, user: i64) -> Vec<bool> {
    let mut shown = Vec::new();
    for name in LISTS {
        let reply = client.get(&format!("/v1/users/{user}/{name}")).await;
        if reply.status == 403 {
            shown.push(false);
            reply.problem(403, "lists_hidden");
        } else {
            shown.push(true);
            reply.ok();
        }
    }
    shown
}

/// All of them, or none.
async fn sees(client: &Client, user: i64) -> bool {
    let mut shown = shown(client, user).await;
    shown.dedup();
    assert_eq!(shown.len(), 1, "one setting for all three");
    shown[0]
}

both_tiers! {
    async fn lists_are_hidden_from_those_whom_the_setting_excludes(world: World) {
        let mut nodes = vec![world.node_with(&CREDENTIALS).await];
        if world.tier == Tier::Server {
            nodes.push(world.node_with(&CREDENTIALS).await);
        }
        let last = nodes.last().unwrap();
        let service = nodes[0].service();
        service.follow(2, 1).await;
        service.put("/v1/users/3/following/1", &json!({"visibility": "secret"})).await.ok();
        service.follow(1, 4).await;
        service.follow(1, 2).await;
        let [me, fan, secret_fan, followee, stranger] = [1, 2, 3, 4, 5].map(|user| nodes[0].user(user));
        for (lists, allowed) in [("all", [true; 5]), ("followers", [true, true, true, false, false]), ("self", [true, false, false, false, false]), ("all", [true; 5])] {
            show(&me, 1, lists).await;
            for (client, allowed) in [&me, &fan, &secret_fan, &followee, &stranger].into_iter().zip(allowed) {
                assert_eq!(sees(client, 1).await, allowed, "{lists}, at once where it was set");
                let counts = client.get("/v1/users/1/relation-counts").await.ok();
                assert_eq!((&counts["following"], &counts["followers"], &counts["mutuals"]), (&json!(2), &json!(2), &json!(1)), "{lists}");
            }
            assert!(sees(&service, 1).await && sees(&stranger, 2).await);
            let there = last.user(5);
            eventually("the other nodes show it", async || shown(&there, 1).await == [allowed[4]; 3]).await;
        }
        // Whoever follows no longer, or is blocked, is excluded at once.
        show(&me, 1, "followers").await;
        assert!(sees(&fan, 1).await && sees(&secret_fan, 1).await);
        service.unfollow(2, 1).await;
        me.put("/v1/users/me/blocks/3", &json!({})).await.ok();
        assert!(!sees(&fan, 1).await && !sees(&secret_fan, 1).await);
        for name in LISTS {
            let page = service.get(&format!("/v1/users/1/{name}?limit=1")).await.ok();
            if let Some(cursor) = page["next_cursor"].as_str() {
                stranger.get(&format!("/v1/users/1/{name}?limit=1&cursor={cursor}")).await.problem(403, "lists_hidden");
            }
        }
        // A request is no follow.
        Client::send(me.request(Method::PATCH, "/v1/users/me/settings").json(&json!({"approve_follows": true}))).await.ok();
        stranger.put("/v1/users/me/following/1", &json!({})).await.ok();
        assert!(!sees(&stranger, 1).await);
        Client::send(me.request(Method::PUT, "/v1/users/me/follow-requests/5")).await.ok();
        assert!(sees(&stranger, 1).await);
        Node::stop_all(nodes).await;
    }
}
