//! The ids of operations.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rand::RngExt as _;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::base::clock::UnixMs;
use crate::base::ids::Invalid;

const ID_RULE: Invalid = Invalid("must have 32 characters of 0-9, a-f");

/// How long an id is, and the part of it that follows from the rest.
const ID_CHARS: usize = 32;
const CHECK_CHARS: usize = 4;

/// The end of an id that begins like this.
fn check(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(CHECK_CHARS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// The id of an operation, in hexadecimal digits: 12 of the time of acceptance in milliseconds, 16
/// random ones, and a checksum of 4. The checksum distinguishes an expired id from an unknown one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
#[schema(value_type = String, pattern = "^[0-9a-f]{32}$", example = "0190163d8694739b3d5c2a7f00112233")]
pub struct OperationId(Arc<str>);

impl OperationId {
    /// A new one.
    #[must_use]
    pub fn new(now: UnixMs) -> Self {
        let text = format!("{:012x}{:016x}", now.0.unsigned_abs() & 0xffff_ffff_ffff, rand::rng().random::<u64>());
        let check = check(&text);
        Self((text + &check).into())
    }

    /// Whether it was made by [`OperationId::new`], as far as one can tell: of one that is kept no
    /// longer nothing else is known.
    #[must_use]
    pub fn was_made(&self) -> bool {
        self.0.split_at_checked(ID_CHARS - CHECK_CHARS).is_some_and(|(text, end)| check(text) == end)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When it was accepted, as the id tells.
    #[must_use]
    pub fn time(&self) -> UnixMs {
        let digits = self.0.get(..12).unwrap_or_default();
        UnixMs(i64::from_str_radix(digits, 16).unwrap_or_default())
    }
}

impl FromStr for OperationId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == ID_CHARS && text.bytes().all(digit) { Ok(Self(text.into())) } else { Err(ID_RULE) }
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for OperationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_time_and_is_never_the_same() {
        let ids = [0; 50].map(|_| OperationId::new(UnixMs(1_800_000_000_123)));
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!((distinct.len(), ids[0].time()), (50, UnixMs(1_800_000_000_123)));
        assert_eq!(ids[0].as_str().parse::<OperationId>().as_ref(), Ok(&ids[0]));
        for bad in ["", "1", &"g".repeat(32), &"A".repeat(32), &"0".repeat(33), &"é".repeat(16)] {
            assert_eq!(bad.parse::<OperationId>(), Err(ID_RULE), "{bad}");
        }
    }
}
