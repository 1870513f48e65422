// Command rig-build brings the programs of the rig into the cache, so that the first test run
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
	var w wanted
	flag.StringVar(&w.versions, "version", "", fmt.Sprintf("Kubernetes releases to build, separated by commas: of %v", binaries.Releases()))
	flag.StringVar(&w.tools, "tool", "", "programs to build that belong to no release, separated by commas: "+strings.Join(binaries.Tools(), ", "))
	flag.BoolVar(&w.clean, "clean", false, "empty the cache instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, w); err != nil {
		fmt.Fprintln(os.Stderr, "rig-build:", err)
		os.Exit(1)
	}
}

// wanted is what the command line asks for.
type wanted struct {
	versions, tools string
	clean           bool
}

func run(ctx context.Context, w wanted) error {
	if w.clean {
		dir, err := binaries.Clean()
		if err == nil {
			fmt.Println("removed", dir)
		}
		return err
	}
	if w.versions == "" && w.tools == "" {
		w.versions = string(binaries.Current)
	}
	for _, version := range list(w.versions) {
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
	}
	for _, tool := range list(w.tools) {
		path, err := binaries.Tool(ctx, tool, binaries.Lines(os.Stderr))
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}

// list splits at commas; nothing makes an empty list.
func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

func sorted(paths binaries.Paths) []string {
	var names []string
	for name := range paths {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
