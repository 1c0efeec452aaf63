//! What a write answers: a typed value. It becomes HTTP at the edge alone (`http/answer.rs`), and
//! JSON here only where it is kept for an idempotency key.

use std::any::Any;
use std::fmt;

use axum::http::StatusCode;
use serde::Serialize;

use crate::base::error::{Code, Error, Fault, Problem};

/// How a write that took effect ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is done.
    Done,
    /// It made something new.
    Created,
    /// It will be done.
    Accepted,
    /// It is done, and there is nothing to say.
    Silent,
}

impl Ending {
    /// As an HTTP status.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Done => 200,
            Self::Created => 201,
            Self::Accepted => 202,
            Self::Silent => 204,
        }
    }
}

/// A value of any command.
trait Value: Any + fmt::Debug + Send + Sync {
    fn json(&self) -> Result<String, serde_json::Error>;
}

impl<T: Serialize + Any + fmt::Debug + Send + Sync> Value for T {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// The answer to a write.
#[derive(Debug)]
pub struct Answer(Inner);

#[derive(Debug)]
enum Inner {
    New(Ending, Box<dyn Value>),
    Kept(u16, String),
}

impl Answer {
    fn new<T: Serialize + fmt::Debug + Send + Sync + 'static>(ending: Ending, value: T) -> Self {
        Self(Inner::New(ending, Box::new(value)))
    }

    /// It is done, with this to say.
    pub fn ok<T: Serialize + fmt::Debug + Send + Sync + 'static>(value: T) -> Self {
        Self::new(Ending::Done, value)
    }

    /// It made this.
    pub fn created<T: Serialize + fmt::Debug + Send + Sync + 'static>(value: T) -> Self {
        Self::new(Ending::Created, value)
    }

    /// It will be done.
    pub fn accepted<T: Serialize + fmt::Debug + Send + Sync + 'static>(value: T) -> Self {
        Self::new(Ending::Accepted, value)
    }

    /// It is done, and there is nothing to say.
    #[must_use]
    pub fn no_content() -> Self {
        Self::new(Ending::Silent, ())
    }

    /// An answer that was given before: its HTTP status and its JSON.
    #[must_use]
    pub fn kept(status: u16, body: String) -> Self {
        Self(Inner::Kept(status, body))
    }

    /// Whether it was given before.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        matches!(self.0, Inner::Kept(..))
    }

    /// How the write ended, where this is not an answer that was given before.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        match &self.0 {
            Inner::New(ending, _) => Some(*ending),
            Inner::Kept(..) => None,
        }
    }

    /// Its HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match &self.0 {
            Inner::New(ending, _) => ending.status(),
            Inner::Kept(status, _) => *status,
        }
    }

    /// What the command says, for a caller who knows the command. One that is sent with an
    /// idempotency key has JSON alone.
    ///
    /// # Errors
    /// When the command says something else, which is a bug.
    pub fn value<T: 'static>(self) -> Result<T, Error> {
        let Inner::New(_, value) = self.0 else {
            return Err(Fault::Bug("a kept answer has no value".to_owned()).into());
        };
        let value: Box<dyn Any> = value;
        let wrong = |_| Fault::Bug(format!("a command did not answer with {}", std::any::type_name::<T>())).into();
        value.downcast().map(|value| *value).map_err(wrong)
    }

    /// As JSON; empty where there is nothing to say.
    ///
    /// # Errors
    /// When a value has no JSON form, which is a bug.
    pub fn json(&self) -> Result<String, Problem> {
        match &self.0 {
            Inner::New(ending, value) => json(*ending, &**value),
            Inner::Kept(_, body) => Ok(body.clone()),
        }
    }
}

fn json(ending: Ending, value: &dyn Value) -> Result<String, Problem> {
    if ending == Ending::Silent {
        return Ok(String::new());
    }
    value.json().map_err(|error| {
        tracing::error!(%error, "cannot write an answer as JSON");
        Fault::Bug(String::new()).problem()
    })
}

/// What a caller is told whose write, or a part of it, is done, where the rest failed: the other answers with such a
/// status would say that nothing was changed.
#[must_use]
pub fn after_commit(error: impl Into<Error>) -> Error {
    let error = error.into();
    let may_pass = match &error {
        Error::Problem(problem) => [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&problem.code.status()),
        Error::Fault(fault) => fault.may_pass(),
    };
    if !may_pass {
        return error;
    }
    tracing::error!(?error, "a write is done, but not what was to follow");
    Problem::new(Code::OutcomeUnknown, "The write, or a part of it, is done, but not what was to follow.").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_after_a_commit_says_that_nothing_was_changed() {
        let code = |error| match after_commit(error) {
            Error::Problem(problem) => problem.code,
            Error::Fault(fault) => fault.problem().code,
        };
        let problem = |code| Error::from(Problem::new(code, "some words"));
        for unchanged in [Code::StoreUnavailable, Code::Overloaded, Code::RateLimited, Code::ShuttingDown] {
            assert_eq!(code(problem(unchanged)), Code::OutcomeUnknown);
        }
        assert_eq!(code(sqlx::Error::PoolTimedOut.into()), Code::OutcomeUnknown);
        assert_eq!([code(problem(Code::Gone)), code(Fault::Bug(String::new()).into())], [Code::Gone, Code::InternalError]);
    }

    #[test]
    fn the_wrong_type_is_a_fault_and_not_a_default() {
        assert_eq!(Answer::ok(7_i64).value::<i64>().unwrap(), 7);
        for wrong in [Answer::ok("7"), Answer::no_content(), Answer::kept(200, "7".to_owned())] {
            assert!(matches!(wrong.value::<i64>(), Err(Error::Fault(Fault::Bug(_)))));
        }
    }

    #[test]
    fn an_answer_is_the_same_when_it_is_kept() {
        let new = Answer::created(vec![1, 2]);
        assert_eq!((new.status(), new.json().unwrap(), new.is_kept()), (201, "[1,2]".to_owned(), false));
        let kept = Answer::kept(201, "[1,2]".to_owned());
        assert_eq!((kept.status(), kept.is_kept(), kept.json().unwrap()), (201, true, "[1,2]".to_owned()));
        assert_eq!((Answer::no_content().status(), Answer::no_content().json().unwrap()), (204, String::new()));
    }
}
