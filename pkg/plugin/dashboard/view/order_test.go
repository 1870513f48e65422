package view

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/jobview"
)

func TestOrder(t *testing.T) {
	failed := func(j *batchv1.Job) {
		j.Status.Failed, j.Status.Active = 3, 0
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", LastTransitionTime: before(50 * time.Second),
		})
	}
	half := func(j *batchv1.Job) { j.Status.Succeeded, j.Status.Failed = 5, 1 }
	inEast := func(j *batchv1.Job) {
		hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "east"})
		j.Spec.Completions, j.Status.Succeeded, j.Status.Active = ptr.To[int32](100), 6, 4
		j.CreationTimestamp, j.Status.StartTime = before(300*time.Second), ptr.To(before(200*time.Second))
	}
	jobs := []*batchv1.Job{job("a", half), job("b", failed, inNamespace("team-b")), job("c", unplaced), job("d", inEast)}
	for order, want := range map[string]string{
		"":           "c a d b",
		"unknown":    "c a d b",
		"-unknown":   "c a d b",
		"name":       "a b c d",
		"-name":      "d c b a",
		"namespace":  "c a d b",
		"-namespace": "b c a d",
		"state":      "c a d b",
		"-state":     "b a d c",
		"worker":     "d a b c", // those without come last, in both directions
		"-worker":    "a b d c",
		"succeeded":  "c b d a",
		"-succeeded": "a d c b",
		"-active":    "d a c b",
		"-failed":    "b a c d",
		"duration":   "b a d c",
		"-duration":  "d a b c",
		"age":        "c a b d",
		"-age":       "d c a b",
		"why":        "b c a d",
		"-why":       "b c a d",
	} {
		list := ListJobs(jobs, Filter{}, ParseOrder(order), 1, alone, now)
		var names []string
		for _, row := range list.Rows {
			names = append(names, row.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %s, want %s", order, got, want)
		}
		if parsed := ParseOrder(order); parsed != (Order{}) && parsed.String() != order {
			t.Errorf("%q is %q", order, parsed.String())
		}
	}
}

// A click on a column sorts by it, a second one the other way round, and a third not any more.
func TestColumns(t *testing.T) {
	for order, want := range map[string][2]string{"": {"", "age"}, "name": {"", "age"}, "age": {"ascending", "-age"}, "-age": {"descending", ""}} {
		for _, c := range ParseOrder(order).columnsFor() {
			if c.Key == "age" && (c.Sorted != want[0] || c.Next != want[1]) {
				t.Errorf("%q: %+v", order, c)
			}
		}
	}
}

func TestSummary(t *testing.T) {
	for why, want := range map[string]string{
		"": "",
		"0/2 clusters available: 2 never fits: Insufficient cpu. (east: never fits: Insufficient cpu; west: never fits: Insufficient cpu)": "0/2 clusters available: 2 never fits: Insufficient cpu.",
		"0/1 clusters available: 1 Insufficient cpu.":        "0/1 clusters available: 1 Insufficient cpu.",
		"BackoffLimitExceeded: it has failed (too often: 3)": "BackoffLimitExceeded: it has failed (too often: 3)",
	} {
		if got := summary(why); got != want {
			t.Errorf("%q: %q, want %q", why, got, want)
		}
	}
}

// What was seen last of a Job whose worker is out of touch is marked. What a row repeats of the one
// above isn't shown again.
func TestRowsOfJobs(t *testing.T) {
	east := func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Cluster: "east"}) }
	both := func(j *batchv1.Job) {
		hubstate.Set(j, hubstate.Changes{hubstate.Shards: "east=5;west=5", hubstate.ShardsState: `{"shards":{"east":{"parallelism":1},"west":{"parallelism":1}}}`})
	}
	noRoom := func(j *batchv1.Job) {
		unplaced(j)
		hubstate.Set(j, hubstate.Changes{hubstate.Waits: string(hubstate.NoRoom)})
	}
	jobs := []*batchv1.Job{job("a"), job("b", east), job("c", both), job("d", east, complete), job("e", noRoom), job("f", noRoom), job("g", unplaced)}
	around := func(*batchv1.Job) jobview.Around {
		return jobview.Around{Workers: func(worker string) jobview.Seen { return jobview.Seen{OutOfTouch: worker == "east"} }}
	}
	var stale, repeated []string
	for _, row := range ListJobs(jobs, Filter{}, ParseOrder("name"), 1, around, now).Rows {
		if row.Stale {
			stale = append(stale, row.Name)
		}
		if row.WhyAsAbove {
			repeated = append(repeated, row.Name)
		}
	}
	if got := strings.Join(stale, " "); got != "b c" {
		t.Errorf("%s are marked, want b c", got)
	}
	if got := strings.Join(repeated, " "); got != "f" {
		t.Errorf("%s repeat the reason of the row above, want f", got)
	}
}
