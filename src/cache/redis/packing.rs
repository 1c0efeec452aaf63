//! Values as Redis holds them, in fewer bytes.
//!
//! Most of an entry is numbers and names, in ASCII, so the bytes from 0x80 on are free. Each of them
//! stands for two or three characters that come often: two digits, a space and a digit, the beginning of
//! a mark. Names stay readable in Redis. Such a value begins with [`PACKED`], which is in no text: a node
//! that does not know of it takes it for no value, and never for another one.

use std::borrow::Cow;

/// What stands for `00`; the other pairs of digits follow it.
const PAIRS: u8 = 0x80;

/// What stands for a space and `0`; the other digits follow it.
const SPACED: u8 = PAIRS + 100;

/// What stands for the first of [`BEGINNINGS`].
const BEGUN: u8 = SPACED + 10;

/// How marks begin (`crate::engine::marks::UserMarks`).
const BEGINNINGS: [&str; 4] = [";b:", ";c:", ";d:", ";g:"];

/// What follows is packed. Never a byte of UTF-8.
const PACKED: u8 = 0xfe;

/// The bytes of a value.
pub(super) fn pack(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    // Redis holds a short number in fewer bytes than any text.
    if !text.is_ascii() || bytes.iter().all(u8::is_ascii_digit) {
        return bytes.into();
    }
    let (mut packed, mut rest) = (Vec::with_capacity(1 + bytes.len()), bytes);
    packed.push(PACKED);
    while let Some((code, length)) = next(rest) {
        packed.push(code);
        rest = rest.get(length..).unwrap_or_default();
    }
    if packed.len() < bytes.len() { packed.into() } else { bytes.into() }
}

/// What stands for the beginning of the text, and how many of its bytes that is.
fn next(text: &[u8]) -> Option<(u8, usize)> {
    let digit = |at: usize| text.get(at).filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0');
    let (&first, begun) = (text.first()?, text.get(..3));
    if let Some((_, code)) = BEGINNINGS.iter().zip(BEGUN..).find(|(beginning, _)| begun == Some(beginning.as_bytes())) {
        return Some((code, 3));
    }
    Some(match (digit(0), digit(1)) {
        (Some(tens), Some(ones)) => (PAIRS + 10 * tens + ones, 2),
        (None, Some(ones)) if first == b' ' => (SPACED + ones, 2),
        _ => (first, 1),
    })
}

/// The value of such bytes. None if they are not ours.
pub(super) fn unpack(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let Some(packed) = bytes.strip_prefix(&[PACKED]) else { return Some(std::str::from_utf8(bytes).ok()?.into()) };
    let mut text = String::with_capacity(2 * packed.len());
    let digit = |digit: u8| char::from(b'0' + digit);
    for &byte in packed {
        match byte {
            ..PAIRS => text.push(char::from(byte)),
            PAIRS..SPACED => text.extend([digit((byte - PAIRS) / 10), digit((byte - PAIRS) % 10)]),
            SPACED..BEGUN => text.extend([' ', digit(byte - SPACED)]),
            BEGUN.. => text.push_str(BEGINNINGS.get(usize::from(byte - BEGUN))?),
        }
    }
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(text in "([ -~]{0,5}|;[a-h]:|[0-9 ;,-]{0,12}|[é0-9]{0,3}){0,12}") {
            let packed = pack(&text);
            prop_assert_eq!(unpack(&packed), Some(text.as_str().into()));
            prop_assert!(packed.len() <= text.len());
            // Also what is read as text by who does not unpack it is that value, or none.
            prop_assert!(std::str::from_utf8(&packed).map_or(true, |read| read == text));
        }

        #[test]
        fn any_bytes_are_a_value_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = unpack(&bytes);
        }
    }

    #[test]
    fn a_value_takes_few_bytes() {
        let cases = [
            // It is packed, `0`, a mark begins, `comment`, ` 1`, `20`, ` 3`, and so on.
            ("0;c:comment 120 3;c:dm 120 3;c:like 120 3;c:mention 120 3", 38),
            ("3 1767225600123", 9),
            ("929 0", 4),
            ("", 0),
            ("2", 1),
            ("6650;", 4),
        ];
        for (text, length) in cases {
            assert_eq!(pack(text).len(), length, "{text}");
        }
        assert_eq!(pack("120").as_ref(), b"120", "Redis makes a number of it");
        // Nodes of other versions read it, and a test looks for ids in it.
        assert_eq!(pack("0;c:dm 120 3").as_ref(), b"\xfe0\xefdm\xe5\x94\xe7");
        assert_eq!(unpack(b"0;c:mention 120"), Some("0;c:mention 120".into()), "what was not packed is read, too");
        assert_eq!(unpack("é 12".as_bytes()), Some("é 12".into()));
        assert_eq!((unpack(&[PACKED, BEGUN + 4]), unpack(&[0xe9])), (None, None));
    }
}
