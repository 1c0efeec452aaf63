//! `headmark token`.

use std::time::Duration;

use clap::{ArgGroup, Args};
use rand::RngExt as _;

use super::shared::{Failure, say};
use crate::app::config::AuthArgs;
use crate::base::clock::Clock;
use crate::base::ids::UserId;
use crate::http::auth::Auth;

const NO_SECRET: &str = "token --user signs with HEADMARK_JWT_SECRET (HS256), which is not set. For HEADMARK_JWT_PUBLIC_KEY and \
    HEADMARK_JWKS, create tokens with your private key.";

/// What kind of credential.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("kind").required(true).args(["user", "service"])))]
pub(super) struct TokenArgs {
    /// Create a JWT for this user, signed with HEADMARK_JWT_SECRET (HS256). With a public key or a
    /// JWKS, create tokens with your private key instead.
    #[arg(long)]
    user: Option<UserId>,

    /// The lifetime of the token: a number with s, m, h or d.
    #[arg(long, conflicts_with = "service", default_value = "1h", value_parser = duration)]
    ttl: Duration,

    /// Create a service key with this name, for HEADMARK_SERVICE_KEYS. The secret is the part after
    /// the colon.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "service")]
    service: Option<crate::base::ids::Name>,

    #[command(flatten)]
    auth: AuthArgs,
}

pub(super) fn run(args: &TokenArgs) -> Result<(), Failure> {
    match (&args.service, args.user) {
        (Some(name), _) => Ok(say(&format!("{name}:{:032x}", rand::rng().random::<u128>()))?),
        (None, Some(user)) => {
            let credentials = args.auth.clone().resolved().map_err(Failure::Settings)?;
            if credentials.jwt_secret.is_none() {
                return Err(Failure::Settings(NO_SECRET.to_owned()));
            }
            let auth = Auth::new(&credentials.auth(), Clock::System).map_err(Failure::Settings)?;
            Ok(say(&auth.user_token(user, args.ttl)?)?)
        }
        (None, None) => Err(Failure::Settings("set --user or --service".to_owned())),
    }
}

/// `90s`, `15m`, `1h`, `30d`.
fn duration(text: &str) -> Result<Duration, String> {
    let rule = || "a duration is a whole number and s, m, h or d, as in 90s or 1h".to_owned();
    let unit = text.chars().last().ok_or_else(rule)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(rule()),
    };
    let number: u64 = text.strip_suffix(unit).unwrap_or_default().parse().map_err(|_| rule())?;
    match number.checked_mul(seconds) {
        Some(total) if (1..=10 * 366 * 24 * 60 * 60).contains(&total) => Ok(Duration::from_secs(total)),
        _ => Err("a duration is from a second to ten years".to_owned()),
    }
}
