//! The files of `deploy/` name what exists, and agree with the pages and with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use headmark::base::clock::Clock;
use headmark::http::auth::{Auth, AuthConfig};
use serde_json::Value;

use super::links::anchors;
use super::names::{metrics, settings, words};
use super::{assert_none, files, root};

/// What a node needs to stop beside its drain: the last writes, and the stores to close.
const SPARE_S: u64 = 25;

/// `HEADMARK_DRAIN_TIMEOUT_MS`, in seconds.
const DRAIN_S: u64 = 25;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The files that are installed, by path.
fn deployed() -> Vec<(String, String)> {
    let beside = ["compose.yaml", "Dockerfile"].map(str::to_owned);
    files("deploy").into_iter().chain(beside).map(|path| (path.clone(), read(&path))).collect()
}

/// The value behind a key, in a file in which it stands once.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let mut found = text.split(key).skip(1);
    let value = found.next().unwrap_or_else(|| panic!("{key} is missing"));
    assert!(found.next().is_none(), "{key} stands twice");
    value.trim_start_matches([' ', '"']).split(['\n', '"', '}', ' ']).next().unwrap()
}

/// A number of seconds, or milliseconds, with or without its unit.
fn seconds(text: &str) -> u64 {
    text.trim_end_matches('s').parse().unwrap_or_else(|_| panic!("{text} is no number of seconds"))
}

/// An alert, as its rule has it.
struct Alert {
    name: String,
    severity: String,
    after: String,
    text: String,
}

fn alerts() -> Vec<Alert> {
    let rules = read("deploy/prometheus/alerts.yml");
    let alert = |text: &str| Alert {
        name: text.lines().next().unwrap().to_owned(),
        severity: value(text, "severity:").to_owned(),
        after: if text.contains(" for:") { value(text, " for:").to_owned() } else { "at once".to_owned() },
        text: text.to_owned(),
    };
    rules.split("- alert: ").skip(1).map(alert).collect()
}

#[test]
fn every_alert_says_what_to_do_and_is_on_its_page() {
    let page = read("docs/operations/alerts.md");
    let anchors = anchors(&page);
    let tested = read("deploy/prometheus/alerts_test.yml");
    let mut wrong = Vec::new();
    let alerts = alerts();
    for Alert { name, severity, after, text } in &alerts {
        let anchor = name.to_lowercase();
        let row = format!("| [{name}](#{anchor}) | {severity} | {after} |");
        let told = [
            (page.contains(&row), format!("docs/operations/alerts.md has no row that begins {row}")),
            (anchors.contains(&anchor), "its page has no heading".to_owned()),
            (value(text, "runbook:") == format!("docs/operations/alerts.md#{anchor}"), "its runbook is elsewhere".to_owned()),
            (text.contains("summary: ") && text.contains("description: "), "it has no summary or description".to_owned()),
            (["critical", "warning"].contains(&severity.as_str()), format!("its severity is {severity}")),
            (tested.contains(&format!("alertname: {name}\n")), "promtool does not test that it fires".to_owned()),
        ];
        wrong.extend(told.into_iter().filter(|(is_so, _)| !is_so).map(|(_, why)| format!("{name}: {why}")));
    }
    let names: BTreeSet<&str> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    let headings = page.lines().filter_map(|line| line.strip_prefix("### "));
    wrong.extend(headings.filter(|heading| !names.contains(heading)).map(|heading| format!("{heading} is no alert")));
    assert_none("alerts", &wrong);
    assert!(alerts.len() > 20, "{} alerts", alerts.len());
}

