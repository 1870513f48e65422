package scheduling

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

func ephemeral(claim *corev1.PersistentVolumeClaim) corev1.VolumeSource {
	return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim.Spec}}}
}

// Many nodes with volumes of their own are no obstacle to an exact answer.
func TestManyLocalVolumes(t *testing.T) {
	w := &world{}
	volumes, claim := storage("kubernetes.io/no-provisioner")
	for n := range 300 {
		name := fmt.Sprint("n", n)
		w.node(name)
		volumes.local(name, name)
	}
	pv := volumes.local("n0", "n0") // it is bound
	pv.Status.Phase, pv.Spec.ClaimRef = corev1.VolumeBound, &corev1.ObjectReference{Namespace: "ns", Name: "v"}
	expect(t, w.judgeStored(volumes, ephemeral(claim), 299), FitsNow, 299, "")
	// more never fit
	expect(t, w.judgeStored(volumes, ephemeral(claim), 400), FitsNow, 299, noVolume.Message)
}

// A worker may say that it has very many nodes and volumes, which all have to be compared: a Job is
// then taken to fit, in a time that doesn't grow with them.
func TestAWorkerWithVeryManyVolumes(t *testing.T) {
	w := &world{}
	volumes, claim := storage("example.com")
	for n := range 5_000 {
		w.node(fmt.Sprint("n", n))
	}
	tooSmall := metav1.LabelSelector{}
	volumes.Drivers = map[string]*storagev1.CSIDriver{"example.com": {Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}}
	volumes.Capacities = map[string][]*storagev1.CSIStorageCapacity{"late": slices.Repeat(
		[]*storagev1.CSIStorageCapacity{{StorageClassName: "late", Capacity: ptr.To(list("storage", "1Ki")["storage"]), NodeTopology: &tooSmall}}, 20_000)}
	for v := range 20_000 {
		pv := volumes.local(fmt.Sprint("v", v), "nowhere")
		term := &pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
		term.MatchExpressions[0].Operator, term.MatchExpressions[0].Values = corev1.NodeSelectorOpDoesNotExist, nil
	}
	for name, source := range map[string]corev1.VolumeSource{"one for all": data, "one each": ephemeral(claim)} {
		began := time.Now()
		got := w.judgeStored(volumes, source, 100)
		if took := time.Since(began); took > time.Minute || got.Verdict != FitsNow {
			t.Errorf("%s: %v after %s: %v", name, got.Verdict, took, got.Reasons)
		} else {
			t.Logf("%s: %s", name, took)
		}
	}
}

// A tenant's Job has a claim with the same access mode very many times. They are read once, not for
// each node.
func TestAClaimOfVeryManyModes(t *testing.T) {
	_, claim := storage("example.com")
	claim.Spec.AccessModes = slices.Repeat(claim.Spec.AccessModes, 80_000)
	j := jobOf(func(p *corev1.PodTemplateSpec) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: ephemeral(claim)}}
	})
	s := NewSnapshot(nil, nil, nil)
	s.Volumes, _ = storage("example.com")
	if b := bindingOf(j, view{Snapshot: s}); len(b.own) != 1 || len(b.own[0].Spec.AccessModes) != 1 {
		t.Errorf("%d modes are read for each node", len(b.own[0].Spec.AccessModes))
	}
}

// A volume that several nodes can use serves one Pod, however it names the nodes.
func TestVolumesOfSeveralNodes(t *testing.T) {
	zone := func(values ...string) []corev1.NodeSelectorRequirement {
		return []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: values}}
	}
	names := []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}}
	all := []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}
	const none = "kubernetes.io/no-provisioner"
	for _, c := range []struct {
		name        string
		of          []corev1.NodeSelectorRequirement
		now         int64
		volumes     int
		provisioner string
	}{
		{"of a zone", zone("1"), 1, 1, none},
		{"two of a zone", zone("1"), 2, 2, none},
		{"of another zone", zone("2"), 0, 1, none},
		{"of several zones", zone("1", "2"), 1, 1, none},
		{"one of which can't be", zone("1", "-"), 0, 1, none},
		{"of nodes by name", names, 1, 1, none},
		{"of all with a label", all, 1, 1, none},
		{"of a zone, where more are made", zone("1"), 3, 1, "example.com"},
	} {
		w := &world{}
		w.node("a", "zone=1")
		w.node("b", "zone=1")
		volumes, claim := storage(c.provisioner)
		for i := range c.volumes {
			volumes.local(fmt.Sprint("v", i), "").Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions = c.of
		}
		if got := w.judgeStored(volumes, ephemeral(claim), 3); got.Now != c.now {
			t.Errorf("%s: %d Pods fit now, want %d", c.name, got.Now, c.now)
		}
	}
}

// A volume for each of very many labels: few of them are in the index, and the others count as
// candidates everywhere.
func TestVolumesOfVeryManyLabels(t *testing.T) {
	const volumes = 1000
	f := &freeVolumes{byLabel: map[string]map[string][]*corev1.PersistentVolume{}}
	for i := range volumes {
		pv := &corev1.PersistentVolume{}
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: fmt.Sprint("key-", i), Operator: corev1.NodeSelectorOpIn, Values: []string{"x"}}},
		}}}}
		f.add(pv)
	}
	if len(f.byLabel) != maxVolumeLabels || len(f.others) != volumes-maxVolumeLabels {
		t.Errorf("%d labels, %d others", len(f.byLabel), len(f.others))
	}
}

