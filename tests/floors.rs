//! The modules of the program are floors, and imports go down only: read from the sources.

mod circles;
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// From the ground up. Those on one floor do not know each other.
const FLOORS: [&[&str]; 9] =
    [&["base"], &["db"], &["cache"], &["engine"], &["http"], &["features"], &["summary"], &["maintenance"], &["app"]];

/// What tests may take from above: the rows of all features, without which no batch can be made.
const FOR_TESTS: &str = "app::ROW_SETS";

/// The part of a source before its tests, and its tests.
fn apart(source: &str) -> (&str, &str) {
    source.split_once("#[cfg(test)]\nmod ").unwrap_or((source, ""))
}

/// What a source names as `crate::…`, to the end of the path or the leaves of the group, comments
/// aside.
fn imports(source: &str) -> BTreeSet<String> {
    let code = source.lines().filter_map(|line| line.split("//").next()).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(rest.len());
        let (path, after) = rest.split_at(end);
        match after.strip_prefix('{') {
            Some(group) => found.extend(leaves(group).iter().map(|leaf| format!("{path}{leaf}"))),
            None => _ = found.insert(path.to_owned()),
        }
    }
    found
}

/// The first names of a group of imports: `a::B, c::{D, E}}; …` has `a` and `c`.
fn leaves(group: &str) -> Vec<String> {
    let (mut depth, mut leaf, mut leaves) = (0, String::new(), Vec::new());
    for c in group.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth < 0 || (depth == 0 && c == ',') {
            leaves.push(std::mem::take(&mut leaf));
        } else {
            leaf.push(c);
        }
        if depth < 0 {
            break;
        }
    }
    let first = |leaf: &String| leaf.trim().split("::").next().filter(|first| !first.is_empty()).map(str::to_owned);
    leaves.iter().filter_map(first).collect()
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// Whether a source has tests alone.
fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Every source below a folder, except those that have tests alone: its path from there, and its
/// text.
fn sources(folder: &Path, inside: &str, found: &mut Vec<(String, String)>) {
    all_sources(folder, inside, found);
    found.retain(|(path, _)| !is_test(path));
}

/// The same with those.
fn all_sources(folder: &Path, inside: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let inner = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
        if path.is_dir() {
            all_sources(&path, &inner, found);
        } else if name.ends_with(".rs") {
            found.push((inner, fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn imports_go_down_only() {
    let mut found = Vec::new();
    all_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut found);
    let mut up: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let mut inside = 0;
    for (path, source) in &found {
        let Some((own, _)) = path.split_once('/') else { continue };
        let at = floor(own).unwrap_or_else(|| panic!("src/{path} is on no floor"));
        let (code, tests) = if is_test(path) { ("", source.as_str()) } else { apart(source) };
        let of_tests = imports(tests).into_iter().filter(|import| import != FOR_TESTS);
        for import in imports(code).into_iter().chain(of_tests) {
            let (to, rest) = import.split_once("::").unwrap_or((&import, ""));
            let Some(other) = floor(to) else { continue };
            inside += usize::from(other <= at);
            if other > at || (other == at && to != own) {
                // The summary is one module.
                let module =
                    rest.split("::").next().filter(|name| to != "summary" && name.starts_with(char::is_lowercase)).unwrap_or_default();
                let module = format!("{to}::{module}");
                up.entry((own.to_owned(), module.trim_end_matches("::").to_owned())).or_default().insert(path.clone());
            }
        }
    }
    assert!(found.len() > 150 && inside > 500, "the sources are read: {} files, {inside} imports", found.len());
    let wrong: Vec<_> = up.iter().map(|((from, to), files)| format!("{from} imports {to}: {files:?}")).collect();
    assert!(wrong.is_empty(), "imports go up:\n{}", wrong.join("\n"));
}

#[test]
fn an_import_is_found_where_it_stands() {
    let source = "use crate::db::{Db, a::{B, C}};\n// crate::http::path\nfn a() { crate::http::pages::next() }\n#[cfg(test)]\nmod tests { use crate::app::node; }";
    let (code, tests) = apart(source);
    assert_eq!(imports(code), ["db::Db", "db::a", "http::pages::next"].map(str::to_owned).into());
    assert_eq!(imports(tests), ["app::node".to_owned()].into());
}
