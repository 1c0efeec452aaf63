//! What of a change of a schema breaks those who send it, or those who receive it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// Which way the value goes, from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// What was valid must stay valid.
    Sent,
    /// What comes must be what could come before.
    Received,
}

/// Bounds of which the new one must not be lower, and those of which it must not be higher, in
/// what is sent.
const CEILINGS: [&str; 3] = ["maximum", "maxLength", "maxItems"];
const FLOORS: [&str; 3] = ["minimum", "minLength", "minItems"];

/// Words whose value is a schema.
const WITHIN: [&str; 3] = ["items", "additionalProperties", "propertyNames"];

/// Compares the schemas of two documents.
#[derive(Debug)]
pub struct Schemas<'a> {
    pub old: &'a Value,
    pub new: &'a Value,
    /// Pairs of named schemas that were compared, or are being compared, each way.
    seen: BTreeSet<(String, String, Way)>,
    pub found: BTreeSet<String>,
}

/// An object, with what it is composed of put together.
#[derive(Debug, Default)]
struct Object<'a> {
    properties: BTreeMap<&'a str, &'a Value>,
    required: BTreeSet<&'a str>,
    /// Alternatives, of which one holds beside the rest.
    one_of: Vec<&'a Value>,
    /// Schemas of what is inside, by word.
    within: BTreeMap<&'a str, &'a Value>,
    /// All other words of the schema.
    rest: Map<String, Value>,
}

impl<'a> Schemas<'a> {
    pub fn new(old: &'a Value, new: &'a Value) -> Self {
        Self { old, new, seen: BTreeSet::new(), found: BTreeSet::new() }
    }

    /// Compares two schemas. Findings in a schema with a name are said of that name, once.
    pub fn compare(&mut self, at: &str, way: Way, old: &'a Value, new: &'a Value) {
        let (old_name, new_name) = (name(old), name(new));
        let mut at = at.to_owned();
        if let (Some(old_name), Some(new_name)) = (old_name, new_name) {
            if !self.seen.insert((old_name.to_owned(), new_name.to_owned(), way)) {
                return;
            }
            if old_name == new_name {
                at = format!("{old_name} ({})", if way == Way::Sent { "sent" } else { "received" });
            }
        }
        let (mut old_object, mut new_object) = (Object::default(), Object::default());
        collect(self.old, old, &mut old_object);
        collect(self.new, new, &mut new_object);
        self.compare_objects(&at, way, &old_object, &new_object);
    }

    fn say(&mut self, at: &str, what: &str) {
        self.found.insert(format!("{at}: {what}"));
    }

    fn compare_objects(&mut self, at: &str, way: Way, old: &Object<'a>, new: &Object<'a>) {
        self.compare_words(at, way, &old.rest, &new.rest);
        for (property, old_schema) in &old.properties {
            match new.properties.get(property) {
                Some(new_schema) => self.compare(&format!("{at}.{property}"), way, old_schema, new_schema),
                None => self.say(&format!("{at}.{property}"), "is gone"),
            }
        }
        let (required, what) = match way {
            Way::Sent => (new.required.difference(&old.required), "is required now"),
            Way::Received => (old.required.difference(&new.required), "may be missing now"),
        };
        for property in required.filter(|property| way == Way::Sent || new.properties.contains_key(*property)) {
            self.say(&format!("{at}.{property}"), what);
        }
        self.compare_alternatives(at, way, &old.one_of, &new.one_of);
        for word in WITHIN {
            self.compare_within(&format!("{at}[{word}]"), way, old.within.get(word).copied(), new.within.get(word).copied());
        }
    }

    /// Each alternative of one side must have a match on the other.
    fn compare_alternatives(&mut self, at: &str, way: Way, old: &[&'a Value], new: &[&'a Value]) {
        let matches = |old: &'a Value, new: &'a Value| {
            let mut alone = Schemas::new(self.old, self.new);
            alone.compare("", way, old, new);
            alone.found.is_empty()
        };
        let (ones, others, what) = match way {
            Way::Sent => (old, new, "is no longer taken"),
            Way::Received => (new, old, "may come now"),
        };
        if ones.is_empty() && !others.is_empty() {
            self.say(at, "has another number of alternatives");
        }
        let fits = |one: &'a Value, other: &'a Value| if way == Way::Sent { matches(one, other) } else { matches(other, one) };
        // Without alternatives on the other side, the rest of the schema decides.
        for one in ones.iter().filter(|_| !others.is_empty()) {
            if !others.iter().any(|other| fits(one, other)) {
                self.say(at, &format!("{} {what}", label(one)));
            }
        }
    }

