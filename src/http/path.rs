//! Values in the path. Who is calling is checked first, so that a stranger learns nothing about
//! which ids are valid.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use futures_util::future::BoxFuture;
use utoipa::ToSchema;

use crate::base::error::{Code, Problem};
use crate::base::ids::{Invalid, Name, UserId};
use crate::http::auth::{Auth, Caller};

/// The user in the path of a user's own routes: an id, or `me` for the user of the token.
// For the document; `UserPath` reads it.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, pattern = "^(me|[1-9][0-9]{0,18})$", example = "42")]
pub struct UserOrMe(pub String);

/// The values of the path by name, percent-decoded: `params.get::<Name>("badge")?` for `{badge}`.
#[derive(Debug)]
pub struct PathParams(RawPathParams);

impl PathParams {
    /// The value of `{name}` as a newtype.
    ///
    /// # Errors
    /// A 400 problem that points to `name`.
    pub fn get<T: FromStr<Err = Invalid>>(&self, name: &str) -> Result<T, Problem> {
        self.text(name).and_then(|text| text.parse().map_err(|rule: Invalid| invalid(name, rule.0)))
    }

    /// The name in `{name}`; [`PathParams::get`] for the commonest type.
    ///
    /// # Errors
    /// A 400 problem that points to `name`.
    pub fn name(&self, name: &str) -> Result<Name, Problem> {
        self.get(name)
    }

    fn text(&self, name: &str) -> Result<&str, Problem> {
        let found = self.0.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value).ok_or_else(|| invalid(name, "is missing from the route"))
    }
}

fn invalid(name: &str, detail: &str) -> Problem {
    Problem::new(Code::InvalidPath, "One or more values are invalid. See errors.").at(name, detail)
}

impl<S: Send + Sync> FromRequestParts<S> for PathParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        RawPathParams::from_request_parts(parts, state).await.map(Self).map_err(|rejection| {
            // The rejection names the value in backticks: "Invalid UTF-8 in `badge`".
            let text = rejection.to_string();
            invalid(text.split('`').nth(1).unwrap_or_default(), "must be valid UTF-8 after percent-decoding")
        })
    }
}

/// The user of `/v1/users/{user}/…`, for the routes of users: the one in the token (by id or as
/// `me`), or, for a service, anyone by id. Asking for it notes that the user was seen.
#[derive(Debug)]
pub struct UserPath {
    /// Whose row it is about.
    pub user: UserId,
    /// Who is calling.
    pub caller: Caller,
    /// The other values of the path.
    pub params: PathParams,
}

impl UserPath {
    /// The value of `{name}` as a newtype, as [`PathParams::get`].
    ///
    /// # Errors
    /// A 400 problem that points to `name`.
    pub fn get<T: FromStr<Err = Invalid>>(&self, name: &str) -> Result<T, Problem> {
        self.params.get(name)
    }

    /// The name in `{name}`, as [`PathParams::name`].
    ///
    /// # Errors
    /// A 400 problem that points to `name`.
    pub fn name(&self, name: &str) -> Result<Name, Problem> {
        self.params.name(name)
    }
}

/// The same for polls that read the user's entry in any case, and nothing else of the path: their
/// handlers refuse users that were erased ([`alive`](crate::engine::entries::alive)).
#[derive(Debug)]
pub struct PolledUser(pub UserId);

/// The user of `/v1/users/{user}/…`, for routes open to any caller: anyone with credentials may ask
/// about anyone.
#[derive(Debug)]
pub struct AnyUserPath {
    /// Who it is about.
    pub user: UserId,
    /// Who is calling.
    pub caller: Caller,
}

impl AnyUserPath {
    /// Whether the caller may see what is the user's own: the user does, and services.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.caller.may_act_for(self.user).is_ok()
    }
}

/// Finds out who calls, and then whom the path names.
async fn caller_and_user<S>(parts: &mut Parts, state: &S) -> Result<(Caller, PathParams, UserId), Problem>
where
    S: Send + Sync,
    Arc<Auth>: FromRef<S>,
{
    let caller = Caller::from_request_parts(parts, state).await?;
    let params = PathParams::from_request_parts(parts, state).await?;
    let user = user_of(params.text("user")?, &caller)?;
    Ok((caller, params, user))
}

/// The user that a caller names by this text.
fn user_of(text: &str, caller: &Caller) -> Result<UserId, Problem> {
    match (text, caller) {
        ("me", Caller::User { id }) => Ok(*id),
        ("me", Caller::Service { .. }) => {
            Err(Problem::new(Code::Forbidden, "'me' works only with a user token. A service must name the user by id."))
        }
        (id, _) => id.parse().map_err(|rule: Invalid| invalid("user", rule.0)),
    }
}

