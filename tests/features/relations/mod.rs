//! Follows, blocks, lists, counts and look-ups, over HTTP, as the contract has them.

mod looks;
mod routes;
mod rules;
mod secrecy;
mod versions;
