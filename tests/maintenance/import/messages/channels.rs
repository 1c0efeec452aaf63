//! Which groups channels with names become.

use super::{counts, import, members, messages};
use crate::both_tiers;
use crate::maintenance::import::{headmark, seconds_ago};
use crate::support::eventually;

const LOG: &str = "timestamp,channel,sender\n100,general,1\n101,random,2\n";

both_tiers! {
    async fn channels_with_names_take_ids_that_no_group_has(world: World) {
        let node = world.node().await;
        for group in [1, 2, 4] {
            crate::features::groups::make(&node.client, group, &[9]).await;
        }
        node.stop().await;
        let ran = import(&world, LOG, &[]).await;
        assert_eq!(ran.status, Some(0), "{ran:?}");
        assert!(ran.out.starts_with("channel general is group 3\nchannel random is group 5\n"), "{}", ran.out);
        // Read again it finds its groups, wherever the ids are to begin.
        let again = import(&world, LOG, &["--first-group-id", "70"]).await;
        assert_eq!((again.status, counts(&again)), (Some(0), [0, 0, 0, 2, 0, 0]), "{again:?}");
        assert!(again.out.starts_with("channel general is group 3\nchannel random is group 5\n"), "{}", again.out);
        let other = import(&world, "timestamp,channel,sender\n100,more,1\n", &[]).await;
        assert!(other.out.starts_with("channel more is group 6\n"), "{other:?}");
        let node = world.node().await;
        for (group, expected) in [(1, 9), (2, 9), (3, 1), (4, 9), (5, 2), (6, 1)] {
            assert_eq!(members(&node.client, group).await, [expected], "group {group}");
        }
        node.stop().await;
    }

    async fn a_number_whose_group_has_a_name_is_refused(world: World) {
        let log = "timestamp,channel,sender\n100,general,1\n101,1,2\n101,1,3\n102,2,2\n";
        for again in [false, true] {
            let ran = import(&world, log, &[]).await;
            let counted = if again { [0, 0, 0, 2, 0, 2] } else { [2, 2, 0, 0, 0, 2] };
            assert_eq!((ran.status, counts(&ran)), (Some(3), counted), "{ran:?}");
            assert!(ran.err.contains("line 3 has 1 as channel, but group 1 is the channel 'general'; rename channel 1 in the log"), "{}", ran.err);
        }
        // The name stands below the number, or in another log.
        for grown in ["50,1,2\n100,general,1\n103,general,4\n", "50,1,2\n"] {
            let ran = import(&world, &format!("timestamp,channel,sender\n{grown}"), &[]).await;
            assert_eq!((ran.status, ran.told("bad"), ran.told("refused")), (Some(3), 1, 0), "{ran:?}");
            assert!(ran.err.contains("line 2 has 1 as channel"), "{}", ran.err);
        }
        let merged = import(&world, "timestamp,channel,sender\n104,1,5\n", &["--merge"]).await;
        assert_eq!((merged.status, counts(&merged)), (Some(0), [1, 1, 0, 0, 0, 0]), "{merged:?}");
        let node = world.node().await;
        assert_eq!((members(&node.client, 1).await, members(&node.client, 2).await), (vec![1, 4, 5], vec![2]));
        node.stop().await;
    }

    async fn joins_show_that_a_log_is_the_same_only_where_they_are_the_last_lines(world: World) {
        let log = |lines: &str| format!("timestamp,channel,sender,event\n{lines}");
        assert_eq!(import(&world, &log("100,general,1,join\n200,general,1,\n300,general,2,join\n"), &[]).await.status, Some(0));
        // One of the first user's times is known, but the last line is not the same.
        for other in ["50,general,1,join\n", "100,general,1,join\n150,general,3,\n", "300,general,2,leave\n301,general,3,\n"] {
            let refused = import(&world, &log(other), &[]).await;
            assert_eq!((refused.status, refused.told("refused")), (Some(3), i64::try_from(other.lines().count()).unwrap()), "{refused:?}");
        }
        let grown = import(&world, &log("90,general,4,join\n300,general,2,join\n301,general,3,\n"), &[]).await;
        assert_eq!((grown.status, counts(&grown)), (Some(0), [1, 2, 0, 1, 0, 0]), "{grown:?}");
    }

    async fn another_log_with_a_channel_of_the_same_name_is_refused(world: World) {
        assert_eq!(import(&world, LOG, &[]).await.status, Some(0));
        let other = "timestamp,channel,sender\n100,mine,5\n200,general,5\n201,general,6\n";
        let refused = import(&world, other, &[]).await;
        assert_eq!((refused.status, counts(&refused)), (Some(3), [1, 1, 0, 0, 2, 0]), "{refused:?}");
        assert!(refused.err.contains("channel general is refused: group 1 has that name from another log"), "{}", refused.err);
        assert!(refused.out.starts_with("channel mine is group 3\n"), "{}", refused.out);
        // One known message shows that the log is the same, also when what stands before it was
        // repaired.
        let grown = "timestamp,channel,sender\n99,general,3\n100,general,1\n500,general,4\n";
        let ran = import(&world, grown, &[]).await;
        assert_eq!((ran.status, counts(&ran)), (Some(0), [2, 2, 0, 1, 0, 0]), "{ran:?}");
        let settings = world.dir.join("merge.toml");
        std::fs::write(&settings, "merge = true\n").unwrap();
        let by_file = ["--config", settings.to_str().unwrap()];
        let refused = import(&world, other, &[&by_file[..], &["--merge=false"]].concat()).await;
        assert_eq!((refused.status, counts(&refused)), (Some(3), [0, 0, 0, 1, 2, 0]), "{refused:?}");
        let merged = import(&world, other, &by_file).await;
        assert_eq!((merged.status, counts(&merged)), (Some(0), [2, 2, 0, 1, 0, 0]), "{merged:?}");
        // The file may stand behind the option.
        let third = world.dir.join("third.csv");
        std::fs::write(&third, "timestamp,channel,sender\n700,general,7\n").unwrap();
        let merged = headmark(&world, &["import", "messages", "--merge", third.to_str().unwrap()], true, &[], Vec::new()).await;
        assert_eq!((merged.status, counts(&merged)), (Some(0), [1, 1, 0, 0, 0, 0]), "{merged:?}");
        let node = world.node().await;
        assert_eq!(members(&node.client, 1).await, [1, 3, 4, 5, 6, 7]);
        assert_eq!(messages(&node.client, 1).await.len(), 6);
        node.stop().await;
    }

    async fn a_channel_is_known_again_when_its_first_messages_have_expired(world: World) {
        let old: String = (0..150).map(|n| format!("{},general,{}\n", 100 + n, 1 + n % 3)).collect();
        let log = |lines: &str| format!("timestamp,channel,sender\n{lines}");
        let recent = seconds_ago(3600);
        let young = format!("{recent},general,1\n{},general,2\n", recent + 1);
        let grown = format!("{old}{young}{},general,3\n", recent + 2);
        assert_eq!(counts(&import(&world, &log(&format!("{old}{young}")), &[]).await), [152, 3, 0, 0, 0, 0]);
        let quiet = "timestamp,channel,sender,event\n100,quiet,5,join\n101,quiet,5,\n102,quiet,6,join\n103,quiet,6,\n";
        assert_eq!(counts(&import(&world, quiet, &[]).await), [2, 2, 0, 0, 0, 0]);
        let node = world.node_with(&["--group-message-days", "1"]).await;
        for old in ["/v1/groups/1/messages?after=149", "/v1/groups/2/messages?after=1"] {
            eventually("the old ones go", async || node.client.get(old).await.status == 410).await;
        }
        node.stop().await;
        let again = import(&world, quiet, &[]).await;
        assert_eq!((again.status, counts(&again)), (Some(0), [0, 0, 0, 4, 0, 0]), "its joins are not its users' last lines: {again:?}");
        let ran = import(&world, &log(&grown), &[]).await;
        assert_eq!((ran.status, counts(&ran)), (Some(0), [1, 0, 0, 152, 0, 0]), "{ran:?}");
        // Of another log nothing is taken, however old its lines are.
        let foreign: String = (0..3).map(|n| format!("{},general,9\n", 50 + n)).collect();
        let refused = import(&world, &log(&format!("{foreign}{},general,9\n", recent + 3)), &[]).await;
        assert_eq!((refused.status, counts(&refused)), (Some(3), [0, 0, 0, 0, 4, 0]), "{refused:?}");
        // All that this has would be gone again.
        let gone = import(&world, &log(&old), &[]).await;
        assert_eq!((gone.status, counts(&gone)), (Some(0), [0, 0, 0, 150, 0, 0]), "{gone:?}");
        let node = world.node().await;
        assert_eq!(members(&node.client, 1).await, [1, 2, 3]);
        node.stop().await;
    }

    async fn channels_become_groups_that_exist_where_that_is_asked_for(world: World) {
        let node = world.node().await;
        crate::features::groups::make(&node.client, 1, &[9]).await;
        node.stop().await;
        for _ in 0..2 {
            let ran = import(&world, LOG, &["--merge"]).await;
            assert!(ran.out.starts_with("channel general is group 1\nchannel random is group 2\n"), "{ran:?}");
        }
        let ran = import(&world, LOG, &[]).await;
        assert_eq!((ran.status, counts(&ran)), (Some(0), [0, 0, 0, 2, 0, 0]), "{ran:?}");
        let node = world.node().await;
        assert_eq!(members(&node.client, 1).await, [9, 1]);
        node.stop().await;
    }
}
