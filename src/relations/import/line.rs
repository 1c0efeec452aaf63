//! The lines of a file of follows: which columns there are, and what a line says.

use crate::clock::UnixMs;
use crate::ids::UserId;
use crate::relations::Pair;

/// The columns that a file may have.
const KNOWN: [&str; 6] = ["follower", "followee", "timestamp", "action", "visibility", "special"];

/// The last moment that is the year 9999 everywhere on earth, beyond which times cannot be shown.
const MAX_UNIX_MS: i64 = 253_402_207_200_999;

/// How much of a value that cannot be read is shown.
const MAX_SHOWN: usize = 40;

/// Where in a line each value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    /// For each field of a line the index of its column in [`KNOWN`].
    order: Vec<usize>,
}

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// Who follows whom.
    pub(super) pair: Pair,
    /// When, where the file says so.
    pub(super) at: Option<UnixMs>,
    /// Whether the follow was made; else it was taken back.
    pub(super) follow: bool,
}

impl Columns {
    /// Reads the first line.
    ///
    /// # Errors
    /// A sentence: which column is unknown, missing, or there twice.
    pub(super) fn from_header(header: &[u8]) -> Result<Self, String> {
        const HELP: &str = "the first line must name the columns, as in `follower,followee,timestamp`";
        let header = std::str::from_utf8(header).map_err(|_| format!("{HELP}; it is not UTF-8"))?;
        let header = header.trim_start_matches('\u{feff}');
        let mut order = Vec::new();
        for name in header.split(',').map(value) {
            let known = KNOWN.iter().position(|known| known.eq_ignore_ascii_case(name));
            let Some(column) = known else {
                return Err(format!("{HELP}; it has '{}', and known are {}", shown(name), KNOWN.join(", ")));
            };
            if order.contains(&column) {
                return Err(format!("{HELP}, each once; it has '{name}' twice"));
            }
            order.push(column);
        }
        let this = Self { order };
        for name in ["follower", "followee"] {
            if !this.has(name) {
                return Err(format!("{HELP}; there is no '{name}'"));
            }
        }
        if this.has("action") && !this.has("timestamp") {
            return Err("a file with the column 'action' needs 'timestamp' too: actions are taken in the order of time".to_owned());
        }
        Ok(this)
    }

    fn has(&self, name: &str) -> bool {
        self.order.iter().any(|column| KNOWN.get(*column) == Some(&name))
    }

    /// Whether each line is a follow or an unfollow.
    #[must_use]
    pub(super) fn has_actions(&self) -> bool {
        self.has("action")
    }

    /// Reads a line. `id_offset` is added to both ids.
    ///
    /// # Errors
    /// A sentence: why it cannot be taken.
    pub(super) fn parse(&self, line: &[u8], id_offset: i64) -> Result<Line, String> {
        let line = std::str::from_utf8(line).map_err(|_| "is not UTF-8".to_owned())?;
        let mut values = [None; KNOWN.len()];
        let mut fields = line.split(',');
        for (at, column) in self.order.iter().enumerate() {
            let Some(field) = fields.next() else {
                return Err(format!("has {at} fields, not {}", self.order.len()));
            };
            if let Some(slot) = values.get_mut(*column) {
                *slot = Some(value(field));
            }
        }
        let more = fields.count();
        if more > 0 {
            return Err(format!("has {} fields, not {}", self.order.len() + more, self.order.len()));
        }
        let [follower, followee, timestamp, action, visibility, special] = values;
        not_served_yet(visibility, special)?;
        let pair = Pair {
            follower: id("follower", follower.unwrap_or_default(), id_offset)?,
            followee: id("followee", followee.unwrap_or_default(), id_offset)?,
        };
        if pair.follower == pair.followee {
            return Err(format!("has user {} follow itself", pair.follower));
        }
        let follow = match action {
            None | Some("follow") => true,
            Some("unfollow") => false,
            Some(other) => return Err(format!("has '{}' as action, not follow or unfollow", shown(other))),
        };
        Ok(Line { pair, at: timestamp.map(time).transpose()?, follow })
    }
}

