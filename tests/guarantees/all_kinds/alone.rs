//! Steps of what is a user's own: counters, notifications; and views, which are read by visiting.

use std::collections::BTreeSet;

use headmark::base::clock::UnixMs;
use serde_json::{Value, json};

use super::model::{BADGES, TYPES, Thing, delete, read, unread};
use super::run::{Run, part, up_to};
use super::steps::{Step, What};
use crate::support::Reply;

impl Run<'_> {
    /// What a write to a counter must answer.
    fn counter(&mut self, user: usize, badge: &'static str, reply: Reply) {
        let mut body = reply.ok();
        self.note(user, &body);
        body.as_object_mut().unwrap().remove("revision");
        let things = self.model.counters.entry((user, badge)).or_default();
        assert_eq!(body, json!({"badge": badge, "unread": unread(things, user), "head": things.len()}));
    }

    fn raise(&mut self, user: usize, badge: &'static str, by: usize) {
        self.model.counters.entry((user, badge)).or_default().extend(vec![Thing::unread_by([user]); by]);
    }

    pub async fn counters(&mut self, step: &Step) {
        let (user, badge) = (step.user, BADGES[step.which % 2]);
        let head = self.model.counters.get(&(user, badge)).map_or(0, Vec::len);
        let path = |this: &Self, user: usize, verb: &str| this.user_path(user, &format!("badges/{badge}/{verb}"));
        match step.what {
            What::Increment => {
                let by = 1 + step.which / 2 % 5;
                let reply = self.keyed(&path(self, user, "increment"), json!({"by": by})).await;
                self.raise(user, badge, by);
                self.counter(user, badge, reply);
            }
            What::IncrementMany => {
                let items = [(user, BADGES[0], 1), (step.other, BADGES[1], 2), (user, BADGES[0], 3)];
                let item = |(user, badge, by): (usize, &str, usize)| json!({"user_id": self.user(user), "badge": badge, "by": by});
                let body = json!({"items": items.map(item)});
                self.keyed("/v1/badges/increment", body).await.ok();
                items.into_iter().for_each(|(user, badge, by)| self.raise(user, badge, by));
            }
            What::RetractAt => {
                let at = part(head, step.percent).max(1);
                let reply = self.keyed(&path(self, user, "retract"), json!({"at": at})).await;
                if at > head {
                    return drop(reply.problem(404, "not_found"));
                }
                self.model.counters.get_mut(&(user, badge)).unwrap()[at - 1].unread_by.clear();
                self.counter(user, badge, reply);
            }
            What::RetractNewest => {
                let by = 1 + step.which / 2 % 4;
                let reply = self.keyed(&path(self, user, "retract"), json!({"by": by})).await;
                let things = self.model.counters.entry((user, badge)).or_default().iter_mut().rev();
                things.filter(|thing| !thing.gone && thing.unread_by.contains(&user)).take(by).for_each(|thing| thing.unread_by.clear());
                self.counter(user, badge, reply);
            }
            What::DeleteBadge => {
                let body = self.delete(&self.user_path(user, &format!("badges/{badge}"))).await.ok();
                self.note(user, &body);
                delete(self.model.counters.entry((user, badge)).or_default());
            }
            What::Reset => {
                let (user, _) = self.own(step);
                let head = self.model.counters.get(&(user, badge)).map_or(0, Vec::len);
                let reply = self.post(&path(self, user, "reset"), up_to(head, step.percent)).await;
                read(self.model.counters.entry((user, badge)).or_default(), user, part(head, step.percent));
                self.counter(user, badge, reply);
            }
            _ => {
                let (user, _) = self.own(step);
                let summary = self.post(&self.user_path(user, "badges/reset"), json!({})).await.ok();
                self.note(user, &summary);
                self.model.counters.values_mut().for_each(|things| read(things, user, usize::MAX));
                assert_eq!(summary["counters"], self.model.summary(user, false)["counters"]);
            }
        }
    }

    /// What the total leaves out changes; or whether others see what the user has read, which no
    /// summary shows.
    pub async fn settings(&mut self, step: &Step) {
        let (user, _) = self.own(step);
        let path = self.user_path(user, "settings");
        if step.what == What::ShareReceipts {
            let shares = step.which.is_multiple_of(2);
            let body = self.patch(&path, json!({"share_receipts": shares})).await.ok();
            self.note(user, &body);
            self.model.share_receipts(user, shares);
            return assert_eq!(body["share_receipts"], shares);
        }
        let channel = self.model.channels.keys().nth(step.which % 3).map(|channel| format!("broadcasts.{channel}"));
        let parts = [format!("counters.{}", BADGES[step.which % 2]), format!("notifications.{}", TYPES[step.which / 2 % 2])];
        let parts: BTreeSet<_> = parts.into_iter().chain(channel).take(step.which / 4 % 4).collect();
        let body = self.patch(&path, json!({"not_in_total": parts})).await.ok();
        self.note(user, &body);
        assert_eq!(body["not_in_total"], json!(parts));
        self.model.left_out.insert(user, parts);
    }

    pub async fn views(&mut self, step: &Step) {
        let name = self.view(step.which);
        let path = name.replace(':', "/");
        let item = format!("i{}", step.which / 2 % 12);
        let known = self.model.views[&name].items.iter().position(|thing| thing.id == item);
        match step.what {
            What::PutItem => {
                let actor = step.percent.map(|_| step.user);
                let body = actor.map_or(json!({}), |user| json!({"actor_id": self.user(user)}));
                let reply = self.put(&format!("/v1/views/{path}/items/{item}"), body).await;
                let view = self.model.views.get_mut(&name).unwrap();
                match known {
                    Some(known) => assert_eq!(reply.status, if view.items[known].gone { 410 } else { 200 }),
                    None => {
                        let visitors = view.visits.keys().copied().filter(|user| Some(*user) != actor);
                        view.items.push(Thing { id: item, ..Thing::unread_by(visitors) });
                        let head = view.items.len();
                        assert_eq!(self.made(reply)["head"], head);
                    }
                }
            }
            What::DeleteItem => {
                let reply = self.delete(&format!("/v1/views/{path}/items/{item}")).await;
                assert_eq!(reply.status, if known.is_some() { 204 } else { 404 });
                let items = &mut self.model.views.get_mut(&name).unwrap().items;
                known.into_iter().for_each(|known| items[known].gone = true);
            }
            _ => {
                let (user, _) = self.own(step);
                let head = self.model.views[&name].items.len();
                let body = self.post(&self.user_path(user, &format!("views/{path}/access")), up_to(head, step.percent)).await.ok();
                self.note(user, &body);
                let at = body["last_access_at"].as_str().unwrap().to_owned();
                assert!(self.fleet.now().is_none_or(|now| UnixMs(now).to_string() == at), "{body}");
                let view = self.model.views.get_mut(&name).unwrap();
                if view.visits.insert(user, at).is_some() {
                    read(&mut view.items, user, part(head, step.percent));
                }
                assert_eq!((&body["unread"], &body["head"]), (&Value::from(unread(&view.items, user)), &json!(head)));
            }
        }
    }
}
