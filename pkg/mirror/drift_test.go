package mirror

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// mirrorOf is the mirror of a hub Job as a worker's API server stores it.
func mirrorOf(hub *batchv1.Job, target Target) *batchv1.Job {
	m := Project(hub, target)
	m.UID, m.ResourceVersion, m.Generation = "uid-mirror", "7", 1
	stored := mirrortest.New("mirror").Obj()
	if m.Spec.Selector == nil {
		m.Spec.Selector, m.Spec.ManualSelector = stored.Spec.Selector, ptr.To(false)
		m.Spec.Template.Labels = mergeMaps(m.Spec.Template.Labels, stored.Spec.Template.Labels)
	}
	return m
}

func mergeMaps(into, from map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	for k, v := range from {
		into[k] = v
	}
	return into
}

type change = func(*batchv1.Job)

func zone(z string) change {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{"zone": z} }
}

func cpu(q string) change {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}
	}
}

func suspend(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }
func running(j *batchv1.Job) { j.Status.StartTime, j.Status.Active = timePtr(noon), 2 }
func halted(j *batchv1.Job) {
	suspend(j)
	trueFor(batchv1.JobSuspended, "", "", noon)(j)
}

// haltedBefore136 keeps its startTime.
func haltedBefore136(j *batchv1.Job) {
	halted(j)
	j.Status.StartTime = timePtr(noon)
}

var before136 = Target{Origin: "hub-a", Minor: 35}

// Drift, carried out once: the fields that change, or another action.
var driftRows = map[string]struct {
	base   *mirrortest.Job // default: 5 completions, 2 at a time
	hub    change          // since the mirror was made
	mirror change          // of the mirror, by its controller or someone in the worker
	target Target          // default aTarget
	want   string          // of the fields patched, or the action
}{
	"nothing":                         {},
	"suspended on the hub":            {hub: suspend, want: "spec.suspend"},
	"suspended in the worker":         {mirror: halted, want: "spec.suspend"},
	"suspended for its seed":          {mirror: suspend, target: Target{Origin: "hub-a", Suspended: true}},
	"awaits its seed":                 {base: job().Counted(1, 1), target: Target{Origin: "hub-a", Suspended: true}, mirror: halted},
	"parallelism":                     {hub: func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](4) }, want: "spec.parallelism"},
	"parallelism, in the worker":      {mirror: func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](4) }, want: "spec.parallelism"},
	"backoffLimit":                    {hub: func(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](1) }, want: "spec.backoffLimit"},
	"podReplacementPolicy":            {hub: func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) }, want: "spec.podReplacementPolicy"},
	"activeDeadlineSeconds":           {hub: func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = ptr.To[int64](9) }, want: "spec.activeDeadlineSeconds"},
	"a TTL by a policy in the worker": {mirror: func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To[int32](0) }, want: "metadata.finalizers spec.ttlSecondsAfterFinished"},
	"a TTL that went":                 {mirror: func(j *batchv1.Job) { j.Finalizers = []string{v1alpha1.FinalizerEnd, "example.com/theirs"} }, want: "metadata.finalizers"},
	"a TTL on the hub":                {hub: func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = ptr.To[int32](0) }},
	"maxFailedIndexes":                {base: indexedJob(), hub: func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = ptr.To[int32](1) }, want: "spec.maxFailedIndexes"},
	"elastic":                         {base: job().Indexed(5).Parallelism(5), hub: scaled(3, 3), want: "spec.completions spec.parallelism"},
	"elastic, then parallelism alone": {base: job().Indexed(5).Parallelism(5), hub: scaled(3, 1), want: "spec.completions spec.parallelism"},
	"a label":                         {hub: func(j *batchv1.Job) { j.Labels = map[string]string{"team": "b"} }, want: "metadata.annotations metadata.labels"},
	"a label, in the worker":          {mirror: func(j *batchv1.Job) { j.Labels["seen"] = "yes" }},
	"no record any more":              {mirror: func(j *batchv1.Job) { delete(j.Annotations, v1alpha1.AnnotationProjected) }, want: "metadata.annotations"},
	"ended":                           {hub: suspend, mirror: trueFor(batchv1.JobComplete, "", "", noon)},
	"being deleted":                   {hub: suspend, mirror: func(j *batchv1.Job) { j.DeletionTimestamp = timePtr(noon) }},

	"node selector, never started":        {base: job().Suspend(true), hub: zone("a"), want: "metadata.annotations spec.template"},
	"node selector and resumed at once":   {base: job().Suspend(true), hub: both(zone("a"), resume), want: "metadata.annotations spec.suspend spec.template"},
	"node selector while it runs":         {hub: zone("a"), mirror: running, want: "spec.suspend"},
	"node selector while it stops":        {hub: zone("a"), mirror: both(running, suspend)},
	"node selector, stopped":              {hub: zone("a"), mirror: halted, want: "metadata.annotations spec.suspend spec.template"},
	"node selector, stopped, before 1.36": {hub: zone("a"), mirror: haltedBefore136, target: before136, want: "Recreate spec.template (scheduling directives)"},
	"node selector, in the worker":        {mirror: zone("b")},
	"resources, never started":            {base: job().Suspend(true), hub: cpu("2"), want: "metadata.annotations spec.template"},
	"resources, before 1.36":              {base: job().Suspend(true), hub: cpu("2"), target: before136, want: "Recreate spec.template.spec.containers[*].resources"},
	"resources, unknown version":          {base: job().Suspend(true), hub: cpu("2"), target: Target{Origin: "hub-a"}, want: "Recreate spec.template.spec.containers[*].resources"},

	"given to another controller":  {mirror: managedBy("example.com/other"), want: "Refuse spec.managedBy"},
	"and suspended on the hub":     {mirror: managedBy("example.com/other"), hub: suspend, want: "spec.suspend"},
	"and has its seed":             {mirror: both(managedBy("example.com/other"), halted), want: "spec.suspend"},
	"and another template":         {mirror: managedBy("example.com/other"), hub: zone("a"), want: "Refuse spec.managedBy"},
	"managed by the built-in":      {mirror: managedBy(batchv1.JobControllerName)},
	"now embedded, not started":    {target: Target{Origin: "hub-a", JobController: v1alpha1.JobControllerEmbedded}, want: "Recreate spec.managedBy"},
	"now embedded, started before": {target: Target{Origin: "hub-a", JobController: v1alpha1.JobControllerEmbedded}, mirror: running},
}

