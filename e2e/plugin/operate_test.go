package plugin

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// A worker is cordoned, drained and let go, while a Job goes on.
func TestOperate(t *testing.T) {
	f := terminalFor(t)
	f.RunManager()
	f.register("w1")
	f.ok("cordon", "w1")
	f.says(f.ok("cordon", "wc/w1").out, "already cordoned")
	f.says(f.ok("clusters").out, "w1     Cordoned")
	f.WorkerUntil("w1", ferrytest.Observed)
	f.Submit("job", oneByOne(4), rigtest.RunFor(4*time.Second))
	f.EventUntil("job", "Pending", "1 cordoned")
	f.says(f.ok("jobs", "job").out, "Pending", "1 cordoned")
	f.says(f.ok("describe", "job").out, "takes no new Jobs (Cordoned)")
	f.ok("uncordon", "w1")
	f.HubJobUntil("job", ferrytest.IsAt("w1"))
	f.HubJobUntil("job", rigtest.Running(1))
	f.says(f.ok("top").out, "job    w1", "0/4")

	f.fails(3, []string{"1 unfinished Job left", "kubectl jobferry jobs -A --worker w1"}, "drain", "w1", "--timeout", "3s")
	f.says(f.ok("clusters", "w1").out, "Draining")
	f.register("w2")
	f.says(f.ok("drain", "w1", "--timeout", "60s").out, "workercluster.jobferry.dev/w1 drained")
	f.HubJobUntil("job", ferrytest.IsAt("w2"))
	f.says(f.ok("clusters", "w1").out, "Drained")
	f.ok("uncordon", "w1")
	f.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool { return !w.Spec.Drain && ferrytest.Ready(w) })

	f.ok("unregister", "w2", "--worker-context", "w2", "--policy", "Move", "--yes")
	f.WorkerGone("w2")
	f.nothingLeft("w2")
	f.HubJobUntil("job", rigtest.Complete)
	f.says(f.ok("jobs").out, "Complete 4/4")
	f.fails(1, []string{"no WorkerCluster w9", "the hub has w1: kubectl jobferry clusters"}, "cordon", "w9")
	f.fails(1, []string{"no Job none"}, "describe", "none")
}

// oneByOne runs that many Pods, one after the other.
func oneByOne(n int32) rigtest.Option {
	return func(j *batchv1.Job) {
		rigtest.Indexed(n)(j)
		j.Spec.Parallelism = ptr.To[int32](1)
	}
}
