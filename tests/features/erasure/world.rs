//! A world with a bit of everything, in which one user takes part or not.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, eventually};

/// Who is erased: no other number in these tests has these digits.
pub const ERASED: i64 = 7_654_321_098_765;

/// The others. All are enrolled from the start.
const OTHERS: [i64; 9] = [1, 2, 3, 4, 5, 6, 8, 9, 11];

/// What happens in the world. With `all`, everything; else only what happens without the user.
pub struct Seed<'a> {
    pub client: &'a Client,
    pub all: bool,
}

impl Seed<'_> {
    async fn send(&self, method: Method, path: &str, body: Value) -> Value {
        Client::send(self.client.request(method, path).json(&body)).await.ok()
    }

    /// Something that names the user, in the path or in the body, as `E`.
    async fn named(&self, method: Method, path: &str, body: Value) {
        if self.all {
            let body: Value = serde_json::from_str(&body.to_string().replace("\"E\"", &format!("\"{ERASED}\""))).unwrap();
            self.send(method, &path.replace('E', &ERASED.to_string()), body).await;
        }
    }

    async fn other(&self, method: Method, path: &str, body: Value) {
        self.send(method, path, body).await;
    }

    /// All of it, in an order that both worlds share.
    pub async fn plant(&self) {
        for user in OTHERS {
            self.client.get(&format!("/v1/users/{user}/badges")).await.ok();
        }
        if self.all {
            self.client.get(&format!("/v1/users/{ERASED}/badges")).await.ok();
        }
        self.relations().await;
        self.badges().await;
        self.feed().await;
        self.views().await;
        self.groups().await;
        self.directs().await;
        self.notifications().await;
    }

    async fn relations(&self) {
        let put = Method::PUT;
        for (path, body) in [
            ("/v1/users/1/following/2", json!({})),
            ("/v1/users/2/following/1", json!({})),
            ("/v1/users/3/following/1", json!({"visibility": "secret"})),
        ] {
            self.other(put.clone(), path, body).await;
        }
        for (path, body) in [
            ("/v1/users/E/following/1", json!({})),
            ("/v1/users/1/following/E", json!({})),
            ("/v1/users/2/following/E", json!({"visibility": "secret", "special": true})),
            ("/v1/users/E/following/3", json!({"special": true})),
            ("/v1/users/E/blocks/5", json!({})),
            ("/v1/users/6/blocks/E", json!({})),
            ("/v1/users/E/mutes/8", json!({})),
            ("/v1/users/9/mutes/E", json!({})),
            ("/v1/users/4/mutes/E", json!({"until": "2099-01-01T00:00:00.000Z"})),
        ] {
            self.named(put.clone(), path, body).await;
        }
        self.other(Method::PATCH, "/v1/users/4/settings", json!({"approve_follows": true})).await;
        self.other(put.clone(), "/v1/users/2/following/4", json!({})).await;
        self.named(put.clone(), "/v1/users/E/following/4", json!({})).await;
        self.named(Method::PATCH, "/v1/users/E/settings", json!({"approve_follows": true, "not_in_total": ["counters.like"]})).await;
        self.named(put.clone(), "/v1/users/3/following/E", json!({})).await;
        if self.all {
            let request = self.client.request(put, &format!("/v1/users/{ERASED}/following/11")).header("prefer", "respond-async");
            let reply = Client::send(request.json(&json!({}))).await;
            let location = reply.header("location").to_owned();
            eventually("it is done", async || self.client.get(&location).await.ok()["status"] == "done").await;
        }
    }

    async fn badges(&self) {
        let post = Method::POST;
        for user in [1, 2] {
            self.other(post.clone(), &format!("/v1/users/{user}/badges/mention/increment"), json!({"by": 3})).await;
        }
        if self.all {
            let items = json!({"items": [{"user_id": ERASED.to_string(), "badge": "mention"}]});
            self.client.post_once("/v1/badges/increment", "a-key", &items).await.ok();
        }
        self.other(post.clone(), "/v1/broadcasts/news", json!({"title": "x"})).await;
        self.other(post.clone(), "/v1/dots/mall/light", json!({})).await;
        self.named(post.clone(), "/v1/users/E/broadcasts/news/read", json!({})).await;
        self.named(post, "/v1/users/E/dots/mall/clear", json!({})).await;
        self.named(Method::PUT, "/v1/users/E/devices/phone", json!({"push": true})).await;
    }

    async fn feed(&self) {
        let put = Method::PUT;
        self.other(put.clone(), "/v1/users/2/posts/p1", json!({})).await;
        for post in ["x1", "x2", "x3"] {
            self.named(put.clone(), &format!("/v1/users/E/posts/{post}"), json!({})).await;
        }
        self.named(Method::POST, "/v1/users/E/feed/reset", json!({})).await;
        // User 1 has looked at posts of the user, and stopped following it since.
        self.other(Method::POST, "/v1/users/1/feed/reset", json!({})).await;
        self.named(put.clone(), "/v1/users/E/posts/x4", json!({})).await;
        self.other(put, "/v1/users/2/posts/p2", json!({})).await;
    }

    async fn views(&self) {
        let put = Method::PUT;
        self.other(Method::POST, "/v1/users/1/views/home/1/access", json!({})).await;
        self.named(Method::POST, "/v1/users/E/views/home/1/access", json!({})).await;
        self.other(put.clone(), "/v1/views/home/1/items/i1", json!({"actor_id": "1"})).await;
        self.other(put.clone(), "/v1/views/home/1/items/i2", if self.all { json!({"actor_id": ERASED.to_string()}) } else { json!({}) })
            .await;
    }

    async fn groups(&self) {
        let (put, post) = (Method::PUT, Method::POST);
        for (group, delivery) in [(20, "read"), (21, "write"), (22, "read")] {
            self.other(put.clone(), &format!("/v1/groups/{group}"), json!({"delivery": delivery})).await;
            for user in [1, 2, 3] {
                self.other(put.clone(), &format!("/v1/groups/{group}/members/{user}"), json!({})).await;
            }
            self.named(put.clone(), &format!("/v1/groups/{group}/members/E"), json!({})).await;
            let send = |sender: &str, id: &str, more: Value| {
                let mut body = json!({"sender_id": sender, "client_id": id, "content": "x"});
                body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                (format!("/v1/groups/{group}/messages"), body)
            };
            for (sender, id, more) in [
                ("1", "a", json!({})),
                ("E", "e1", json!({"mentions": ["1"], "mention_all": true})),
                ("2", "b", if self.all { json!({"mentions": ["E", "1"]}) } else { json!({"mentions": ["1"]}) }),
                ("E", "e2", json!({"mentions": ["2"]})),
            ] {
                let (path, body) = send(sender, id, more);
                if sender == "E" { self.named(post.clone(), &path, body).await } else { self.mixed(&path, body).await }
            }
            self.other(post.clone(), &format!("/v1/users/3/groups/{group}/messages/1/read"), json!({})).await;
            self.named(post.clone(), &format!("/v1/users/E/groups/{group}/read"), json!({"up_to": 1})).await;
        }
        self.named(Method::DELETE, "/v1/groups/22/members/E", json!({})).await;
        self.named(put, "/v1/groups/22/members/E", json!({})).await;
        eventually("the fan-out is over", async || self.client.metric("headmark_fan_out_oldest_seconds").await == 0.0).await;
    }

    /// In both worlds, with the user in the body in one of them.
    async fn mixed(&self, path: &str, body: Value) {
        let body: Value = serde_json::from_str(&body.to_string().replace("\"E\"", &format!("\"{ERASED}\""))).unwrap();
        self.send(Method::POST, path, body).await;
    }

    async fn directs(&self) {
        let direct = |receiver: &str, sender: &str, id: &str| {
            (format!("/v1/users/{receiver}/inbox"), json!({"sender_id": sender, "client_id": id, "content": "x"}))
        };
        for (receiver, sender, id) in
            [("1", "2", "d1"), ("2", "1", "d2"), ("E", "1", "d3"), ("1", "E", "d4"), ("1", "E", "d5"), ("E", "2", "d6")]
        {
            let (path, body) = direct(receiver, sender, id);
            if [receiver, sender].contains(&"E") { self.named(Method::POST, &path, body).await } else { self.mixed(&path, body).await }
        }
        let until = json!({"level": "none", "until": "2099-01-01T00:00:00.000Z"});
        self.named(Method::PUT, "/v1/users/2/directs/E/settings", until).await;
        self.named(Method::PUT, "/v1/users/3/directs/E/settings", json!({"level": "none"})).await;
        if self.all {
            let inbox = self.client.get("/v1/users/2/inbox?limit=100").await.ok();
            let own = inbox["items"]
                .as_array()
                .unwrap()
                .iter()
                .find(|item| item["peer_id"].as_str().and_then(|id| id.parse().ok()) == Some(ERASED))
                .unwrap()["seq"]
                .clone();
            self.client.delete(&format!("/v1/users/2/directs/{ERASED}/messages/{own}")).await.ok();
        }
    }

    async fn notifications(&self) {
        let of = |actor: Option<&str>, recipients: &[&str], key: Option<&str>| {
            let mut body = json!({"type": "like", "title": "x", "recipients": recipients});
            body["actor_id"] = json!(actor);
            body["group_key"] = json!(key);
            body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            body
        };
        let path = "/v1/notifications";
        let with_user = if self.all { vec!["1", "E"] } else { vec!["1"] };
        self.mixed(path, of(Some("2"), &with_user, None)).await;
        self.mixed(path, of(Some("2"), &with_user, Some("k"))).await;
        self.mixed(path, of(Some("3"), &with_user, Some("k"))).await;
        self.named(Method::POST, path, of(Some("E"), &["1", "2"], Some("k"))).await;
        self.named(Method::POST, path, of(Some("E"), &["1", "2"], Some("alone"))).await;
        self.named(Method::POST, path, of(Some("E"), &["1"], None)).await;
        self.named(Method::POST, "/v1/users/E/notifications/read", json!({"all": true})).await;
    }
}

