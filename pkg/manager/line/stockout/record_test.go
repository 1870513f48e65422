package stockout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	. "github.com/jobferry/jobferry/pkg/placement/placementtest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

func TestTheWhileGrowsAndOneJobTries(t *testing.T) {
	var r Record
	now := time.Unix(0, 0)
	const timeout = 10 * time.Minute
	for i, want := range []time.Duration{10, 20, 40, 60, 60} {
		until, _, is := r.Failed("w", "shape", named("first"), timeout, now)
		if !is || until.Sub(now) != want*time.Minute {
			t.Fatalf("failure %d: out for %s, %t; want %s minutes", i, until.Sub(now), is, want)
		}
		if _, _, is := r.Failed("w", "shape", named("another"), timeout, now.Add(time.Second)); is {
			t.Error("what is out is counted again")
		}
		if !r.IsOut("w", "shape", named("next"), until.Add(-1)) || r.IsOut("w", "shape", named("next"), until) ||
			r.IsOut("w", "other", named("next"), now) || r.IsOut("v", "shape", named("next"), now) {
			t.Error("it isn't out for that shape in that worker until then")
		}
		now = until
		if _, tries := r.Chosen("w", "shape", named("first"), timeout, now); !tries {
			t.Fatal("no Job tries")
		}
		if !r.IsOut("w", "shape", named("second"), now.Add(time.Second)) || r.IsOut("w", "shape", named("first"), now.Add(time.Second)) {
			t.Error("others follow before a Pod has started")
		}
		if _, _, is := r.Failed("w", "shape", named("old"), timeout, now.Add(time.Second)); is {
			t.Error("a Job that was there before counts while another tries")
		}
		if r.IsOutForAll("w", "shape", named("second"), now.Add(time.Second)) {
			t.Error("it's said to be no use to wait while a Job tries")
		}
	}
	if !r.Started("w", "shape") || r.IsOut("w", "shape", named("next"), now) || !r.IsEmpty() || r.Started("w", "shape") {
		t.Error("it's out though a Pod has started")
	}
}

// TestWhatOneTenantLearnsIsHisOwn has a tenant whose Pods can't start for a reason of his own: by
// their anti-affinity, his other Pods in the worker keep theirs from all nodes. Jobs of others go
// there, until Jobs of two namespaces have failed.
func TestWhatOneTenantLearnsIsHisOwn(t *testing.T) {
	var r Record
	const timeout = 10 * time.Minute
	now := time.Unix(0, 0)
	job := func(namespace string, labels map[string]string) (string, types.NamespacedName) {
		j := NewJob("j").Requests("cpu", "1").Obj()
		j.Namespace, j.Spec.Template.Labels = namespace, labels
		return Fingerprint(j), types.NamespacedName{Namespace: namespace, Name: "j"}
	}
	shape, hostile := job("hostile", map[string]string{"app": "avoided"})
	_, first := job("first", nil)
	_, second := job("second", nil)
	if plain, _ := job("first", nil); plain != shape {
		t.Fatal("the shapes differ, so that nothing can be shared")
	}
	for range 5 { // again and again
		now, _, _ = r.Failed("w", shape, hostile, timeout, now)
	}
	now = now.Add(-time.Minute)
	if !r.IsOut("w", shape, hostile, now) || !r.IsOutForAll("w", shape, hostile, now) {
		t.Error("his own Jobs go there")
	}
	if r.IsOut("w", shape, first, now) || r.IsOutForAll("w", shape, first, now) || r.IsDoubtful("w", shape, first, now) {
		t.Error("another's Job is kept from the worker")
	}
	if _, tries := r.Chosen("w", shape, first, timeout, now); tries {
		t.Error("another's Job has to try")
	}
	until, _, is := r.Failed("w", shape, first, timeout, now)
	if !is || until.Sub(now) != timeout || !r.IsOut("w", shape, second, until.Add(-1)) || r.IsOut("w", shape, second, until) {
		t.Errorf("two agree, and all are out for %s, %t; want %s", until.Sub(now), is, timeout)
	}
	var after Record
	after.Restore("w", r.Entries("w", now), now)
	if !after.IsOut("w", shape, second, now) || !after.IsOut("w", shape, hostile, now) {
		t.Errorf("after a restart there is %+v", after.Entries("w", now))
	}
	// Alone, he doesn't make it longer for all.
	now = until
	if _, tries := r.Chosen("w", shape, hostile, timeout, now); !tries || !r.IsOut("w", shape, second, now) {
		t.Error("more than one Job tries")
	}
	now = now.Add(timeout)
	r.Failed("w", shape, hostile, timeout, now)
	if r.IsOut("w", shape, second, now) {
		t.Error("one tenant keeps all from the worker")
	}
	if !r.Started("w", shape) || !r.IsEmpty() {
		t.Error("a Pod has started, and the worker is out")
	}
}

