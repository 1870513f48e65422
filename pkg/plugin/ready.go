package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
)

// notReadyAdvice is what to do about a worker that isn't Ready, by the reason of its condition.
var notReadyAdvice = map[string]string{
	v1alpha1.ReasonConnecting:        "the manager hasn't connected yet: look again with kubectl jobferry clusters",
	v1alpha1.ReasonUnreachable:       "the hub's manager can't reach that address: set one that it can reach by --server, or allow the connection",
	v1alpha1.ReasonUntrusted:         "the certificate of that address isn't signed by the CA of the worker's context: fix its certificate-authority-data",
	v1alpha1.ReasonUnauthorized:      "the worker refuses the token: kubectl jobferry rotate makes a new one",
	v1alpha1.ReasonForbidden:         "a permission is missing in the worker: run kubectl jobferry register again, which restores the roles",
	v1alpha1.ReasonAnswerTooLarge:    "check what answers at the kubeconfig's server: it isn't an API server, or lies",
	v1alpha1.ReasonAnswerEncoded:     "check what answers at the kubeconfig's server: it isn't an API server, or lies",
	v1alpha1.ReasonTooManyMirrors:    "the worker has too many Jobs with this hub's label: delete those that aren't the hub's, or raise spec.maxMirrors",
	v1alpha1.ReasonDuplicate:         "a cluster can be registered only once: unregister one of the two names",
	v1alpha1.ReasonIsHub:             "the worker's context leads to the hub itself: check --worker-context",
	v1alpha1.ReasonClusterChanged:    "the address now leads to another cluster: register that under its own name",
	v1alpha1.ReasonKubeconfigRefused: "run kubectl jobferry register again, which writes a kubeconfig that the manager accepts",
	v1alpha1.ReasonKubeconfigInvalid: "run kubectl jobferry register again, which writes a kubeconfig that the manager accepts",
	v1alpha1.ReasonKubeconfigMissing: "run kubectl jobferry register again, which writes the kubeconfig",
	v1alpha1.ReasonSecretMissing:     "run kubectl jobferry register again, which creates the Secret",
}

// noManagerAdvice is for a WorkerCluster without a status.
const noManagerAdvice = "the manager hasn't observed it: does it run? kubectl -n jobferry-system get pods"

// capacityTimeout is how long to wait for the free capacity of a worker that is Ready.
const capacityTimeout = 5 * time.Second

// waitReady waits until a worker is Ready, and reports its version and free capacity.
func (c *cli) waitReady(ctx context.Context, hub client.Client, name, tooLate string) error {
	var (
		worker     v1alpha1.WorkerCluster
		readySince time.Time
	)
	report := c.sayNew("waiting: ")
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, types.NamespacedName{Name: name}, &worker); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		ready := readyCondition(&worker)
		if ready.Status == metav1.ConditionTrue && worker.Status.ObservedGeneration >= worker.Generation {
			if readySince.IsZero() {
				readySince = time.Now()
			}
			return !capacityPending(&worker) || time.Since(readySince) >= capacityTimeout, nil
		}
		readySince = time.Time{}
		if ready.Reason != v1alpha1.ReasonSecretMissing { // the Secret was created a moment ago
			report(reasonOf(ready))
		}
		return false, nil
	})
	switch {
	case canceled(err) && readySince.IsZero():
		return notReady(&worker, tooLate)
	case err != nil && !canceled(err):
		return fmt.Errorf("hub: %w", access.Explain(err))
	}
	c.say("%s is Ready: Kubernetes %s, %s", name, worker.Status.KubernetesVersion, freeCapacity(&worker))
	return nil
}

func readyCondition(worker *v1alpha1.WorkerCluster) metav1.Condition {
	if c := meta.FindStatusCondition(worker.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// reasonOf returns why a condition isn't true; "" if that isn't known.
func reasonOf(c metav1.Condition) string {
	if c.Reason == "" || c.Status == metav1.ConditionTrue {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func notReady(worker *v1alpha1.WorkerCluster, tooLate string) error {
	ready := readyCondition(worker)
	if ready.Reason == "" {
		return &pendingError{access.Advise(errors.New(tooLate), noManagerAdvice)}
	}
	err := fmt.Errorf("%s: %s: %s", tooLate, ready.Reason, ready.Message)
	return &pendingError{access.Advise(err, notReadyAdvice[ready.Reason])}
}

// capacityPending reports whether the free capacity of a worker will be known soon.
func capacityPending(worker *v1alpha1.WorkerCluster) bool {
	schedulable := meta.FindStatusCondition(worker.Status.Conditions, v1alpha1.ConditionSchedulable)
	return len(worker.Status.Free) == 0 && worker.Spec.Capacity != v1alpha1.CapacityUnlimited &&
		(schedulable == nil || schedulable.Reason != v1alpha1.ReasonCapacityUnknown)
}

// freeCapacity describes what a worker offers.
func freeCapacity(worker *v1alpha1.WorkerCluster) string {
	free := worker.Status.Free
	switch {
	case worker.Spec.Capacity == v1alpha1.CapacityUnlimited:
		return "its capacity isn't counted"
	case len(free) == 0:
		return "its free capacity isn't known yet"
	}
	return fmt.Sprintf("%s; free: %s CPU, %s memory", plural(int(worker.Status.Nodes), "node"),
		free.Cpu(), free.Memory())
}
