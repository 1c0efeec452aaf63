//! The scripts, typed: what each is called with, and what its reply says.

use std::sync::Arc;
use std::time::Duration;

use deadpool_redis::redis::{Cmd, Script, ToRedisArgs, Value, cmd};
use rand::RngExt as _;

use super::pieces::{Packed, Pieces};
use crate::base::ids::UserId;
use crate::cache::{CacheConfig, Change, Entry, FactsChange, FillToken, HISTORY_STEP, Lookup, Parts, READ_LEASE, Revision, Writer};

macro_rules! script {
    ($file:literal) => {
        Source::new(concat!(include_str!("../scripts/prelude.lua"), "\n", include_str!(concat!("../scripts/", $file))))
    };
}

/// A script with its text, for servers that do not know it yet.
pub(super) struct Source {
    text: &'static str,
    script: Script,
}

impl Source {
    fn new(text: &'static str) -> Self {
        Self { text, script: Script::new(text) }
    }
}

/// Every script, and the times that they are given.
pub(super) struct Scripts {
    begin: Source,
    get: Source,
    fill: Source,
    apply: Source,
    abandon: Source,
    read_lease: Source,
    /// None on a cluster, where no key is beside all others.
    beside: Option<Beside>,
    lease_ms: u64,
    ttl_ms: u64,
}

/// What is filled in lives up to this part of a whole life less: what was filled in at one moment
/// (after a flush, say) is then not read again at one moment.
const SPREAD: u64 = 8;

/// How long what was read may be filled in: longer than any read takes, and short enough that a
/// reader that stood still while others committed past the cache does not fill in what was there
/// before. A bypass holds for longer after the last reader can have been given a token.
const TOKEN_LIFE: Duration = Duration::from_secs(10);

/// The keys beside all entries.
struct Beside {
    /// The writers of entries that are not there.
    writers: String,
    /// The nodes that hold a read lease.
    readers: String,
}

/// The life of the keys beside the entries. Far longer than that of an entry, so that they are not what
/// Redis evicts first.
const BESIDE_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// How many fields a hash of facts may have as a list, through which HMGET goes once for each
/// field. A value that is too long for such a list makes it a table.
const MOST_IN_A_LIST: usize = 32;
const LISTPACK_VALUE_BYTES: usize = 64;

/// The revision of facts, as the scripts have it.
const FACTS: Revision = -1;

/// How a call names its script.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// By its hash, which the server must know.
    Hash,
    /// By its text, after which the server knows it.
    Text,
}

impl Source {
    /// A call on this key, to which the arguments are still to be added.
    fn call(&self, form: Form, key: &str) -> Cmd {
        let mut call = self.call_on(form, 1);
        call.arg(key);
        call
    }

    /// A call on so many keys, which are still to be added, and then the arguments.
    fn call_on(&self, form: Form, keys: usize) -> Cmd {
        let mut call = match form {
            Form::Hash => cmd("EVALSHA"),
            Form::Text => cmd("EVAL"),
        };
        match form {
            Form::Hash => call.arg(self.script.get_hash()),
            Form::Text => call.arg(self.text),
        };
        call.arg(keys);
        call
    }
}

/// A token as the scripts have it.
fn hex(token: u64) -> String {
    format!("{token:x}")
}

/// Parts as Redis holds them.
fn packed(parts: &Parts) -> Vec<Packed<'_>> {
    parts.iter().map(|(field, value)| Packed::new(field, value)).collect()
}

