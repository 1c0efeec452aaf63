//! A poll goes to its handler without the router. Both ways give the same answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use headmark::app::serve::{HttpConfig, Stop, Threads, serve};
use reqwest::Method;
use serde_json::json;
use tokio::net::TcpListener;

use crate::both_tiers;
use crate::support::{Client, JWT_SECRET, Node};

const SETTINGS: [&str; 6] =
    ["--service-keys", "web:s3cret-of-the-suite", "--jwt-secret", JWT_SECRET, "--cors-origins", "https://app.example"];

/// Headers in the order of their names, the status and the body.
type Seen = (u16, BTreeMap<String, Vec<String>>, String);

/// The same node once more, by its router alone.
async fn router_alone(node: &Node) -> (Client, Stop) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()));
    let stop = Stop::default();
    let serving = serve(listener, node.app.router(), HttpConfig::default(), stop.clone(), Arc::new(Threads::start().unwrap()));
    tokio::spawn(serving);
    (client, stop)
}

async fn ask(client: &Client, method: &Method, path: &str, headers: &[(&str, String)]) -> Seen {
    let mut request = client.request(method.clone(), path).header("x-request-id", "the-same");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let reply = request.send().await.unwrap();
    let mut found = BTreeMap::<String, Vec<String>>::new();
    // The time passes in between.
    for (name, value) in reply.headers().iter().filter(|(name, _)| *name != "date") {
        found.entry(name.to_string()).or_default().push(value.to_str().unwrap().to_owned());
    }
    found.values_mut().for_each(|values| values.sort());
    (reply.status().as_u16(), found, reply.text().await.unwrap())
}

both_tiers! {
    async fn a_poll_is_answered_as_the_router_would(world: World) {
        let node = world.node_with(&SETTINGS).await;
        let service = node.service();
        service.post("/v1/users/42/badges/mention/increment", &json!({"by": 3})).await.ok();
        let token = node.app.state().auth.user_token(42.try_into().unwrap(), std::time::Duration::from_secs(60)).unwrap();
        let bearer = |secret: &str| ("authorization", format!("Bearer {secret}"));
        let (key, user) = (bearer("s3cret-of-the-suite"), bearer(&token));
        let (router, stop) = router_alone(&node).await;
        let tag = ask(&node.client, &Method::GET, "/v1/users/42/badges", std::slice::from_ref(&key)).await.1["etag"][0].clone();
        let known = ("if-none-match", tag);
        let page = |origin: &str| ("origin", origin.to_owned());
        let mut statuses = Vec::new();
        for (path, headers) in [
            ("/v1/users/42/badges", vec![key.clone()]),
            ("/v1/users/me/badges", vec![user.clone()]),
            ("/v1/users/42/badges", vec![key.clone(), known.clone()]),
            ("/v1/users/42/badges?wait=1", vec![user.clone(), known.clone()]),
            ("/v1/users/42/badges?include=counters&cap=2", vec![user.clone(), ("accept-encoding", "gzip;q=0.5, zstd".to_owned())]),
            ("/v1/users/42/badges", vec![key.clone(), page("https://app.example")]),
            ("/v1/users/42/badges", vec![key.clone(), page("https://evil.example")]),
            ("/v1/users/42/badges?wait=1", vec![key.clone()]),
            ("/v1/users/42/badges?cap=x", vec![key.clone()]),
            ("/v1/users/x/badges", vec![key.clone()]),
            ("/v1/users/42/badges", vec![]),
            ("/v1/users/x/badges", vec![bearer("wrong")]),
            ("/v1/users/me/badges", vec![key.clone()]),
            ("/v1/users/43/badges", vec![user.clone()]),
            ("/v1/users/%34%32/badges", vec![user.clone()]),
            ("/v1/users//badges", vec![key.clone()]),
            ("/v1/users/42/badges/", vec![key.clone()]),
        ] {
            for method in [Method::GET, Method::HEAD, Method::DELETE] {
                let short = ask(&node.client, &method, path, &headers).await;
                assert_eq!(short, ask(&router, &method, path, &headers).await, "{method} {path}");
                if method == Method::GET {
                    statuses.push(short.0);
                }
            }
        }
        assert_eq!(statuses, [200, 200, 304, 304, 200, 200, 200, 400, 400, 400, 401, 401, 403, 403, 200, 400, 404]);
        // Both are counted under the name of the route, and both are logged alike.
        let metrics = node.client.get("/metrics").await.text;
        assert!(metrics.contains(r#"headmark_http_requests_total{method="GET",route="/v1/users/{user}/badges",status="304"} 4"#), "{metrics}");
        stop.close.cancel();
        node.stop().await;
    }
}
