//! What fields of bodies refuse beyond what serde does: `null`, arrays for objects, repeated keys.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::strict::Strict;

/// Reads an optional field that is there, and refuses `null`: a client that lost its value must not
/// mean the default, which may be "everything": `#[serde(default, deserialize_with = "present")]`.
///
/// # Errors
/// The deserializer's own.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// An object. serde by itself takes an array for one, whose values would then be its fields in order.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }

        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// Reads an optional object that is there, and refuses `null` as [`present`] does, and an array:
/// `#[serde(default, deserialize_with = "object")]`.
///
/// # Errors
/// The deserializer's own, and one for what is no object.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Object::deserialize(deserializer).map(|object| Some(object.0))
}

/// Reads a list of objects: `#[serde(deserialize_with = "objects")]`.
///
/// # Errors
/// The deserializer's own, and one for what is no object.
pub fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Vec::<Object<T>>::deserialize(deserializer)?.into_iter().map(|object| object.0).collect())
}

/// Reads an object and keeps its text, with its numbers and the order of its fields. `null` is
/// refused, as [`present`] does: `#[serde(default, deserialize_with = "raw_object")]`. So is what
/// readers of the text may fail at: a string that is not Unicode, or a number beyond a double's range.
///
/// # Errors
/// The deserializer's own, and one for what is no object or is refused.
pub fn raw_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    if raw.get().starts_with('{') {
        serde_json::from_str::<Strict>(raw.get()).map_err(D::Error::custom)?;
        return Ok(Some(raw));
    }
    let found = match raw.get().bytes().next() {
        Some(b'[') => Unexpected::Seq,
        Some(b'"') => Unexpected::Other("string"),
        Some(b'n') => Unexpected::Unit,
        Some(b't') => Unexpected::Bool(true),
        Some(b'f') => Unexpected::Bool(false),
        _ => Unexpected::Other("number"),
    };
    Err(D::Error::invalid_type(found, &"an object"))
}

/// Reads an object as a map, and refuses a key that is there twice, of which serde would silently
/// keep the last: `#[serde(default, deserialize_with = "unique_map")]`.
///
/// # Errors
/// The deserializer's own, and one for the second key.
pub fn unique_map<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + fmt::Display,
    V: Deserialize<'de>,
{
    struct Unique<K, V>(PhantomData<(K, V)>);

    impl<'de, K: Deserialize<'de> + Ord + fmt::Display, V: Deserialize<'de>> Visitor<'de> for Unique<K, V> {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry::<K, V>()? {
                if map.contains_key(&key) {
                    return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }

    deserializer.deserialize_map(Unique(PhantomData))
}
