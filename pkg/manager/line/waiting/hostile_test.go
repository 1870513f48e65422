package waiting_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/line/waiting"
	"github.com/jobferry/jobferry/pkg/placement"
)

// plain is a worker with many nodes, each of which has a CPU free, and taints without effect. No
// Job is placed.
type plain struct {
	nodes     []*placement.Node
	placed    map[string]int
	postponed []string
	// ends is how many Jobs run there, with a Pod on each node, and ended counts the Pods that were
	// looked at. gathered counts how often the ends were asked for.
	ends, ended, gathered int
}

func newPlain(nodes int) *plain {
	w := &plain{placed: map[string]int{}}
	for i := range nodes {
		all := placement.Resources{MilliCPU: 8000, Pods: 110}
		w.nodes = append(w.nodes, &placement.Node{
			Object: &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
				Spec:       corev1.NodeSpec{Taints: make([]corev1.Taint, 10)},
			},
			Allocatable: all, Idle: all, Free: placement.Resources{MilliCPU: 1000, Pods: 10},
		})
	}
	return w
}

func (w *plain) Nodes(string) ([]*placement.Node, bool)                   { return w.nodes, true }
func (w *plain) Added(string, *placement.Shape) (added []*placement.Node) { return added }
func (w *plain) HadTurn(*waiting.Job) bool                                { return false }
func (w *plain) Postpone(job *waiting.Job)                                { w.postponed = append(w.postponed, job.Key.Namespace) }

func (w *plain) EndOf(string, *waiting.Job) (end waiting.End, is bool) { return end, false }

func (w *plain) Ends(string) (ends []waiting.End) {
	w.gathered++
	for i := range w.ends {
		at := waiting.Expected{At: time.Unix(int64(i), 0), Basis: waiting.ByDeadline}
		ends = append(ends, waiting.End{Expected: at, Unit: placement.Resources{MilliCPU: 1}, Pods: func(yield func(string, int64) bool) {
			for _, node := range w.nodes {
				if w.ended++; !yield(node.Object.Name, 1) {
					return
				}
			}
		}})
	}
	return ends
}

func (w *plain) Place(job *waiting.Job, _ func(string) int64, _ func(string) bool) waiting.Outcome {
	w.placed[job.Key.Namespace]++
	return waiting.Outcome{}
}

func waiter(namespace string, number int, milliCPU int64) *waiting.Job {
	name := fmt.Sprint(namespace, number)
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)}
	return &waiting.Job{
		Key: types.NamespacedName{Namespace: namespace, Name: name}, UID: types.UID(name), Created: time.Unix(int64(number), 0), Pods: 1,
		Shape: placement.ShapeOf(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}},
		}}),
		Needs: needs(waiting.Need{Lacks: waiting.Room, Pods: 1}, "w"),
	}
}

// A namespace whose Jobs have ever other Shapes has few of them compared with many nodes in a walk.
// The others are looked at in each, and its own in the next ones.
func TestManyShapesOnManyNodes(t *testing.T) {
	const jobs, nodes = 6000, 1000
	var line waiting.Line
	for i := range jobs {
		line.Add(waiter("mallory", i, 2000+int64(i)))
	}
	line.Add(waiter("mallory", jobs, 1000))
	line.Add(waiter("team", jobs+1, 1000))
	changed := placement.Changes{}
	changed.Add("w", placement.Change{Kinds: placement.RoomChange})
	w, walks := newPlain(nodes), 0
	for more := true; more; walks++ {
		w.postponed = nil
		line.Walk(time.Unix(jobs, 0), changed, w)
		if more = len(w.postponed) > 0; more && fmt.Sprint(w.postponed) != "[mallory]" {
			t.Fatalf("postponed: %v", w.postponed)
		}
		if w.placed["team"] != walks+1 || more == (w.placed["mallory"] > 0) {
			t.Fatalf("tried until walk %d: %v, more: %v", walks, w.placed, more)
		}
	}
	if walks < jobs*nodes/1_000_000 || walks > jobs*(nodes+100)/500_000 {
		t.Errorf("%d walks", walks)
	}
	line.Walk(time.Unix(jobs, 0), changed, w)
	if len(w.postponed) == 0 {
		t.Error("the next round doesn't begin with the first Job")
	}
}

