//! The lines of a file of follows: which columns there are, and what a line says.

use csv::ByteRecord;

use crate::base::clock::UnixMs;
use crate::features::relations::Pair;
use crate::features::relations::state::FollowOptions;
use crate::maintenance::import::field::{self, id, shown, time};

/// How the first line of a file may look.
pub(super) const EXAMPLE: &str = "follower,followee,timestamp";

/// The columns that a file may have.
const KNOWN: [&str; 7] = ["follower", "followee", "timestamp", "action", "visibility", "special", "requested"];

/// Where in a line each value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns(field::Columns);

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// Who follows whom.
    pub(super) pair: Pair,
    /// When, where the file says so.
    pub(super) at: Option<UnixMs>,
    /// Whether the follow was made; else it was taken back.
    pub(super) follow: bool,
    /// Whether it is secret, and whether the followee is special.
    pub(super) options: FollowOptions,
    /// Whether it is a request that is yet to be accepted.
    pub(super) requested: bool,
}

impl Columns {
    /// Reads the first line.
    ///
    /// # Errors
    /// A sentence: which column is unknown, missing, or there twice.
    pub(super) fn from_header(header: &ByteRecord) -> Result<Self, String> {
        let columns = field::Columns::from_header(header, &KNOWN, &["follower", "followee"], EXAMPLE)?;
        if columns.has("action") && !columns.has("timestamp") {
            return Err("a file with the column 'action' needs 'timestamp' too: actions are taken in the order of time".to_owned());
        }
        Ok(Self(columns))
    }

    /// Whether each line is a follow or an unfollow.
    #[must_use]
    pub(super) fn has_actions(&self) -> bool {
        self.0.has("action")
    }

    /// Reads a line. `id_offset` is added to both ids.
    ///
    /// # Errors
    /// A sentence: why it cannot be taken.
    pub(super) fn parse(&self, line: &ByteRecord, id_offset: i64) -> Result<Line, String> {
        let [follower, followee, timestamp, action, visibility, special, requested] = self.0.values(line)?;
        let options = FollowOptions { secret: is_secret(visibility)?, special: is("special", special)? };
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
        Ok(Line { pair, at: timestamp.map(time).transpose()?, follow, options, requested: is("requested", requested)? })
    }
}

fn is_secret(visibility: Option<&str>) -> Result<bool, String> {
    match visibility {
        None | Some("" | "public") => Ok(false),
        Some("secret") => Ok(true),
        Some(other) => Err(format!("has '{}' as visibility, not public or secret", shown(other))),
    }
}

fn is(column: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("" | "0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(other) => Err(format!("has '{}' as {column}, not true or false", shown(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintenance::import::field::record;

    fn columns(header: &str) -> Columns {
        Columns::from_header(&record(header.as_bytes())).unwrap()
    }

    fn refusal(header: &str, line: &str) -> String {
        columns(header).parse(&record(line.as_bytes()), 0).unwrap_err()
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
            let parsed = columns(header).parse(&record(line.as_bytes()), 0);
            assert_eq!(
                parsed,
                Ok(Line { pair: pair(1, 2), at, follow: true, options: FollowOptions::default(), requested: false }),
                "{header}: {line}"
            );
        }
        let unfollow = columns("action,timestamp,follower,followee").parse(&record(b"unfollow,0,1,2"), 0).unwrap();
        assert_eq!(
            unfollow,
            Line { pair: pair(1, 2), at: Some(UnixMs(0)), follow: false, options: FollowOptions::default(), requested: false }
        );
        let requested = |line: &str| columns("follower,followee,requested").parse(&record(line.as_bytes()), 0).unwrap().requested;
        assert_eq!(["1,2,true", "1,2,1", "1,2,false", "1,2,"].map(requested), [true, true, false, false]);
        let options = |line: &str| columns("follower,followee,visibility,special").parse(&record(line.as_bytes()), 0).unwrap().options;
        assert_eq!(options("1,2,secret,0"), FollowOptions { secret: true, special: false });
        assert_eq!(options("1,2,,true"), FollowOptions { secret: false, special: true });
        assert_eq!(options("1,2,secret,1"), FollowOptions { secret: true, special: true });
        assert_eq!(columns("follower,followee").parse(&record(b"1,2"), 0).unwrap().at, None);
    }

    #[test]
    fn a_header_that_is_none_is_told() {
        for (header, why) in [
            ("1,2", "it has '1', and known are follower, followee, timestamp, action, visibility, special, requested"),
            ("follower,followee,weight", "it has 'weight'"),
            ("follower,timestamp", "there is no 'followee'"),
            ("follower,followee,follower", "'follower' twice"),
            ("follower,followee,action", "needs 'timestamp' too"),
        ] {
            let told = Columns::from_header(&record(header.as_bytes())).unwrap_err();
            assert!(told.contains(why), "{header}: {told}");
        }
        assert!(Columns::from_header(&record(b"follower,\xff")).unwrap_err().contains("not UTF-8"));
    }

    #[test]
    fn a_bad_line_is_told() {
        const ALL: &str = "follower,followee,timestamp,action,visibility,special";
        for (line, why) in [
            ("1,2,5,follow,,", ""),
            ("1", "has 1 fields, not 6"),
            ("1,2,5,follow,,,", "has 7 fields, not 6"),
            ("x,2,5,follow,,", "has 'x' as follower, which is not an id"),
            ("1,,5,follow,,", "has '' as followee, which is not an id"),
            ("1,+2,5,follow,,", "has '+2' as followee"),
            ("1,9223372036854775808,5,follow,,", "not an id"),
            ("0,2,5,follow,,", "has 0 as follower; ids must be between 1 and 9223372036854775807 (--id-offset shifts them)"),
            ("7,7,5,follow,,", "has user 7 follow itself"),
            ("1,2,,follow,,", "has '' as timestamp"),
            ("1,2,yesterday,follow,,", "neither Unix seconds nor RFC 3339"),
            ("1,2,1.,follow,,", "neither"),
            ("1,2,-1,follow,,", "must be between 1970 and 9999"),
            ("1,2,1671916715000,follow,,", "in seconds, not milliseconds"),
            ("1,2,9223372036854775,follow,,", "must be between 1970 and 9999"),
            ("1,2,5,like,,", "has 'like' as action, not follow or unfollow"),
            ("1,2,5,follow,secret,true", ""),
            ("1,2,5,follow,hidden,", "'hidden' as visibility, not public or secret"),
            ("1,2,5,follow,,maybe", "'maybe' as special, not true or false"),
        ] {
            match why {
                "" => assert!(columns(ALL).parse(&record(line.as_bytes()), 0).is_ok()),
                why => assert!(refusal(ALL, line).contains(why), "{line}: {}", refusal(ALL, line)),
            }
        }
        assert_eq!(columns("follower,followee").parse(&record(b"1,\xff"), 0).unwrap_err(), "is not UTF-8");
        assert_eq!(
            refusal("follower,followee", &format!("\u{1b}{},2", "9".repeat(99))).len(),
            83,
            "no control characters, and not all of it"
        );
    }

    #[test]
    fn the_offset_shifts_both_ids() {
        let columns = columns("follower,followee");
        assert_eq!(columns.parse(&record(b"0,1"), 1).unwrap().pair, pair(1, 2));
        assert_eq!(columns.parse(&record(b"1001,1002"), -1000).unwrap().pair, pair(1, 2));
        assert!(columns.parse(&record(b"1000,1002"), -1000).unwrap_err().contains("with -1000 added"));
        assert!(columns.parse(&record(b"9223372036854775807,1"), 1).unwrap_err().contains("with 1 added"));
    }
}
