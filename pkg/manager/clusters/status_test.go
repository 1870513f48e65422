package clusters

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestRounded(t *testing.T) {
	for in, want := range map[string]string{
		"cpu=12.5": "12500m", "cpu=12": "12", "cpu=100m": "100m",
		"memory=48Gi": "48Gi", "memory=51539607551": "51539607551", "memory=1048577Ki": "1Gi", "memory=5Ki": "5Ki",
		"nvidia.com/gpu=8": "8", "pods=110": "110",
	} {
		name, value, _ := strings.Cut(in, "=")
		got := rounded(corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(value)})
		if quantity := got[corev1.ResourceName(name)]; quantity.String() != want {
			t.Errorf("%s: %s, want %s", in, quantity.String(), want)
		}
	}
}

func TestInheritedLabels(t *testing.T) {
	got := inheritedLabels(map[string]string{
		"region": "eu", "topology.kubernetes.io/zone": "a", v1alpha1.LabelWorkerCluster: "true",
		"app.kubernetes.io/managed-by": "Helm", "argocd.argoproj.io/instance": "x",
	})
	if want := map[string]string{"region": "eu", "topology.kubernetes.io/zone": "a"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestCompareStatus(t *testing.T) {
	cpu := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
	}
	known := v1alpha1.WorkerClusterStatus{Nodes: 2, Free: cpu("4"), KubernetesVersion: "v1.36.3", ClusterUID: "uid", Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"}, {Type: v1alpha1.ConditionLost, Status: metav1.ConditionFalse},
		{Type: v1alpha1.ConditionExclusive, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionSchedulable, Status: metav1.ConditionTrue},
	}}
	for name, row := range map[string]struct {
		change     func(*v1alpha1.WorkerClusterStatus)
		want, back statusUrgency
	}{
		"nothing":              {func(*v1alpha1.WorkerClusterStatus) {}, statusSame, statusSame},
		"the last contact":     {func(s *v1alpha1.WorkerClusterStatus) { s.LastContactTime = &metav1.Time{} }, statusSame, statusSame},
		"the same, as written": {func(s *v1alpha1.WorkerClusterStatus) { s.Free = cpu("4000m") }, statusSame, statusSame},
		"other numbers":        {func(s *v1alpha1.WorkerClusterStatus) { s.Nodes, s.Free = 1, cpu("0") }, statusLater, statusLater},
		"more Jobs":            {func(s *v1alpha1.WorkerClusterStatus) { s.Jobs++ }, statusLater, statusLater},
		"out of nodes":         {func(s *v1alpha1.WorkerClusterStatus) { s.Stockouts = []v1alpha1.Stockout{{Shape: "a"}} }, statusLater, statusLater},
		"capacity not known":   {func(s *v1alpha1.WorkerClusterStatus) { s.Nodes, s.Free = 0, nil }, statusLater, statusUrgent},
		"another version":      {func(s *v1alpha1.WorkerClusterStatus) { s.KubernetesVersion = "v1.36.4" }, statusLater, statusLater},
		"another cluster":      {func(s *v1alpha1.WorkerClusterStatus) { s.ClusterUID = "other" }, statusUrgent, statusUrgent},
		"another spec":         {func(s *v1alpha1.WorkerClusterStatus) { s.ObservedGeneration++ }, statusUrgent, statusUrgent},
		"not Ready":            {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions[0].Status = metav1.ConditionFalse }, statusUrgent, statusUrgent},
		"another reason":       {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions[0].Reason = "other" }, statusUrgent, statusUrgent},
		"another message":      {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions[0].Message = "other" }, statusLater, statusLater},
		"lost":                 {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions[1].Status = metav1.ConditionTrue }, statusUrgent, statusUrgent},
		"held elsewhere":       {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions[2].Status = metav1.ConditionFalse }, statusUrgent, statusUrgent},
		"partly checked":       {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions[3].Reason = v1alpha1.ReasonPartlyChecked }, statusLater, statusLater},
		"not schedulable":      {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions[3].Status = metav1.ConditionFalse }, statusLater, statusLater},
		"cordoned":             {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions[3].Reason = v1alpha1.ReasonCordoned }, statusUrgent, statusUrgent},
		"a condition less":     {func(s *v1alpha1.WorkerClusterStatus) { s.Conditions = s.Conditions[:3] }, statusLater, statusUrgent},
	} {
		t.Run(name, func(t *testing.T) {
			other := *known.DeepCopy()
			row.change(&other)
			if got := compareStatus(known, other); got != row.want {
				t.Errorf("%d, want %d", got, row.want)
			}
			if got := compareStatus(other, known); got != row.back {
				t.Errorf("the other way round: %d, want %d", got, row.back)
			}
		})
	}
}

// TestStockoutsAreInTheStatus, as they're known now.
func TestStockoutsAreInTheStatus(t *testing.T) {
	s := gathered{cluster: &v1alpha1.WorkerCluster{}, worker: &workerState{}, stockouts: []v1alpha1.Stockout{{Shape: "a", Failures: 1}}}
	s.cluster.Status.Stockouts = []v1alpha1.Stockout{{Shape: "b"}}
	if got := nextStatus(s).Stockouts; len(got) != 1 || got[0].Shape != "a" {
		t.Errorf("%+v", got)
	}
}

// A worker's clock that is off is told, and that it isn't any more. Small changes of the difference
// are no news.
func TestTheClockOfAWorker(t *testing.T) {
	s := gathered{cluster: &v1alpha1.WorkerCluster{}, worker: &workerState{}}
	s.worker.State = Ready
	for _, row := range []struct {
		measured time.Duration
		ahead    time.Duration
		reason   string
	}{
		{4 * time.Second, 0, ""},
		{300400 * time.Millisecond, 300 * time.Second, v1alpha1.ReasonClockBehind},
		{301900 * time.Millisecond, 300 * time.Second, v1alpha1.ReasonClockBehind},
		{303 * time.Second, 303 * time.Second, v1alpha1.ReasonClockBehind},
		{-90 * time.Minute, -90 * time.Minute, v1alpha1.ReasonClockAhead},
		{time.Second, 0, v1alpha1.ReasonClockAgrees},
	} {
		s.worker.ClockAhead = clockAhead(s.worker.ClockAhead, row.measured)
		s.cluster.Status = nextStatus(s)
		reason := ""
		if c := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionClockAgrees); c != nil {
			reason = c.Reason
		}
		if s.worker.ClockAhead != row.ahead || reason != row.reason {
			t.Errorf("%s: %s and %q, want %s and %q", row.measured, s.worker.ClockAhead, reason, row.ahead, row.reason)
		}
	}
}

// A worker that is drained has those Jobs left, too, that are placed elsewhere by now, and are
// still being stopped there.
func TestJobsLeftInADrainedWorker(t *testing.T) {
	for name, row := range map[string]struct {
		drain               bool
		unfinished, running int
		want                int
	}{
		"not drained":            {false, 1, 3, 1},
		"one is being stopped":   {true, 0, 1, 1},
		"one has no mirror yet":  {true, 2, 1, 2},
		"all have left":          {true, 0, 0, 0},
		"none can go, all there": {true, 3, 3, 3},
	} {
		s := gathered{cluster: &v1alpha1.WorkerCluster{}, unfinished: row.unfinished, worker: &workerState{running: row.running}}
		s.cluster.Spec.Drain = row.drain
		if got := s.left(); got != row.want {
			t.Errorf("%s: %d Jobs are left, want %d", name, got, row.want)
		}
	}
}
