//! What Redis tells over the connection that polls read over.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_redis::redis::{PushInfo, PushKind, Value};

use super::copies::Copies;
use crate::base::ids::UserId;

/// What is done with what Redis tells, before any later reply is handed out.
pub(super) fn hear(
    copies: Arc<Copies>,
    closed: Arc<AtomicBool>,
    (before_id, after_id): (String, &'static str),
) -> impl Fn(PushInfo) -> Result<(), Infallible> + Send + Sync + 'static {
    let user = move |key: &Value| match key {
        Value::BulkString(key) => {
            let id = std::str::from_utf8(key).ok()?.strip_prefix(&before_id)?.strip_suffix(after_id)?;
            id.parse::<UserId>().ok()
        }
        _ => None,
    };
    move |push| {
        match (push.kind, push.data.as_slice()) {
            (PushKind::Invalidate, [Value::Array(keys)]) => {
                for key in keys {
                    match user(key) {
                        Some(user) => copies.remove(user),
                        None => copies.clear(),
                    }
                }
            }
            // All keys went at once.
            (PushKind::Invalidate, _) => copies.clear(),
            (PushKind::Disconnection, _) => closed.store(true, Ordering::Release),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Entry;
    use crate::cache::redis::copies::Life;

    const LIFE: Life = Life { soon: 5, end: 10 };

    fn user(id: i64) -> UserId {
        UserId::try_from(id).unwrap()
    }

    #[test]
    fn word_of_a_change_takes_copies_away() {
        let (copies, closed) = (Arc::new(Copies::new(1 << 20)), Arc::new(AtomicBool::new(false)));
        let fill = || (1..=3).for_each(|id| drop(copies.take(user(id), 0, copies.begin(user(id), 1), Entry::default(), LIFE)));
        let left = || (1..=3).filter(|id| copies.get(user(*id), 0, 1, 9).is_some()).collect::<Vec<_>>();
        let hear = hear(Arc::clone(&copies), Arc::clone(&closed), ("hm:{u:".to_owned(), "}"));
        let key = |key: &str| Value::BulkString(key.into());
        let invalidate = |data| PushInfo { kind: PushKind::Invalidate, data: vec![data] };
        fill();
        assert_eq!(left(), [1, 2, 3]);
        hear(invalidate(Value::Array(vec![key("hm:{u:1}"), key("hm:{u:3}")]))).unwrap();
        assert_eq!(left(), [2]);
        hear(PushInfo { kind: PushKind::Message, data: vec![key("hm:{u:2}")] }).unwrap();
        assert_eq!(left(), [2], "that is no word of a change");
        hear(invalidate(Value::Nil)).unwrap();
        assert_eq!(left(), [0; 0], "all were flushed");
        fill();
        hear(invalidate(Value::Array(vec![key("other"), key("hm:{u:1}")]))).unwrap();
        assert_eq!(left(), [0; 0], "nobody knows what that is about");
        assert!(!closed.load(Ordering::Acquire));
        hear(PushInfo { kind: PushKind::Disconnection, data: Vec::new() }).unwrap();
        assert!(closed.load(Ordering::Acquire));
    }
}
