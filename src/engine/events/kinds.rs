//! The types of events, and sets of them.

use std::fmt;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::event::Event;

/// The type of an event. Its number is a bit in rows of `events`, so it stays for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    Relation = 0,
    Broadcast = 1,
    Post = 2,
    Member = 3,
    GroupMessage = 4,
    DirectMessage = 5,
    Notification = 6,
    Unread = 7,
    UserErased = 8,
}

/// How many types there are.
const TYPES: usize = 9;

impl EventType {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; TYPES] = [
        Self::Relation,
        Self::Broadcast,
        Self::Post,
        Self::Member,
        Self::GroupMessage,
        Self::DirectMessage,
        Self::Notification,
        Self::Unread,
        Self::UserErased,
    ];

    /// As JSON has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Relation => "relation",
            Self::Broadcast => "broadcast",
            Self::Post => "post",
            Self::Member => "member",
            Self::GroupMessage => "group_message",
            Self::DirectMessage => "direct_message",
            Self::Notification => "notification",
            Self::Unread => "unread",
            Self::UserErased => "user_erased",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.name() == name)
    }
}

impl Event {
    /// Its type.
    #[must_use]
    pub fn kind(&self) -> EventType {
        match self {
            Self::Relation(_) => EventType::Relation,
            Self::Broadcast(_) => EventType::Broadcast,
            Self::Post(_) => EventType::Post,
            Self::Member(_) => EventType::Member,
            Self::GroupMessage(_) => EventType::GroupMessage,
            Self::DirectMessage(_) => EventType::DirectMessage,
            Self::Notification(_) => EventType::Notification,
            Self::Unread(_) => EventType::Unread,
            Self::UserErased(_) => EventType::UserErased,
        }
    }
}

/// A set of types, a bit for each. A row of a version that kept no set has all bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventTypes(i64);

impl EventTypes {
    /// Every type, also those that this version does not know.
    pub const ALL: Self = Self(-1);

    /// Of one type.
    #[must_use]
    pub const fn of(kind: EventType) -> Self {
        Self(1 << (kind as u32))
    }

    /// With another type.
    #[must_use]
    pub const fn with(self, kind: EventType) -> Self {
        Self(self.0 | Self::of(kind).0)
    }

    /// As a row has it.
    #[must_use]
    pub fn bits(self) -> i64 {
        self.0
    }

    /// As a row has it.
    #[must_use]
    pub(super) fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    /// Whether a type is among them.
    #[must_use]
    pub fn has(self, kind: EventType) -> bool {
        self.0 & Self::of(kind).0 != 0
    }

    /// Whether an event of this name is among them. One of a newer version is where all are.
    #[must_use]
    pub fn has_name(self, name: &str) -> bool {
        self == Self::ALL || EventType::of_name(name).is_some_and(|kind| self.has(kind))
    }

    /// What a client asks for: names, comma-separated.
    ///
    /// # Errors
    /// What is wrong, in words that follow the name of the parameter.
    pub fn parse(names: &str) -> Result<Self, String> {
        let types: Option<Self> = names.split(',').map(EventType::of_name).sum();
        types.ok_or_else(|| format!("must be one or several of {}", EventType::ALL.map(EventType::name).join(", ")))
    }
}

impl std::iter::Sum<EventType> for EventTypes {
    fn sum<I: Iterator<Item = EventType>>(kinds: I) -> Self {
        kinds.fold(Self::default(), Self::with)
    }
}

impl fmt::Display for EventTypes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = EventType::ALL.into_iter().filter(|kind| self.has(*kind)).map(EventType::name).collect();
        formatter.write_str(&names.join(","))
    }
}

/// Types of events, comma-separated.
#[derive(Debug)]
pub struct EventTypeNames;

impl PartialSchema for EventTypeNames {
    fn schema() -> RefOr<Schema> {
        let name = format!("({})", EventType::ALL.map(EventType::name).join("|"));
        let text = ObjectBuilder::new().schema_type(Type::String).description(Some("Types of events, comma-separated."));
        text.pattern(Some(format!("^{name}(,{name})*$"))).examples(["unread,broadcast"]).into()
    }
}

impl ToSchema for EventTypeNames {}

/// How far events of each type are published: for those who wait for some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Published {
    /// The highest number.
    pub head: i64,
    /// The highest number up to which there may be an event of each type.
    of: [i64; TYPES],
}

impl Published {
    /// Whether there may be an event of these types after a number.
    #[must_use]
    pub fn has(&self, types: EventTypes, after: i64) -> bool {
        if types == EventTypes::ALL {
            return self.head > after;
        }
        EventType::ALL.iter().zip(self.of).any(|(kind, last)| types.has(*kind) && last > after)
    }

    /// Takes in up to where the database has given numbers, to events of any type. Returns whether
    /// that is news. They go back only where it was restored: then whoever waits for more would be
    /// told of numbers that are not there any more, again and again.
    pub(super) fn reach(&mut self, head: i64) -> bool {
        if head < self.head {
            *self = Self { head, of: [head; TYPES] };
            return true;
        }
        head > self.head && self.add(EventTypes::ALL, head)
    }

