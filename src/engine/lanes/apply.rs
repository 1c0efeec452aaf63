//! The commands of a batch, one after the other, over the rows that are loaded.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::failure::Outcome;
use super::{Answer, Job, Rows, Verdict};
use crate::base::clock::UnixMs;
use crate::base::error::{Code, Error, Fault, Problem};
use crate::engine::erased;
use crate::engine::idempotency::{Kept, Key, Keys};

/// Applies every job in order. A refused one leaves no trace; a panicking rule is a refused one.
pub(super) fn apply(jobs: &[Job], rows: &mut Rows, keys: &mut Keys, now: UnixMs) -> Vec<Outcome> {
    jobs.iter()
        .map(|job| {
            // Before a kept answer: it may name the user.
            if let Some(problem) = refused(job, rows) {
                return Outcome::Answered(Err(problem.into()));
            }
            if let Some(key) = &job.key {
                if let Some(kept) = keys.kept(key) {
                    return Outcome::Answered(replay(key, kept));
                }
                if !keys.holds(key) {
                    return Outcome::KeyTaken;
                }
            }
            let applied = catch_unwind(AssertUnwindSafe(|| job.command.apply(rows, now)));
            let result = applied.unwrap_or_else(|_| Err(Fault::Bug(String::new()).problem()));
            match &result {
                Ok(_) => rows.settle(),
                Err(_) => rows.undo(),
            }
            if let Some(key) = &job.key {
                keep(keys, key, &result);
            }
            Outcome::Answered(result.map_err(Error::from))
        })
        .collect()
}

/// Why a job is refused that names a user who was erased.
fn refused(job: &Job, rows: &Rows) -> Option<Problem> {
    if !rows.has_erased() && !cfg!(debug_assertions) {
        return None;
    }
    let names = job.command.names();
    for (user, _) in &names {
        debug_assert!(rows.knows_whether_erased(*user), "{:?} names a user that it does not ask for", job.command);
    }
    let erased: Vec<_> = names.iter().filter(|(user, _)| rows.is_erased(*user)).map(|(_, pointer)| pointer.as_str()).collect();
    (!erased.is_empty()).then(|| erased::problem(erased))
}

/// Keeps an answer that was decided by state: success, 403 and 409.
fn keep(keys: &mut Keys, key: &Key, result: &Result<Answer, Problem>) {
    let kept = match result {
        Ok(answer) => answer.json().map(|body| (answer.status(), body)),
        Err(problem) if matches!(problem.code.status().as_u16(), 403 | 409) => {
            Ok((problem.code.status().as_u16(), serde_json::to_string(&problem.body()).unwrap_or_default()))
        }
        Err(_) => return,
    };
    if let Ok((status, body)) = kept {
        keys.keep(key, status, &body);
    }
}

fn replay(key: &Key, kept: &Kept) -> Verdict {
    if kept.digest != key.digest {
        let detail = "Another request used this Idempotency-Key with a different method, path or body in the last 24 hours.";
        return Err(Problem::new(Code::IdempotencyKeyReused, detail).into());
    }
    Ok(Answer::kept(kept.status, kept.body.clone()))
}
