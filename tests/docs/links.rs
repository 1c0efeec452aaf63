//! Links between pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use super::{Page, assert_none, pages, root};

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Where the links and pictures of a page lead.
fn targets(text: &str) -> Vec<String> {
    let text: Vec<String> = prose(text).map(without_code).collect();
    let text = text.join("\n");
    let end = |rest: &str, stops: &[char]| rest.split(stops).next().unwrap().to_owned();
    let links = text.split("](").skip(1).map(|rest| end(rest, &[')', ' ']));
    let pictures = text.split("src=\"").skip(1).map(|rest| end(rest, &['"']));
    links.chain(pictures).collect()
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter_map(|line| line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' '));
    let mut anchors = BTreeSet::new();
    for heading in headings {
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = seen.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// A relative path from a page's folder, from the root of the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = Path::new(from).parent()?.iter().map(|part| part.to_str().unwrap()).collect();
    for component in Path::new(target).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

fn fault(page: &Page, target: &str, anchors_of: &BTreeMap<String, BTreeSet<String>>) -> Option<&'static str> {
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let Some(path) = (if path.is_empty() { Some(page.path.clone()) } else { resolve(&page.path, path) }) else {
        return Some("it leaves the repository");
    };
    if !root().join(&path).exists() {
        return Some("there is no such file");
    }
    if page.path.starts_with("docs/") && !path.starts_with("docs/") {
        return Some("a page of the book links to pages of the book only");
    }
    match (anchor, anchors_of.get(&path)) {
        (Some(anchor), Some(anchors)) if !anchors.contains(anchor) => Some("there is no such heading"),
        (Some(_), None) => Some("it is no page with headings"),
        _ => None,
    }
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let anchors_of: BTreeMap<String, BTreeSet<String>> = pages.iter().map(|page| (page.path.clone(), anchors(&page.text))).collect();
    let (mut links, mut faults) = (0, Vec::new());
    for page in &pages {
        for target in targets(&page.text).iter().filter(|target| !target.contains("://")) {
            links += 1;
            faults.extend(fault(page, target, &anchors_of).map(|why| format!("{}: {target}: {why}", page.path)));
        }
    }
    assert_none("links that lead nowhere", &faults);
    assert!(links > 100, "{links} links");
}

#[test]
fn every_page_of_the_book_is_in_its_summary_once() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.path == "docs/SUMMARY.md").unwrap();
    let listed = targets(&summary.text);
    let wrong = pages.iter().filter_map(|page| page.path.strip_prefix("docs/")).filter(|path| *path != "SUMMARY.md");
    let wrong: Vec<String> = wrong.filter(|path| listed.iter().filter(|listed| listed == path).count() != 1).map(str::to_owned).collect();
    assert_none("pages that docs/SUMMARY.md does not list exactly once", &wrong);
}

#[test]
fn a_bad_link_is_found() {
    let anchors_of =
        BTreeMap::from([("docs/start/walk.md".to_owned(), anchors("# A walk\n\n## Poll, then `wait`\n\n## Poll, then wait\n"))]);
    let page = Page { path: "docs/start/walk.md".to_owned(), text: String::new() };
    for target in ["#poll-then-wait", "#poll-then-wait-1", "walk.md#a-walk", "../introduction.md"] {
        assert_eq!(fault(&page, target, &anchors_of), None, "{target}");
    }
    for target in ["#poll", "nowhere.md", "../../README.md", "../introduction.md#introduction", "../../../../etc/passwd"] {
        assert!(fault(&page, target, &anchors_of).is_some(), "{target}");
    }
    assert_eq!(targets("a [b](c.md#d) `[x](y.md)` <img src=\"e.svg\">\n```text\n[f](g.md)\n```\n"), ["c.md#d", "e.svg"]);
}
