//! `headmark openapi`.

use super::say;

pub(super) fn run() -> Result<(), String> {
    say(&crate::router::openapi_json()?)
}
