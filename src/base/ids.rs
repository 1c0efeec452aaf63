//! Newtypes for everything that comes from outside: parsed once, at the edge, and valid from then
//! on.
//!
//! To add one: a struct with a private field, [`std::str::FromStr`] for paths and queries, serde
//! for bodies, a schema for OpenAPI.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// Why a text is not an id or a name; the caller sees this rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid(pub &'static str);

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Invalid {}

const USER_ID_RULE: Invalid = Invalid("must be a whole number from 1 to 9223372036854775807, without leading zeros");
const CLIENT_ID_RULE: Invalid = Invalid("must have 1 to 128 characters of A-Z, a-z, 0-9, '.', '_', ':', '-'");
const NOTIFICATION_ID_RULE: Invalid = Invalid("must be a whole number from 1 to 9223372036854775807, without leading zeros");
const GROUP_ID_RULE: Invalid = Invalid("must be a whole number from 1 to 9223372036854775807, without leading zeros");
const NAME_RULE: Invalid = Invalid("must have 1 to 64 characters of a-z, 0-9, '_', '.', '-', and begin with a letter or digit");

/// Ids that are whole numbers from 1 to 2^63-1. In JSON a decimal string (JavaScript cannot hold it
/// as a number); an integer is accepted too.
macro_rules! whole_ids {
    ($($(#[$meta:meta])* $name:ident, $rule:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ToSchema)]
        #[schema(value_type = String, pattern = "^[1-9][0-9]{0,18}$", example = "42")]
        pub struct $name(i64);

        impl $name {
            /// The lowest.
            pub const MIN: Self = Self(1);

            /// The id as the databases hold it.
            #[must_use]
            pub fn get(self) -> i64 {
                self.0
            }
        }

        impl TryFrom<i64> for $name {
            type Error = Invalid;

            fn try_from(id: i64) -> Result<Self, Invalid> {
                if id >= 1 { Ok(Self(id)) } else { Err($rule) }
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                whole(text).map(Self).ok_or($rule)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(StringOrInteger($rule)).map(Self)
            }
        }
    )*};
}

/// The highest head, mark and seq: the largest integer that every JSON reader holds exactly.
pub const MAX_HEAD: i64 = (1 << 53) - 1;

whole_ids! {
    /// A user, 1 to 2^63-1.
    UserId, USER_ID_RULE;
    /// A notification, 1 to 2^63-1.
    NotificationId, NOTIFICATION_ID_RULE;
    /// A group, 1 to 2^63-1.
    GroupId, GROUP_ID_RULE;
}

/// A decimal number from 1 to 2^63-1, without leading zeros.
fn whole(text: &str) -> Option<i64> {
    let canonical = text.as_bytes().first().is_some_and(|b| (b'1'..=b'9').contains(b)) && text.bytes().all(|b| b.is_ascii_digit());
    if canonical { text.parse().ok() } else { None }
}

/// Reads such a number, or reports this rule.
struct StringOrInteger(Invalid);

impl Visitor<'_> for StringOrInteger {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id as a decimal string or an integer from 1 to 9223372036854775807")
    }

    fn visit_i64<E: de::Error>(self, id: i64) -> Result<i64, E> {
        if id >= 1 { Ok(id) } else { Err(E::custom(self.0)) }
    }

    fn visit_u64<E: de::Error>(self, id: u64) -> Result<i64, E> {
        i64::try_from(id).ok().filter(|id| *id >= 1).ok_or_else(|| E::custom(self.0))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<i64, E> {
        whole(text).ok_or_else(|| E::custom(self.0))
    }
}

const SEQ_RULE: Invalid = Invalid("must be a whole number from 1 to 9007199254740991, without leading zeros");

/// A position in a stream, 1 to 2^53-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ToSchema)]
#[schema(value_type = i64, minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 57)]
pub struct Seq(i64);

impl Seq {
    /// The number.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }
}

impl FromStr for Seq {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let id: UserId = text.parse().map_err(|_| SEQ_RULE)?;
        if id.get() <= MAX_HEAD { Ok(Self(id.get())) } else { Err(SEQ_RULE) }
    }
}

/// The name of a badge, channel, dot, view or notification type: `[a-z0-9][a-z0-9_.-]{0,63}`.
// Cheap to clone: every row of a batch carries one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, pattern = "^[a-z0-9][a-z0-9_.-]{0,63}$", example = "mention")]
pub struct Name(Arc<str>);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as the text that keys of rows share.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl FromStr for Name {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'.' | b'-');
        let first = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = text.as_bytes();
        if bytes.len() > 64 || !bytes.first().is_some_and(first) || !bytes.iter().all(inner) {
            return Err(NAME_RULE);
        }
        Ok(Self(Arc::from(text)))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a name as a string", PhantomData))
    }
}

/// Reads a text as a newtype.
struct Text<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = Invalid>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// An id chosen by a client, of a post or an item: `[A-Za-z0-9._:-]{1,128}`.
// Cheap to clone: every row of a batch carries one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, pattern = "^[A-Za-z0-9._:-]{1,128}$", example = "p-117")]
pub struct ClientId(Arc<str>);

impl ClientId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ClientId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        let bytes = text.as_bytes();
        if bytes.is_empty() || bytes.len() > 128 || !bytes.iter().all(inner) {
            return Err(CLIENT_ID_RULE);
        }
        Ok(Self(Arc::from(text)))
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ClientId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ClientId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("an id as a string", PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_ids_are_canonical_decimals() {
        for good in ["1", "42", "9223372036854775807"] {
            assert_eq!(good.parse::<UserId>().map(|id| id.to_string()).as_deref(), Ok(good));
        }
        for bad in ["", "0", "007", "-1", "+1", " 1", "1.0", "9223372036854775808", "١"] {
            assert_eq!(bad.parse::<UserId>(), Err(USER_ID_RULE), "{bad:?}");
        }
    }

    #[test]
    fn user_ids_are_strings_or_integers_in_and_strings_out() {
        let ids: Vec<UserId> = serde_json::from_str("[\"7\", 7, 9223372036854775807]").unwrap();
        assert_eq!(serde_json::to_string(&ids).unwrap(), "[\"7\",\"7\",\"9223372036854775807\"]");
        for bad in ["0", "-1", "1.5", "\"x\"", "null", "9223372036854775808", "18446744073709551616", "true"] {
            assert!(serde_json::from_str::<UserId>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_of_clients_follow_the_rule() {
        let longest = "a".repeat(128);
        for good in ["a", "0", "Post_1.2:3-x", "..", &longest] {
            assert!(good.parse::<ClientId>().is_ok(), "{good}");
        }
        for bad in ["", "a b", "a/b", "é", "a\n", &format!("{longest}a")] {
            assert!(bad.parse::<ClientId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn names_follow_the_rule() {
        let longest = "a".repeat(64);
        for good in ["a", "0", "new.fan-2_x", &longest] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        for bad in ["", "A", "_a", ".a", "-a", "a b", "é", &format!("{longest}a")] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }
}
