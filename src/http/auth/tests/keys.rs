//! Tokens signed with private keys: each algorithm, what must not pass for one, and files of keys.

use std::io;
use std::path::PathBuf;

use jsonwebtoken::jwk::Jwk;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivatePkcs1KeyDer, PrivatePkcs8KeyDer};
use serde_json::Value;

use super::*;
use crate::http::auth::jwks::KeyFile;
use crate::http::auth::keys::{from_jwks, from_pem};

const RSA: &str = include_str!("../../../../tests/keys/rsa.pem");
const RSA2: &str = include_str!("../../../../tests/keys/rsa2.pem");
const RSA_PUB: &str = include_str!("../../../../tests/keys/rsa.pub.pem");
const RSA1024_PUB: &str = include_str!("../../../../tests/keys/rsa1024.pub.pem");
const EC: &str = include_str!("../../../../tests/keys/ec.pem");
const EC_PUB: &str = include_str!("../../../../tests/keys/ec.pub.pem");
const ED: &str = include_str!("../../../../tests/keys/ed.pem");
const ED_PUB: &str = include_str!("../../../../tests/keys/ed.pub.pem");
const P384_PUB: &str = include_str!("../../../../tests/keys/p384.pub.pem");
const CERTIFICATE: &str = include_str!("../../../../tests/keys/certificate.pem");
const RSA_PKCS1: &str = include_str!("../../../../tests/keys/rsa.pkcs1.pem");

/// A private key, ready to sign.
fn private(algorithm: Algorithm, pem: &str) -> EncodingKey {
    let pkcs8 = || PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    match algorithm {
        Algorithm::RS256 | Algorithm::RS384 | Algorithm::PS256 => {
            EncodingKey::from_rsa_der(PrivatePkcs1KeyDer::from_pem_slice(pem.as_bytes()).unwrap().secret_pkcs1_der())
        }
        Algorithm::ES256 => EncodingKey::from_ec_der(pkcs8().secret_pkcs8_der()),
        Algorithm::EdDSA => EncodingKey::from_ed_der(pkcs8().secret_pkcs8_der()),
        other => panic!("no key for {other:?}"),
    }
}

fn signed(algorithm: Algorithm, pem: &str, kid: Option<&str>, claims: &Value) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
    jsonwebtoken::encode(&header, claims, &private(algorithm, pem)).unwrap()
}

/// The public half of a key as a JWK, with more members.
fn jwk(algorithm: Algorithm, pem: &str, more: &Value) -> Value {
    let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&private(algorithm, pem), algorithm).unwrap()).unwrap();
    jwk.as_object_mut().unwrap().remove("alg");
    jwk.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    jwk
}

fn set(jwks: &[Value]) -> String {
    json!({"keys": jwks}).to_string()
}

fn claims() -> Value {
    json!({"sub": "42", "exp": NOW_S + 60})
}

fn clock() -> Clock {
    Clock::Manual(Arc::new(AtomicI64::new(NOW_S * 1000)))
}

fn with_pem(pem: &str) -> Result<Auth, String> {
    Auth::new(&AuthConfig { jwt_public_key: Some(pem.into()), ..AuthConfig::default() }, clock())
}

/// A file of this test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("headmark-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn auth(&self) -> Result<Auth, String> {
        Auth::new(&AuthConfig { jwks: Some(self.0.clone()), ..AuthConfig::default() }, clock())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn passes(auth: &Auth, token: &str) -> bool {
    match auth.authenticate(&headers(&format!("Bearer {token}"))) {
        Ok(caller) => {
            assert_eq!(caller.id(), "user:42");
            true
        }
        Err(problem) => {
            assert_eq!((problem.code, &*problem.detail), (Code::Unauthorized, "The bearer token is invalid."), "one answer for all");
            false
        }
    }
}

