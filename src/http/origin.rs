//! The guard of a server without credentials. It listens on loopback only, but any page that its
//! user opens can send requests there: from its own origin, or from a name that it has made to
//! resolve to 127.0.0.1. Neither may reach a route, but for the origins that are configured.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, Version, header};

use crate::base::error::{Code, Problem};
use crate::http::cors::Origins;

/// Headers that a proxy adds. Behind one every request comes from this machine, so that an open
/// server would be open to the world.
const FORWARDING: [HeaderName; 8] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-client-ip"),
    HeaderName::from_static("x-cluster-client-ip"),
    HeaderName::from_static("x-envoy-external-address"),
    HeaderName::from_static("true-client-ip"),
    HeaderName::from_static("cf-connecting-ip"),
];
const FORWARDING_PREFIX: &str = "x-forwarded-";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a request of HTTP/1.1 that does not name exactly one host, as RFC 9112 asks: servers on
/// its way could take it for different ones.
pub(super) fn check_host(version: Version, headers: &HeaderMap) -> Result<(), Problem> {
    let mut hosts = headers.get_all(header::HOST).iter();
    if version != Version::HTTP_11 || (hosts.next().is_some() && hosts.next().is_none()) {
        return Ok(());
    }
    Err(Problem::new(Code::MalformedRequest, "An HTTP/1.1 request must have exactly one Host header."))
}

/// Refuses what a page of another origin would send, and what came through a proxy. Without an
/// `Origin` and `Host` no browser is at work.
pub(super) fn check(headers: &HeaderMap, uri: &Uri, origins: &Origins) -> Result<(), Problem> {
    let found = Found::of(headers, origins);
    let foreign = |detail: &'static str| Err(Problem::new(Code::CrossOrigin, detail));
    if found.forwarded {
        return foreign("The server runs without credentials, and a proxy forwarded the request. Configure a service key or a JWT secret.");
    }
    // A page's images and links carry no Origin. A known origin says more than this header, and was
    // looked at.
    if found.cross_site && !found.origin {
        return foreign(
            "The server runs without credentials, and a page of another site sent the request. Configure a service key or a JWT secret.",
        );
    }
    if found.foreign_origin {
        return foreign(
            "The server runs without credentials, and the Origin header is neither loopback nor a configured origin. Configure a service key or a JWT secret.",
        );
    }
    if found.foreign_host || uri.authority().is_some_and(|authority| !is_loopback_authority(authority.as_str())) {
        return foreign(
            "The server runs without credentials, and the Host header is not localhost or a loopback address. Configure a service key or a JWT secret.",
        );
    }
    Ok(())
}

/// What the headers say of where a request comes from. One walk finds all of it, as each poll of an
/// open server is looked at.
#[derive(Default)]
struct Found {
    forwarded: bool,
    cross_site: bool,
    origin: bool,
    foreign_origin: bool,
    foreign_host: bool,
}

impl Found {
    fn of(headers: &HeaderMap, origins: &Origins) -> Self {
        let is_known = |origin: &HeaderValue| origin.to_str().is_ok_and(is_loopback_origin) || origins.allow(origin);
        let mut found = Self::default();
        for (name, value) in headers {
            if name == header::HOST {
                found.foreign_host |= !value.to_str().is_ok_and(is_loopback_authority);
            } else if name == header::ORIGIN {
                found.origin = true;
                found.foreign_origin |= !is_known(value);
            } else if *name == SEC_FETCH_SITE {
                found.cross_site |= value == "cross-site";
            } else {
                found.forwarded |= FORWARDING.contains(name) || name.as_str().starts_with(FORWARDING_PREFIX);
            }
        }
        found
    }
}

fn is_loopback_origin(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(scheme, authority)| matches!(scheme, "http" | "https") && is_loopback_authority(authority))
}

/// `localhost`, `127.0.0.1` or `[::1]`, with or without a port.
fn is_loopback_authority(authority: &str) -> bool {
    // What most send is told without taking it apart.
    let usual = ["localhost", "127.0.0.1"].into_iter().find_map(|host| authority.strip_prefix(host));
    if let Some(port) = usual.and_then(|rest| rest.strip_prefix(':')) {
        return port.parse::<u16>().is_ok();
    }
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => match port.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None => return false,
        },
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port_is_number = port.is_none_or(|port| port.parse::<u16>().is_ok());
    port_is_number && (host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_pass() {
        for good in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.0.0.1", "[::1]", "[::1]:8080"] {
            assert!(is_loopback_authority(good), "{good}");
            assert!(is_loopback_origin(&format!("http://{good}")), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::1]x",
            "[::2]",
            "localhost:x",
            "user@localhost",
        ] {
            assert!(!is_loopback_authority(bad), "{bad}");
            assert!(!is_loopback_origin(&format!("http://{bad}")), "{bad}");
        }
        assert!(!is_loopback_origin("null") && !is_loopback_origin("file://localhost") && !is_loopback_origin("http://localhost/x"));
    }
}
