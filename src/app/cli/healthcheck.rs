//! `headmark healthcheck`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use super::shared::{Failure, block_on, url};
use crate::app::doctor::cause_of;
use crate::app::serve::address;

/// How long a server has for its answer.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Whom to ask.
#[derive(Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// The server to ask. Default: the one on this machine that listens on HEADMARK_ADMIN_LISTEN, or else
    /// on HEADMARK_LISTEN. An address on the command line comes first.
    #[arg(long, value_parser = url)]
    url: Option<reqwest::Url>,

    /// The address that the server listens on.
    #[arg(long, env = "HEADMARK_LISTEN", default_value = "127.0.0.1:8080", value_parser = address, help_heading = "HTTP")]
    listen: SocketAddr,

    /// The address that the server listens on for operators, if it has one.
    #[arg(long, env = "HEADMARK_ADMIN_LISTEN", value_parser = address, help_heading = "HTTP")]
    admin_listen: Option<SocketAddr>,
}

impl HealthcheckArgs {
    /// The address to ask. One that is given on the command line is meant, whatever the settings of
    /// the server say.
    fn asked(&self, given: &ArgMatches) -> SocketAddr {
        let is_option = |id| given.value_source(id) == Some(ValueSource::CommandLine);
        match self.admin_listen {
            Some(admin) if is_option("admin_listen") || !is_option("listen") => admin,
            _ => self.listen,
        }
    }
}

/// `given` says where the arguments come from.
pub(super) fn run(args: &HealthcheckArgs, given: &ArgMatches) -> Result<(), Failure> {
    block_on(async {
        let url = match &args.url {
            Some(url) => url.join("/readyz").map_err(|error| error.to_string())?.to_string(),
            None => format!("http://{}/readyz", reachable(args.asked(given))),
        };
        let client = reqwest::Client::builder().timeout(MAX_WAIT).no_proxy().build().map_err(|error| error.to_string())?;
        let answer = client.get(url).send().await.map_err(|error| format!("no answer: {}", cause_of(error)))?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("not ready: {}", answer.status())) }
    })
}

/// Where this machine reaches what listens there: any address is also a loopback address.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_asked_on_loopback() {
        let asked = [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:81", "[::1]:81"), ("10.0.0.1:8080", "10.0.0.1:8080")];
        for (listen, expected) in asked {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), expected);
        }
    }
}
