//! `headmark healthcheck`.

use std::time::Duration;

use clap::Args;

use super::shared::block_on;

/// How long a server has for its answer.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Whom to ask.
#[derive(Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// The server to ask.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: reqwest::Url,
}

pub(super) fn run(args: &HealthcheckArgs) -> Result<(), String> {
    block_on(async {
        let url = args.url.join("/readyz").map_err(|error| error.to_string())?;
        let client = reqwest::Client::builder().timeout(MAX_WAIT).build().map_err(|error| error.to_string())?;
        let answer = client.get(url).send().await.map_err(|error| format!("no answer: {error}"))?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("not ready: {}", answer.status())) }
    })
}
