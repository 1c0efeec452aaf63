//! No statement goes through all rows of a table, unless it says why. The plans are those of SQLite, which needs no
//! rows for them. Both engines use an index with a condition only where the statement repeats that condition.

use std::collections::BTreeSet;

use super::sqlite_rows::{migrated, names, searches};
use crate::support::{Tier, World};

/// What goes through a table, by a piece of its text, and why it may.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("from approval_ends", "all of them, in the order of its key"),
    ("from delivery_jobs t", "those that wait are few"),
    ("from users u limit 1", "whether there is any"),
    ("join lanes l", "lanes are few"),
    ("from lanes l", "lanes are few"),
    ("delete from replica_beats", "nodes are few"),
];

/// What this text calls tables, and nothing else: some names are also those of a part of the statement.
fn called<'a>(text: &'a str, tables: &BTreeSet<String>) -> BTreeSet<&'a str> {
    let words: Vec<_> = text.split_whitespace().map(|word| (word, word.trim_end_matches([',', ')']))).collect();
    let (mut called, mut parts) = (BTreeSet::new(), BTreeSet::new());
    for three in words.windows(3) {
        let [(before, _), (_, name), (_, after)] = three else { continue };
        if matches!(*before, "from" | "join") && tables.contains(*name) {
            called.extend([*name, *after]);
        } else if before.ends_with(')') || *after == "as" {
            parts.insert(*name);
        }
    }
    &called - &parts
}

#[tokio::test]
async fn no_statement_goes_through_all_rows_of_a_table() {
    let world = World::new(Tier::Embedded).await;
    let mut conn = migrated(&world).await;
    let tables = names(&mut conn, "select name from sqlite_master where type = 'table'").await.into_iter().collect();
    let mut found = Vec::new();
    let mut unused: BTreeSet<&str> = EXCEPTIONS.iter().map(|(text, _)| *text).collect();
    for statement in headmark::app::statements() {
        let (text, _) = statement.sqlite_texts(1);
        let called = called(text, &tables);
        let is_scan = |line: &String| match line.split(' ').collect::<Vec<_>>()[..] {
            ["SCAN", name] | ["SCAN", name, "LEFT-JOIN"] => called.contains(name),
            _ => false,
        };
        let scans: Vec<_> = searches(&mut conn, text).await.into_iter().filter(is_scan).collect();
        let exception = EXCEPTIONS.iter().find(|(piece, _)| text.contains(piece));
        match exception {
            Some((piece, _)) if !scans.is_empty() => _ = unused.remove(piece),
            _ if scans.is_empty() => {}
            _ => found.push(format!("{scans:?}: {text}")),
        }
    }
    assert!(found.is_empty(), "these go through a table; use an index, or say why:\n{}", found.join("\n\n"));
    assert_eq!(unused, BTreeSet::new(), "exceptions that no statement needs");
}