// TestTenantsDontCrowdOutOthers has a namespace with very many shapes.
func TestTenantsDontCrowdOutOthers(t *testing.T) {
	var r Record
	now := time.Unix(0, 0)
	r.Failed("w", "quiet", types.NamespacedName{Namespace: "quiet", Name: "job"}, time.Minute, now)
	for i := range 10 * maxShapes {
		r.Failed("w", fmt.Sprint(i), named("j"), time.Hour, now)
	}
	if n := len(r.workers["w"]); n != maxShapes {
		t.Errorf("%d shapes are remembered, want %d", n, maxShapes)
	}
	if !r.IsOut("w", "quiet", types.NamespacedName{Namespace: "quiet", Name: "other"}, now) {
		t.Error("the shape of another namespace was forgotten")
	}
	r.Failed("w", "later", named("j"), time.Minute, now.Add(3*time.Hour))
	if n := len(r.workers["w"]); n != 1 {
		t.Errorf("%d shapes are remembered long after, want 1", n)
	}
	r.Forget("w")
	if !r.IsEmpty() {
		t.Error("the worker isn't forgotten")
	}
}

// TestMoreShapesThanAreRememberedAreNoNews has Jobs of a few more shapes than are remembered fail
// again and again: those that have no place are no news, or each failure would be one.
func TestMoreShapesThanAreRememberedAreNoNews(t *testing.T) {
	for name, namespaces := range map[string][]string{"of one namespace": {"a"}, "of two": {"a", "b"}, "of five": {"a", "b", "c", "d", "e"}} {
		t.Run(name, func(t *testing.T) {
			var r Record
			news := 0
			for round := range 10 {
				for i := range maxShapes + 20 {
					job := types.NamespacedName{Namespace: namespaces[i%len(namespaces)], Name: fmt.Sprint(i)}
					if _, _, is := r.Failed("w", fmt.Sprint(i), job, time.Hour, time.Unix(int64(round), 0)); is {
						news++
					}
				}
			}
			if most := maxShapes + 20; news > most || len(r.workers["w"]) != maxShapes {
				t.Errorf("%d failures were news, want at most %d; %d are remembered", news, most, len(r.workers["w"]))
			}
		})
	}
}

func TestShapes(t *testing.T) {
	of := func(change func(*batchv1.Job)) string {
		return Fingerprint(NewJob("j").Requests("cpu", "1").With(change).Obj())
	}
	pod := func(change func(*corev1.PodSpec)) func(*batchv1.Job) {
		return func(job *batchv1.Job) { change(&job.Spec.Template.Spec) }
	}
	plain := of(func(*batchv1.Job) {})
	for name, change := range map[string]func(*batchv1.Job){
		"another name, namespace, image and number of Pods": func(job *batchv1.Job) {
			job.Name, job.Namespace, job.Spec.Template.Spec.Containers[0].Image = "k", "others", "other"
			*job.Spec.Parallelism = 9
			job.Spec.Template.Labels["app"] = "other"
		},
		"a ConfigMap": pod(func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
		}),
	} {
		if of(change) != plain {
			t.Errorf("%s makes another shape", name)
		}
	}
	claim := func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	}
	disk := func(s *corev1.PodSpec) { // that the Pods can't start for, as it's in use
		s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "i"}}}}
	}
	seen := map[string]string{plain: "the plain one"}
	for name, change := range map[string]func(*batchv1.Job){
		"requests":    pod(func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests = Quantities("cpu", "2") }),
		"scheduler":   pod(func(s *corev1.PodSpec) { s.SchedulerName = "mine" }),
		"selector":    pod(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"a": "b"} }),
		"class":       pod(func(s *corev1.PodSpec) { s.PriorityClassName = "high" }),
		"claim":       pod(claim),
		"gates":       pod(func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}} }),
		"host ports":  pod(func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 1}} }),
		"tolerations": pod(func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Key: "a"}} }),
		"a disk":      pod(disk),
		"a disk of another namespace": func(job *batchv1.Job) {
			job.Namespace = "others"
			disk(&job.Spec.Template.Spec)
		},
		"a claim of another namespace": func(job *batchv1.Job) {
			job.Namespace = "others"
			claim(&job.Spec.Template.Spec)
		},
		"spread": pod(func(s *corev1.PodSpec) { s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}} }),
	} {
		if other := seen[of(change)]; other != "" {
			t.Errorf("%s makes the shape of %s", name, other)
		}
		seen[of(change)] = name
	}
}

