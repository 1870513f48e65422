package admission_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func TestRefusedNewHub(t *testing.T) { refusals(t, hubFor(t, newHub).withPolicies("policy")) }

func TestRefusedOldHub(t *testing.T) { refusals(t, hubFor(t, oldHub).withPolicies("checks")) }

// refusals has users create Jobs that are refused, each with its message, and such that aren't.
func refusals(t *testing.T, h hub) {
	rows := map[string]struct {
		user string
		job  *batchv1.Job
		want string // part of the message; empty: created
	}{
		"nothing to say":       {"ada", rigtest.Job(h.NS, "j", ours), ""},
		"good choices":         {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationClusterSelector, "region=eu, gpu in (a100,h100)"), annotated(v1alpha1.AnnotationOnClusterLost, "Restart")), ""},
		"no selector":          {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationClusterSelector, "region eu")), `"region eu" is not a label selector; set it to one such as "region=eu,gpu in (a100,h100)", or remove it to allow every worker`},
		"steps":                {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationClusterPreference, "tier=owned; region in (eu,us) after 5m; * after 1h30m; return after 15m")), ""},
		"no steps":             {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationClusterPreference, "tier=owned; eu 5m")), `annotation jobferry.dev/cluster-preference: the step "eu 5m" is neither a label selector nor *, alone or with a wait such as "after 5m"; set it to steps such as "tier=owned; region=eu after 5m; * after 30m", or remove it`},
		"a long preference":    {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationClusterPreference, strings.Repeat(";a", 100000))), "it's longer than 1024 bytes"},
		"as costly as may be":  {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationClusterPreference, strings.Repeat("a,b in (c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z), a>1,!b,c=d, e=f,g,h,i,j,k,l,m,n,o after 99999h99999m99999s;", 7)+" * after 99999h99999m99999s")), ""},
		"unknown on lost":      {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationOnClusterLost, "Retry")), `"Retry" is unknown; set it to Resume, Restart or Wait, or remove it, which means Resume`},
		"a timeout":            {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationPodStartTimeout, "1h30m")), ""},
		"no timeout":           {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationPodStartTimeout, "2 min")), `annotation jobferry.dev/pod-start-timeout: "2 min" is no time such as "10m" or "1h30m"; set it to one, or remove it to take the worker's`},
		"a timeout of nothing": {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationPodStartTimeout, "0m")), `"0m" is no time`},
		"a trace context":      {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationTraceParent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")), ""},
		"several clusters":     {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationMaxClusters, "All"), rigtest.Indexed(2)), ""},
		"of a work queue":      {"ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationMaxClusters, "2"), func(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](2), nil }), "annotation jobferry.dev/max-clusters: a Job without spec.completions is a work queue, which only its Pods could divide; set spec.completions, or remove the annotation"},
		"an old placement":     {"ada", rigtest.Job(h.NS, "j", ours, annotated("jobferry.dev/cluster", "west")), ""},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			err := h.try(row.user, row.job)
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
	t.Run("a selector is invalid", func(t *testing.T) {
		if err := h.try("ada", rigtest.Job(h.NS, "j", ours, annotated(v1alpha1.AnnotationClusterSelector, "a b"))); !apierrors.IsInvalid(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("namespaces", h.namespaces)
	t.Run("edits", h.edits)
	t.Run("conditions left out", h.leftOut)
	t.Run("kubectl apply", h.applied)
	t.Run("a CronJob's template", h.template)
}

// edits has users change what isn't theirs, on a Job that the manager has placed.
func (h hub) edits(t *testing.T) {
	h.Create(h.Hub, rigtest.Job(h.NS, "placed", ours))
	h.place(t, "placed")
	ada := h.as("ada", nil).BatchV1().Jobs(h.NS)
	for name, row := range map[string]struct {
		patch, subresource, want string
	}{
		"moved":                    {placementPatch("east"), "status", "leave them as they are"},
		"another status":           {`{"status":{"ready":0}}`, "status", ""},
		"a note of an old release": {`{"metadata":{"annotations":{"jobferry.dev/cluster":"east"}}}`, "", ""},
		"a note of theirs":         {`{"metadata":{"annotations":{"note":"x"}}}`, "", ""},
		"suspended":                {`{"spec":{"suspend":true}}`, "", ""},
	} {
		subresources := []string{}
		if row.subresource != "" {
			subresources = append(subresources, row.subresource)
		}
		_, err := ada.Patch(h.Context(), "placed", types.MergePatchType, []byte(row.patch), metav1.PatchOptions{}, subresources...)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: error %v, want %q", name, err, row.want)
		}
	}
}

// leftOut has a user write conditions that lack the manager's. A new hub puts these back, an old
// one refuses.
func (h hub) leftOut(t *testing.T) {
	h.Create(h.Hub, rigtest.Job(h.NS, "left-out", ours))
	h.place(t, "left-out")
	ada := h.as("ada", nil).BatchV1().Jobs(h.NS)
	for patch, want := range map[string][]batchv1.JobConditionType{
		`{"status":{"conditions":null}}`:                                          {hubstate.Placed},
		`{"status":{"conditions":[{"type":"example.org/mine","status":"True"}]}}`: {"example.org/mine", hubstate.Placed},
	} {
		var job *batchv1.Job
		write := func() (err error) {
			job, err = ada.Patch(h.Context(), "left-out", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			return err
		}
		if h.Hub.Name() == oldHub {
			if err := write(); err == nil || !strings.Contains(err.Error(), "only Jobferry sets, changes or removes jobferry.dev/Placed") {
				t.Errorf("%s: error %v", patch, err)
			}
			continue
		}
		h.eventually("the conditions are put back", func() bool { return write() == nil })
		var got []batchv1.JobConditionType
		for _, c := range job.Status.Conditions {
			got = append(got, c.Type)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: conditions %v, want %v", patch, got, want)
		}
	}
}

// placementPatch places a Job on a worker.
func placementPatch(worker string) string {
	return `{"status":{"conditions":[{"type":"jobferry.dev/Placed","status":"True","reason":"Placed","message":"` + worker + `"}]}}`
}

// place writes a placement as the manager does.
func (h hub) place(t *testing.T, name string) {
	t.Helper()
	_, err := h.as(managerUser, nil).BatchV1().Jobs(h.NS).Patch(h.Context(), name, types.MergePatchType,
		[]byte(placementPatch("west")), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// applied has a user apply a manifest again after the Job was placed.
func (h hub) applied(t *testing.T) {
	manifest := func(annotations string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: applied, annotations: {` + annotations + `}}, spec: {managedBy: jobferry.dev/dispatcher,
			template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.org/main}]}}}}`
	}
	apply := func(text string, args ...string) (string, error) {
		return h.Hub.Kubectl(h.Context(), text, append([]string{"apply", "-n", h.NS, "-f", "-", "--as=ada", "--as-group=" + administrators}, args...)...)
	}
	for _, how := range [][]string{nil, {"--server-side", "--force-conflicts"}} {
		if _, err := apply(manifest("note: a"), how...); err != nil {
			t.Errorf("%v, the first time: %v", how, err)
		}
		h.place(t, "applied")
		if _, err := apply(manifest("note: b"), how...); err != nil {
			t.Errorf("%v, again: %v", how, err)
		}
	}
}

// template has a CronJob refused at once, not at its first Job. One that was made before the checks
// is told by its controller's event.
func (h hub) template(t *testing.T) {
	bad := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.NS, Name: "cron"},
		Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationClusterSelector: "a b"}},
			Spec:       rigtest.Job(h.NS, "x").Spec,
		}},
	}
	crons := h.as("ada", nil).BatchV1().CronJobs(h.NS)
	if _, err := crons.Create(h.Context(), bad, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "is not a label selector") {
		t.Errorf("error %v", err)
	}
	bad.Spec.JobTemplate.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: "a=b"}
	if _, err := crons.Create(h.Context(), bad, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// A managedBy that nobody has is a warning, no refusal. (Capitals before the slash the API server
// refuses by itself.)
func TestWarned(t *testing.T) {
	h := hubFor(t, newHub).withPolicies("policy")
	for value, warns := range map[string]bool{
		"jobferry/dispatcher": true, "jobferry.dev/dispatch": true, "jobferry.dev/Dispatcher": true, "jobfery.dev/dispatcher": true,
		v1alpha1.ManagedByDispatcher: false, "kueue.x-k8s.io/multikueue": false,
	} {
		heard := &warnings{}
		_, err := h.as("ada", heard).BatchV1().Jobs(h.NS).Create(h.Context(), rigtest.Job(h.NS, "j", rigtest.ManagedBy(value)),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
		said := strings.Join(heard.text, "; ")
		if warns != strings.Contains(said, `"`+value+`" looks like a misspelled "jobferry.dev/dispatcher"`) {
			t.Errorf("%s: warnings %q", value, said)
		}
	}
	for kind, warns := range map[string]bool{"RayJob": true, "ScaledJob": false} {
		heard := &warnings{}
		group := map[string]string{"RayJob": "ray.io", "ScaledJob": "keda.sh"}[kind]
		_, err := h.as("ada", heard).BatchV1().Jobs(h.NS).Create(h.Context(), rigtest.Job(h.NS, "j", controlledBy(group+"/v1", kind)),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		said := strings.Join(heard.text, "; ")
		if err != nil || warns != strings.Contains(said, "add "+kind+"."+group+" to the value dispatch.owners") {
			t.Errorf("Job of a %s: %v, warnings %q", kind, err, said)
		}
	}
}
