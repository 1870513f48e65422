package worker

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// The index has the cache's own Pods: no copies, nothing of other namespaces, whatever controller a
// Pod names there, and nothing of Pods that a Job can't own.
func TestIndexedPods(t *testing.T) {
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, podIndexers)
	bare := func(p *corev1.Pod) { p.OwnerReferences = nil }
	all := map[string]*corev1.Pod{
		"ours": aPod("ours"), "bare": aPod("bare", bare),
		"elsewhere": aPod("elsewhere", bare, func(p *corev1.Pod) { p.Namespace = "other" }),
		"forged":    aPod("forged", func(p *corev1.Pod) { p.Namespace = "other" }),
		"foreign":   aPod("foreign", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }),
	}
	for _, p := range all {
		if err := store.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	others := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "others"}}
	if err := store.Add(others); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]*corev1.Pod{"ours": all["ours"], "others": nil, "none": nil} {
		if got, err := (indexedPods{store}).pod(types.NamespacedName{Namespace: "ns", Name: name}); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for value, want := range map[string]*corev1.Pod{controlledBy("ns", "job-uid"): all["ours"], withoutController("ns", ""): all["bare"], withoutController("ns", "uid"): nil, "none": nil} {
		got, err := indexedPods{store}.podsBy(value)
		if err != nil || !slices.Equal(got, slices.DeleteFunc([]*corev1.Pod{want}, func(p *corev1.Pod) bool { return p == nil })) {
			t.Errorf("%s: %v, %v", value, got, err)
		}
	}
	if _, err := (indexedPods{toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil)}).podsBy(controlledBy("ns", "job-uid")); err == nil {
		t.Error("an index that isn't there is no error")
	}
}
