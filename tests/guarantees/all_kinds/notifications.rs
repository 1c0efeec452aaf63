//! The steps of notifications: sent alone or grouped, read, seen, edited and withdrawn.

use std::collections::BTreeSet;

use serde_json::json;

use super::model::{GROUP_KEYS, Notification, TYPES};
use super::run::{Run, part};
use super::steps::{Step, What};
use crate::support::ShownEntry;

impl Run<'_> {
    pub async fn notifications(&mut self, step: &Step) {
        if step.what == What::SendNotification {
            return self.send_notification(step).await;
        }
        let which = step.which % self.model.notifications.len().max(1);
        let Some(notification) = self.model.notifications.get(which) else { return };
        let id = notification.id.clone();
        match step.what {
            What::ReadNotification | What::UnreadNotification => self.mark_notification(step, &id).await,
            What::ReadNotifications => self.read_notifications(step).await,
            What::SeeNotifications => self.see_notifications(step).await,
            What::EditNotification => self.edit_notification(step, which, &id).await,
            What::DeleteNotification => {
                let (user, _) = self.own(step);
                let reply = self.delete(&self.user_path(user, &format!("notifications/{id}"))).await;
                assert_eq!(reply.status, if self.model.lists[user].entry(&id).is_some() { 200 } else { 404 });
                self.model.lists[user].delete(&id);
                if reply.status == 200 {
                    self.note(user, &reply.body);
                }
            }
            _ => {
                assert_eq!(self.delete(&format!("/v1/notifications/{id}")).await.status, 204);
                self.model.notifications[which].withdrawn = true;
                self.model.lists.iter_mut().for_each(|list| list.withdraw(&id));
            }
        }
    }

    /// Most are grouped, so that they meet.
    async fn send_notification(&mut self, step: &Step) {
        let (kind, mask) = (TYPES[step.which % 2], 1 + step.which % 15);
        let to: BTreeSet<usize> = (0..4).filter(|user| mask >> user & 1 == 1).collect();
        let recipients: Vec<_> = to.iter().map(|user| self.user(*user)).collect();
        let group_key = (!step.which.is_multiple_of(4)).then(|| GROUP_KEYS[step.which / 8 % 2]);
        let actor = (!step.which.is_multiple_of(5)).then(|| self.user(step.user));
        let title = format!("t{}", step.which);
        let mut body = json!({"type": kind, "title": title, "content": "c", "recipients": recipients});
        if let Some(key) = group_key {
            body["group_key"] = json!(key);
        }
        if let Some(actor) = actor {
            body["actor_id"] = json!(actor);
        }
        let reply = self.keyed("/v1/notifications", body).await;
        assert_eq!((reply.status.as_u16(), reply.body["recipient_count"].as_u64()), (201, u64::try_from(to.len()).ok()), "{}", reply.text);
        let id = reply.body["notification_id"].as_str().unwrap().to_owned();
        for user in &to {
            // It never comes into the list of who blocks or mutes the actor by now.
            if actor.is_none() || !self.model.is_silenced(*user, step.user) {
                self.model.lists[*user].send(&id, kind, group_key, actor);
            }
        }
        self.model.notifications.push(Notification { id, to, title, withdrawn: false });
    }

    async fn mark_notification(&mut self, step: &Step, id: &str) {
        let (user, _) = self.own(step);
        let is_read = step.what == What::ReadNotification;
        let verb = if is_read { "read" } else { "unread" };
        let reply = self.post(&self.user_path(user, &format!("notifications/{id}/{verb}")), json!({})).await;
        let Some(entry) = self.model.lists[user].entry(id) else { return drop(reply.problem(404, "not_found")) };
        if entry.gone {
            return drop(reply.problem(410, "gone"));
        }
        self.model.lists[user].mark(id, is_read);
        let body = reply.ok();
        self.note(user, &body);
        let found = self.fleet.client(self.node).get(&format!("/v1/notifications/{id}")).await;
        if self.model.notifications.iter().any(|sent| sent.id == id && sent.withdrawn) {
            return drop(found.problem(410, "gone"));
        }
        assert_eq!(found.ok()["read_count"], self.model.readers(id));
    }

    /// Of a type, or all, up to a place in the user's list.
    async fn read_notifications(&mut self, step: &Step) {
        let (user, _) = self.own(step);
        let kind = Some(TYPES[step.which % 2]).filter(|_| !step.which.is_multiple_of(3));
        let mut body = kind.map_or(json!({"all": true}), |kind| json!({"type": kind}));
        let up_to = step.percent.map(|percent| part(self.model.lists[user].last, Some(percent)));
        if let Some(up_to) = up_to {
            body["up_to_seq"] = json!(up_to);
        }
        let changed = self.model.lists[user].read(up_to, |entry| kind.is_none_or(|kind| kind == entry.kind));
        let reply = self.post(&self.user_path(user, "notifications/read"), body).await.ok();
        self.note(user, &reply);
        assert!(self.repeated || reply["changed"] == changed, "{reply}");
        assert_eq!(reply["notifications"], self.model.summary(user, false)["notifications"]);
    }

    async fn see_notifications(&mut self, step: &Step) {
        let (user, _) = self.own(step);
        let up_to = step.percent.map(|percent| part(self.model.lists[user].last, Some(percent)));
        let body = up_to.map_or(json!({}), |up_to| json!({"up_to_seq": up_to}));
        let reply = self.post(&self.user_path(user, "notifications/seen"), body).await.ok();
        self.note(user, &reply);
        self.model.lists[user].see(up_to);
        assert_eq!(reply["unseen"], self.model.lists[user].numbers().values().map(|(_, unseen)| unseen).sum::<usize>());
    }

    async fn edit_notification(&mut self, step: &Step, which: usize, id: &str) {
        let title = format!("e{}", step.which % 3);
        let reply = self.put(&format!("/v1/notifications/{id}"), json!({"title": title})).await;
        if self.model.notifications[which].withdrawn {
            return drop(reply.problem(410, "gone"));
        }
        let body = reply.ok();
        assert_eq!((&body["title"], &body["read_count"]), (&json!(title), &json!(self.model.readers(id))));
        assert_eq!(body["recipient_count"], self.model.notifications[which].to.len());
        self.model.notifications[which].title = title;
    }

    /// The user's list is that of the model, also for who has the tag of an earlier one.
    pub async fn compare_notifications(&mut self, user: usize, after: &str) {
        let path = self.user_path(user, "notifications?limit=100");
        let mut last = self.tags.get(&path).cloned();
        for at in 0..self.fleet.len() {
            let client = self.fleet.client(self.node + at);
            let reply = client.get(&path).await;
            let tag = reply.header("etag").to_owned();
            let page = reply.ok();
            let shown: Vec<_> = page["items"].as_array().unwrap().iter().map(ShownEntry::of).collect();
            assert_eq!(shown, self.model.lists[user].shown("all"), "the notifications of {user} after {after}");
            for item in page["items"].as_array().unwrap() {
                let newest = self.model.notifications.iter().find(|sent| item["notification_id"] == sent.id.as_str()).unwrap();
                assert_eq!(item["title"], newest.title, "user {user} after {after}");
            }
            if let Some(last) = last.replace(tag.clone()) {
                let since = client.get_if_changed(&path, &last).await;
                assert!(since.status == 304 || since.body == page, "user {user} after {after}: {}", since.text);
                assert!(since.status != 304 || last == tag, "user {user} after {after}");
            }
        }
        self.tags.extend(last.map(|tag| (path, tag)));
    }
}