// Selectors of claims, of volumes and of storage are read again for each comparison: a Job by which
// much of them is read isn't judged lightly.
func TestSelectorsThatAreReadAgainAreWork(t *testing.T) {
	values := many(2000)
	requirement := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: values}}}
	for name, row := range map[string]struct {
		change  func(*Volumes, *corev1.PersistentVolumeClaim)
		tooMuch bool
	}{
		"nothing":            {func(*Volumes, *corev1.PersistentVolumeClaim) {}, false},
		"a claim's selector": {func(_ *Volumes, c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &requirement }, true},
		"the nodes of volumes": {func(v *Volumes, _ *corev1.PersistentVolumeClaim) {
			for i := range 100 {
				term := &v.local(fmt.Sprint("v", i), "nowhere").Spec.NodeAffinity.Required.NodeSelectorTerms[0]
				term.MatchExpressions[0].Operator, term.MatchExpressions[0].Values = corev1.NodeSelectorOpIn, values[:200]
			}
		}, true},
		"few nodes of each volume": {func(v *Volumes, _ *corev1.PersistentVolumeClaim) {
			for i := range 500 {
				term := &v.local(fmt.Sprint("v", i), "nowhere").Spec.NodeAffinity.Required.NodeSelectorTerms[0]
				term.MatchExpressions[0] = corev1.NodeSelectorRequirement{Key: "none", Operator: corev1.NodeSelectorOpExists}
			}
		}, true},
		"the nodes of volumes that are bound": {func(v *Volumes, c *corev1.PersistentVolumeClaim) {
			for i := range 15 {
				name := fmt.Sprint("v", i)
				term := &v.local(name, "").Spec.NodeAffinity.Required.NodeSelectorTerms[0]
				term.MatchExpressions[0] = corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}
				term.MatchExpressions = slices.Repeat(term.MatchExpressions, 20)
				bound := c.DeepCopy()
				bound.Spec.VolumeName = name
				v.Claims["ns"][name] = bound
			}
		}, true},
		"many volumes that are bound": {func(v *Volumes, c *corev1.PersistentVolumeClaim) {
			for i := range 15 {
				name := fmt.Sprint("v", i)
				v.local(name, "").Spec.NodeAffinity = nil
				bound := c.DeepCopy()
				bound.Spec.VolumeName = name
				v.Claims["ns"][name] = bound
			}
		}, false},
		"the nodes of storage": {func(v *Volumes, _ *corev1.PersistentVolumeClaim) {
			v.Drivers = map[string]*storagev1.CSIDriver{"example.com": {Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}}
			v.Capacities = map[string][]*storagev1.CSIStorageCapacity{"late": {{
				StorageClassName: "late", Capacity: ptr.To(list("storage", "1Ti")["storage"]), NodeTopology: &requirement,
			}}}
		}, true},
	} {
		w := &world{}
		for n := range 100 {
			w.node(fmt.Sprint("n", n))
		}
		volumes, claim := storage("example.com")
		row.change(volumes, claim)
		s := NewSnapshot(w.nodes, w.pods, nil)
		s.Volumes = volumes
		j := jobOf(func(p *corev1.PodTemplateSpec) {
			for name := range volumes.Claims["ns"] {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
				}})
			}
		})
		j.Lightly()
		if j.Judge(s, 100); j.TooMuch() != row.tooMuch {
			t.Errorf("%s: %.2f of the work that is judged lightly", name, j.Work())
		}
	}
}

// A Job that brings such a selector itself is judged without its volumes.
func TestALargeSelectorOfAnEphemeralVolume(t *testing.T) {
	w := &world{}
	w.node("n")
	volumes, claim := storage("kubernetes.io/no-provisioner")
	expect(t, w.judgeStored(volumes, ephemeral(claim), 1), Never, 0, noVolume.Message)
	claim.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "k", Operator: metav1.LabelSelectorOpIn, Values: many(2000)},
	}}
	a := w.judgeStored(volumes, ephemeral(claim), 1)
	if expect(t, a, FitsNow, 1, ""); fmt.Sprint(a.Unjudged) != fmt.Sprint([]string{capacity.VolumesField}) {
		t.Errorf("unjudged: %v", a.Unjudged)
	}
}

// A Job has many volumes in the zones of a large worker, and one elsewhere: nodes of one zone are
// asked once, and not each of them for each volume.
func TestBoundVolumesOfManyNodes(t *testing.T) {
	const nodes, volumes = 5000, 20
	w := &world{}
	for i := range nodes {
		w.node(fmt.Sprint("n", i), fmt.Sprintf("%s=z%d", corev1.LabelTopologyZone, i%3))
	}
	v, claim := storage("")
	var sources []corev1.Volume
	for i := range volumes {
		name := fmt.Sprint("v", i)
		term := &v.local(name, "").Spec.NodeAffinity.Required.NodeSelectorTerms[0]
		term.MatchExpressions = []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"z0", "z1", "z2"}},
			{Key: corev1.LabelTopologyRegion, Operator: corev1.NodeSelectorOpDoesNotExist},
		}
		if i == volumes-1 {
			term.MatchExpressions[0].Values = []string{"elsewhere"}
		}
		bound := claim.DeepCopy()
		bound.Spec.VolumeName = name
		v.Claims["ns"][name] = bound
		sources = append(sources, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	s := NewSnapshot(w.nodes, nil, nil)
	s.Volumes = v
	work := func(sources []corev1.Volume) int {
		return workOn(s, jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = sources }))
	}
	if is, most := work(sources)-work(nil), 3*nodes*volumes*2*checkWork; is > most {
		t.Errorf("%d units of work in three views, want %d at most", is, most)
	}
	if a := jobOf(func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = sources }).Judge(s, 1); a.Verdict != Never || len(a.Unjudged) > 0 {
		t.Errorf("%+v", a)
	}
}
