//! Entity tags: what they are made from, and what they tell about the client.
//!
//! ```text
//!   W/"5f0c2a….918.77ab13…"
//!      │       │   └ fingerprint of the versions of the shared heads in the answer
//!      │       └ the revision of the user's own rows
//!      └ scope: the epoch of the installation, the resource with its query, the user it is about
//! ```
//!
//! So no tag of another user, route or query, or from before a restore, ever matches.

use crate::base::fingerprint::Fingerprint;
use crate::base::hex;
use crate::base::ids::UserId;
use crate::cache::Revision;
use crate::engine::heads::Versions;
use crate::http::params::IfNoneMatch;

/// What an answer was made from. Equal versions in one scope are equal answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Version {
    /// The revision of the user's own rows, which never goes down. Receipts have a number of their own.
    pub revision: Revision,
    /// A fingerprint of all else in the answer, such as [`Versions::fingerprint`].
    pub shared: u64,
}

impl Version {
    /// Of an answer that shows the user's own rows and these shared heads.
    #[must_use]
    pub fn new(revision: Revision, shared: Versions) -> Self {
        Self { revision, shared: shared.fingerprint }
    }
}

impl From<Revision> for Version {
    /// Of what depends on the user's own rows alone.
    fn from(revision: Revision) -> Self {
        Self { revision, shared: 0 }
    }
}

/// How long a tag is without its revision.
const AROUND_REVISION: usize = "W/\"0123456789abcdef..0123456789abcdef\"".len();

/// What tags belong to: an installation between two restores, a resource with its query, and the
/// user it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope(u64);

impl Scope {
    /// The scope of an answer about `user`; None where everybody who may see it sees the same.
    #[must_use]
    pub fn new(epoch: &str, resource: Fingerprint, user: Option<UserId>) -> Self {
        let mut scope = resource;
        scope.add(user.map_or(0, UserId::get));
        scope.add_bytes(epoch.as_bytes());
        Self(scope.finish())
    }

    /// The tag of a version: the same on every node, and weak, as bodies may be compressed on the
    /// way.
    #[must_use]
    pub fn tag(self, version: Version) -> String {
        let mut revision = itoa::Buffer::new();
        let revision = revision.format(version.revision);
        // Exactly as much room as it takes: of that, a header is made without a copy.
        let mut tag = String::with_capacity(AROUND_REVISION + revision.len());
        tag.push_str("W/\"");
        hex::push(&self.0.to_be_bytes(), &mut tag);
        tag.push('.');
        tag.push_str(revision);
        tag.push('.');
        hex::push(&version.shared.to_be_bytes(), &mut tag);
        tag.push('"');
        tag
    }

    /// The version in a tag, if it is one of this scope.
    fn version(self, tag: &str) -> Option<Version> {
        let inside = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')?;
        let (scope, rest) = inside.as_bytes().split_first_chunk()?;
        let (revision, shared) = rest.split_last_chunk()?;
        if hex::number(scope)? != self.0 {
            return None;
        }
        let revision = std::str::from_utf8(revision.strip_prefix(b".")?.strip_suffix(b".")?).ok()?;
        Some(Version { revision: revision.parse().ok()?, shared: hex::number(shared)? })
    }
}

/// What the client has, by its tags.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    scope: Scope,
    revision: Revision,
    shared: SeenShared,
}

/// The shared heads that the client's answers were made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenShared {
    /// It names none.
    None,
    /// All of its answers were made from these.
    Same(u64),
    /// It names several, or a tag that says nothing of them.
    Other,
}

impl Seen {
    /// By the tags of a request.
    #[must_use]
    pub fn by(tags: &IfNoneMatch, scope: Scope) -> Self {
        let mut seen = Self { scope, ..Self::revision_alone(0) };
        for version in tags.tags().map(|tag| scope.version(tag)) {
            seen.revision = seen.revision.max(version.map_or(0, |version| version.revision));
            seen.shared = match (seen.shared, version) {
                (SeenShared::None, Some(version)) => SeenShared::Same(version.shared),
                (SeenShared::Same(shared), Some(version)) if shared == version.shared => seen.shared,
                _ => SeenShared::Other,
            };
        }
        seen
    }

    /// No answer yet, but the user's own rows at this revision.
    #[must_use]
    pub fn revision_alone(revision: Revision) -> Self {
        Self { scope: Scope(0), revision, shared: SeenShared::None }
    }

    /// The highest revision of the user's own rows: what is older must not be shown.
    #[must_use]
    pub fn revision(self) -> Revision {
        self.revision
    }

    /// The tag that this node gives to a version.
    #[must_use]
    pub fn tag(self, version: Version) -> String {
        self.scope.tag(version)
    }

    /// Whether the client has an answer that was not made from these shared heads. Then nobody
    /// knows which of the two is newer: this node may be behind the one that answered.
    #[must_use]
    pub fn has_other(self, shared: Versions) -> bool {
        match self.shared {
            SeenShared::None => false,
            SeenShared::Same(seen) => seen != shared.fingerprint,
            SeenShared::Other => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn scope(epoch: &str, resource: &str, user: i64) -> Scope {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add_bytes(resource.as_bytes());
        Scope::new(epoch, fingerprint, Some(user.try_into().unwrap()))
    }

    fn shared(version: i64) -> Versions {
        let mut versions = Versions::default();
        versions.add(crate::engine::marks::Kind::BroadcastState, 0, version);
        versions
    }

    #[test]
    fn a_tag_is_of_one_epoch_one_resource_and_one_user() {
        let here = scope("a", "/badges", 42);
        let version = Version::new(7, shared(3));
        let tag = here.tag(version);
        assert_eq!(here.version(&tag), Some(version));
        assert_eq!(tag.capacity(), tag.len(), "a header takes it over as it is");
        assert_eq!(here.version(tag.trim_start_matches("W/")), Some(version), "also where a proxy made it strong");
        for other in [scope("b", "/badges", 42), scope("a", "/badges?cap=9", 42), scope("a", "/badges", 43)] {
            assert_ne!(other.tag(version), tag);
            assert_eq!(other.version(&tag), None);
        }
        for junk in ["\"\"", "\"7\"", "W/\"x.y.z\"", "*", "\"0123456789abcdef.7\"", "\"0123456789abcdef0123456789abcdef\""] {
            assert_eq!(here.version(junk), None, "{junk}");
        }
    }

    #[test]
    fn a_node_may_be_behind_whoever_has_another_tag() {
        let here = scope("a", "/badges", 42);
        let seen = |tags: &str, shared: Versions| {
            let tags = IfNoneMatch::parse(HeaderValue::from_str(tags).unwrap());
            let seen = Seen::by(&tags, here);
            (seen.revision(), seen.has_other(shared))
        };
        let tag = |revision, version| here.tag(Version::new(revision, shared(version)));
        assert_eq!(seen(&tag(7, 3), shared(3)), (7, false), "its own rows do not matter here");
        assert_eq!(seen(&tag(7, 3), shared(4)), (7, true), "nobody knows which is newer");
        assert_eq!(seen(&tag(7, 3), shared(2)), (7, true));
        assert_eq!(seen(&format!("{}, {}", tag(7, 3), tag(9, 4)), shared(3)), (9, true), "one of several is enough");
        assert_eq!(seen("\"junk\"", shared(3)), (0, true));
        assert_eq!(seen("*", shared(3)), (0, false), "any answer will do");
        assert!(!Seen::revision_alone(5).has_other(shared(3)));
    }
}
