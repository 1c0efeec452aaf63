//! How end users' tokens (JWTs) are checked and made.
//!
//! A token is looked at in this order: which key it is for, its signature, its audience and issuer,
//! its times, its `sub`. Until the signature holds, every refusal is the same sentence.

use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::config::AuthConfig;
use super::jwks::KeyFile;
use super::keys::{self, Key, PEM_BEGIN};
use crate::base::clock::Clock;
use crate::base::error::{Code, Problem};
use crate::base::ids::UserId;

/// One sentence for everything that is refused, so that it does not tell which part was close.
pub(super) const REFUSED: &str = "The bearer token is invalid.";
/// How far the clock of anyone who signs tokens may be off.
const LEEWAY_S: f64 = 30.0;
/// RFC 7518 wants an HS256 key at least as long as the hash.
const MIN_JWT_SECRET_BYTES: usize = 32;
/// A public key in PEM has some hundred bytes.
const MAX_PEM_BYTES: u64 = 64 * 1024;

pub(super) fn unauthorized(detail: &'static str) -> Problem {
    Problem::new(Code::Unauthorized, detail)
}

/// Where the keys come from.
enum Keys {
    /// The one of HEADMARK_JWT_SECRET or HEADMARK_JWT_PUBLIC_KEY, for every token, whatever `kid`
    /// it has.
    One(Box<Key>),
    /// Those of HEADMARK_JWKS, by their `kid`.
    Set(KeyFile),
}

/// What is asked of every token, whichever key it is for.
struct Rules {
    audience: Option<String>,
    issuer: Option<String>,
    hs256: Validation,
    rs256: Validation,
    es256: Validation,
    eddsa: Validation,
}

/// How end users' tokens are checked and made.
pub(super) struct Tokens {
    keys: Keys,
    rules: Rules,
    /// With HEADMARK_JWT_SECRET alone: who has a public key can sign nothing.
    signing: Option<EncodingKey>,
}

/// What a token must hold. Numbers may have fractions (RFC 7519, NumericDate).
#[derive(Deserialize)]
struct ClaimsIn {
    sub: String,
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
    /// RFC 7519 knows one issuer. The library would take a list, of which any entry may fit.
    #[serde(default, rename = "iss")]
    _iss: Option<String>,
}

/// What is put into a token made here.
#[derive(Serialize)]
struct ClaimsOut<'a> {
    sub: String,
    iat: i64,
    exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
}

impl Tokens {
    /// Reads the key or the keys that are configured; none without any.
    ///
    /// # Errors
    /// A sentence for the operator, without anything of a key in it.
    pub(super) fn new(config: &AuthConfig) -> Result<Option<Self>, String> {
        let (keys, signing) = match (&config.jwt_secret, &config.jwt_public_key, &config.jwks) {
            (None, None, None) if config.jwt_audience.is_some() || config.jwt_issuer.is_some() => {
                return Err("a JWT audience or issuer is set, but no JWT secret, public key or JWKS".to_owned());
            }
            (None, None, None) => return Ok(None),
            (Some(secret), None, None) => {
                let (key, signing) = shared_secret(secret)?;
                (Keys::One(Box::new(key)), Some(signing))
            }
            (None, Some(key), None) => (Keys::One(Box::new(public_key(key)?)), None),
            (None, None, Some(path)) => (Keys::Set(KeyFile::open(path)?), None),
            _ => {
                return Err("more than one of HEADMARK_JWT_SECRET, HEADMARK_JWT_PUBLIC_KEY and HEADMARK_JWKS is set: keep the one that \
                            users' tokens are signed for (a JWKS may hold several public keys)"
                    .to_owned());
            }
        };
        Ok(Some(Self { keys, rules: Rules::new(config), signing }))
    }

    /// The file whose changes are to be followed.
    pub(super) fn file(&self) -> Option<&KeyFile> {
        match &self.keys {
            Keys::One(_) => None,
            Keys::Set(file) => Some(file),
        }
    }

    /// The user whose token this is.
    pub(super) fn user(&self, token: &str, clock: &Clock) -> Result<UserId, Problem> {
        let ClaimsIn { sub, exp, nbf, .. } = self.claims(token).map_err(|reason| {
            // Which check failed helps anyone who set the server up, and nobody else.
            tracing::debug!(reason, "a user's token was refused");
            unauthorized(REFUSED)
        })?;
        let now_s = Duration::from_millis(u64::try_from(clock.now().0).unwrap_or_default()).as_secs_f64();
        if exp + LEEWAY_S <= now_s {
            return Err(unauthorized("The token has expired."));
        }
        if nbf.is_some_and(|nbf| nbf > now_s + LEEWAY_S) {
            return Err(unauthorized("The token is not valid yet."));
        }
        sub.parse().map_err(|_| unauthorized("The token's `sub` must be a user id."))
    }

