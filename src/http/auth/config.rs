//! The settings of credentials.

use std::path::PathBuf;

use secrecy::SecretString;

/// The credentials that the server accepts. With none at all it runs open.
#[derive(Debug, Clone, Default)]
pub struct AuthConfig {
    /// Service keys, each `name:secret` or a bare secret of
    /// [`MIN_SERVICE_SECRET`](super::MIN_SERVICE_SECRET) characters or more, which is then named by
    /// its hash. One name may have several secrets.
    pub service_keys: Vec<SecretString>,
    /// The key with which end users' JWTs are signed (HS256), at least 32 bytes. At most one of
    /// this and the next two.
    pub jwt_secret: Option<SecretString>,
    /// The public key for what they are signed with (RS256, ES256 or EdDSA): a PEM, or the path of
    /// a file with it.
    pub jwt_public_key: Option<SecretString>,
    /// A file with a JWK Set of such keys, followed as it changes.
    pub jwks: Option<PathBuf>,
    /// When set, a JWT must have it in `aud`.
    pub jwt_audience: Option<String>,
    /// When set, a JWT must have it as `iss`.
    pub jwt_issuer: Option<String>,
}
