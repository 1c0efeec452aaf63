//! Which file of `src/` uses a name that which other file defines, as the sources say it.

use std::collections::{BTreeMap, BTreeSet};

/// A file, without its tests and comments.
struct Module {
    file: String,
    /// The text without its `use` declarations.
    code: String,
    /// What the file calls by a name of its own: the path as it is written.
    uses: BTreeMap<String, Vec<String>>,
    /// What it imports for itself.
    imports: Vec<Vec<String>>,
}

/// All modules by their paths from the root.
pub struct Modules(BTreeMap<Vec<String>, Module>);

impl Modules {
    /// `sources`: a path below `src/`, and the text.
    pub fn new(sources: &[(String, String)]) -> Self {
        let modules = sources.iter().map(|(file, text)| (path(file), Module::new(file, text)));
        Self(modules.collect())
    }

    /// Each file, with the files that it uses.
    pub fn edges(&self) -> BTreeMap<String, BTreeSet<String>> {
        let edges = self.0.iter().map(|(at, module)| {
            let named = words(&module.code);
            let used = named.iter().chain(&module.imports);
            let files = used.filter_map(|path| self.file(at, path)).filter(|file| *file != module.file);
            (module.file.clone(), files.collect())
        });
        edges.collect()
    }

    /// The file that defines what a module calls so, if it is no module itself and no name of
    /// elsewhere.
    fn file(&self, at: &[String], path: &[String]) -> Option<String> {
        let (module, name) = self.resolve(at, path)?;
        name.then(|| self.0[&module].file.clone())
    }

    /// The module where a path ends, and whether it names something in there.
    fn resolve(&self, at: &[String], path: &[String]) -> Option<(Vec<String>, bool)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.inside(Vec::new(), rest),
            "self" => self.inside(at.to_vec(), rest),
            "super" => {
                let parent = at.split_last()?.1;
                if rest.first().is_some_and(|next| next == "super") {
                    self.resolve(parent, rest)
                } else {
                    self.inside(parent.to_vec(), rest)
                }
            }
            _ if self.0.contains_key(&join(at, first)) && !rest.is_empty() => self.inside(join(at, first), rest),
            _ => {
                let whole = self.0.get(at)?.uses.get(first)?;
                // `use clap;` and the like say no more.
                if whole.first() == Some(first) && !self.0.contains_key(&join(at, first)) {
                    return None;
                }
                self.resolve(at, &[whole, rest].concat())
            }
        }
    }

    fn inside(&self, mut at: Vec<String>, path: &[String]) -> Option<(Vec<String>, bool)> {
        for (i, name) in path.iter().enumerate() {
            if self.0.contains_key(&join(&at, name)) {
                at.push(name.clone());
            } else if self.0.get(&at)?.uses.contains_key(name) {
                // A name that comes from elsewhere may also be defined here, as `routes!` and `routes`.
                return self.resolve(&at, &path[i..]).or(Some((at, true)));
            } else {
                return Some((at, true));
            }
        }
        Some((at, false))
    }
}

impl Module {
    fn new(file: &str, text: &str) -> Self {
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split("//").next());
        let (mut code, mut uses, mut imports) = (String::new(), BTreeMap::new(), Vec::new());
        let mut declared: Option<String> = None;
        for line in lines {
            let starts = line.trim_start();
            if starts.ends_with(';') && (starts.starts_with("mod ") || (starts.starts_with("pub") && starts.contains(" mod "))) {
                continue;
            }
            if declared.is_none() && (starts.starts_with("use ") || (starts.starts_with("pub") && starts.contains(" use "))) {
                declared = Some(String::new());
            }
            let Some(mut declaration) = declared.take() else {
                code.extend([line, "\n"]);
                continue;
            };
            declaration.push_str(line);
            if !declaration.ends_with(';') {
                declared = Some(declaration);
                continue;
            }
            if code.trim_end().ends_with("#[cfg(test)]") {
                continue;
            }
            let (visible, tree) = declaration.split_once("use ").unwrap_or_default();
            for (name, path) in leaves(&[], tree.trim_end_matches(';')) {
                if visible.trim().is_empty() {
                    imports.push(path.clone());
                }
                uses.insert(name, path);
            }
        }
        Self { file: file.to_owned(), code, uses, imports }
    }
}

/// `features/groups/mod.rs` and `features/groups.rs` are both `features::groups`.
fn path(file: &str) -> Vec<String> {
    let file = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if file == "lib" { Vec::new() } else { file.split('/').map(str::to_owned).collect() }
}

fn join(at: &[String], name: &str) -> Vec<String> {
    at.iter().cloned().chain([name.to_owned()]).collect()
}

/// The names of a tree of imports, and what they stand for: `a::{self, b as c}` has `a` and `c`.
fn leaves(before: &[String], tree: &str) -> Vec<(String, Vec<String>)> {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let before = [before, &split(head)].concat();
        let inner = group.trim_end().trim_end_matches('}');
        return branches(inner).iter().flat_map(|branch| leaves(&before, branch)).collect();
    }
    let (tree, name) = tree.split_once(" as ").map_or((tree, None), |(tree, name)| (tree, Some(name.trim().to_owned())));
    let mut path = [before, &split(tree)].concat();
    if path.len() > 1 {
        path.pop_if(|last| last == "self");
    }
    let name = name.or_else(|| path.last().cloned());
    name.map(|name| (name, path)).into_iter().collect()
}

/// What stands between the commas that no braces enclose.
fn branches(group: &str) -> Vec<String> {
    let (mut depth, mut found) = (0, vec![String::new()]);
    for c in group.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match found.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => found.push(String::new()),
        }
    }
    found.retain(|branch| !branch.trim().is_empty());
    found
}

/// Every path that stands in code: `b::C` of `a.b::C(d)`, and `d`.
fn words(code: &str) -> Vec<Vec<String>> {
    let apart = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    code.split(apart).map(split).filter(|path| !path.is_empty()).collect()
}

fn split(path: &str) -> Vec<String> {
    path.split("::").flat_map(|part| part.split(':')).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_use_leads_to_the_file_that_defines_the_name() {
    let source = |file: &str, text: &str| (file.to_owned(), text.to_owned());
    let modules = Modules::new(&[
        source("a/mod.rs", "mod b;\nmod c;\npub use b::B;\npub(crate) use self::c::{C as D, call};\nstruct A;\nfn a() { call() }"),
        source("a/b.rs", "use std::sync::Arc;\nuse super::{A,\n    c::C};\nstruct B;\n#[cfg(test)]\nmod tests { use crate::d; }"),
        source("a/c.rs", "use crate::d;\n// crate::a::A\nfn call() { d::make::<super::super::d::D>() }\nstruct C;"),
        source("d.rs", "use crate::a::{self, B};\n#[cfg(test)]\nuse crate::a::A;\nfn d() { a::D }"),
    ]);
    let edges: Vec<_> = modules.edges().into_iter().map(|(file, uses)| (file, Vec::from_iter(uses).join(" "))).collect();
    let expected = [("a/mod.rs", "a/c.rs"), ("a/b.rs", "a/c.rs a/mod.rs"), ("a/c.rs", "d.rs"), ("d.rs", "a/b.rs a/c.rs")];
    let mut expected = expected.map(|(file, uses)| (file.to_owned(), uses.to_owned()));
    expected.sort();
    assert_eq!(edges, expected);
}
