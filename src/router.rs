//! Every route, in one list, and the OpenAPI document that follows from it.

use axum::Router;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{RefOr, Required};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use crate::http::body::IdempotencyKey;
use crate::http::edge::{EdgeConfig, EdgeLayer, method_not_allowed, unknown_route};
use crate::http::path::UserOrMe;
use crate::ids::{GroupId, Seq};
use crate::operations::OperationId;
use crate::state::AppState;
use crate::{
    badges, broadcasts, docs, dots, events, feed, groups, inbox, notifications, operations, probes, receipts, relations, sheet, views,
};

/// What the document says beyond the routes.
#[derive(OpenApi)]
#[openapi(
    info(title = "Headmark", description = "Everything that a social or chat product polls for, in one HTTP service.", license(name = "MIT OR Apache-2.0")),
    tags(
        (name = "badges", description = "Counters, and the sheet that one poll returns."),
        (name = "broadcasts", description = "Notices to everybody, in channels."),
        (name = "dots", description = "Red dots, lit for everybody by one write."),
        (name = "feed", description = "What those whom a user follows have posted."),
        (name = "groups", description = "Group chats: members, messages, how far each member has read."),
        (name = "inbox", description = "Direct messages, and the inbox from which devices fetch what came for a user."),
        (name = "notifications", description = "What users read one by one: site mail, system notices."),
        (name = "receipts", description = "Who has read a message of a group."),
        (name = "relations", description = "Who follows whom, and who blocks whom."),
        (name = "events", description = "What happened, for services that read along."),
        (name = "operations", description = "Writes that are accepted before they are done."),
        (name = "views", description = "Views: pages, forums, channels that are read by visiting."),
        (name = "server", description = "The server itself.")),
    security(("bearer" = [])),
    // Those of bodies are found; these stand in paths and headers alone.
    components(schemas(UserOrMe, IdempotencyKey, Seq, GroupId, OperationId)),
    modifiers(&Bearer)
)]
struct Document;

/// How callers show who they are.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A service key, or an end user's JWT. A server without credentials (loopback only) takes requests without."))
            .build();
        document.components.get_or_insert_default().add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// Every feature's routes, and the document that they make.
fn routes() -> (Router<AppState>, utoipa::openapi::OpenApi) {
    let routes = OpenApiRouter::with_openapi(Document::openapi())
        .merge(badges::http::routes())
        .merge(sheet::routes())
        .merge(broadcasts::http::routes())
        .merge(dots::http::routes())
        .merge(feed::http::routes())
        .merge(groups::http::routes())
        .merge(groups::user_http::routes())
        .merge(inbox::http::routes())
        .merge(notifications::http::routes())
        .merge(receipts::http::routes())
        .merge(relations::http::routes())
        .merge(events::http::routes())
        .merge(operations::http::routes())
        .merge(views::http::routes())
        .merge(probes::routes());
    let (router, mut document) = routes.split_for_parts();
    loosen(&mut document);
    (router, document)
}

/// Operations whose body may be left out: all its fields may be.
const NO_BODY: [&str; 20] = [
    "increment_badge",
    "retract_badge",
    "reset_badge",
    "reset_badges",
    "follow_user",
    "block_user",
    "read_broadcasts",
    "light_dot",
    "clear_dot",
    "put_post",
    "reset_feed",
    "read_direct",
    "read_notification",
    "unread_notification",
    "put_view_item",
    "access_view",
    "put_group",
    "join_group",
    "read_group",
    "read_group_message",
];

/// Headers and some bodies may be left out. The attribute of an operation cannot say so without also allowing `null`.
fn loosen(document: &mut utoipa::openapi::OpenApi) {
    for operation in document.paths.paths.values_mut().flat_map(|path| [path.post.as_mut(), path.put.as_mut()]).flatten() {
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(header) = parameter
                && header.parameter_in == ParameterIn::Header
            {
                header.required = Required::False;
            }
        }
        let may = operation.operation_id.as_deref().is_some_and(|id| NO_BODY.contains(&id));
        if let Some(RefOr::T(body)) = operation.request_body.as_mut().filter(|_| may) {
            body.required = Some(Required::False);
        }
    }
}

/// The application: routes, documents, fallbacks, and the edge around them.
pub fn build(state: AppState, edge: EdgeConfig) -> Router {
    let (router, document) = routes();
    let openapi = document.to_json().unwrap_or_else(|error| {
        tracing::error!(%error, "the OpenAPI document has no JSON form");
        String::new()
    });
    let docs = docs::routes(openapi, edge.compression);
    let router = router.merge(docs).fallback(unknown_route).method_not_allowed_fallback(method_not_allowed);
    let origins = edge.origins.clone();
    let edge = EdgeLayer::new(edge);
    // Each layer boxes a future for every request: none is put on for nothing.
    let router =
        if origins.is_none() { router.layer(edge) } else { router.layer(origins.preflights()).layer(edge).layer(origins.answers()) };
    router.with_state(state)
}

/// The OpenAPI document as it is served and kept in `openapi/openapi.json`.
///
/// # Errors
/// When it has no JSON form, which is a bug.
pub fn openapi_json() -> Result<String, String> {
    let (_, document) = routes();
    document.to_pretty_json().map_err(|error| error.to_string())
}