/// A field without the blanks and the quotation marks around it. No value here can have commas or line breaks inside.
fn value(field: &str) -> &str {
    let field = field.trim_ascii();
    field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(field)
}

/// A value for a message: its beginning, without control characters.
fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect()
}

fn not_served_yet(visibility: Option<&str>, special: Option<&str>) -> Result<(), String> {
    match visibility {
        None | Some("" | "public") => {}
        Some("secret") => return Err("has a secret follow, and those are not served yet".to_owned()),
        Some(other) => return Err(format!("has '{}' as visibility, not public", shown(other))),
    }
    match special {
        None | Some("" | "0" | "false") => Ok(()),
        Some("1" | "true") => Err("has a special follow, and those are not served yet".to_owned()),
        Some(other) => Err(format!("has '{}' as special, not false", shown(other))),
    }
}

fn id(column: &str, text: &str, offset: i64) -> Result<UserId, String> {
    let number = if text.starts_with('+') { None } else { text.parse::<i64>().ok() };
    let number = number.ok_or_else(|| format!("has '{}' as {column}, which is no id", shown(text)))?;
    let shifted = number.checked_add(offset).and_then(|id| UserId::try_from(id).ok());
    shifted.ok_or_else(|| match offset {
        0 => format!("has {number} as {column}; ids are from 1 to 9223372036854775807 (--id-offset shifts them)"),
        _ => format!("has {number} as {column}, which with {offset} added is not from 1 to 9223372036854775807"),
    })
}

/// Unix seconds, with or without a fraction, or RFC 3339; from 1970 to 9999.
fn time(text: &str) -> Result<UnixMs, String> {
    let at = unix_seconds(text).or_else(|| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond));
    match at {
        Some(at) if (0..=MAX_UNIX_MS).contains(&at) => Ok(UnixMs(at)),
        Some(at) if (0..=MAX_UNIX_MS).contains(&(at / 1000)) => {
            Err(format!("has {} as timestamp, which is after the year 9999; times are in seconds, not milliseconds", shown(text)))
        }
        Some(_) => Err(format!("has {} as timestamp, which is not from 1970 to 9999", shown(text))),
        None => Err(format!("has '{}' as timestamp, which is neither Unix seconds nor RFC 3339", shown(text))),
    }
}

