package scheduling

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kindOfPods is one kind of the Pods of a group, in a test.
type kindOfPods struct {
	name string
	pods int64
	// cpu of each.
	cpu    string
	change func(*corev1.PodTemplateSpec)
}

func (k kindOfPods) job() *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: k.name, Namespace: "ns", UID: "uid"}}
	template := &job.Spec.Template
	template.Labels = map[string]string{"role": k.name}
	template.Spec.Containers = []corev1.Container{{Name: "main"}}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	cpu(&template.Spec, k.cpu)
	if k.change != nil {
		k.change(template)
	}
	return job
}

// asking is the group of which one member asks.
func asking(kinds []kindOfPods, i int) *Group {
	var mates []Mate
	for k := range kinds {
		if k != i {
			mates = append(mates, Mate{kinds[k].job(), kinds[k].pods})
		}
	}
	return NewGroup(NewJob(kinds[i].job()), mates)
}

func pod(name string, pods int64, cpu string, changes ...func(*corev1.PodTemplateSpec)) kindOfPods {
	return kindOfPods{name, pods, cpu, func(t *corev1.PodTemplateSpec) {
		for _, change := range changes {
			change(t)
		}
	}}
}

func near(role, key string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		affinityOf(t).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{roleTerm(role, key)}}
	}
}

func awayFrom(role, key string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		affinityOf(t).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{roleTerm(role, key)}}
	}
}

func affinityOf(t *corev1.PodTemplateSpec) *corev1.Affinity {
	if t.Spec.Affinity == nil {
		t.Spec.Affinity = &corev1.Affinity{}
	}
	return t.Spec.Affinity
}

func roleTerm(role, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}}}
}

func spread(role, key string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.TopologySpreadConstraints = append(t.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}},
		})
	}
}

func labelled(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Labels[key] = value }
}

func onNodes(key, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{key: value} }
}

func hostPort(t *corev1.PodTemplateSpec) {
	t.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
}

func withGPUs(amount string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources.Requests["gpu.com/gpu"] = resource.MustParse(amount)
	}
}

// zonesOf are nodes of 4 CPUs, of which each zone has some; so many Pods of 1 CPU run on each node.
func zonesOf(zones, nodes, running int) *world {
	w := &world{}
	for z := range zones {
		for n := range nodes {
			name := string(rune('a'+z)) + string(rune('0'+n))
			w.node(name, "zone="+string(rune('a'+z)))
			for range running {
				w.pod(name)
			}
		}
	}
	return w
}

// gpuNodes have 96 CPUs and 8 GPUs each.
func gpuNodes(n int) *world {
	w := &world{}
	for i := range n {
		w.node(string(rune('a'+i)), "zone=a").Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse("96"), "pods": resource.MustParse("110"), "gpu.com/gpu": resource.MustParse("8"),
		}
	}
	return w
}

// Whichever member asks, the verdict is the same.
func TestGroup(t *testing.T) {
	w := pod("workers", 6, "1")
	for name, row := range map[string]struct {
		world   *world
		kinds   []kindOfPods
		verdict Verdict
	}{
		"all at once":                       {zonesOf(1, 2, 0), []kindOfPods{pod("driver", 1, "1"), w}, FitsNow},
		"each alone":                        {zonesOf(1, 2, 1), []kindOfPods{pod("driver", 1, "1"), w}, FitsLater},
		"the larger ones come last":         {zonesOf(1, 2, 1), []kindOfPods{pod("large", 1, "3"), pod("small", 2, "1")}, FitsLater},
		"the larger ones have nodes left":   {zonesOf(1, 3, 1), []kindOfPods{pod("large", 1, "3"), pod("small", 2, "1")}, FitsNow},
		"none never fits alone":             {zonesOf(1, 2, 0), []kindOfPods{pod("driver", 1, "5"), w}, Never},
		"wider than the worker, idle":       {zonesOf(1, 2, 0), []kindOfPods{pod("a", 8, "1"), pod("b", 8, "1")}, FitsNow},
		"wider than the worker, not idle":   {zonesOf(1, 2, 1), []kindOfPods{pod("a", 8, "1"), pod("b", 8, "1")}, FitsLater},
		"other nodes":                       {zonesOf(2, 1, 0), []kindOfPods{pod("a", 4, "1", onNodes("zone", "a")), pod("b", 4, "1", onNodes("zone", "b"))}, FitsNow},
		"a driver beside GPUs":              {gpuNodes(2), []kindOfPods{pod("driver", 4, "1"), pod("workers", 16, "8", withGPUs("1"))}, FitsNow},
		"three shapes take a slot together": {zonesOf(1, 1, 0), []kindOfPods{pod("c", 1, "2"), pod("a", 1, "1"), pod("b", 1, "1500m")}, FitsNow}, // wider
		"one port":                          {zonesOf(1, 1, 0), []kindOfPods{pod("a", 1, "1", hostPort), pod("b", 1, "1", hostPort)}, FitsNow},   // in an idle worker
		"one port, not idle":                {zonesOf(1, 2, 1), []kindOfPods{pod("a", 1, "1", hostPort), pod("b", 2, "1", hostPort)}, FitsNow},   // no more ever do
		"a port each":                       {zonesOf(1, 2, 1), []kindOfPods{pod("a", 1, "1", hostPort), pod("b", 1, "1", hostPort)}, FitsNow},
		"near a mate":                       {zonesOf(2, 2, 1), []kindOfPods{pod("driver", 1, "1"), pod("workers", 4, "1", near("driver", "zone"))}, FitsNow},
		"near a mate, too many":             {zonesOf(2, 2, 1), []kindOfPods{pod("driver", 1, "1"), pod("workers", 6, "1", near("driver", "zone"))}, FitsLater},
		"each waits for the other":          {zonesOf(1, 1, 1), []kindOfPods{pod("a", 1, "1", near("b", "zone")), pod("b", 1, "1", near("a", "zone"))}, FitsLater},
		"one waits for the other, and that for one": {
			zonesOf(1, 1, 1), []kindOfPods{pod("a", 1, "1", near("b", "zone")), pod("b", 1, "1", near("c", "zone")), pod("c", 1, "1")}, FitsNow,
		},
		"away from a mate":                          {zonesOf(3, 1, 1), []kindOfPods{pod("a", 1, "1", awayFrom("b", "zone")), pod("b", 2, "1")}, FitsNow},
		"away from a mate, which may be everywhere": {zonesOf(2, 1, 1), []kindOfPods{pod("a", 1, "1", awayFrom("b", "zone")), pod("b", 2, "1")}, FitsLater},
		"a mate that keeps away":                    {zonesOf(2, 1, 1), []kindOfPods{pod("a", 1, "1"), pod("b", 2, "1", awayFrom("a", "zone"))}, FitsLater},
		"a zone for each": {zonesOf(2, 2, 1), []kindOfPods{
			pod("a", 6, "1", near("a", "zone"), awayFrom("b", "zone")), pod("b", 6, "1", near("b", "zone"), awayFrom("a", "zone")),
		}, FitsNow},
		"too few zones": {zonesOf(2, 2, 1), []kindOfPods{
			pod("a", 2, "1", near("a", "zone"), awayFrom("b", "zone")), pod("b", 2, "1", near("b", "zone"), awayFrom("a", "zone")),
			pod("c", 2, "1", near("c", "zone"), awayFrom("a", "zone")),
		}, FitsLater}, // b and c may take one each
		"spread beside others":          {zonesOf(2, 2, 1), []kindOfPods{pod("a", 2, "1"), pod("b", 4, "1", spread("b", "zone"))}, FitsNow},
		"spread, and one zone is taken": {zonesOf(2, 1, 1), []kindOfPods{pod("a", 3, "1"), pod("b", 2, "1", spread("b", "zone"))}, FitsLater},
		"a mate is counted": {zonesOf(2, 1, 1), []kindOfPods{
			pod("a", 1, "1", labelled("role", "b"), onNodes("zone", "a")), pod("b", 5, "1", spread("b", "zone")),
		}, FitsLater},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSnapshot(row.world.nodes, row.world.pods, nil)
			for i := range row.kinds {
				if a := asking(row.kinds, i).Judge(s, row.kinds[i].pods); a.Verdict != row.verdict {
					t.Errorf("%s asks: %v, want %v: %+v", row.kinds[i].name, a.Verdict, row.verdict, a)
				}
			}
		})
	}
}

