//! The HTTP edge, between the sockets and the features: what every route shares.
//!
//! [`edge`] is the one middleware (with [`cors`] around it where origins are configured),
//! [`context`] what is known of the request being served, [`body`], [`path`] and [`params`] the
//! extractors. Each refuses with a [`Problem`](crate::base::error::Problem), so a handler sees
//! valid input only. To add an extractor, put it beside the one that reads the same part of the
//! request.

pub mod answer;
pub(crate) mod answering;
pub mod auth;
pub mod body;
pub mod caller;
mod canonical;
pub(crate) mod compress;
pub mod context;
pub mod cors;
pub mod edge;
pub(crate) mod held;
pub mod limit;
mod meter;
pub mod name_pages;
mod origin;
pub mod pages;
pub mod params;
pub mod path;
pub mod places;
pub mod polling;
pub mod problem;
pub mod sender;
pub mod served;
pub mod shares;
pub(crate) mod streams;
pub mod traces;
pub(crate) mod watch;

pub(crate) use meter::{HELD_SECONDS, REQUESTS, SECONDS};

/// Routes that are answered and left alone where other requests are refused or traced: machines ask
/// them all the time, and act on the answer.
pub(crate) const PROBES: [&str; 4] = ["/livez", "/healthz", "/readyz", METRICS];

/// The probe whose answer takes work and is long.
pub(crate) const METRICS: &str = "/metrics";
