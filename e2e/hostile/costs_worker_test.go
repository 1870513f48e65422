package hostile_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodes is how many the hostile worker makes up.
const nodes = 100

// makeWorker has the hostile worker have many nodes, Pods of many labels, and a class of devices
// whose selector never returns.
func (s *spender) makeWorker() {
	s.t.Helper()
	client := s.cluster.Client().CoreV1()
	ns := s.Namespace(s.cluster)
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("made-up-%d", i)}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("10")}
		s.must(client.Nodes().Create(s.Context(), node, metav1.CreateOptions{}))
		// it's in nobody's way
		s.t.Cleanup(func() { _ = client.Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{}) })
	}
	labels := map[string]string{}
	for i := range 30 {
		labels[fmt.Sprintf("example.org/%050d", i)] = strings.Repeat("x", 60)
	}
	for i := range 200 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("many-labels-", i), Labels: labels}}
		pod.Spec = corev1.PodSpec{NodeName: fmt.Sprintf("made-up-%d", i%nodes), Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}}}
		s.must(client.Pods(ns).Create(s.Context(), pod, metav1.CreateOptions{}))
	}
	s.Apply(s.cluster, "", `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: endless}
spec: {extendedResourceName: example.org/endless, selectors: [{cel: {expression: 'quantity("1e100000000").isGreaterThan(quantity("1"))'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: endless}
spec: {driver: endless.example.org, nodeName: made-up-0, pool: {name: made-up-0, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}`)
	s.t.Cleanup(func() {
		// the test's own context has ended
		_, _ = s.cluster.Kubectl(context.Background(), "", "delete", "deviceclass/endless", "resourceslice/endless")
	})
}

// commandsAsNames are Pods that a shell or a terminal shouldn't see.
func commandsAsNames(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	// fails with the connection
	_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` +
		`{"metadata":{"name":"$(touch${IFS}file)","namespace":"x","uid":"1"}},{"metadata":{"name":"\u001b[2J","namespace":"x","uid":"2"}}]}`))
}

// must fails the test if an object wasn't created.
func (s *spender) must(_ any, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// writesStatus writes one key very often, and very many keys, by turns.
func (s *spender) writesStatus(ctx context.Context, n int) error {
	text := strings.Repeat("a:\n", 6_000)
	if n%2 == 1 {
		var keys strings.Builder
		for i := range 60_000 {
			fmt.Fprintf(&keys, "k%d:\n", i)
		}
		text = keys.String()
	}
	maps := s.cluster.Client().CoreV1().ConfigMaps(metav1.NamespaceSystem)
	status := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler-status"}, Data: map[string]string{"status": text}}
	_, err := maps.Update(ctx, status, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		// it's in nobody's way
		s.t.Cleanup(func() { _ = maps.Delete(context.Background(), status.Name, metav1.DeleteOptions{}) })
		_, err = maps.Create(ctx, status, metav1.CreateOptions{})
	}
	return err
}

// changesNodes changes a node of the worker: Jobs that wait may fit by now.
func (s *spender) changesNodes(ctx context.Context, n int) error {
	_, err := s.cluster.Client().CoreV1().Nodes().Patch(ctx, fmt.Sprintf("made-up-%d", n%nodes), types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{"example.org/n":"%d"}}}`, n), metav1.PatchOptions{})
	return err
}
