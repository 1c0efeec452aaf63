//! What lanes say to the database.

use super::{resolve, row};
use crate::db::Statement;

/// Every statement of the lanes, for the suite that runs each on both engines.
#[must_use]
pub fn statements() -> Vec<&'static Statement> {
    [row::statements().as_slice(), resolve::statements().as_slice()].concat()
}
