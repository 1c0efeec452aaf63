//! Hexadecimal digits. Each poll writes several numbers in them, and the standard library's formatter
//! takes longer for these than the poll takes to find its answer.

/// The lower-case digits of so many bytes, two for each.
#[must_use]
pub fn digits<const N: usize>(bytes: [u8; N]) -> [[u8; 2]; N] {
    bytes.map(|byte| PAIRS.get(usize::from(byte)).copied().unwrap_or_default())
}

/// Appends the lower-case digits of bytes, two for each.
pub fn push(bytes: &[u8], text: &mut String) {
    text.reserve(bytes.len() * 2);
    // In pieces, as each `push` of a digit would look for room.
    let (pieces, rest) = bytes.as_chunks::<PIECE>();
    for piece in pieces {
        text.push_str(std::str::from_utf8(digits(*piece).as_flattened()).unwrap_or_default());
    }
    for byte in rest {
        text.push_str(std::str::from_utf8(digits([*byte]).as_flattened()).unwrap_or_default());
    }
}

/// The number that these lower-case digits are.
#[must_use]
pub fn number(digits: &[u8; 16]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

const PIECE: usize = 8;

/// The two digits of each byte.
static PAIRS: [[u8; 2]; 256] = pairs();

#[expect(clippy::indexing_slicing, reason = "runs in the compiler, which refuses an index out of bounds")]
const fn pairs() -> [[u8; 2]; 256] {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_those_of_the_formatter(bytes: Vec<u8>) {
            let mut text = String::from("x");
            push(&bytes, &mut text);
            let expected: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            prop_assert_eq!(text, format!("x{expected}"));
        }

        #[test]
        fn a_number_is_read_from_its_digits(number: u64, bytes: [u8; 16]) {
            prop_assert_eq!(super::number(digits(number.to_be_bytes()).as_flattened().try_into().unwrap()), Some(number));
            let lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            prop_assert_eq!(super::number(&bytes).is_some(), bytes.iter().all(lower));
        }
    }
}
