package capacity_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/placement"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	. "github.com/jobferry/jobferry/pkg/placement/internal/capacity/capacitytest"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
)

// simulation places random Jobs into random workers, and packs them there by itself: by plain
// numbers, with nothing of the Ledgers or of package placement.
type simulation struct {
	workers []*simWorker
	placed  []*simJob
	made    int
}

type simWorker struct {
	name   string
	ledger *capacity.Ledger
	nodes  []simNode
}

type simNode struct {
	name           string
	cpu, gpu, pods int
	ssd            bool
}

// simJob is a Job with what one Pod of it takes, and where its Pods run.
type simJob struct {
	*JobBuilder
	worker   *simWorker
	want     int
	cpu, gpu int
	ssd      bool
	bound    []*corev1.Pod
	on       []int
}

func newSimulation(t *rapid.T) *simulation {
	s := &simulation{}
	for w := range rapid.IntRange(1, 3).Draw(t, "workers") {
		worker := &simWorker{name: fmt.Sprint("w", w), ledger: capacity.New(func(change.Change) {})}
		for n := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			worker.addNode(simNode{
				name: fmt.Sprint("n", n),
				cpu:  rapid.IntRange(1, 6).Draw(t, "cpu"), gpu: rapid.IntRange(0, 2).Draw(t, "gpu"),
				pods: rapid.IntRange(1, 5).Draw(t, "pods"), ssd: rapid.Bool().Draw(t, "ssd"),
			})
		}
		s.workers = append(s.workers, worker)
	}
	return s
}

func (w *simWorker) addNode(n simNode) {
	w.nodes = append(w.nodes, n)
	node := NewNode(n.name).Has("cpu", fmt.Sprint(n.cpu), "nvidia.com/gpu", fmt.Sprint(n.gpu), "pods", fmt.Sprint(n.pods))
	if n.ssd {
		node.Label("disk", "ssd")
	}
	w.ledger.SetNode(node.Obj())
}

// place tries a new Job, and reserves what it wants where it goes.
func (s *simulation) place(t *rapid.T) *simJob {
	s.made++
	j := &simJob{
		JobBuilder: NewJob(fmt.Sprint("j", s.made)),
		want:       rapid.IntRange(1, 4).Draw(t, "Pods"),
		cpu:        rapid.IntRange(0, 3).Draw(t, "cpu"), gpu: rapid.IntRange(0, 1).Draw(t, "gpu"), ssd: rapid.Bool().Draw(t, "ssd"),
	}
	j.Pods(int32(j.want)).Requests("cpu", fmt.Sprint(j.cpu), "nvidia.com/gpu", fmt.Sprint(j.gpu))
	if j.ssd {
		j.NodeSelector("disk", "ssd")
	}
	var clusters []placement.Cluster
	for _, w := range s.workers {
		clusters = append(clusters, placement.Cluster{Name: w.name, Ready: true, Capacity: snapshot(w.ledger.Free(nobody))})
	}
	decision := placement.Place(placement.Request{Job: j.Obj()}, clusters)
	for _, w := range s.workers {
		if w.name == decision.Cluster {
			j.worker = w
			w.ledger.Reserve(j.Key(), shape(j.JobBuilder), int64(j.want))
			s.placed = append(s.placed, j)
			return j
		}
	}
	return nil
}

// needs is how many of the Job's Pods must fit: no more than an empty worker holds.
func (j *simJob) needs() int {
	empty := 0
	for _, n := range slices.Clone(j.worker.nodes) {
		for j.takes(&n) {
			empty++
		}
	}
	return min(j.want, empty)
}

// takes what one Pod needs of a node, if it's there.
func (j *simJob) takes(n *simNode) bool {
	if j.ssd && !n.ssd || n.cpu < j.cpu && j.cpu > 0 || n.gpu < j.gpu || n.pods < 1 {
		return false
	}
	n.cpu, n.gpu, n.pods = n.cpu-j.cpu, n.gpu-j.gpu, n.pods-1
	return true
}

func (s *simulation) finish(t *rapid.T) {
	if len(s.placed) == 0 {
		t.Skip("no Jobs")
	}
	i := rapid.IntRange(0, len(s.placed)-1).Draw(t, "job")
	j := s.placed[i]
	s.placed = slices.Delete(s.placed, i, i+1)
	for k, pod := range j.bound {
		if k%2 == 0 {
			j.worker.ledger.SetPod(In(pod, corev1.PodSucceeded))
		}
		j.worker.ledger.DeletePod(pod.UID)
	}
	j.worker.ledger.Release(j.Key())
}

// TestJobsPlacedAMomentAgoFit: with no Pod bound yet, all that placed Jobs need fits at once. The
// checker tries every way to pack it.
func TestJobsPlacedAMomentAgoFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) { s.place(t) }, "finish": s.finish,
			"": func(t *rapid.T) {
				for _, w := range s.workers {
					if !packs(slices.Clone(w.nodes), s.needed(w), 0) {
						t.Fatalf("%s: %+v don't hold %v", w.name, w.nodes, s.needed(w))
					}
				}
			},
		})
	})
}

// needed has a worker's Jobs once per Pod that must fit.
func (s *simulation) needed(w *simWorker) []*simJob {
	var pods []*simJob
	for _, j := range s.placed {
		if j.worker == w {
			pods = append(pods, slices.Repeat([]*simJob{j}, j.needs())...)
		}
	}
	return pods
}

// packs tries all nodes for the first Pod, and what is left for the others. Pods of one Job are
// alike: the next one doesn't go to a node before its sibling's.
func packs(nodes []simNode, pods []*simJob, from int) bool {
	if len(pods) == 0 {
		return true
	}
	for i := from; i < len(nodes); i++ {
		before := nodes[i]
		if !pods[0].takes(&nodes[i]) {
			continue
		}
		next := 0
		if len(pods) > 1 && pods[1] == pods[0] {
			next = i
		}
		if packs(nodes, pods[1:], next) {
			return true
		}
		nodes[i] = before
	}
	return false
}

// TestPodsThatAreBoundAtOnceFit: a scheduler that takes any node that fits finds one for every Pod
// that a Job needs, and what doesn't fit isn't placed.
func TestPodsThatAreBoundAtOnceFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) {
				if j := s.place(t); j != nil {
					s.schedule(t, j)
				}
			},
			"finish": s.finish,
		})
	})
}

func (s *simulation) schedule(t *rapid.T, j *simJob) {
	rest := slices.Clone(j.worker.nodes)
	for _, other := range s.placed {
		for _, i := range other.on {
			if other.worker == j.worker && !other.takes(&rest[i]) {
				t.Fatalf("%s runs where it doesn't fit", other.Obj().Name)
			}
		}
	}
	for k := range j.want {
		fitting := j.fitting(rest)
		if len(fitting) == 0 {
			if k < j.needs() {
				t.Fatalf("%s: only %d of %d Pods fit on %+v", j.Obj().Name, k, j.needs(), rest)
			}
			return
		}
		i := rapid.SampledFrom(fitting).Draw(t, "node")
		j.takes(&rest[i])
		j.on = append(j.on, i)
		pod := Bind(j.Pod(fmt.Sprint(j.Obj().Name, "-", k)), rest[i].name)
		j.bound = append(j.bound, pod)
		j.worker.ledger.SetPod(pod)
	}
}

func (j *simJob) fitting(nodes []simNode) []int {
	var fitting []int
	for i := range nodes {
		if n := nodes[i]; j.takes(&n) {
			fitting = append(fitting, i)
		}
	}
	return fitting
}
