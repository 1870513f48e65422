// Command release makes the files of a release, and pushes them to a registry. `make release` and
// `make push` call it; docs/reference/release.md says what is in a release.
//
//	checkout ──> programs ──> archives, image, SBOMs ─┐
//	         ──> charts ──────────────────────────────┼──> provenance ──> SHA256SUMS
//	         ──> krew's manifest, notes ──────────────┘
//
// All bytes depend only on the commit, the version and the Go toolchain. So nothing that goes into
// a file may know the time, the machine, a path or the order in which things ended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/jobferry/jobferry/tools/release/checkout"
	"github.com/jobferry/jobferry/tools/release/oci"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

const usage = "say what to do: build, push or refs"

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	root := flags.String("root", ".", "the checkout")
	dist := flags.String("dist", "dist", "the folder of the release's files")
	version := flags.String("version", "", "the version, such as v1.2.3")
	registry := flags.String("registry", "", "the registry, such as ghcr.io/jobferry or localhost:5000")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "build":
		source, err := checkout.Open(ctx, *root, *version)
		if err != nil {
			return err
		}
		return (&release{Source: source, dist: *dist, log: out}).make(ctx)
	case "push":
		return eachArtifact(*dist, *registry, func(artifact oci.Artifact) error {
			digest, err := oci.Push(ctx, *registry, artifact)
			if err == nil {
				fmt.Fprintf(out, "%s:%s is %s\n", digest.Repository, artifact.Tag, digest)
			}
			return err
		})
	case "refs":
		return eachArtifact(*dist, *registry, func(artifact oci.Artifact) error {
			_, digest, err := artifact.In(*registry)
			fmt.Fprintln(out, digest)
			return err
		})
	}
	return fmt.Errorf("%s: %s", args[0], usage)
}

// eachArtifact calls do for what a release's folder has for registries.
func eachArtifact(dist, registry string, do func(oci.Artifact) error) error {
	if registry == "" {
		return errors.New("say where to: REGISTRY=ghcr.io/jobferry, or another registry, with or without a path")
	}
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	artifacts, err := artifactsOf(filepath.Clean(dist), scratch)
	if err != nil {
		return err
	}
	for _, artifact := range artifacts {
		if err := do(artifact); err != nil {
			return err
		}
	}
	return nil
}
