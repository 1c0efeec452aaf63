//! Signals that stop a command, or a server that still starts. In a container they are process 1, and
//! the kernel drops a signal for which process 1 has no handler. So each test looks for an exit status:
//! a process without a handler would die by the signal itself.

use std::process::ExitStatus;
use std::time::Duration;

use sqlx::Executor as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::Child;

use crate::maintenance::import::import;
use crate::support::{Tier, World, eventually, kill, start};

/// Starts a command on the stores of this world.
fn command(world: &World, args: &[&str]) -> Child {
    let stores = world.store_args();
    start(&[args, &stores.iter().map(String::as_str).collect::<Vec<_>>()].concat(), &[])
}

/// Sends a process a signal. It must end before anything that it waits for would.
async fn stopped(child: &mut Child, signal: &str) -> ExitStatus {
    kill(signal, child.id().unwrap());
    tokio::time::timeout(Duration::from_secs(8), child.wait()).await.expect("it ends").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_ends_with_the_number_of_the_signal() {
    for (signal, status) in [("-TERM", 143), ("-INT", 130)] {
        let world = World::without_tables(Tier::Embedded).await;
        let mut child = command(&world, &["import", "follows", "-"]);
        // Open, so that the command waits for a first line.
        let _input = child.stdin.take();
        let (mut errors, mut said) = (BufReader::new(child.stderr.take().unwrap()), String::new());
        errors.read_line(&mut said).await.unwrap();
        assert!(said.contains("this import goes into a new database"), "{said}");
        assert_eq!(stopped(&mut child, signal).await.code(), Some(status));
        said.clear();
        errors.read_line(&mut said).await.unwrap();
        assert_eq!(said, "");
        assert_eq!(import(&world, "follower,followee\n1,2\n", &[]).await.told("followed"), 1, "it leaves nothing in the way");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_is_stopped_leaves_no_part_of_a_file() {
    let world = World::new(Tier::Server).await;
    assert_eq!(import(&world, "follower,followee\n1,2\n", &[]).await.status, Some(0));
    let mut hand = world.postgres().await;
    hand.execute("begin; lock table following").await.unwrap();
    let folder = world.dir.join("exports");
    std::fs::create_dir(&folder).unwrap();
    let files = || std::fs::read_dir(&folder).unwrap().count();
    let mut child = command(&world, &["export", "follows", "--output", folder.join("out.csv").to_str().unwrap()]);
    eventually("it has begun", async || files() == 1).await;
    assert_eq!(stopped(&mut child, "-TERM").await.code(), Some(143));
    assert_eq!(files(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_waits_for_the_disk_leaves_no_part_of_a_file_either() {
    let world = World::new(Tier::Embedded).await;
    assert_eq!(import(&world, "follower,followee\n1,2\n", &[]).await.status, Some(0));
    let folder = world.dir.join("exports");
    std::fs::create_dir(&folder).unwrap();
    let files =
        || std::fs::read_dir(&folder).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect::<Vec<_>>();
    let (stores, file) = (world.store_args(), folder.join("out.csv"));
    let args = ["export", "follows", "--output", file.to_str().unwrap()];
    let mut child = start(
        &[args.as_slice(), &stores.iter().map(String::as_str).collect::<Vec<_>>()].concat(),
        &[("FAILPOINTS", "output::before_sync=sleep(5000)")],
    );
    eventually("all is written", async || files().iter().any(|file| file.lines().count() == 2)).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stopped(&mut child, "-TERM").await.code(), Some(143));
    assert_eq!(files(), Vec::<String>::new());
}

/// A write to a pipe that is full holds the command itself, so that it cannot hear.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_reader_stands_still_ends() {
    let world = World::new(Tier::Embedded).await;
    let follows: String = (0..10_000).map(|n| format!("{},{}\n", 1 + n % 50, 1000 + n)).collect();
    assert_eq!(import(&world, &format!("follower,followee\n{follows}"), &[]).await.told("followed"), 10_000);
    let mut child = command(&world, &["export", "follows"]);
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    // More than the pipe holds comes behind it.
    reader.read_line(&mut String::new()).await.unwrap();
    reader.read_line(&mut String::new()).await.unwrap();
    assert_eq!(stopped(&mut child, "-TERM").await.code(), Some(143));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_waits_for_its_database_stops() {
    // It takes connections, and says nothing.
    let database = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://nobody@{}/none", database.local_addr().unwrap());
    for signal in ["-TERM", "-INT"] {
        let mut child = start(&["serve", "--listen", "127.0.0.1:0"], &[("DATABASE_URL", &url)]);
        let _connection = tokio::time::timeout(Duration::from_secs(20), database.accept()).await.expect("it connects").unwrap();
        assert_eq!(stopped(&mut child, signal).await.code(), Some(0), "{signal}");
    }
}
