package reflect_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

var (
	releases = flag.String("releases", defaultReleases(),
		"the Kubernetes releases whose API servers stand for the hub and the worker, oldest first")
	// programs are their API servers.
	programs []*program
)

// defaultReleases are the oldest and the current one, or the one that the environment asks for.
func defaultReleases() string {
	if release := binaries.Hub(""); release != "" {
		return string(release)
	}
	return fmt.Sprintf("%s,%s", binaries.Oldest, binaries.Current)
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	for _, release := range strings.Split(*releases, ",") {
		p, err := start(binaries.Release(release))
		if err != nil {
			fmt.Fprintf(os.Stderr, "API server of Kubernetes %s: %v\n", release, err)
			return 1
		}
		defer p.stop()
		programs = append(programs, p)
	}
	return m.Run()
}

// String names the program in failures.
func (p *program) String() string { return fmt.Sprintf("1.%d", p.minor) }

// program is a running e2e/reflect/apiserver.
type program struct {
	*binaries.Program
	minor int // of its Kubernetes, 1.minor
}

// start builds the program of a release, if its source has changed, and runs it.
func start(release binaries.Release) (*program, error) {
	minor, err := strconv.Atoi(strings.TrimPrefix(string(release), "1."))
	if err != nil {
		return nil, errors.New("want a release such as 1.36")
	}
	own, err := binaries.StartOwn(context.Background(), release, "reflect/apiserver", gates(minor)...)
	return &program{own, minor}, err
}

// gates are the feature gates that are switched on: those of fields of a Job which mirrors keep.
func gates(minor int) []string {
	if minor < schedulingMinor {
		return nil
	}
	return []string{"GenericWorkload", "WorkloadWithJob"}
}

func (p *program) stop() {
	if err := p.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "API server of Kubernetes 1.%d: %v\n", p.minor, err)
	}
}

type request struct {
	New    *batchv1.Job
	Old    *batchv1.Job `json:",omitempty"`
	Status bool
}

// ask sends a request. The error is the API server's refusal.
func (p *program) ask(r request) (*batchv1.Job, error) {
	var answer struct {
		Job   *batchv1.Job
		Error string
	}
	if err := p.Ask(r, &answer); err != nil {
		panic(fmt.Sprintf("the API server of Kubernetes 1.%d doesn't answer: %v", p.minor, err))
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Job, nil
}
