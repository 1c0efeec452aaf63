//! `headmark openapi`.

use super::shared::say;

pub(super) fn run() -> Result<(), String> {
    say(&crate::app::router::openapi_json()?)
}
