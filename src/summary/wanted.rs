//! What a client asks for: the kinds, and the highest number to show.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::parts::{KINDS, Wanted};
use crate::features::summary_part::Cap;

/// The highest `cap`.
pub const MAX_CAP: i64 = 1_000_000_000;

impl Wanted {
    /// What `include` (names of kinds, comma-separated) and `cap` ask for.
    ///
    /// # Errors
    /// What is wrong, with the name of the parameter.
    pub fn parse(include: Option<&str>, cap: Option<i64>) -> Result<Self, (&'static str, String)> {
        if cap.is_some_and(|cap| !(1..=MAX_CAP).contains(&cap)) {
            return Err(("cap", format!("must be between 1 and {MAX_CAP}")));
        }
        let Some(include) = include else { return Ok(Self { cap: Cap(cap), ..Self::ALL }) };
        let mut wanted = Self { cap: Cap(cap), ..Self::NOTHING };
        for kind in include.split(',') {
            if !wanted.add(kind) {
                return Err(("include", format!("must be one of {}", KINDS.join(", "))));
            }
        }
        Ok(wanted)
    }
}

fn text(description: &str, pattern: String, example: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    text.pattern(Some(pattern)).examples([example]).into()
}

/// A kind of counts in the unread summary.
#[derive(Debug)]
pub(super) struct KindName;

impl PartialSchema for KindName {
    fn schema() -> RefOr<Schema> {
        text("A kind of counts in the unread summary.", format!("^({})$", KINDS.join("|")), "counters")
    }
}

impl ToSchema for KindName {}

/// Kinds, comma-separated.
#[derive(Debug)]
pub(super) struct KindNames;

impl PartialSchema for KindNames {
    fn schema() -> RefOr<Schema> {
        let kind = format!("({})", KINDS.join("|"));
        text("Kinds, comma-separated.", format!("^{kind}(,{kind})*$"), "counters,dots")
    }
}

impl ToSchema for KindNames {}
