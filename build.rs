//! Lists the migrations, which `src/db/migrate.rs` compiles in.
//!
//! The macro of sqlx does the same, but has cargo compile SQLite and both drivers a second time, for the build itself.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=migrations");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let mut code = String::new();
    for engine in ["sqlite", "postgres"] {
        let files = list(&root.join("migrations").join(engine))?;
        let _ = write!(code, "static {}: &[File] = &[", engine.to_uppercase());
        for (version, description, path) in files {
            let _ = write!(code, "({version}, {description:?}, include_str!({path:?})),");
        }
        code.push_str("];\n");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("migrations.rs"), code)
}

/// The files of a folder by version: `0001_frame.sql` is version 1, "frame".
fn list(folder: &Path) -> io::Result<Vec<(i64, String, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.split_once('_'));
        let file = name.and_then(|(version, name)| Some((version.parse().ok()?, name.replace('_', " "))));
        let Some((version, description)) = file else {
            return Err(io::Error::other(format!("{}: must be named like 0001_what_it_is.sql", path.display())));
        };
        files.push((version, description, path));
    }
    files.sort_unstable();
    Ok(files)
}
