//! The unread summary: what one poll returns, queries of many users, and what a number is made of.

mod explain;
mod poll;
mod query;