const EACH: [(Algorithm, &str, &str); 3] =
    [(Algorithm::RS256, RSA, RSA_PUB), (Algorithm::ES256, EC, EC_PUB), (Algorithm::EdDSA, ED, ED_PUB)];

#[test]
fn a_public_key_verifies_its_own_algorithm_and_no_other() {
    for (algorithm, pem, public) in EACH {
        let file = Scratch::new(&format!("{algorithm:?}.pem"), public);
        for setting in [public.to_owned(), public.replace('\n', "\\n"), format!("\n {public}"), file.0.to_str().unwrap().to_owned()] {
            let auth = with_pem(&setting).unwrap();
            assert!(!auth.is_open());
            for (other, pem, _) in EACH {
                assert_eq!(
                    passes(&auth, &signed(other, pem, None, &claims())),
                    other == algorithm,
                    "{other:?} with a key for {algorithm:?}"
                );
            }
            assert!(passes(&auth, &signed(algorithm, pem, Some("any"), &claims())), "one key needs no kid");
        }
    }
    let auth = with_pem(RSA_PUB).unwrap();
    for (algorithm, pem) in [(Algorithm::RS256, RSA2), (Algorithm::RS384, RSA), (Algorithm::PS256, RSA)] {
        assert!(!passes(&auth, &signed(algorithm, pem, None, &claims())), "{algorithm:?}");
    }
}

/// A token that says another algorithm than it is signed with.
fn relabelled(token: &str, header: &Value) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    format!("{}.{rest}", base64_url(header.to_string().as_bytes()))
}

#[test]
fn a_public_key_is_never_a_shared_secret() {
    for (algorithm, pem, public) in EACH {
        let jwk = jwk(algorithm, pem, &json!({"kid": "a"}));
        let file = Scratch::new(&format!("confusion-{algorithm:?}.json"), &set(std::slice::from_ref(&jwk)));
        let der = rustls_pki_types::SubjectPublicKeyInfoDer::from_pem_slice(public.as_bytes()).unwrap();
        let good = signed(algorithm, pem, Some("a"), &claims());
        for auth in [with_pem(public).unwrap(), file.auth().unwrap()] {
            assert!(passes(&auth, &good));
            // Signed with what everybody knows of the key, in each form.
            for secret in [public.as_bytes(), public.trim().as_bytes(), &der, jwk.to_string().as_bytes()] {
                for kid in [None, Some("a".to_owned())] {
                    let header = Header { kid, ..Header::new(Algorithm::HS256) };
                    let token = jsonwebtoken::encode(&header, &claims(), &EncodingKey::from_secret(secret)).unwrap();
                    assert!(!passes(&auth, &token), "{algorithm:?}");
                }
            }
            for alg in ["HS256", "none", "None", "NONE", "", "RS384", "PS256", "ES384", "HS512"] {
                assert!(!passes(&auth, &relabelled(&good, &json!({"alg": alg, "kid": "a"}))), "{alg}");
            }
            let (unsigned, _) = good.rsplit_once('.').unwrap();
            assert!(!passes(&auth, &relabelled(&format!("{unsigned}."), &json!({"alg": "none", "kid": "a"}))));
            assert!(!passes(&auth, &format!("{unsigned}.")));
            // A key that the token brings along is nobody's.
            let own = Header {
                jwk: Some(Jwk::from_encoding_key(&private(Algorithm::RS256, RSA2), Algorithm::RS256).unwrap()),
                ..Header::new(Algorithm::RS256)
            };
            assert!(!passes(&auth, &jsonwebtoken::encode(&own, &claims(), &private(Algorithm::RS256, RSA2)).unwrap()));
        }
    }
    let why = Auth::new(&AuthConfig { jwt_secret: Some(RSA_PUB.into()), ..AuthConfig::default() }, clock()).unwrap_err();
    assert!(why.contains("HEADMARK_JWT_PUBLIC_KEY"), "{why}");
}

