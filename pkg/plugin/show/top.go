package show

import (
	"fmt"
	"math"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// TopWorkers is the table of how full the workers are.
func TopWorkers(items []v1alpha1.WorkerCluster) Table {
	t := Table{Header: []string{"WORKER", "STATE", "NODES", "CPU", "MEMORY", "OTHER RESOURCES", "JOBS"}}
	for i := range items {
		w := &items[i]
		t.Rows = append(t.Rows, []Cell{
			Text(w.Name), WorkerState(w), Text(strconv.Itoa(int(w.Status.Nodes))),
			usage(corev1.ResourceCPU, w.Status.Requested, w.Status.Allocatable),
			usage(corev1.ResourceMemory, w.Status.Requested, w.Status.Allocatable),
			Text(otherResources(w)), Text(strconv.Itoa(int(w.Status.Jobs))),
		})
	}
	return t
}

// TopJobs is the table of how unfinished Jobs get on.
func TopJobs(jobs []batchv1.Job, now time.Time, namespaces bool) Table {
	t := Table{Header: []string{"JOB", "WORKER", "STATE", "ACTIVE", "READY", "SUCCEEDED", "FAILED", "RATE", "ETA"}}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	for i := range jobs {
		job := &jobs[i]
		if mirror.Finished(job) {
			continue
		}
		p := progressOf(job, now)
		row := []Cell{
			Text(job.Name), Text(orNone(Worker(job))), JobState(job), Text(strconv.Itoa(int(job.Status.Active))),
			Text(strconv.Itoa(int(ptr.Deref(job.Status.Ready, 0)))), Text(succeeded(job)), Text(strconv.Itoa(int(job.Status.Failed))),
			Text(p.rate()), Text(p.eta()),
		}
		if namespaces {
			row = append([]Cell{Text(job.Namespace)}, row...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// progress is how fast Pods of a Job succeed, on average since it started.
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

// maxETA is where a guess stops to be of use.
const maxETA = 1000 * 24 * time.Hour

func (p progress) eta() string {
	if p.perSecond == 0 || !p.known {
		return none
	}
	seconds := float64(p.left) / p.perSecond
	if seconds > maxETA.Seconds() {
		return none
	}
	return duration.HumanDuration(time.Duration(math.Round(seconds)) * time.Second)
}
