//! Hexadecimal digits. Each poll writes several numbers in them, and the standard library's formatter
//! takes longer for these than the poll takes to find its answer.

/// Appends the lower-case digits of bytes, two for each.
pub fn push(bytes: &[u8], text: &mut String) {
    text.reserve(bytes.len() * 2);
    // In pieces, as each `push` of a digit would look for room.
    for bytes in bytes.chunks(PIECE) {
        let mut digits = [0; PIECE * 2];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        let written = digits.get(..bytes.len() * 2).and_then(|digits| std::str::from_utf8(digits).ok());
        text.push_str(written.unwrap_or_default());
    }
}

const PIECE: usize = 8;

fn digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
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
    }
}
