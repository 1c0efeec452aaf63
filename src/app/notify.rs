//! What a service manager such as systemd is told: that the node is ready, stops, and is healthy
//! (`sd_notify(3)`).
//!
//! `NOTIFY_SOCKET` names the socket for it. With `WATCHDOG_USEC`, the service manager restarts a
//! node that says nothing for so long. A node says nothing when a restart would help: a lane has
//! ended, or a runtime does not answer. A store that is away is no reason.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

/// How long a message may wait for room in the socket.
const MAX_SEND: Duration = Duration::from_secs(1);

/// How many times a node says that it is healthy in the time that the watchdog allows. A look at the
/// node takes as long as the pause between two of them at most, so one look may fail.
const LOOKS: u32 = 4;

/// Tells the service manager, if there is one.
#[derive(Debug, Clone)]
pub(crate) struct Notifier(Option<SocketAddr>);

impl Notifier {
    /// As the service manager has set the environment.
    pub(crate) fn from_env() -> Self {
        let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return Self(None) };
        match address(&name) {
            Ok(address) => Self(Some(address)),
            Err(error) => {
                tracing::warn!(%error, ?name, "NOTIFY_SOCKET names no socket; the service manager is told nothing");
                Self(None)
            }
        }
    }

    /// The node listens at this address.
    pub(crate) fn ready(&self, listens_on: std::net::SocketAddr) {
        self.tell(&format!("READY=1\nSTATUS=Listening on {listens_on}"));
    }

    /// The node drains.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Draining");
    }

    fn tell(&self, state: &str) {
        if let Some(address) = &self.0
            && let Err(error) = send(address, state)
        {
            // It will act on what it heard before, which is its part to decide.
            tracing::warn!(%error, state, "the service manager could not be told");
        }
    }

    /// Says that the node is healthy for as long as it is, if a watchdog listens.
    pub(crate) async fn feed_watchdog(self, is_healthy: impl AsyncFn() -> bool) {
        let usec = env::var("WATCHDOG_USEC").ok();
        let Some(limit) = watchdog(usec.as_deref(), env::var("WATCHDOG_PID").ok().as_deref(), std::process::id()) else { return };
        let mut tick = tokio::time::interval(limit / LOOKS);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if tokio::time::timeout(limit / LOOKS, is_healthy()).await.unwrap_or(false) {
                self.tell("WATCHDOG=1");
            } else {
                tracing::error!("the node is not healthy; the service manager is told nothing, and will restart it");
            }
        }
    }
}

/// A path, or with `@` in front a name in Linux's abstract namespace.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt as _;
        if let Some(name) = name.as_encoded_bytes().strip_prefix(b"@") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(name)
}

/// Over a socket of its own: the service manager may have made another since the last message.
fn send(address: &SocketAddr, state: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(MAX_SEND))?;
    socket.send_to_addr(state.as_bytes(), address).map(drop)
}

/// How long this process may say nothing; None where no watchdog listens to it.
fn watchdog(usec: Option<&str>, pid: Option<&str>, own_pid: u32) -> Option<Duration> {
    if pid.is_some_and(|pid| pid.parse() != Ok(own_pid)) {
        return None;
    }
    let usec = usec?.parse().ok().filter(|usec| *usec > 0)?;
    Some(Duration::from_micros(usec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_watchdog_of_this_process_is_fed() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(watchdog(Some("1000000"), None, 7), second);
        assert_eq!(watchdog(Some("1000000"), Some("7"), 7), second);
        assert_eq!(watchdog(Some("1000000"), Some("8"), 7), None);
        assert_eq!(watchdog(Some("1000000"), Some("seven"), 7), None);
        for none in [None, Some(""), Some("0"), Some("-1"), Some("soon")] {
            assert_eq!(watchdog(none, None, 7), None, "{none:?}");
        }
    }

    #[test]
    fn a_name_is_a_path_or_abstract() {
        assert_eq!(address(OsStr::new("/run/notify")).unwrap().as_pathname().unwrap(), "/run/notify");
        assert!(address(OsStr::new(&"x".repeat(200))).is_err(), "longer than an address may be");
        #[cfg(target_os = "linux")]
        {
            use std::os::linux::net::SocketAddrExt as _;
            assert_eq!(address(OsStr::new("@a")).unwrap().as_abstract_name(), Some(b"a".as_slice()));
        }
    }
}
