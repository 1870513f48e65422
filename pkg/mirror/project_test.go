package mirror

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
)

var aTarget = Target{Origin: "hub-a", Minor: 36}

func TestProjectMetadata(t *testing.T) {
	hub := mirrortest.New("job").
		Label("team", "a").Label("kueue.x-k8s.io/queue-name", "q").Label(batchv1.JobNameLabel, "job").Label("controller-uid", "uid-job").
		Annotation("note", "x").Annotation(v1alpha1.AnnotationCluster, "west").Annotation(corev1.LastAppliedConfigAnnotation, "{}").
		Annotation("batch.kubernetes.io/cronjob-scheduled-timestamp", "t").Annotation("argocd.argoproj.io/tracking-id", "app").
		Do(func(j *batchv1.Job) {
			j.GenerateName = "job-"
			j.Finalizers = []string{v1alpha1.FinalizerMirror}
			j.OwnerReferences = []metav1.OwnerReference{{Kind: "CronJob", Name: "nightly"}}
			j.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		}).Obj()
	got := Project(hub, aTarget).ObjectMeta
	delete(got.Annotations, v1alpha1.AnnotationProjected)
	want := metav1.ObjectMeta{
		Namespace: "team", Name: "job",
		Labels:      map[string]string{"team": "a", v1alpha1.LabelOrigin: "hub-a"},
		Annotations: map[string]string{"note": "x", v1alpha1.AnnotationHubUID: "uid-job"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each of these marks has had a mirror removed, or counted, by the same program in the worker.
func TestMarksOfOtherProgramsStayOnTheHub(t *testing.T) {
	for _, key := range []string{
		"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "argocd.argoproj.io/instance", "applyset.kubernetes.io/part-of",
		"kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace", "configsync.gke.io/declared-version", "config.k8s.io/owning-inventory",
		"meta.helm.sh/release-name", "helm.sh/hook", "objectset.rio.cattle.io/hash", "scaledjob.keda.sh/name", "velero.io/restore-name",
		"janitor/ttl", "cleanup.kyverno.io/ttl", "kapp.k14s.io/app", "work.karmada.io/permanent-id", "addonmanager.kubernetes.io/mode",
	} {
		hub := mirrortest.New("job").Label(key, "x").Annotation(key, "x").Label("team", "a").Obj()
		m := Project(hub, aTarget)
		if m.Labels[key] != "" || m.Annotations[key] != "" || m.Labels["team"] != "a" {
			t.Errorf("%s: labels %v, annotations %v", key, m.Labels, m.Annotations)
		}
		// An earlier release has copied it.
		rec, _ := readRecord(m)
		rec.Labels = append(rec.Labels, key)
		m.Labels[key], m.Annotations[v1alpha1.AnnotationProjected] = "x", rec.String()
		if patch, is := Drift(hub, m, aTarget).(Patch); !is || applyBytes(t, m, patch.Bytes()).Labels[key] != "" {
			t.Errorf("%s: a mirror that has it keeps it", key)
		}
	}
	for _, key := range []string{"app.kubernetes.io/name", "example.com/velero.io", "nothelm.sh/x", "janitor"} {
		if m := Project(mirrortest.New("job").Label(key, "x").Obj(), aTarget); m.Labels[key] != "x" {
			t.Errorf("%s isn't copied", key)
		}
	}
}

// An admin keeps further keys and domains on the hub. Mirrors that have them lose them.
func TestHubKeys(t *testing.T) {
	target := aTarget
	target.HubKeys = HubKeys{"example.com", "owner", "other.org/owner"}
	for key, stays := range map[string]bool{
		"example.com/x": true, "sub.example.com/x": true, "owner": true, "other.org/owner": true,
		"other.org/x": false, "notexample.com/x": false, "team": false, "owner/x": true,
	} {
		hub := mirrortest.New("job").Label(key, "x").Annotation(key, "x").Obj()
		m := Project(hub, target)
		if (m.Labels[key] == "") != stays || (m.Annotations[key] == "") != stays {
			t.Errorf("%s: labels %v, annotations %v", key, m.Labels, m.Annotations)
		}
		before := Project(hub, aTarget)
		patch, is := Drift(hub, before, target).(Patch)
		if is != stays || is && applyBytes(t, before, patch.Bytes()).Labels[key] != "" {
			t.Errorf("%s: a mirror that has it: %v", key, is)
		}
	}
	if err := (HubKeys{"example.com", "a/b", "no key!"}).Validate(); err == nil || !strings.Contains(err.Error(), "no key!") {
		t.Errorf("invalid: %v", err)
	}
	if err := target.HubKeys.Validate(); err != nil {
		t.Error(err)
	}
}

func TestProjectSpec(t *testing.T) {
	hub := mirrortest.New("job").Suspend(true).ManagedBy(v1alpha1.ManagedByDispatcher).Do(func(j *batchv1.Job) {
		j.Spec.TTLSecondsAfterFinished = ptr.To[int32](5)
		j.Spec.Template.Labels["app"] = "x"
		j.Spec.Template.Labels["kueue.x-k8s.io/podset"] = "main"
		j.Spec.Template.Annotations = map[string]string{"kueue.x-k8s.io/workload": "w", "a": "b"}
		j.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}, {Name: "mine"}}
	}).Obj()
	before := hub.DeepCopy()
	got := Project(hub, aTarget).Spec

	want := *hub.Spec.DeepCopy()
	want.TTLSecondsAfterFinished, want.ManagedBy, want.Selector, want.ManualSelector = nil, nil, nil, nil
	want.Template.Labels = map[string]string{"app": "x"}
	want.Template.Annotations = map[string]string{"a": "b"}
	want.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "mine"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, hub); diff != "" {
		t.Errorf("the hub Job was changed: %s", diff)
	}
}

