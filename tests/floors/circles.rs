//! No two folders of a floor need each other, nor two files: what both need is in a third.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::sources;
use super::uses::Modules;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The nodes that reach each other, and for each of them which of these it uses.
fn circles(graph: &Graph) -> Vec<Graph> {
    let reached: BTreeMap<_, _> = graph.keys().map(|node| (node, reach(graph, node))).collect();
    let mut found = BTreeMap::new();
    for (node, there) in &reached {
        let circle: BTreeSet<String> =
            there.iter().filter(|other| reached.get(other).is_some_and(|back| back.contains(*node))).cloned().collect();
        if circle.len() > 1 {
            let uses = |node: &String| (node.clone(), graph[node].intersection(&circle).cloned().collect());
            found.entry(circle.clone()).or_insert_with(|| circle.iter().map(uses).collect());
        }
    }
    found.into_values().collect()
}

fn reach(graph: &Graph, from: &String) -> BTreeSet<String> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(node) = left.pop() {
        left.extend(graph.get(node).into_iter().flatten().filter(|next| reached.insert((*next).clone())));
    }
    reached
}

fn files() -> Graph {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut found);
    let graph = Modules::new(&found).edges();
    let edges: usize = graph.values().map(BTreeSet::len).sum();
    assert!(graph.len() > 150 && edges > 500, "the sources are read: {} files, {edges} edges", graph.len());
    graph
}

/// `features/groups` of `features/groups/http.rs`. The summary is one module.
fn folder(file: &str) -> String {
    if file.starts_with("summary/") {
        return "summary".to_owned();
    }
    let parts: Vec<_> = file.trim_end_matches(".rs").split('/').filter(|part| *part != "mod").take(2).collect();
    parts.join("/")
}

/// A line for each node: what it uses in its circle.
fn tell(circles: &[Graph]) -> String {
    let line = |(node, uses): (&String, &BTreeSet<String>)| format!("{node} -> {}\n", Vec::from_iter(uses.clone()).join(", "));
    circles.iter().map(|circle| circle.iter().map(line).collect::<String>()).collect::<Vec<_>>().join("\n")
}

#[test]
fn no_folders_need_each_other() {
    let mut graph = Graph::new();
    for (file, uses) in files() {
        let own = folder(&file);
        graph.entry(own.clone()).or_default().extend(uses.iter().map(|file| folder(file)).filter(|other| *other != own));
    }
    let found = circles(&graph);
    assert!(found.is_empty(), "folders need each other:\n{}", tell(&found));
}

#[test]
fn no_files_need_each_other() {
    let found = circles(&files());
    assert!(found.is_empty(), "files need each other:\n{}", tell(&found));
}

#[test]
fn a_circle_is_found_and_what_only_leads_to_it_is_not_in_it() {
    let edges = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "")];
    let mut graph = Graph::new();
    for (from, to) in edges {
        graph.entry(from.to_owned()).or_default().insert(to.to_owned());
    }
    assert_eq!(tell(&circles(&graph)), "b -> c\nc -> b\n");
}
