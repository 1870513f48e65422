package hubstate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Hour)
)

// types are those of the conditions, in their order.
func types(conditions []batchv1.JobCondition) string {
	var all []string
	for _, c := range conditions {
		all = append(all, string(c.Type))
	}
	return strings.ReplaceAll(strings.Join(all, " "), "jobferry.dev/", "")
}

// Whatever is kept is read again, and nothing else changes.
func TestKeptIsRead(t *testing.T) {
	keys := append([]Key{Cluster, Shards}, inState...)
	rapid.Check(t, func(t *rapid.T) {
		job, want := &batchv1.Job{}, Changes{}
		for range rapid.IntRange(1, 5).Draw(t, "writes") {
			changes := Changes{}
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a=b", "x\ny=z", "\"", "\r", `{"a":"\n"}`}))
				changes[rapid.SampledFrom(keys).Draw(t, "key")] = value.Draw(t, "value")
			}
			if changes[Cluster] != "" && changes[Shards] != "" {
				delete(changes, Shards)
			}
			switch {
			case changes[Cluster] != "":
				delete(want, Shards)
				delete(want, ShardsState)
			case changes[Shards] != "":
				delete(want, Cluster)
			}
			for key, value := range changes {
				want[key] = value
			}
			job.Status.Conditions = changes.Conditions(job, job.Status.Conditions, noon)
			for _, key := range keys {
				if got := Get(job, key); got != want[key] {
					t.Fatalf("%s: read %q, want %q, of %+v", key, got, want[key], job.Status.Conditions)
				}
			}
		}
	})
}

// Clients look at the last condition of a finished Job, or at the first of a Job that runs.
func TestOursStandBehindKubernetes(t *testing.T) {
	condition := func(t batchv1.JobConditionType) batchv1.JobCondition {
		return batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue}
	}
	kept := Changes{Cluster: "west", MovedFrom: "east"}
	for _, row := range []struct {
		had  []batchv1.JobCondition
		want string
	}{
		{nil, "Placed State"},
		{[]batchv1.JobCondition{condition(batchv1.JobSuspended)}, "Suspended Placed State"},
		{[]batchv1.JobCondition{condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)}, "SuccessCriteriaMet Placed State Complete"},
		{[]batchv1.JobCondition{condition(batchv1.JobFailureTarget), condition(batchv1.JobFailed)}, "FailureTarget Placed State Failed"},
	} {
		all := kept.Conditions(&batchv1.Job{}, row.had, noon)
		if got := types(all); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	// The end comes behind what was there.
	running := kept.Conditions(&batchv1.Job{}, nil, noon)
	ended := Changes(nil).Conditions(&batchv1.Job{}, append(running, condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)), later)
	if got := types(ended); got != "SuccessCriteriaMet Placed State Complete" {
		t.Errorf("%q", got)
	}
}

// The transition time of Placed is since when a Job is where it is.
func TestTransitionTimes(t *testing.T) {
	at := func(conditions []batchv1.JobCondition) time.Time {
		return find(conditions, Placed, metav1.Time{}).LastTransitionTime.Time
	}
	all := Changes{Cluster: "west"}.Conditions(&batchv1.Job{}, nil, noon)
	if all = (Changes{Usage: "[]"}).Conditions(&batchv1.Job{}, all, later); at(all) != noon {
		t.Errorf("the account changed it to %s", at(all))
	}
	if all = (Changes{Cluster: "east"}).Conditions(&batchv1.Job{}, all, later); at(all) != later {
		t.Errorf("a move left it at %s", at(all))
	}
	if all = (Changes{Cluster: ""}).Conditions(&batchv1.Job{}, all, noon); find(all, Placed, metav1.Time{}).Status != corev1.ConditionFalse || at(all) != noon {
		t.Errorf("%+v", all)
	}
}

// A Job of nobody's has none, and an unplaced one that keeps nothing stays as it is.
func TestNothingKept(t *testing.T) {
	suspended := []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}}
	for _, had := range [][]batchv1.JobCondition{nil, suspended} {
		if diff := cmp.Diff(had, Changes{Cluster: "", Usage: ""}.Conditions(&batchv1.Job{}, had, later)); diff != "" {
			t.Error(diff)
		}
	}
}

