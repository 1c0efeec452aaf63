//! A new migration is compiled in: without this, cargo would not see that a file came to the folder.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
