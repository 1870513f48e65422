// Command rig-build builds the programs of the rig into the cache, so that the first test run
// needn't, and prints where they are.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

func main() {
	version := flag.String("version", string(binaries.Current), "Kubernetes release to build: 1.36 or 1.34")
	tool := flag.String("tool", "", "build this program instead, which belongs to no release: "+strings.Join(binaries.Tools(), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *version, *tool); err != nil {
		fmt.Fprintln(os.Stderr, "rig-build:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, tool string) error {
	if tool != "" {
		path, err := binaries.Tool(ctx, tool, binaries.Lines(os.Stderr))
		if err != nil {
			return err
		}
		fmt.Println(path)
		return nil
	}
	release, err := binaries.ParseRelease(version)
	if err != nil {
		return err
	}
	paths, err := binaries.Ensure(ctx, release, binaries.Lines(os.Stderr))
	if err != nil {
		return err
	}
	for _, name := range sorted(paths) {
		fmt.Println(paths[name])
	}
	return nil
}

func sorted(paths binaries.Paths) []string {
	var names []string
	for name := range paths {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
