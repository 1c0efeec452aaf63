-- Whom a user mutes. Nobody else sees any of it.
create table mutes (
    user_id bigint not null,
    target_id bigint not null,
    since bigint not null,
    -- When it ends; 0: never. One that has ended counts as none, until a sweep removes it.
    until bigint not null,
    primary key (user_id, target_id)
);
-- The list. The condition always holds: a look-up of two users does not name it, so it is left to the key above, where the target stands second.
create index mutes_since on mutes (user_id, since, target_id) where since >= 0;
-- Those of a user that end.
create index mutes_timed on mutes (user_id, target_id) where until > 0;
-- Those that have ended.
create index mutes_until on mutes (until, user_id, target_id) where until > 0;
