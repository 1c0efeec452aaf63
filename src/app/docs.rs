//! The documents that the binary carries: the page at `/docs`, and `/openapi.json`.
//!
//! Nobody needs credentials for them and they are the longest answers there are, so a request costs
//! neither a copy nor a compressor: all requests share one piece of memory for each encoding, made
//! when it is first asked for.

use std::borrow::Cow;
use std::future::ready;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use utoipa_swagger_ui::{Config, SwaggerFile};

use crate::http::compress::{Encoding, VARIES};
use crate::http::edge::unknown_route;

/// The files that the page loads, and itself.
const FILES: [&str; 9] = [
    "index.html",
    "index.css",
    "swagger-ui.css",
    "swagger-ui-bundle.js",
    "swagger-ui-standalone-preset.js",
    "swagger-initializer.js",
    "oauth2-redirect.html",
    "favicon-16x16.png",
    "favicon-32x32.png",
];

/// Where the OpenAPI document is.
const OPENAPI: &str = "/openapi.json";

/// A document, and its compressed forms.
#[derive(Debug)]
struct Document {
    media: HeaderValue,
    plain: Bytes,
    gzip: OnceLock<Option<Bytes>>,
    zstd: OnceLock<Option<Bytes>>,
}

impl Document {
    fn new(media: &str, plain: Bytes) -> Self {
        let media = HeaderValue::from_str(media).unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"));
        Self { media, plain, gzip: OnceLock::new(), zstd: OnceLock::new() }
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

    /// The document, as `accepted`; without compression it does not vary.
    fn answer(&self, compression: bool, headers: &HeaderMap) -> Response {
        let may = compression && self.is_text();
        let packed = Encoding::accepted(headers).filter(|_| may).and_then(|encoding| Some((encoding.name(), self.packed(encoding)?)));
        let (encoding, bytes) = packed.map_or((None, self.plain.clone()), |(name, bytes)| (Some(name), bytes));
        let mut response = Response::new(Body::from(bytes));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, self.media.clone());
        if may {
            headers.insert(header::VARY, VARIES);
        }
        if let Some(encoding) = encoding {
            headers.insert(header::CONTENT_ENCODING, encoding);
        }
        response
    }
}

/// The routes of the documents. `openapi` is the OpenAPI document as JSON.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(openapi: String, compression: bool) -> Router<S> {
    let openapi = Arc::new(Document::new("application/json", openapi.into()));
    let config = Arc::new(Config::new([OPENAPI]));
    let files: Arc<[(&'static str, Document)]> = FILES.into_iter().filter_map(|name| Some((name, file(name, &config)?))).collect();
    let found = move |name: &str, headers: &HeaderMap| {
        let document = files.iter().find(|(known, _)| *known == name);
        document.map(|(_, document)| document.answer(compression, headers))
    };
    let page = {
        let found = found.clone();
        // It is in the list above; should a version of the page lack it, the answer is empty.
        move |headers: HeaderMap| ready(found("index.html", &headers).unwrap_or_default())
    };
    // A name that is not UTF-8 is that of no file.
    let file = move |name: Result<Path<String>, PathRejection>, headers: HeaderMap, method: Method, uri: Uri| {
        let answer = name.ok().and_then(|Path(name)| found(&name, &headers));
        async move {
            match answer {
                Some(answer) => answer,
                None => unknown_route(method, uri).await.into_response(),
            }
        }
    };
    let openapi = move |headers: HeaderMap| ready(openapi.answer(compression, &headers));
    let to_page = get(async || Redirect::to("/docs/"));
    let router = Router::new().route("/", to_page.clone()).route("/docs", to_page).route("/docs/", get(page));
    router.route("/docs/{*file}", get(file)).route(OPENAPI, get(openapi))
}

/// A file of the page, if this version of it has one of this name.
fn file(name: &str, config: &Arc<Config<'static>>) -> Option<Document> {
    let found = utoipa_swagger_ui::serve(name, Arc::clone(config));
    match found {
        Ok(Some(SwaggerFile { bytes, content_type, .. })) => {
            let plain = match bytes {
                Cow::Borrowed(bytes) => Bytes::from_static(bytes),
                Cow::Owned(bytes) => Bytes::from(bytes),
            };
            Some(Document::new(&content_type, plain))
        }
        Ok(None) => None,
        Err(error) => {
            tracing::error!(%error, name, "cannot read a file of /docs");
            None
        }
    }
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
    fn all_files_of_the_page_are_there_and_nothing_is_copied() {
        let config = Arc::new(Config::new([OPENAPI]));
        for name in FILES {
            let (one, other) = (file(name, &config).unwrap(), file(name, &config).unwrap());
            assert!(name == "swagger-initializer.js" || one.plain.as_ptr() == other.plain.as_ptr(), "{name}");
        }
    }
}
