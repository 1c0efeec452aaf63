-- Which batch of which lane wrote each post: so that the token of a feed can say what was there (docs/adr/0016). 0 in
-- rows from before, which count as there. The index finds a creator's post by its position.
alter table posts add column lane_id bigint not null default 0;
alter table posts add column batch bigint not null default 0;
create index posts_seq on posts (user_id, seq);
