package matrix

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/matrix/table"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// Options choose what is run.
type Options struct {
	// Hubs and Workers are releases of Kubernetes; each hub is run with each worker.
	Hubs, Workers []string
	// Results is the folder that the results are kept in.
	Results string
	// Parallel is how many test packages run at a time, each with clusters of its own. Default 2.
	Parallel int
	// TimeLimit of one test package. Default 15 minutes.
	TimeLimit time.Duration
	// Progress receives a line for what happens.
	Progress func(format string, arguments ...any)
}

// DefaultOptions are those of a full matrix.
func DefaultOptions() Options {
	return Options{
		Hubs:     []string{"1.33", "1.35", "1.37"},
		Workers:  []string{"1.33", "1.34", "1.35", "1.36", "1.37"},
		Parallel: 2, TimeLimit: 15 * time.Minute, Progress: func(string, ...any) {},
	}
}

// Validate reports all that can't be used.
func (o *Options) Validate() error {
	var errs []error
	for _, list := range []struct {
		name     string
		releases []string
	}{{"hub", o.Hubs}, {"worker", o.Workers}} {
		if len(list.releases) == 0 {
			errs = append(errs, fmt.Errorf("%s: name at least one release of %v", list.name, binaries.Releases()))
		}
		for i, release := range list.releases {
			if !slices.Contains(binaries.Releases(), binaries.Release(release)) {
				errs = append(errs, fmt.Errorf("%s: there is no release %q, only %v", list.name, release, binaries.Releases()))
			}
			if slices.Contains(list.releases[:i], release) {
				errs = append(errs, fmt.Errorf("%s: %s is named twice", list.name, release))
			}
		}
	}
	if o.Results == "" {
		errs = append(errs, errors.New("results: name a folder"))
	}
	if o.Parallel < 1 {
		errs = append(errs, fmt.Errorf("parallel: must be at least 1, not %d", o.Parallel))
	}
	return errors.Join(errs...)
}

// ParseReleases splits a list such as "1.33 1.35".
func ParseReleases(s string) []string { return strings.Fields(s) }

// pairs lists each hub with each worker.
func (o *Options) pairs() []table.Pair {
	var pairs []table.Pair
	for _, hub := range o.Hubs {
		for _, worker := range o.Workers {
			pairs = append(pairs, table.Pair{Hub: hub, Worker: worker})
		}
	}
	return pairs
}

// releases are all that are needed.
func (o *Options) releases() []binaries.Release {
	var all []binaries.Release
	for _, release := range slices.Concat(o.Hubs, o.Workers) {
		all = append(all, binaries.Release(release))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
