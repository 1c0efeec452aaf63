//! The HTTP edge, between the sockets and the features: what every route shares.
//!
//! [`edge`] is the one middleware (with [`cors`] around it where origins are configured), [`context`] what is known of the request
//! being served, [`body`], [`path`] and [`params`] the extractors. Each refuses with a [`Problem`](crate::error::Problem), so a handler sees valid input only. To add an extractor,
//! put it beside the one that reads the same part of the request.

pub mod body;
mod canonical;
pub(crate) mod compress;
pub mod context;
pub mod cors;
pub mod edge;
mod held;
pub mod limit;
mod meter;
mod origin;
pub mod params;
pub mod path;
pub mod places;
pub mod sender;
pub mod shares;
pub(crate) mod watch;
mod words;

pub(crate) use meter::{REQUESTS, SECONDS};