#[test]
fn an_extension_that_is_critical_is_refused() {
    let auth = with_pem(EC_PUB).unwrap();
    let header = |crit| Header { crit, ..Header::new(Algorithm::ES256) };
    for (crit, good) in [(None, true), (Some(vec!["b64".to_owned()]), false)] {
        let token = jsonwebtoken::encode(&header(crit), &claims(), &private(Algorithm::ES256, EC)).unwrap();
        assert_eq!(passes(&auth, &token), good);
    }
}

#[test]
fn claims_are_checked_whatever_signed_them() {
    let file = Scratch::new("claims.json", &set(&[jwk(Algorithm::EdDSA, ED, &json!({"kid": "a"}))]));
    let rules = AuthConfig { jwt_audience: Some("app".into()), jwt_issuer: Some("https://id.example".into()), ..AuthConfig::default() };
    let one = AuthConfig { jwt_public_key: Some(ED_PUB.into()), ..rules.clone() };
    let many = AuthConfig { jwks: Some(file.0.clone()), ..rules };
    let good = json!({"sub": "42", "exp": NOW_S + 60, "nbf": NOW_S, "aud": ["web", "app"], "iss": "https://id.example"});
    for config in [one, many] {
        let auth = Auth::new(&config, clock()).unwrap();
        let answer = |claims: &Value| auth.authenticate(&headers(&format!("Bearer {}", signed(Algorithm::EdDSA, ED, Some("a"), claims))));
        assert_eq!(answer(&good).unwrap().id(), "user:42");
        for (field, value, says) in [
            ("exp", json!(NOW_S - 31), "expired"),
            ("exp", json!(null), "token is invalid"),
            ("exp", json!("soon"), "token is invalid"),
            ("nbf", json!(NOW_S + 31), "not valid yet"),
            ("aud", json!("other"), "token is invalid"),
            ("aud", json!(null), "token is invalid"),
            ("iss", json!("https://other.example"), "token is invalid"),
            ("iss", json!(null), "token is invalid"),
            ("sub", json!("0"), "must be a user id"),
            ("sub", json!(42), "token is invalid"),
        ] {
            let mut claims = good.clone();
            claims[field] = value;
            let problem = answer(&claims).unwrap_err();
            assert!(problem.code == Code::Unauthorized && problem.detail.contains(says), "{claims}: {problem:?}");
        }
        let mut no_end = good.clone();
        no_end.as_object_mut().unwrap().remove("exp");
        assert!(answer(&no_end).is_err());
        let why = auth.user_token("42".parse().unwrap(), Duration::from_secs(60)).unwrap_err();
        assert!(why.contains("HEADMARK_JWT_SECRET only"), "{why}");
    }
}

#[test]
fn a_set_chooses_by_kid_and_by_what_is_unmistakable() {
    let file = Scratch::new(
        "choice.json",
        &set(&[
            jwk(Algorithm::RS256, RSA, &json!({"kid": "old", "alg": "RS256", "use": "sig"})),
            jwk(Algorithm::RS256, RSA2, &json!({"kid": "new", "key_ops": ["verify"]})),
            jwk(Algorithm::ES256, EC, &json!({"kid": "ec"})),
            jwk(Algorithm::EdDSA, ED, &json!({"alg": "Ed25519"})),
        ]),
    );
    let auth = file.auth().unwrap();
    for (algorithm, pem, kid, good) in [
        (Algorithm::RS256, RSA, Some("old"), true),
        (Algorithm::RS256, RSA2, Some("new"), true),
        (Algorithm::RS256, RSA, Some("new"), false),
        (Algorithm::RS256, RSA, Some("gone"), false),
        (Algorithm::RS256, RSA, Some("ec"), false),
        (Algorithm::RS256, RSA, Some(""), false),
        // Two keys could be meant.
        (Algorithm::RS256, RSA, None, false),
        (Algorithm::RS256, RSA2, None, false),
        (Algorithm::ES256, EC, Some("ec"), true),
        (Algorithm::ES256, EC, None, true),
        (Algorithm::ES256, EC, Some("old"), false),
        (Algorithm::EdDSA, ED, None, true),
        // The key has no name, so no token can name it.
        (Algorithm::EdDSA, ED, Some("ed"), false),
    ] {
        assert_eq!(passes(&auth, &signed(algorithm, pem, kid, &claims())), good, "{algorithm:?} {kid:?}");
    }
}