func TestDrift(t *testing.T) {
	for name, row := range driftRows {
		t.Run(name, func(t *testing.T) {
			if row.base == nil {
				row.base = job()
			}
			if row.target.Origin == "" {
				row.target = aTarget
			}
			hub := row.base.Obj()
			m := mirrorOf(hub, aTarget)
			if row.target.Suspended {
				m = mirrorOf(hub, row.target)
			}
			for _, c := range []struct {
				change change
				job    *batchv1.Job
			}{{row.hub, hub}, {row.mirror, m}} {
				if c.change != nil {
					c.change(c.job)
				}
			}
			if got := describe(Drift(hub, m, row.target)); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// A mirror that awaits its seed follows the hub in all but this: it stays suspended, and is seeded
// when it has the completions that its seed is for.
func TestDriftUntilSeeded(t *testing.T) {
	hub := job().Indexed(5).Parallelism(5).Generation(2).Counted(2, 0).CompletedIndexes("3,4").Obj()
	m := mirrorOf(job().Indexed(2).Parallelism(2).Obj(), Target{Origin: "hub-a", Suspended: true})
	if _, due := SeedDue(hub, m); due {
		t.Error("indexes beyond the mirror's completions are seeded")
	}
	aligned := applyBytes(t, m, Drift(hub, m, aTarget).(Patch).Bytes())
	if !Suspended(aligned) || *aligned.Spec.Completions != 5 {
		t.Errorf("got %+v", aligned.Spec)
	}
	seed, due := SeedDue(hub, aligned)
	if !due {
		t.Fatal("no seed is due")
	}
	seeded := applyBytes(t, aligned, SeedPatch(aligned, &seed))
	if _, again := SeedDue(hub, seeded); again || seeded.Status.CompletedIndexes != "3,4" {
		t.Errorf("seeded with %+v", seeded.Status)
	}
	if got := describe(Drift(hub, seeded, aTarget)); got != "spec.suspend" {
		t.Errorf("then %q", got)
	}
}

// ganged makes the Job a gang of that size; 0: as many as run at once.
func ganged(minCount int32) change {
	return func(j *batchv1.Job) {
		gang := &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}
		if minCount > 0 {
			gang.MinCount = &minCount
		}
		j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{
			SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: gang},
		}
	}
}

// The size of a gang follows the hub's, never beyond the parallelism that the same patch sets.
func TestDriftOfAGang(t *testing.T) {
	hub := job().Indexed(6).Parallelism(6).Do(ganged(6)).Obj()
	m := mirrorOf(hub, aTarget)
	scaled(3, 3)(hub)
	hub.Spec.Parallelism = ptr.To[int32](5)
	ganged(5)(hub)
	for _, want := range []int32{3, 5} {
		act := Drift(hub, m, aTarget)
		patch, ok := act.(Patch)
		if !ok || len(patch.Notes) > 0 {
			t.Fatalf("got %#v", act)
		}
		m = applyBytes(t, m, patch.Bytes())
		if got := gang(&m.Spec).MinCount; *got != want || *m.Spec.Parallelism != want {
			t.Errorf("minCount %d of %d Pods, want %d", *got, *m.Spec.Parallelism, want)
		}
	}
	ganged(0)(hub)
	m = applyBytes(t, m, Drift(hub, m, aTarget).(Patch).Bytes())
	if gang(&m.Spec).MinCount != nil {
		t.Errorf("minCount is %d, and unset on the hub", *gang(&m.Spec).MinCount)
	}
	if act := Drift(hub, m, aTarget); !cmp.Equal(act, Action(None{})) {
		t.Errorf("then %#v", act)
	}
}

// A gang is seeded after its worker's Job controller has seen it, which first makes its PodGroup.
func TestGangIsSeededOnceSeen(t *testing.T) {
	hub := job().Indexed(5).Do(ganged(2)).Counted(2, 0).CompletedIndexes("3,4").Obj()
	m := mirrorOf(hub, Target{Origin: "hub-a", Suspended: true})
	if _, due := SeedDue(hub, m); due {
		t.Error("a new mirror is seeded")
	}
	halted(m)
	if _, due := SeedDue(hub, m); !due {
		t.Error("no seed is due")
	}
}

func describe(a Action) string {
	switch a := a.(type) {
	case Patch:
		return strings.Join(a.Fields, " ")
	case Recreate:
		return "Recreate " + a.Field
	case Refuse:
		return "Refuse " + a.Field
	default:
		return ""
	}
}

func both(a, b change) change { return func(j *batchv1.Job) { a(j); b(j) } }

func resume(j *batchv1.Job) { j.Spec.Suspend = ptr.To(false) }

func scaled(completions, parallelism int32) change {
	return func(j *batchv1.Job) { j.Spec.Completions, j.Spec.Parallelism = &completions, &parallelism }
}

func managedBy(name string) change {
	return func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(name) }
}

// A worker shows little of a large Job, by which it isn't light. It isn't compared as values of
// JSON, nor is each change named.
func TestDriftOfALargeJobOfWhichLittleIsShown(t *testing.T) {
	hub := job().Obj()
	hub.Spec.Template.Spec.Containers[0].Env = make([]corev1.EnvVar, 100_000)
	m := mirrorOf(hub, aTarget)
	m.Spec.Template.Spec.Containers[0].Env = nil
	var act Action
	n := testing.AllocsPerRun(1, func() { act = Drift(hub, m, aTarget) })
	if none, is := act.(None); !is || len(none.Notes) != 1 || n > 10_000 {
		t.Errorf("%.0f allocations, %.200q", n, fmt.Sprint(act))
	}
	suspend(hub)
	suspend(m)
	zone("a")(hub)
	if n := testing.AllocsPerRun(1, func() { act = Drift(hub, m, aTarget) }); describe(act) != "Recreate spec.template" || n > 10_000 {
		t.Errorf("when it's to change: %.0f allocations, %s", n, describe(act))
	}
}

// What a worker's admission did at creation: tolerated, or named; never fought.
func TestDriftByAdmission(t *testing.T) {
	pod := func(f func(*corev1.PodSpec)) change {
		return func(j *batchv1.Job) { f(&j.Spec.Template.Spec) }
	}
	for name, row := range map[string]struct {
		admission change
		want      []string
	}{
		"defaulting": {pod(func(p *corev1.PodSpec) { p.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority) }), nil},
		"a sidecar": {pod(func(p *corev1.PodSpec) {
			p.Containers = append([]corev1.Container{{Name: "proxy"}}, p.Containers...)
			p.Volumes = append(p.Volumes, corev1.Volume{Name: "proxy"})
		}), nil},
		"a toleration": {pod(func(p *corev1.PodSpec) {
			p.Tolerations = append([]corev1.Toleration{{Key: "batch"}}, p.Tolerations...)
		}), nil},
		"a label": {func(j *batchv1.Job) { j.Spec.Template.Labels["cost"] = "x" }, nil},
		"an env variable": {pod(func(p *corev1.PodSpec) {
			p.Containers[0].Env = append(p.Containers[0].Env, corev1.EnvVar{Name: "PROXY"})
		}), nil},
		"another image":   {pod(func(p *corev1.PodSpec) { p.Containers[0].Image = "local/busybox:1" }), []string{"spec.template.spec.containers[main].image"}},
		"other arguments": {pod(func(p *corev1.PodSpec) { p.Containers[0].Args = []string{"b"} }), []string{"spec.template.spec.containers[main].args"}},
		"a container gone": {pod(func(p *corev1.PodSpec) { p.Containers = p.Containers[1:] }), []string{
			"spec.template.spec.containers[main].args", "spec.template.spec.containers[main].image",
			"spec.template.spec.containers[main].imagePullPolicy", "spec.template.spec.containers[main].name",
			"spec.template.spec.containers[main].terminationMessagePath", "spec.template.spec.containers[main].terminationMessagePolicy",
		}},
		"a toleration gone": {pod(func(p *corev1.PodSpec) { p.Tolerations = nil }), []string{"spec.template.spec.tolerations[0]"}},
		"another node":      {zone("b"), []string{"spec.template.spec.nodeSelector.zone"}},
		"other completions": {func(j *batchv1.Job) { j.Spec.Completions = ptr.To[int32](1) }, []string{"spec.completions"}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := job().Do(both(zone("a"), pod(func(p *corev1.PodSpec) {
				p.Containers[0].Args = []string{"a"}
				p.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
			}))).Obj()
			m := mirrorOf(hub, aTarget)
			row.admission(m)
			none, ok := Drift(hub, m, aTarget).(None)
			if !ok {
				t.Fatalf("got %+v", Drift(hub, m, aTarget))
			}
			var fields []string
			for _, n := range none.Notes {
				fields = append(fields, n.Field)
			}
			if diff := cmp.Diff(row.want, fields); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A worker says that a mirror has a Job controller with a name of megabytes, which isn't what was
// written. Little is made of it.
func TestDriftOfALongControllerIsCheap(t *testing.T) {
	hub := job().Obj()
	m := mirrorOf(hub, aTarget)
	m.Spec.ManagedBy = ptr.To(strings.Repeat("\x00", 4<<20))
	var act Action
	if cost := costtest.Of(func() { act = Drift(hub, m, aTarget) }); cost > 1<<20 {
		t.Errorf("%d MiB are made of it", cost>>20)
	}
	if r, is := act.(Refuse); !is || r.Field != "spec.managedBy" {
		t.Errorf("%T", act)
	}
}
