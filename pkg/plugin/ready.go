package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	v1alpha1.ReasonConnecting:        "the manager hasn't heard of it yet: look again with kubectl jobferry clusters",
	v1alpha1.ReasonUnreachable:       "the hub's manager can't reach that address: give one that it can by --server, or open the way",
	v1alpha1.ReasonUntrusted:         "the CA of the worker's context isn't the one of that address: fix its certificate-authority-data",
	v1alpha1.ReasonUnauthorized:      "the worker refuses the token: kubectl jobferry rotate makes a new one",
	v1alpha1.ReasonForbidden:         "a permission is missing in the worker: run kubectl jobferry register again, which puts the roles right",
	v1alpha1.ReasonDuplicate:         "a cluster has one name: unregister one of the two",
	v1alpha1.ReasonIsHub:             "the worker's context leads to the hub itself: check --worker-context",
	v1alpha1.ReasonClusterChanged:    "another cluster answers there than before: register it under its own name",
	v1alpha1.ReasonKubeconfigRefused: "run kubectl jobferry register again, which writes a kubeconfig that the manager accepts",
	v1alpha1.ReasonKubeconfigInvalid: "run kubectl jobferry register again, which writes a kubeconfig that the manager accepts",
	v1alpha1.ReasonKubeconfigMissing: "run kubectl jobferry register again, which writes the kubeconfig",
	v1alpha1.ReasonSecretMissing:     "run kubectl jobferry register again, which makes the Secret",
}

// noManagerAdvice is for a WorkerCluster that nobody writes a status for.
const noManagerAdvice = "the manager hasn't taken notice of it: does it run? kubectl -n jobferry-system get pods"

// roomPatience is how long a worker that is Ready is given to tell what it offers.
const roomPatience = 5 * time.Second

// waitReady waits until a worker is Ready, and tells what it found.
func (c *cli) waitReady(ctx context.Context, hub client.Client, name, tooLate string) error {
	var (
		worker     v1alpha1.WorkerCluster
		told       string
		readySince time.Time
	)
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, types.NamespacedName{Name: name}, &worker); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		ready := readyCondition(&worker)
		if ready.Status == metav1.ConditionTrue && worker.Status.ObservedGeneration >= worker.Generation {
			if readySince.IsZero() {
				readySince = time.Now()
			}
			return !roomComes(&worker) || time.Since(readySince) >= roomPatience, nil
		}
		readySince = time.Time{}
		if text := progressOf(ready); text != "" && text != told {
			c.say("waiting: %s", text)
			told = text
		}
		return false, nil
	})
	switch {
	case canceled(err) && readySince.IsZero():
		return notReady(&worker, tooLate)
	case err != nil && !canceled(err):
		return fmt.Errorf("hub: %w", access.Explain(err))
	}
	c.say("%s is Ready: Kubernetes %s, %s", name, worker.Status.KubernetesVersion, roomOf(&worker))
	return nil
}

func readyCondition(worker *v1alpha1.WorkerCluster) metav1.Condition {
	if c := meta.FindStatusCondition(worker.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// progressOf is what a wait tells meanwhile. A missing Secret is ours, just made.
func progressOf(ready metav1.Condition) string {
	if ready.Reason == "" || ready.Reason == v1alpha1.ReasonSecretMissing || ready.Status == metav1.ConditionTrue {
		return ""
	}
	return ready.Reason + ": " + ready.Message
}

func notReady(worker *v1alpha1.WorkerCluster, tooLate string) error {
	ready := readyCondition(worker)
	if ready.Reason == "" {
		return &notThereError{access.Advise(errors.New(tooLate), noManagerAdvice)}
	}
	err := fmt.Errorf("%s: %s: %s", tooLate, ready.Reason, ready.Message)
	return &notThereError{access.Advise(err, notReadyAdvice[ready.Reason])}
}

// roomComes: it will be known shortly what the worker offers, as far as one can see.
func roomComes(worker *v1alpha1.WorkerCluster) bool {
	schedulable := meta.FindStatusCondition(worker.Status.Conditions, v1alpha1.ConditionSchedulable)
	return len(worker.Status.Free) == 0 && worker.Spec.Capacity != v1alpha1.CapacityUnlimited &&
		(schedulable == nil || schedulable.Reason != v1alpha1.ReasonCapacityUnknown)
}

// roomOf is what a worker offers.
func roomOf(worker *v1alpha1.WorkerCluster) string {
	free := worker.Status.Free
	switch {
	case worker.Spec.Capacity == v1alpha1.CapacityUnlimited:
		return "room isn't counted"
	case len(free) == 0:
		return "room not known yet"
	}
	return fmt.Sprintf("%s; free: %s CPU, %s memory", plural(int(worker.Status.Nodes), "node"),
		quantity(free, corev1.ResourceCPU), quantity(free, corev1.ResourceMemory))
}

func quantity(list corev1.ResourceList, name corev1.ResourceName) string {
	q := list[name]
	return q.String()
}
