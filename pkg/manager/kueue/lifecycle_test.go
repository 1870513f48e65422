package kueue

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A hub whose API is what its CRDs say isn't asked again without an event.
func TestPatience(t *testing.T) {
	for name, row := range map[string]struct {
		crds    []string
		session bool
		forEver bool
	}{
		"no Kueue":                   {nil, false, true},
		"some CRDs, not all":         {resources[:2], false, true},
		"all CRDs, and a session":    {resources, true, true},
		"all CRDs, not yet served":   {resources, false, false},
		"CRDs gone, still served":    {nil, true, false},
		"one CRD gone, still served": {resources[1:], true, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLifecycle(nil, nil, "kueue-system")
			if row.session {
				l.stop = func() {}
			}
			for _, crd := range append(resources[:len(resources):len(resources)], "cohorts") {
				l.crdChanged(crdNamed(crd+".kueue.x-k8s.io"), true)
			}
			l.crdChanged(crdNamed("jobs.example.org"), true)
			there := map[string]bool{}
			for _, crd := range row.crds {
				there[crd] = true
			}
			for _, crd := range resources {
				if !there[crd] {
					l.crdChanged(crdNamed(crd+".kueue.x-k8s.io"), false)
				}
			}
			if got := l.patience() == nil; got != row.forEver {
				t.Errorf("waits for ever: %v, want %v", got, row.forEver)
			}
		})
	}
}

func crdNamed(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
