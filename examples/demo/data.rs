//! The message log: where it is, whether it is the one that came with the project, its rows in
//! order of time, and a direct count over it.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use crate::Result;

/// The copied log, seen from the project's root.
const DEFAULT_FILE: &str = "examples/data/messages-uci-dm.csv.gz";
/// Its checksum, as in the README beside it.
const DEFAULT_SHA256: &str = "f4b6e177b7e17ecefac710edbcb5e9b04dc7e2fe03bae91686a5ff6677daf6f6";
const HEADER: [&str; 3] = ["timestamp", "channel", "sender"];
/// A log larger than this, unpacked, is not for a demo that holds it in memory.
const MAX_SIZE_BYTES: u64 = 256 * 1024 * 1024;
/// Ids on the wire end here (2^63 - 1).
const MAX_ID: u64 = i64::MAX.unsigned_abs();

/// One message of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    /// Line of data in the file, from 1; names the message when it is sent again.
    pub(crate) row: u64,
    pub(crate) timestamp: i64,
    /// Whose inbox it went to, as the file has it.
    pub(crate) channel: u64,
}

/// The log, read and in order of time.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) path: PathBuf,
    /// Begin of the file's checksum: two different files never share an `Idempotency-Key`.
    pub(crate) id: String,
    /// Whether this is the file whose origin and licence the demo can state.
    pub(crate) is_default: bool,
    pub(crate) messages: Vec<Message>,
    text: String,
}

impl Log {
    /// Reads the given file, or the one that comes with the project, whose checksum must fit.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self> {
        let path = file.map_or_else(default_path, Path::to_path_buf);
        let packed = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let sha256 = hex(&Sha256::digest(&packed));
        let is_default = sha256 == DEFAULT_SHA256;
        if file.is_none() && !is_default {
            return Err(format!("{} is not the file that its README names: its SHA-256 is {sha256}", path.display()).into());
        }
        let text = unpack(&packed).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut messages = parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        // Stable: messages of the same second stay in the order of the file.
        messages.sort_by_key(|message| message.timestamp);
        Ok(Self { path, id: sha256.chars().take(12).collect(), is_default, messages, text })
    }

    /// All inboxes, each once, in order of their ids.
    pub(crate) fn channels(&self) -> Vec<u64> {
        let mut channels: Vec<u64> = self.messages.iter().map(|message| message.channel).collect();
        channels.sort_unstable();
        channels.dedup();
        channels
    }

    /// Counts the file's raw lines again, by other means than the replay reads them with, so that
    /// one mistake cannot hide the other.
    pub(crate) fn count(&self) -> BTreeMap<u64, Counted> {
        let mut inboxes: BTreeMap<u64, Counted> = BTreeMap::new();
        for line in self.text.lines().skip(1) {
            let mut fields = line.split(',').skip(1);
            let Some(channel) = fields.next().and_then(|field| field.parse().ok()) else { continue };
            let counted = inboxes.entry(channel).or_default();
            counted.messages += 1;
            if let Some(sender) = fields.next() {
                counted.senders.insert(sender.to_owned());
            }
        }
        inboxes
    }
}

/// What the file itself says about one inbox.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) messages: i64,
    pub(crate) senders: HashSet<String>,
}

fn default_path() -> PathBuf {
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).join(DEFAULT_FILE);
    if built_from.exists() { built_from } else { PathBuf::from(DEFAULT_FILE) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unpack(packed: &[u8]) -> Result<String> {
    let mut text = String::new();
    let read = if packed.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(packed).take(MAX_SIZE_BYTES + 1).read_to_string(&mut text)?
    } else {
        packed.take(MAX_SIZE_BYTES + 1).read_to_string(&mut text)?
    };
    if u64::try_from(read)? > MAX_SIZE_BYTES {
        return Err(format!("more than {MAX_SIZE_BYTES} bytes unpacked").into());
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Vec<Message>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    if reader.headers()?.iter().ne(HEADER) {
        return Err(format!("the header must be {}", HEADER.join(",")).into());
    }
    let mut messages = Vec::new();
    for (row, record) in (1..).zip(reader.into_deserialize::<(i64, u64, u64)>()) {
        let (timestamp, channel, _sender) = record?;
        if channel == 0 || channel > MAX_ID {
            return Err(format!("row {row}: {channel} is no valid id").into());
        }
        messages.push(Message { row, timestamp, channel });
    }
    if messages.is_empty() {
        return Err("no messages in it".into());
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copied_log_is_whole_and_its_readme_names_it() {
        let log = Log::read(None).expect("the log reads and its checksum fits");
        assert!(log.is_default);
        assert_eq!(log.messages.len(), 59_835);
        assert!(log.messages.is_sorted_by_key(|message| message.timestamp));
        let readme = include_str!("../data/README.md");
        assert!(readme.contains(DEFAULT_SHA256));
        assert!(readme.contains("CC BY-SA 2.0 DE"));
    }

    #[test]
    fn the_direct_count_sees_every_row_once() {
        let log = Log::read(None).expect("the log reads");
        let counted = log.count();
        assert_eq!(counted.len(), 1_862);
        assert_eq!(counted.keys().copied().collect::<Vec<_>>(), log.channels());
        assert_eq!(counted.values().map(|inbox| inbox.messages).sum::<i64>(), 59_835);
        assert_eq!(counted.values().map(|inbox| inbox.messages).max(), Some(558));
        let senders: HashSet<&String> = counted.values().flat_map(|inbox| &inbox.senders).collect();
        assert_eq!(senders.len(), 1_350);
    }

    #[test]
    fn a_log_that_is_none_says_why() {
        let why = |text: &str| parse(text).expect_err("refused").to_string();
        assert_eq!(why("time,to,from\n1,2,3\n"), "the header must be timestamp,channel,sender");
        assert_eq!(why("timestamp,channel,sender\n"), "no messages in it");
        assert_eq!(why("timestamp,channel,sender\n1,0,3\n"), "row 1: 0 is no valid id");
        assert!(why("timestamp,channel,sender\n1,x,3\n").contains("line: 2"));
        assert!(why("timestamp,channel,sender\n1,2\n").contains("line: 2"));
    }

    #[test]
    fn rows_keep_their_number_when_sorted() {
        let messages = parse("timestamp,channel,sender\n9,1,2\n3,1,2\n").expect("parses");
        assert_eq!(messages.iter().map(|message| (message.row, message.timestamp)).collect::<Vec<_>>(), [(1, 9), (2, 3)]);
    }

    #[test]
    fn plain_text_and_gzip_read_alike() {
        assert_eq!(unpack(b"a,b\n").expect("plain"), "a,b\n");
        assert!(unpack(&[0x1f, 0x8b, 8, 0]).is_err(), "a cut gzip file is refused");
    }
}
