package clusters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

var (
	noon    = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	options = Options{Namespace: "jobferry-system"}.withDefaults()
)

// given is what is gathered of a worker that's registered and ready, with changes.
func given(changes ...func(*gathered)) gathered {
	s := gathered{
		name: "w1", now: noon,
		secret: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "jobferry-system", Name: "w1", Finalizers: []string{v1alpha1.FinalizerWorkerCluster}},
			Data:       map[string][]byte{v1alpha1.KubeconfigKey: []byte("kubeconfig")},
		},
		cluster: &v1alpha1.WorkerCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "w1", Generation: 3},
			Spec:       v1alpha1.WorkerClusterSpec{KubeconfigSecret: "w1", RemovalPolicy: v1alpha1.RemovalWait},
		},
		worker: &workerState{View: View{Health: Health{
			State: Ready, Reason: v1alpha1.ReasonConnected, ClusterUID: "uid", Version: "v1.36.3",
		}}},
	}
	s.cluster.Status = nextStatus(s)
	for _, change := range changes {
		change(&s)
	}
	return s
}

func noSecret(s *gathered)  { s.secret = nil }
func noCluster(s *gathered) { s.cluster = nil }
func noWorker(s *gathered)  { s.worker = nil }
func newSecret(s *gathered) { s.secret.Finalizers = nil }
func deleted(s *gathered) {
	s.secret.DeletionTimestamp = &metav1.Time{Time: noon.Add(-time.Second)}
	if s.worker != nil {
		s.worker.Removing = true
	}
}
func withoutOurFinalizer(s *gathered) { s.secret.Finalizers = []string{"example.com/other"} }

func policy(p v1alpha1.RemovalPolicy) func(*gathered) {
	return func(s *gathered) { s.cluster.Spec.RemovalPolicy = p }
}

func jobs(unfinished, mirrors int) func(*gathered) {
	return func(s *gathered) { s.unfinished, s.worker.mirrors = unfinished, mirrors }
}

// fenceIs is what this process has found out of the fence, fenceWas what the last one had.
func fenceIs(reason string) func(*gathered) {
	return func(s *gathered) {
		s.worker.reports = []metav1.Condition{{Type: v1alpha1.ConditionFenced, Reason: reason}}
	}
}

func fenceWas(reason string) func(*gathered) {
	return func(s *gathered) {
		s.cluster.Status.Conditions = append(s.cluster.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionFenced, Reason: reason})
	}
}

func in(state State, reason string) func(*gathered) {
	return func(s *gathered) {
		s.worker.State, s.worker.Reason, s.worker.Since = state, reason, noon.Add(-time.Minute)
	}
}

func TestDecide(t *testing.T) {
	const orphan, wait, move = v1alpha1.RemovalOrphan, v1alpha1.RemovalWait, v1alpha1.RemovalMove
	unreachable := in(Disconnected, v1alpha1.ReasonUnreachable)
	for _, c := range []struct {
		name string
		s    gathered
		want string
	}{
		{"nothing there", given(noSecret, noCluster), "disconnect"},
		{"at rest", given(), "connect"},
		{"a new Secret", given(newSecret, noCluster, noWorker), "protect create disconnect"},
		{"a WorkerCluster is deleted", given(noCluster), "create disconnect"},
		{"the first view isn't there yet", given(noWorker), "connect"},
		{"another WorkerCluster has the Secret", given(noCluster, func(s *gathered) { s.servedBy = "x" }), "disconnect"},
		{"the Secret is gone", given(noSecret), "connect"},
		{"the Secret lost its label", given(noSecret, func(s *gathered) { s.unlabelled = &corev1.Secret{} }), "connect unprotect"},
		{"lost", given(unreachable), "connect status event"},
		{"restored", given(in(Refused, v1alpha1.ReasonRestored)), "renew connect status event"},
		{"restored again at once", given(in(Refused, v1alpha1.ReasonRestored), func(s *gathered) { s.lastRenewal = noon.Add(-time.Second) }),
			"connect status event requeue"},

		{"deleted: nothing left", given(deleted), "disconnect delete unprotect event"},
		{"deleted: the fence's Lease is there", given(deleted, fenceWas(v1alpha1.ReasonFenceKept), fenceIs(v1alpha1.ReasonFenceKept)), "connect status"},
		{"deleted: the Lease was there before the manager's start", given(deleted, fenceWas(v1alpha1.ReasonFenceKept)), "connect status"},
		{"deleted: the Lease is gone", given(deleted, fenceWas(v1alpha1.ReasonFenceKept), fenceIs(v1alpha1.ReasonNoFence)),
			"disconnect delete unprotect event"},
		{"deleted: a Job unfinished", given(deleted, jobs(1, 1)), "connect status"},
		{"deleted: a finished Job's mirror", given(deleted, jobs(0, 1)), "connect status"},
		{"deleted: placed, not mirrored yet", given(deleted, jobs(1, 0)), "connect status"},
		{"deleted: unreachable, nobody knows", given(deleted, unreachable), "connect status event"},
		{"deleted, Move: unreachable", given(deleted, unreachable, policy(move)), "connect status event"},
		{"deleted, before the worker was configured", given(deleted, func(s *gathered) { s.worker.Removing = false }), "connect"},
		{"deleted: never reached", given(deleted, noCluster, in(Refused, v1alpha1.ReasonKubeconfigInvalid), func(s *gathered) { s.worker.ClusterUID = "" }),
			"disconnect unprotect event"},
		{"deleted, finalizer removed", given(deleted, withoutOurFinalizer), "connect status"},
		{"deleted, finalizer removed, no WorkerCluster", given(deleted, withoutOurFinalizer, noCluster), "disconnect"},

		{"Orphan: unreachable", given(deleted, unreachable, policy(orphan), jobs(5, 5)), "disconnect delete unprotect event"},
		{"Orphan: mirrors are being orphaned", given(deleted, policy(orphan), jobs(5, 5)), "connect status requeue"},
		{"Orphan: mirrors were orphaned", given(deleted, policy(orphan), jobs(5, 0)), "disconnect delete unprotect event"},
		{"Orphan: that took too long", given(deleted, policy(orphan), jobs(5, 5), func(s *gathered) { s.now = noon.Add(time.Hour) }),
			"disconnect delete unprotect event"},
		{"Orphan: not known yet", given(deleted, policy(orphan), in(Connecting, v1alpha1.ReasonConnecting)), "connect status requeue"},
		{"Wait: the same", given(deleted, policy(wait), in(Connecting, v1alpha1.ReasonConnecting)), "connect status"},

		{"more Jobs, soon after a write", given(jobs(3, 0), func(s *gathered) { s.lastWrite = noon.Add(-time.Second) }), "connect requeue"},
		{"more Jobs", given(jobs(3, 0), func(s *gathered) { s.lastWrite = noon.Add(-time.Minute) }), "connect status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(decide(c.s, options)); got != c.want {
				t.Errorf("got:  %s\nwant: %s", got, c.want)
			}
		})
	}
}

