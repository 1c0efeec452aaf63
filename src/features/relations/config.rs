//! The settings of relations.

use std::str::FromStr;

use clap::Args;

use super::badge::Badges;
use super::command::Terms;
use crate::base::ids::{Invalid, Name};

/// What holds for follows however they are made, imports included.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Relations")]
pub struct FollowConfig {
    /// The maximum number of users that a user can follow. Further follows get 409. Imports can
    /// exceed it.
    #[arg(long, env = "HEADMARK_MAX_FOLLOWING", default_value_t = 5000, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    pub max_following: i64,

    /// The badge that each new follow increments for the followed user, such as `follower`.
    /// Unfollowing retracts it if unread. Default: none.
    #[arg(long, env = "HEADMARK_FOLLOWER_BADGE", default_value = "", hide_default_value = true)]
    pub follower_badge: RaisedBadge,

    /// The badge that each new follow request increments for the user who is asked, such as
    /// `request`. Its end retracts it if unread. Default: none.
    #[arg(long, env = "HEADMARK_REQUEST_BADGE", default_value = "", hide_default_value = true)]
    pub request_badge: RaisedBadge,
}

/// How relations are bounded, what they raise, and how much of them is kept in memory.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Relations")]
pub struct RelationConfig {
    /// What holds for follows.
    #[command(flatten)]
    pub follows: FollowConfig,

    /// The maximum number of users that a user can block. Further blocks get 409.
    #[arg(long, env = "HEADMARK_MAX_BLOCKS", default_value_t = 5000, value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    pub max_blocks: i64,

    /// The maximum number of users that a user can mute. Further mutes get 409.
    #[arg(long, env = "HEADMARK_MAX_MUTES", default_value_t = 5000, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    pub max_mutes: i64,

    /// The maximum number of users that `following/ids`, `blocks/ids` and `mutes/ids` return. Longer
    /// lists, possible after imports, get 409 and are available page by page. Must not be below
    /// HEADMARK_MAX_FOLLOWING, HEADMARK_MAX_BLOCKS and HEADMARK_MAX_MUTES.
    #[arg(long, env = "HEADMARK_MAX_WHOLE_LIST", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub max_whole_list: u32,

    /// The memory for complete following, block and mute lists in this process, in bytes.
    #[arg(long, env = "HEADMARK_LIST_CACHE_BYTES", default_value_t = 64 << 20, value_parser = clap::value_parser!(u64).range(1 << 20..=1 << 40))]
    pub list_cache_bytes: u64,
}

impl FollowConfig {
    /// What new followers and new requests raise.
    #[must_use]
    pub fn badges(&self) -> Badges {
        Badges { follower: self.follower_badge.0.clone(), request: self.request_badge.0.clone() }
    }
}

impl RelationConfig {
    /// Checks that every list that these limits allow is given whole.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        if i64::from(self.max_whole_list) < self.follows.max_following.max(self.max_blocks).max(self.max_mutes) {
            return Err(
                "HEADMARK_MAX_WHOLE_LIST must not be below HEADMARK_MAX_FOLLOWING, HEADMARK_MAX_BLOCKS or HEADMARK_MAX_MUTES, or clients could not read \
                        lists that they may make."
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// What acts are held to.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let FollowConfig { max_following, .. } = &self.follows;
        Terms { max_following: *max_following, max_blocks: self.max_blocks, badges: self.follows.badges() }
    }
}

/// A badge that something raises, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaisedBadge(pub Option<Name>);

impl FromStr for RaisedBadge {
    type Err = Invalid;

    /// An empty name stands for none, as environment files often have it.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim().is_empty() { Ok(Self(None)) } else { text.parse().map(|name| Self(Some(name))) }
    }
}
