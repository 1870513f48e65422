package dispatch_test

import (
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/manager/usage/podtimes"
)

// A Job's account is what its Pods in the worker say, and the metrics count it once.
func TestUsage(t *testing.T) {
	f := ferrytest.For(t)
	m := f.RunManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	f.SetWorker("w1", `{"cost":{"cpu":"3.6"}}`)
	defer f.SetWorker("w1", `{"cost":null}`)
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.Indexed(4), requesting("cpu", "500m"), rigtest.RunFor(3*time.Second))
	f.HubJobUntil("job", rigtest.Complete)
	seconds, count := podSeconds(f, "w1", "job")
	if count != 4 || seconds < 8 {
		t.Fatalf("%d Pods, %v seconds", count, seconds)
	}
	f.HubJobUntil("job", hasUsed(corev1.ResourcePods, seconds))
	f.HubJobUntil("job", hasUsed(corev1.ResourceCPU, seconds/2))
	of := []string{"namespace", f.NS, "worker", "w1"}
	for name, want := range map[string]float64{"cpu": seconds / 2, "pods": seconds} {
		if got := m.Metric("jobferry_usage_resource_seconds_total", append(of, "resource", name)...); !near(got, want) {
			t.Errorf("%s: the metric says %v, want %v", name, got, want)
		}
	}
	if got, want := m.Metric("jobferry_usage_cost_total", of...), seconds/2/1000; !near(got, want) {
		t.Errorf("the cost is %v, want %v", got, want)
	}
}

// The account outlives the manager, and Pods that are gone.
func TestUsageSurvivesTheManager(t *testing.T) {
	f := ferrytest.For(t)
	manager := f.StartManager()
	f.Register("w1")
	f.LeaveWorker("w1")
	submitted := time.Now()
	f.Submit("job", ferrytest.OnWorker("w1"), rigtest.Parallel(2), rigtest.RunFor(8*time.Second))
	f.HubJobUntil("job", rigtest.Running(2))
	f.Patch("job", `{"spec":{"suspend":true}}`)
	before := f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Active == 0 && settled(j) > 0 })
	if most := 2 * (time.Since(submitted).Seconds() + 1); settled(before) > most {
		t.Errorf("%v seconds, of at most %v", settled(before), most)
	}
	manager.Kill()
	f.StartManager()
	f.Patch("job", `{"spec":{"suspend":false}}`)
	f.HubJobUntil("job", rigtest.Complete)
	seconds, _ := podSeconds(f, "w1", "job")
	f.HubJobUntil("job", hasUsed(corev1.ResourcePods, settled(before)+seconds))
}

// settled are the seconds that the account has if nothing more is learnt of its Pods.
func settled(j *batchv1.Job) (seconds float64) {
	for _, m := range usage.Read(j).Closed() {
		seconds += float64(m.Seconds)
	}
	return seconds
}

func near(a, b float64) bool { return math.Abs(a-b) <= math.Abs(b)/1000 }

// hasUsed reports whether a Job's account has as much of a resource, within a thousandth.
func hasUsed(resource corev1.ResourceName, want float64) func(*batchv1.Job) bool {
	return func(j *batchv1.Job) bool {
		var got float64
		for _, u := range usage.Read(j).Settled() {
			if u.Resource == resource {
				got += u.Total
			}
		}
		return near(got, want)
	}
}

// podSeconds adds up for how long the Pods of a Job ran that are in a worker.
func podSeconds(f *ferrytest.Ferry, worker, job string) (seconds float64, count int) {
	pods, err := f.Cluster(worker).Client().CoreV1().Pods(f.NS).List(f.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	if err != nil {
		panic(err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		seconds += podtimes.End(p).Sub(podtimes.Start(p)).Seconds()
	}
	return seconds, len(pods.Items)
}
