//! The public keys that users' tokens are verified with, out of a PEM or a JWK Set.
//!
//! A key brings its one algorithm: the token's own `alg` only ever has to agree with it. To take
//! another kind of key: a way to it in [`from_pem`] and [`from_jwk`], and its checks in
//! [`checked`].

use aws_lc_rs::rsa;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Map, Value};

/// RFC 7518 wants no shorter RSA key; longer than the other, one signature would cost too much.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// The most keys of a set that are used: each token is looked up among them.
const MAX_KEYS: usize = 100;

/// How a PEM begins.
pub(super) const PEM_BEGIN: &str = "-----BEGIN";

/// A key, with the one algorithm that it is good for.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// Its name in a set.
    pub(super) kid: Option<String>,
    pub(super) algorithm: Algorithm,
    pub(super) decoding: DecodingKey,
}

/// What could be used of a JWK Set.
#[derive(Debug)]
pub(super) struct KeySet {
    pub(super) keys: Vec<Key>,
    /// Of each key that was passed over, its place and why.
    pub(super) passed_over: Vec<String>,
}

/// The key in a PEM. Errors say what it is instead, and never show it.
pub(super) fn from_pem(text: &str) -> Result<Key, &'static str> {
    let label = text.split_once(PEM_BEGIN).map_or("", |(_, rest)| rest.split_once("-----").map_or("", |(label, _)| label.trim()));
    match label {
        "PUBLIC KEY" => {}
        "" => return Err("there is no PEM in it, which begins with -----BEGIN PUBLIC KEY-----"),
        "CERTIFICATE" => return Err("it is a certificate; `openssl x509 -in FILE -noout -pubkey` takes the key out"),
        "RSA PUBLIC KEY" => return Err("it is in an older form; `openssl rsa -RSAPublicKey_in -in FILE -pubout` makes the usual one"),
        label if label.contains("PRIVATE KEY") => {
            return Err(
                "it is a private key, which only the maker of tokens may have; `openssl pkey -in FILE -pubout` makes the public one",
            );
        }
        _ => return Err("it is not a public key in PEM, which begins with -----BEGIN PUBLIC KEY-----"),
    }
    let mut found = SubjectPublicKeyInfoDer::pem_slice_iter(text.as_bytes());
    let Some(Ok(der)) = found.next() else { return Err("its PEM is damaged") };
    if found.next().is_some() {
        return Err("there are several keys in it; HEADMARK_JWKS takes several");
    }
    let (algorithm, decoding) = if let Ok(key) = rsa::PublicKey::from_der(&der) {
        let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(&key);
        (Algorithm::RS256, DecodingKey::from_rsa_raw_components(&n, &e))
    } else if ParsedPublicKey::new(&ED25519, &der).is_ok() {
        (Algorithm::EdDSA, DecodingKey::from_ed_der(&der))
    } else {
        (Algorithm::ES256, DecodingKey::from_ec_der(&der))
    };
    checked(algorithm, decoding, None)
}

/// The keys of a JWK Set (RFC 7517) that can verify tokens; those for other purposes are passed
/// over.
pub(super) fn from_jwks(text: &[u8]) -> Result<KeySet, String> {
    // The parser's own words could quote the file.
    let set: Value =
        serde_json::from_slice(text).map_err(|error| format!("it is not JSON (line {}, column {})", error.line(), error.column()))?;
    let Some(jwks) = set.get("keys").and_then(Value::as_array) else { return Err("it has no list 'keys', as a JWK Set has".to_owned()) };
    let (mut keys, mut passed_over) = (Vec::<Key>::new(), Vec::new());
    for (at, jwk) in jwks.iter().enumerate() {
        match jwk.as_object().ok_or("it is not an object").and_then(from_jwk) {
            Ok(key) if keys.iter().any(|known| known.kid.is_some() && (&known.kid, known.algorithm) == (&key.kid, key.algorithm)) => {
                return Err(format!("keys[{at}] has the 'kid' of another key"));
            }
            Ok(key) => keys.push(key),
            Err(why) => passed_over.push(format!("keys[{at}]: {why}")),
        }
    }
    // An empty one says that no key is trusted any more.
    if keys.is_empty() && !passed_over.is_empty() {
        let reasons = passed_over.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("; ");
        return Err(format!("no key in it can verify tokens ({reasons})"));
    }
    if keys.len() > MAX_KEYS {
        return Err(format!("it has more than {MAX_KEYS} keys"));
    }
    Ok(KeySet { keys, passed_over })
}

