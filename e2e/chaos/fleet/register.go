package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// SystemNamespace is where the registrations and the Leases are.
	SystemNamespace = v1alpha1.SystemNamespace
	// namespace and shownNamespace are those of the Jobs. The Pods of the latter are shown on the hub.
	namespace, shownNamespace = "chaos", "chaos-shown"

	registrationLabel = "jobferry.dev/worker-cluster"
	kubeconfigKey     = "kubeconfig"
	// LabelName is a label of each WorkerCluster: its name.
	LabelName = "name"
)

// Namespaces are those of the Jobs.
func Namespaces() []string { return []string{namespace, shownNamespace} }

// IsShown says whether the hub shows the Pods of a namespace.
func IsShown(of string) bool { return of == shownNamespace }

// installHub puts the CRD and namespaces on the hub.
func (f *Fleet) installHub(ctx context.Context, _ programs) error {
	crd := checkout.Path("config", "crd", "jobferry.dev_workerclusters.yaml")
	if _, err := f.Hub.Kubectl(ctx, "", "apply", "--server-side", "-f", crd); err != nil {
		return err
	}
	if err := f.Hub.AwaitCRDs(ctx, "workerclusters.jobferry.dev"); err != nil {
		return err
	}
	for name, labels := range map[string]map[string]string{
		SystemNamespace: nil,
		namespace:       {v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed},
		shownNamespace:  {v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed, v1alpha1.LabelPods: v1alpha1.PodsEnabled},
	} {
		if err := f.API.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			return err
		}
	}
	return nil
}

// register creates the WorkerClusters, as their spec isn't the default one, and the Secrets.
func (f *Fleet) register(ctx context.Context, _ programs) error {
	for _, w := range f.Workers {
		wc := &v1alpha1.WorkerCluster{
			ObjectMeta: metav1.ObjectMeta{Name: w.Name(), Labels: map[string]string{LabelName: w.Name()}},
			Spec:       v1alpha1.WorkerClusterSpec{KubeconfigSecret: w.Name(), JobController: v1alpha1.JobControllerBuiltIn},
		}
		if w.Embedded {
			wc.Spec.JobController = v1alpha1.JobControllerEmbedded
		}
		if err := f.API.Create(ctx, wc); err != nil {
			return err
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: SystemNamespace, Name: w.Name(), Labels: map[string]string{registrationLabel: "true"},
			},
			Data: map[string][]byte{kubeconfigKey: w.ProxyKubeconfigBytes()},
		}
		if err := f.API.Create(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

// Rotate gives the hub new credentials of a worker.
func (f *Fleet) Rotate(ctx context.Context, w *Worker) error {
	w.rotations++
	kubeconfig, err := w.UserKubeconfigBytes(fmt.Sprintf("hub-%d", w.rotations), "system:masters")
	if err != nil {
		return err
	}
	if kubeconfig, err = w.ThroughProxy(kubeconfig); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: w.Name()}}
	before := secret.DeepCopy()
	secret.Data = map[string][]byte{kubeconfigKey: kubeconfig}
	return f.API.Patch(ctx, secret, client.MergeFrom(before))
}

// SetSpec changes a worker's settings.
func (f *Fleet) SetSpec(ctx context.Context, worker string, change func(*v1alpha1.WorkerClusterSpec, bool), on bool) error {
	wc := &v1alpha1.WorkerCluster{ObjectMeta: metav1.ObjectMeta{Name: worker}}
	before := wc.DeepCopy()
	change(&before.Spec, !on)
	change(&wc.Spec, on)
	return f.API.Patch(ctx, wc, client.MergeFrom(before))
}

// Unregister deletes all registrations, and doesn't wait.
func (f *Fleet) Unregister(ctx context.Context) error {
	return f.API.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(SystemNamespace),
		client.MatchingLabels{registrationLabel: "true"})
}

// awaitWorkers returns when the managers have said that all workers are ready.
func (f *Fleet) awaitWorkers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var last string
	err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.WorkerClusterList
		if err := f.API.List(ctx, &list); err != nil {
			last = err.Error()
			return false, nil
		}
		ready := 0
		for _, wc := range list.Items {
			c := meta.FindStatusCondition(wc.Status.Conditions, v1alpha1.ConditionSchedulable)
			if c != nil && c.Status == metav1.ConditionTrue {
				ready++
			} else if c != nil {
				last = wc.Name + ": " + c.Reason + ": " + c.Message
			}
		}
		return ready == len(f.Workers), nil
	})
	if err != nil {
		return fmt.Errorf("not all workers are ready: %s: %w", last, err)
	}
	return nil
}
