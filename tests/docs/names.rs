//! What pages name exists: settings, metrics, routes, source files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use clap::CommandFactory as _;
use headmark::app::cli::Cli;
use serde_json::Value;

use super::{assert_none, files, pages, root};

/// Variables that no setting has: those of Kubernetes, and those of `scripts/engines.sh`.
const NO_SETTINGS: [&str; 6] = [
    "HEADMARK_SERVICE_HOST",
    "HEADMARK_PORT_8080_TCP",
    "HEADMARK_TEST_POSTGRES",
    "HEADMARK_TEST_REDIS",
    "HEADMARK_PG_BIN",
    "HEADMARK_PG_OWNER",
];

/// The words of a text that are made of such characters.
pub(super) fn words(text: &str, is_part: impl Fn(char) -> bool + Copy) -> impl Iterator<Item = &str> {
    text.split(move |c| !is_part(c)).filter(|word| !word.is_empty())
}

fn variables(command: &clap::Command, found: &mut BTreeSet<String>) {
    found.extend(command.get_arguments().filter_map(clap::Arg::get_env).map(|name| name.to_str().unwrap().to_owned()));
    command.get_subcommands().for_each(|command| variables(command, found));
}

/// The variables that a page may name.
pub(super) fn settings() -> BTreeSet<String> {
    let mut known: BTreeSet<String> = NO_SETTINGS.map(str::to_owned).into();
    variables(&Cli::command(), &mut known);
    known
}

#[test]
fn every_setting_that_a_page_names_exists() {
    let known = settings();
    let mut unknown = Vec::new();
    for page in pages() {
        let names = words(&page.text, |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let names = names.filter(|name| name.strip_prefix("HEADMARK_").is_some_and(|rest| !rest.is_empty()));
        unknown.extend(names.filter(|name| !known.contains(*name)).map(|name| format!("{}: {name}", page.path)));
    }
    assert_none("settings that do not exist", &unknown);
}

/// The default of each setting; that of the server, where a command has another.
fn default_values(command: &clap::Command, found: &mut BTreeMap<String, String>) {
    for arg in command.get_arguments() {
        if let (Some(name), Some(value)) = (arg.get_env(), arg.get_default_values().first()) {
            found.entry(name.to_str().unwrap().to_owned()).or_insert_with(|| value.to_str().unwrap().to_owned());
        }
    }
    command.get_subcommands().for_each(|command| default_values(command, found));
}

#[test]
fn the_limits_that_are_settings_have_their_defaults() {
    let mut defaults = BTreeMap::new();
    default_values(&Cli::command(), &mut defaults);
    let page = fs::read_to_string(root().join("docs/reference/limits.md")).unwrap();
    let (mut compared, mut wrong) = (0, Vec::new());
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cached_heads: Vec<&str> = row.split('|').map(str::trim).collect();
        // Only what is one plain number and one setting can be compared.
        let default = cached_heads[2].replace(',', "");
        let setting = cached_heads[3].trim_matches('`');
        if !default.is_empty() && default.bytes().all(|b| b.is_ascii_digit()) && setting.starts_with("HEADMARK_") && !setting.contains('`')
        {
            compared += 1;
            if defaults.get(setting) != Some(&default) {
                wrong.push(format!("{setting}: the page says {default}, the default is {:?}", defaults.get(setting)));
            }
        }
    }
    assert_none("limits", &wrong);
    assert!(compared > 10, "{compared} compared");
}

/// What the names of metrics begin with: our own, and those of the process that others share.
const PREFIXES: [&str; 6] = ["headmark_", "process_start_", "process_cpu_", "process_resident_", "process_open_fds", "process_max_fds"];