    /// Takes in that numbers up to `head` were given, of which events of these types have some.
    /// Returns whether that is news.
    pub(super) fn add(&mut self, types: EventTypes, head: i64) -> bool {
        let is_new = head > self.head;
        self.head = self.head.max(head);
        for (_, last) in EventType::ALL.iter().zip(&mut self.of).filter(|(kind, _)| types.has(**kind)) {
            *last = head.max(*last);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::event::{
        BroadcastEventOut, DirectMessageEventOut, GroupMessageEventOut, MemberEventOut, NotificationChange, NotificationEventOut,
        PostEventOut, RelationEventOut, UnreadEventOut, UserErasedEventOut,
    };
    use super::*;
    use crate::base::ids::{GroupId, Name, NotificationId, UserId};

    /// One of each type, in the order of their numbers.
    fn one_of_each() -> Vec<Event> {
        let (user, group) = (UserId::try_from(1).unwrap(), GroupId::try_from(9).unwrap());
        let name: Name = "notice".parse().unwrap();
        vec![
            Event::Relation(RelationEventOut {
                user_id: user,
                target_id: user,
                following: true,
                requested: false,
                secret: false,
                special: false,
                blocking: false,
            }),
            Event::Broadcast(BroadcastEventOut { channel: name.clone(), seq: 1, withdrawn: false, channel_deleted: false }),
            Event::Post(PostEventOut { user_id: user, post_id: "p".parse().unwrap(), deleted: false }),
            Event::Member(MemberEventOut { group_id: group, user_id: user, member: true }),
            Event::GroupMessage(GroupMessageEventOut { group_id: group, seq: 1, sender_id: Some(user), recalled: false }),
            Event::DirectMessage(DirectMessageEventOut { sender_id: user, receiver_id: user, seq: None, own_seq: 1, recalled: true }),
            Event::Notification(NotificationEventOut {
                notification_id: NotificationId::try_from(7).unwrap(),
                r#type: name,
                actor_id: None,
                recipient_count: 1,
                change: NotificationChange::Edited,
            }),
            Event::Unread(UnreadEventOut { user_id: user, revision: 1 }),
            Event::UserErased(UserErasedEventOut { user_id: user }),
        ]
    }

    #[test]
    fn names_are_those_of_json() {
        let all = one_of_each();
        assert_eq!(all.len(), TYPES);
        for (event, kind) in all.iter().zip(EventType::ALL) {
            assert_eq!(event.kind(), kind);
            assert_eq!(serde_json::to_value(event).unwrap()["type"], kind.name());
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_those_that_are_known() {
        for bad in ["", "relation,", "unread,user", "Relation", " unread"] {
            assert!(EventTypes::parse(bad).unwrap_err().contains("relation, broadcast, post"), "{bad}");
        }
        assert!(EventTypes::ALL.has_name("of_a_newer_version"));
        assert!(!EventTypes::parse("unread").unwrap().has_name("of_a_newer_version"));
    }

    proptest! {
        #[test]
        fn a_set_is_what_was_asked_for(kinds in prop::collection::vec(0..TYPES, 1..12)) {
            let names: Vec<_> = kinds.iter().map(|at| EventType::ALL[*at].name()).collect();
            let types = EventTypes::parse(&names.join(",")).unwrap();
            for (at, kind) in EventType::ALL.into_iter().enumerate() {
                prop_assert_eq!(types.has(kind), kinds.contains(&at));
                prop_assert_eq!(types.has_name(kind.name()), kinds.contains(&at));
            }
            prop_assert_eq!(EventTypes::parse(&types.to_string()), Ok(types));
        }

        /// Against a list of all that was published.
        #[test]
        fn who_waits_is_woken_by_what_it_asked_for(rows in prop::collection::vec((1..512_i64, 1..5_i64), 0..12), asked in 1..512_i64, after in 0..40_i64) {
            let (mut published, mut head, mut all) = (Published::default(), 0, Vec::new());
            for (bits, size) in rows {
                head += size;
                published.add(EventTypes::from_bits(bits), head);
                all.push((bits, head));
            }
            prop_assert_eq!(published.head, head);
            prop_assert_eq!(published.has(EventTypes::from_bits(asked), after), all.iter().any(|(bits, last)| bits & asked != 0 && *last > after));
            prop_assert_eq!(published.has(EventTypes::ALL, after), head > after);
        }
    }

    #[test]
    fn numbers_go_back_with_the_database() {
        let mut published = Published::default();
        let (post, relation) = (EventTypes::of(EventType::Post), EventTypes::of(EventType::Relation));
        assert!(published.add(post, 5) && !published.reach(5), "known already");
        assert!(published.has(post, 4) && !published.has(relation, 4));
        assert!(published.reach(9) && published.has(relation, 8), "another node may have given it to any type");
        assert!(published.reach(3), "the database was restored");
        for types in [EventTypes::ALL, post, relation] {
            assert!(published.has(types, 2) && !published.has(types, 3), "nobody is told of what is lost");
        }
        assert!(published.add(post, 4) && published.has(post, 3) && !published.has(relation, 3));
    }
}
