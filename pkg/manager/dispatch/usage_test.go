package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/manager/usage"
)

// The account of a finished Job is looked at again until the ends of its Pods are known.
func TestCompleteAccount(t *testing.T) {
	end := time.Unix(1_000_000, 0)
	seen := func(count, running int64, seconds time.Duration) usage.Observation {
		return usage.Observation{Worker: "west", UID: "m", Current: true, InTouch: true,
			Times: usage.Times{Count: count, Running: running, Since: end.Add(-time.Minute), Ended: seconds * time.Second}}
	}
	for name, row := range map[string]struct {
		seen   usage.Observation
		later  time.Duration
		after  time.Duration
		writes bool
	}{
		"all is known":                     {seen: seen(3, 0, 30)},
		"a Pod's end isn't seen yet":       {seen: seen(2, 0, 30), after: openAtLeast},
		"nor half a minute later":          {seen: seen(2, 0, 30), later: 30 * time.Second, after: 15 * time.Second},
		"nor ever":                         {seen: seen(2, 0, 30), later: 2 * time.Minute},
		"it's seen":                        {seen: seen(3, 0, 40), writes: true},
		"a Pod still runs":                 {seen: seen(3, 1, 30), after: openAtLeast},
		"and an hour later":                {seen: seen(3, 1, 30), later: time.Hour, after: time.Hour / 8},
		"and two days later":               {seen: seen(3, 1, 30), later: 48 * time.Hour},
		"the worker is out of touch":       {seen: usage.Observation{Worker: "west", UID: "m", Current: true, Awaited: true}, after: openAtLeast},
		"the worker's Pods aren't watched": {seen: usage.Observation{Worker: "west", UID: "m", Current: true}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &batchv1.Job{}
			j.CreationTimestamp = metav1.NewTime(end.Add(-time.Hour))
			j.Status = batchv1.JobStatus{Succeeded: 2, Failed: 1, Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(end)}}}
			at := usage.Moment(end.Unix())
			hubstate.Set(j, hubstate.Changes{hubstate.Usage: usage.Account{{Worker: "west", UID: "m", Seconds: 30, At: at, Ended: at}}.String()})
			s := &Snapshot{Now: end.Add(row.later), Job: j, Accounted: usage.Read(j), LastStatusWrite: end, Used: Used{Observations: []usage.Observation{row.seen}}}
			var plan Plan
			plan.completeAccount(s)
			if plan.After != row.after || (len(plan.Actions) > 0) != row.writes {
				t.Errorf("after %v, %d writes", plan.After, len(plan.Actions))
			}
		})
	}
}

// What Pods that run on have used is written now and then, lest it end with the manager.
func TestTheAccountOfARunningJobIsRefreshed(t *testing.T) {
	created := time.Unix(1_000_000, 0)
	for name, row := range map[string]struct {
		written, now time.Duration
		status       time.Duration // when a status was written last
		running      int64
		outOfTouch   bool
		after        time.Duration
		writes       bool
	}{
		"it was written a minute ago":     {written: time.Minute, now: 2 * time.Minute, running: 1, after: 6*time.Hour - time.Minute},
		"it was written six hours ago":    {written: time.Minute, now: 361 * time.Minute, running: 1, writes: true},
		"the Job has been there for long": {written: 80 * time.Hour, now: 82 * time.Hour, running: 1, after: 8 * time.Hour},
		"and for longer":                  {written: 80 * time.Hour, now: 90 * time.Hour, running: 1, writes: true},
		"it says that it's older":         {written: time.Minute, status: 361 * time.Minute, now: 361 * time.Minute, running: 1, after: 6 * time.Hour},
		"nothing runs":                    {written: time.Minute, now: 361 * time.Minute},
		"nothing is known":                {written: time.Minute, now: 361 * time.Minute, running: 1, outOfTouch: true},
	} {
		t.Run(name, func(t *testing.T) {
			j := &batchv1.Job{}
			j.CreationTimestamp = metav1.NewTime(created)
			at := usage.Moment(created.Add(row.written).Unix())
			hubstate.Set(j, hubstate.Changes{hubstate.Usage: usage.Account{{Worker: "west", UID: "m", Pods: row.running, Since: at, At: at}}.String()})
			o := usage.Observation{Worker: "west", UID: "m", Current: true, InTouch: !row.outOfTouch,
				Times: usage.Times{Running: row.running, Since: created.Add(row.written)}}
			s := &Snapshot{Now: created.Add(row.now), LastStatusWrite: created.Add(row.status), Job: j, Accounted: usage.Read(j), Used: Used{Observations: []usage.Observation{o}}}
			var plan Plan
			plan.completeAccount(s)
			if plan.After != row.after || (len(plan.Actions) > 0) != row.writes {
				t.Errorf("after %v, %d writes", plan.After, len(plan.Actions))
			}
		})
	}
}

// What is learnt of Pods that a Job has left is written also while the Job waits for room.
func TestTheAccountOfAJobThatWaits(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{
		"for any worker":     hubJob(),
		"for a part of it":   hubJob(placedOn(""), func(j *batchv1.Job) { hubstate.Set(j, hubstate.Changes{hubstate.Shards: "b=0"}) }),
		"to be queued again": hubJob(suspendedJob),
	} {
		t.Run(name, func(t *testing.T) {
			at := usage.Moment(noon.Add(-time.Hour).Unix())
			hubstate.Set(job, hubstate.Changes{hubstate.Usage: usage.Account{{Worker: "a", UID: "m", Seconds: 10, At: at, Left: true}}.String()})
			s := look(job)
			if hubstate.Get(job, hubstate.Shards) != "" {
				s.Divided = &Divided{}
			}
			s.Used.Observations = []usage.Observation{{Worker: "a", UID: "m", Elsewhere: true, InTouch: true, Times: usage.Times{Count: 4, Ended: 24 * time.Second}}}
			if plan := Decide(s); len(plan.Actions) != 1 || !isStatusWrite(plan.Actions[0]) || !plan.Again {
				t.Errorf("%s: %d actions, again %v", plan.Situation, len(plan.Actions), plan.Again)
			}
		})
	}
}
