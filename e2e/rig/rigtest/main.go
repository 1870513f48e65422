package rigtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jobferry/jobferry/e2e/rig"
)

// shared are the clusters of this test binary.
var shared struct {
	options []rig.Options
	start   sync.Once
	byName  map[string]*rig.Cluster
	err     error
}

// Main runs the tests of a package with the given clusters, stops those that were started, and
// exits.
func Main(m *testing.M, options ...rig.Options) {
	shared.options = options
	code := m.Run()
	for _, c := range shared.byName {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "rig:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// clusters starts the clusters at the first call.
func clusters() (map[string]*rig.Cluster, error) {
	shared.start.Do(func() {
		started, err := rig.StartAll(context.Background(), shared.options...)
		shared.err = err
		shared.byName = map[string]*rig.Cluster{}
		for _, c := range started {
			shared.byName[c.Name()] = c
		}
	})
	return shared.byName, shared.err
}
