package line

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// A tenant who makes up workers and namespaces has no more of the manager's memory than others, and
// what someone reads isn't changed by what is learned or forgotten later.
func TestRuntimesAreBounded(t *testing.T) {
	r := NewRuntimes()
	completed := func(namespace string) *batchv1.Job {
		job := &batchv1.Job{}
		job.Namespace = namespace
		job.Status.StartTime = ptr.To(metav1.NewTime(time.Unix(0, 0)))
		job.Status.CompletionTime = ptr.To(metav1.NewTime(time.Unix(60, 0)))
		return job
	}
	for range 100 {
		r.Learn(completed("team"), []string{"w1"})
	}
	read := r.Usual("team")
	if read["w1"].Longest != time.Minute {
		t.Fatalf("%v", read)
	}
	for n := range 2 * maxRuntimeWorkers {
		r.Learn(completed("team"), []string{fmt.Sprint("made-up-", n)})
	}
	if n := len(r.namespaces["team"].workers); n != maxRuntimeWorkers {
		t.Errorf("%d workers are remembered", n)
	}
	for range 100 {
		r.Learn(completed("team"), []string{"w2"})
	}
	r.forget("w2")
	if now := r.Usual("team"); now["w2"].Longest != 0 || read["w1"].Longest != time.Minute || len(read) != 1 {
		t.Errorf("%v, read before: %v", now, read)
	}
	for n := range 2 * maxRuntimeNamespaces {
		r.Learn(completed(fmt.Sprint("n", n)), []string{"w1"})
	}
	if n := len(r.namespaces); n != maxRuntimeNamespaces {
		t.Errorf("%d namespaces are remembered", n)
	}
}

// Namespaces with very many workers make room for those of few, whose runtimes stay known.
func TestRuntimesOfAllAreBounded(t *testing.T) {
	r := NewRuntimes()
	learn := func(namespace, worker string) {
		job := &batchv1.Job{}
		job.Namespace = namespace
		job.Status.StartTime = ptr.To(metav1.NewTime(time.Unix(0, 0)))
		job.Status.CompletionTime = ptr.To(metav1.NewTime(time.Unix(60, 0)))
		for range 8 {
			r.Learn(job, []string{worker})
		}
	}
	learn("few", "w")
	for n := range 2 * maxRuntimes / maxRuntimeWorkers {
		for w := range maxRuntimeWorkers {
			learn(fmt.Sprint("many", n), fmt.Sprint("w", w))
		}
	}
	all := 0
	for name, in := range r.namespaces {
		if all += len(in.workers); len(in.workers) != len(in.usual) {
			t.Errorf("%s: of %d workers %d are known", name, len(in.workers), len(in.usual))
		}
	}
	if all != maxRuntimes || r.Usual("few")["w"].Longest != time.Minute {
		t.Errorf("%d are remembered, and of the namespace with few %v", all, r.Usual("few"))
	}
}
