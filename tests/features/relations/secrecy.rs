//! What somebody may not know does not change the work that a request makes, so its time tells
//! nothing. Work is counted, not timed: statements to the database, commands to Redis, and commands
//! of the lanes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::Method;
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{CREDENTIALS, Client, Node, Reply, Tier, World};

const WORK: [&str; 3] = ["headmark_database_statements_total", "headmark_cache_commands_total", "headmark_lane_commands_total"];

/// How often each request is made, each time between two others. What the node does by itself, a
/// few statements a second, falls into some of these; the least is without it.
const TIMES: usize = 12;

/// What a request costs, and what is answered: the status, and the body but for who it is about.
#[derive(Debug, PartialEq)]
struct Seen {
    work: [i64; WORK.len()],
    answers: BTreeMap<(u16, String), usize>,
}

/// A node with credentials, and users who were never used; their ids are of one length.
struct Scene {
    node: Node,
    service: Client,
    next: AtomicI64,
}

impl Scene {
    async fn of(world: &World) -> Self {
        // The scrubber reads entries: who it has just read, the node need not ask Redis for.
        let args = [&CREDENTIALS[..], &["--scrub-users", "0"]].concat();
        let node = world.node_with(&args).await;
        let service = node.service();
        let scene = Self { node, service, next: AtomicI64::new(100_000) };
        // Some statements are left out where nobody blocks anybody.
        scene.block(98, 99).await;
        scene.mute(98, 97).await;
        scene
    }

    fn client(&self, user: i64) -> Client {
        self.node.user(user)
    }

    async fn block(&self, user: i64, target: i64) {
        Client::send(self.service.request(Method::PUT, &format!("/v1/users/{user}/blocks/{target}"))).await.ok();
    }

    async fn set(&self, user: i64, settings: Value) {
        Client::send(self.service.request(Method::PATCH, &format!("/v1/users/{user}/settings")).json(&settings)).await.ok();
    }

    /// A user asks to follow another one, who approves follows from now on.
    async fn ask(&self, user: i64, other: i64) {
        self.set(other, json!({"approve_follows": true})).await;
        self.service.put(&format!("/v1/users/{user}/following/{other}"), &json!({})).await.ok();
    }

    async fn mute(&self, user: i64, target: i64) {
        Client::send(self.service.request(Method::PUT, &format!("/v1/users/{user}/mutes/{target}"))).await.ok();
    }

    async fn counters(&self) -> [i64; WORK.len()] {
        let text = self.node.client.get("/metrics").await.text;
        WORK.map(|name| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()).unwrap_or_default())
    }

    /// What a user makes, who asks something about another one, or does it, after something was
    /// prepared between the two. The tests that take three users take the next id for the third.
    async fn seen(&self, prepare: impl AsyncFn(i64, i64), request: impl AsyncFn(&Client, i64, i64) -> Reply) -> Seen {
        let mut seen = Seen { work: [i64::MAX; WORK.len()], answers: BTreeMap::new() };
        for _ in 0..TIMES {
            let me = self.next.fetch_add(3, Ordering::SeqCst);
            let (other, client) = (me + 1, self.client(me));
            for user in [me, other] {
                // Seen today, and with an entry in the cache.
                self.client(user).summary(user).await;
            }
            // Their entries are in Redis, and the node has no copies.
            for user in [me, other] {
                self.service.post(&format!("/v1/users/{user}/badges/like/increment"), &json!({})).await.ok();
            }
            prepare(me, other).await;
            // What has just happened keeps the publisher of events from the next event for a moment. So something
            // has, whatever was prepared.
            self.block(98, me - 90_000).await;
            let before = self.counters().await;
            let reply = request(&client, me, other).await;
            let after = self.counters().await;
            for (least, (after, before)) in seen.work.iter_mut().zip(after.into_iter().zip(before)) {
                *least = (*least).min(after - before);
            }
            let mut body = reply.body;
            if let Some(fields) = body.as_object_mut() {
                fields.remove("sent_at");
            }
            let text = body.to_string().replace(&me.to_string(), "me").replace(&other.to_string(), "other");
            *seen.answers.entry((reply.status.as_u16(), text)).or_default() += 1;
        }
        assert_eq!(seen.answers.len(), 1, "{seen:?}");
        seen
    }
}

