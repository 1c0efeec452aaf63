# syntax=docker/dockerfile:1
FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
# The caches keep the dependencies' builds from one image to the next.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked --bin headmark \
    && install -D target/dist/headmark /out/headmark

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin headmark \
    && install -d -m 700 -o headmark -g headmark /data
COPY --from=build /out/headmark /usr/local/bin/headmark

# Outside of loopback the server refuses to start without credentials: give it HEADMARK_SERVICE_KEYS.
ENV HEADMARK_LISTEN=0.0.0.0:8080 HEADMARK_DATA_DIR=/data
USER headmark
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# The process, not its stores: a database that is away is no reason to restart a node that serves polls from the cache.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/${HEADMARK_LISTEN##*:} && printf 'GET /livez HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["headmark"]
