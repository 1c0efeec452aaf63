//! The views in the unread summary: those that a poll names.

use serde::Serialize;
use utoipa::ToSchema;

use super::ViewCount;
use crate::base::clock::UnixMs;
use crate::features::summary_part::Cap;

/// The unread count of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ViewOut {
    /// The number of items since the last visit; 0 if there was no visit.
    #[schema(minimum = 0, example = 3)]
    pub unread: i64,
    /// The number of items ever added; send it back as `up_to` to clear exactly what the user saw.
    #[schema(minimum = 0, example = 120)]
    pub head: i64,
    /// When the user last visited the view; omitted if the user never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_access_at: Option<UnixMs>,
    /// With `cap`: whether the count is higher than shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub capped: Option<bool>,
}

impl ViewOut {
    /// A count as a summary shows it.
    #[must_use]
    pub fn new(count: &ViewCount, cap: Cap) -> Self {
        let (unread, capped) = cap.show(count.unread);
        Self { unread, head: count.head, last_access_at: count.at, capped }
    }
}