func TestProjectManualSelector(t *testing.T) {
	hub := mirrortest.New("job").Do(func(j *batchv1.Job) {
		j.Spec.ManualSelector = ptr.To(true)
		j.Spec.Selector = &metav1.LabelSelector{
			MatchLabels:      map[string]string{"kueue.x-k8s.io/podset": "main"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "kueue.x-k8s.io/other", Operator: metav1.LabelSelectorOpExists}},
		}
		j.Spec.Template.Labels = map[string]string{
			"kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/other": "y", "kueue.x-k8s.io/third": "z", "job-name": "mine",
		}
	}).Obj()
	got := Project(hub, aTarget).Spec
	want := map[string]string{"kueue.x-k8s.io/podset": "main", "kueue.x-k8s.io/other": "y", "job-name": "mine"}
	if diff := cmp.Diff(want, got.Template.Labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(hub.Spec.Selector, got.Selector); diff != "" || !ptr.Deref(got.ManualSelector, false) {
		t.Errorf("selector %s", diff)
	}
}

func TestProjectTarget(t *testing.T) {
	withDeadline := func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](100) }
	for name, row := range map[string]struct {
		hub    *mirrortest.Job
		target Target
		check  func(*batchv1.Job) bool
	}{
		"built-in":               {mirrortest.New("job"), Target{JobController: v1alpha1.JobControllerBuiltIn}, func(m *batchv1.Job) bool { return m.Spec.ManagedBy == nil }},
		"embedded":               {mirrortest.New("job"), Target{JobController: v1alpha1.JobControllerEmbedded}, func(m *batchv1.Job) bool { return *m.Spec.ManagedBy == v1alpha1.ManagedByWorker }},
		"suspended for its seed": {mirrortest.New("job"), Target{Suspended: true}, Suspended},
		"fresh start":            {mirrortest.New("job"), Target{FreshStart: true}, FreshStart},
		"a work queue's restart": {mirrortest.New("job").WorkQueue(2).Counted(0, 1), Target{}, FreshStart},
		"a work queue's start":   {mirrortest.New("job").WorkQueue(2), Target{}, func(m *batchv1.Job) bool { return !FreshStart(m) }},
		"deadline left": {mirrortest.New("job").Do(withDeadline), Target{DeadlineSpent: 40*time.Second + 1}, func(m *batchv1.Job) bool {
			return *m.Spec.ActiveDeadlineSeconds == 60
		}},
		"deadline used up": {mirrortest.New("job").Do(withDeadline), Target{DeadlineSpent: time.Hour}, func(m *batchv1.Job) bool {
			return *m.Spec.ActiveDeadlineSeconds == 1
		}},
		"deadline begins anew with a suspension": {mirrortest.New("job").Suspend(true).Do(withDeadline), Target{DeadlineSpent: time.Hour}, func(m *batchv1.Job) bool {
			return *m.Spec.ActiveDeadlineSeconds == 100
		}},
	} {
		if m := Project(row.hub.Obj(), row.target); !row.check(m) {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
