package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/util/decoded"
)

func TestSlim(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	end := func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{
			StartTime: &at, CompletionTime: &at, Succeeded: 1, Ready: ptr.To[int32](0), Terminating: ptr.To[int32](0),
			Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: at},
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: at},
			},
		}
	}
	for name, row := range map[string]struct{ hubEnded, mirrorEnded bool }{
		"both run":             {},
		"the mirror has ended": {mirrorEnded: true},
		"both have ended":      {hubEnded: true, mirrorEnded: true},
	} {
		t.Run(name, func(t *testing.T) {
			hub := job().Obj()
			m := mirrorOf(hub, aTarget)
			if row.hubEnded {
				end(hub)
			}
			if row.mirrorEnded {
				end(m)
			}
			slimHub, slimMirror := hub.DeepCopy(), m.DeepCopy()
			slimHub.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
			Slim(slimHub)
			Slim(slimMirror)
			if slimHub.ManagedFields != nil {
				t.Error("managedFields are kept")
			}
			if dropped := slimMirror.Spec.Template.Spec.Containers == nil; dropped != row.mirrorEnded {
				t.Errorf("the mirror's template is dropped: %t, want %t", dropped, row.mirrorEnded)
			}
			now := at.Add(time.Minute)
			if diff := cmp.Diff(Reflect(hub, m, now), Reflect(slimHub, slimMirror, now)); diff != "" {
				t.Errorf("Reflect says something else:\n%s", diff)
			}
			if diff := cmp.Diff(describe(Drift(hub, m, aTarget)), describe(Drift(slimHub, slimMirror, aTarget))); diff != "" {
				t.Errorf("Drift says something else:\n%s", diff)
			}
		})
	}
}

// TestLargeMirrorsAreHeldLight: a template is large by what it takes when it's decoded.
func TestLargeMirrorsAreHeldLight(t *testing.T) {
	for terms, light := range map[int]bool{0: false, 100: false, 1000: true} {
		m := mirrorOf(job().Obj(), aTarget)
		term := corev1.PodAffinityTerm{TopologyKey: "a", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": ""}}}
		m.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: slices.Repeat([]corev1.PodAffinityTerm{term}, terms),
		}}
		size := m.Spec.Template.Size()
		if SlimMirror(m); Light(m) != light {
			t.Errorf("%d terms, %d bytes of protobuf: light: %t", terms, size, Light(m))
		}
	}
}

// What the manager writes to a Job that waits leaves its version as it is, or the Job would lose
// its turn; what a user writes doesn't.
func TestVersionOf(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(*batchv1.Job)
		changes bool
	}{
		"the status": {func(j *batchv1.Job) {
			j.ResourceVersion, j.Finalizers = "2", []string{v1alpha1.FinalizerMirror}
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: "jobferry.dev/Placed", Status: corev1.ConditionFalse})
		}, false},
		"another label": {func(j *batchv1.Job) { j.Labels = map[string]string{"team": "a"} }, false},
		"lightened":     {Lighten, false},
		"the spec":      {func(j *batchv1.Job) { j.Generation++ }, true},
		"another Job":   {func(j *batchv1.Job) { j.UID = "another" }, true},
		"its selector":  {func(j *batchv1.Job) { j.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: "a=b"} }, true},
		"its queue":     {func(j *batchv1.Job) { j.Labels = map[string]string{LabelKueueQueue: "a"} }, true},
		"it's resumed": {func(j *batchv1.Job) {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse})
		}, true},
	} {
		before, after := job().Obj(), job().Obj()
		row.change(after)
		if changes := VersionOf(before) != VersionOf(after); changes != row.changes {
			t.Errorf("%s: it changes: %v, want %v", name, changes, row.changes)
		}
	}
}

// Whatever a worker's API server makes of a mirror, little of it is held, once it's decoded.
func TestSlimMirrorsTakeLittle(t *testing.T) {
	const many = 200_000
	for name, row := range map[string]func(*batchv1.Job){
		"conditions": func(j *batchv1.Job) { j.Status.Conditions = make([]batchv1.JobCondition, many) },
		"finalizers": func(j *batchv1.Job) { j.Finalizers = make([]string, many) },
		"uncounted Pods": func(j *batchv1.Job) {
			j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: make([]types.UID, many), Failed: make([]types.UID, many)}
		},
		"rules of failure": func(j *batchv1.Job) {
			j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: make([]batchv1.PodFailurePolicyRule, many)}
		},
		"rules of success": func(j *batchv1.Job) {
			j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: make([]batchv1.SuccessPolicyRule, many)}
		},
		"a selector": func(j *batchv1.Job) {
			j.Spec.Selector = &metav1.LabelSelector{MatchExpressions: make([]metav1.LabelSelectorRequirement, many)}
		},
		"a selector of 16 KB": func(j *batchv1.Job) {
			j.Spec.Selector = &metav1.LabelSelector{MatchExpressions: make([]metav1.LabelSelectorRequirement, 2_700)}
		},
		"values of a selector": func(j *batchv1.Job) {
			j.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Values: make([]string, many)}}}
		},
		"labels, without a record": func(j *batchv1.Job) {
			for i := range many {
				j.Labels[fmt.Sprint("l", i)] = ""
			}
			delete(j.Annotations, v1alpha1.AnnotationProjected)
		},
		"an annotation of ours": func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationIndexes] = strings.Repeat("1,", many*2) },
		"annotations of ours": func(j *batchv1.Job) {
			for i := range many / 20 { // an API server would store them
				j.Annotations[fmt.Sprint(v1alpha1.KeyPrefix, i)] = ""
			}
		},
		"annotations, without a record": func(j *batchv1.Job) {
			for i := range many / 20 {
				j.Annotations[fmt.Sprint("a", i)] = ""
			}
			delete(j.Annotations, v1alpha1.AnnotationProjected)
		},
		"the value of a label": func(j *batchv1.Job) { j.Labels[v1alpha1.LabelOrigin] = strings.Repeat("a", 4*many) },
		"owners":               func(j *batchv1.Job) { j.OwnerReferences = make([]metav1.OwnerReference, many) },
		"managedFields":        func(j *batchv1.Job) { j.ManagedFields = make([]metav1.ManagedFieldsEntry, many) },
	} {
		m := mirrorOf(job().Obj(), aTarget)
		row(m)
		SlimMirror(m)
		if size := decoded.Size(m); size > 1<<19 {
			t.Errorf("%s: %d bytes are held", name, size)
		}
	}
}
