package mirror

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// TestALightMirrorDrifts as any other does, but for its Pod template: that isn't patched, but the
// mirror is made anew.
func TestALightMirrorDrifts(t *testing.T) {
	large := func(j *batchv1.Job) {
		j.Labels, j.Annotations = map[string]string{"team": "a"}, map[string]string{"about": "it"}
		j.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", 2*maxHeldTemplate)}
	}
	for name, row := range map[string]struct {
		hub, mirror []change
		want        string // empty: as for the mirror that isn't light
	}{
		"nothing":                         {},
		"the hub suspends":                {hub: []change{suspend}, mirror: []change{running}},
		"the hub resumes":                 {mirror: []change{suspend}},
		"another label":                   {hub: []change{func(j *batchv1.Job) { j.Labels["team"] = "b" }}},
		"a label less":                    {hub: []change{func(j *batchv1.Job) { delete(j.Labels, "team") }}},
		"a label of the worker":           {mirror: []change{func(j *batchv1.Job) { j.Labels["theirs"] = "x" }}},
		"another zone, while it runs":     {hub: []change{zone("z")}, mirror: []change{running}},
		"another zone, while it's halted": {hub: []change{zone("z")}, mirror: []change{halted}, want: "mirror.Recreate"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := job().Obj()
			large(hub)
			m := mirrorOf(hub, aTarget)
			for _, c := range row.hub {
				c(hub)
			}
			for _, c := range row.mirror {
				c(m)
			}
			light := m.DeepCopy()
			SlimMirror(light)
			if !Light(light) || Light(m) {
				t.Fatalf("light: %t, before: %t", Light(light), Light(m))
			}
			got := Drift(hub, light, aTarget)
			switch _, recreated := got.(Recreate); {
			case row.want != "":
				if !recreated {
					t.Errorf("got %T, want %s", got, row.want)
				}
			default:
				if diff := cmp.Diff(describe(Drift(hub, m, aTarget)), describe(got)); diff != "" {
					t.Errorf("the light mirror drifts in another way:\n%s", diff)
				}
			}
		})
	}
}

// TestALightHubJobKeepsWhatIsRead: all of Jobferry's names on hub Jobs, and few of others. The
// finalizers, which writes replace, stay whole.
func TestALightHubJobKeepsWhatIsRead(t *testing.T) {
	j := job().Obj()
	j.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/theirs": "x", "team": "a"}
	j.Annotations = map[string]string{"kueue.x-k8s.io/job-min-parallelism": "1"}
	for _, key := range annotationsOnHubJobs(t) {
		j.Annotations[key] = "v"
	}
	want := maps.Clone(j.Annotations)
	j.Annotations["about"], j.Annotations["jobferry.dev/theirs"] = "it", "x"
	j.Annotations[v1alpha1.AnnotationProjected] = `{"labels":["team"],"annotations":["about"],"scheduling":"s","resources":"r"}`
	j.Finalizers = []string{v1alpha1.FinalizerMirror, "example.com/theirs"}
	j.OwnerReferences = []metav1.OwnerReference{{Name: "a"}}
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{DisruptionMode: &schedulingv1alpha3.WorkloadPodGroupDisruptionMode{}}
	Lighten(j)
	if diff := cmp.Diff(want, j.Annotations); diff != "" || len(want) < 7 {
		t.Errorf("annotations:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"kueue.x-k8s.io/queue-name": "q"}, j.Labels); diff != "" {
		t.Errorf("labels:\n%s", diff)
	}
	if len(j.Finalizers) != 2 || j.OwnerReferences != nil || j.Spec.Selector != nil || !Light(j) {
		t.Errorf("light: %+v", j)
	}
	if s := j.Spec.Scheduling; s == nil || s.DisruptionMode != nil {
		t.Errorf("scheduling: %v", s)
	}
}

// annotationsOnHubJobs are those of the contract that have a group of hub Jobs.
func annotationsOnHubJobs(t *testing.T) (keys []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "../api/v1alpha1/names.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range file.Decls {
		group, is := of.(*ast.GenDecl)
		if !is || !strings.HasPrefix(group.Doc.Text(), "Names on hub Jobs") {
			continue
		}
		for _, of := range group.Specs {
			name := of.(*ast.ValueSpec)
			if !strings.HasPrefix(name.Names[0].Name, "Annotation") {
				continue
			}
			key, err := strconv.Unquote(name.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
	}
	return keys
}

// TestALightMirrorKeepsWhatIsRead: the marks, what the record names, and whether there are
// policies.
func TestALightMirrorKeepsWhatIsRead(t *testing.T) {
	j := job().Obj()
	j.Labels = map[string]string{"jobferry.dev/origin": "o", "kueue.x-k8s.io/queue-name": "q", "team": "a", "theirs": "x"}
	j.Annotations = map[string]string{
		"jobferry.dev/hub-uid": "u", "about": "it", "theirs": "x",
		"jobferry.dev/projected": `{"labels":["team"],"annotations":["about"],"scheduling":"s","resources":"r"}`,
	}
	j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: make([]batchv1.SuccessPolicyRule, 20)}
	j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: make([]batchv1.PodFailurePolicyRule, 20)}
	LightenMirror(j)
	delete(j.Annotations, "jobferry.dev/projected")
	want := map[string]string{"jobferry.dev/origin": "o", "kueue.x-k8s.io/queue-name": "q", "team": "a"}
	if diff := cmp.Diff(want, j.Labels); diff != "" {
		t.Errorf("labels:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"jobferry.dev/hub-uid": "u", "about": "it"}, j.Annotations); diff != "" {
		t.Errorf("annotations:\n%s", diff)
	}
	if !Light(j) || j.Spec.SuccessPolicy == nil || len(j.Spec.SuccessPolicy.Rules) > 0 ||
		j.Spec.PodFailurePolicy == nil || len(j.Spec.PodFailurePolicy.Rules) > 0 {
		t.Errorf("light: %+v", j.Spec)
	}
}
