package rig_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// What the labels make Pods do, seen through the Jobs that the real Job controller runs.
func TestPodsDoAsTheirLabelsSay(t *testing.T) {
	perIndex := int32(0)
	for _, tc := range []struct {
		name              string
		options           []rigtest.Option
		want              func(*batchv1.Job) bool
		succeeded, failed int32
	}{
		{"plain", nil, rigtest.Complete, 1, 0},
		{"parallel", []rigtest.Option{rigtest.Parallel(4)}, rigtest.Complete, 4, 0},
		{"indexed", []rigtest.Option{rigtest.Indexed(4)}, rigtest.Complete, 4, 0},
		{"run for", []rigtest.Option{rigtest.RunFor(300 * time.Millisecond)}, rigtest.Complete, 1, 0},
		{"exit code", []rigtest.Option{rigtest.ExitCode(3), rigtest.BackoffLimit(0)}, rigtest.Failed, 0, 1},
		{"fail first", []rigtest.Option{rigtest.FailFirst(1)}, rigtest.Complete, 1, 1},
		{"fail indexes", []rigtest.Option{
			rigtest.Indexed(4), rigtest.PodLabel(rig.LabelFailIndexes, "1_3"),
			func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = &perIndex },
		}, rigtest.Failed, 2, 2},
		{"restarts in place", []rigtest.Option{rigtest.ExitCode(3), rigtest.BackoffLimit(1), func(j *batchv1.Job) {
			j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		}}, rigtest.Failed, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := rigtest.For(t)
			c := f.Cluster("main")
			ns := f.Namespace(c)
			f.Create(c, rigtest.Job(ns, "job", tc.options...))
			job := f.JobUntil(c, ns, "job", tc.want)
			if job.Status.Succeeded != tc.succeeded || job.Status.Failed != tc.failed {
				t.Errorf("succeeded %d, failed %d; want %d, %d", job.Status.Succeeded, job.Status.Failed, tc.succeeded, tc.failed)
			}
		})
	}
}

func TestContainersEndAsTheLabelsSay(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("main")
	ns := f.Namespace(c)
	f.Create(c, rigtest.Job(ns, "oom", rigtest.BackoffLimit(0), rigtest.ExitCode(137),
		rigtest.PodLabel(rig.LabelReason, "OOMKilled"), rigtest.PodLabel(rig.LabelDisrupted, "true")))
	pod := podUntil(f, c, ns, func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodFailed })
	end := pod.Status.ContainerStatuses[0].State.Terminated
	if end.ExitCode != 137 || end.Reason != "OOMKilled" {
		t.Errorf("ended with code %d and reason %q", end.ExitCode, end.Reason)
	}
	if !hasCondition(pod, corev1.DisruptionTarget) {
		t.Error("no condition DisruptionTarget")
	}
}

func TestPodThatIsNeverReady(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("main")
	ns := f.Namespace(c)
	f.Create(c, rigtest.Job(ns, "job", rigtest.RunForever(), rigtest.PodLabel(rig.LabelNeverReady, "true")))
	pod := podUntil(f, c, ns, func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodRunning })
	if hasCondition(pod, corev1.PodReady) {
		t.Error("the Pod is ready")
	}
}

// A deleted Pod first ends, as its containers need their time, and only then goes away.
func TestDeletedPodTakesItsTimeToStop(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("main")
	ns := f.Namespace(c)
	f.Create(c, rigtest.Job(ns, "job", rigtest.RunForever(), rigtest.PodLabel(rig.LabelStopAfter, "2s")))
	f.JobUntil(c, ns, "job", rigtest.Running(1))
	f.Kubectl(c, `{"spec":{"suspend":true}}`, "patch", "job", "job", "-n", ns, "--patch-file=/dev/stdin")
	f.JobUntil(c, ns, "job", func(j *batchv1.Job) bool { return j.Status.Terminating != nil && *j.Status.Terminating == 1 })
	podUntil(f, c, ns, func(p *corev1.Pod) bool { return p == nil })
}

func TestNodesHaveTheShapeAskedFor(t *testing.T) {
	f := rigtest.For(t)
	nodes, err := f.Cluster("main").Client().CoreV1().Nodes().List(f.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 3 {
		t.Fatalf("%d nodes, want 3", len(nodes.Items))
	}
	gpu := nodes.Items[0].Status.Allocatable["example.org/gpu"]
	if cpu := nodes.Items[0].Status.Allocatable.Cpu(); cpu.Value() != 8 || gpu.Value() != 4 {
		t.Errorf("%s has %s CPUs and %s GPUs", nodes.Items[0].Name, cpu, &gpu)
	}
	if last := nodes.Items[2]; last.Name != "spot-0" || last.Labels["pool"] != "spot" {
		t.Errorf("the last node is %s with labels %v", last.Name, last.Labels)
	}
}

// podUntil waits for the only Pod of a namespace; nil stands for none.
func podUntil(f *rigtest.Fixture, c *rig.Cluster, ns string, condition func(*corev1.Pod) bool) *corev1.Pod {
	o := f.Until(rig.Objects(c.Client().CoreV1().RESTClient(), "pods", ns), func(o runtime.Object) bool {
		if o == nil {
			return condition(nil)
		}
		return condition(o.(*corev1.Pod))
	})
	pod, _ := o.(*corev1.Pod)
	return pod
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
