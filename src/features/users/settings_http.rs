//! The routes of a user's settings.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::settings::{ListsOut, MAX_NOT_IN_TOTAL, PatchSettings, PatchStep, SettingsOut, SettingsPatch, TotalPart};
use crate::base::clock::Clock;
use crate::base::error::{Error, Problem, Result};
use crate::base::ids::{GroupId, UserId};
use crate::cache::ReadEntry;
use crate::engine::entries::{Entries, State};
use crate::engine::lanes::{Job, Lanes};
use crate::features::groups::changes::GroupChanges;
use crate::features::groups::part::groups;
use crate::http::answer::no_cache;
use crate::http::body::{Body, present};
use crate::http::params::{NoParams, Query};
use crate::http::path::{UserOrMe, UserPath};
use crate::http::served::Served;

/// How often a patch is tried while the user joins and leaves groups.
const MAX_TRIES: u32 = 4;

/// What the handlers of settings work with.
#[derive(Debug)]
pub struct UserContext {
    pub lanes: Lanes,
    pub entries: Arc<Entries>,
    /// Told of the groups whose receipts change.
    pub group_changes: Arc<GroupChanges>,
    pub clock: Clock,
}

/// The routes of this part.
pub fn routes() -> OpenApiRouter<Served<UserContext>> {
    OpenApiRouter::new().routes(routes!(get_settings, patch_settings))
}

/// Settings to change. Omitted fields keep their values.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchSettingsIn {
    /// What `total` leaves out from now on, instead of what it left out before: counters, channels
    /// of broadcasts, and types of notifications.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, max_items = 100, value_type = Option<BTreeSet<TotalPart>>)]
    not_in_total: Option<Vec<TotalPart>>,
    /// Whether others see which messages the user has read.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    share_receipts: Option<bool>,
    /// Whether a follow of the user is a request until the user accepts it. Switching it off accepts
    /// the open requests.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    approve_follows: Option<bool>,
    /// Who may see the lists `following`, `followers` and `mutuals`. Counts stay visible.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    lists: Option<ListsOut>,
}

impl PatchSettingsIn {
    fn patch(self) -> Result<SettingsPatch, Problem> {
        let Self { not_in_total, share_receipts, approve_follows, lists } = self;
        if let Some(parts) = &not_in_total {
            if parts.len() > MAX_NOT_IN_TOTAL {
                return Err(Problem::invalid("/not_in_total", format!("must have at most {MAX_NOT_IN_TOTAL} parts")));
            }
            let mut seen = BTreeSet::new();
            if let Some(at) = parts.iter().position(|part| !seen.insert(part)) {
                return Err(Problem::invalid(format!("/not_in_total/{at}"), "must not be repeated"));
            }
        }
        Ok(SettingsPatch { not_in_total, share_receipts, approve_follows, lists })
    }
}

async fn entry(state: &UserContext, user: UserId, at_least: i64) -> Result<Arc<ReadEntry>> {
    match state.entries.read(user, at_least).await {
        State::Current(entry) => Ok(entry),
        State::LastKnown(_) | State::Unknown => Err(Error::store_unavailable()),
    }
}

/// Get a user's settings
///
/// A user who has set nothing has the defaults.
#[utoipa::path(get, path = "/v1/users/{user}/settings", tag = "users",
    params(("user" = UserOrMe, Path)),
    responses(
        (status = 200, body = SettingsOut)))]
async fn get_settings(state: Served<UserContext>, path: UserPath, _: Query<NoParams>) -> Result<Response> {
    Ok(no_cache(&SettingsOut::of_entry(&*entry(&state, path.user, 0).await?)))
}

/// Update a user's settings
///
/// Changes the fields that the body names. The parts in `not_in_total` keep their own counts. With
/// `share_receipts: false`, nobody sees which messages the user has read. This starts at the first
/// message that was unread. It ends at the last message that existed when the user shares receipts
/// again. For these messages, the user counts as not having read. Meanwhile, the user cannot read
/// the receipts of others (403 `receipts_hidden`). After `approve_follows` is switched off, the server
/// accepts the open requests soon, and drops those of users who follow too many.
#[utoipa::path(patch, path = "/v1/users/{user}/settings", tag = "users",
    params(("user" = UserOrMe, Path)),
    request_body = PatchSettingsIn,
    responses(
        (status = 200, body = SettingsOut)))]
async fn patch_settings(state: Served<UserContext>, path: UserPath, body: Body<PatchSettingsIn>) -> Result<Response> {
    let (user, patch) = (path.user, body.value.patch()?);
    let mut revision = 0;
    for _ in 0..MAX_TRIES {
        let groups = if patch.share_receipts.is_some() { groups_of(&state, user, revision).await? } else { Vec::new() };
        let command = PatchSettings { user, patch: patch.clone(), groups: groups.clone() };
        let answer = state.lanes.submit(Job { command: Arc::new(command), key: None }).await?;
        match answer.value()? {
            PatchStep::Done(settings, is_sharing_changed) => {
                if is_sharing_changed {
                    groups.into_iter().for_each(|group| state.group_changes.tell(group));
                }
                return Ok(no_cache(&settings));
            }
            PatchStep::OtherGroups(at) => revision = at,
        }
    }
    Err(Error::store_unavailable())
}

/// The user's groups, as of this revision or a later one.
async fn groups_of(state: &UserContext, user: UserId, at_least: i64) -> Result<Vec<GroupId>> {
    let entry = entry(state, user, at_least).await?;
    Ok(groups(&entry.parts).map(|(group, _)| group).collect())
}
