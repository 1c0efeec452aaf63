//! The compact form of a message's receipts: bits over the ordinals, or a list of ordinals where
//! those have run far ahead of the recipients.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Ordinals, Spans};
use crate::base::error::{Code, Problem};
use crate::base::ids::UserId;

/// So many ordinals are always sent as bits: a list could save a few bytes only.
pub const MIN_LISTED_ORDINAL: i64 = 256;

/// The most recipients of a list of ordinals.
pub const MAX_LISTED_RECIPIENTS: usize = 10_000;

/// Receipts of a message in a compact form, over the ordinals of the members. Groups whose members
/// changed often have ordinals far above the number of recipients. They get `ordinals`, others get
/// `bits`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "encoding", rename_all = "snake_case")]
pub enum ReceiptBitmapsOut {
    /// Base64 bitmaps: ordinal `i` (from 1) is bit `i - 1`, with the lowest bit of each byte first.
    /// Neither bitmap has the sender. A member in neither bitmap, except the sender, is a recipient
    /// who has not read the message.
    #[schema(title = "ReceiptBits")]
    Bits {
        /// The highest ordinal when the message was sent, which is the number of bits.
        #[schema(minimum = 1, example = 12)]
        max_ordinal: i64,
        /// The recipients who have read it.
        #[schema(example = "/gM=")]
        read_bits: String,
        /// The members who had left before the message was sent.
        #[schema(example = "AAg=")]
        quit_bits: String,
    },
    /// The ordinals of the recipients, in ascending order.
    #[schema(title = "ReceiptOrdinals")]
    Ordinals {
        /// The highest ordinal when the message was sent.
        #[schema(minimum = 1, example = 81_200)]
        max_ordinal: i64,
        /// The recipients who have read it.
        #[schema(max_items = 10000, example = json!([3, 81_077]))]
        read: Vec<i64>,
        /// The recipients who have not read it.
        #[schema(max_items = 10000, example = json!([80_991]))]
        unread: Vec<i64>,
    },
}

impl ReceiptBitmapsOut {
    /// The numbers that tell it apart from another one.
    pub(super) fn numbers(&self) -> Vec<i64> {
        match self {
            Self::Bits { read_bits, quit_bits, .. } => read_bits.bytes().chain(quit_bits.bytes()).map(i64::from).collect(),
            Self::Ordinals { read, unread, .. } => read.iter().copied().chain([0]).chain(unread.iter().copied()).collect(),
        }
    }
}

/// How long two bitmaps of so many bits are in base64.
fn bits_chars(max_ordinal: i64) -> usize {
    2 * usize::try_from(max_ordinal).unwrap_or(usize::MAX / 8).div_ceil(8).div_ceil(3).saturating_mul(4)
}

/// How long these numbers are in JSON, each with a comma.
fn list_chars(ordinals: &Ordinals) -> usize {
    let digits = |ordinal: &i64| usize::try_from(ordinal.max(&1).ilog10()).unwrap_or(0) + 2;
    ordinals.read.iter().chain(&ordinals.unread).map(digits).sum()
}

