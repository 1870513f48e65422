package nodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/e2e/conformance"
	"github.com/jobferry/jobferry/e2e/real"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// prepareHub has the hub label the namespaces that the cases make, before anything is in them, and
// has the workers' nodes take the hostname of the hub's: cases choose a node by it.
func prepareHub(s *real.Story, ctx context.Context) error {
	hostname := corev1.LabelHostname + "=" + real.NodeName(real.Hub)
	if err := s.Do(ctx, "the hub labels the cases' namespaces; the workers' nodes have the hostname of the hub's",
		"kubectl apply -f e2e/conformance/nodes/namespaces.yaml",
		"kubectl --context west label node --all --overwrite "+hostname,
		"kubectl --context edge label node --all --overwrite "+hostname,
	); err != nil {
		return err
	}
	return labelsNamespaces(ctx, s)
}

// labelsNamespaces waits until the API server has taken in the policy.
func labelsNamespaces(ctx context.Context, s *real.Story) error {
	namespaces := s.Cluster(real.Hub).Client().CoreV1().Namespaces()
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tried", Labels: map[string]string{"e2e-run": "tried"}}}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		made, err := namespaces.Create(ctx, wanted, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && made.Labels[v1alpha1.LabelPods] == v1alpha1.PodsEnabled, err
	})
}

// useImages has the Pods of JobSet's cases take the image that their nodes have.
func useImages(s *real.Story, ctx context.Context) error {
	return s.Do(ctx, "the workers' Pods take the image that is there",
		"kubectl --context west apply -f e2e/conformance/nodes/images.yaml", "kubectl --context edge apply -f e2e/conformance/nodes/images.yaml")
}

// onHub runs the cases of a part on the hub's own API server.
func (r *runs) onHub(part conformance.Part) func(s *real.Story, ctx context.Context, worker, controller string) error {
	return func(s *real.Story, ctx context.Context, worker, controller string) error {
		return r.run(ctx, s, part, worker, controller, s.Cluster(real.Hub).KubeconfigBytes())
	}
}

// nowhere waits for Pods that no node can take. Where capacity is counted, a Job that never fits
// stays on the hub, and has no Pods.
const nowhere = "should allow to resume JobSet after updating PodTemplate"

// before is what is done before some cases of a part.
func before(s *real.Story, part conformance.Part, worker string) map[string]func(context.Context) error {
	if part != conformance.JobSet {
		return nil
	}
	return map[string]func(context.Context) error{nowhere: func(ctx context.Context) error {
		return s.Do(ctx, "the capacity of "+worker+" isn't counted any more",
			"kubectl patch workercluster "+worker+` --type=merge --patch {"spec":{"capacity":"Unlimited"}}`)
	}}
}
