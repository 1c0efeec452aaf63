//! Commands and replies as bytes, as far as a [pipe](super::pipe) needs them: `HGETALL`, and what
//! it is answered with in RESP2.

use std::io::Write as _;

use deadpool_redis::redis::{RedisError, Value, parse_redis_value};

use super::scripts::Found;

/// One reply.
#[derive(Debug)]
pub(super) enum Reply {
    /// A hash, empty where there is no key; None if it cannot be one of ours.
    Hash(Option<Found>),
    /// Redis said no.
    Refused(RedisError),
}

/// What is not RESP, or no reply to `HGETALL`: anyone who sent it is not to be listened to any
/// longer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Appends `HGETALL key`.
pub(super) fn hgetall(out: &mut Vec<u8>, key: &str) {
    // Memory takes whatever is written to it.
    let _never = write!(out, "*2\r\n$7\r\nHGETALL\r\n${}\r\n{key}\r\n", key.len());
}

/// The first reply of these bytes, and how many it takes; None if it has not arrived whole.
pub(super) fn reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    let mut rest = Rest { bytes, at: 0 };
    match rest.hash() {
        Ok(reply) => Ok(Some((reply, rest.at))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Malformed) => Err(Malformed),
    }
}

/// What a line says, if it says no.
pub(super) fn refusal(line: &[u8]) -> Option<RedisError> {
    match parse_redis_value(line) {
        Ok(Value::ServerError(error)) => Some(error.into()),
        Ok(_) => None,
        Err(error) => Some(error),
    }
}

/// Why reading stopped before the end of a reply.
enum Stop {
    Incomplete,
    Malformed,
}

struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn hash(&mut self) -> Result<Reply, Stop> {
        match self.bytes.first() {
            Some(b'*') => {}
            Some(b'-') => {
                let line = self.line()?;
                // With its end, which `line` is without and the crate's parser wants.
                let whole = self.bytes.get(..line.len() + 3).unwrap_or_default();
                return refusal(whole).map(Reply::Refused).ok_or(Stop::Malformed);
            }
            Some(_) => return Err(Stop::Malformed),
            None => return Err(Stop::Incomplete),
        }
        let items = self.number(b'*')?;
        if items % 2 != 0 {
            return Err(Stop::Malformed);
        }
        let mut found = Some(Found::with_room(items / 2));
        for _ in 0..items / 2 {
            let (field, value) = (self.bulk()?, self.bulk()?);
            // Read to its end also where it is none of ours: the next reply is another's.
            found = found.and_then(|mut found| found.take(field, value).map(|()| found));
        }
        Ok(Reply::Hash(found))
    }

    fn bulk(&mut self) -> Result<&'a [u8], Stop> {
        let length = self.number(b'$')?;
        let end = self.at.checked_add(length).ok_or(Stop::Malformed)?;
        let text = self.bytes.get(self.at..end).ok_or(Stop::Incomplete)?;
        match self.bytes.get(end..end.saturating_add(2)) {
            Some(b"\r\n") => {}
            Some(_) => return Err(Stop::Malformed),
            None => return Err(Stop::Incomplete),
        }
        self.at = end + 2;
        Ok(text)
    }

    /// A length after its mark.
    fn number(&mut self, mark: u8) -> Result<usize, Stop> {
        let line = self.line_of(mark)?;
        let mut number = 0_usize;
        for digit in line {
            let digit = char::from(*digit).to_digit(10).and_then(|digit| usize::try_from(digit).ok()).ok_or(Stop::Malformed)?;
            number = number.checked_mul(10).and_then(|number| number.checked_add(digit)).ok_or(Stop::Malformed)?;
        }
        if line.is_empty() { Err(Stop::Malformed) } else { Ok(number) }
    }

    fn line_of(&mut self, mark: u8) -> Result<&'a [u8], Stop> {
        match self.bytes.get(self.at) {
            Some(found) if *found == mark => self.line(),
            Some(_) => Err(Stop::Malformed),
            None => Err(Stop::Incomplete),
        }
    }

    /// The rest of a line after its mark.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = self.bytes.get(self.at + 1..).ok_or(Stop::Incomplete)?;
        let length = rest.iter().position(|byte| *byte == b'\r').ok_or(Stop::Incomplete)?;
        match rest.get(length + 1) {
            Some(b'\n') => {}
            Some(_) => return Err(Stop::Malformed),
            None => return Err(Stop::Incomplete),
        }
        self.at += length + 3;
        Ok(rest.get(..length).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use deadpool_redis::redis::cmd;

    use super::*;
    use crate::cache::Entry;

    const HASH: &[u8] = b"*6\r\n$2\r\n!r\r\n$1\r\n8\r\n$2\r\n!e\r\n$2\r\n-3\r\n$9\r\nc:mention\r\n$5\r\n3 120\r\n";

    fn entry(reply: Reply, epoch: i64) -> Option<Entry> {
        match reply {
            Reply::Hash(found) => found.and_then(|found| found.clean(epoch)),
            Reply::Refused(error) => panic!("{error}"),
        }
    }

    #[test]
    fn commands_are_those_of_the_crate() {
        for key in ["", "hm:{u:42}", &"k".repeat(1234)] {
            let mut out = Vec::new();
            hgetall(&mut out, key);
            assert_eq!(out, cmd("HGETALL").arg(key).get_packed_command(), "{key}");
        }
    }

    #[test]
    fn a_reply_is_read_once_it_is_whole() {
        let mut bytes = HASH.to_vec();
        bytes.extend_from_slice(b"*0\r\n-WRONGTYPE no\r\n");
        for end in 0..HASH.len() {
            assert!(reply(&bytes[..end]).unwrap().is_none(), "{end}");
        }
        let (first, used) = reply(&bytes).unwrap().unwrap();
        assert_eq!(used, HASH.len());
        let parts = [("c:mention".into(), "3 120".into())].into();
        assert_eq!(entry(first, -3), Some(Entry { revision: 8, parts }));
        let (second, empty) = reply(&bytes[used..]).unwrap().unwrap();
        assert_eq!((entry(second, -3), empty), (None, 4));
        let rest = &bytes[used + empty..];
        for end in 0..rest.len() {
            assert!(reply(&rest[..end]).unwrap().is_none(), "{end}");
        }
        let Ok(Some((Reply::Refused(error), used))) = reply(rest) else { panic!("{rest:?}") };
        assert_eq!((error.code(), used), (Some("WRONGTYPE"), rest.len()));
    }

    #[test]
    fn what_is_none_of_ours_is_passed_over_and_what_is_no_reply_is_told() {
        for odd in [&b"*2\r\n$2\r\n!r\r\n$1\r\nx\r\n"[..], b"*2\r\n$1\r\np\r\n$1\r\n\xff\r\n"] {
            let Ok(Some((Reply::Hash(None), used))) = reply(odd) else { panic!("{odd:?}") };
            assert_eq!(used, odd.len());
        }
        let bad: [&[u8]; 10] = [
            b"+OK\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"*\r\n",
            b"*1\r\n$1\r\na\r\n",
            b"*2\r\n:1\r\n",
            b"*2\r\n$1\r\nab\r",
            b"*2\rx",
            b"*2\r\n$1\r\na\r\n$99999999999999999999\r\n",
            b"\r\n",
        ];
        for bad in bad {
            assert_eq!(reply(bad).map(|_| ()), Err(Malformed), "{}", String::from_utf8_lossy(bad));
        }
    }
}
