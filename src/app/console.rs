//! The page at `/console`. Its sources are in `console/`; `npm run build` there writes the files that
//! the binary carries, and a test compares them with what it would write.

use axum::Router;
use axum::body::Bytes;

use super::documents::{Document, Files, Headers, PAGE, folder, headers_of_page};

/// Nothing but the page's own files and this server: what a stranger's text might bring in cannot run,
/// and the key that was typed in cannot leave.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

const HEADERS: Headers = &headers_of_page(POLICY);

/// The routes of the page.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(compression: bool) -> Router<S> {
    folder("/console", files(), compression)
}

fn files() -> Files {
    let file = |media: &str, bytes: &'static [u8]| Document::new(media, Bytes::from_static(bytes)).with_headers(HEADERS);
    vec![
        (PAGE, file("text/html; charset=utf-8", include_bytes!("../../console/dist/index.html"))),
        ("console.js", file("text/javascript; charset=utf-8", include_bytes!("../../console/dist/console.js"))),
        ("console.css", file("text/css; charset=utf-8", include_bytes!("../../console/dist/console.css"))),
    ]
}