/// The metrics that a text names. `_count`, `_sum` and `_bucket` are parts of a histogram.
pub(super) fn metrics(text: &str) -> BTreeSet<String> {
    let is_metric = |word: &&str| PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    let names = words(text, |c| c.is_ascii_lowercase() || c == '_').filter(is_metric);
    let names = names.filter(|name| !name.ends_with('_'));
    names.map(|name| ["_count", "_sum", "_bucket"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()).collect()
}

#[test]
fn every_metric_is_on_its_page_and_no_page_names_another() {
    // The command line counts nothing; its tests have variables in lower case.
    let sources = files("src").into_iter().filter(|path| !path.starts_with("src/app/cli/"));
    let sources: Vec<String> = sources.map(|path| fs::read_to_string(root().join(path)).unwrap()).collect();
    let in_code: BTreeSet<String> = sources
        .iter()
        .flat_map(|source| source.split('"').filter(|text| PREFIXES.iter().any(|prefix| text.starts_with(prefix)) && !text.contains(' ')))
        .flat_map(metrics)
        .collect();
    assert!(in_code.len() > 30, "{in_code:?}");
    let mut wrong = Vec::new();
    for page in pages() {
        let named = metrics(&page.text);
        wrong.extend(named.difference(&in_code).map(|name| format!("{}: {name} does not exist", page.path)));
        if page.path == "docs/reference/metrics.md" {
            wrong.extend(in_code.difference(&named).map(|name| format!("{}: {name} is missing", page.path)));
        }
    }
    assert_none("metrics", &wrong);
}

#[test]
fn every_route_that_a_page_names_exists() {
    let document: Value = serde_json::from_str(&headmark::app::router::openapi_json().unwrap()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let mut unknown = Vec::new();
    for page in pages().iter().filter(|page| page.path != "docs/benchmarks.md") {
        // Between backticks: a method, then the pattern of a path, and perhaps a query. The
        // benchmarks name their own parameters.
        for code in page.text.split('`').filter(|code| code.contains(" /v1/") && code.contains('{') && !code.contains('\n')) {
            let (methods, path) = code.split_once(" /v1/").unwrap();
            let path = format!("/v1/{}", path.split('?').next().unwrap());
            for method in methods.split(", ").filter(|method| method.bytes().all(|b| b.is_ascii_uppercase())) {
                if paths.get(&path).is_none_or(|operations| operations.get(method.to_lowercase()).is_none()) {
                    unknown.push(format!("{}: {method} {path}", page.path));
                }
            }
        }
    }
    assert_none("routes that do not exist", &unknown);
}

#[test]
fn every_source_file_and_folder_that_a_page_names_exists() {
    let folders = ["src", "tests", "scripts", "examples", "bench", "migrations"];
    let sources: Vec<String> = folders.into_iter().flat_map(files).chain(["build.rs".to_owned()]).collect();
    let exists = |name: &str| sources.iter().any(|path| path == name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with('/')));
    let mut unknown = Vec::new();
    // The benchmarks have scripts of their own for pgbench, which are kept nowhere.
    for page in pages().iter().filter(|page| page.path != "docs/benchmarks.md") {
        let paths = words(&page.text, |c| c.is_ascii_alphanumeric() || "_./-".contains(c));
        let (inside, names): (Vec<_>, Vec<_>) = paths.partition(|path| path.ends_with('/'));
        let inside = inside
            .into_iter()
            .filter(|path| folders.iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))));
        unknown.extend(inside.filter(|path| !root().join(path).is_dir()).map(|path| format!("{}: {path}", page.path)));
        let names = names.into_iter().filter(|name| [".rs", ".lua", ".sql", ".sh", ".py"].iter().any(|end| name.ends_with(end)));
        // What begins with a slash or a dot is the rest of a pattern.
        let names = names.filter(|name| !name.starts_with(['/', '.']));
        unknown.extend(names.filter(|name| !exists(name)).map(|name| format!("{}: {name}", page.path)));
    }
    assert_none("source files that do not exist", &unknown);
}

/// Rows that a migration makes are there before rows are copied, and must be taken out first.
#[test]
fn moving_to_another_engine_empties_what_migrations_filled() {
    let migrations = files("migrations/postgres").into_iter().map(|path| fs::read_to_string(root().join(path)).unwrap());
    let filled: BTreeSet<String> = migrations
        .flat_map(|text| {
            let inserts = text.split("insert into ").skip(1).filter(|insert| insert.split(';').next().unwrap().contains(" values ("));
            inserts.map(|insert| insert.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
        })
        .collect();
    let page = fs::read_to_string(root().join("docs/operations/engines.md")).unwrap();
    let emptied = page.split("echo 'truncate ").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(filled, emptied.split(", ").map(str::to_owned).collect());
    let suite = fs::read_to_string(root().join("tests/support/distributed.rs")).unwrap();
    assert!(filled.iter().all(|table| suite.contains(&format!("insert into {table} "))), "tests/support/distributed.rs: {filled:?}");
}
