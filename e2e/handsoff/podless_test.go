package handsoff_test

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/policy"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
)

// A Job's first Pods have run; then its worker lets no more be created, by a quota, or as its
// ServiceAccount is gone. That's told, and the Job goes on elsewhere with its progress.
func TestPodsThatCantBeCreatedAnyMore(t *testing.T) {
	for name, obstacle := range map[string][]string{
		"a quota":           {"create", "quota", "none", "--hard=pods=0"},
		"no ServiceAccount": {"delete", "serviceaccount", "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			f := ferrytest.For(t)
			f.RunManager(func(o *manager.Options) { o.Timing.StuckNotice, o.Timing.StuckTimeout = time.Second, 5*time.Second })
			f.Register("w1", "w2")
			for _, w := range []string{"w1", "w2"} {
				f.NamespaceIn(w)
				f.Kubectl(f.Cluster(w), "", "create", "serviceaccount", "mine", "-n", f.NS)
			}
			f.Submit("job", ferrytest.WithSelector("name in (w1,w2)"), preferring("w1"), rigtest.Indexed(10), rigtest.RunFor(time.Second), func(j *batchv1.Job) {
				j.Spec.Parallelism = ptr.To[int32](1)
				j.Spec.Template.Spec.ServiceAccountName = "mine"
			})
			f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded > 0 && ferrytest.ClusterOf(j) == "w1" })
			f.Kubectl(f.Cluster("w1"), "", append(obstacle, "-n", f.NS)...)
			f.HubJobUntil("job", func(j *batchv1.Job) bool { return ferrytest.ClusterOf(j) == "w2" })
			f.HubJobUntil("job", rigtest.Complete)
			f.EventUntil("job", v1alpha1.EventPodsWaiting, "can't be created")
		})
	}
}

// A worker's policy removes the label by which a mirror finds its Pods. The Job controller would
// make Pods for ever; the Job runs elsewhere.
func TestAPolicyRemovesTheLabelOfPods(t *testing.T) {
	f := ferrytest.For(t)
	f.RunManager()
	f.Register("w1", "w2")
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	w1 := f.Cluster("w1")
	hasPolicy(t, f, w1, policy.Policy{Name: "no-label", OfPods: true}.Strips("labels "+v1alpha1.LabelMirrorID), ofAPod(w1))
	isPassedOver(t, f, "removes the label jobferry.dev/mirror-id from Pods")
	pods := f.Pods(w1)
	if len(pods) > 20 {
		t.Errorf("%d Pods were made in w1", len(pods))
	}
	for _, pod := range pods {
		f.EndPod("w1", pod.Name)
	}
}

// ofAPod says whether Pods that are created in a worker lose the label of mirrors.
func ofAPod(worker *rig.Cluster) func(context.Context) (bool, error) {
	probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: "probe", Labels: map[string]string{v1alpha1.LabelMirrorID: "probe"},
	}}
	probe.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	return func(ctx context.Context) (bool, error) {
		answer, err := worker.Client().CoreV1().Pods(probe.Namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && answer.Labels[v1alpha1.LabelMirrorID] == "", err
	}
}
