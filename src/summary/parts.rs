//! The list of the kinds of badges, and everything that names each of them.

use serde::Serialize;
use utoipa::ToSchema;

use super::chats::{ChatPart, ChatTermsOut, ChatsOut};
use crate::base::clock::UnixMs;
use crate::base::error::Result;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::engine::entries::UserRows;
use crate::engine::heads::{BroadcastState, Versions};
use crate::features::badges::summary::{CounterPart, CounterTermsOut};
use crate::features::broadcasts::summary::{BroadcastPart, ChannelTermsOut};
use crate::features::dots::summary::{DotOut, DotPart, DotTermsOut};
use crate::features::feed::summary::{FeedPart, FeedTermsOut};
use crate::features::notifications::NotificationCountOut;
use crate::features::notifications::summary::{NotificationPart, NotificationTermsOut};
use crate::features::summary_part::{ByName, Cap, CounterOut, Shared, SummaryFacts, SummaryPart, UnreadOut};
use crate::features::views::summary::ViewOut;

/// For each kind a line: its name in `include` and in JSON, its part, and the OpenAPI types of what
/// it shows.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $part:ident, shows [$($shown:tt)+], explains [$($terms:tt)+];)+) => {
        /// The kinds that `include` may name.
        pub(super) const KINDS: &[&str] = &[$(stringify!($name)),+];

        /// What of a summary is wanted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Wanted {
            $($(#[$doc])* pub $name: bool,)+
            /// No count shows more than this.
            pub cap: Cap,
        }

        impl Wanted {
            /// No kind: views alone, which are asked for by a parameter of their own.
            pub const NOTHING: Self = Self { $($name: false,)+ cap: Cap(None) };

            /// All kinds.
            pub const ALL: Self = Self { $($name: true,)+ cap: Cap(None) };

            /// Adds a kind by its name; whether there is one.
            pub(super) fn add(&mut self, kind: &str) -> bool {
                match kind {
                    $(stringify!($name) => self.$name = true,)+
                    _ => return false,
                }
                true
            }

            /// Whether any kind is wanted that depends on this.
            pub(super) fn has(self, which: impl Fn(Shared) -> bool) -> bool {
                $((self.$name && which($part::SHARED)))||+
            }

            /// Whether all kinds are wanted that the total adds up.
            pub(super) fn has_total(self) -> bool {
                $((self.$name || !$part::IN_TOTAL))&&+
            }

            /// The names of the wanted kinds that `pick` takes, by what they depend on and whether
            /// they are counted.
            pub(super) fn names(self, counts: &Counts, pick: impl Fn(Shared, bool) -> bool) -> Vec<&'static str> {
                let kinds = [$((stringify!($name), self.$name && pick($part::SHARED, counts.$name.is_some()))),+];
                kinds.into_iter().filter_map(|(name, is_picked)| is_picked.then_some(name)).collect()
            }
        }

        /// What counts each kind.
        #[derive(Debug)]
        pub struct Parts {
            $($(#[$doc])* pub $name: $part,)+
        }

        /// What was counted of each kind; None where it was not wanted or is not known.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Counts {
            $($(#[$doc])* pub $name: Option<<$part as SummaryPart>::Count>,)+
        }

        /// What was read of the user's state for each kind; None where that was not needed yet.
        #[derive(Debug, Clone, Default)]
        pub struct Decoded {
            $($(#[$doc])* pub $name: Option<<$part as SummaryPart>::Decoded>,)+
        }

        impl Decoded {
            /// How much memory it takes besides itself, in bytes.
            pub(super) fn size_bytes(&self) -> usize {
                [$(self.$name.as_ref().map_or(0, $part::decoded_bytes)),+].into_iter().sum()
            }
        }

        impl Counts {
            /// The versions of the heads that the wanted kinds looked up; None where one is not
            /// known.
            pub(super) fn versions(&self, wanted: Wanted) -> Option<Versions> {
                let mut versions = Versions::default();
                $(if wanted.$name {
                    versions = versions.and($part::versions(self.$name.as_ref()?));
                })+
                Some(versions)
            }

            /// When a number will be another without a write; None: never.
            pub(super) fn changes_at(&self) -> Option<UnixMs> {
                let times = [$(self.$name.as_ref().and_then($part::changes_at)),+];
                times.into_iter().flatten().min()
            }

            /// What an app icon shows. Each term is at least 0, so that none can eat another.
            pub(super) fn total(&self, facts: SummaryFacts<'_>) -> Option<i64> {
                let mut total = 0_i64;
                $(if $part::IN_TOTAL {
                    total = total.saturating_add($part::unread(facts, self.$name.as_ref()?));
                })+
                Some(total)
            }

            /// The revision of the user that a count needs, where it was counted from newer rows
            /// than the state that was decoded.
            pub(super) fn needs(&self, decoded: &Decoded) -> Option<Revision> {
                let needs = [$(match (&decoded.$name, &self.$name) {
                    (Some(decoded), Some(count)) => $part::needs(decoded, count),
                    _ => None,
                }),+];
                needs.into_iter().flatten().max()
            }

            /// Without the counts from newer rows than that state.
            pub(super) fn without_newer(self, decoded: &Decoded) -> Self {
                Self { $($name: match (&decoded.$name, self.$name) {
                    (Some(decoded), Some(count)) if $part::needs(decoded, &count).is_some() => None,
                    (_, count) => count,
                },)+ }
            }
        }

        impl Parts {
            /// Decodes what is wanted and was not decoded yet.
            pub(super) fn decode(&self, wanted: Wanted, facts: SummaryFacts<'_>, decoded: &mut Decoded) {
                $(if wanted.$name && decoded.$name.is_none() {
                    decoded.$name = Some(self.$name.decode(facts));
                })+
            }

            /// Counts what is wanted.
            pub(super) async fn count(&self, wanted: Wanted, facts: SummaryFacts<'_>, decoded: &Decoded) -> Counts {
                Counts { $($name: match &decoded.$name {
                    Some(decoded) if wanted.$name => self.$name.count(facts, decoded).await,
                    _ => None,
                },)+ }
            }

            /// The terms of every number.
            pub(super) async fn explain(&self, rows: &UserRows, broadcast_state: &BroadcastState) -> Result<ExplainOut> {
                $(let $name = self.$name.explain(rows, broadcast_state).await?;)+
                let total = [$($part::explained_unread(rows, &$name)),+].into_iter().fold(0, i64::saturating_add);
                Ok(ExplainOut {
                    user_id: rows.user,
                    revision: rows.row.revision,
                    total,
                    not_in_total: rows.row.settings.not_in_total().map(str::to_owned).collect(),
                    enrolment_head: Some(rows.row.enrolled).filter(|_| rows.row.is_enrolled()),
                    broadcast_head: broadcast_state.head,
                    $($name,)+
                })
            }
        }

        /// The unread summary of a user.
        #[derive(Debug, Serialize, ToSchema)]
        #[schema(as = UnreadSummaryOut)]
        pub struct UnreadSummaryOut<'a> {
            /// The user.
            pub user_id: UserId,
            /// Identifies the history of the database. It changes when the database was restored:
            /// clients must then discard their state.
            #[schema(example = "7eb1c0de5a0f3d29")]
            pub epoch: &'a str,
            /// The number of changes of the user's own rows. It never goes down within an epoch: a
            /// response with a lower revision is older. Omitted if unknown in a degraded response.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(nullable = false, minimum = 0, example = 918)]
            pub revision: Option<i64>,
            /// The sum of the versions of the shared heads in this response. Of two responses to
            /// one request at the same `revision`, the one with the lower number is older. Omitted
            /// if unknown in a degraded response.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(nullable = false, minimum = 0, example = 5120)]
            pub shared_revision: Option<i64>,
            /// The number on the app icon: the sum of all unread counts but `feed` and `views`, and
            /// without what the user's settings leave out.
            /// Omitted if a kind that it includes was not requested or is missing.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(nullable = false, minimum = 0, example = 3)]
            pub total: Option<i64>,
            /// With `cap`: whether the total is higher than shown.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(nullable = false)]
            pub capped: Option<bool>,
            /// True if a store was unavailable: parts are the last known ones (`stale`) or omitted
            /// (`missing`).
            pub degraded: bool,
            /// When degraded: the parts that are the last known ones.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub stale: Vec<&'static str>,
            /// When degraded: the unknown parts.
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub missing: Vec<&'static str>,
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                #[schema(nullable = false, value_type = Option<$($shown)+>)]
                pub $name: Option<<$part as SummaryPart>::Out<'a>>,
            )+
            /// The requested views, by name and id.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(nullable = false, value_type = Option<BTreeMap<String, ViewOut>>)]
            pub views: Option<ByName<'a, ViewOut>>,
        }

        impl<'a> UnreadSummaryOut<'a> {
            /// With the kinds that are counted.
            pub(super) fn add_kinds(self, facts: SummaryFacts<'a>, counts: &'a Counts) -> Self {
                Self { $($name: counts.$name.as_ref().map(|count| $part::show(facts, count)),)+ ..self }
            }

            /// Without any kind.
            pub(super) fn without_kinds(user_id: UserId, epoch: &'a str) -> Self {
                Self {
                    user_id,
                    epoch,
                    revision: None,
                    shared_revision: None,
                    total: None,
                    capped: None,
                    degraded: false,
                    stale: Vec::new(),
                    missing: Vec::new(),
                    $($name: None,)+
                    views: None,
                }
            }
        }

        /// The terms of each count of an unread summary.
        #[derive(Debug, Serialize, ToSchema)]
        pub struct ExplainOut {
            /// The user.
            user_id: UserId,
            /// The revision of all values.
            revision: i64,
            /// The number on the app icon.
            total: i64,
            /// What the user's settings keep out of the total.
            #[schema(example = json!(["counters.like"]))]
            not_in_total: Vec<String>,
            /// The number of broadcasts and lit dots when the user was enrolled. Omitted for a user
            /// who is not enrolled: broadcasts, dots and feed are then 0.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(nullable = false)]
            enrolment_head: Option<i64>,
            /// The current value of the same number.
            broadcast_head: i64,
            $(
                $(#[$doc])*
                #[schema(value_type = $($terms)+)]
                $name: <$part as SummaryPart>::Terms,
            )+
        }
    };
}

kinds! {
    /// The counter badges by name.
    counters: CounterPart, shows [BTreeMap<String, CounterOut>], explains [BTreeMap<String, CounterTermsOut>];
    /// The broadcast channels by name.
    broadcasts: BroadcastPart, shows [BTreeMap<String, CounterOut>], explains [BTreeMap<String, ChannelTermsOut>];
    /// The dots by name.
    dots: DotPart, shows [BTreeMap<String, DotOut>], explains [BTreeMap<String, DotTermsOut>];
    /// Posts, since the user last saw the feed, of the users that the user follows.
    feed: FeedPart, shows [UnreadOut], explains [FeedTermsOut];
    /// Groups and direct messages.
    chats: ChatPart, shows [ChatsOut], explains [ChatTermsOut];
    /// The notifications by type.
    notifications: NotificationPart, shows [BTreeMap<String, NotificationCountOut>], explains [BTreeMap<String, NotificationTermsOut>];
}