// What Entries tell is known after a restart: until when, for how long the next time, and that
// somebody tries.
// A tenant's Job has one text as long as an object may be. Little more than the text is made of it.
func TestShapeOfALongText(t *testing.T) {
	job := NewJob("j").Requests("cpu", "1").Obj()
	attributes := map[string]string{"a": strings.Repeat("<", 1<<20)}
	job.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{VolumeAttributes: attributes}}}}
	if cost := costtest.Of(func() { Fingerprint(job) }); cost > 4<<20 {
		t.Errorf("%d MiB are made of it", cost>>20)
	}
}

func TestEntriesOutliveARestart(t *testing.T) {
	const timeout = 10 * time.Minute
	now := time.Unix(0, 0)
	var before, after Record
	for range 2 {
		now, _, _ = before.Failed("w", "often", named("first"), timeout, now)
	}
	end, _, _ := before.Failed("w", "once", named("first"), timeout, now)
	before.Chosen("w", "often", named("tries"), timeout, now)
	before.Failed("w", "long ago", named("first"), time.Minute, now.Add(-2*maxWhile))
	after.Restore("w", before.Entries("w", now), now)
	if got := after.Entries("w", now); len(got) != 2 || !slices.Equal(got, before.Entries("w", now)) {
		t.Errorf("restored %+v", got)
	}
	if !after.IsOut("w", "once", named("next"), end.Add(-1)) || after.IsOut("w", "once", named("next"), end) || !after.IsOutForAll("w", "once", named("next"), now) {
		t.Error("it isn't out until then")
	}
	if after.IsOutForAll("w", "often", named("next"), now) || !after.IsOut("w", "often", named("next"), now) {
		t.Error("it isn't known that somebody tries")
	}
	if until, _, is := after.Failed("w", "often", named("tries"), timeout, now.Add(timeout)); !is || until.Sub(now) != timeout+4*timeout {
		t.Errorf("out again until %s after, %t", until.Sub(now), is)
	}
	after.Restore("w", []Entry{{Shape: "often", Namespace: "team", Failures: 9, Until: now.Add(time.Hour)}}, now)
	if e := after.Entries("w", now); e[0].Failures != 3 {
		t.Errorf("what is known was replaced by what was: %+v", e)
	}
}

// Of very many shapes of one namespace and few of others, those of the others outlive a restart.
func TestEntriesAreBounded(t *testing.T) {
	var r Record
	now := time.Unix(0, 0)
	for i := range maxShapes - 10 {
		r.Failed("w", fmt.Sprintf("many-%d", i), types.NamespacedName{Namespace: "many", Name: "j"}, time.Hour, now)
	}
	for i := range 10 {
		r.Failed("w", fmt.Sprintf("few-%d", i), types.NamespacedName{Namespace: "few", Name: "j"}, time.Minute, now)
	}
	entries := r.Entries("w", now)
	if len(entries) != v1alpha1.MaxStockouts || !strings.HasPrefix(entries[9].Shape, "few-") || len(r.workers["w"]) != maxShapes {
		t.Errorf("%d of %d entries, the tenth %+v", len(entries), len(r.workers["w"]), entries[9])
	}
	var after Record
	after.Restore("w", append(entries, entries...), now)
	if n := len(after.Entries("w", now)); n != v1alpha1.MaxStockouts {
		t.Errorf("%d were restored", n)
	}
	for i := range maxShapes { // the tenants after a restart are those before
		after.Failed("w", fmt.Sprintf("more-%d", i), types.NamespacedName{Namespace: "many", Name: "j"}, time.Hour, now)
	}
	if got := after.Entries("w", now); len(got) < 10 || !strings.HasPrefix(got[9].Shape, "few-") {
		t.Errorf("those of a namespace with few were left out: %+v", got)
	}
}
