//! One form for all texts of the same JSON value, so that a retry counts as the same request
//! however a client writes it.
//!
//! Spaces, the order of an object's fields and the escapes in a string do not matter. A number
//! counts as it is written: `1` and `1.0` differ, because Headmark keeps the text of numbers
//! (`data` of a broadcast).

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The form of a text that the parser has taken for JSON, and that nests no deeper than
/// [`super::body`] allows.
pub(super) fn canonical(json: &[u8]) -> Vec<u8> {
    let mut form = Vec::with_capacity(json.len());
    match serde_json::from_slice(json) {
        Ok(value) => write(value, &mut form),
        Err(_) => form.extend_from_slice(json),
    }
    form
}

fn write(value: &RawValue, form: &mut Vec<u8>) {
    let text = value.get();
    // A value that does not parse as what it begins like stays as it is written.
    match text.bytes().next() {
        Some(b'{') => match serde_json::from_str::<BTreeMap<String, &RawValue>>(text) {
            Ok(fields) => {
                form.push(b'{');
                for (name, value) in fields {
                    write_text(&name, form);
                    write(value, form);
                }
                form.push(b'}');
            }
            Err(_) => write_text(text, form),
        },
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(items) => {
                form.push(b'[');
                items.into_iter().for_each(|item| write(item, form));
                form.push(b']');
            }
            Err(_) => write_text(text, form),
        },
        Some(b'"') => write_text(serde_json::from_str::<String>(text).as_deref().unwrap_or(text), form),
        // A number, `true`, `false` or `null`. A semicolon ends it, which none of them has.
        _ => {
            form.extend_from_slice(text.as_bytes());
            form.push(b';');
        }
    }
}

/// A text after its length in bytes, so that no text can end early or run into the next.
fn write_text(text: &str, form: &mut Vec<u8>) {
    form.extend_from_slice(format!("\"{}:", text.len()).as_bytes());
    form.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_what_a_value_says_matters() {
        let same = |one: &str, other: &str| canonical(one.as_bytes()) == canonical(other.as_bytes());
        assert!(same(r#"{"a":1,"b":[true,{"x":null,"y":"z"}]}"#, " {\n\"b\" : [ true , {\"y\":\"z\",\"x\":null}\t], \"a\" : 1 } "));
        assert!(same(r#"{"a/b":"\u00e9\n\"\\"}"#, r#"{"a\/b":"é\u000a\u0022\u005c"}"#));
        assert!(same(r#""\ud83d\ude00""#, "\"😀\"") && same("{}", "{ }") && same("[]", "[\n]"));
        for (one, other) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("12345678901234567890.1", "12345678901234567890.2"),
            ("1e999", "2e999"),
            ("1", "\"1\""),
            ("[1,2]", "[2,1]"),
            ("[1,2]", "[12]"),
            ("[[1],2]", "[[1,2]]"),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#"{"a":{"b":1},"c":2}"#, r#"{"a":{"b":1,"c":2}}"#),
            (r#"["a","b"]"#, r#"["a\",\"b"]"#),
            (r#""\ud83d""#, r#""\ud83e""#),
            ("null", "{}"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn the_deepest_body_is_walked_too() {
        let mut json = format!("\"{}\"", "x".repeat(1024 * 1024));
        for _ in 0..127 {
            json = format!("{{\"b\":{json},\"a\":0}}");
        }
        assert!(canonical(json.as_bytes()).len() >= 1024 * 1024);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(".{0,3}", inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_are_equal_when_their_forms_are(one in any_value(), other in any_value()) {
            let pretty = serde_json::to_vec_pretty(&one).unwrap();
            let [one_form, other_form] = [&one, &other].map(|value| canonical(value.to_string().as_bytes()));
            prop_assert_eq!(&canonical(&pretty), &one_form);
            prop_assert_eq!(one == other, one_form == other_form);
        }
    }
}