fn unix_seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole.strip_prefix('-').unwrap_or(whole)) || !digits(fraction) {
        return None;
    }
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(millis.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(header: &str) -> Columns {
        Columns::from_header(header.as_bytes()).unwrap()
    }

    fn refusal(header: &str, line: &str) -> String {
        columns(header).parse(line.as_bytes(), 0).unwrap_err()
    }

    fn pair(follower: i64, followee: i64) -> Pair {
        Pair { follower: follower.try_into().unwrap(), followee: followee.try_into().unwrap() }
    }

    #[test]
    fn columns_stand_in_any_order() {
        let at = Some(UnixMs(5000));
        for (header, line) in [
            ("timestamp,followee,follower", "5,2,1"),
            ("\u{feff}Follower , \"followee\",TIMESTAMP", " 1 ,\"2\", 5.000 "),
            ("special,visibility,follower,followee,timestamp", "0,,1,2,1970-01-01T01:00:05+01:00"),
            ("visibility,special,action,follower,followee,timestamp", "public,false,follow,1,2,5"),
        ] {
            let parsed = columns(header).parse(line.as_bytes(), 0);
            assert_eq!(parsed, Ok(Line { pair: pair(1, 2), at, follow: true }), "{header}: {line}");
        }
        let unfollow = columns("action,timestamp,follower,followee").parse(b"unfollow,0,1,2", 0).unwrap();
        assert_eq!(unfollow, Line { pair: pair(1, 2), at: Some(UnixMs(0)), follow: false });
        assert_eq!(columns("follower,followee").parse(b"1,2", 0).unwrap().at, None);
    }

    #[test]
    fn a_header_that_is_none_is_told() {
        for (header, why) in [
            ("1,2", "it has '1', and known are follower, followee, timestamp, action, visibility, special"),
            ("", "it has ''"),
            ("follower,followee,weight", "it has 'weight'"),
            ("follower,timestamp", "there is no 'followee'"),
            ("follower,followee,follower", "'follower' twice"),
            ("follower,followee,action", "needs 'timestamp' too"),
        ] {
            let told = Columns::from_header(header.as_bytes()).unwrap_err();
            assert!(told.contains(why), "{header}: {told}");
        }
        assert!(Columns::from_header(b"follower,\xff").unwrap_err().contains("not UTF-8"));
    }

    #[test]
    fn a_bad_line_is_told() {
        const ALL: &str = "follower,followee,timestamp,action,visibility,special";
        for (line, why) in [
            ("1,2,5,follow,,", ""),
            ("1", "has 1 fields, not 6"),
            ("1,2,5,follow,,,", "has 7 fields, not 6"),
            ("x,2,5,follow,,", "has 'x' as follower, which is no id"),
            ("1,,5,follow,,", "has '' as followee, which is no id"),
            ("1,+2,5,follow,,", "has '+2' as followee"),
            ("1,9223372036854775808,5,follow,,", "no id"),
            ("0,2,5,follow,,", "has 0 as follower; ids are from 1 to 9223372036854775807 (--id-offset shifts them)"),
            ("7,7,5,follow,,", "has user 7 follow itself"),
            ("1,2,,follow,,", "has '' as timestamp"),
            ("1,2,yesterday,follow,,", "neither Unix seconds nor RFC 3339"),
            ("1,2,1.,follow,,", "neither"),
            ("1,2,-1,follow,,", "not from 1970 to 9999"),
            ("1,2,1671916715000,follow,,", "in seconds, not milliseconds"),
            ("1,2,9223372036854775,follow,,", "not from 1970 to 9999"),
            ("1,2,5,like,,", "has 'like' as action, not follow or unfollow"),
            ("1,2,5,follow,secret,", "secret follow, and those are not served yet"),
            ("1,2,5,follow,hidden,", "'hidden' as visibility"),
            ("1,2,5,follow,,true", "special follow, and those are not served yet"),
            ("1,2,5,follow,,maybe", "'maybe' as special"),
        ] {
            match why {
                "" => assert!(columns(ALL).parse(line.as_bytes(), 0).is_ok()),
                why => assert!(refusal(ALL, line).contains(why), "{line}: {}", refusal(ALL, line)),
            }
        }
        assert_eq!(columns("follower,followee").parse(b"1,\xff", 0).unwrap_err(), "is not UTF-8");
        assert_eq!(
            refusal("follower,followee", &format!("\u{1b}{},2", "9".repeat(99))).len(),
            79,
            "no control characters, and not all of it"
        );
    }

    #[test]
    fn the_offset_shifts_both_ids() {
        let columns = columns("follower,followee");
        assert_eq!(columns.parse(b"0,1", 1).unwrap().pair, pair(1, 2));
        assert_eq!(columns.parse(b"1001,1002", -1000).unwrap().pair, pair(1, 2));
        assert!(columns.parse(b"1000,1002", -1000).unwrap_err().contains("with -1000 added"));
        assert!(columns.parse(b"9223372036854775807,1", 1).unwrap_err().contains("with 1 added"));
    }

    #[test]
    fn times_are_seconds_or_rfc_3339() {
        for (text, at) in [
            ("1671916715", 1_671_916_715_000),
            ("1671916715.25", 1_671_916_715_250),
            ("1671916715.1239", 1_671_916_715_123),
            ("2022-12-24T21:18:35Z", 1_671_916_715_000),
            ("2022-12-24T22:18:35.250+01:00", 1_671_916_715_250),
            ("9999-12-30T22:00:00.999Z", MAX_UNIX_MS),
        ] {
            assert_eq!(time(text), Ok(UnixMs(at)), "{text}");
        }
    }
}
