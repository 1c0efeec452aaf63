//! What the doctor says.

use std::fmt;

/// How a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Ok,
    /// It works, but not as well or as safely as it could.
    Warning,
    /// It does not work, or acknowledged writes can be lost.
    Failure,
}

/// What was found of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub state: State,
    /// What it is about, as `postgres`, `replica` or `service`.
    pub about: &'static str,
    /// What was found, and why it matters.
    pub what: String,
    /// What to do; None where nothing is to be done.
    pub fix: Option<String>,
}

impl Finding {
    pub(super) fn ok(about: &'static str, what: impl Into<String>) -> Self {
        Self { state: State::Ok, about, what: what.into(), fix: None }
    }

    pub(super) fn warning(about: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: State::Warning, about, what: what.into(), fix: Some(fix.into()) }
    }

    pub(super) fn failure(about: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: State::Failure, about, what: what.into(), fix: Some(fix.into()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Failure => "FAILURE",
        };
        write!(f, "{state:<8}{:<10}{}", self.about, self.what)?;
        self.fix.as_ref().map_or(Ok(()), |fix| write!(f, "\n{:<18}fix: {fix}", ""))
    }
}
