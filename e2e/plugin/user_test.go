package plugin

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// What somebody who knows kubectl types: a Job that stays on the hub, one that waits while it's
// followed and watched, and one that is moved.
func TestAsAUserTypes(t *testing.T) {
	f := terminalFor(t)
	f.StartManagerWithAPI()
	f.register("w1")
	f.register("w2")

	f.Create(f.Hub, rigtest.Job(f.NS, "plain", func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }))
	why := "only Jobs with spec.managedBy: jobferry.dev/dispatcher are"
	f.says(f.ok("jobs").err, "Not dispatched: plain: in namespace "+f.NS, why, "kubectl label namespace "+f.NS+" jobferry.dev/dispatch=enabled --overwrite")
	f.fails(1, []string{"the Job plain isn't dispatched", why}, "logs", "plain")
	f.fails(1, []string{"there is no Job nope in namespace " + f.NS, "jobs -A"}, "exec", "nope", "--", "true")
	f.fails(1, []string{"there is no WorkerCluster wset", "w1, w2"}, "jobs", "--worker", "wset")

	f.ok("cordon", "w1", "w2")
	for _, worker := range []string{"w1", "w2"} {
		f.WorkerUntil(worker, ferrytest.Observed)
	}
	f.Submit("later", rigtest.RunFor(time.Second))
	f.EventUntil("later", "Pending", "2 cordoned")
	f.fails(1, []string{"isn't placed on a worker yet: kubectl jobferry why later -n " + f.NS}, "logs", "later")
	rows, _ := f.starts("jobs", "-w")
	log, said := f.starts("logs", "later", "-f")
	f.reads(said, `waiting: Job "later" isn't placed on a worker yet: kubectl jobferry why later -n `+f.NS)
	f.ok("uncordon", "w1", "w2")
	f.reads(log, "ended with exit code 0")
	f.reads(rows, "later", "Complete", "1/1")

	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.RunForever())
	f.HubJobUntil("job", rigtest.Running(1))
	f.says(f.ok("move", "job", "--to", "w2", "--dry-run=server").out, "jobferry.dev/cluster-selector=name=w2 (server dry run)")
	f.says(f.ok("jobs", "--state", "Running", "--sort-by", ".status.startTime").out, "job w1 Running")
	f.says(f.ok("move", "job", "--to", "w2").err, "It stays on w1 until there is room on w2", `Its selector was "name=w1"`)
	f.HubJobUntil("job", ferrytest.IsAt("w2"))
	f.MirrorUntil("w2", "job", rigtest.Running(1))
	f.says(f.ok("describe", "job", "-o", "json").out, `"state": "`, `"w2": {`, `"from": "w2"`)
	f.says(f.ok("top", "-o", "yaml").out, "name: w2", "name: job")
	f.Delete("job", metav1.DeletePropagationBackground)
	f.HubJobGone("job")
}

// starts runs the plugin until the test ends.
func (f terminal) starts(args ...string) (out, errOut *bufio.Reader) {
	f.t.Helper()
	program, err := product.Program("kubectl-jobferry")
	f.check(err)
	ctx, cancel := context.WithCancel(f.Context())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig, "HOME="+f.t.TempDir())
	pipe := func(p io.ReadCloser, err error) *bufio.Reader {
		f.check(err)
		return bufio.NewReader(p)
	}
	out, errOut = pipe(cmd.StdoutPipe()), pipe(cmd.StderrPipe())
	f.check(cmd.Start())
	f.t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	return out, errOut
}

// reads reads lines until one has all of these.
func (f terminal) reads(from *bufio.Reader, wanted ...string) {
	f.t.Helper()
	for {
		line, err := from.ReadString('\n')
		missing := 0
		for _, text := range wanted {
			if !strings.Contains(line, text) {
				missing++
			}
		}
		if missing == 0 {
			return
		}
		if err != nil {
			f.t.Fatalf("no line with %q: %v", wanted, err)
		}
	}
}