    fn claims(&self, token: &str) -> Result<ClaimsIn, String> {
        let header = jsonwebtoken::decode_header(token).map_err(|error| error.to_string())?;
        if header.crit.is_some() {
            // RFC 7515: who does not understand an extension that the signer calls critical must
            // refuse.
            return Err("it has a 'crit' header".to_owned());
        }
        let check = |key: &Key| {
            let rules = self.rules.of(key.algorithm).ok_or("the key is of another algorithm")?;
            jsonwebtoken::decode(token, &key.decoding, rules).map(|found| found.claims).map_err(|error| error.to_string())
        };
        match &self.keys {
            Keys::One(key) => check(key),
            Keys::Set(file) => match file.keys().find(header.alg, header.kid.as_deref()) {
                Some(key) => check(key),
                None => Err("no key of the JWKS is for it".to_owned()),
            },
        }
    }

    /// Makes a token.
    ///
    /// # Errors
    /// A sentence for the operator: no secret to sign with, or a lifetime out of range.
    pub(super) fn make(&self, user: UserId, ttl: Duration, clock: &Clock) -> Result<String, String> {
        let signing = self.signing.as_ref().ok_or("tokens can be made with HEADMARK_JWT_SECRET only: a public key signs nothing")?;
        let now_s = clock.now().0.div_euclid(1000);
        let ttl_s = i64::try_from(ttl.as_secs()).ok().filter(|s| *s > 0).ok_or("the lifetime must be at least a second")?;
        let exp = now_s.checked_add(ttl_s).ok_or("the lifetime is too long")?;
        let (aud, iss) = (self.rules.audience.as_deref(), self.rules.issuer.as_deref());
        let claims = ClaimsOut { sub: user.to_string(), iat: now_s, exp, aud, iss };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, signing).map_err(|error| format!("cannot sign: {error}"))
    }
}

impl Rules {
    fn new(config: &AuthConfig) -> Self {
        let of = |algorithm| validation(algorithm, config);
        Self {
            audience: config.jwt_audience.clone(),
            issuer: config.jwt_issuer.clone(),
            hs256: of(Algorithm::HS256),
            rs256: of(Algorithm::RS256),
            es256: of(Algorithm::ES256),
            eddsa: of(Algorithm::EdDSA),
        }
    }

    /// The rules with this algorithm as the only one. It is the key's and never the token's: else a
    /// public key could pass for a shared secret.
    fn of(&self, algorithm: Algorithm) -> Option<&Validation> {
        match algorithm {
            Algorithm::HS256 => Some(&self.hs256),
            Algorithm::RS256 => Some(&self.rs256),
            Algorithm::ES256 => Some(&self.es256),
            Algorithm::EdDSA => Some(&self.eddsa),
            _ => None,
        }
    }
}

fn validation(algorithm: Algorithm, config: &AuthConfig) -> Validation {
    let mut validation = Validation::new(algorithm);
    // Times are checked against the injected clock, after the signature; `exp` must be there all
    // the same.
    validation.validate_exp = false;
    validation.validate_nbf = false;
    let mut required = vec!["exp", "sub"];
    validation.validate_aud = config.jwt_audience.is_some();
    if let Some(audience) = &config.jwt_audience {
        validation.set_audience(&[audience]);
        required.push("aud");
    }
    if let Some(issuer) = &config.jwt_issuer {
        validation.set_issuer(&[issuer]);
        required.push("iss");
    }
    validation.set_required_spec_claims(&required);
    validation
}

fn shared_secret(secret: &SecretString) -> Result<(Key, EncodingKey), String> {
    let secret = secret.expose_secret().as_bytes();
    if secret.len() < MIN_JWT_SECRET_BYTES {
        return Err(format!("the JWT secret is shorter than {MIN_JWT_SECRET_BYTES} bytes, which HS256 needs"));
    }
    if secret.trim_ascii_start().starts_with(PEM_BEGIN.as_bytes()) {
        // Anybody may know a public key, and could sign with it as a secret.
        return Err("the JWT secret is a PEM: a public key goes into HEADMARK_JWT_PUBLIC_KEY".to_owned());
    }
    let key = Key { kid: None, algorithm: Algorithm::HS256, decoding: DecodingKey::from_secret(secret) };
    Ok((key, EncodingKey::from_secret(secret)))
}

/// `setting` is a PEM or a file of one. It may be a private key by mistake, so that no error quotes
/// it.
fn public_key(setting: &SecretString) -> Result<Key, String> {
    let setting = setting.expose_secret().trim();
    let found = if setting.starts_with(PEM_BEGIN) {
        // In many an environment file a value has but one line.
        keys::from_pem(&setting.replace("\\n", "\n"))
    } else {
        let pem = crate::base::secret::read_file(std::path::Path::new(setting), MAX_PEM_BYTES);
        keys::from_pem(&String::from_utf8_lossy(
            &pem.map_err(|error| format!("HEADMARK_JWT_PUBLIC_KEY: cannot read the file that it names: {error}"))?,
        ))
    };
    found.map_err(|why| format!("HEADMARK_JWT_PUBLIC_KEY cannot be used: {why}"))
}