    fn compare_within(&mut self, at: &str, way: Way, old: Option<&'a Value>, new: Option<&'a Value>) {
        match (old, new) {
            (Some(old), Some(new)) if old.is_object() && new.is_object() => self.compare(at, way, old, new),
            // Anything was taken before, or anything may come now.
            (None | Some(Value::Bool(true)), Some(_)) if way == Way::Sent => self.say(at, "is restricted now"),
            (Some(_), None | Some(Value::Bool(true))) if way == Way::Received => self.say(at, "is no longer restricted"),
            _ => {}
        }
    }

    fn compare_words(&mut self, at: &str, way: Way, old: &Map<String, Value>, new: &Map<String, Value>) {
        let (old_types, new_types) = (words(old.get("type")), words(new.get("type")));
        if !fits(way, old_types.as_ref(), new_types.as_ref()) {
            self.say(at, &format!("has another type: {old_types:?}, now {new_types:?}"));
        }
        let (old_values, new_values) = (words(old.get("enum")), words(new.get("enum")));
        if !fits(way, old_values.as_ref(), new_values.as_ref()) {
            self.say(at, &format!("has other values: {old_values:?}, now {new_values:?}"));
        }
        if old.get("format") != new.get("format") {
            self.say(at, "has another format");
        }
        if way == Way::Received {
            return;
        }
        let number = |schema: &Map<String, Value>, word: &str| schema.get(word).and_then(Value::as_f64);
        for word in CEILINGS {
            if number(new, word).is_some_and(|new| number(old, word).is_none_or(|old| new < old)) {
                self.say(at, &format!("{word} is lower"));
            }
        }
        for word in FLOORS {
            if number(new, word).is_some_and(|new| new > number(old, word).unwrap_or(f64::MIN) && (word == "minimum" || new > 0.0)) {
                self.say(at, &format!("{word} is higher"));
            }
        }
        for word in ["pattern", "uniqueItems"] {
            if new.get(word).is_some_and(|new| old.get(word) != Some(new)) {
                self.say(at, &format!("{word} is new or another"));
            }
        }
        if old.get("default") != new.get("default") {
            self.say(at, "has another default");
        }
    }
}

/// Whether what is taken did not shrink, or what may come did not grow. `None` is everything.
fn fits(way: Way, old: Option<&BTreeSet<String>>, new: Option<&BTreeSet<String>>) -> bool {
    let (less, more) = if way == Way::Sent { (old, new) } else { (new, old) };
    match (less, more) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(less), Some(more)) => less.is_subset(more),
    }
}

/// The name of a schema of `components`.
fn name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// What to call an alternative.
fn label(schema: &Value) -> String {
    let tag = schema["properties"].as_object().into_iter().flatten().find_map(|(name, schema)| Some((name, schema["enum"].get(0)?)));
    match (name(schema), schema["title"].as_str(), tag) {
        (Some(name), ..) | (None, Some(name), _) => name.to_owned(),
        (None, None, Some((name, value))) => format!("{name} {value}"),
        (None, None, None) => "an alternative".to_owned(),
    }
}

/// One word or a list of them.
fn words(value: Option<&Value>) -> Option<BTreeSet<String>> {
    match value? {
        Value::Array(values) => Some(values.iter().map(Value::to_string).collect()),
        value => Some(BTreeSet::from([value.to_string()])),
    }
}

/// Puts a schema together: what it refers to, and all that it is composed of.
fn collect<'a>(document: &'a Value, schema: &'a Value, into: &mut Object<'a>) {
    if let Some(path) = schema["$ref"].as_str() {
        let target = document.pointer(path.trim_start_matches('#')).unwrap_or_else(|| panic!("{path} leads nowhere"));
        collect(document, target, into);
    }
    for (word, value) in schema.as_object().into_iter().flatten() {
        match (word.as_str(), value) {
            ("allOf", Value::Array(parts)) => {
                parts.iter().for_each(|part| collect(document, part, into));
            }
            ("oneOf", Value::Array(alternatives)) => {
                into.one_of.extend(alternatives);
            }
            ("properties", Value::Object(properties)) => {
                into.properties.extend(properties.iter().map(|(name, schema)| (name.as_str(), schema)));
            }
            ("required", Value::Array(names)) => into.required.extend(names.iter().filter_map(Value::as_str)),
            (word, value) if WITHIN.contains(&word) => {
                into.within.insert(word, value);
            }
            _ => {
                into.rest.insert(word.clone(), value.clone());
            }
        }
    }
}
