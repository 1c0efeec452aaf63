//! End users' tokens signed with private keys: a public key, and a file of them that changes while
//! the server runs.

use std::path::PathBuf;

use headmark::base::clock::Clock;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivatePkcs1KeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

use crate::both_tiers;
use crate::support::{JWT_SECRET, Process, Tier, World, eventually_within, refusal};

const RSA_PUB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/rsa.pub.pem");

fn rsa() -> EncodingKey {
    EncodingKey::from_rsa_der(PrivatePkcs1KeyDer::from_pem_slice(include_bytes!("../keys/rsa.pem")).unwrap().secret_pkcs1_der())
}

fn ed() -> EncodingKey {
    EncodingKey::from_ed_der(PrivatePkcs8KeyDer::from_pem_slice(include_bytes!("../keys/ed.pem")).unwrap().secret_pkcs8_der())
}

fn token(algorithm: Algorithm, key: &EncodingKey, kid: Option<&str>, more: &Value) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
    let mut claims = json!({"sub": "42", "exp": Clock::System.now().0 / 1000 + 600});
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    jsonwebtoken::encode(&header, &claims, key).unwrap()
}

fn write_set(path: &PathBuf, keys: &[(&str, &EncodingKey, Algorithm)]) {
    let jwks = keys.iter().map(|(kid, key, algorithm)| {
        let mut jwk = serde_json::to_value(Jwk::from_encoding_key(key, *algorithm).unwrap()).unwrap();
        jwk["kid"] = json!(kid);
        jwk
    });
    std::fs::write(path, json!({"keys": jwks.collect::<Vec<_>>()}).to_string()).unwrap();
}

both_tiers! {
    async fn a_public_key_lets_users_in_and_nobody_else(world: World) {
        let node = world
            .node_with(&["--service-keys", "s3cret-of-the-suite", "--jwt-public-key", RSA_PUB, "--jwt-audience", "app", "--jwt-issuer", "me"])
            .await;
        node.service().post("/v1/users/42/badges/mention/increment", &json!({"by": 3})).await.ok();
        let named = json!({"aud": "app", "iss": "me"});
        let alice = node.client.with_bearer(&token(Algorithm::RS256, &rsa(), None, &named));
        assert_eq!(alice.get("/v1/users/me/badges").await.ok()["total"], 3);
        alice.get("/v1/users/43/badges").await.problem(403, "forbidden");
        alice.post("/v1/users/42/badges/mention/increment", &json!({})).await.problem(403, "forbidden");
        let public = std::fs::read(RSA_PUB).unwrap();
        for bad in [
            token(Algorithm::RS256, &rsa(), None, &json!({"aud": "other", "iss": "me"})),
            token(Algorithm::RS256, &rsa(), None, &json!({"aud": "app", "iss": "other"})),
            token(Algorithm::RS256, &rsa(), None, &json!({"aud": "app", "iss": "me", "exp": 1})),
            token(Algorithm::EdDSA, &ed(), None, &named),
            token(Algorithm::HS256, &EncodingKey::from_secret(&public), None, &named),
        ] {
            node.client.with_bearer(&bad).get("/v1/users/42/badges").await.problem(401, "unauthorized");
        }
        node.stop().await;
    }

    async fn keys_are_exchanged_while_the_server_runs(world: World) {
        let path = world.dir.join("keys.json");
        write_set(&path, &[("first", &rsa(), Algorithm::RS256)]);
        let node = world.node_with(&["--jwks", path.to_str().unwrap()]).await;
        let first = node.client.with_bearer(&token(Algorithm::RS256, &rsa(), Some("first"), &json!({})));
        let second = node.client.with_bearer(&token(Algorithm::EdDSA, &ed(), Some("second"), &json!({})));
        first.summary(42).await;
        second.get("/v1/users/42/badges").await.problem(401, "unauthorized");
        write_set(&path, &[("second", &ed(), Algorithm::EdDSA)]);
        eventually_within(30, "the second key is in use", async || second.get("/v1/users/42/badges").await.status == 200).await;
        first.get("/v1/users/42/badges").await.problem(401, "unauthorized");
        node.stop().await;
    }
}

#[tokio::test]
async fn a_public_key_is_a_credential_and_a_bad_one_is_told_at_the_start() {
    let world = World::new(Tier::Embedded).await;
    let dir = world.dir.to_str().unwrap();
    let anywhere = ["--data-dir", dir, "--listen", "0.0.0.0:0"];
    for (variable, value, says) in [
        ("HEADMARK_JWT_PUBLIC_KEY", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/rsa1024.pub.pem"), "2048"),
        ("HEADMARK_JWT_PUBLIC_KEY", include_str!("../keys/ed.pem"), "it is a private key"),
        ("HEADMARK_JWKS", RSA_PUB, "it is not JSON"),
    ] {
        let why = refusal(&anywhere, &[(variable, value)]).await;
        assert!(why.contains(variable) && why.contains(says), "{why}");
    }
    let both = [("HEADMARK_JWT_PUBLIC_KEY", RSA_PUB), ("HEADMARK_JWT_SECRET", JWT_SECRET)];
    let why = refusal(&anywhere, &both).await;
    assert!(why.contains("more than one of"), "{why}");
    // In the environment, in one line.
    let pem = std::fs::read_to_string(RSA_PUB).unwrap().replace('\n', "\\n");
    let node = Process::start(&anywhere.map(String::from), &[("HEADMARK_JWT_PUBLIC_KEY", &pem)]).await;
    let client = crate::support::Client::new(&node.base.replace("0.0.0.0", "127.0.0.1"));
    client.get("/v1/users/42/badges").await.problem(401, "unauthorized");
    client.with_bearer(&token(Algorithm::RS256, &rsa(), None, &json!({}))).summary(42).await;
}
