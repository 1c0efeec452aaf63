//! The page at `/docs`, and `/openapi.json`.

use std::borrow::Cow;
use std::future::ready;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Redirect;
use axum::routing::get;
use utoipa_swagger_ui::{Config, SwaggerFile};

use super::documents::{Document, Headers, PAGE, folder, headers_of_page};

/// A key is typed in here as in the console: no script but the page's own runs, and the key goes to
/// this server alone. The page puts styles into itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: Headers = &headers_of_page(POLICY);

/// The files that the page loads, and itself.
const FILES: [&str; 8] = [
    PAGE,
    "index.css",
    "swagger-ui.css",
    "swagger-ui-bundle.js",
    "swagger-ui-standalone-preset.js",
    "swagger-initializer.js",
    "favicon-16x16.png",
    "favicon-32x32.png",
];

/// Where the OpenAPI document is.
const OPENAPI: &str = "/openapi.json";

/// The routes of the documents. `openapi` makes the OpenAPI document as JSON, which most nodes are never asked for.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(openapi: fn() -> String, compression: bool) -> Router<S> {
    let openapi = Arc::new(LazyLock::new(move || Document::new("application/json", openapi().into())));
    let openapi = move |asked: HeaderMap| ready(openapi.answer(compression, &asked));
    let config = Arc::new(config());
    let files = FILES.into_iter().filter_map(|name| Some((name, file(name, &config)?))).collect();
    folder("/docs", files, compression).route("/", get(async || Redirect::to("/docs/"))).route(OPENAPI, get(openapi))
}

/// Without the badge that says whether the document is valid: it comes from another host.
fn config() -> Config<'static> {
    Config::new([OPENAPI]).validator_url("none")
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
            Some(Document::new(&content_type, plain).with_headers(HEADERS))
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
    fn all_files_of_the_page_are_there_and_nothing_is_copied() {
        let config = Arc::new(config());
        for name in FILES {
            let bytes = || match utoipa_swagger_ui::serve(name, Arc::clone(&config)).unwrap().unwrap().bytes {
                Cow::Borrowed(bytes) => Some(bytes.as_ptr()),
                Cow::Owned(_) => None,
            };
            assert!(file(name, &config).is_some(), "{name}");
            assert_eq!(bytes().is_some(), name != "swagger-initializer.js", "{name}");
        }
    }
}
