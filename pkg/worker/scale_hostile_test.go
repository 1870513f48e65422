package worker

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/worker/plan"
)

// withLargePods gives a Job many Pods of a template of half a megabyte, each of which takes ten
// times as much in memory.
func withLargePods(j *batchv1.Job) {
	j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](60), ptr.To[int32](60)
	j.Spec.Template.Spec.HostAliases = make([]corev1.HostAlias, 100_000)
	for i := range j.Spec.Template.Spec.HostAliases {
		j.Spec.Template.Spec.HostAliases[i].IP = "::"
	}
}

// Many Pods of a large template are there one at a time, and little is held of those that were
// created.
func TestPodsOfALargeTemplateTakeLittle(t *testing.T) {
	c := newCluster(t, Options{})
	var under, most, sent atomic.Int32
	c.cache(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
		n := under.Add(1)
		defer under.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		for range 100 {
			runtime.Gosched() // let others come in
		}
		obj.SetUID(types.UID(fmt.Sprint(sent.Add(1))))
		return nil
	}})
	job := aJob(withLargePods)
	s := &jobSync{reconciler: c.jobs, job: job, known: c.jobs.memory.of(job), until: noon.Add(syncAtMost)}
	before := costtest.Heap()
	p := plan.Compute(plan.Snapshot{Job: job, Now: noon}, s.options.Options)
	planned := costtest.Heap() - before
	created, err := s.createPods(t.Context(), p.Create, p.CreateReason)
	if err != nil || created != 60 || sent.Load() != 60 {
		t.Fatalf("%d Pods were created, %d sent, error %v", created, sent.Load(), err)
	}
	if held := costtest.Heap() - before; planned > 1<<20 || held > 1<<20 {
		t.Errorf("the plan takes %d KiB, and it and the Pods that were created take %d KiB", planned>>10, held>>10)
	}
	if n := most.Load(); n != 1 {
		t.Errorf("%d Pods at a time", n)
	}
	runtime.KeepAlive(p)
	runtime.KeepAlive(s)
}

// Pods of usual size are sent as many at a time as ever, and no size stops a Job.
func TestPodsAtATime(t *testing.T) {
	image := func(bytes int) *batchv1.Job {
		return aJob(func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Image = strings.Repeat("x", bytes) })
	}
	for _, row := range []struct{ bytes, typed, recent int }{{0, 100, 100}, {3500, 100, 14}, {32 << 10, 12, 1}, {1 << 20, 1, 1}} {
		typed, recent := DefaultOptions().podsAtATime(image(row.bytes), false), DefaultOptions().podsAtATime(image(row.bytes), true)
		if typed != row.typed || recent != row.recent {
			t.Errorf("%d bytes: %d Pods, %d with recent fields, want %d and %d", row.bytes, typed, recent, row.typed, row.recent)
		}
	}
}

// A large template isn't read as maps, of which it would become hundreds of megabytes.
func TestALargeTemplateWithRecentFields(t *testing.T) {
	job := recorded(aJob(withLargePods), `"spec.template.spec.future":"1"`)
	c := newCluster(t, Options{}, job)
	s := c.useNewerServer(job.Generation)
	if _, err := c.sync(); err == nil || !strings.Contains(err.Error(), "may have 30000") {
		t.Errorf("error %v", err)
	}
	if s.reads > 0 || len(c.pods()) > 0 || c.eventCount("FailedCreate") != 1 {
		t.Errorf("%d reads, %d Pods, %d events", s.reads, len(c.pods()), c.eventCount("FailedCreate"))
	}
}