/// The compact form: the shorter one. Above `most` ordinals, only a list is possible.
///
/// # Errors
/// 409 where there are more than `most` ordinals, and too many recipients for a list.
pub(super) fn bitmaps(spans: &Spans, seq: i64, sender: UserId, most: i64) -> Result<ReceiptBitmapsOut, Problem> {
    let max_ordinal = spans.max_ordinal(seq);
    if max_ordinal > most.min(MIN_LISTED_ORDINAL) {
        let listed = spans.ordinals(seq, sender, MAX_LISTED_RECIPIENTS);
        if let Some(listed) = listed.filter(|listed| max_ordinal > most || list_chars(listed) < bits_chars(max_ordinal)) {
            return Ok(ReceiptBitmapsOut::Ordinals { max_ordinal, read: listed.read, unread: listed.unread });
        }
    }
    if max_ordinal > most {
        let detail = format!(
            "The group has {max_ordinal} ordinals, and the message more than {MAX_LISTED_RECIPIENTS} recipients. A bitmap can have at \
             most {most} ordinals."
        );
        return Err(Problem::new(Code::TooLarge, detail));
    }
    let bits = spans.bitmaps(seq, sender);
    let (read_bits, quit_bits) = (BASE64.encode(&bits.read), BASE64.encode(&bits.quit));
    Ok(ReceiptBitmapsOut::Bits { max_ordinal, read_bits, quit_bits })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::marks::Hidden;
    use crate::features::groups::Reading;
    use crate::features::receipts::Span;

    fn span(ordinal: i64, from_seq: i64, to_seq: Option<i64>, read: i64) -> Span {
        Span {
            ordinal,
            user: Some(ordinal.try_into().unwrap()),
            from_seq,
            to_seq,
            reading: Reading::from_seq(read),
            hidden: Hidden::default(),
        }
    }

    fn set(bits: &str) -> BTreeSet<i64> {
        let bytes = BASE64.decode(bits).unwrap();
        (0..bytes.len() * 8).filter(|at| bytes[at / 8] >> (at % 8) & 1 == 1).map(|at| i64::try_from(at).unwrap() + 1).collect()
    }

    proptest! {
        #[test]
        fn both_forms_name_the_same_recipients(there in prop::collection::btree_map(1..3000_i64, any::<(bool, bool)>(), 1..60), most in 1..4000_i64) {
            // Message 5 of the first member; the others have left before or not, have read it or not.
            let spans: Vec<_> = there.iter().map(|(ordinal, (left, read))| span(*ordinal, 0, left.then_some(4), if *read { 5 } else { 0 })).collect();
            let sender = spans[0].user.unwrap();
            let spans = Spans::new(spans);
            let of = |wanted: bool| -> BTreeSet<i64> {
                there.iter().filter(|(ordinal, (left, read))| **ordinal != sender.get() && !left && *read == wanted).map(|(ordinal, _)| *ordinal).collect()
            };
            let max = *there.keys().last().unwrap();
            let answer = bitmaps(&spans, 5, sender, most).unwrap();
            let length = |of: &ReceiptBitmapsOut| serde_json::to_string(of).unwrap().len();
            match &answer {
                ReceiptBitmapsOut::Bits { max_ordinal, read_bits, quit_bits } => {
                    prop_assert!(max <= most);
                    prop_assert_eq!((*max_ordinal, set(read_bits)), (max, of(true)));
                    let quit = set(quit_bits);
                    let unread: BTreeSet<_> = (1..=max).filter(|at| !quit.contains(at) && !of(true).contains(at) && *at != sender.get()).collect();
                    prop_assert_eq!(unread, of(false));
                }
                ReceiptBitmapsOut::Ordinals { max_ordinal, read, unread } => {
                    prop_assert!(max > MIN_LISTED_ORDINAL.min(most));
                    prop_assert_eq!(*max_ordinal, max);
                    prop_assert_eq!((read, unread), (&of(true).into_iter().collect(), &of(false).into_iter().collect()));
                    let bits = spans.bitmaps(5, sender);
                    let (read_bits, quit_bits) = (BASE64.encode(&bits.read), BASE64.encode(&bits.quit));
                    let other = ReceiptBitmapsOut::Bits { max_ordinal: max, read_bits, quit_bits };
                    prop_assert!(max > most || length(&answer) < length(&other) + 20);
                }
            }
        }
    }

    #[test]
    fn a_list_has_a_bound() {
        let spans = |count: i64| Spans::new((1..=count).map(|ordinal| span(ordinal, 0, None, 0)).collect());
        let most = i64::try_from(MAX_LISTED_RECIPIENTS).unwrap();
        let sender = 1.try_into().unwrap();
        let listed = bitmaps(&spans(most + 1), 1, sender, most).unwrap();
        assert!(
            matches!(listed, ReceiptBitmapsOut::Ordinals { read, unread, .. } if read.is_empty() && unread.len() == MAX_LISTED_RECIPIENTS)
        );
        assert_eq!(bitmaps(&spans(most + 2), 1, sender, most).unwrap_err().code, Code::TooLarge);
        assert!(matches!(bitmaps(&spans(most + 2), 1, sender, most + 2), Ok(ReceiptBitmapsOut::Bits { .. })));
    }
}
