//! A fingerprint of numbers and texts: the hash of Fowler, Noll and Vo (FNV-1a, 64 bits). It is the
//! same on every node and in every version, which the hashers of the standard library do not
//! promise. It keeps nothing secret.

use std::fmt;

/// A fingerprint in the making.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Takes in a number.
    pub fn add(&mut self, number: i64) {
        self.add_bytes(&number.to_le_bytes());
    }

    /// Takes in bytes.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The fingerprint of all so far.
    #[must_use]
    pub fn finish(self) -> u64 {
        self.0
    }
}

/// Takes in a text as it is formatted.
impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add_bytes(text.as_bytes());
        Ok(())
    }
}
