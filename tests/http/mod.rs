//! What every route shares: credentials, bodies, polling, problems, limits.

mod access;
mod edge;
mod fuzz;
mod idempotency;
mod polling;
mod pressure;
mod problems;
mod shorter_way;
mod tokens;
mod traces;