// describe puts a plan in a line.
func describe(p plan) string {
	line := ""
	for _, part := range []struct {
		on   bool
		word string
	}{
		{p.addFinalizer, "protect"}, {p.create != nil, "create"}, {p.renew, "renew"}, {p.connect != nil, "connect"}, {p.connect == nil, "disconnect"},
		{p.status != nil, "status"}, {p.deleteCluster, "delete"}, {p.removeFinalizer != nil, "unprotect"}, {len(p.events) > 0, "event"}, {p.requeueAfter > 0, "requeue"},
	} {
		if part.on {
			line += " " + part.word
		}
	}
	return line[1:]
}

func TestDecideIsDoneOnceItsStatusIsWritten(t *testing.T) {
	for _, change := range []func(*gathered){
		in(Disconnected, v1alpha1.ReasonUnreachable), in(Refused, v1alpha1.ReasonIsHub), in(Connecting, v1alpha1.ReasonConnecting),
		func(s *gathered) { s.cluster.Spec.Cordoned, s.worker.Spec.Cordoned = true, true },
		func(s *gathered) { s.worker.Capacity.Missing = "no permission" },
		jobs(4, 4),
	} {
		s := given(change)
		if p := decide(s, options); p.status != nil {
			s.cluster.Status = *p.status
			s.now = s.now.Add(time.Minute)
			s.worker.LastContact = s.now
		}
		if again := decide(s, options); again.status != nil || len(again.events) > 0 {
			t.Errorf("written twice: %+v", again.status)
		}
	}
}

// A worker changes what isn't checked there, and what its messages say, as often as it likes. Its
// loss is written at once all the same.
func TestAWorkersMessagesAreWrittenAtAPace(t *testing.T) {
	s, writes := given(), 0
	decided := func() {
		if p := decide(s, options); p.status != nil {
			writes++
			s.cluster.Status, s.lastWrite = *p.status, s.now
		} else if p.requeueAfter > options.StatusInterval || p.requeueAfter <= 0 {
			t.Fatalf("it's looked at again after %v", p.requeueAfter)
		}
	}
	const events = 1000
	for i := range events {
		s.worker.Capacity, s.worker.Message = CapacityState{Known: true, Unchecked: fmt.Sprint("Pods", i)}, fmt.Sprint(i)
		decided()
		s.now = s.now.Add(10 * time.Millisecond)
	}
	if most := int(events*10*time.Millisecond/options.StatusInterval) + 1; writes > most || writes == 0 {
		t.Errorf("%d writes, want %d at most", writes, most)
	}
	writes = 0
	in(Disconnected, v1alpha1.ReasonUnreachable)(&s)
	if decided(); writes != 1 || meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("the loss waits")
	}
}

