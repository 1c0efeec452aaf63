//! Compression of long answers, as the caller accepts it.
//!
//! An answer is compressed whole, before it is sent. A body in memory knows its length, so a
//! compressor that works while the caller receives would only hold its tables (up to a megabyte) for
//! as long as a slow caller likes. A body that is streamed (the export of a user) is sent as it is.

use std::io::{self, Write as _};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;

use crate::base::error::{Code, Problem};

/// From this length on an answer is compressed: a shorter one fits into a packet as it is.
pub(super) const MIN_BYTES: u64 = 1024;

/// What `Vary` names of an answer that may be compressed.
pub(crate) const VARIES: HeaderValue = HeaderValue::from_static("accept-encoding");

/// The fastest of zstd's levels: half a body less matters to the caller, the last tenth only to
/// this processor.
const ZSTD_LEVEL: i32 = 1;

/// How a body can be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// `gzip`.
    Gzip,
    /// `zstd`.
    Zstd,
}

impl Encoding {
    /// As headers name it.
    pub(crate) fn name(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }

    /// The encoding that the caller prefers, by its headers.
    pub(crate) fn accepted(headers: &HeaderMap) -> Option<Self> {
        wish(headers).and_then(Self::preferred)
    }

    /// The encoding that an `Accept-Encoding` prefers, of two that it likes as much zstd. None: the body is sent as it is, also to
    /// a caller who refuses even that, since what was done cannot become a 406.
    pub(super) fn preferred(value: &HeaderValue) -> Option<Self> {
        let (mut gzip, mut zstd, mut identity) = (0, 0, 0);
        for entry in value.to_str().ok()?.split(',') {
            let (name, weight) = entry.split_once(';').unwrap_or((entry, "q=1"));
            let Some(weight) = thousandths(weight) else { continue };
            match name.trim() {
                name if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => gzip = weight,
                name if name.eq_ignore_ascii_case("zstd") => zstd = weight,
                name if name.eq_ignore_ascii_case("identity") => identity = weight,
                _ => {}
            }
        }
        match (gzip.max(zstd), identity) {
            (0, _) => None,
            (best, identity) if best < identity => None,
            (best, _) if best == zstd => Some(Self::Zstd),
            _ => Some(Self::Gzip),
        }
    }

    /// The bytes, compressed.
    ///
    /// # Errors
    /// Those of the compressor, which has memory to write to and none to wait for.
    pub(crate) fn pack(self, plain: &[u8]) -> io::Result<Bytes> {
        match self {
            Self::Gzip => {
                let mut packer = flate2::write::GzEncoder::new(Vec::with_capacity(plain.len() / 2), flate2::Compression::fast());
                packer.write_all(plain)?;
                packer.finish().map(Bytes::from)
            }
            Self::Zstd => zstd::bulk::compress(plain, ZSTD_LEVEL).map(Bytes::from),
        }
    }
}

/// The `Accept-Encoding` of a request. Several are taken for none.
pub(super) fn wish(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut values = headers.get_all(header::ACCEPT_ENCODING).iter();
    values.next().filter(|_| values.next().is_none())
}

/// A weight such as `q=0.5`, in thousandths.
fn thousandths(weight: &str) -> Option<u32> {
    let (name, number) = weight.trim().split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, part) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    let digits = format!("{part:0<3}");
    let well_formed = part.len() <= 3 && part.bytes().all(|b| b.is_ascii_digit());
    match whole {
        "1" if well_formed => Some(1000),
        "0" if well_formed => digits.parse().ok(),
        _ => None,
    }
}

/// Whether the answer is known to be long enough. Streamed bodies do not know their length; 204 and
/// 304 have none.
pub(super) fn is_long(response: &Response) -> bool {
    response.body().size_hint().lower() >= MIN_BYTES
}