// The quotas of the Job's namespace count all Pods of the group; a mate's in another namespace
// aren't known.
func TestGroupQuota(t *testing.T) {
	elsewhere := func(m Mate) Mate {
		m.Job.Namespace = "other"
		return m
	}
	own, mate := pod("a", 2, "1").job(), Mate{pod("b", 2, "1").job(), 2}
	for name, row := range map[string]struct {
		hard, used string
		mate       Mate
		verdict    Verdict
	}{
		"room for all":            {"4", "0", mate, FitsNow},
		"room for each":           {"4", "1", mate, FitsLater},
		"never more":              {"3", "0", mate, FitsNow},
		"room for none":           {"0", "0", mate, Never},
		"a mate elsewhere":        {"2", "0", elsewhere(Mate{pod("b", 2, "1").job(), 2}), FitsNow},
		"too little without them": {"1", "0", elsewhere(Mate{pod("b", 2, "1").job(), 2}), FitsNow}, // in an idle namespace
	} {
		t.Run(name, func(t *testing.T) {
			w := zonesOf(1, 2, 1)
			s := NewSnapshot(w.nodes, w.pods, nil)
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}}
			quota.Status.Used = corev1.ResourceList{"pods": resource.MustParse(row.used)}
			quota.Status.Hard = corev1.ResourceList{"pods": resource.MustParse(row.hard)}
			s.Admission = &Admission{Quotas: []*corev1.ResourceQuota{quota}}
			if a := NewGroup(NewJob(own), []Mate{row.mate}).Judge(s, 2); a.Verdict != row.verdict {
				t.Errorf("%v, want %v: %+v", a.Verdict, row.verdict, a)
			}
		})
	}
}

// A claim of all Pods is in nobody's way once it's bound, unless it's for one Pod at a time.
func TestGroupWithOneClaim(t *testing.T) {
	claimed := func(p *corev1.PodTemplateSpec) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: data}}
	}
	kinds := []kindOfPods{pod("a", 2, "1", claimed), pod("b", 2, "1", claimed)}
	for name, row := range map[string]struct {
		volume  string
		modes   []corev1.PersistentVolumeAccessMode
		verdict Verdict
	}{
		"bound":             {"volume", nil, FitsNow},
		"to be bound":       {"", nil, FitsLater},
		"one Pod at a time": {"volume", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, FitsLater},
	} {
		t.Run(name, func(t *testing.T) {
			w := zonesOf(1, 2, 1)
			s := NewSnapshot(w.nodes, w.pods, nil)
			volumes, claim := storage("example.com")
			claim.Spec.VolumeName, claim.Spec.AccessModes = row.volume, row.modes
			volumes.Volumes = map[string]*corev1.PersistentVolume{"volume": {}}
			s.Volumes = volumes
			if a := asking(kinds, 0).Judge(s, 2); a.Verdict != row.verdict {
				t.Errorf("%v, want %v: %+v", a.Verdict, row.verdict, a)
			}
		})
	}
}
