//! Every route, in one list, and the OpenAPI document that follows from it.

use axum::Router;
use tower::Layer as _;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{RefOr, Required};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use crate::app::application::{Application, Shortcut};
use crate::app::state::AppState;
use crate::app::{console, docs, probes, problems};
use crate::base::ids::{GroupId, Seq};
use crate::features::operations::OperationId;
use crate::features::{
    badges, broadcasts, dots, events, feed, groups, inbox, notifications, operations, receipts, relations, users, views,
};
use crate::http::body::IdempotencyKey;
use crate::http::cors::Origins;
use crate::http::edge::{EdgeConfig, EdgeLayer, method_not_allowed, unknown_route};
use crate::http::path::UserOrMe;
use crate::http::problem::ProblemOut;
use crate::maintenance::user_export;
use crate::summary;

/// What the document says beyond the routes.
#[derive(OpenApi)]
#[openapi(
    info(title = "Headmark", description = "Unread counts, feeds, receipts and inboxes for social and chat products, in one HTTP service.", license(name = "MIT OR Apache-2.0")),
    tags(
        (name = "badges", description = "Counter badges, and the unread summary that clients poll."),
        (name = "broadcasts", description = "Broadcasts to all users, in channels."),
        (name = "dots", description = "Red dots, lit for all users by one write."),
        (name = "feed", description = "Posts of the users that a user follows."),
        (name = "groups", description = "Group chats: members, messages, and how far each member has read."),
        (name = "chats", description = "The chats of a user: groups and direct chats in one list."),
        (name = "inbox", description = "Direct messages, and the inbox from which devices fetch new items."),
        (name = "notifications", description = "Notifications that users read one by one, such as site mail."),
        (name = "receipts", description = "Read receipts of group messages."),
        (name = "relations", description = "Follows, blocks and mutes between users."),
        (name = "events", description = "An ordered log of changes, for services."),
        (name = "operations", description = "Results of asynchronous writes."),
        (name = "users", description = "Settings of users, and their erasure."),
        (name = "views", description = "Views: pages, forums and channels that users read by visiting them."),
        (name = "server", description = "Health checks and metrics.")),
    security(("bearer" = [])),
    // Those of bodies are found; these stand in paths, headers and problems alone.
    components(schemas(UserOrMe, IdempotencyKey, Seq, GroupId, OperationId, ProblemOut)),
    modifiers(&Bearer)
)]
struct Document;

/// How callers show who they are.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A service key, or an end user's JWT. A server without credentials (loopback only) does not require it."))
            .build();
        document.components.get_or_insert_default().add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// Routes one after the other; without a node, only what the document says of them.
struct Routes<'a> {
    node: Option<&'a AppState>,
    all: OpenApiRouter,
}

impl Routes<'_> {
    /// The same with these routes, whose handlers take what is picked of the node.
    fn and<S: Clone + Send + Sync + 'static>(self, routes: OpenApiRouter<S>, pick: fn(&AppState) -> &S) -> Self {
        let routes = match self.node {
            Some(node) => routes.with_state(pick(node).clone()),
            None => OpenApiRouter::with_openapi(routes.into_openapi()),
        };
        Self { all: self.all.merge(routes), ..self }
    }
}

/// Which routes a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serves {
    All,
    /// All but those that operators have a listener of their own for.
    Public,
}

