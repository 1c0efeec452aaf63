//! One folder for each thing that clients poll for: its rules, its rows (`store.rs`) and its routes
//! (`http.rs`).

pub mod badges;
pub mod broadcasts;
pub mod dots;
pub mod events;
pub mod export_part;
pub mod feed;
pub mod groups;
pub mod hidden_receipts;
pub mod inbox;
pub mod level;
pub mod notifications;
pub mod old_rows;
pub mod operations;
pub mod push;
pub mod receipts;
pub mod relations;
pub mod removals;
pub mod rounds;
pub mod silence;
pub mod summary_part;
pub mod users;
pub mod views;
