package mirror

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// agreedEdits are what may happen to a Job or a mirror. Those of the spec count as API servers
// count them.
var agreedEdits = []change{
	running, ended, announced, suspend, resume, managedBy("example.org/other"), zone("b"), cpu("2"), scaled(3, 3), halted,
	func(j *batchv1.Job) { j.Status = batchv1.JobStatus{} },
	func(j *batchv1.Job) { j.Status.Succeeded++ },
	func(j *batchv1.Job) { j.Status.Failed++ },
	func(j *batchv1.Job) { j.Spec.Completions = nil },
	func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To[int32](5) },
	func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](50) },
	func(j *batchv1.Job) { j.Labels["app"] = "other" },
	func(j *batchv1.Job) { delete(j.Labels, "app") },
	func(j *batchv1.Job) { j.Annotations["note"] = "other" },
	func(j *batchv1.Job) { clear(j.Annotations) },
	func(j *batchv1.Job) { j.Finalizers = append(j.Finalizers, "example.org/janitor") },
	func(j *batchv1.Job) { j.Finalizers = nil },
	func(j *batchv1.Job) { j.UID += "x" },
}

func ended(j *batchv1.Job) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})
}

func announced(j *batchv1.Job) {
	j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue})
}

var agreedTargets = []func(*Target){
	func(t *Target) { t.Minor++ },
	func(t *Target) { t.Suspended = !t.Suspended },
	func(t *Target) { t.FreshStart = !t.FreshStart },
	func(t *Target) { t.Recent = nil },
	func(t *Target) { t.Recent = &recentfields.Fingerprints{"spec.new": "x"} },
	func(t *Target) { t.Indexes = ptr.To("0-3") },
}

// Whatever happens: while the digest stays the same, Drift gives the same answer. While only the
// statuses of a Job that runs change, it stays the same.
func TestAgreedDigest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	pick := func(from []change) change { return from[random.IntN(len(from))] }
	same, kept := 0, 0
	for range 5_000 {
		target := aTarget
		hub := job().Label("app", "pi").Annotation("note", "n").Generation(1).Obj()
		m := mirrorOf(hub, target)
		m.UID, m.Generation = "mirror", 1
		// a state, and the next one
		edit := func() {
			spec := []*batchv1.JobSpec{hub.Spec.DeepCopy(), m.Spec.DeepCopy()}
			switch random.IntN(5) {
			case 0:
				pick(agreedEdits)(hub)
			case 1:
				agreedTargets[random.IntN(len(agreedTargets))](&target)
			case 2:
				m.Finalizers = append(m.Finalizers, "example.org/other")
			default:
				pick(agreedEdits)(m)
			}
			for i, j := range []*batchv1.Job{hub, m} {
				if j.Annotations == nil {
					j.Annotations = map[string]string{}
				}
				if !cmp.Equal(spec[i], &j.Spec) {
					j.Generation++
				}
			}
		}
		for range random.IntN(3) {
			edit()
		}
		before, was := AgreedDigest(hub, m, target), Drift(hub, m, target)
		edit()
		after, is := AgreedDigest(hub, m, target), Drift(hub, m, target)
		switch {
		case before == 0 || before != after:
			continue
		case describe(is) != describe(was):
			t.Fatalf("%s, then %s", describe(was), describe(is))
		}
		same++
		if _, none := is.(None); none {
			kept++
		}
	}
	if same < 300 || kept < 150 {
		t.Errorf("the digest stayed the same %d times, with nothing to do %d times", same, kept)
	}
}

// All that Drift reads of the metadata is in it.
func TestAgreedDigestReads(t *testing.T) {
	hub := job().Label("app", "pi").Annotation("note", "n").Generation(1).Obj()
	m := mirrorOf(hub, aTarget)
	m.UID, m.Generation = "mirror", 1
	is := AgreedDigest(hub, m, aTarget)
	if is == 0 || is != AgreedDigest(hub.DeepCopy(), m.DeepCopy(), aTarget) {
		t.Fatal("the digest of the same isn't the same")
	}
	for name, edit := range map[string]func(hub, m *batchv1.Job, target *Target){
		"label of the hub":          func(hub, _ *batchv1.Job, _ *Target) { hub.Labels["x"] = "y" },
		"annotation of the hub":     func(hub, _ *batchv1.Job, _ *Target) { hub.Annotations["note"] = "o" },
		"generation of the hub":     func(hub, _ *batchv1.Job, _ *Target) { hub.Generation++ },
		"another Job":               func(hub, _ *batchv1.Job, _ *Target) { hub.UID = types.UID("other") },
		"label of the mirror":       func(_, m *batchv1.Job, _ *Target) { delete(m.Labels, "app") },
		"annotation of the mirror":  func(_, m *batchv1.Job, _ *Target) { m.Annotations["note"] = "o" },
		"a label as an annotation":  func(_, m *batchv1.Job, _ *Target) { delete(m.Labels, "app"); m.Annotations["app"] = "pi" },
		"generation of the mirror":  func(_, m *batchv1.Job, _ *Target) { m.Generation++ },
		"another mirror":            func(_, m *batchv1.Job, _ *Target) { m.UID = types.UID("other") },
		"finalizer of the mirror":   func(_, m *batchv1.Job, _ *Target) { m.Finalizers = append(m.Finalizers, "a/b") },
		"release of the worker":     func(_, _ *batchv1.Job, target *Target) { target.Minor++ },
		"origin":                    func(_, _ *batchv1.Job, target *Target) { target.Origin = "other" },
		"recent fields":             func(_, _ *batchv1.Job, target *Target) { target.Recent = &recentfields.Fingerprints{"a": "b"} },
		"recent fields are unknown": func(_, _ *batchv1.Job, target *Target) { target.Recent = nil },
	} {
		target := aTarget
		target.Recent = &recentfields.Fingerprints{}
		a, b := hub.DeepCopy(), m.DeepCopy()
		before := AgreedDigest(a, b, target)
		if edit(a, b, &target); AgreedDigest(a, b, target) == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}
