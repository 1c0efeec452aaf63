//! Steps of what users share: broadcasts, dots, posts and the feed, and who follows and blocks
//! whom.

use serde_json::json;

use headmark::base::clock::UnixMs;

use super::model::{Thing, delete, read, unread};
use super::run::{Run, part, up_to};
use super::steps::{Step, What};
use crate::support::eventually;

impl Run<'_> {
    pub async fn notices(&mut self, step: &Step) {
        let name = self.name(step.which);
        let (head, path) = (self.model.channels.get(&name).map_or(0, Vec::len), format!("/v1/broadcasts/{name}"));
        match step.what {
            What::SendNotice => {
                let expires_at = self.fleet.now().zip(step.percent).map(|(now, percent)| now + 1 + i64::try_from(percent).unwrap() * 300);
                let mut body = json!({"title": "t"});
                if let Some(at) = expires_at {
                    body["expires_at"] = json!(UnixMs(at).to_string());
                }
                let reply = self.keyed(&path, body).await;
                assert_eq!((reply.status.as_u16(), reply.body["seq"].as_u64()), (201, u64::try_from(head + 1).ok()), "{}", reply.text);
                let notice = Thing { expires_at, ..Thing::unread_by(self.model.seen.clone()) };
                self.model.channels.entry(name).or_default().push(notice);
            }
            What::DeleteChannel => {
                assert_eq!(self.delete(&path).await.status, 204);
                self.model.channels.get_mut(&name).into_iter().for_each(|notices| delete(notices));
            }
            What::Withdraw => {
                let at = step.which / 2 % (head + 1);
                // Of one that went with its channel nothing is left to take back: done already.
                let reply = self.delete(&format!("{path}/{}", at + 1)).await;
                assert_eq!(reply.status, if at < head { 204 } else { 404 });
                self.model
                    .channels
                    .get_mut(&name)
                    .and_then(|notices| notices.get_mut(at))
                    .into_iter()
                    .for_each(|notice| notice.gone = true);
            }
            _ => {
                let (user, _) = self.own(step);
                let body = self.post(&self.user_path(user, &format!("broadcasts/{name}/read")), up_to(head, step.percent)).await.ok();
                self.note(user, &body);
                let mut none = Vec::new();
                let notices = self.model.channels.get_mut(&name).unwrap_or(&mut none);
                read(notices, user, part(head, step.percent));
                assert_eq!((&body["unread"], &body["head"]), (&json!(unread(notices, user)), &json!(head)));
            }
        }
    }

    pub async fn dots(&mut self, step: &Step) {
        let name = self.name(step.which);
        let head = self.model.dots.get(&name).map_or(0, Vec::len);
        if step.what == What::Light {
            let body = self.post(&format!("/v1/dots/{name}/light"), json!({})).await.ok();
            let lit = usize::try_from(body["head"].as_u64().unwrap()).unwrap() - head;
            // The one write that a repeat does again: how often it was done, its head tells.
            assert!(lit == 1 || (self.repeated && lit == 2), "{body}");
            let light = Thing::unread_by(self.model.seen.clone());
            return self.model.dots.entry(name).or_default().extend(vec![light; lit]);
        }
        if step.what == What::DeleteDot {
            assert_eq!(self.delete(&format!("/v1/dots/{name}")).await.status, 204);
            return self.model.dots.get_mut(&name).into_iter().for_each(|lights| delete(lights));
        }
        let (user, _) = self.own(step);
        let body = self.post(&self.user_path(user, &format!("dots/{name}/clear")), up_to(head, step.percent)).await.ok();
        self.note(user, &body);
        let mut none = Vec::new();
        let lights = self.model.dots.get_mut(&name).unwrap_or(&mut none);
        read(lights, user, part(head, step.percent));
        assert_eq!((&body["lit"], &body["head"]), (&json!(unread(lights, user) > 0), &json!(head)));
    }

    pub async fn posts(&mut self, step: &Step) {
        let user = step.user;
        let head = self.model.posts.get(&user).map_or(0, Vec::len);
        let which = step.which % head.max(1);
        let path = |this: &Self, which: usize| this.user_path(user, &format!("posts/p{which}"));
        match step.what {
            What::Post => {
                let reply = self.put(&path(self, head), json!({})).await;
                let post = Thing::unread_by(self.model.followers(user));
                let posts = self.model.posts.entry(user).or_default();
                posts.push(post);
                let there = posts.iter().filter(|post| !post.gone).count();
                let body = self.made(reply);
                assert_eq!((&body["posts"], &body["head"]), (&json!(there), &json!(head + 1)));
            }
            What::PostAgain if head > 0 => {
                let reply = self.put(&path(self, which), json!({})).await;
                assert_eq!(reply.status, if self.model.posts[&user][which].gone { 410 } else { 200 });
            }
            What::DeletePost => {
                let reply = self.delete(&path(self, which)).await;
                assert_eq!(reply.status, if head > 0 { 204 } else { 404 });
                self.model.posts.entry(user).or_default().iter_mut().skip(which).take(1).for_each(|post| post.gone = true);
            }
            What::ResetFeed => {
                let (user, _) = self.own(step);
                let body = self.post(&self.user_path(user, "feed/reset"), json!({})).await.ok();
                self.note(user, &body);
                self.model.posts.values_mut().for_each(|posts| read(posts, user, usize::MAX));
                assert_eq!((&body["unread"], &body["creators"]), (&json!(0), &json!(self.model.following(user).len())));
            }
            _ => {}
        }
    }

    /// A user approves follows, or no longer: then those who have asked are accepted, one after the
    /// other.
    async fn approve(&mut self, user: usize, approves: bool) {
        let body = self.patch(&self.user_path(user, "settings"), json!({"approve_follows": approves})).await.ok();
        self.note(user, &body);
        if approves {
            self.model.approving.insert(user);
        } else if self.model.approving.remove(&user) {
            let asking: Vec<_> = self.model.requests.iter().map(|(pair, _)| *pair).filter(|(_, other)| *other == user).collect();
            asking.into_iter().for_each(|pair| assert!(self.model.accept(pair)));
            let (client, path) = (self.fleet.client(self.node), self.user_path(user, "relation-counts"));
            eventually("all are accepted", async || client.get(&path).await.ok()["requests"] == 0).await;
        }
    }

    pub async fn relations(&mut self, step: &Step) {
        let (user, other) = self.own(step);
        let id = self.user(other);
        match step.what {
            What::Approve => self.approve(user, step.which.is_multiple_of(2)).await,
            What::Follow => self.follow(user, other, step.which).await,
            What::Unfollow => {
                assert_eq!(self.delete(&self.user_path(user, &format!("following/{id}"))).await.status, 204);
                self.model.unfollow(user, other);
            }
            What::RemoveFollower => {
                assert_eq!(self.delete(&self.user_path(user, &format!("followers/{id}"))).await.status, 204);
                self.model.remove_follower(other, user);
            }
            What::AcceptRequest => {
                let reply = self.put(&self.user_path(user, &format!("follow-requests/{id}")), json!({})).await;
                let accepted = self.model.accept((other, user));
                // Where it was sent twice, the first time may have accepted it.
                assert!(reply.status == if accepted { 200 } else { 404 } || (self.repeated && reply.status == 404), "{}", reply.text);
            }
            What::RefuseRequest => {
                assert_eq!(self.delete(&self.user_path(user, &format!("follow-requests/{id}"))).await.status, 204);
                self.model.end_request((other, user));
            }
            What::Block => {
                self.put(&self.user_path(user, &format!("blocks/{id}")), json!({})).await.ok();
                self.model.blocks.insert((user, other));
                self.model.unfollow(user, other);
                self.model.unfollow(other, user);
            }
            _ => {
                assert_eq!(self.delete(&self.user_path(user, &format!("blocks/{id}"))).await.status, 204);
                self.model.blocks.remove(&(user, other));
            }
        }
    }

    /// For ever, or where the clock is known until a time; and no longer.
    pub async fn mutes(&mut self, step: &Step) {
        let (user, other) = self.own(step);
        let path = self.user_path(user, &format!("mutes/{}", self.user(other)));
        if step.what == What::Unmute {
            assert_eq!(self.delete(&path).await.status, 204);
            self.model.mutes.remove(&(user, other));
            return;
        }
        let until = self.fleet.now().zip(step.percent).map(|(now, percent)| now + 1 + i64::try_from(percent).unwrap() * 300);
        let body = until.map_or(json!({}), |until| json!({"until": UnixMs(until).to_string()}));
        let body = self.put(&path, body).await.ok();
        self.note(user, &body);
        assert_eq!(body["muting"], true);
        self.model.mutes.insert((user, other), until);
    }

    /// Publicly, in secret or as before, as somebody special, nobody special or as before.
    async fn follow(&mut self, user: usize, other: usize, which: usize) {
        let (secret, special) = ([None, Some(false), Some(true)][which % 3], [None, Some(false), Some(true)][which / 3 % 3]);
        let mut body = json!({});
        if let Some(secret) = secret {
            body["visibility"] = json!(if secret { "secret" } else { "public" });
        }
        if let Some(special) = special {
            body["special"] = json!(special);
        }
        let reply = self.put(&self.user_path(user, &format!("following/{}", self.user(other))), body).await;
        if self.model.blocks.contains(&(user, other)) || self.model.blocks.contains(&(other, user)) {
            return drop(reply.problem(403, "blocked"));
        }
        let options = self.model.follow((user, other), secret, special);
        let (body, follows) = (reply.ok(), self.model.follows.contains_key(&(user, other)));
        assert_eq!((&body["secret"], &body["special"]), (&json!(options.0), &json!(options.1)));
        assert_eq!((&body["following"], &body["requested"]), (&json!(follows), &json!(!follows)));
    }
}
