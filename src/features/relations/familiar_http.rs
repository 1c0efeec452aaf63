//! The route of familiar followers.

use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::familiar::{Familiar, MAX_OTHERS};
use super::http::RelationContext;
use super::lookup_http::{ids, own_version};
use crate::base::error::{Problem, Result};
use crate::base::ids::UserId;
use crate::http::answer::no_cache;
use crate::http::params::Query;
use crate::http::path::{UserOrMe, UserPath};
use crate::http::served::Served;

pub fn routes() -> OpenApiRouter<Served<RelationContext>> {
    OpenApiRouter::new().routes(routes!(list_familiar_followers))
}

/// Whose followers to look for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FamiliarParams {
    /// The other users, comma-separated, at most 20.
    #[param(example = "7,9", pattern = "^[1-9][0-9]{0,18}(,[1-9][0-9]{0,18}){0,19}$")]
    ids: String,
}

/// The users that a user follows and who follow another user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FamiliarOut {
    /// The other user.
    pub user_id: UserId,
    /// The number of them.
    #[schema(minimum = 0, maximum = 500, example = 12)]
    pub count: usize,
    /// Whether the user publicly follows more than 500 users. Only the newest 500 are looked at.
    pub capped: bool,
    /// Up to three of them: those that the user followed last, newest first.
    #[schema(max_items = 3)]
    pub sample: Vec<UserId>,
}

/// The familiar followers of other users, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FamiliarFollowersOut {
    /// One entry for each id.
    pub items: Vec<FamiliarOut>,
}

/// List familiar followers
///
/// Returns, for each of up to 20 other users, which of the users that the user publicly follows
/// publicly follow that user. Users who hide their lists from the user are left out. Secret follows
/// do not count.
#[utoipa::path(get, path = "/v1/users/{user}/familiar", tag = "relations",
    params(("user" = UserOrMe, Path), FamiliarParams),
    responses(
        (status = 200, body = FamiliarFollowersOut)))]
async fn list_familiar_followers(state: Served<RelationContext>, path: UserPath, Query(params): Query<FamiliarParams>) -> Result<Response> {
    let others = ids(&params.ids, MAX_OTHERS).map_err(|why| Problem::query("ids", why))?;
    state.entries.refuse_erased_among(&others, |_| "ids".to_owned()).await?;
    let version = own_version(&state, path.user).await;
    let found = state.familiar.of(path.user, &others, version).await?;
    let out = |(user_id, Familiar { count, is_capped, sample }): (&UserId, Familiar)| FamiliarOut {
        user_id: *user_id,
        count,
        capped: is_capped,
        sample,
    };
    Ok(no_cache(&FamiliarFollowersOut { items: others.iter().zip(found).map(out).collect() }))
}