/// The user as the path of a user's own route has it, and the rest behind, where nothing of the user
/// needs to be decoded. The router's own values are a copy for each request.
pub(crate) fn plain_user(uri: &Uri) -> Option<(&str, &str)> {
    let found = split_at(uri.path().strip_prefix("/v1/users/")?, b'/')?;
    (!found.0.contains('%')).then_some(found)
}

/// What stands before and behind the first of these bytes, in ASCII. For a text as short as a path, what
/// `str` has takes longer.
pub(super) fn split_at(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|of| of == byte)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// The caller may act for the user, and the user is about to be answered.
async fn admit<S>(caller: &Caller, user: UserId, state: &S) -> Result<(), Problem>
where
    Option<Arc<dyn Witness>>: FromRef<S>,
{
    caller.may_act_for(user)?;
    if let Some(noted) = Option::<Arc<dyn Witness>>::from_ref(state).as_deref().and_then(|witness| witness.saw(user)) {
        noted.await;
    }
    Ok(())
}

/// Hears of each request of a user, and of those of services on a user's own routes.
pub trait Witness: Send + Sync {
    /// Such a request is about to be answered. It waits for what is returned, if anything.
    fn saw(&self, user: UserId) -> Option<BoxFuture<'_, ()>>;

    /// Refuses a user that was erased: 410.
    fn refuse_erased(&self, user: UserId) -> BoxFuture<'_, Result<(), Problem>>;

    /// The same where another user asks, who must not find out when something of the user changes.
    fn refuse_erased_to_others(&self, user: UserId) -> BoxFuture<'_, Result<(), Problem>>;
}

/// Refuses users that were erased, where the request only reads. A write is refused in the lane, under
/// the lock of the user's row.
pub(crate) async fn refuse_erased<S>(parts: &Parts, state: &S, user: UserId) -> Result<(), Problem>
where
    Option<Arc<dyn Witness>>: FromRef<S>,
{
    match Option::<Arc<dyn Witness>>::from_ref(state) {
        Some(witness) if reads(parts) => witness.refuse_erased(user).await,
        _ => Ok(()),
    }
}

/// Whether the request only reads. HEAD is answered by what answers GET.
fn reads(parts: &Parts) -> bool {
    matches!(parts.method, Method::GET | Method::HEAD)
}

/// Who asks for what is about no user. A user that was erased is refused, any other is seen.
#[derive(Debug)]
pub struct LivingCaller(pub Caller);

impl<S> FromRequestParts<S> for LivingCaller
where
    S: Send + Sync,
    Arc<Auth>: FromRef<S>,
    Option<Arc<dyn Witness>>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        if let Caller::User { id } = caller {
            admit(&caller, id, state).await?;
            refuse_erased(parts, state, id).await?;
        }
        Ok(Self(caller))
    }
}

impl<S> FromRequestParts<S> for UserPath
where
    S: Send + Sync,
    Arc<Auth>: FromRef<S>,
    Option<Arc<dyn Witness>>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (caller, params, user) = caller_and_user(parts, state).await?;
        admit(&caller, user, state).await?;
        refuse_erased(parts, state, user).await?;
        Ok(Self { user, caller, params })
    }
}

impl<S> FromRequestParts<S> for PolledUser
where
    S: Send + Sync,
    Arc<Auth>: FromRef<S>,
    Option<Arc<dyn Witness>>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let user = match plain_user(&parts.uri) {
            Some((user, _)) => user_of(user, &caller)?,
            None => user_of(PathParams::from_request_parts(parts, state).await?.text("user")?, &caller)?,
        };
        admit(&caller, user, state).await?;
        Ok(Self(user))
    }
}

impl<S> FromRequestParts<S> for AnyUserPath
where
    S: Send + Sync,
    Arc<Auth>: FromRef<S>,
    Option<Arc<dyn Witness>>: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (caller, _, user) = caller_and_user(parts, state).await?;
        let Caller::User { id } = caller else {
            refuse_erased(parts, state, user).await?;
            return Ok(Self { user, caller });
        };
        admit(&caller, id, state).await?;
        refuse_erased(parts, state, id).await?;
        if let Some(witness) = Option::<Arc<dyn Witness>>::from_ref(state).filter(|_| id != user && reads(parts)) {
            witness.refuse_erased_to_others(user).await?;
        }
        Ok(Self { user, caller })
    }
}
