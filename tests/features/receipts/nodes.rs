//! What the nodes of an installation tell of the same receipts.

use std::time::Duration;

use serde_json::json;

use super::counts;
use crate::both_tiers;
use crate::features::groups::{make, read, read_one, send};
use crate::support::Node;

both_tiers! {
    async fn recipients_are_as_new_as_the_message_on_every_node(world: World) {
        let nodes = world.nodes().await;
        let (writer, reader) = (&nodes[0].client, &nodes.last().unwrap().client);
        make(writer, 9, &[1, 2]).await;
        send(writer, 9, 1, "m1").await.ok();
        for seq in 2..=6 {
            // The other node holds the memberships of this moment.
            assert_eq!(counts(reader, 9, seq - 1).await.0, seq - 1);
            make(writer, 9, &[seq + 1]).await;
            send(writer, 9, 1, &format!("m{seq}")).await.ok();
            if seq % 2 == 0 {
                assert_eq!(counts(reader, 9, seq).await, (seq, 0, seq), "who joined before the message");
            }
            let screenful = reader.get(&format!("/v1/groups/9/receipts?from={seq}&to={seq}")).await.ok();
            assert_eq!(screenful["items"], json!([{"seq": seq, "read_count": 0, "unread_count": seq}]));
        }
        Node::stop_all(nodes).await;
    }

    async fn receipts_of_a_recalled_message_do_not_come_back_on_another_node(world: World) {
        let nodes = world.nodes().await;
        let (writer, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        make(writer, 9, &[1, 2]).await;
        for client_id in ["a", "b", "c"] {
            send(writer, 9, 1, client_id).await.ok();
        }
        let screen = "/v1/groups/9/receipts?from=1&to=2";
        // From here on, for a second, the other node knows who sent these.
        assert_eq!(other.get(screen).await.ok()["items"].as_array().unwrap().len(), 2);
        writer.delete("/v1/groups/9/messages/1").await;
        let first = writer.get(screen).await;
        let tag = first.header("etag").to_owned();
        assert_eq!(first.ok()["items"].as_array().unwrap().len(), 1);
        let again = other.get_if_changed(screen, &tag).await;
        assert_eq!(again.status, 304, "{}", again.text);
        Node::stop_all(nodes).await;
    }

    async fn a_poll_of_receipts_hears_of_a_recall(world: World) {
        let nodes = world.nodes().await;
        let (writer, other) = (nodes[0].client.clone(), nodes.last().unwrap().client.clone());
        make(&writer, 9, &[1, 2]).await;
        for client_id in ["a", "b"] {
            send(&writer, 9, 1, client_id).await.ok();
        }
        let screen = "/v1/groups/9/receipts?from=1&to=2";
        let tag = other.get(screen).await.header("etag").to_owned();
        let waiting = tokio::spawn({
            let other = other.clone();
            async move { other.get_if_changed(&format!("{screen}&wait=30"), &tag).await }
        });
        // Just after the second in which the first look at the senders is kept: another one begins.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        other.get(screen).await.ok();
        writer.delete("/v1/groups/9/messages/1").await;
        let woken = tokio::time::timeout(Duration::from_secs(3), waiting).await.expect("it is woken").unwrap();
        assert_eq!(woken.ok()["items"].as_array().unwrap().len(), 1);
        Node::stop_all(nodes).await;
    }

    /// A node reads the memberships after the recalls that it knows of: a read and a recall add up to the same.
    async fn a_state_that_adds_up_to_the_same_is_not_shown_again(world: World) {
        let nodes = world.nodes().await;
        let (writer, other) = (nodes[0].client.clone(), nodes.last().unwrap().client.clone());
        make(&writer, 9, &[1, 2]).await;
        for client_id in ["a", "b"] {
            send(&writer, 9, 1, client_id).await.ok();
        }
        let screen = "/v1/groups/9/receipts?from=1&to=2";
        // Who sent what is kept for a second. A newer tag makes the node read the memberships before that is over.
        other.get(screen).await.ok();
        read(&writer, 2, 9, Some(1)).await.ok();
        let tag = writer.get(screen).await.header("etag").to_owned();
        fail::cfg("receipts::before_spans", "1*sleep(400)->off").unwrap();
        let reading = tokio::spawn({
            let other = other.clone();
            async move { other.get_if_changed(screen, &tag).await }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        writer.delete("/v1/groups/9/messages/1").await;
        let reply = writer.get(screen).await;
        let tag = reply.header("etag").to_owned();
        assert_eq!(reply.ok()["items"].as_array().unwrap().len(), 1);
        read(&writer, 2, 9, None).await.ok();
        reading.await.unwrap();
        let reply = other.get_if_changed(screen, &tag).await;
        assert_eq!(reply.ok()["items"].as_array().unwrap().len(), 1, "what was recalled shows again");
        Node::stop_all(nodes).await;
    }

    /// Who sent a message may be known of a later moment than who has read it.
    async fn a_recall_takes_nothing_back_that_was_read(world: World) {
        let nodes = world.nodes().await;
        let (writer, other) = (&nodes[0].client, &nodes.last().unwrap().client);
        make(writer, 9, &[1, 2]).await;
        for seq in 1..=70 {
            send(writer, 9, 1, &format!("m{seq}")).await.ok();
        }
        // From here on, for a second, the other node knows the memberships, and who sent the last messages.
        assert_eq!(counts(other, 9, 70).await, (1, 0, 1));
        read_one(writer, 2, 9, 70).await.ok();
        let screen = "/v1/groups/9/receipts?from=3&to=70";
        let tag = writer.get(screen).await.header("etag").to_owned();
        writer.delete("/v1/groups/9/messages/3").await;
        let items = other.get_if_changed(screen, &tag).await.ok()["items"].take();
        assert_eq!((&items[0]["seq"], &items[66]), (&json!(4), &json!({"seq": 70, "read_count": 1, "unread_count": 0})));
        Node::stop_all(nodes).await;
    }
}