#[test]
fn keys_for_other_things_are_passed_over() {
    let good = jwk(Algorithm::RS256, RSA, &json!({"kid": "a"}));
    let n = jwk(Algorithm::RS256, RSA2, &json!({}))["n"].clone();
    let others = [
        (json!("key"), "not an object"),
        (jwk(Algorithm::RS256, RSA2, &json!({"use": "enc"})), "'use'"),
        (jwk(Algorithm::RS256, RSA2, &json!({"key_ops": ["sign"]})), "'key_ops'"),
        (jwk(Algorithm::RS256, RSA2, &json!({"alg": "RS512"})), "must be RS256"),
        (jwk(Algorithm::RS256, RSA2, &json!({"alg": "HS256"})), "must be RS256"),
        (jwk(Algorithm::RS256, RSA2, &json!({"alg": 256})), "'alg'"),
        (jwk(Algorithm::RS256, RSA2, &json!({"kid": 7})), "'kid'"),
        (jwk(Algorithm::RS256, RSA2, &json!({"d": "AQAB"})), "private"),
        (jwk(Algorithm::ES256, EC, &json!({"crv": "P-384"})), "must be RS256"),
        (jwk(Algorithm::ES256, EC, &json!({"x": "AAAA"})), "must be an RSA"),
        (jwk(Algorithm::ES256, EC, &json!({"x": "no base64!"})), "damaged"),
        (jwk(Algorithm::EdDSA, ED, &json!({"x": "AAAA"})), "not an Ed25519"),
        (jwk(Algorithm::EdDSA, ED, &json!({"crv": "X25519"})), "must be RS256"),
        (json!({"kty": "RSA", "n": n}), "missing"),
        (json!({"kty": "oct", "k": base64_url(SECRET.as_bytes()), "alg": "HS256"}), "private"),
        (json!({"kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA"}), "must be RS256"),
        (json!({}), "must be RS256"),
        // Half as long.
        (json!({"kty": "RSA", "e": "AQAB", "n": n.as_str().unwrap().chars().take(168).collect::<String>()}), "2048"),
    ];
    for (other, says) in others {
        let found = from_jwks(set(&[other.clone(), good.clone()]).as_bytes()).unwrap();
        assert_eq!((found.keys.len(), found.passed_over.len()), (1, 1), "{other}");
        assert!(found.passed_over[0].starts_with("keys[0]: ") && found.passed_over[0].contains(says), "{other}: {:?}", found.passed_over);
        let alone = from_jwks(set(&[other]).as_bytes()).unwrap_err();
        assert!(alone.contains("no key in it can verify tokens") && alone.contains(says), "{alone}");
    }
    for (bad, says) in [
        ("", "not JSON (line 1"),
        ("{\"keys\": [", "not JSON"),
        ("[]", "no list 'keys'"),
        ("{\"keys\": {}}", "no list 'keys'"),
        (&set(&[good.clone(), good.clone()]), "keys[1] has the 'kid' of another"),
        (&set(&vec![jwk(Algorithm::ES256, EC, &json!({})); 101]), "more than 100 keys"),
    ] {
        let why = from_jwks(bad.as_bytes()).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn what_is_no_usable_public_key_is_said_and_not_shown() {
    for (pem, says) in [
        (RSA, "openssl pkey -in FILE -pubout"),
        (EC, "private key"),
        (ED, "private key"),
        (CERTIFICATE, "openssl x509"),
        (RSA_PKCS1, "-RSAPublicKey_in"),
        (RSA1024_PUB, "2048"),
        (P384_PUB, "must be an RSA, P-256 or Ed25519 key"),
        ("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA!\n-----END PUBLIC KEY-----", "damaged"),
        ("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----", "must be an RSA"),
        ("-----BEGIN PUBLIC KEY-----", "damaged"),
        ("", "there is no PEM"),
        (&format!("{RSA_PUB}{EC_PUB}"), "several keys"),
    ] {
        let why = from_pem(pem).unwrap_err();
        assert!(why.contains(says), "{pem:.40}: {why}");
    }
    // A private key without its first line looks like a path.
    let (_, body) = ED.split_once('\n').unwrap();
    let secret = body.lines().next().unwrap();
    for setting in [ED, secret, body] {
        let why = with_pem(setting).unwrap_err();
        assert!(why.contains("HEADMARK_JWT_PUBLIC_KEY") && !why.contains(secret), "{why}");
    }
    let large = Scratch::new("large.pem", &"x".repeat(65 * 1024));
    let why = with_pem(large.0.to_str().unwrap()).unwrap_err();
    assert!(why.contains("more than 65536 bytes"), "{why}");
    let nowhere = PathBuf::from("/nowhere/keys.json");
    let why = Auth::new(&AuthConfig { jwks: Some(nowhere), ..AuthConfig::default() }, clock()).unwrap_err();
    assert!(why.contains("HEADMARK_JWKS: cannot read /nowhere/keys.json"), "{why}");
}

#[test]
fn one_kind_of_key_is_configured_at_a_time() {
    let file = Scratch::new("one.json", &set(&[jwk(Algorithm::EdDSA, ED, &json!({}))]));
    let (secret, key, jwks) = (Some(SecretString::from(SECRET)), Some(SecretString::from(ED_PUB)), Some(file.0.clone()));
    for (jwt_secret, jwt_public_key, jwks) in [
        (secret.clone(), key.clone(), None),
        (secret.clone(), None, jwks.clone()),
        (None, key.clone(), jwks.clone()),
        (secret.clone(), key.clone(), jwks.clone()),
    ] {
        let why = Auth::new(&AuthConfig { jwt_secret, jwt_public_key, jwks, ..AuthConfig::default() }, clock()).unwrap_err();
        assert!(why.starts_with("more than one of HEADMARK_JWT_SECRET, HEADMARK_JWT_PUBLIC_KEY and HEADMARK_JWKS"), "{why}");
    }
}

#[test]
fn a_set_that_cannot_be_used_leaves_the_keys_from_before() {
    let (old, new) = (jwk(Algorithm::ES256, EC, &json!({"kid": "a"})), jwk(Algorithm::EdDSA, ED, &json!({"kid": "a"})));
    let file = Scratch::new("reload.json", &set(std::slice::from_ref(&old)));
    let keys = KeyFile::open(&file.0).unwrap();
    let holds = |algorithm| keys.keys().find(algorithm, Some("a")).is_some();
    let absent = || io::Error::from(io::ErrorKind::NotFound);
    let unusable = set(&[json!({"kid": "a"})]).into_bytes();
    for (found, is_told) in [
        (Ok("{\"keys\": [".into()), true),
        (Ok(b"{\"kid\": \"b\"}".to_vec()), true),
        (Ok(unusable.clone()), true),
        (Ok(unusable), false),
        (Err(absent()), true),
        (Err(absent()), false),
        (Ok(b"\xff".to_vec()), true),
    ] {
        assert_eq!(keys.take(found), is_told, "the same is not told each time");
        assert!(holds(Algorithm::ES256));
    }
    assert!(!keys.take(Ok(set(&[new]).into_bytes())));
    assert!(holds(Algorithm::EdDSA) && !holds(Algorithm::ES256));
    assert!(!keys.take(Ok(set(&[old]).into_bytes())));
    assert!(holds(Algorithm::ES256) && !holds(Algorithm::EdDSA));
    assert!(keys.take(Ok(set(&[]).into_bytes())));
    assert!(!holds(Algorithm::ES256), "an empty set trusts no key");
    std::fs::write(&file.0, set(&[])).unwrap();
    assert!(KeyFile::open(&file.0).err().is_some_and(|why| why.contains("no keys")), "but none is a mistake at the start");
}

#[test]
fn a_key_that_a_set_no_longer_lists_is_dropped_though_no_other_one_can_be_used() {
    let start = || {
        [
            jwk(Algorithm::ES256, EC, &json!({"kid": "a"})),
            jwk(Algorithm::RS256, RSA, &json!({"kid": "b"})),
            jwk(Algorithm::EdDSA, ED, &json!({})),
        ]
    };
    let [a, b, unnamed] = start();
    let other = |kid: &str| jwk(Algorithm::RS256, RSA2, &json!({"kid": kid, "use": "enc"}));
    let many = (0..101).map(|n| jwk(Algorithm::ES256, EC, &json!({"kid": format!("{n}")}))).collect::<Vec<_>>();
    let file = Scratch::new("dropped.json", &set(&start()));
    for (found, left) in [
        (vec![other("a"), json!({})], [true, false, true]),
        (vec![other("b")], [false, true, false]),
        (vec![other("c"), json!({"kid": 7}), json!("a")], [false; 3]),
        (vec![a.clone(), a], [true, false, false]),
        (many.clone(), [false; 3]),
        ([many, vec![b, unnamed]].concat(), [false, true, true]),
    ] {
        let auth = file.auth().unwrap();
        let passing = || {
            let tokens = [(Algorithm::ES256, EC, Some("a")), (Algorithm::RS256, RSA, Some("b")), (Algorithm::EdDSA, ED, None)];
            tokens.map(|(algorithm, pem, kid)| passes(&auth, &signed(algorithm, pem, kid, &claims())))
        };
        assert_eq!(passing(), [true; 3]);
        let keys = auth.tokens.as_ref().unwrap().file().unwrap();
        assert!(keys.take(Ok(set(&found).into_bytes())), "it is told");
        assert_eq!(passing(), left, "{found:?}");
        assert!(!auth.is_open() && auth.authenticate(&HeaderMap::new()).is_err(), "without keys nobody is let in");
        keys.take(Ok(set(&start()).into_bytes()));
        assert_eq!(passing(), [true; 3], "a set that is right again is in use");
    }
}

#[test]
fn what_is_wrong_with_a_set_is_told_again() {
    let file = Scratch::new("reminder.json", &set(&[jwk(Algorithm::ES256, EC, &json!({"kid": "a"}))]));
    let mut keys = KeyFile::open(&file.0).unwrap();
    keys.remind_every(Duration::from_millis(20));
    assert!(keys.take(Ok(b"{".to_vec())) && !keys.take(Ok(b"{".to_vec())));
    std::thread::sleep(Duration::from_millis(30));
    assert!(keys.take(Ok(b"{".to_vec())), "it still cannot be used");
}

#[tokio::test]
async fn the_file_is_followed() {
    let (old, new) = (jwk(Algorithm::ES256, EC, &json!({"kid": "a"})), jwk(Algorithm::EdDSA, ED, &json!({"kid": "b"})));
    let file = Scratch::new("follow.json", &set(&[old]));
    let keys = KeyFile::open(&file.0).unwrap();
    let stop = CancellationToken::new();
    let change = async {
        std::fs::write(&file.0, set(&[new])).unwrap();
        while keys.keys().find(Algorithm::EdDSA, Some("b")).is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let both = async { tokio::join!(keys.follow(Duration::from_millis(5), stop.clone()), change) };
    tokio::time::timeout(Duration::from_secs(20), both).await.expect("the new keys, and an end when told to");
}
