//! Compression of long answers, as the caller accepts it.
//!
//! tower-http compresses. It is called for long answers alone, not put on as a layer, which would box one future and one body more
//! for every poll: a short answer pays for a look at its length.

use std::convert::Infallible;
use std::future::ready;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use tower::{ServiceExt as _, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::Compression;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

/// From this length on an answer is compressed: a shorter one fits into a packet as it is.
pub(super) const MIN_BYTES: u64 = 1024;

/// What the caller accepts, if it says so in one header; several of them are taken for none.
pub(super) fn accepted(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut values = headers.get_all(header::ACCEPT_ENCODING).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.clone()),
        _ => None,
    }
}

/// Whether the answer is long enough. Every body here knows its length; 204 and 304 have none.
pub(super) fn is_long(response: &Response) -> bool {
    response.body().size_hint().lower() >= MIN_BYTES
}

/// The answer, compressed if the caller accepts that and it is not compressed yet.
pub(super) async fn compress(accepted: Option<HeaderValue>, response: Response) -> Response {
    let status = response.status();
    let mut request = Request::new(Body::empty());
    if let Some(accepted) = accepted {
        request.headers_mut().insert(header::ACCEPT_ENCODING, accepted);
    }
    let mut response = Some(response);
    let answer = service_fn(move |_: Request| ready(Ok::<_, Infallible>(response.take().unwrap_or_default())));
    // The fastest level: half a body less matters to the caller, the last tenth only to this processor.
    let compression = Compression::new(answer).quality(CompressionLevel::Fastest);
    let compression = compression.compress_when(SizeAbove::new(MIN_BYTES).and(NotForContentType::IMAGES));
    match compression.oneshot(request).await {
        Ok(answer) => {
            let mut answer = answer.map(Body::new);
            // A caller who refuses even the plain body is sent that all the same: what was done cannot become a 406.
            *answer.status_mut() = status;
            answer
        }
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn compressed(accept: Option<&'static str>, length: usize, headers: &[(&'static str, &'static str)]) -> (HeaderMap, usize) {
        let mut response = Response::new(Body::from("x".repeat(length)));
        for (name, value) in headers {
            response.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        assert!(is_long(&response));
        let (parts, body) = compress(accept.map(HeaderValue::from_static), response).await.into_parts();
        assert_eq!(parts.status, 200);
        (parts.headers, body.collect().await.unwrap().to_bytes().len())
    }

    #[tokio::test]
    async fn the_caller_chooses_the_encoding() {
        for (accept, encoding) in [
            (Some("gzip"), Some("gzip")),
            (Some("zstd"), Some("zstd")),
            (Some("gzip, deflate, br, zstd"), Some("zstd")),
            (Some("gzip;q=1, zstd;q=0.5"), Some("gzip")),
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
    }

    #[test]
    fn short_answers_and_unclear_callers_are_left_alone() {
        assert!(!is_long(&Response::new(Body::from("x".repeat(1023)))));
        assert!(is_long(&Response::new(Body::from("x".repeat(1024)))));
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(accepted(&headers).is_some());
        headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static("zstd"));
        assert!(accepted(&headers).is_none());
    }
}
