//! What callers learn of receipts that they may not see, and what they cost who ask for too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;

use super::counts;
use crate::both_tiers;
use crate::features::groups::{make, read, read_one, send};
use crate::features::users::share;
use crate::support::CREDENTIALS;

both_tiers! {
    async fn a_tag_tells_nothing_of_what_others_have_read_of_others(world: World) {
        let node = world.node_with(&CREDENTIALS).await;
        let service = node.service();
        let [one, two] = [1, 2].map(|user| node.user(user));
        make(&service, 9, &[1, 2, 3]).await;
        send(&one, 9, 1, "a").await.ok();
        send(&two, 9, 2, "b").await.ok();
        let paths = ["/v1/groups/9/messages/1/receipts", "/v1/groups/9/receipts?from=1&to=2", "/v1/groups/9/receipts?from=2&to=2"];
        let mut held = Vec::new();
        for path in paths {
            let tag = one.get(path).await.header("etag").to_owned();
            let (one, path) = (one.clone(), format!("{path}{}wait=3", if path.contains('?') { '&' } else { '?' }));
            held.push(tokio::spawn(async move { one.get_if_changed(&path, &tag).await }));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        read_one(&service, 3, 9, 2).await.ok();
        share(&service, 3, false).await.ok();
        read(&service, 3, 9, None).await.ok();
        for held in held {
            assert_eq!(held.await.unwrap().status, 304);
        }
        node.stop().await;
    }

    /// Who may not see the receipts of a group does not have its memberships read.
    async fn strangers_do_not_have_the_members_read(world: World) {
        static READS: AtomicUsize = AtomicUsize::new(0);
        let node = world.node_with(&CREDENTIALS).await;
        make(&node.service(), 9, &[1, 2]).await;
        send(&node.service(), 9, 1, "m").await.ok();
        READS.store(0, Ordering::SeqCst);
        fail::cfg_callback("receipts::before_spans", || {
            READS.fetch_add(1, Ordering::SeqCst);
        }).unwrap();
        for path in ["/v1/groups/9/messages/1/receipts", "/v1/groups/9/messages/2/receipts", "/v1/groups/9/receipts?from=1&to=1"] {
            node.user(3).get(path).await.problem(403, "forbidden");
        }
        assert_eq!(READS.load(Ordering::SeqCst), 0);
        assert_eq!(counts(&node.user(1), 9, 1).await, (1, 0, 1));
        assert_eq!(READS.load(Ordering::SeqCst), 1);
        node.stop().await;
    }

    /// However many claim at once to have seen more, the memberships are read once for all.
    async fn made_up_tags_at_once_read_the_members_once(world: World) {
        const REQUESTS: usize = 20;
        let node = world.node_with(&CREDENTIALS).await;
        let one = node.user(1);
        make(&node.service(), 9, &[1, 2]).await;
        send(&one, 9, 1, "m").await.ok();
        let path = "/v1/groups/9/messages/1/receipts";
        let tag = one.get(path).await.header("etag").to_owned();
        let [scope, _, shared] = tag.split('.').collect::<Vec<_>>()[..] else { panic!("{tag}") };
        let made_up = format!("{scope}.{}.{shared}", 1_i64 << 40);
        let reads = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&reads);
        let slow = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(300));
        };
        fail::cfg_callback("receipts::before_spans", slow).unwrap();
        let asking = (0..REQUESTS).map(|_| one.get_if_changed(path, &made_up));
        assert!(join_all(asking).await.iter().all(|reply| reply.status == 200));
        let reads = reads.load(Ordering::SeqCst);
        assert!(reads <= 3, "{reads} reads for {REQUESTS} requests");
        node.stop().await;
    }

    async fn a_made_up_tag_does_not_read_the_members_again_each_time(world: World) {
        const REQUESTS: usize = 50;
        let node = world.node_with(&[&CREDENTIALS[..], &["--scrub-users", "0"]].concat()).await;
        let (service, one) = (node.service(), node.user(1));
        make(&service, 9, &[1, 2, 3]).await;
        send(&service, 9, 1, "m").await.ok();
        for path in ["/v1/groups/9/messages/1/receipts", "/v1/groups/9/receipts?from=1&to=1"] {
            let tag = one.get(path).await.header("etag").to_owned();
            let [scope, _, shared] = tag.split('.').collect::<Vec<_>>()[..] else { panic!("{tag}") };
            let made_up = format!("{scope}.{}.{shared}", 1_i64 << 40);
            let before = service.metric("headmark_database_statements_total").await;
            for _ in 0..REQUESTS {
                assert_eq!(one.get_if_changed(path, &made_up).await.status, 200);
            }
            let asked = service.metric("headmark_database_statements_total").await - before;
            assert!(asked < 50.0, "{asked} statements for {REQUESTS} requests");
        }
        // Who says the truth is believed.
        read(&service, 2, 9, None).await.ok();
        assert_eq!(one.get("/v1/groups/9/messages/1/receipts").await.ok()["read_count"], 1);
        node.stop().await;
    }
}
