//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

pub(super) const READ_NOTIFICATION: &str = "with r as materialized (
        select count(*) as readers from notification_receivers r where r.notification_id = $1 and r.read_at > 0
    )
    select n.type, n.content, n.created_at, n.recipients, n.withdrawn, (select r.readers from r)
    from notifications n
    where n.notification_id = $1";

macro_rules! list {
    ($of:literal) => {
        concat!(
            "with r as materialized (
        select r.notification_id, r.seq, r.type, r.read_at
        from notification_receivers r
        where r.user_id = $1 and r.seq < $2 and r.gone = 0 and ",
            $of,
            "
        order by r.seq desc
        limit $3
    )
    select r.notification_id, r.seq, r.type, n.content, n.created_at, r.read_at
    from r
    join notifications n on n.notification_id = r.notification_id
    order by r.seq desc"
        )
    };
}

pub(super) const LIST: &str = list!("r.read_at >= $5 and ($4 = '' or r.type = $4)");
pub(super) const LIST_UNREAD: &str = list!("r.read_at = 0");
pub(super) const LIST_UNREAD_OF_TYPE: &str = list!("r.read_at = 0 and r.type = $4");
