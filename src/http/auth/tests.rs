mod keys;

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::FromRef;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use http_body_util::BodyExt;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use secrecy::SecretString;
use serde_json::json;
use tower::ServiceExt;

use super::*;
use crate::http::path::{UserPath, Witness};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const NOW_S: i64 = 1_769_851_800;

fn auth(keys: &[&str], jwt: bool, audience: Option<&str>) -> Result<Auth, String> {
    let config = AuthConfig {
        service_keys: keys.iter().map(|key| SecretString::from(*key)).collect(),
        jwt_secret: jwt.then(|| SecretString::from(SECRET)),
        jwt_audience: audience.map(str::to_owned),
        ..AuthConfig::default()
    };
    Auth::new(&config, Clock::Manual(Arc::new(AtomicI64::new(NOW_S * 1000))))
}

fn token(algorithm: Algorithm, secret: &str, claims: &serde_json::Value) -> String {
    jsonwebtoken::encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret.as_bytes())).unwrap()
}

/// A token with another header, signed with the HMAC key or not at all.
fn forged(header: &serde_json::Value, claims: &serde_json::Value, signed: bool) -> String {
    let good = token(Algorithm::HS256, SECRET, claims);
    let mut parts = good.split('.').map(str::to_owned).collect::<Vec<_>>();
    parts[0] = base64_url(header.to_string().as_bytes());
    if signed { parts.join(".") } else { format!("{}.{}.", parts[0], parts[1]) }
}

fn base64_url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            text.push(char::from(DIGITS[(word >> (18 - 6 * at)) as usize & 63]));
        }
    }
    text
}

fn headers(value: &str) -> HeaderMap {
    HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())])
}

#[test]
fn keys_and_tokens_name_their_caller_and_all_else_is_401() {
    let auth = auth(&["web:s3cret-of-16-chars", "web:s3cret-of-16-chars-2", "bare-secret-of-16"], true, None).unwrap();
    let good = |claims| format!("Bearer {}", token(Algorithm::HS256, SECRET, &claims));
    let claims = json!({"sub": "42", "exp": NOW_S + 60});
    for (value, id) in [
        ("Bearer s3cret-of-16-chars".to_owned(), "service:web"),
        ("bearer  s3cret-of-16-chars-2".to_owned(), "service:web"),
        ("Bearer bare-secret-of-16".to_owned(), "service:2d23b6f2d86f"),
        (good(claims.clone()), "user:42"),
        (good(json!({"sub": "42", "exp": NOW_S - 29})), "user:42"),
        (good(json!({"sub": "42", "exp": NOW_S + 60, "aud": "elsewhere", "iss": "somebody"})), "user:42"),
        (good(json!({"sub": "42", "exp": NOW_S as f64 + 0.5, "nbf": NOW_S + 29})), "user:42"),
    ] {
        let found = auth.authenticate(&headers(&value)).map(|caller| caller.id());
        if id == "service:2d23b6f2d86f" {
            assert!(found.unwrap().strip_prefix("service:").is_some_and(|name| name.len() == 12));
        } else {
            assert_eq!(found.as_deref(), Ok(id), "{value}");
        }
    }
    let rs256 = json!({"alg": "RS256", "typ": "JWT"});
    for bad in [
        String::new(),
        "s3cret-of-16-chars".to_owned(),
        "Basic s3cret-of-16-chars".to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer s3cret-of-16-char".to_owned(),
        "Bearer web:s3cret-of-16-chars".to_owned(),
        "Bearer s3cret-of-16-chars s3cret-of-16-chars".to_owned(),
        "Bearer a.b.c".to_owned(),
        good(json!({"sub": "42", "exp": NOW_S - 30})),
        good(json!({"sub": "42", "exp": NOW_S + 60, "nbf": NOW_S + 31})),
        good(json!({"sub": "42", "exp": NOW_S + 60, "nbf": "soon"})),
        good(json!({"sub": "42", "exp": "never"})),
        good(json!({"sub": "42"})),
        good(json!({"exp": NOW_S + 60})),
        good(json!({"sub": "0", "exp": NOW_S + 60})),
        good(json!({"sub": 42, "exp": NOW_S + 60})),
        good(json!({"sub": "42", "exp": NOW_S + 60, "iss": ["somebody"]})),
        good(json!({"sub": "42", "exp": NOW_S + 60, "iss": 7})),
        format!("Bearer {}", token(Algorithm::HS256, "another secret of 32 bytes......", &claims)),
        format!("Bearer {}", token(Algorithm::HS512, SECRET, &claims)),
        format!("Bearer {}", forged(&json!({"alg": "none"}), &claims, false)),
        format!("Bearer {}", forged(&rs256, &claims, true)),
        format!("Bearer {}", forged(&json!({"alg": "HS256"}), &claims, false)),
    ] {
        let problem = auth.authenticate(&headers(&bad)).unwrap_err();
        assert_eq!(problem.code, Code::Unauthorized, "{bad}");
    }
    assert_eq!(auth.authenticate(&HeaderMap::new()).unwrap_err().code, Code::Unauthorized);
    let mut twice = headers("Bearer s3cret-of-16-chars");
    twice.append(header::AUTHORIZATION, "Bearer s3cret-of-16-chars".parse().unwrap());
    assert_eq!(auth.authenticate(&twice).unwrap_err().code, Code::Unauthorized);
}

