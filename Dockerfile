# zarrd as a small image that runs as a user of its own and keeps its data in the volume /data:
#
#   docker build -t zarrd .
#   docker run -p 8000:8000 -v zarrd-data:/data zarrd serve --anonymous read
#
# In a container the server listens on all addresses, so by default it answers only clients with a token: at its first
# start it writes an administrator's token to /data/access/admin-token. `--anonymous read` or `--anonymous write` (or
# -e ZARRD_ANONYMOUS=read) states what clients without a token may do.

# The allocator and some compressors need a C compiler, which this image has.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The caches keep downloads and compiled crates between builds, so that a change compiles little more than itself. They
# belong to no layer, so the program is copied out of them in the same step.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p zarrd \
    && install -D target/release/zarrd /out/zarrd

FROM debian:bookworm-slim
# A directory of the host that is mounted on /data must belong to this id.
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
