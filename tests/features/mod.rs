//! What clients poll for, a folder for each feature as in `src/features/`.

mod badges;
mod broadcasts;
mod dots;
pub mod erasure;
pub mod events;
pub mod feed;
pub mod groups;
mod inbox;
mod mutes;
mod notifications;
pub mod operations;
mod push;
mod receipts;
mod relations;
mod users;
mod views;