// Very many Pods run in a worker in which a Job waits that is never to fit: a walk looks at some of
// them.
func TestManyPodsThatEnd(t *testing.T) {
	var line waiting.Line
	job := waiter("team", 1, 8000)
	job.Needs = needs(waiting.Need{Lacks: waiting.Room, Pods: 2000}, "w")
	job.Pods = 2000
	line.Add(job)
	changed := placement.Changes{}
	changed.Add("w", placement.Change{Kinds: placement.RoomChange})
	w := newPlain(1000)
	w.ends = 3000
	line.Walk(time.Unix(0, 0), changed, w)
	if w.ended < 900_000 || w.ended > 1_100_000 {
		t.Errorf("%d of 3,000,000 Pods were looked at", w.ended)
	}
}

// Very many Jobs run in a worker. Who has their ends gathered first learns from them when its Job
// will fit, and pays for that with looks at its other Jobs.
func TestManyJobsThatEnd(t *testing.T) {
	var line waiting.Line
	first := waiter("team", 0, 1001)
	line.Add(first)
	line.Add(waiter("team", 1, 1001))
	line.Add(waiter("zebra", 2, 1001))
	changed := placement.Changes{}
	changed.Add("w", placement.Change{Kinds: placement.RoomChange})
	w := newPlain(1)
	w.ends = 60_000
	line.Walk(time.Unix(-10, 0), changed, w)
	if r := line.Reservation(first); r == nil || !r.Start.Equal(time.Unix(0, 0)) {
		t.Errorf("the first has the reservation %+v", r)
	}
	if fmt.Sprint(w.postponed) != "[team]" {
		t.Errorf("postponed: %v", w.postponed)
	}
}

// Looks at two workers take more than a namespace has: the same one is cut short each time.
func TestWhichLookIsCutShort(t *testing.T) {
	for range 10 {
		var line waiting.Line
		job := waiter("team", 0, 1600)
		need := waiting.Need{Lacks: waiting.Room, Pods: 1000}
		job.Pods, job.Needs = 1000, needs(need, "w-2", "w-1")
		line.Add(job)
		w := newPlain(1000)
		w.ends = 600
		changed := placement.Changes{}
		changed.Add("w-1", placement.Change{Kinds: placement.RoomChange})
		line.Walk(time.Unix(-10, 0), changed, w)
		if r := line.Reservation(job); w.ended < 900_000 || w.ended > 1_100_000 || r == nil || r.Worker != "w-1" {
			t.Fatalf("after a look at %d Pods it has the reservation %+v", w.ended, r)
		}
	}
}

// walksOf is how many walks it takes until each of a namespace's Jobs was looked at.
func walksOf(line *waiting.Line, nodes int) int {
	changed := placement.Changes{}
	changed.Add("w", placement.Change{Kinds: placement.RoomChange})
	w := newPlain(nodes)
	for walks := 1; ; walks++ {
		w.postponed = nil
		if line.Walk(time.Unix(0, 0), changed, w); len(w.postponed) == 0 {
			return walks
		}
	}
}

// What a Job's Pods say of nodes, and how many resources they want, makes each look at one dearer.
func TestDearShapesCountAsManyLooks(t *testing.T) {
	const jobs, nodes = 400, 1000
	for name, change := range map[string]func(*corev1.PodSpec){
		"values": func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpNotIn, Values: manyValues()},
				}}},
			}}}
		},
		"tolerations": func(s *corev1.PodSpec) { s.Tolerations = make([]corev1.Toleration, 10) },
		"resources": func(s *corev1.PodSpec) {
			for i := range 100 {
				s.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain, dear := &waiting.Line{}, &waiting.Line{}
			for i := range jobs {
				spec := corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(2000+int64(i), resource.DecimalSI)}}}}}
				plain.Add(waiter("mallory", i, 2000+int64(i)))
				job := waiter("mallory", i, 0)
				change(&spec)
				job.Shape = placement.ShapeOf(&corev1.PodTemplateSpec{Spec: spec})
				dear.Add(job)
			}
			if few, many := walksOf(plain, nodes), walksOf(dear, nodes); many < 3*few {
				t.Errorf("%d walks, and %d for plain Jobs", many, few)
			}
		})
	}
}

