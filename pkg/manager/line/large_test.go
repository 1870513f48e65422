package line

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/placementtest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

// manyContainers is a Job that takes a while to be read.
func manyContainers() *batchv1.Job {
	job := mirrortest.New("large").Completions(1).Parallelism(1).Obj()
	one := corev1.ResourceList{"cpu": resource.MustParse("1m"), "memory": resource.MustParse("1"), "ephemeral-storage": resource.MustParse("1")}
	for i := range 1000 {
		job.Spec.Template.Spec.InitContainers = append(job.Spec.Template.Spec.InitContainers,
			corev1.Container{Name: fmt.Sprint("c-", i), Resources: corev1.ResourceRequirements{Requests: one, Limits: one}})
	}
	return job
}

type reserver struct{ in []string }

func (r *reserver) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: "large"}
}
func (r *reserver) ReservedIn() []string        { return r.in }
func (r *reserver) SetReservedIn(more []string) { r.in = more }

// A Job in many workers is read once for all of them, before the line's lock is held.
func TestALargeJobIsReadOnceForAllWorkers(t *testing.T) {
	h, job := newHall(), manyContainers()
	allocations := func(workers int) float64 {
		all := make([]dispatch.Reservation, workers)
		for i := range all {
			all[i] = dispatch.Reservation{Worker: "a", Job: job}
		}
		return testing.AllocsPerRun(3, func() { h.Reserve(&reserver{}, all, false) })
	}
	if one, many := allocations(1), allocations(30); one < 1000 || many > 1.5*one {
		t.Errorf("%v allocations for one worker, %v for 30", one, many)
	}
}

// What was taken while a Job was judged without the lock is compared with what was read of the Job.
func TestALargeJobIsNotReadForEachCandidate(t *testing.T) {
	h := newHall()
	w := h.newEntry(Question{Request: placement.Request{Job: manyContainers()}})
	quotas := h.quotasFor(w)
	candidate := &placement.Candidate{Cluster: "a", Needed: 1}
	left := maxNeedWork
	if n := testing.AllocsPerRun(3, func() { h.isTooLittle(w, candidate, quotas, &left) }); n > 200 {
		t.Errorf("%v allocations for one candidate", n)
	}
}

// A tenant's Jobs find no nodes in a worker, one after another. Whenever that ends for one, the
// Jobs that wait for room there aren't judged again.
func TestJobsThatWaitForRoomArentJudgedWhenAStockoutEnds(t *testing.T) {
	h := newHall()
	h.asks(t, "runs", 8)
	if answer := h.asks(t, "waits", 1); answer.Cluster != "" {
		t.Fatalf("it's placed on %q", answer.Cluster)
	}
	w := h.waiters[types.NamespacedName{Namespace: "team", Name: "waits"}]
	before := needIn(w, "a")
	h.stockouts.ended("a", "")
	if need := needIn(w, "a"); before.Pods == 0 || need != before {
		t.Errorf("it needs %+v there, and before %+v", need, before)
	}
}

// Pods that want one of a hundred nodes wait as others do; of those that name very many, nothing is
// kept.
func TestPodsOfAHundredNodesAreJudgedInWalks(t *testing.T) {
	h := newHall()
	for nodes, large := range map[int]bool{1: false, 100: false, 500: true} {
		names := make([]string, nodes)
		for i := range names {
			names[i] = fmt.Sprintf("node-of-pool-%09d", i)
		}
		job := mirrortest.New("job").Obj()
		job.Spec.Template.Spec.Affinity = placementtest.NodeAffinity(placementtest.NodeTerm(corev1.LabelHostname, corev1.NodeSelectorOpIn, names...))
		if w := h.newEntry(Question{Request: placement.Request{Job: job}}); w.large != large || w.isJudgedInWalks() == large {
			t.Errorf("%d nodes: large: %v, judged in walks: %v", nodes, w.large, w.isJudgedInWalks())
		}
	}
}

// What a Job wants of workers and of nodes may take many times its text. Of very many Jobs that
// wait, little of that is kept.
func TestWhatIsKeptOfAJobThatWaits(t *testing.T) {
	h := newHall()
	h.asks(t, "all", 8)
	const jobs = 200
	repeated := func(count int, of func(i int) string) string {
		texts := make([]string, count)
		for i := range texts {
			texts[i] = of(i)
		}
		return strings.Join(texts, ",")
	}
	everywhere := repeated(250, func(int) string { return "!x" })
	for name, change := range map[string]func(*placement.Request){
		"selector": func(r *placement.Request) { r.Selector, _ = selectors.Parse(everywhere) },
		"preference": func(r *placement.Request) {
			r.Preference, _ = preference.Parse(map[string]string{v1alpha1.AnnotationClusterPreference: everywhere})
		},
		"values of node affinity": func(r *placement.Request) {
			values := make([]string, 400)
			for i := range values {
				values[i] = fmt.Sprintf("%s-%d-%d", strings.Repeat("v", 50), r.Job.CreationTimestamp.Unix(), i)
			}
			r.Job.Spec.Template.Spec.Affinity = placementtest.NodeAffinity(placementtest.NodeTerm(corev1.LabelHostname, corev1.NodeSelectorOpNotIn, values...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := costtest.Heap()
			for i := range jobs {
				job := mirrortest.New(fmt.Sprint(name, i)).Obj()
				job.CreationTimestamp = metav1.Unix(int64(i), 0)
				job.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
				request := placement.Request{Job: job}
				change(&request)
				h.Ask(t.Context(), Question{Request: request})
			}
			if each := (costtest.Heap() - before) / jobs; each > 8<<10 {
				t.Errorf("%d bytes are kept of each", each)
			}
		})
	}
	if len(h.waiters) != 3*jobs {
		t.Errorf("%d wait: this shows nothing", len(h.waiters))
	}
}
