# syntax=docker/dockerfile:1
FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
# A program that needs no library of the image: glibc linked statically. With --target, so that the
# flag is for the program, and not for what is run to build it.
ENV RUSTFLAGS="-C target-feature=+crt-static"
# The caches keep the dependencies' builds from one image to the next.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    target=$(rustc --version --verbose | sed -n 's/^host: //p') \
    && cargo build --profile dist --locked --bin headmark --target "$target" \
    && install -D "target/$target/dist/headmark" /out/headmark
RUN mkdir /out/data

# Nothing but the program, and the certificates of authorities for TLS to Redis. Those for Postgres are in the program.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/headmark /usr/local/bin/headmark
COPY --from=build --chown=10001:10001 --chmod=700 /out/data /data

# Outside of loopback the server refuses to start without credentials: give it HEADMARK_SERVICE_KEYS.
ENV PATH=/usr/local/bin HEADMARK_LISTEN=0.0.0.0:8080 HEADMARK_DATA_DIR=/data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# Not ready: the node stops, or reaches neither store. One store that is away is no failure.
HEALTHCHECK --interval=10s --timeout=4s --start-period=30s --retries=3 CMD ["headmark", "healthcheck"]
ENTRYPOINT ["headmark"]
