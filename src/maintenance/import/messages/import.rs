//! What an import of messages is asked.

use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct LogImport {
    /// The messages; `-` is standard input.
    pub file: PathBuf,
    /// Who joined and left when.
    pub members: Option<PathBuf>,
    /// What is added to each id.
    pub id_offset: i64,
    /// The first id that is given to a channel whose name is no number.
    pub first_group_id: i64,
    /// Whether channels with names may be groups that are there already.
    pub merge: bool,
}
