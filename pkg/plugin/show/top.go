package show

import (
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// TopWorkers is the table of the use of the workers.
func TopWorkers(items []v1alpha1.WorkerCluster) Table {
	t := Table{Header: []string{"WORKER", "STATE", "NODES", "CPU", "MEMORY", "OTHER RESOURCES", "JOBS"}}
	for i := range items {
		w := &items[i]
		t.Rows = append(t.Rows, row(w.Name, WorkerState(w), w.Status.Nodes, usage(w, corev1.ResourceCPU),
			usage(w, corev1.ResourceMemory), otherResources(w), w.Status.Jobs))
	}
	return t
}

// TopReport is what top shows, for programs.
type TopReport struct {
	// Workers of the hub; absent for users who may not list them.
	Workers []TopWorker `json:"workers,omitempty"`
	Jobs    []TopJob    `json:"jobs"`
}

// TopWorker is the use of a worker.
type TopWorker struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Nodes int32  `json:"nodes"`
	Jobs  int32  `json:"jobs"`
	// Requested by Pods, of what is allocatable.
	Requested   corev1.ResourceList `json:"requested,omitempty"`
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// TopJob is the progress of an unfinished Job.
type TopJob struct {
	Namespace   string        `json:"namespace"`
	Name        string        `json:"name"`
	Workers     []string      `json:"workers"`
	State       jobview.State `json:"state"`
	Active      int32         `json:"active"`
	Ready       int32         `json:"ready"`
	Succeeded   int32         `json:"succeeded"`
	Failed      int32         `json:"failed"`
	Completions *int32        `json:"completions,omitempty"`
	// PerSecond is how many Pods have succeeded per second. ETASeconds is the time that the rest
	// takes at that rate; absent: that isn't known.
	PerSecond  float64  `json:"perSecond"`
	ETASeconds *float64 `json:"etaSeconds,omitempty"`
}

// TopWorkerOf is the use of a worker.
func TopWorkerOf(w *v1alpha1.WorkerCluster) TopWorker {
	return TopWorker{w.Name, WorkerState(w).Text, w.Status.Nodes, w.Status.Jobs, w.Status.Requested, w.Status.Allocatable}
}

// TopJobOf is the progress of a Job.
func TopJobOf(job *batchv1.Job, around func(*batchv1.Job) jobview.Around, now time.Time) TopJob {
	p, seen := progressOf(job, now), jobview.Of(job, around(job))
	is := TopJob{
		Namespace: job.Namespace, Name: job.Name, Workers: append([]string{}, seen.Status.Workers...), State: seen.Status.State,
		Active: job.Status.Active, Ready: ptr.Deref(job.Status.Ready, 0), Succeeded: job.Status.Succeeded, Failed: job.Status.Failed,
		Completions: seen.Status.Completions, PerSecond: p.perSecond,
	}
	if left, known := p.timeLeft(); known {
		is.ETASeconds = ptr.To(math.Round(left.Seconds()))
	}
	return is
}

// TopJobs is the table of the progress of unfinished Jobs.
func TopJobs(jobs []batchv1.Job, around func(*batchv1.Job) jobview.Around, now time.Time, namespaces bool) Table {
	t := Table{Header: []string{"JOB", "WORKER", "STATE", "ACTIVE", "READY", "SUCCEEDED", "FAILED", "RATE", "ETA"}}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	for i := range jobs {
		job := &jobs[i]
		if mirror.Finished(job) {
			continue
		}
		p, seen := progressOf(job, now), jobview.Of(job, around(job))
		cells := row(job.Name, seen.Worker(), JobState(seen.Status.State), job.Status.Active, ptr.Deref(job.Status.Ready, 0),
			seen.Succeeded(), job.Status.Failed, p.rate(), p.eta())
		if namespaces {
			cells = append(row(job.Namespace), cells...)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// progress is the average rate of Pods that succeeded since the Job started.
type progress struct {
	perSecond float64
	left      int32
	known     bool // left is
}

func progressOf(job *batchv1.Job, now time.Time) progress {
	p := progress{}
	if job.Status.StartTime != nil {
		if elapsed := now.Sub(job.Status.StartTime.Time).Seconds(); elapsed > 0 {
			p.perSecond = float64(job.Status.Succeeded) / elapsed
		}
	}
	if job.Spec.Completions != nil {
		p.left, p.known = max(*job.Spec.Completions-job.Status.Succeeded, 0), true
	}
	return p
}

func (p progress) rate() string {
	if p.perSecond == 0 {
		return none
	}
	const minute, hour = 60, 3600
	switch {
	case p.perSecond >= 1:
		return fmt.Sprintf("%.1f/s", p.perSecond)
	case p.perSecond*minute >= 1:
		return fmt.Sprintf("%.1f/min", p.perSecond*minute)
	default:
		return fmt.Sprintf("%.1f/h", p.perSecond*hour)
	}
}

// maxETA is the longest useful estimate.
const maxETA = 1000 * 24 * time.Hour

func (p progress) eta() string {
	left, known := p.timeLeft()
	if !known {
		return none
	}
	return duration.HumanDuration(left)
}

// timeLeft is how long the remaining Pods take at the rate, in whole seconds.
func (p progress) timeLeft() (left time.Duration, known bool) {
	if p.perSecond == 0 || !p.known {
		return 0, false
	}
	seconds := float64(p.left) / p.perSecond
	return time.Duration(math.Round(seconds)) * time.Second, seconds <= maxETA.Seconds()
}
