//! The settings of views.

use clap::Args;

/// How views are kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Views")]
pub struct ViewConfig {
    /// The number of days for which the id of a view item is kept. While it is kept, a repeat
    /// counts once and the item can be deleted. 0: forever.
    #[arg(long, env = "HEADMARK_VIEW_ITEM_TTL_DAYS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub view_item_ttl_days: u32,

    /// The maximum number of visited views kept for each user. A new one replaces the least
    /// recently visited one, which then counts as never visited.
    #[arg(long, env = "HEADMARK_VISITED_VIEWS", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(50..=1_000_000))]
    pub visited_views: u32,
}
