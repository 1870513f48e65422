# syntax=docker/dockerfile:1
# One image with both programs: jobferry-manager for the hub, jobferry-worker for workers. For several platforms:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v0.1.0 -t REPOSITORY:v0.1.0 --push .
# `make pin-images` pins the images that it's built from by digest.

# The compiler runs on the builder's platform, and compiles for the image's.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY tools/build tools/build
COPY cmd cmd
COPY pkg pkg
ARG TARGETOS TARGETARCH VERSION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH VERSION=$VERSION tools/build /out jobferry-manager jobferry-worker

FROM scratch
# For workers whose kubeconfig has no certificate authority: their API server's certificate is a public one's.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /
# A number: runAsNonRoot can't be proved of a name.
USER 65532:65532
ENTRYPOINT ["/jobferry-manager"]