/// The `kid` of each key in a JWK Set, whether or not the key can be used; None of one without. None where
/// it is not a JWK Set.
pub(super) fn listed_names(text: &[u8]) -> Option<Vec<Option<String>>> {
    let set: Value = serde_json::from_slice(text).ok()?;
    let jwks = set.get("keys")?.as_array()?.iter().filter_map(Value::as_object);
    let name = |jwk: &Map<String, Value>| match jwk.get("kid") {
        None => Some(None),
        Some(kid) => kid.as_str().map(|kid| Some(kid.to_owned())),
    };
    Some(jwks.filter_map(name).collect())
}

fn from_jwk(jwk: &Map<String, Value>) -> Result<Key, &'static str> {
    let text = |field: &str| jwk.get(field).and_then(Value::as_str);
    let need = |field: &str| text(field).ok_or("a part of the key is missing");
    if jwk.get("use").is_some_and(|purpose| purpose != "sig") {
        return Err("its 'use' is not 'sig'");
    }
    if let Some(uses) = jwk.get("key_ops")
        && !uses.as_array().is_some_and(|uses| uses.iter().any(|one| one == "verify"))
    {
        return Err("its 'key_ops' has no 'verify'");
    }
    if jwk.contains_key("d") || jwk.contains_key("k") {
        return Err("it is private; leave only public keys here");
    }
    if jwk.get("kid").is_some_and(|kid| !kid.is_string()) {
        return Err("its 'kid' must be a string");
    }
    if jwk.get("alg").is_some_and(|alg| !alg.is_string()) {
        return Err("its 'alg' must be a string");
    }
    // Without `alg`, the algorithm follows from the kind of key. `Ed25519` is the newer name for
    // what is done here under `EdDSA`.
    let (algorithm, decoding) = match (text("kty"), text("crv"), text("alg")) {
        (Some("RSA"), _, None | Some("RS256")) => (Algorithm::RS256, DecodingKey::from_rsa_components(need("n")?, need("e")?)),
        (Some("EC"), Some("P-256"), None | Some("ES256")) => (Algorithm::ES256, DecodingKey::from_ec_components(need("x")?, need("y")?)),
        (Some("OKP"), Some("Ed25519"), None | Some("EdDSA" | "Ed25519")) => (Algorithm::EdDSA, DecodingKey::from_ed_components(need("x")?)),
        _ => return Err("its algorithm must be RS256, ES256 or EdDSA (Ed25519)"),
    };
    checked(algorithm, decoding.map_err(|_| "it is damaged")?, text("kid").map(str::to_owned))
}

/// Looks at what a key is made of now, since a bad one would otherwise only refuse every token.
fn checked(algorithm: Algorithm, decoding: DecodingKey, kid: Option<String>) -> Result<Key, &'static str> {
    match (algorithm, decoding.kind()) {
        (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            let parts = RsaPublicKeyComponents { n, e };
            parts.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256).map_err(|_| "it is not an RSA key")?;
            let unused = n.first().map_or(0, |first| first.leading_zeros());
            let bits = (n.len() * 8).saturating_sub(usize::try_from(unused).unwrap_or_default());
            if !RSA_BITS.contains(&bits) {
                return Err("an RSA key must have 2048 to 8192 bits");
            }
        }
        (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
            ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).map_err(|_| "it must be an RSA, P-256 or Ed25519 key")?;
        }
        (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
            ParsedPublicKey::new(&ED25519, point).map_err(|_| "it is not an Ed25519 key")?;
        }
        _ => return Err("its algorithm must be RS256, ES256 or EdDSA (Ed25519)"),
    }
    Ok(Key { kid, algorithm, decoding })
}
