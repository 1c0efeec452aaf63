//! What the export of a user has of the user's own row.

use serde_json::{Value, json};

use crate::base::clock::{DAY_MS, UnixMs};
use crate::db::{Cell, Statement, Type};
use crate::engine::marks::{Kind, ListVisibility, PackedMark, UserMarks, UserSettings};
use crate::features::export_part::{ExportPart, Shown, field};

static USER: Statement = Statement::one(
    "select u.user_id, u.revision, u.settings, u.enrolled, u.seen_day, u.marks, u.marks, u.marks, u.marks, u.following,
        u.chat_groups, u.inbox_seq, u.direct_unread, u.direct_chats, u.notification_seq, u.notification_seen
    from users u
    where u.user_id = $1 and (u.revision > 0 or u.following > 0 or u.chat_groups > 0)",
    &[("user_id", Type::Int)],
);

/// Of the user's own row.
pub static PARTS: &[ExportPart] = &[ExportPart {
    kind: "user",
    about: "The user's own row",
    tables: &["users"],
    owners: None,
    statement: &USER,
    fields: &[
        field("user_id", Shown::Id, "The user"),
        field("revision", Shown::Number, "How often the user's own rows have changed"),
        field("settings", Shown::With(settings), "The settings, as the route of settings shows them, and `push`"),
        field("enrolled_at", Shown::With(enrolled), "The position of the broadcasts when the user was first seen"),
        field("last_seen_on", Shown::With(day), "The last day with a request of the user"),
        field(
            "counters",
            Shown::With(counters),
            "An array of `{\"badge\", \"head\", \"read_up_to\", \"unread\", \"retracted\"}`, the last as in `7 9-12`",
        ),
        field(
            "deleted_counters",
            Shown::With(deleted_counters),
            "An array of `{\"badge\", \"head\"}`: where deleted badges go on. Without `badge`: the highest of further ones",
        ),
        field("broadcasts", Shown::With(broadcasts), "An array of `{\"channel\", \"read_up_to\"}`"),
        field("dots", Shown::With(dots), "An array of `{\"dot\", \"cleared_up_to\"}`"),
        field("following", Shown::Number, "The number of follows"),
        field("groups", Shown::Number, "The number of groups that the user is in"),
        field("inbox_head", Shown::Number, "The seq of the last inbox row"),
        field("direct_unread", Shown::Number, "The number of unread direct messages, without silent chats"),
        field("direct_chats", Shown::Number, "The number of chats with such messages"),
        field("notifications_head", Shown::Number, "The last `seq` in the list of notifications"),
        field("notifications_seen", Shown::Number, "The `seq` up to which the user has seen that list"),
    ],
    key: &[],
}];

fn settings(cell: &Cell) -> Option<Value> {
    let settings = UserSettings::from_row(cell.text());
    let lists = match settings.lists() {
        ListVisibility::All => "all",
        ListVisibility::Followers => "followers",
        ListVisibility::Own => "self",
    };
    Some(json!({
        "not_in_total": settings.not_in_total().collect::<Vec<_>>(),
        "share_receipts": settings.shares_receipts(),
        "approve_follows": settings.approves_follows(),
        "lists": lists,
        "push": settings.has_push(),
    }))
}

fn enrolled(cell: &Cell) -> Option<Value> {
    Some(cell.int()).filter(|position| *position >= 0).map(Value::from)
}

fn day(cell: &Cell) -> Option<Value> {
    let day = Some(cell.int()).filter(|day| *day > 0)?;
    UnixMs(day.saturating_mul(DAY_MS)).to_string().get(..10).map(Value::from)
}

fn marks(cell: &Cell, kind: Kind, show: impl Fn(PackedMark<'_>) -> Value) -> Option<Value> {
    Some(UserMarks::from_row(cell.text()).of_kind(kind).map(show).collect::<Vec<_>>()).filter(|marks| !marks.is_empty()).map(Value::from)
}

fn counters(cell: &Cell) -> Option<Value> {
    marks(cell, Kind::Counter, |mark| {
        let mut counter = json!({"badge": mark.name, "head": mark.head, "read_up_to": mark.mark(), "unread": mark.unread()});
        if let Some(fields) = counter.as_object_mut().filter(|_| !mark.retracted.is_empty()) {
            fields.insert("retracted".to_owned(), mark.retracted.into());
        }
        counter
    })
}

fn deleted_counters(cell: &Cell) -> Option<Value> {
    let marks = UserMarks::from_row(cell.text());
    let show = |(badge, head): (&str, i64)| if badge.is_empty() { json!({"head": head}) } else { json!({"badge": badge, "head": head}) };
    Some(marks.deleted_counters().map(show).collect::<Vec<_>>()).filter(|heads| !heads.is_empty()).map(Value::from)
}

fn broadcasts(cell: &Cell) -> Option<Value> {
    marks(cell, Kind::Broadcast, |mark| json!({"channel": mark.name, "read_up_to": mark.mark()}))
}

fn dots(cell: &Cell) -> Option<Value> {
    marks(cell, Kind::Dot, |mark| json!({"dot": mark.name, "cleared_up_to": mark.mark()}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::marks::SORTS_OF_MARKS;

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    /// The fields that show something of these marks.
    fn shown(marks: &str) -> Vec<(&'static str, Value)> {
        let of_marks = PARTS[0].fields.iter().filter(|field| field.name != "settings");
        let show = |shown: Shown| if let Shown::With(show) = shown { show(&text(marks)) } else { None };
        let named = of_marks.filter_map(|field| Some((field.name, show(field.shown)?)));
        named.filter(|(_, value)| value.to_string().contains("a-name")).collect()
    }

    #[test]
    fn each_sort_of_marks_is_in_a_field() {
        for sort in SORTS_OF_MARKS {
            assert_eq!(shown(&format!("{sort}a-name 7")).len(), 1, "{sort}");
        }
    }

    #[test]
    fn counters_say_what_was_retracted_and_deleted() {
        let all = "b:a-name 5;c:a-name 9 4 7;c:like 120 3 118-119;g: 57;g:a-name 8";
        let present = json!([
            {"badge": "a-name", "head": 9, "read_up_to": 5, "unread": 3, "retracted": "7"},
            {"badge": "like", "head": 120, "read_up_to": 117, "unread": 1, "retracted": "118-119"},
        ]);
        let deleted = json!([{"head": 57}, {"badge": "a-name", "head": 8}]);
        let broadcasts = json!([{"channel": "a-name", "read_up_to": 5}]);
        assert_eq!(shown(all), [("counters", present), ("deleted_counters", deleted), ("broadcasts", broadcasts)]);
        let read = json!([{"badge": "like", "head": 4, "read_up_to": 4, "unread": 0}]);
        assert_eq!([counters(&text("c:like 4")), deleted_counters(&text("c:like 4"))], [Some(read), None]);
    }
}