// What somebody else writes there is no placement.
func TestForeignConditions(t *testing.T) {
	for name, c := range map[string]batchv1.JobCondition{
		"not True":       {Type: Placed, Status: corev1.ConditionUnknown, Reason: reasonPlaced, Message: "west"},
		"no reason":      {Type: Placed, Status: corev1.ConditionTrue, Message: "west"},
		"another type":   {Type: "Placed", Status: corev1.ConditionTrue, Reason: reasonPlaced, Message: "west"},
		"another's word": {Type: State, Status: corev1.ConditionTrue, Message: "cluster=west\nshards=a=1"},
	} {
		job := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{c}}}
		if Get(job, Cluster)+Get(job, Shards) != "" {
			t.Errorf("%s: placed", name)
		}
	}
}

// A backup is restored with the status of its objects: what is kept there is of the Job that was.
// The next write leaves it out. Nothing that is written is older than its Job, whatever the clocks.
func TestWhatIsOfAnotherJobCountsForNothing(t *testing.T) {
	old := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}}
	old.Status.Conditions = Changes{Cluster: "west", MovedFrom: "east", Usage: "[]"}.Conditions(old, nil, noon.Add(-time.Minute))
	if Get(old, Cluster) != "west" || Get(old, MovedFrom) != "east" {
		t.Errorf("a clock that is behind: %+v", old.Status.Conditions)
	}
	restored := old.DeepCopy()
	restored.CreationTimestamp = metav1.NewTime(later)
	for _, key := range append([]Key{Cluster, Shards}, inState...) {
		if got := Get(restored, key); got != "" {
			t.Errorf("%s is %q", key, got)
		}
	}
	if got := Of(restored, "west"); len(got) != 1 {
		t.Errorf("a part has %+v", got)
	}
	restored.Status.Conditions = Changes{Cluster: "north"}.Conditions(restored, restored.Status.Conditions, later)
	if Get(restored, Cluster) != "north" || Get(restored, MovedFrom) != "" || types(restored.Status.Conditions) != "Placed" {
		t.Errorf("placed anew: %+v", restored.Status.Conditions)
	}
}

// Why a Job waits may change: it waits since the first reason, and the probe time is of the last.
// Whatever else is written leaves it as it is.
func TestWaits(t *testing.T) {
	job := &batchv1.Job{}
	job.Status.Conditions = Changes{Waits: string(NoRoom)}.Conditions(job, nil, noon)
	job.Status.Conditions = Changes{Waits: string(InLine)}.Conditions(job, job.Status.Conditions, later)
	job.Status.Conditions = Changes{Usage: "[]"}.Conditions(job, job.Status.Conditions, later.Add(time.Hour))
	c := find(job.Status.Conditions, Placed, metav1.Time{})
	if c.LastTransitionTime.Time != noon || WaitShown(job) != later || c.Message != InLine.String() || Get(job, Waits) != string(InLine) {
		t.Errorf("%+v", c)
	}
	job.Status.Conditions = Changes{Cluster: "west"}.Conditions(job, job.Status.Conditions, later)
	if Get(job, Waits) != "" || !WaitShown(job).IsZero() || find(job.Status.Conditions, Placed, metav1.Time{}).LastTransitionTime.Time != later {
		t.Errorf("placed: %+v", job.Status.Conditions)
	}
	job.Status.Conditions = Changes{Cluster: ""}.Conditions(job, job.Status.Conditions, later)
	if Get(job, Waits) != string(NotPlaced) {
		t.Errorf("placed no more: %+v", job.Status.Conditions)
	}
}

// A value is found in a message of very many lines in about the time of a walk over its bytes: that
// is done under a lock.
func TestMessagesOfVeryManyLinesAreCheap(t *testing.T) {
	job := &batchv1.Job{}
	for name, message := range map[string]string{
		"empty lines": strings.Repeat("\n", 1<<20), "like a key": strings.Repeat("\nmoved-at", 1<<17), "nearly a key": strings.Repeat("\nmoved-from", 1<<17),
	} {
		job.Status.Conditions = []batchv1.JobCondition{{Type: State, Message: message + "\nmoved-from=b\nvanished=c"}}
		if got := Get(job, MovedFrom) + Get(job, Vanished); got != "bc" {
			t.Errorf("%s: got %q", name, got)
		}
		var lines int
		walk := shortest(func() {
			for i := range len(message) {
				if message[i] == '\n' {
					lines++
				}
			}
		})
		if read := shortest(func() { Get(job, MovedFrom) }); read > 5*walk {
			t.Errorf("%s: a value is found in %s, and the bytes are walked over in %s", name, read, walk)
		}
	}
}

func shortest(call func()) time.Duration {
	least := time.Hour
	for range 10 {
		start := time.Now()
		call()
		least = min(least, time.Since(start))
	}
	return least
}
