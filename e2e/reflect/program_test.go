package reflect_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

var (
	releases = flag.String("releases", "1.34,1.36",
		"the Kubernetes releases whose API servers stand for the hub and the worker, oldest first")
	// programs are their API servers.
	programs []*program
)

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
	minor int // of its Kubernetes, 1.minor

	process *exec.Cmd
	input   io.Closer
	lock    sync.Mutex // is held from a request to its answer
	send    *json.Encoder
	receive *json.Decoder
}

// start builds the program of a release, if its source has changed, and runs it.
func start(release binaries.Release) (*program, error) {
	minor, err := strconv.Atoi(strings.TrimPrefix(string(release), "1."))
	if err != nil {
		return nil, errors.New("want a release such as 1.36")
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(cache, "reflect", string(release), "apiserver")
	if err := binaries.BuildOwn(context.Background(), release, checkout.Path("e2e", "reflect", "apiserver"), target); err != nil {
		return nil, err
	}
	p := &program{minor: minor, process: exec.Command(target, gates(minor)...)}
	p.process.Stderr = os.Stderr
	in, err := p.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.input, p.send, p.receive = in, json.NewEncoder(in), json.NewDecoder(out)
	return p, p.process.Start()
}

// gates are the feature gates that are switched on: those of fields of a Job which mirrors keep.
func gates(minor int) []string {
	if minor < schedulingMinor {
		return nil
	}
	return []string{"GenericWorkload", "WorkloadWithJob"}
}

// stop ends the program, which exits at the end of its input.
func (p *program) stop() {
	p.input.Close()
	if err := p.process.Wait(); err != nil {
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
	p.lock.Lock()
	defer p.lock.Unlock()
	var answer struct {
		Job   *batchv1.Job
		Error string
	}
	if err := errors.Join(p.send.Encode(r), p.receive.Decode(&answer)); err != nil {
		panic(fmt.Sprintf("the API server of Kubernetes 1.%d doesn't answer: %v", p.minor, err))
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Job, nil
}