/// The labels of each metric, as its page has them.
fn labels() -> BTreeMap<String, BTreeSet<String>> {
    let page = read("docs/reference/metrics.md");
    let names = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    names
        .map(|name| {
            let (name, labels) = name.trim_end_matches('}').split_once('{').unwrap_or((name, ""));
            (name.to_owned(), labels.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn every_metric_and_label_of_the_kit_exists() {
    /// What Prometheus and Kubernetes add.
    const ADDED: [&str; 5] = ["job", "instance", "le", "namespace", "pod"];
    let known = labels();
    let (mut wrong, mut selectors) = (Vec::new(), 0);
    // Grafana's file has its queries as JSON texts.
    for (path, text) in deployed().into_iter().map(|(path, text)| (path, text.replace("\\\"", "\""))) {
        for name in metrics(&text).into_iter().filter(|name| !["headmark_polls_per_second"].contains(&name.as_str())) {
            if !known.contains_key(&name) {
                wrong.push(format!("{path}: {name} does not exist"));
            }
        }
        // `name{label="value", …}`
        for (before, rest) in text.match_indices('{').map(|(at, _)| text.split_at(at)) {
            let name = before.rsplit(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap();
            let Some(of_metric) = metrics(name).first().and_then(|name| known.get(name)) else { continue };
            selectors += 1;
            for (label, _) in rest.match_indices('=').map(|(at, _)| rest.split_at(at)).take(8) {
                // A closing brace that ends the selector, and not one inside of a value.
                if label.matches('"').count() % 2 == 1 {
                    continue;
                }
                let outside: String = label.split('"').step_by(2).collect();
                if outside.contains('}') {
                    break;
                }
                let label = outside.rsplit(['{', ',', ' ', '!']).next().unwrap().to_owned();
                if !label.is_empty() && !of_metric.contains(&label) && !ADDED.contains(&label.as_str()) {
                    wrong.push(format!("{path}: {name} has no label {label}"));
                }
            }
        }
    }
    assert_none("metrics of the kit", &wrong);
    assert!(selectors > 80, "{selectors} selectors");
}

#[test]
fn every_setting_of_the_kit_exists() {
    let known = settings();
    let mut unknown = Vec::new();
    for (path, text) in deployed() {
        let names = words(&text, |c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let names = names.filter(|name| name.strip_prefix("HEADMARK_").is_some_and(|rest| !rest.is_empty()));
        unknown.extend(names.filter(|name| !known.contains(*name)).map(|name| format!("{path}: {name}")));
    }
    assert_none("settings that do not exist", &unknown);
}

#[test]
fn the_dashboard_asks_the_chosen_source_and_nothing_else() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/headmark.json")).unwrap();
    let variables: Vec<&str> = dashboard["templating"]["list"].as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect();
    assert_eq!(variables, ["datasource", "job", "instance"]);
    let (mut ids, mut queries) = (BTreeSet::new(), 0);
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        if panel["type"] == "row" {
            continue;
        }
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{}", panel["title"]);
        for asked in panel["targets"].as_array().unwrap().iter().chain([panel]) {
            assert_eq!(asked["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        }
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert!(expression.contains(r#"job="$job", instance=~"$instance""#), "{expression}");
            queries += 1;
        }
    }
    assert!(queries > 40, "{queries} queries");
}

#[test]
fn nobody_kills_a_node_that_drains() {
    let (compose, unit) = (read("compose.yaml"), read("deploy/systemd/headmark.service"));
    let pods = read("deploy/kubernetes/base/deployment.yaml");
    let delay_of_pods = value(&pods, "HEADMARK_DRAIN_DELAY_MS, value:");
    let waits = [
        ("compose.yaml", seconds(value(&compose, "stop_grace_period:")), seconds(value(&compose, "HEADMARK_DRAIN_DELAY_MS:"))),
        ("kubernetes", seconds(value(&pods, "terminationGracePeriodSeconds:")), seconds(delay_of_pods)),
        ("systemd", seconds(value(&unit, "TimeoutStopSec=")), 0),
    ];
    for (who, waits_s, delay_ms) in waits {
        assert!(waits_s >= delay_ms / 1000 + DRAIN_S + SPARE_S, "{who} waits {waits_s} s for a drain with a delay of {delay_ms} ms");
    }
}

#[test]
fn the_proxies_bear_a_held_poll() {
    let proxy = read("deploy/haproxy/haproxy.cfg");
    for side in ["timeout client ", "timeout server "] {
        assert!(seconds(value(&proxy, side)) > 60, "{side}");
    }
    // Shorter than HEADMARK_HEADER_TIMEOUT_MS.
    assert!(seconds(value(&proxy, "timeout http-keep-alive ")) < 65);
    let ingress = read("deploy/kubernetes/example/ingress.yaml");
    assert!(seconds(value(&ingress, "proxy-read-timeout:")) > 60);
    assert_eq!(value(&ingress, "proxy-buffering:"), "off");
}

/// Everybody knows these secrets, so a server that accepted them would be open.
#[test]
fn the_secrets_of_the_example_open_nothing() {
    let secret = |name: &str| read(&format!("deploy/kubernetes/example/secrets/{name}"));
    let auth = |keys: &[&str], jwt_public_key: Option<String>| {
        let service_keys = keys.iter().map(|key| (*key).to_owned().into()).collect();
        let jwt_public_key = jwt_public_key.map(Into::into);
        Auth::new(&AuthConfig { service_keys, jwt_public_key, ..AuthConfig::default() }, Clock::System)
    };
    assert!(auth(&[secret("service-keys").trim()], None).is_err());
    assert!(auth(&["web:0123456789abcdef"], Some(secret("jwt-public-key"))).is_err());
    assert!(auth(&["web:0123456789abcdef"], Some(read("tests/keys/ed.pub.pem"))).is_ok(), "as a key would be taken");
}
