-- Whether services hear of every change of the numbers of the device's user. A device that has fetched nothing has the seq -1.

alter table devices add column push bigint not null default 0;
