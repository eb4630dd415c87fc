# zarrd as a small image that runs as a user of its own and keeps its data in the volume /data:
#
#   docker build -t zarrd .
#   docker run -p 8000:8000 -v zarrd-data:/data zarrd serve --anonymous write
#
# In a container the server listens on all addresses, so it has to be said what anybody who reaches it may do:
# `--anonymous read` or `--anonymous write` (or -e ZARRD_ANONYMOUS=read). Without it the container says so and ends.

# The image has the C compiler that the allocator and some compressors take.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The caches keep what was downloaded and compiled across builds, so a change of the source compiles little more than itself.
# The program is moved out of them in the same step, since they are no part of a layer.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p zarrd \
    && install -D target/release/zarrd /out/zarrd

FROM debian:bookworm-slim
# The fixed id is what a directory of the host must belong to in order to be mounted on /data.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin zarrd \
    && install --directory --owner=zarrd --group=zarrd --mode=0750 /data
# Certificate authorities, for imports from other servers by https.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/zarrd /usr/local/bin/zarrd

USER 10001:10001
WORKDIR /data
VOLUME /data
ENV ZARRD_LISTEN=0.0.0.0:8000 \
    ZARRD_STORE=sled:/data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 CMD ["zarrd", "health"]
ENTRYPOINT ["zarrd"]
CMD ["serve"]