/// Every feature's routes.
fn routes(node: Option<&AppState>, serves: Serves, compression: bool) -> OpenApiRouter {
    let routes = Routes { node, all: OpenApiRouter::with_openapi(Document::openapi()) }
        .and(badges::http::routes(), |node| &node.contexts.badges)
        .and(summary::http::routes(), |node| &node.contexts.summary)
        .and(summary::chat_list_http::routes(), |node| &node.contexts.chat_list)
        .and(summary::feed_http::routes(), |node| &node.contexts.summary)
        .and(broadcasts::http::routes(), |node| &node.contexts.broadcasts)
        .and(dots::http::routes(), |node| &node.contexts.dots)
        .and(feed::http::routes(), |node| &node.contexts.feed)
        .and(groups::http::routes(), |node| &node.contexts.groups)
        .and(groups::history_http::routes(), |node| &node.contexts.groups)
        .and(groups::message_changes_http::routes(), |node| &node.contexts.groups)
        .and(groups::user_http::routes(), |node| &node.contexts.groups)
        .and(inbox::http::routes(), |node| &node.contexts.inbox)
        .and(inbox::directs_http::routes(), |node| &node.contexts.inbox)
        .and(notifications::http::routes(), |node| &node.contexts.notifications)
        .and(notifications::list_http::routes(), |node| &node.contexts.notifications)
        .and(notifications::mark_http::routes(), |node| &node.contexts.notifications)
        .and(receipts::http::routes(), |node| &node.contexts.receipts)
        .and(relations::http::routes(), |node| &node.contexts.relations)
        .and(relations::list_http::routes(), |node| &node.contexts.relations)
        .and(relations::lookup_http::routes(), |node| &node.contexts.relations)
        .and(relations::familiar_http::routes(), |node| &node.contexts.relations)
        .and(relations::request_http::routes(), |node| &node.contexts.relations)
        .and(relations::mute_http::routes(), |node| &node.contexts.relations)
        .and(events::routes(), |node| &node.contexts.events)
        .and(operations::http::routes(), |node| &node.contexts.operations)
        .and(users::erase_http::routes(), |node| &node.contexts.users)
        .and(users::settings_http::routes(), |node| &node.contexts.users)
        .and(user_export::http::routes(), |node| &node.contexts.user_export)
        .and(views::http::routes(), |node| &node.contexts.views)
        .and(probes::routes(), |node| node);
    let routes = if serves == Serves::All { routes.and(probes::admin_routes(compression), |node| node) } else { routes };
    routes.all
}

/// The document that the routes make.
fn document() -> utoipa::openapi::OpenApi {
    let mut document = routes(None, Serves::All, false).into_openapi();
    problems::add(&mut document);
    loosen(&mut document);
    document
}

/// Headers and some bodies may be left out. The attribute of an operation cannot say so without
/// also allowing `null`.
fn loosen(document: &mut utoipa::openapi::OpenApi) {
    for operation in
        document.paths.paths.values_mut().flat_map(|path| [path.post.as_mut(), path.put.as_mut(), path.patch.as_mut()]).flatten()
    {
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(header) = parameter
                && header.parameter_in == ParameterIn::Header
            {
                header.required = Required::False;
            }
        }
        if let Some(RefOr::T(body)) = &mut operation.request_body
            && body.description.as_deref().is_some_and(|text| text.starts_with("Optional"))
        {
            body.required = Some(Required::False);
        }
    }
}

/// What a node serves.
#[derive(Debug, Clone)]
pub struct Applications {
    /// On the address that everybody knows.
    pub main: Application,
    /// On the one for operators, where there is one.
    pub admin: Option<Application>,
}

/// The applications: routes, documents, fallbacks, and one edge around them. With `admin` operators have a
/// listener of their own.
pub fn build(node: &AppState, edge: EdgeConfig, admin: bool) -> Applications {
    let (origins, compression) = (edge.origins.clone(), edge.compression);
    let edge = EdgeLayer::new(edge);
    let serve = |router: Router| application(node, &edge, &origins, router.merge(docs::routes(served_json, compression)));
    let router = |serves| routes(Some(node), serves, compression).split_for_parts().0;
    let all = router(Serves::All).merge(console::routes(compression));
    match admin {
        true => Applications { main: serve(router(Serves::Public)), admin: Some(serve(all)) },
        false => Applications { main: serve(all), admin: None },
    }
}

fn application(node: &AppState, edge: &EdgeLayer, origins: &Origins, router: Router) -> Application {
    let router = router.fallback(unknown_route).method_not_allowed_fallback(method_not_allowed);
    let poll = edge.for_route(summary::http::POLL).layer(summary::http::poll(node.contexts.summary.clone()));
    // Each layer boxes a future for every request: none is put on for nothing.
    if origins.is_none() {
        return Application::new(router.layer(edge.clone()), Shortcut::new(poll));
    }
    let poll = Shortcut::new(origins.answers().layer(poll));
    Application::new(router.layer(origins.preflights()).layer(edge.clone()).layer(origins.answers()), poll)
}

/// The OpenAPI document as it is served.
fn served_json() -> String {
    document().to_json().unwrap_or_else(|error| {
        tracing::error!(%error, "the OpenAPI document has no JSON form");
        String::new()
    })
}

/// The OpenAPI document as it is kept in `openapi/openapi.json`.
///
/// # Errors
/// When it has no JSON form, which is a bug.
pub fn openapi_json() -> Result<String, String> {
    document().to_pretty_json().map_err(|error| error.to_string())
}