// Very many Jobs of one Shape take more than one walk, though the nodes are compared with it once.
func TestManyJobsOfOneShape(t *testing.T) {
	line := &waiting.Line{}
	for i := range 50_000 {
		line.Add(waiter("mallory", i, 2000))
	}
	if walks := walksOf(line, 10); walks < 4 || walks > 6 {
		t.Errorf("%d walks", walks)
	}
}

// asks is a worker that is kept free for a Job, and is asked about for each that is tried.
type asks struct{ *plain }

func (w asks) Place(job *waiting.Job, admits func(string) int64, avoid func(string) bool) waiting.Outcome {
	admits("w")
	return w.plain.Place(job, admits, avoid)
}

// reserved has a worker kept free for a Job, and returns how others change it.
func reserved(t *testing.T, line *waiting.Line, job *waiting.Job, nodes int) (w asks, walk func(worker string)) {
	t.Helper()
	line.Add(job)
	w = asks{newPlain(nodes)}
	w.ends = 1
	walk = func(worker string) {
		changed := placement.Changes{}
		changed.Add(worker, placement.Change{Kinds: placement.RoomChange})
		line.Walk(time.Unix(-10, 0), changed, w)
	}
	if walk("w"); len(line.Reservations()) != 1 {
		t.Fatal("no reservation")
	}
	return w, walk
}

// selects is the Shape of Pods that may be on nodes with one of some values, or with none of them.
func selects(milliCPU int64, operator corev1.NodeSelectorOperator, values ...string) *placement.Shape {
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)}
	return placement.ShapeOf(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelOSStable, Operator: operator, Values: values},
			}}},
		}}},
	}})
}

// comes is a Job of a tenant that comes later, whose Pods may be on nodes with one of some values.
func comes(number int, values ...string) *waiting.Job {
	job := waiter("mallory", number, 0)
	job.Shape = selects(2000+int64(number), corev1.NodeSelectorOpIn, values...)
	job.Needs = needs(waiting.Need{Lacks: waiting.Other}, "other")
	return job
}

func manyValues() []string {
	values := make([]string, 450)
	for i := range values {
		values[i] = fmt.Sprint("value-", i)
	}
	return values
}

// A Job of a team has a reservation since an earlier walk, and very many Jobs of a tenant come
// behind it, each of another Shape: whether their Pods may be on the same nodes is looked at for
// some of them in a walk, for as many fewer as each look takes longer.
func TestManyShapesBehindAReservation(t *testing.T) {
	const jobs, nodes, most = 3000, 800, 1_000_000
	for name, values := range map[string][]string{"plain": {"none"}, "dear": manyValues()} {
		t.Run(name, func(t *testing.T) {
			var line waiting.Line
			w, walk := reserved(t, &line, waiter("team", 0, 1001), nodes)
			work := 0
			for i := 1; i <= jobs; i++ {
				job := comes(i, values...)
				line.Add(job)
				work = job.Shape.WorkOn(&corev1.Node{})
			}
			walk("other")
			if n, want := w.placed["mallory"], most/(nodes*work); n == 0 || n > want+1 || len(w.postponed) == 0 {
				t.Errorf("%d of %d Jobs were tried, want %d at most; postponed: %v", n, jobs, want+1, w.postponed)
			}
		})
	}
}

// A Job asks for room behind a reservation. If it takes many comparisons to find out that its Pods
// are on no node that is kept free, they count as if they were.
func TestFewNodesAreComparedForAJobThatAsks(t *testing.T) {
	plain, dear := waiter("team", 0, 1001), waiter("team", 0, 0)
	dear.Shape = selects(1001, corev1.NodeSelectorOpNotIn, manyValues()...)
	for name, row := range map[string]struct {
		holder   *waiting.Job
		values   []string
		admitted bool
	}{
		"plain":             {plain, []string{"none"}, true},
		"dear":              {plain, manyValues(), false},
		"the holder's dear": {dear, []string{"none"}, false},
	} {
		var line waiting.Line
		reserved(t, &line, row.holder, 1500)
		if pods := line.Admits(comes(1, row.values...), "w", time.Unix(0, 0)); (pods == waiting.Unlimited) != row.admitted {
			t.Errorf("%s: %d Pods are admitted", name, pods)
		}
	}
}

