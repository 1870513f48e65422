package carry

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

const (
	roleOfAWS  = "eks.amazonaws.com/role-arn"
	accountGKE = "iam.gke.io/gcp-service-account"
)

func annotated(annotations map[string]string) edit {
	return func(o Object) {
		all := maps.Clone(o.GetAnnotations())
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, annotations)
		o.SetAnnotations(all)
	}
}

// What a copy of a ServiceAccount has of the annotations of its source, and what is said of those
// that it lacks.
func TestAnnotationsOfServiceAccounts(t *testing.T) {
	role := map[string]string{roleOfAWS: "a"}
	robot := func(edits ...edit) Object { return source(account(), edits...) }
	many := map[string]string{}
	for i := range 9 {
		many[fmt.Sprintf("example.org/%d", i)] = "x"
	}
	rows := map[string]struct {
		source, existing Object
		allowed          mirror.Keys
		want             map[string]string // beside the source's UID, of what is written
		wrote            Operation
		note             string
	}{
		"none":                     {source: robot(), wrote: Create},
		"a role":                   {source: robot(annotated(role)), wrote: Create, note: `serviceaccount "x" is copied without the annotations that may give its Pods rights (eks.amazonaws.com/role-arn)`},
		"a role that is allowed":   {source: robot(annotated(role)), allowed: mirror.Keys{roleOfAWS}, wrote: Create, want: role},
		"a domain that is allowed": {source: robot(annotated(role)), allowed: mirror.Keys{"amazonaws.com"}, wrote: Create, want: role},
		"one of two is allowed":    {source: robot(annotated(role), annotated(map[string]string{accountGKE: "b"})), allowed: mirror.Keys{roleOfAWS}, wrote: Create, want: role, note: "(iam.gke.io/gcp-service-account)"},
		"another role than before": {source: robot(annotated(map[string]string{roleOfAWS: "b"})), existing: copied(robot(), mine, annotated(role)), allowed: mirror.Keys{roleOfAWS}, wrote: Update, want: map[string]string{roleOfAWS: "b"}},
		"a role no more":           {source: robot(), existing: copied(robot(), mine, annotated(role)), allowed: mirror.Keys{roleOfAWS}, wrote: Update},
		"the worker gave a role":   {source: robot(annotated(role)), existing: copied(robot(), mine, annotated(map[string]string{roleOfAWS: "worker's"})), wrote: Leave},
		"a copy without its role":  {source: robot(annotated(role)), existing: copied(robot(), mine), wrote: Leave, note: roleOfAWS},
		"a foreign ServiceAccount": {source: robot(annotated(role)), existing: robot(), allowed: mirror.Keys{roleOfAWS}, wrote: Leave},
		"marks of the hub's tools": {source: robot(annotated(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "argocd.argoproj.io/tracking-id": "x", "example.com/a": "x"})), allowed: mirror.Keys{"argoproj.io"}, wrote: Create},
		"too many to be named":     {source: robot(annotated(many)), wrote: Create, note: "(example.org/0, example.org/1, example.org/2, example.org/3, example.org/4, 4 more)"},
		"a ConfigMap":              {source: source(configMap("a"), annotated(role)), allowed: mirror.Keys{roleOfAWS}, wrote: Create},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			r := rules
			r.AccountAnnotations, r.HubKeys = row.allowed, mirror.HubKeys{"example.com"}
			got := Decide(Snapshot{Ref: Ref{Kind: kindOf(row.source), Name: "x"}, Namespace: "team", Source: row.source, Existing: row.existing}, r)
			if got.Do != row.wrote {
				t.Fatalf("decided on %s, want %s", got.Do, row.wrote)
			}
			checkText(t, "note", got.Note, row.note)
			if got.Object == nil {
				return
			}
			is := maps.Clone(got.Object.GetAnnotations())
			delete(is, v1alpha1.AnnotationHubUID)
			if !equality.Semantic.DeepEqual(is, row.want) {
				t.Errorf("the copy has %v, want %v", is, row.want)
			}
		})
	}
}
