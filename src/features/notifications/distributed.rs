//! What a distributed database takes in place of statements that join rows of several owners: the
//! rows of one are read first, and those of the others by what they say. See `src/db/distributed/`.

pub(super) const READ_NOTIFICATION: &str = "with alone as materialized (
        select count(*) as readers from notification_receivers r where r.notification_id = $1 and r.read_at > 0 and r.group_key = ''
    ), grouped as materialized (
        select count(*) as readers
        from grouped_notifications g
        join notification_receivers r on r.notification_id = g.entry_id and r.user_id = g.user_id and r.read_at > 0
        where g.notification_id = $1
    )
    select n.type, n.content, n.created_at, n.recipients, n.withdrawn, (select a.readers from alone a) + (select g.readers from grouped g)
    from notifications n
    where n.notification_id = $1";
