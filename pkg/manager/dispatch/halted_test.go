package dispatch

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement"
)

// counts has the Job show so many Pods that are active, ready and terminating.
func counts(active, ready, terminating int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		noPods(j)
		j.Status.Active, j.Status.Ready, j.Status.Terminating = active, &ready, &terminating
	}
}

// Nobody in a worker says that a Job doesn't go on: nobody counts its Pods' end, or their node is
// gone.
func TestHalted(t *testing.T) {
	is := func(halt Halt, since time.Duration, pods PodsReport) func(*Snapshot) {
		return func(s *Snapshot) {
			pods.Known, pods.EverRan = true, true
			pods.Halt, pods.HaltedSince = halt, noon.Add(-since)
			s.Assigned.Pods = pods
		}
	}
	unwatched := func(s *Snapshot) { is(uncounted, time.Hour, PodsReport{})(s); s.Assigned.Pods.Known = false }
	byWorker := func(s *Snapshot) {
		is(uncounted, time.Hour, PodsReport{})(s)
		s.Assigned.Mirror.Spec.ManagedBy, s.Assigned.JobController = ptr.To("jobferry.dev/worker"), v1alpha1.JobControllerBuiltIn
	}
	counted := func(others time.Duration) func(*Snapshot) {
		return func(s *Snapshot) {
			is(uncounted, time.Minute, PodsReport{})(s)
			if others == 0 {
				s.Assigned.Pods.HaltedSince = noon.Add(-time.Hour)
			}
			s.Assigned.ControllerSeen = noon.Add(-others)
		}
	}
	recheck := DefaultTiming().Recheck
	running, leaving := counts(2, 2, 0), counts(0, 0, 1)
	waiting := counts(2, 0, 0)
	replaced := counts(1, 1, 1)
	grace := func(j *batchv1.Job) {
		leaving(j)
		j.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600)
	}
	type halts struct {
		status  func(*batchv1.Job)
		given   func(*Snapshot)
		after   time.Duration
		reports string
	}
	for name, row := range map[string]halts{
		"they run":                           {running, is("", 0, PodsReport{Report: placement.Report{Bound: 2, Running: 2}}), recheck, ""},
		"ended since now":                    {running, is("", 0, PodsReport{}), 30 * time.Second, ""},
		"ended, but halted before otherwise": {running, is(unready, time.Hour, PodsReport{}), 30 * time.Second, ""},
		"ended, not yet news":                {running, is(uncounted, 20*time.Second, PodsReport{}), 10 * time.Second, ""},
		"ended, told": {running, is(uncounted, 30*time.Second, PodsReport{}), recheck,
			"Deferred: The Job's Pods have ended in worker a, but its Job controller hasn't counted them"},
		"ended, but others are counted":      {running, counted(20 * time.Second), 10 * time.Second, ""},
		"ended long ago, others are counted": {running, counted(0), recheck, "hasn't counted them"},
		"ended, of a controller with a name": {running, byWorker, recheck, "its Job controller (jobferry.dev/worker) hasn't"},
		"ended at last, told":                {leaving, is(uncounted, time.Hour, PodsReport{}), recheck, "hasn't counted them"},
		"one still runs":                     {running, is(uncounted, time.Hour, PodsReport{Report: placement.Report{Bound: 1, Running: 1}}), recheck, ""},
		"Pods aren't watched":                {running, unwatched, recheck, ""},
		"they are to end":                    {leaving, is(lingering, 59*time.Second, PodsReport{Report: placement.Report{Bound: 1}}), time.Second, ""},
		"they don't end, told":               {leaving, is(lingering, time.Minute, PodsReport{Report: placement.Report{Bound: 1, Unready: 1}}), recheck, "PodsWaiting: Worker a: 1 Pods don't end: 1 of them are on nodes that aren't ready"},
		"they have more time":                {grace, is(lingering, 10*time.Minute, PodsReport{Report: placement.Report{Bound: 1}}), 30 * time.Second, ""},
		"another runs in its place":          {replaced, is(lingering, time.Hour, PodsReport{Report: placement.Report{Bound: 2, Running: 2}}), recheck, ""},
		"none is ready, not yet news":        {waiting, is(unready, 20*time.Second, PodsReport{Report: placement.Report{Bound: 2, Running: 2}}), 10 * time.Second, ""},
		"none is ready, told":                {waiting, is(unready, time.Minute, PodsReport{Report: placement.Report{Bound: 2, Running: 1, Unready: 1}}), recheck, "PodsWaiting: Worker a: 2 Pods are there, and none is ready: 1 of them are on nodes"},
		"none runs yet, on its way":          {waiting, is("", 0, PodsReport{Report: placement.Report{Bound: 2}}), recheck, ""},
		"none runs yet, and its node's gone": {waiting, is(unready, time.Minute, PodsReport{Report: placement.Report{Bound: 2, Unready: 2}}), recheck, "none is ready: 2 of them are on nodes that aren't ready"},
	} {
		t.Run(name, func(t *testing.T) {
			lookRow{hub: hubJob(placedOn("a"), row.status), mirror: mirrorOf(hubJob(row.status), row.status), given: row.given, after: row.after, reports: row.reports}.check(t)
		})
	}
}
