//! Follows, blocks, lists, counts and look-ups, over HTTP, as the contract has them.

mod familiar;
mod hidden_lists;
mod looks;
mod requests;
mod routes;
mod rules;
mod secrecy;
mod versions;
