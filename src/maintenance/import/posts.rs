//! Imports posts from a file, through the lanes, as nodes write them: running nodes see each at
//! once, and a post that is known counts once.

use std::path::PathBuf;
use std::sync::Arc;

use csv::ByteRecord;
use tokio::sync::mpsc;

use super::field::{Columns, id, shown, time};
use super::{CHUNK_STEPS, Input, Kept, OnBad, Progress, Task, WINDOW_STEPS, Workers};
use crate::base::ids::{ClientId, Invalid, UserId};
use crate::engine::lanes::{self, Lanes};
use crate::features::feed::{FeedCommand, ImportedPosts};

/// The columns that a file may have.
const KNOWN: [&str; 3] = ["user", "post_id", "timestamp"];

/// How the first line of a file may look.
const EXAMPLE: &str = "user,post_id,timestamp";

#[derive(Debug, Clone)]
pub struct PostImport {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// What is added to each user's id.
    pub id_offset: i64,
}

/// What became of an import.
pub type Report = super::Report<ImportedPosts>;

/// A post of a file: whose, and which.
type PostStep = (UserId, ClientId);

struct Posts;

impl Task for Posts {
    type Step = PostStep;
    type Done = ImportedPosts;

    fn owner((creator, _): &PostStep) -> UserId {
        *creator
    }

    fn command(&self, posts: Vec<PostStep>, lane_key: i64) -> Arc<dyn lanes::Command> {
        Arc::new(FeedCommand::Import { posts, lane_key })
    }
}

impl PostImport {
    /// Runs it to its end over these lanes, which must be those of [`super::lane_config`].
    ///
    /// # Errors
    /// A sentence: why the file cannot be read (on), or that the stores do not answer. What was
    /// imported before stays.
    pub async fn run(self, lanes: &Lanes, progress: Arc<Progress>, on_bad: OnBad) -> Result<Report, String> {
        let mut workers = Workers::start(Posts, lanes, &progress);
        let queues = workers.queues();
        let read = tokio::task::spawn_blocking(move || {
            let input = Input::open(&self.file, &progress, on_bad)?;
            read(input, self.id_offset, &queues)
        });
        let read = read.await.map_err(|_| "reading the file panicked".to_owned())?;
        let done = workers.finish().await?;
        read.map(|report| Report { done, ..report })
    }
}

/// Reads the file, in a thread of its own.
fn read(mut input: Input, id_offset: i64, queues: &[mpsc::Sender<Vec<PostStep>>]) -> Result<Report, String> {
    let columns = input.header(EXAMPLE, |header| Columns::from_header(header, &KNOWN, &["user", "post_id"], EXAMPLE))?;
    let mut window = Vec::new();
    while let Some(post) = input.next(|line| parse(&columns, line, id_offset)) {
        window.push(post);
        if window.len() == WINDOW_STEPS && !flush(std::mem::take(&mut window), queues) {
            break;
        }
    }
    flush(window, queues);
    Ok(Report { lines: input.count, bad: input.bad, done: ImportedPosts::default(), broken_off: input.broken_off(Kept::All) })
}

fn parse(columns: &Columns, line: &ByteRecord, id_offset: i64) -> Result<PostStep, String> {
    let [user, post, timestamp] = columns.values(line)?;
    let creator = id("user", user.unwrap_or_default(), id_offset)?;
    let post = post.unwrap_or_default();
    let post = post.parse().map_err(|Invalid(rule)| format!("has '{}' as post_id, which {rule}", shown(post)))?;
    timestamp.map(time).transpose()?;
    Ok((creator, post))
}

/// Hands posts to the lanes, each creator's to one of them: two never wait for each other's heads.
/// False when one of them has given up.
fn flush(mut window: Vec<PostStep>, queues: &[mpsc::Sender<Vec<PostStep>>]) -> bool {
    // Stable: a creator's posts stay in the order of the file.
    window.sort_by_key(|(creator, _)| *creator);
    let mut parts: Vec<Vec<PostStep>> = vec![Vec::new(); queues.len()];
    for post in window {
        let lane = usize::try_from(post.0.get()).unwrap_or_default().checked_rem(queues.len()).unwrap_or_default();
        if let Some(part) = parts.get_mut(lane) {
            part.push(post);
        }
    }
    for from in (0..parts.iter().map(Vec::len).max().unwrap_or_default()).step_by(CHUNK_STEPS) {
        for (queue, posts) in queues.iter().zip(&parts) {
            let posts = posts.get(from..).unwrap_or_default();
            let chunk = posts.get(..CHUNK_STEPS).unwrap_or(posts);
            if !chunk.is_empty() && queue.blocking_send(chunk.to_vec()).is_err() {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maintenance::import::field::record;

    #[test]
    fn a_line_names_a_user_and_a_post() {
        let columns = Columns::from_header(&record(b"timestamp,post_id,user"), &KNOWN, &["user", "post_id"], EXAMPLE).unwrap();
        let read = |line: &str| parse(&columns, &record(line.as_bytes()), 1).map(|(user, post)| (user.get(), post.to_string()));
        assert_eq!(read("5,a:1,0"), Ok((1, "a:1".to_owned())));
        assert_eq!(read("2026-01-31T09:30:00Z,\"x\",41"), Ok((42, "x".to_owned())));
        for (line, why) in [
            ("5,a b,1", "has 'a b' as post_id, which must have 1 to 128"),
            ("5,,1", "has '' as post_id"),
            ("5,a,x", "has 'x' as user, which is not an id"),
            ("5,a,-1", "has -1 as user, which with 1 added must be between 1"),
            ("soon,a,1", "has 'soon' as timestamp"),
            ("5,a", "has 2 fields, not 3"),
        ] {
            assert!(read(line).unwrap_err().contains(why), "{line}: {:?}", read(line));
        }
        for (header, why) in [
            ("user,timestamp", "there is no 'post_id'"),
            ("user,post_id,weight", "it has 'weight', and known are user, post_id, timestamp"),
        ] {
            assert!(Columns::from_header(&record(header.as_bytes()), &KNOWN, &["user", "post_id"], EXAMPLE).unwrap_err().contains(why));
        }
    }
}