/// The answer, compressed if the caller accepts that and it is not compressed yet.
pub(super) async fn compress(accepted: Option<Encoding>, response: Response) -> Response {
    if !is_compressible(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    if !parts.headers.get_all(header::VARY).iter().any(|value| value == VARIES) {
        parts.headers.append(header::VARY, VARIES);
    }
    let Some(encoding) = accepted else { return Response::from_parts(parts, body) };
    let plain = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            tracing::error!(%error, "a body in memory cannot be read");
            return Problem::new(Code::InternalError, "The server could not write the response.").into_response();
        }
    };
    match encoding.pack(&plain) {
        Ok(packed) => {
            parts.headers.insert(header::CONTENT_ENCODING, encoding.name());
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(packed))
        }
        Err(error) => {
            // The caller accepts the plain body too, and gets all of it.
            tracing::error!(%error, ?encoding, "cannot compress an answer; sending it as it is");
            Response::from_parts(parts, Body::from(plain))
        }
    }
}

/// Whether nothing in the headers says that the body is compressed, or a part of one.
fn is_compressible(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    let is_image = media.starts_with("image/") && !media.starts_with("image/svg+xml");
    !is_image && !headers.contains_key(header::CONTENT_ENCODING) && !headers.contains_key(header::CONTENT_RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(value: &'static str) -> Option<Encoding> {
        Encoding::accepted(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]))
    }

    async fn compressed(accept: Option<&'static str>, length: usize, headers: &[(&'static str, &'static str)]) -> (HeaderMap, usize) {
        let mut response = Response::new(Body::from("x".repeat(length)));
        for (name, value) in headers {
            response.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        assert!(is_long(&response));
        let (parts, body) = compress(accept.and_then(accepts), response).await.into_parts();
        assert_eq!(parts.status, 200);
        let known = body.size_hint().exact().unwrap();
        let bytes = body.collect().await.unwrap().to_bytes();
        assert_eq!(known, u64::try_from(bytes.len()).unwrap(), "the compressor is gone before the body is sent");
        (parts.headers, bytes.len())
    }

    #[tokio::test]
    async fn the_caller_chooses_the_encoding() {
        for (accept, encoding) in [
            (Some("gzip"), Some("gzip")),
            (Some("GZIP"), Some("gzip")),
            (Some("zstd"), Some("zstd")),
            (Some("gzip, deflate, br, zstd"), Some("zstd")),
            (Some("gzip;q=1, zstd;q=0.5"), Some("gzip")),
            (Some("gzip; q=0.001 , zstd;q=0"), Some("gzip")),
            (Some("identity, gzip;q=0.5"), None),
            (Some("gzip;q=high, zstd;q=2"), None),
            (Some("br"), None),
            (Some("identity"), None),
            (Some("gzip;q=0"), None),
            (Some("identity;q=0, br"), None),
            (None, None),
        ] {
            let (headers, length) = compressed(accept, 5000, &[]).await;
            let told = headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap());
            assert_eq!((told, length < 5000), (encoding, encoding.is_some()), "{accept:?}");
            assert_eq!(headers[header::VARY], "accept-encoding");
        }
    }

    #[tokio::test]
    async fn what_is_compressed_already_stays_as_it_is() {
        for header in [("content-encoding", "br"), ("content-type", "image/png"), ("content-range", "bytes 0-1999/9000")] {
            let (headers, length) = compressed(Some("gzip"), 2000, &[header]).await;
            assert_eq!((length, headers.contains_key(header::VARY)), (2000, false), "{header:?}");
        }
        let (headers, _) = compressed(Some("gzip"), 2000, &[("content-type", "image/svg+xml")]).await;
        assert!(headers.contains_key(header::CONTENT_ENCODING), "a picture that is a text");
    }

    #[test]
    fn short_answers_and_unclear_callers_are_left_alone() {
        assert!(!is_long(&Response::new(Body::from("x".repeat(1023)))));
        assert!(is_long(&Response::new(Body::from("x".repeat(1024)))));
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(Encoding::accepted(&headers).is_some());
        headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static("zstd"));
        assert!(Encoding::accepted(&headers).is_none());
    }
}
