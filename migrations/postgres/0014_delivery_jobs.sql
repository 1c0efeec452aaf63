-- What fan-out has to deliver is called a job, in the tables as in the code.

alter table group_tasks rename to delivery_jobs;
alter table delivery_jobs rename column task to job;
alter index group_tasks_pkey rename to delivery_jobs_pkey;

alter table group_deliveries rename column round_task to up_to_job;
alter table group_deliveries rename column round_ordinal to up_to_ordinal;

alter table chat_groups rename column tasks to jobs;