// A worker has so many Pods that end that a look at it is cut short: a Job keeps its reservation
// there, and the next walk looks again, though the worker hasn't changed since.
func TestAReservationOfALookThatWasCutShort(t *testing.T) {
	var line waiting.Line
	job := waiter("team", 0, 1001)
	line.Add(job)
	w := newPlain(1000)
	walk := func(changed string) *waiting.Reservation {
		changes := placement.Changes{}
		changes.Add(changed, placement.Change{Kinds: placement.RoomChange})
		line.Walk(time.Unix(-10, 0), changes, w)
		return line.Reservation(job)
	}
	w.ends = 1
	first := walk("w")
	if first == nil || !first.Certain || !first.Start.Equal(time.Unix(0, 0)) {
		t.Fatalf("the Job has the reservation %+v", first)
	}
	for _, node := range w.nodes {
		node.Free.MilliCPU = 0
	}
	w.ends = 3000
	if r := walk("w"); r != first || !r.Start.Equal(time.Unix(0, 0)) {
		t.Fatalf("after a look that was cut short it has %+v", r)
	}
	w.ends = 1
	if r := walk("other"); r == nil || !r.Start.IsZero() {
		t.Errorf("after another look it has %+v", r)
	}
}

// What it takes to look at a Job that waits grows with the workers.
func TestAJobThatWaitsForManyWorkersIsManyLooks(t *testing.T) {
	job := waiter("team", 0, 1)
	job.Needs = waiting.Needs{}
	for i := range 100 {
		job.Needs.Set(fmt.Sprint("w-", i), waiting.Need{Pods: 1})
	}
	asked := 0
	for helped := waiting.Helped(newPlain(1)); helped.MayAsk(job); {
		asked++
	}
	if asked == 0 || asked > 2600 {
		t.Errorf("it's asked for %d such Jobs", asked)
	}
}

// fills is a worker whose only node the Jobs of a team take, one after the other, until some time.
type fills struct {
	*plain
	until time.Time
}

func (w fills) Place(job *waiting.Job, _ func(string) int64, _ func(string) bool) (outcome waiting.Outcome) {
	if free := &w.nodes[0].Free; job.Key.Namespace == "team" && job.Shape.Slots(w.nodes[0].Object, free) > 0 {
		*free = free.Add(job.Shape.Unit(), -1)
		outcome.Worker = "w"
	}
	return outcome
}

func (w fills) EndOf(_ string, job *waiting.Job) (waiting.End, bool) {
	pods := func(yield func(string, int64) bool) { yield(w.nodes[0].Object.Name, 1) }
	return waiting.End{Job: job.Key, Expected: waiting.Expected{At: w.until, Basis: waiting.ByDeadline}, Unit: job.Shape.Unit(), Pods: pods}, true
}

// What ends in a worker is found out once in a walk, however many Jobs are placed there. These end,
// too: what waits behind them has their room then.
func TestEndsAreGatheredOnceInAWalk(t *testing.T) {
	const jobs = 20
	var line waiting.Line
	for i := range jobs {
		never := waiter("mallory", 2*i, 8000)
		never.Pods, never.Needs = 2, needs(waiting.Need{Lacks: waiting.Room, Pods: 2}, "w")
		line.Add(never)
		line.Add(waiter("team", 2*i+1, 8000/jobs))
	}
	last := waiter("team", 2*jobs, 8000)
	line.Add(last)
	w := fills{newPlain(1), time.Unix(1000, 0)}
	w.nodes[0].Free = w.nodes[0].Idle
	changed := placement.Changes{}
	changed.Add("w", placement.Change{Kinds: placement.RoomChange})
	line.Walk(time.Unix(0, 0), changed, w)
	if line.Len() != jobs+1 || w.gathered != 1 {
		t.Errorf("%d Jobs wait; the ends were gathered %d times", line.Len(), w.gathered)
	}
	if r := line.Reservation(last); r == nil || !r.Start.Equal(w.until) {
		t.Errorf("the last has the reservation %+v", r)
	}
}
