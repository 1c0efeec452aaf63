//! `headmark serve`.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::net::TcpListener;

use super::shared::{Failure, on_runtime, say};
use crate::app::config::Config;
use crate::app::node::App;
use crate::app::notify::Notifier;
use crate::app::serve::{HttpConfig, Stop, Threads, files};
use crate::app::{serve, signals, telemetry};
use crate::base::clock::Clock;
use crate::db::unverified;

pub(super) fn run(config: &Config) -> Result<(), Failure> {
    telemetry::init_logs(&config.logs.filter, config.logs.format.is_json())?;
    crate::start_failpoints();
    Ok(on_runtime(node(config))??)
}

async fn node(config: &Config) -> Result<(), String> {
    let mut told_to_stop = pin!(signals::told_to_stop());
    files::allow(config.http.all_connections());
    for variable in unverified(&config.stores, &config.replica) {
        tracing::warn!(variable, "Postgres may be connected to in clear text, or at another server: add sslmode=verify-full to the URL");
    }
    // Bound first: a port that is taken is told before anything is opened.
    let (listener, address) = listen(config.http.listen).await?;
    let admin = match config.http.admin_listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    // They end after the stores.
    let threads = Arc::new(Threads::start().map_err(|error| format!("cannot start the threads for connections: {error}"))?);
    // A start may wait long for its stores. Cut off, it leaves what a kill would leave, and the next one goes on.
    let app = tokio::select! {
        app = App::start(config, threads.runtimes(), Clock::System) => app?,
        _ = &mut told_to_stop => {
            tracing::info!("stopped while it started");
            return Ok(());
        }
    };
    let stop = Stop::default();
    welcome(config, address, admin.as_ref().map_or(address, |(_, address)| *address), app.state().auth.is_open());
    let notifier = Notifier::from_env();
    let state = app.state().clone();
    let healthy = async move || state.are_healthy().await;
    let mut displaced = false;
    let serve = |listener, application, max_connections| {
        let config = HttpConfig { max_connections, ..config.http.clone() };
        serve::serve(listener, application, config, stop.clone(), Arc::clone(&threads))
    };
    let main = serve(listener, app.application(), config.http.max_connections);
    let admin = admin.zip(app.admin_application());
    let admin = admin.map(|((listener, _), application)| serve(listener, application, config.http.max_admin_connections()));
    let serving = async { tokio::try_join!(main, async { OptionFuture::from(admin).await.unwrap_or(Ok(())) }).map(|_| ()) };
    tokio::pin!(serving);
    notifier.ready(address);
    let watchdog = tokio::spawn(notifier.clone().feed_watchdog(healthy));
    let served = tokio::select! {
        served = &mut serving => served,
        _ = &mut told_to_stop => finish(&app, &notifier, &stop, serving).await,
        () = app.displaced() => {
            displaced = true;
            stop.close.cancel();
            finish(&app, &notifier, &stop, serving).await
        }
    };
    app.stop().await;
    watchdog.abort();
    tracing::info!("stopped");
    match (served, displaced) {
        (_, true) => Err("another node has taken over the database; this one stopped".to_owned()),
        (Err(error), _) => Err(format!("serving failed: {error}")),
        (Ok(()), false) => Ok(()),
    }
}

/// Listens at this address. Returns it, too, with the port that the system chose for 0.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    Ok((listener, address))
}

/// Drains. Told to stop once more, it closes the port at once.
async fn finish(
    app: &App,
    notifier: &Notifier,
    stop: &Stop,
    mut serving: Pin<&mut impl Future<Output = std::io::Result<()>>>,
) -> std::io::Result<()> {
    tracing::info!("draining");
    notifier.stopping();
    app.begin_drain();
    stop.drain.cancel();
    tokio::select! {
        served = &mut serving => return served,
        _ = signals::told_to_stop() => stop.close.cancel(),
    }
    serving.await
}

/// What a newcomer needs next; three lines that work when pasted.
fn welcome(config: &Config, address: SocketAddr, admin: SocketAddr, open: bool) {
    let tier = match (&config.stores.database_url, &config.cache.redis_url) {
        (None, _) => format!("SQLite in {}, cache in this process", config.stores.data_dir.display()),
        (Some(_), None) => "Postgres, cache in this process: one node only".to_owned(),
        (Some(_), Some(_)) => "Postgres and Redis".to_owned(),
    };
    let base = format!("http://{address}");
    let (who, key) = if open {
        ("open: anyone on this machine may do anything; set HEADMARK_SERVICE_KEYS to change that", "")
    } else {
        ("credentials required; replace $KEY with the secret of a service key (after the colon)", "-H \"authorization: Bearer $KEY\" ")
    };
    // A server whose output nobody takes serves all the same.
    let _ = say(&format!(
        "headmark {} is listening on {base}\n  stores:  {tier}\n  access:  {who}\n  console: http://{admin}/console\n  docs:    {base}/docs\n\nTry it:\n  \
         curl {key}-X POST {base}/v1/users/42/badges/mention/increment\n  \
         curl {key}{base}/v1/users/42/badges\n  \
         curl {key}-X POST {base}/v1/users/42/badges/mention/reset\n",
        env!("CARGO_PKG_VERSION"),
    ));
}