fn add_fields(call: &mut Cmd, parts: &[Packed<'_>]) {
    for (field, value) in parts.iter().flat_map(Packed::pieces) {
        call.arg(&*field).arg(value);
    }
}

fn add_codes(call: &mut Cmd, codes: &[(UserId, u8)]) {
    for (other, code) in codes {
        call.arg(other.get()).arg(*code);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Scripts {
    pub(super) fn new(config: &CacheConfig, is_cluster: bool) -> Self {
        Self {
            begin: script!("begin.lua"),
            get: script!("get.lua"),
            fill: script!("fill.lua"),
            apply: script!("apply.lua"),
            abandon: script!("abandon.lua"),
            read_lease: script!("read_lease.lua"),
            beside: (!is_cluster)
                .then(|| Beside { writers: format!("{}writers", config.prefix), readers: format!("{}readers", config.prefix) }),
            lease_ms: millis(config.lease),
            // Dirt must not expire before the lease that it stands for.
            ttl_ms: millis(config.ttl.max(config.lease)),
        }
    }

    /// All of them, to be loaded.
    pub(super) fn all(&self) -> impl Iterator<Item = &Script> {
        let all = [&self.begin, &self.get, &self.fill, &self.apply, &self.abandon, &self.read_lease];
        all.into_iter().map(|source| &source.script)
    }

    /// Of what is filled in now.
    pub(super) fn life_ms(&self) -> u64 {
        self.ttl_ms - rand::rng().random_range(0..=self.ttl_ms / SPREAD)
    }

    /// A call with the keys of these entries, then the list of writers of missing entries, then one more key.
    fn call(&self, script: &Source, form: Form, keys: &[impl ToRedisArgs], more: Option<&String>) -> Cmd {
        let writers = self.beside.as_ref().map(|beside| &beside.writers);
        let mut call = script.call_on(form, keys.len() + usize::from(writers.is_some()) + usize::from(more.is_some()));
        call.arg(keys).arg(writers).arg(more);
        call
    }

    /// Its reply is for [`read_begun`].
    pub(super) fn begin_write(&self, form: Form, keys: &[String], writer: Writer, node: u64) -> Cmd {
        let readers = self.beside.as_ref().map(|beside| &beside.readers);
        let mut call = self.call(&self.begin, form, keys, readers);
        call.arg(hex(writer.0)).arg(self.lease_ms).arg(self.ttl_ms).arg(readers.map(|_| hex(node)).unwrap_or_default());
        call.arg(millis(READ_LEASE)).arg(BESIDE_TTL_MS);
        call
    }

    /// None on a cluster.
    pub(super) fn read_lease(&self, form: Form, node: u64) -> Option<Cmd> {
        let mut call = self.read_lease.call(form, &self.beside.as_ref()?.readers);
        call.arg(hex(node)).arg(self.lease_ms).arg(BESIDE_TTL_MS);
        Some(call)
    }

    /// Its reply is for [`read_lookup`].
    pub(super) fn get(&self, form: Form, key: &str, nonce: u64, epoch: i64) -> Cmd {
        self.get_with(form, key, nonce, epoch, true)
    }

    /// Its reply is for [`read_token`].
    pub(super) fn facts_token(&self, form: Form, key: &str, nonce: u64, epoch: i64) -> Cmd {
        self.get_with(form, key, nonce, epoch, false)
    }

    fn get_with(&self, form: Form, key: &str, nonce: u64, epoch: i64, wants_fields: bool) -> Cmd {
        let mut call = self.call(&self.get, form, &[key], None);
        call.arg(hex(nonce)).arg(self.ttl_ms).arg(epoch).arg(u8::from(wants_fields)).arg(millis(TOKEN_LIFE));
        call
    }

    /// Its reply is for [`is_yes`].
    pub(super) fn fill(&self, form: Form, key: &str, token: FillToken, epoch: i64, entry: &Entry) -> Cmd {
        let mut call = self.fill.call(form, key);
        call.arg(hex(token.0)).arg(epoch).arg(self.life_ms());
        call.arg("!r").arg(entry.revision).arg("!e").arg(epoch);
        add_fields(&mut call, &packed(&entry.parts));
        call
    }

    /// Its reply is for [`is_yes`].
    pub(super) fn fill_facts(&self, form: Form, key: &str, token: FillToken, epoch: i64, codes: &[(UserId, u8)]) -> Cmd {
        let mut call = self.fill.call(form, key);
        call.arg(hex(token.0)).arg(epoch).arg(self.life_ms());
        call.arg("!r").arg(FACTS).arg("!e").arg(epoch);
        if codes.len() > MOST_IN_A_LIST {
            call.arg("!p").arg(".".repeat(LISTPACK_VALUE_BYTES + 1));
        }
        add_codes(&mut call, codes);
        call
    }

    /// A change for each key; `prefix` is what all keys begin with. Its reply is for
    /// [`read_applied`].
    pub(super) fn apply_write(
        &self,
        form: Form,
        keys: &[String],
        prefix: &str,
        writer: Writer,
        epoch: i64,
        changes: &[Applied<'_>],
    ) -> Cmd {
        let mut call = self.call(&self.apply, form, keys, None);
        call.arg(hex(writer.0)).arg(epoch).arg(prefix).arg(keys.len());
        for change in changes {
            match change {
                Applied::Entry(Change { before, after, parts: Some(parts), .. }) => {
                    let parts = packed(parts);
                    let count: usize = parts.iter().map(Packed::count).sum();
                    call.arg(*before).arg(2 + 2 * count).arg("!r").arg(*after);
                    add_fields(&mut call, &parts);
                }
                Applied::Facts(FactsChange { codes: Some(codes), .. }) => {
                    call.arg("").arg(2 * codes.len());
                    add_codes(&mut call, codes);
                }
                Applied::Entry(Change { before, after, parts: None, .. }) if before != after => drop(call.arg("+").arg(0)),
                Applied::Entry(_) | Applied::Facts(_) => drop(call.arg("-").arg(0)),
            }
        }
        call
    }

    pub(super) fn abandon_write(&self, form: Form, keys: &[String], writer: Writer) -> Cmd {
        let mut call = self.call(&self.abandon, form, keys, None);
        call.arg(hex(writer.0)).arg(keys.len());
        call
    }
}

/// What is applied to a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Applied<'a> {
    Entry(&'a Change),
    Facts(&'a FactsChange),
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The entry is clean.
    Clean,
    Dirty,
    /// The same, and the writer was not inside.
    Outside,
}

/// The reply of `apply.lua`. None if it has another form.
pub(super) fn read_applied(reply: &Value) -> Option<Vec<Outcome>> {
    let Value::Array(answers) = reply else { return None };
    let outcome = |answer: &Value| match answer {
        Value::Int(0) => Some(Outcome::Dirty),
        Value::Int(1) => Some(Outcome::Clean),
        Value::Int(2) => Some(Outcome::Outside),
        _ => None,
    };
    answers.iter().map(outcome).collect()
}

/// The reply of `begin.lua`: whether other nodes may show copies, and of each key whether it is not
/// there. None if it has another form.
pub(super) fn read_begun(reply: &Value) -> Option<(bool, impl Iterator<Item = bool>)> {
    let Value::BulkString(flags) = reply else { return None };
    let (shown, absent) = flags.split_first()?;
    Some((*shown == b'1', absent.iter().map(|flag| *flag == b'1')))
}

/// Whether a script that may refuse did what it was asked.
pub(super) fn is_yes(reply: &Value) -> bool {
    reply == &Value::Int(1)
}

/// Fields for which room is made ahead; those of a larger hash make their own.
const MOST_ROOM: usize = 128;

/// An entry's hash as it was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    revision: Option<Revision>,
    epoch: Option<i64>,
    dirty: bool,
    parts: Parts,
    pieces: Pieces,
}

impl Found {
    /// The content, if it is as new as the last acknowledged write.
    pub(super) fn clean(self, epoch: i64) -> Option<Entry> {
        if self.dirty || self.epoch != Some(epoch) {
            return None;
        }
        self.shown()
    }

    /// The content, however old; None if it was never filled.
    fn shown(self) -> Option<Entry> {
        let Self { revision, mut parts, pieces, .. } = self;
        pieces.join(&mut parts)?;
        revision.map(|revision| Entry { revision, parts })
    }

    /// One field of the hash. None if this cannot be one of ours.
    fn take(&mut self, field: &[u8], value: &[u8]) -> Option<()> {
        if field.first() == Some(&b'!') {
            match field {
                b"!r" => self.revision = Some(number(value)?),
                b"!e" => self.epoch = Some(number(value)?),
                b"!d" => self.dirty = true,
                _ => {}
            }
        } else {
            self.pieces.take(std::str::from_utf8(field).ok()?, value, &mut self.parts)?;
        }
        Some(())
    }

    fn take_values(&mut self, field: &Value, value: &Value) -> Option<()> {
        let (Value::BulkString(field), Value::BulkString(value)) = (field, value) else { return None };
        self.take(field, value)
    }
}

fn number(bytes: &[u8]) -> Option<i64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// The reply to HGETALL, of either protocol version; empty where there is no key. None if it has
/// another form.
pub(super) fn read_hash(reply: &Value) -> Option<Found> {
    let mut found = Found::default();
    match reply {
        Value::Array(items) => {
            let mut items = items.iter();
            while let Some(field) = items.next() {
                found.take_values(field, items.next()?)?;
            }
        }
        Value::Map(pairs) => {
            found.parts = Parts::with_room(pairs.len().min(MOST_ROOM));
            for (field, value) in pairs {
                found.take_values(field, value)?;
            }
        }
        _ => return None,
    }
    Some(found)
}

/// The reply of `get.lua` in this epoch. None if it has another form. What is last known is of the same
/// history of the database: a lost one would look like the newest state.
pub(super) fn read_lookup(reply: Value, epoch: i64) -> Option<Lookup> {
    let Value::Array(items) = reply else { return None };
    let [Value::Int(clean), Value::BulkString(token), fields] = <[Value; 3]>::try_from(items).ok()? else { return None };
    let found = read_hash(&fields)?;
    let is_of_now = found.epoch.is_some_and(|of| of / HISTORY_STEP == epoch / HISTORY_STEP);
    let shown = found.shown().filter(|_| is_of_now).map(|entry| Arc::new(entry.into()));
    if clean == 1 {
        return shown.map(Lookup::Hit);
    }
    Some(Lookup::Miss { fill: token_of(&token)?, last_known: shown })
}

/// A token, or none while a writer is inside; None if it is neither.
fn token_of(text: &[u8]) -> Option<Option<FillToken>> {
    match text {
        b"" => Some(None),
        hex => Some(Some(FillToken(u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?))),
    }
}

/// The reply of `get.lua` without fields; no token where they are clean by now. None if it has
/// another form.
pub(super) fn read_token(reply: &Value) -> Option<Option<FillToken>> {
    let Value::Array(items) = reply else { return None };
    let [Value::Int(_), Value::BulkString(token), _] = items.as_slice() else { return None };
    token_of(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn hashes_are_read_in_both_protocol_versions() {
        let pairs = [("!r", "8"), ("!e", "-3"), ("c:mention", "3 120")];
        let flat = Value::Array(pairs.iter().flat_map(|(field, value)| [bulk(field), bulk(value)]).collect());
        let map = Value::Map(pairs.iter().map(|(field, value)| (bulk(field), bulk(value))).collect());
        let parts: Parts = [("c:mention".into(), "3 120".into())].into();
        for reply in [flat, map] {
            assert_eq!(read_hash(&reply).and_then(|found| found.clean(-3)), Some(Entry { revision: 8, parts: parts.clone() }));
            assert_eq!(read_hash(&reply).and_then(|found| found.clean(0)), None);
        }
    }

    #[test]
    fn replies_of_another_form_are_no_hits() {
        let odd = Value::Array(vec![bulk("!r")]);
        let not_a_number = Value::Array(vec![bulk("!r"), bulk("x")]);
        let not_text = Value::Array(vec![bulk("part"), Value::BulkString(vec![0xff])]);
        for reply in [odd, not_a_number, not_text, Value::Nil, Value::Int(1), Value::Okay] {
            assert!(read_hash(&reply).is_none(), "{reply:?}");
            assert!(read_lookup(reply.clone(), 0).is_none(), "{reply:?}");
        }
        assert!(read_hash(&Value::Array(Vec::new())).is_some_and(|found| found.clean(0).is_none()));
    }

    #[test]
    fn what_is_last_known_is_of_the_same_history() {
        let last_known = |of: i64, epoch: i64| {
            let hash = [("!r", "8".to_owned()), ("!e", of.to_string()), ("!d", "1".to_owned()), ("u", "0".to_owned())];
            let fields = hash.iter().flat_map(|(field, value)| [bulk(field), bulk(value)]).collect();
            match read_lookup(Value::Array(vec![Value::Int(0), bulk(""), Value::Array(fields)]), epoch) {
                Some(Lookup::Miss { fill: None, last_known }) => last_known.map(|entry| entry.revision),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([last_known(5, 5), last_known(5, 6)], [Some(8), Some(8)], "the cache was away meanwhile");
        assert_eq!(last_known(5, 5 + HISTORY_STEP), None, "the database was restored");
    }
}
