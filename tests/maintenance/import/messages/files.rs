//! What files of messages may look like, and where they break off.

use std::fmt::Write as _;

use super::{counts, messages};
use crate::both_tiers;
use crate::maintenance::import::{gzip, headmark};

both_tiers! {
    async fn messages_are_quoted_have_line_breaks_and_ten_thousand_characters(world: World) {
        let long = "€\"".repeat(5000);
        let log = format!(
            "timestamp,channel,sender,content\n100,5,1,\"one, \"\"two\"\"\nthree\r\n\n\"\n101,5,1, blank \n102,5,1,\"{}\"\n103,5,1,\"{}\"\n104,5,2,last\n",
            long.replace('"', "\"\""),
            "x".repeat(10_001)
        );
        let ran = headmark(&world, &["import", "messages", "-"], true, &[], log.into()).await;
        assert_eq!((ran.status, counts(&ran)), (Some(3), [4, 2, 0, 0, 0, 1]), "{ran:?}");
        assert!(ran.err.contains("line 8 has a content with"), "{}", ran.err);
        let node = world.node().await;
        let said: Vec<_> = messages(&node.client, 5).await.into_iter().map(|(_, content, _)| content).collect();
        assert!(said == ["one, \"two\"\nthree\r\n\n", " blank ", &long, "last"], "{said:?}");
        node.stop().await;
    }

    async fn of_a_log_that_breaks_off_the_lines_before_are_imported(world: World) {
        let mut log = "timestamp,channel,sender\n".to_owned();
        (0..60_000).for_each(|n| writeln!(log, "{},{},{}", 1_000_000 + n / 3, 1 + n % 3, 1 + n * 7919 % 997 % 50).unwrap());
        let whole = gzip(&log);
        let (first, members) = (world.dir.join("log.gz"), world.dir.join("members.gz"));
        let command = ["import", "messages", first.to_str().unwrap(), "--members", members.to_str().unwrap()];
        std::fs::write(&first, &whole[..whole.len() / 2]).unwrap();
        std::fs::write(&members, "timestamp,channel,user,event\n900000,1,80,join\n2000000,1,80,leave\n").unwrap();
        let ran = headmark(&world, &command, true, &[], Vec::new()).await;
        let sent = ran.told("sent");
        assert!(ran.status == Some(1) && sent > 1000 && sent < 60_000 && ran.told("left") == 0, "{ran:?}");
        assert!(ran.err.contains(&format!("breaks off after {sent} lines")) && ran.err.contains("of both files before that time are imported"), "{}", ran.err);
        // The other file breaks off: what was said after its last line is not imported.
        let mut events = "timestamp,channel,user,event\n900000,1,80,join\n".to_owned();
        (0..20_000_usize).for_each(|n| writeln!(events, "{},1,{},{}", 1_000_000 + n, 60 + n * 7919 % 997 % 9, ["join", "leave"][n * 31 % 7 % 2]).unwrap());
        let events = gzip(&events);
        std::fs::write(&first, &whole).unwrap();
        std::fs::write(&members, &events[..events.len() - 100]).unwrap();
        let ran = headmark(&world, &command, true, &[], Vec::new()).await;
        let all = sent + ran.told("sent");
        assert!(ran.status == Some(1) && all > sent && all < 60_000, "{ran:?}");
        assert!(ran.err.contains("members.gz breaks off after "), "{}", ran.err);
        std::fs::write(&members, &events).unwrap();
        let ran = headmark(&world, &command, true, &[], Vec::new()).await;
        assert_eq!((ran.status, all + ran.told("sent")), (Some(0), 60_000), "{ran:?}");
    }
}
