//! Files that the binary carries, and how they are served. The metrics are served in the same way.
//!
//! Nobody needs credentials for them and they are the longest answers there are, so a request costs
//! neither a copy nor a compressor: all requests share one piece of memory for each encoding, made
//! when it is first asked for. A browser keeps them and asks each time whether they are still the
//! same, because another version of the server has others under the same names.

use std::future::ready;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use crate::base::fingerprint::Fingerprint;
use crate::http::compress::{Encoding, VARIES};
use crate::http::edge::unknown_route;
use crate::http::params::IfNoneMatch;

/// The file of a folder that its own path answers with.
pub(super) const PAGE: &str = "index.html";

/// Names in lower case and values of what a document carries beside its own headers.
pub(super) type Headers = &'static [(&'static str, &'static str)];

/// What each file of a page carries: the policy of the page, and what keeps other sites away from it.
pub(super) const fn headers_of_page(policy: &'static str) -> [(&'static str, &'static str); 6] {
    [
        ("content-security-policy", policy),
        ("referrer-policy", "no-referrer"),
        // For browsers that do not know `frame-ancestors`.
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ]
}

/// A document, and its compressed forms.
#[derive(Debug)]
pub(super) struct Document {
    media: HeaderValue,
    /// Weak, because it names the content and not its bytes. Made when it is first asked for, as the bytes may be many.
    tag: OnceLock<HeaderValue>,
    headers: Headers,
    plain: Bytes,
    gzip: OnceLock<Option<Bytes>>,
    zstd: OnceLock<Option<Bytes>>,
}

impl Document {
    pub(super) fn new(media: &str, plain: Bytes) -> Self {
        let media = HeaderValue::from_str(media).unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
        Self { media, tag: OnceLock::new(), headers: &[], plain, gzip: OnceLock::new(), zstd: OnceLock::new() }
    }

    fn tag(&self) -> &HeaderValue {
        self.tag.get_or_init(|| {
            let mut print = Fingerprint::default();
            print.add_bytes(&self.plain);
            let tag = format!("W/\"{:016x}\"", print.finish());
            HeaderValue::from_str(&tag).unwrap_or_else(|_| HeaderValue::from_static("W/\"\""))
        })
    }

    pub(super) fn with_headers(self, headers: Headers) -> Self {
        Self { headers, ..self }
    }

    /// Pictures are compressed already.
    fn is_text(&self) -> bool {
        !self.media.as_bytes().starts_with(b"image/")
    }

    /// The bytes in this encoding; None where compressing failed, which is logged once.
    fn packed(&self, encoding: Encoding) -> Option<Bytes> {
        let kept = match encoding {
            Encoding::Gzip => &self.gzip,
            Encoding::Zstd => &self.zstd,
        };
        let pack = || encoding.pack(&self.plain).inspect_err(|error| tracing::error!(%error, "cannot compress a document")).ok();
        kept.get_or_init(pack).clone()
    }

    /// The document, as `asked` accepts it, or 304; without compression it does not vary.
    pub(super) fn answer(&self, compression: bool, asked: &HeaderMap) -> Response {
        let is_it = |tags: &HeaderValue| self.tag().to_str().is_ok_and(|tag| IfNoneMatch::parse(tags.clone()).matches(tag));
        let is_known = asked.get(header::IF_NONE_MATCH).is_some_and(is_it);
        let mut response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { self.full(compression, asked) };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::ETAG, self.tag().clone());
        if compression && self.is_text() {
            headers.insert(header::VARY, VARIES);
        }
        for (name, value) in self.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        response
    }

    /// The same to one who cannot have it already, as there is another each time. It has no tag.
    pub(super) fn full(&self, compression: bool, asked: &HeaderMap) -> Response {
        let may_compress = compression && self.is_text();
        let accepted = Encoding::accepted(asked).filter(|_| may_compress);
        let packed = accepted.and_then(|encoding| Some((encoding.name(), self.packed(encoding)?)));
        let (encoding, bytes) = packed.map_or((None, self.plain.clone()), |(name, bytes)| (Some(name), bytes));
        let mut response = Response::new(Body::from(bytes));
        response.headers_mut().insert(header::CONTENT_TYPE, self.media.clone());
        if let Some(encoding) = encoding {
            response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
        }
        if may_compress {
            response.headers_mut().insert(header::VARY, VARIES);
        }
        response
    }
}

/// The documents by name.
pub(super) type Files = Vec<(&'static str, Document)>;

/// Serves the files below `folder`, and the one called [`PAGE`] as the folder itself.
pub(super) fn folder<S: Clone + Send + Sync + 'static>(folder: &str, files: Files, compression: bool) -> Router<S> {
    let files = Arc::new(files);
    let found = move |name: &str, asked: &HeaderMap| {
        let document = files.iter().find(|(known, _)| *known == name);
        document.map(|(_, document)| document.answer(compression, asked))
    };
    let page = {
        let found = found.clone();
        // Should a folder lack its page, the answer is empty.
        move |asked: HeaderMap| ready(found(PAGE, &asked).unwrap_or_default())
    };
    // A name that is not UTF-8 is that of no file.
    let file = move |name: Result<Path<String>, PathRejection>, asked: HeaderMap, method: Method, uri: Uri| {
        let answer = name.ok().and_then(|Path(name)| found(&name, &asked));
        async move {
            match answer {
                Some(answer) => answer,
                None => unknown_route(method, uri).await.into_response(),
            }
        }
    };
    let at = format!("{folder}/");
    let to_page = {
        let at = at.clone();
        get(async move || Redirect::to(&at))
    };
    Router::new().route(folder, to_page).route(&format!("{at}{{*file}}"), get(file)).route(&at, get(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_share_one_piece_of_memory_for_each_encoding() {
        let document = Document::new("text/css", Bytes::from("x".repeat(5000)));
        for encoding in [Encoding::Gzip, Encoding::Zstd] {
            let (first, second) = (document.packed(encoding).unwrap(), document.packed(encoding).unwrap());
            assert_eq!(first.as_ptr(), second.as_ptr(), "{encoding:?}");
            assert!(first.len() < 5000);
        }
    }

    #[test]
    fn who_has_the_document_gets_304_with_the_same_headers() {
        const HEADERS: Headers = &[("referrer-policy", "no-referrer")];
        let document = Document::new("text/css", Bytes::from("body{}")).with_headers(HEADERS);
        let mut asked = HeaderMap::new();
        let first = document.answer(true, &asked);
        asked.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let second = document.answer(true, &asked);
        assert_eq!((first.status(), second.status()), (StatusCode::OK, StatusCode::NOT_MODIFIED));
        for name in [header::ETAG, header::CACHE_CONTROL, header::VARY, header::REFERRER_POLICY] {
            assert_eq!(first.headers().get(&name), second.headers().get(&name), "{name}");
            assert!(first.headers().contains_key(&name), "{name}");
        }
        let other = Document::new("text/css", Bytes::from("body{ }"));
        assert_eq!(other.answer(true, &asked).status(), StatusCode::OK);
    }
}
