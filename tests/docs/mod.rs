//! The documentation is true: its curls are sent, generated pages follow from the code, names
//! exist, links lead somewhere.
//!
//! `make docs` writes the generated pages.

mod compatibility;
mod deploy;
mod generated;
mod links;
mod names;
mod walks;

use std::fs;
use std::path::Path;

/// A page that people read.
struct Page {
    /// Its path from the root of the repository.
    path: String,
    text: String,
}

/// Pages beside the book.
const BESIDE: [&str; 3] = ["README.md", "CONTRIBUTING.md", "SECURITY.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The paths of all files below a folder, from the root of the repository.
fn files(folder: &str) -> Vec<String> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// The pages of the book, and those beside it.
fn pages() -> Vec<Page> {
    let book = files("docs").into_iter().filter(|path| path.ends_with(".md"));
    let paths = BESIDE.map(str::to_owned).into_iter().chain(book);
    paths.map(|path| Page { text: fs::read_to_string(root().join(&path)).unwrap(), path }).collect()
}

/// Fails with all that was found, a line each.
fn assert_none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}
