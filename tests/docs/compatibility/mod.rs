//! The interface of the newest release still holds: what a client of it sends is taken, and what it
//! receives is as it was. `docs/reference/compatibility.md` has the promise.

mod cases;
mod operations;
mod schemas;

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::{assert_none, files, root};
use operations::breaking_changes;

/// Has the document of each release, as `0.1.0.json`, and the breaking changes since the newest that
/// are meant, in `accepted.txt`.
const RELEASED: &str = "openapi/released";

fn document(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

/// The numbers of the version of a released document.
fn version(path: &str) -> Option<Vec<u64>> {
    let name = path.rsplit('/').next()?.strip_suffix(".json")?;
    Some(name.split('.').map(|number| number.parse().unwrap_or_else(|_| panic!("{path} is not named after a version"))).collect())
}

/// The path of the newest released document.
fn newest() -> Option<String> {
    files(RELEASED).into_iter().filter(|path| version(path).is_some()).max_by_key(|path| version(path))
}

/// Lines of `accepted.txt` that are not empty and no comments.
fn accepted() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(RELEASED).join("accepted.txt")).unwrap();
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn the_interface_of_the_newest_release_holds() {
    let Some(newest) = newest() else {
        assert_none("nothing is released, so nothing can break", &accepted().into_iter().collect::<Vec<_>>());
        return;
    };
    let found = breaking_changes(&document(&newest), &document("openapi/openapi.json"));
    let unexpected: Vec<String> = found.difference(&accepted()).cloned().collect();
    assert_none(&format!("changes that break clients of {newest}; take them back, or see docs/reference/compatibility.md"), &unexpected);
    let stale: Vec<String> = accepted().difference(&found).cloned().collect();
    assert_none("lines of accepted.txt that are no breaking changes", &stale);
}

#[test]
fn a_document_does_not_break_itself() {
    let document = document("openapi/openapi.json");
    assert_eq!(breaking_changes(&document, &document), BTreeSet::new());
}