impl Seen {
    fn status(&self) -> u16 {
        self.answers.keys().next().unwrap().0
    }
}

async fn nothing(_: i64, _: i64) {}

both_tiers! {
    /// Anyone who is blocked finds the same as before, by the same work: lists, counts, look-ups,
    /// acts that change nothing, and acts that do.
    async fn who_is_blocked_cannot_tell(world: World) {
        let scene = Scene::of(&world).await;
        let blocked = async |me: i64, other: i64| scene.block(other, me).await;
        for name in ["following", "followers", "mutuals", "relation-counts", "posts/count"] {
            let look = async |client: &Client, _: i64, other: i64| client.get(&format!("/v1/users/{other}/{name}")).await;
            let before = scene.seen(nothing, look).await;
            assert!(before.status() == 200 && before.work[0] > 0, "{before:?}");
            assert_eq!(before, scene.seen(blocked, look).await, "{name}");
        }
        let look_up = async |client: &Client, me: i64, other: i64| client.get(&format!("/v1/users/{me}/relations?ids={other}")).await;
        let before = scene.seen(nothing, look_up).await;
        assert_eq!((before.status(), before.work[1] > 0), (200, world.tier == Tier::Server), "{before:?}");
        // The block may have made Redis forget what the two were to each other, so that SQL is
        // asked: as for any two that were not looked up before.
        assert_eq!(before, scene.seen(blocked, look_up).await);
        // It may have been a request that the block ended, and the one who blocks may ask, too.
        let asked_and_blocked = async |me: i64, other: i64| {
            scene.ask(me, other).await;
            scene.ask(other, me).await;
            scene.block(other, me).await;
        };
        let approving = async |me: i64, other: i64| {
            scene.set(me, json!({"approve_follows": true})).await;
            scene.set(other, json!({"approve_follows": true})).await;
        };
        assert_eq!(scene.seen(approving, look_up).await, scene.seen(asked_and_blocked, look_up).await);
        for name in ["following", "followers", "blocks", "follow-requests"] {
            let act = async |client: &Client, me: i64, other: i64| client.delete(&format!("/v1/users/{me}/{name}/{other}")).await;
            let before = scene.seen(nothing, act).await;
            assert_eq!((before.status(), before.work[2]), (204, 1), "{before:?}");
            assert_eq!(before, scene.seen(blocked, act).await, "DELETE {name}");
        }
        let block = async |client: &Client, me: i64, other: i64| client.put(&format!("/v1/users/{me}/blocks/{other}"), &json!({})).await;
        assert_eq!(scene.seen(nothing, block).await, scene.seen(blocked, block).await, "a block back");
        let answer = async |client: &Client, me: i64, other: i64| client.put(&format!("/v1/users/{me}/follow-requests/{other}"), &json!({})).await;
        let before = scene.seen(nothing, answer).await;
        assert_eq!((before.status(), before.work[2]), (404, 1), "{before:?}");
        assert_eq!(before, scene.seen(blocked, answer).await, "an answer to nobody");
        for lists in ["followers", "self"] {
            let hides = async |_: i64, other: i64| scene.set(other, json!({"lists": lists})).await;
            let hides_and_blocks = async |me: i64, other: i64| {
                hides(me, other).await;
                scene.block(other, me).await;
            };
            let look = async |client: &Client, _: i64, other: i64| client.get(&format!("/v1/users/{other}/followers")).await;
            let before = scene.seen(hides, look).await;
            assert_eq!(before.status(), 403);
            assert_eq!(before, scene.seen(hides_and_blocks, look).await, "{lists}");
        }
        let accept = async |client: &Client, me: i64, other: i64| {
            let reply = Client::send(client.request(Method::PUT, &format!("/v1/users/{me}/following/{other}")).header("prefer", "respond-async")).await;
            Reply { body: Value::Null, ..reply }
        };
        let before = scene.seen(nothing, accept).await;
        let after = scene.seen(blocked, accept).await;
        // It is done soon after, so the rest of the work may be in either; what is accepted is not
        // looked at.
        assert_eq!((before.status(), before.answers), (202, after.answers));
        scene.node.stop().await;
    }

    /// Strangers are shown first pages and counts from memory. What is done in secret must not
    /// empty it: the next answer would take longer.
    async fn a_third_party_cannot_tell_when_something_is_done_in_secret(world: World) {
        let scene = Scene::of(&world).await;
        let secret = json!({"visibility": "secret"});
        let service = &scene.service;
        for name in ["following", "followers", "relation-counts"] {
            let look = async |client: &Client, _: i64, other: i64| client.get(&format!("/v1/users/{other}/{name}")).await;
            let warm = async |me: i64, other: i64| drop(look(&scene.client(me), me, other).await.ok());
            let before = scene.seen(warm, look).await;
            assert_eq!((before.status(), before.work[0]), (200, 0), "from memory: {before:?}");
            let third = |other: i64| other + 1;
            let follows = async |me: i64, other: i64| {
                warm(me, other).await;
                service.put(&format!("/v1/users/{other}/following/{}", third(other)), &secret).await.ok();
            };
            assert_eq!(before, scene.seen(follows, look).await, "{name}, a secret follow");
            let unfollows = async |me: i64, other: i64| {
                service.put(&format!("/v1/users/{other}/following/{}", third(other)), &secret).await.ok();
                warm(me, other).await;
                service.unfollow(other, third(other)).await;
            };
            assert_eq!(before, scene.seen(unfollows, look).await, "{name}, its end");
            let blocks = async |me: i64, other: i64| {
                warm(me, other).await;
                scene.block(other, third(other)).await;
            };
            assert_eq!(before, scene.seen(blocks, look).await, "{name}, a block");
            let is_blocked = async |me: i64, other: i64| {
                warm(me, other).await;
                scene.block(third(other), other).await;
                service.delete(&format!("/v1/users/{}/blocks/{other}", third(other))).await;
            };
            assert_eq!(before, scene.seen(is_blocked, look).await, "{name}, a block by another and its end");
            // The third one has approved follows since before.
            let asks = async |me: i64, other: i64| {
                scene.set(third(other), json!({"approve_follows": true})).await;
                warm(me, other).await;
                service.put(&format!("/v1/users/{other}/following/{}", third(other)), &json!({})).await.ok();
            };
            assert_eq!(before, scene.seen(asks, look).await, "{name}, a request");
            let withdraws = async |me: i64, other: i64| {
                scene.ask(other, third(other)).await;
                warm(me, other).await;
                service.unfollow(other, third(other)).await;
            };
            assert_eq!(before, scene.seen(withdraws, look).await, "{name}, its end");
            let is_asked = async |me: i64, other: i64| {
                scene.set(other, json!({"approve_follows": true})).await;
                warm(me, other).await;
                service.put(&format!("/v1/users/{}/following/{other}", third(other)), &json!({})).await.ok();
                service.delete(&format!("/v1/users/{other}/follow-requests/{}", third(other))).await;
            };
            assert_eq!(before, scene.seen(is_asked, look).await, "{name}, a request of another and its refusal");
            let approves = async |me: i64, other: i64| {
                warm(me, other).await;
                scene.set(other, json!({"approve_follows": true})).await;
            };
            assert_eq!(before, scene.seen(approves, look).await, "{name}, approval");
            let is_refused = async |me: i64, other: i64| {
                scene.block(third(other), other).await;
                warm(me, other).await;
                service.put(&format!("/v1/users/{other}/following/{}", third(other)), &json!({})).await.problem(403, "blocked");
            };
            assert_eq!(before, scene.seen(is_refused, look).await, "{name}, a follow that is refused");
        }
        scene.node.stop().await;
    }

    /// What those whom a user follows hide changes neither what familiar followers tell, nor the work,
    /// and does not empty what is kept of it.
    async fn what_a_followee_hides_familiar_followers_do_not_tell(world: World) {
        let scene = Scene::of(&world).await;
        let (service, secret) = (&scene.service, json!({"visibility": "secret"}));
        let third = |other: i64| other + 1;
        let look = async |client: &Client, me: i64, other: i64| client.get(&format!("/v1/users/{me}/familiar?ids={other}")).await;
        let follows = async |me: i64, other: i64| drop(service.follow(me, third(other)).await);
        let before = scene.seen(follows, look).await;
        assert_eq!((before.status(), before.work[0]), (200, 4), "{before:?}");
        let follows_secretly = async |me: i64, other: i64| {
            follows(me, other).await;
            service.put(&format!("/v1/users/{}/following/{other}", third(other)), &secret).await.ok();
        };
        assert_eq!(before, scene.seen(follows_secretly, look).await, "a secret follow");
        let hides = async |me: i64, other: i64| {
            follows(me, other).await;
            service.follow(third(other), other).await;
            scene.set(third(other), json!({"lists": "self"})).await;
        };
        assert_eq!(before, scene.seen(hides, look).await, "a hidden list");
        let asks = async |me: i64, other: i64| {
            follows(me, other).await;
            scene.ask(third(other), other).await;
        };
        assert_eq!(before, scene.seen(asks, look).await, "a request");
        let blocks = async |me: i64, other: i64| {
            follows(me, other).await;
            scene.block(third(other), other).await;
            scene.block(other, third(other)).await;
            scene.block(other, me).await;
        };
        assert_eq!(before, scene.seen(blocks, look).await, "blocks");
        let mutes = async |me: i64, other: i64| {
            follows(me, other).await;
            scene.mute(third(other), me).await;
            scene.mute(other, third(other)).await;
        };
        assert_eq!(before, scene.seen(mutes, look).await, "mutes");

        let warm = async |me: i64, other: i64| {
            follows(me, other).await;
            look(&scene.client(me), me, other).await.ok();
        };
        let kept = scene.seen(warm, look).await;
        assert_eq!((kept.status(), kept.work[0]), (200, 0), "from memory: {kept:?}");
        let hides_more = async |me: i64, other: i64| {
            warm(me, other).await;
            service.put(&format!("/v1/users/{}/following/90", third(other)), &secret).await.ok();
            scene.block(third(other), other).await;
            scene.mute(other, third(other)).await;
        };
        assert_eq!(kept, scene.seen(hides_more, look).await, "in secret");
        scene.node.stop().await;
    }

    /// Who is muted finds the same as before, by the same work: what it reads, does, sends and posts.
    async fn who_is_muted_cannot_tell(world: World) {
        let scene = Scene::of(&world).await;
        let muted = async |me: i64, other: i64| scene.mute(other, me).await;
        for name in ["following", "followers", "mutuals", "relation-counts", "posts/count"] {
            let look = async |client: &Client, _: i64, other: i64| client.get(&format!("/v1/users/{other}/{name}")).await;
            let before = scene.seen(nothing, look).await;
            assert!(before.status() == 200 && before.work[0] > 0, "{before:?}");
            assert_eq!(before, scene.seen(muted, look).await, "{name}");
        }
        let look_up = async |client: &Client, me: i64, other: i64| client.get(&format!("/v1/users/{me}/relations?ids={other}")).await;
        assert_eq!(scene.seen(nothing, look_up).await, scene.seen(muted, look_up).await);
        // Also where the look-up was answered from the cache before, and the mute came since.
        let again = async |client: &Client, me: i64, other: i64| {
            look_up(client, me, other).await.ok();
            scene.mute(other, me).await;
            look_up(client, me, other).await
        };
        let again_after = async |client: &Client, me: i64, other: i64| {
            scene.mute(other, me).await;
            look_up(client, me, other).await.ok();
            look_up(client, me, other).await
        };
        assert_eq!(scene.seen(nothing, again).await.work, scene.seen(nothing, again_after).await.work);
        for name in ["following", "followers", "blocks", "mutes"] {
            for method in [Method::PUT, Method::DELETE] {
                if name == "followers" && method == Method::PUT {
                    continue;
                }
                let act = async |client: &Client, me: i64, other: i64| {
                    Client::send(client.request(method.clone(), &format!("/v1/users/{me}/{name}/{other}"))).await
                };
                let before = scene.seen(nothing, act).await;
                assert_eq!((before.status() / 100, before.work[2]), (2, 1), "{before:?}");
                assert_eq!(before, scene.seen(muted, act).await, "{method} {name}");
            }
        }
        let send = async |client: &Client, me: i64, other: i64| {
            let body = json!({"sender_id": me, "client_id": "c1", "content": "hello"});
            client.post(&format!("/v1/users/{other}/inbox"), &body).await
        };
        let before = scene.seen(nothing, send).await;
        assert_eq!(before.status(), 201);
        assert_eq!(before, scene.seen(muted, send).await);
        let sent = async |me: i64, other: i64| drop(send(&scene.client(me), me, other).await.ok());
        let sent_and_muted = async |me: i64, other: i64| {
            sent(me, other).await;
            scene.mute(other, me).await;
            // Its receiver reads it all the same.
            scene.service.post(&format!("/v1/users/{other}/directs/{me}/read"), &json!({})).await.ok();
        };
        let sent_and_read = async |me: i64, other: i64| {
            sent(me, other).await;
            scene.service.post(&format!("/v1/users/{other}/directs/{me}/read"), &json!({})).await.ok();
        };
        for request in ["/receipts", "", "/messages"] {
            let look = async |client: &Client, me: i64, other: i64| {
                let reply = client.get(&format!("/v1/users/{me}/directs/{other}{request}")).await;
                let mut body = reply.body.clone();
                body.as_object_mut().unwrap().remove("last_at");
                body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten().for_each(|item| drop(item.as_object_mut().unwrap().remove("sent_at")));
                Reply { body, ..reply }
            };
            assert_eq!(scene.seen(sent_and_read, look).await, scene.seen(sent_and_muted, look).await, "{request}");
        }
        let recall = async |client: &Client, me: i64, other: i64| client.delete(&format!("/v1/users/{me}/directs/{other}/messages/1")).await;
        let muted_since = async |me: i64, other: i64| {
            sent(me, other).await;
            scene.mute(other, me).await;
        };
        assert_eq!(scene.seen(sent, recall).await, scene.seen(muted_since, recall).await);
        scene.node.stop().await;
    }

    /// Whom a user mutes changes nothing of what strangers are shown, and does not empty what is kept
    /// for them.
    async fn a_third_party_cannot_tell_a_mute(world: World) {
        let scene = Scene::of(&world).await;
        for name in ["following", "followers", "relation-counts"] {
            let look = async |client: &Client, _: i64, other: i64| client.get(&format!("/v1/users/{other}/{name}")).await;
            let warm = async |me: i64, other: i64| drop(look(&scene.client(me), me, other).await.ok());
            let before = scene.seen(warm, look).await;
            assert_eq!((before.status(), before.work[0]), (200, 0), "from memory: {before:?}");
            let mutes = async |me: i64, other: i64| {
                warm(me, other).await;
                scene.mute(other, other + 1).await;
                scene.mute(other + 1, other).await;
            };
            assert_eq!(before, scene.seen(mutes, look).await, "{name}");
        }
        scene.node.stop().await;
    }

    /// A follow that a block forbids is refused in the same words and by the same work, whichever
    /// of the two blocks, or both do.
    async fn a_refused_follow_does_not_tell_who_blocks(world: World) {
        let scene = Scene::of(&world).await;
        let mine = async |me: i64, other: i64| scene.block(me, other).await;
        let theirs = async |me: i64, other: i64| scene.block(other, me).await;
        let both = async |me: i64, other: i64| {
            scene.block(me, other).await;
            scene.block(other, me).await;
        };
        let asks = async |me: i64, other: i64| scene.ask(me, other).await;
        for body in [json!({}), json!({"visibility": "secret", "special": true})] {
            let follow = async |client: &Client, me: i64, other: i64| client.put(&format!("/v1/users/{me}/following/{other}"), &body).await;
            let by_me = scene.seen(mine, follow).await;
            assert_eq!((by_me.status(), by_me.work[2]), (403, 1), "{by_me:?}");
            assert_eq!(by_me, scene.seen(theirs, follow).await);
            assert_eq!(by_me, scene.seen(both, follow).await);
            // The same of a request.
            let after_asking = async |block: &dyn Fn(i64, i64) -> (i64, i64), me: i64, other: i64| {
                asks(me, other).await;
                let (user, target) = block(me, other);
                scene.block(user, target).await;
            };
            let by_me = scene.seen(async |me: i64, other: i64| after_asking(&|me, other| (me, other), me, other).await, follow).await;
            assert_eq!((by_me.status(), by_me.work[2]), (403, 1), "{by_me:?}");
            assert_eq!(by_me, scene.seen(async |me: i64, other: i64| after_asking(&|me, other| (other, me), me, other).await, follow).await);
        }
        scene.node.stop().await;
    }

    /// A direct message is refused where the receiver blocks the sender, which the sender is told.
    /// Whomever the sender blocks besides makes no difference.
    async fn a_direct_message_does_not_tell_what_its_sender_does(world: World) {
        let scene = Scene::of(&world).await;
        let mine = async |me: i64, other: i64| scene.block(me, other).await;
        let theirs = async |me: i64, other: i64| scene.block(other, me).await;
        let both = async |me: i64, other: i64| {
            scene.block(me, other).await;
            scene.block(other, me).await;
        };
        let send = async |client: &Client, me: i64, other: i64| {
            let body = json!({"sender_id": me, "client_id": "c1", "content": "hello"});
            let mut reply = client.post(&format!("/v1/users/{other}/inbox"), &body).await;
            // That of the sender, which the sender's own block has raised.
            reply.body.as_object_mut().and_then(|fields| fields.remove("revision"));
            reply
        };
        let passes = scene.seen(nothing, send).await;
        assert_eq!(passes.status(), 201);
        assert_eq!(passes, scene.seen(mine, send).await);
        let refused = scene.seen(theirs, send).await;
        assert_eq!(refused.status(), 403);
        assert_eq!(refused, scene.seen(both, send).await);
        scene.node.stop().await;
    }

    /// A third party finds the same of a user who follows somebody in secret as of one who follows
    /// nobody, by the same work.
    async fn a_third_party_cannot_tell_a_secret_follow(world: World) {
        let scene = Scene::of(&world).await;
        let secret = async |_: i64, other: i64| {
            let path = format!("/v1/users/{other}/following/{}", other + 1);
            scene.service.put(&path, &json!({"visibility": "secret", "special": true})).await.ok();
        };
        for name in ["following", "followers", "mutuals", "relation-counts"] {
            let look = async |client: &Client, _: i64, other: i64| client.get(&format!("/v1/users/{other}/{name}")).await;
            let before = scene.seen(nothing, look).await;
            assert!(before.status() == 200 && before.work[0] > 0, "{before:?}");
            assert_eq!(before, scene.seen(secret, look).await, "{name}");
            let asked = async |_: i64, other: i64| scene.ask(other, other + 1).await;
            assert_eq!(before, scene.seen(asked, look).await, "{name}, a request");
            let is_asked = async |_: i64, other: i64| scene.ask(other + 1, other).await;
            assert_eq!(before, scene.seen(is_asked, look).await, "{name}, a request of another");
        }
        scene.node.stop().await;
    }
}
