package scheduling

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// limited gives node a a driver with a limit of attached volumes.
func limited(volumes *Volumes, driver string, count int32) {
	volumes.Nodes = map[string]*storagev1.CSINode{"a": {Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
		Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &count},
	}}}}}
}

func TestAttachedVolumes(t *testing.T) {
	w := &world{}
	w.node("a")
	volumes, claim := storage("example.com")
	each := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim.Spec}}}
	limited(volumes, "other.example.com", 0)
	expect(t, w.judgeStored(volumes, each, 4), FitsNow, 4, "")
	limited(volumes, "example.com", 2)
	expect(t, w.judgeStored(volumes, each, 3), FitsNow, 2, tooManyVolumes.Message) // three never fit
	expect(t, w.judgeStored(volumes, data, 4), FitsNow, 4, "")                     // they share one
	pod := mounting(w.pod("a"))
	expect(t, w.judgeStored(volumes, each, 2), FitsLater, 1, tooManyVolumes.Message)
	limited(volumes, "example.com", 1)
	expect(t, w.judgeStored(volumes, each, 1), FitsLater, 0, tooManyVolumes.Message)
	expect(t, w.judgeStored(volumes, data, 2), FitsNow, 2, "") // which is attached
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	expect(t, w.judgeStored(volumes, each, 1), Never, 0, tooManyVolumes.Message)
	limited(volumes, "example.com", 0)
	expect(t, w.judgeStored(volumes, data, 1), FitsNow, 1, "") // nothing more is attached
	pod.Spec.Volumes = nil
	expect(t, w.judgeStored(volumes, data, 1), Never, 0, tooManyVolumes.Message)
}

// A volume that exists counts for the driver that it has.
func TestAttachedVolumeThatExists(t *testing.T) {
	w := &world{}
	w.node("a")
	volumes, claim := storage("example.com")
	claim.Spec.VolumeName = "pv"
	volumes.local("pv", "a").Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "other.example.com", VolumeHandle: "h"}
	limited(volumes, "example.com", 0)
	expect(t, w.judgeStored(volumes, data, 1), FitsNow, 1, "")
	limited(volumes, "other.example.com", 0)
	expect(t, w.judgeStored(volumes, data, 1), Never, 0, tooManyVolumes.Message)
	volumes.Volumes["pv"].Spec.CSI = nil
	expect(t, w.judgeStored(volumes, data, 1), FitsNow, 1, "")
}

func TestDriverThatMustBeOnTheNode(t *testing.T) {
	w := &world{}
	w.node("a")
	w.node("b")
	volumes, _ := storage("example.com")
	limited(volumes, "example.com", 9)
	expect(t, w.judgeStored(volumes, data, 8), FitsNow, 8, "")
	volumes.Drivers = map[string]*storagev1.CSIDriver{"example.com": {Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: ptr.To(true)}}}
	expect(t, w.judgeStored(volumes, data, 5), FitsNow, 4, noDriver.Message) // on node b
}

// Each driver that a Job needs is sought among those of each node, also if the nodes have none.
func TestDriversOfAJobAreWork(t *testing.T) {
	const nodes, drivers = 50, 200
	w := &world{}
	for n := range nodes {
		w.node(fmt.Sprint("n", n))
	}
	s := NewSnapshot(w.nodes, w.pods, nil)
	s.Volumes = &Volumes{Classes: map[string]*storagev1.StorageClass{}, Drivers: map[string]*storagev1.CSIDriver{}}
	j := jobOf(func(p *corev1.PodTemplateSpec) {
		for d := range drivers {
			name := fmt.Sprint("driver-", d)
			s.Volumes.Classes[name] = &storagev1.StorageClass{Provisioner: name}
			s.Volumes.Drivers[name] = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: ptr.To(true)}}
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &name}}
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: ephemeral(claim)})
		}
	})
	expect(t, j.Judge(s, 1), Never, 0, noDriver.Message)
	if work := workOn(s, j); work < nodes*drivers {
		t.Errorf("%d drivers on %d nodes are work of %d", drivers, nodes, work)
	}
}

// The volumes of Jobs that belong together are compared with each other, and so are their drivers.
func TestVolumesOfAGroupAreWork(t *testing.T) {
	const volumes = 200
	v, claim := storage("")
	there := &storagev1.CSINode{}
	with := func(name string) *batchv1.Job {
		return pod(name, 1, "1", func(p *corev1.PodTemplateSpec) {
			for i := range volumes {
				name := fmt.Sprint(name, i)
				pv := v.local(name, "")
				pv.Spec.NodeAffinity = nil
				pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: name, VolumeHandle: name}
				bound := claim.DeepCopy()
				bound.Spec.VolumeName = name
				v.Claims["ns"][name] = bound
				there.Spec.Drivers = append(there.Spec.Drivers, storagev1.CSINodeDriver{
					Name: name, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](1)},
				})
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
				}})
			}
		}).job()
	}
	j, mates := NewJob(with("a")), []Mate{{with("b"), 1}}
	v.Nodes = map[string]*storagev1.CSINode{"another": there}
	w := &world{}
	w.node("n")
	s := NewSnapshot(w.nodes, nil, nil)
	s.Volumes = v
	if a := NewGroup(j, mates).Judge(s, 1); a.Verdict != FitsNow || len(a.Unjudged) > 0 {
		t.Errorf("%+v", a)
	}
	if work, least := int(j.Work()*mostWork), 8*volumes*volumes; work < least {
		t.Errorf("work %d, want %d at least", work, least)
	}
}