/// What users are shown, as far as it is the same without the one who was never there: heads and
/// revisions count what ever happened.
pub async fn shown(client: &Client) -> Value {
    let mut all = json!({});
    for user in OTHERS {
        let get = async |path: &str| client.get(&format!("/v1/users/{user}/{path}")).await.ok();
        let summary = get("badges?views=home:1").await;
        let unread = |kind: &str| -> Value {
            let of = summary[kind].as_object().unwrap();
            of.iter()
                .filter(|(_, of)| of["unread"] != 0)
                .map(|(name, of)| (name.clone(), of["unread"].clone()))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let ids = |page: &Value, field: &str| -> Vec<Value> {
            page["items"].as_array().unwrap().iter().map(|item| item[field].clone()).collect()
        };
        // A type that the user never had, or has nothing of any more.
        let number = |value: &Value| value.as_i64().unwrap_or(0);
        let chats = get("chats?limit=100").await;
        let chats: Vec<_> = chats["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|chat| json!([chat["kind"], chat["id"], chat["unread"], chat["mentions"]]))
            .collect();
        let notifications = get("notifications").await;
        let notifications: Vec<_> = notifications["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| json!([entry["type"], entry["group_key"], entry["count"], entry["actors"]]))
            .collect();
        let mut sorted = chats.clone();
        sorted.sort_by_key(Value::to_string);
        all[user.to_string()] = json!({
            "total": summary["total"],
            "counters": unread("counters"),
            "broadcasts": unread("broadcasts"),
            "views": unread("views"),
            "feed": summary["feed"]["unread"],
            "sums": [summary["chats"], number(&summary["notifications"]["like"]["unread"]), number(&summary["notifications"]["like"]["unseen"])],
            "chats": sorted,
            "entries": notifications,
            "counts": get("relation-counts").await,
            "following": ids(&get("following?visibility=all").await, "user_id"),
            "followers": ids(&get("followers").await, "user_id"),
            "blocks": ids(&get("blocks").await, "user_id"),
            "mutes": ids(&get("mutes").await, "user_id"),
            "requests": [ids(&get("follow-requests").await, "user_id"), ids(&get("follow-requests/sent").await, "user_id")],
        });
    }
    all
}
