//! The unread summary: what one poll returns, queries of many users, and what a number is made of.

mod chat_kept;
mod chat_list;
mod chat_rules;
mod explain;
mod poll;
mod query;
