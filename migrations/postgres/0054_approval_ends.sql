-- Users who approve follows no longer: their open requests are being accepted.
create table approval_ends (
    user_id bigint not null primary key,
    -- When they switched it off; later than the time before, so that it names one switch.
    since bigint not null
) with (fillfactor = 50);
