//! The erasure of a user who was erased before.

use super::{ARGS, erase, erased, node};
use crate::both_tiers;
use crate::support::{Hand, JWT_SECRET};

both_tiers! {
    async fn an_erasure_that_is_repeated_late_is_done(world: World) {
        let node = node(&world).await;
        let client = &node.client;
        client.get("/v1/users/2/badges").await.ok();
        let location = erase(client, 2).await;
        assert_eq!(erase(client, 2).await, location, "a repeat is the same");
        let first = erased(client, &location).await;
        let mut hand = Hand::on(&world).await;
        // As after the time for which it is kept.
        hand.run("delete from removals").await;
        client.get(&location).await.problem(404, "not_found");
        for _ in 0..2 {
            assert_eq!(erase(client, 2).await, location, "a repeat is the same");
            let told = client.get(&location).await.ok();
            assert_eq!((&told["status"], &told["operation_id"]), (&"done".into(), &first["operation_id"]), "{told}");
        }
        let kept = "select cast(count(*) as text) || ':' || cast(max(subject_id) as text) from removals";
        assert_eq!(hand.text(kept).await, "1:0", "whom it was about is not told again");
        node.stop().await;
    }

    async fn every_service_may_ask_what_became_of_an_erasure(world: World) {
        let keys = ["--service-keys", "web:s3cret-of-the-suite,app:t0psecret-of-the-suite", "--jwt-secret", JWT_SECRET];
        let node = world.node_with(&[&ARGS[..], &keys[..]].concat()).await;
        let (web, app) = (node.service(), node.client.with_bearer("t0psecret-of-the-suite"));
        web.get("/v1/users/2/badges").await.ok();
        let location = erase(&web, 2).await;
        assert_eq!(erase(&app, 2).await, location, "a repeat is the same");
        for client in [&app, &web] {
            erased(client, &location).await;
        }
        node.user(1).get(&location).await.problem(404, "not_found");
        node.client.get(&location).await.problem(401, "unauthorized");
        node.stop().await;
    }
}
