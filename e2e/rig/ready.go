package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
)

// readyRetry is how often a server that doesn't listen yet is asked again: there is nothing to
// watch then.
const readyRetry = 50 * time.Millisecond

// Ready waits until the API server is ready, as after Component.Restart. It fails at once if a
// component ends.
func (c *Cluster) Ready(ctx context.Context) error {
	ctx, stop := whileAlive(ctx, c.components)
	defer stop()
	var last error
	err := wait.PollUntilContextCancel(ctx, readyRetry, true, func(ctx context.Context) (bool, error) {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, last = c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(attempt)
		return last == nil, nil
	})
	return c.explain(err, fmt.Errorf("the API server is not ready: %w", last))
}

// Serves waits until an added program answers at a URL with 200 OK, such as its /readyz. It fails
// at once if a component ends.
func (c *Cluster) Serves(ctx context.Context, url string) error {
	ctx, stop := whileAlive(ctx, c.components)
	defer stop()
	var last error
	err := wait.PollUntilContextCancel(ctx, readyRetry, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx, url)
		return last == nil, nil
	})
	return c.explain(err, last)
}

// AwaitCRDs waits until the API server serves some CustomResourceDefinitions. "kubectl wait" takes
// it for an error if one has no conditions yet.
func (c *Cluster) AwaitCRDs(ctx context.Context, names ...string) error {
	for _, name := range names {
		err := wait.PollUntilContextCancel(ctx, readyRetry, true, func(ctx context.Context) (bool, error) {
			path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name
			text, err := c.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
			if err != nil {
				return false, err
			}
			var crd struct {
				Status struct{ Conditions []metav1.Condition }
			}
			err = json.Unmarshal(text, &crd)
			return meta.IsStatusConditionTrue(crd.Status.Conditions, "Established"), err
		})
		if err != nil {
			return fmt.Errorf("wait until CRD %s is served: %w", name, err)
		}
	}
	return nil
}

func ask(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

// explain adds to an error of waiting what was waited for, and which components ended by
// themselves.
func (c *Cluster) explain(err, waitedFor error) error {
	if err == nil {
		return nil
	}
	errs := []error{err, waitedFor}
	for _, component := range c.components {
		errs = append(errs, component.failure())
	}
	return errors.Join(errs...)
}

// populate creates the Nodes, and waits until Pods can be created and run.
func (c *Cluster) populate(ctx context.Context) error {
	ctx, stop := whileAlive(ctx, c.components)
	defer stop()
	nodes, err := nodeObjects(c.options)
	if err != nil {
		return err
	}
	if err := c.serveKubelet(nodes); err != nil {
		return err
	}
	if err := createNodes(ctx, c.client, nodes); err != nil {
		return c.explain(err, errors.New("create the nodes"))
	}
	account := Object(c.client.CoreV1().RESTClient(), "serviceaccounts", "default", "default")
	if _, err := account.Until(ctx, Exists); err != nil {
		return c.explain(err, errors.New("wait for the default ServiceAccount"))
	}
	ready := map[string]bool{}
	_, err = Objects(c.client.CoreV1().RESTClient(), "nodes", "").Until(ctx, func(o runtime.Object) bool {
		if node, ok := o.(*corev1.Node); ok && nodeReady(node) {
			ready[node.Name] = true
		}
		return len(ready) == len(nodes)
	})
	if len(nodes) == 0 {
		return nil
	}
	return c.explain(err, fmt.Errorf("wait for %d nodes, ready are %s", len(nodes), keys(ready)))
}

func keys(set map[string]bool) string {
	var names []string
	for name := range set {
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