#[test]
fn an_audience_is_required_once_configured_and_own_tokens_have_it() {
    let auth = auth(&[], true, Some("app")).unwrap();
    let user: UserId = "7".parse().unwrap();
    let own = auth.user_token(user, Duration::from_secs(60)).unwrap();
    assert_eq!(auth.authenticate(&headers(&format!("Bearer {own}"))), Ok(Caller::User { id: user }));
    for claims in [json!({"sub": "7", "exp": NOW_S + 60}), json!({"sub": "7", "exp": NOW_S + 60, "aud": "other"})] {
        let bad = token(Algorithm::HS256, SECRET, &claims);
        assert!(auth.authenticate(&headers(&format!("Bearer {bad}"))).is_err(), "{claims}");
    }
    assert!(auth.user_token(user, Duration::ZERO).is_err());
    assert!(super::Auth::new(&AuthConfig::default(), Clock::System).unwrap().user_token(user, Duration::from_secs(1)).is_err());
}

#[test]
fn bad_settings_are_refused_without_telling_the_secret() {
    for bad in [
        &["web:"][..],
        &[""],
        &["hush-of-15-char"],
        &["web:hush-of-15-char"],
        &["Web:hush-of-16-chars"],
        &[":hush-of-16-chars"],
        &["open:hush-of-16-chars"],
        &["a:hush-of-16-chars", "b:hush-of-16-chars"],
        &["a:hush of 16 chars"],
    ] {
        let why = auth(bad, false, None).unwrap_err();
        assert!(!why.contains("hush"), "{why}");
    }
    let short = AuthConfig { jwt_secret: Some("0123456789abcdef0123456789abcde".into()), ..AuthConfig::default() };
    assert!(Auth::new(&short, Clock::System).is_err());
    let no_secret = AuthConfig { jwt_audience: Some("app".into()), ..AuthConfig::default() };
    assert!(Auth::new(&no_secret, Clock::System).is_err());
    let config = AuthConfig { service_keys: vec!["web:hush-of-16-chars".into()], jwt_secret: Some(SECRET.into()), ..AuthConfig::default() };
    let shown = format!("{config:?} {:?}", Auth::new(&config, Clock::System).unwrap());
    assert!(!shown.contains("hush") && !shown.contains(SECRET), "{shown}");
}

#[test]
fn without_credentials_everybody_is_a_service() {
    let auth = Auth::new(&AuthConfig::default(), Clock::System).unwrap();
    assert!(auth.is_open());
    for headers in [HeaderMap::new(), headers("Basic whatever")] {
        assert_eq!(auth.authenticate(&headers).unwrap().id(), "open");
    }
}

async fn ask(path: &str, bearer: Option<&str>) -> (StatusCode, serde_json::Value) {
    let auth = Arc::new(auth(&["web:s3cret-of-16-chars"], true, None).unwrap());
    let badge = |path: UserPath| async move {
        let name = path.name("badge")?;
        Ok::<_, Problem>(json!({"user": path.user, "caller": path.caller.id(), "badge": name}).to_string())
    };
    let app = Router::new()
        .route("/v1/users/{user}/badges/{badge}/reset", get(badge))
        .route("/v1/service", get(|service: Service| async move { json!(service.name).to_string() }))
        .with_state(OnlyAuth(auth));
    let mut request = Request::get(path);
    if let Some(bearer) = bearer {
        request = request.header(header::AUTHORIZATION, format!("Bearer {bearer}"));
    }
    let response = app.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_user_may_name_itself_only_and_a_service_anyone_by_id() {
    let user = token(Algorithm::HS256, SECRET, &json!({"sub": "42", "exp": NOW_S + 60}));
    let (user, service) = (Some(user.as_str()), Some("s3cret-of-16-chars"));
    for (path, bearer, status, what) in [
        ("/v1/users/42/badges/like/reset", user, 200, json!({"user": "42", "caller": "user:42", "badge": "like"})),
        ("/v1/users/me/badges/like/reset", user, 200, json!({"user": "42", "caller": "user:42", "badge": "like"})),
        ("/v1/users/7/badges/a%2Eb/reset", service, 200, json!({"user": "7", "caller": "service:web", "badge": "a.b"})),
        ("/v1/users/7/badges/like/reset", user, 403, json!("forbidden")),
        ("/v1/users/me/badges/like/reset", service, 403, json!("forbidden")),
        ("/v1/users/7/badges/like/reset", None, 401, json!("unauthorized")),
        ("/v1/users/junk/badges/%ff/reset", None, 401, json!("unauthorized")),
        ("/v1/users/007/badges/like/reset", service, 400, json!("user")),
        ("/v1/users/junk/badges/like/reset", user, 400, json!("user")),
        ("/v1/users/7/badges/NO/reset", service, 400, json!("badge")),
        ("/v1/users/7/badges/%00/reset", service, 400, json!("badge")),
        ("/v1/users/7/badges/%ff/reset", service, 400, json!("badge")),
        ("/v1/users/%ff/badges/like/reset", service, 400, json!("user")),
        ("/v1/service", service, 200, json!("web")),
        ("/v1/service", user, 403, json!("forbidden")),
        ("/v1/service", None, 401, json!("unauthorized")),
    ] {
        let (found, body) = ask(path, bearer).await;
        assert_eq!(found.as_u16(), status, "{path}: {body}");
        let shown = match status {
            200 => &body,
            400 => &body["errors"][0]["pointer"],
            _ => &body["code"],
        };
        assert_eq!(*shown, what, "{path}: {body}");
    }
}

/// A state with which nobody hears who was seen.
#[derive(Clone)]
struct OnlyAuth(Arc<Auth>);

impl FromRef<OnlyAuth> for Arc<Auth> {
    fn from_ref(state: &OnlyAuth) -> Self {
        Self::clone(&state.0)
    }
}

impl FromRef<OnlyAuth> for Option<Arc<dyn Witness>> {
    fn from_ref(_: &OnlyAuth) -> Self {
        None
    }
}
