//! What every floor uses: ids, time, errors, threads. No I/O.

pub mod abandoned;
pub mod clock;
pub mod error;
pub mod failures;
pub mod fingerprint;
pub mod hex;
pub mod id_hash;
pub mod ids;
pub mod lately;
pub mod recent;
pub mod secret;
pub mod seldom;
pub mod threads;
