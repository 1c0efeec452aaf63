//! The limit on open files, which bounds connections too.

/// Files that are open beside connections: stores, lanes, logs, and what the runtime needs.
const SPARE: u64 = 512;

/// How many files a process with so many connections opens.
pub(crate) fn needed(connections: usize) -> u64 {
    u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(SPARE)
}

/// How many files a process may open here; None for any number.
#[cfg(unix)]
pub(crate) fn allowed() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum
}

#[cfg(not(unix))]
pub(crate) fn allowed() -> Option<u64> {
    None
}

/// How many files this process may open now; None for any number.
#[cfg(unix)]
pub(crate) fn limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
pub(crate) fn limit() -> Option<u64> {
    None
}

/// Raises this process's limit so that as many connections fit. Where the system allows fewer, it
/// says so: beyond the limit a connection waits as one beyond HEADMARK_MAX_CONNECTIONS does, but
/// the stores would find no files either.
#[cfg(unix)]
pub(crate) fn allow(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let needed = needed(connections);
    let limit = getrlimit(Resource::Nofile);
    let Some(allowed) = limit.current.filter(|allowed| *allowed < needed) else { return };
    let raised = limit.maximum.map_or(needed, |most| most.min(needed));
    let set = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    let (allowed, error) = set.map_or_else(|error| (allowed, Some(error.to_string())), |()| (raised, None));
    if allowed < needed {
        tracing::warn!(
            allowed,
            needed,
            error,
            "the limit on open files is too low for HEADMARK_MAX_CONNECTIONS; raise it (ulimit -n, LimitNOFILE), or allow fewer connections"
        );
    }
}

/// Other systems have no such limit to raise.
#[cfg(not(unix))]
pub(crate) fn allow(_connections: usize) {}