func TestReadyKeepsTheLossClock(t *testing.T) {
	s := given(in(Disconnected, v1alpha1.ReasonUnreachable))
	s.cluster.Status = *decide(s, options).status
	s.worker = nil
	if p := decide(s, options); !p.connect.before.since.Equal(noon.Add(-time.Minute)) || p.connect.before.clusterUID != "uid" {
		t.Errorf("after a restart: %+v", p.connect.before)
	}
	if p := decide(given(noWorker), options); !p.connect.before.since.IsZero() {
		t.Errorf("a ready worker after a restart: %+v", p.connect.before)
	}
}

func TestARestartIsNoLoss(t *testing.T) {
	s := given(in(Connecting, v1alpha1.ReasonConnecting))
	if !meta.IsStatusConditionTrue(nextStatus(s).Conditions, v1alpha1.ConditionReady) {
		t.Error("Ready fell before there was an observation")
	}
	s.cluster.Status = v1alpha1.WorkerClusterStatus{}
	if ready := meta.FindStatusCondition(nextStatus(s).Conditions, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonConnecting {
		t.Errorf("a new worker: %+v", ready)
	}
}

// takes has a worker take Jobs of some namespaces only.
func takes(r metav1.LabelSelectorRequirement) func(*gathered) {
	return func(s *gathered) {
		s.worker.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{r}}
	}
}

// A selector that can't be read selects no namespace, and one that's empty selects all.
func TestNamespaces(t *testing.T) {
	ours := labels.Set{"team": "a"}
	for name, row := range map[string]struct {
		selector *metav1.LabelSelector
		matches  bool
		invalid  bool
	}{
		"empty":   {&metav1.LabelSelector{}, true, false},
		"ours":    {&metav1.LabelSelector{MatchLabels: ours}, true, false},
		"others":  {&metav1.LabelSelector{MatchLabels: labels.Set{"team": "b"}}, false, false},
		"invalid": {&metav1.LabelSelector{MatchLabels: labels.Set{"a b": "c"}}, false, true},
	} {
		selector, err := Settings{Spec: v1alpha1.WorkerClusterSpec{NamespaceSelector: row.selector}}.Namespaces()
		if selector.Matches(ours) != row.matches || (err != nil) != row.invalid {
			t.Errorf("%s: %v, error %v", name, selector, err)
		}
	}
	if selector, err := (Settings{}).Namespaces(); selector != nil || err != nil {
		t.Errorf("without a selector: %v, %v", selector, err)
	}
}

func TestSchedulable(t *testing.T) {
	for _, c := range []struct {
		change func(*gathered)
		status metav1.ConditionStatus
		reason string
	}{
		{func(*gathered) {}, metav1.ConditionTrue, v1alpha1.ReasonSchedulable},
		{func(s *gathered) { s.worker.Capacity.Missing = "pods" }, metav1.ConditionTrue, v1alpha1.ReasonCapacityUnknown},
		{func(s *gathered) { s.worker.Capacity = CapacityState{Known: true, Unchecked: "quotas"} }, metav1.ConditionTrue, v1alpha1.ReasonPartlyChecked},
		{func(s *gathered) { s.worker.Spec.Cordoned = true }, metav1.ConditionFalse, v1alpha1.ReasonCordoned},
		{takes(metav1.LabelSelectorRequirement{Key: "team", Operator: "In", Values: []string{"a"}}), metav1.ConditionTrue, v1alpha1.ReasonSchedulable},
		{takes(metav1.LabelSelectorRequirement{Key: "a b", Operator: "Exists"}), metav1.ConditionFalse, v1alpha1.ReasonNamespaceSelectorInvalid},
		{in(Disconnected, v1alpha1.ReasonUnreachable), metav1.ConditionFalse, v1alpha1.ReasonNotReady},
		{deleted, metav1.ConditionFalse, v1alpha1.ReasonRemoving},
	} {
		got := meta.FindStatusCondition(nextStatus(given(c.change)).Conditions, v1alpha1.ConditionSchedulable)
		if got.Status != c.status || got.Reason != c.reason || got.Message == "" {
			t.Errorf("%+v, want %s %s", got, c.status, c.reason)
		}
	}
}

// Of a Secret that was never there, nobody is told to create it again.
func TestWhatIsSaidOfAMissingSecret(t *testing.T) {
	registering := func(s *gathered) { s.cluster.Status, s.worker = v1alpha1.WorkerClusterStatus{}, nil }
	for name, row := range map[string]struct {
		s    gathered
		want string
	}{
		"of a new WorkerCluster":         {given(noSecret, registering), "there is no Secret jobferry-system/w1 yet: create it, with"},
		"of a worker that was connected": {given(noSecret), "Secret jobferry-system/w1 is gone: create it again, with"},
	} {
		if got := missingSecret(row.s, options); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
