//! The curls of the pages, taken as a newcomer takes them: each command, and what it shows.

use std::time::Duration;

use reqwest::Method;

use super::{Page, pages};
use crate::support::{Client, Node, Reply, Tier, World, eventually};

/// A command, and what the page shows below it.
#[derive(Debug)]
struct Step {
    command: String,
    shown: String,
}

/// The steps of a page: its blocks marked `console` that begin with a curl.
fn walk(page: &Page) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let blocks = page.text.split("```console\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    for block in blocks.filter(|block| block.starts_with("$ curl") || block.starts_with("$ (sleep")) {
        for line in block.lines() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command: command.to_owned(), shown: String::new() }),
                (None, Some(step)) => step.shown += &format!("{line}\n"),
                (None, None) => panic!("{line} comes before any command"),
            }
        }
    }
    steps
}

/// As the shell takes them apart.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => (quote, word) = (Some(c), Some(word.unwrap_or_default())),
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// What curl would send, and whether it shows the headers.
fn request(client: &Client, command: &str) -> (reqwest::RequestBuilder, bool) {
    let (mut method, mut headers, mut body, mut path, mut shows_headers) = (None, Vec::new(), None, None, false);
    let mut words = words(command).into_iter();
    assert_eq!(words.next().as_deref(), Some("curl"), "{command}");
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} of {command} has no value"));
        match word.as_str() {
            "-s" => {}
            "-si" => shows_headers = true,
            "-X" => method = Some(value()),
            "-H" => headers.push(value()),
            "--json" => body = Some(value()),
            url => path = Some(url.strip_prefix("http://127.0.0.1:8080").unwrap_or_else(|| panic!("{url} of {command}")).to_owned()),
        }
    }
    let usual = if body.is_some() { Method::POST } else { Method::GET };
    let method = method.map_or(usual, |method| method.parse().unwrap());
    let mut request = client.request(method, &path.expect("an address"));
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name.to_owned(), value.to_owned());
    }
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body);
    }
    (request, shows_headers)
}

/// As curl shows it.
fn show(reply: &Reply, shows_headers: bool) -> String {
    if !shows_headers {
        return format!("{}\n", reply.text).trim_start().to_owned();
    }
    let headers: String = reply.headers.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap())).collect();
    let reason = reply.status.canonical_reason().unwrap_or_default();
    let text = if reply.text.is_empty() { String::new() } else { format!("\n{}\n", reply.text) };
    format!("HTTP/1.1 {} {reason}\n{headers}{text}", reply.status.as_u16())
}

/// A text with what is another each time taken out of it: times, dates, and ids of sixteen
/// hexadecimal digits and more (or of several parts, the first of which is as long, as tags are),
/// and tokens, which are returned.
fn masked(text: &str) -> (String, Vec<String>) {
    let (mut masked, mut ids) = (String::new(), Vec::new());
    let is_time = |word: &str| word.len() == 24 && word.ends_with('Z') && word.contains('T') && word.starts_with("20");
    for line in text.lines() {
        if line.starts_with("date: ") {
            masked += "date: DATE\n";
            continue;
        }
        let mut line = line.to_owned();
        if let Some((before, rest)) = line.split_once("\"token\":\"") {
            let (token, after) = rest.split_once('"').unwrap();
            ids.push(token.to_owned());
            line = format!("{before}\"token\":TOKEN{after}");
        }
        for word in line.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || "-:.".contains(c))) {
            let end = word.len()
                - word.chars().next_back().filter(|c| !(c.is_ascii_alphanumeric() || "-:.".contains(*c))).map_or(0, char::len_utf8);
            let (word, separator) = word.split_at(end);
            if is_time(word) {
                masked += "TIME";
            } else if word.split('.').next().is_some_and(|part| part.len() >= 16)
                && word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || b == b'.')
            {
                masked += "ID";
                ids.push(word.to_owned());
            } else {
                masked += word;
            }
            masked += separator;
        }
        masked.push('\n');
    }
    (masked, ids)
}

/// Takes a page's steps against a node, in their order.
async fn take(node: &Node, page: &str, steps: Vec<Step>) {
    let mut ids: Vec<(String, String)> = Vec::new();
    for Step { command, shown } in steps {
        let command = ids.iter().fold(command, |command, (shown, ours)| command.replace(shown, ours));
        if let Some(later) = command.strip_prefix("(sleep 2; ") {
            let (later, _) = request(&node.client, later.split(" >").next().unwrap());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                Client::send(later).await.ok()
            });
            continue;
        }
        let (curl, filter) = command.split_once(" | ").unwrap_or((&command, ""));
        let (request, shows_headers) = request(&node.client, curl);
        if let Some(operation) = curl.split_once("/v1/operations/") {
            // It is done by the time somebody has typed the command.
            let path = format!("/v1/operations/{}", operation.1);
            eventually("it is done", async || node.client.get(&path).await.ok()["status"] != "pending").await;
        }
        let came = show(&Client::send(request).await, shows_headers);
        let ((expected, theirs), (got, ours)) = (masked(&shown), masked(&came));
        if filter.is_empty() {
            assert_eq!(got, expected, "{page}: {command}");
            ids.extend(theirs.into_iter().zip(ours));
        } else {
            // A part of the lines, in their order.
            let mut lines = got.lines();
            assert!(expected.lines().all(|line| lines.any(|got| got == line)), "{page}: {command}: {got}");
            let location = |text: &str| text.lines().find_map(|line| line.strip_prefix("location: /v1/operations/").map(str::to_owned));
            ids.extend(location(&shown).zip(location(&came)));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_curl_of_a_page_shows_what_it_says() {
    let mut sent = Vec::new();
    for page in pages() {
        let steps = walk(&page);
        if steps.is_empty() {
            continue;
        }
        let world = World::new(Tier::Embedded).await;
        let node = world.node().await;
        let count = steps.len();
        take(&node, &page.path, steps).await;
        node.stop().await;
        sent.push((page.path, count));
    }
    let steps = |path: &str| sent.iter().find(|(page, _)| page == path).map_or(0, |(_, steps)| *steps);
    assert!(steps("README.md") >= 5 && steps("docs/start/walk.md") > 40, "{sent:?}");
}
