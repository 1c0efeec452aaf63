//! The rule against a naive model: a view as a list of items, a user's number as a count of it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::engine::lanes::Command as _;
use crate::engine::marks::MAX_RETRACTED_RUNS;

const USERS: usize = 3;

#[derive(Debug, Clone)]
enum Act {
    Put { item: usize, actor: Option<usize> },
    Delete { item: usize },
    Access { user: usize, up_to: Option<i64> },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..25_usize, prop::option::of(0..USERS)).prop_map(|(item, actor)| Act::Put { item, actor }),
        2 => (0..25_usize).prop_map(|item| Act::Delete { item }),
        2 => (0..USERS, prop::option::of(0..30_i64)).prop_map(|(user, up_to)| Act::Access { user, up_to }),
    ];
    prop::collection::vec(act, 1..80)
}

#[derive(Debug, Clone, PartialEq)]
struct Thing {
    item: usize,
    actor: Option<usize>,
    gone: bool,
}

#[derive(Debug, Default)]
struct Model {
    things: Vec<Thing>,
    /// How far each user has read; None: never visited.
    marks: [Option<usize>; USERS],
}

impl Model {
    fn unread(&self, user: usize) -> usize {
        let Some(mark) = self.marks[user] else { return 0 };
        self.things.iter().skip(mark).filter(|thing| !thing.gone && thing.actor != Some(user)).count()
    }

    fn find(&self, item: usize) -> Option<usize> {
        self.things.iter().position(|thing| thing.item == item)
    }
}

fn user(at: usize) -> UserId {
    UserId::try_from(i64::try_from(at).unwrap() + 1).unwrap()
}

fn home() -> ViewKey {
    "home:a:1".parse().unwrap()
}

fn item(at: usize) -> ClientId {
    format!("item-{at}").parse().unwrap()
}

/// One command, settled or undone as a lane does: its status and body.
fn run(rows: &mut Rows, command: &ViewCommand, now: i64) -> (u16, Value) {
    match command.apply(rows, UnixMs(now)) {
        Ok(answer) => {
            rows.settle();
            (answer.status(), serde_json::from_str(&answer.json().unwrap()).unwrap_or(Value::Null))
        }
        Err(problem) => {
            rows.undo();
            (problem.code.status().as_u16(), Value::Null)
        }
    }
}

fn counted(rows: &Rows, at: usize) -> usize {
    let mark = rows.mark_at(&home().mark(user(at)));
    if !has_visited(&mark) {
        return 0;
    }
    usize::try_from(unread(&rows.head(&home().head()), &mark).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn numbers_are_counts_of_the_items(acts in acts()) {
        let (mut rows, mut model) = (Rows::new(crate::app::ROW_SETS), Model::default());
        for (now, act) in (1..).zip(&acts) {
            match act {
                Act::Put { item: at, actor } => {
                    let (status, body) = run(&mut rows, &ViewCommand::Put(NewItem { view: home(), item: item(*at), actor: actor.map(user) }), now);
                    let known = model.find(*at).map(|at| model.things[at].gone);
                    prop_assert_eq!(status, match known { None => 201, Some(false) => 200, Some(true) => 410 });
                    if known.is_none() {
                        model.things.push(Thing { item: *at, actor: *actor, gone: false });
                    }
                    prop_assert!(status == 410 || body["head"] == model.things.len());
                }
                Act::Delete { item: at } => {
                    let (status, _) = run(&mut rows, &ViewCommand::Delete { view: home(), item: item(*at) }, now);
                    let found = model.find(*at);
                    prop_assert_eq!(status, if found.is_some() { 204 } else { 404 });
                    if let Some(found) = found {
                        model.things[found].gone = true;
                    }
                }
                Act::Access { user: at, up_to } => {
                    let before = rows.revision(user(*at));
                    let (_, body) = run(&mut rows, &ViewCommand::Access { user: user(*at), view: home(), up_to: *up_to, keep: 100 }, now);
                    let head = model.things.len();
                    let to = up_to.map_or(head, |up_to| head.min(usize::try_from(up_to).unwrap()));
                    model.marks[*at] = Some(model.marks[*at].map_or(head, |mark| mark.max(to)));
                    prop_assert_eq!((&body["unread"], &body["head"]), (&model.unread(*at).into(), &head.into()));
                    prop_assert_eq!((&body["at"], &body["revision"]), (&now.into(), &(before + 1).into()));
                }
            }
            for at in 0..USERS {
                prop_assert_eq!(counted(&rows, at), model.unread(at));
            }
        }
    }

    /// What a mark has no room for is exactly what lies up to where it says that the rows must be
    /// asked.
    #[test]
    fn what_a_mark_leaves_out_lies_below_what_it_says(reads in prop::collection::vec((0..2600_i64, 1..200_i64), 0..12)) {
        let (mut mark, mut own, mut head) = (Mark::default(), BTreeSet::new(), 0);
        let mut reads = reads.into_iter();
        while head < 2600 {
            for _ in 0..220 {
                head += 2;
                own.insert(head);
                prop_assert!(mark.pass_over(head));
            }
            if let Some((up_to, _)) = reads.next() {
                mark.read_shared(up_to.min(head));
            }
            let from = mark.untold().max(mark.mark());
            let told: Vec<_> = (from + 1..=head).filter(|at| mark.retracted().contains(*at)).collect();
            prop_assert_eq!(told, own.range(from + 1..).copied().collect::<Vec<_>>());
            prop_assert!(mark.retracted().runs() <= MAX_RETRACTED_RUNS);
            prop_assert!(mark.untold() == 0 || mark.retracted().runs() == MAX_RETRACTED_RUNS);
        }
    }
}

#[test]
fn a_view_is_named_by_both_its_parts() {
    assert_eq!((&*home().stream, home().view.as_str(), home().id.as_str()), ("home:a:1", "home", "a:1"));
    for bad in ["", "home", "home:", ":1", "Home:1", "home:a b", "ho me:1"] {
        assert!(bad.parse::<ViewKey>().is_err(), "{bad}");
    }
}
