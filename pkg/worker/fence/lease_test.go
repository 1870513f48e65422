package fence

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

func aLease(edits ...func(*coordinationv1.Lease)) *coordinationv1.Lease {
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "jobferry-fence-hub", ResourceVersion: "7", Labels: map[string]string{v1alpha1.LabelOrigin: "hub"},
			Annotations: map[string]string{v1alpha1.AnnotationWorkerLostTimeout: "20m0s", v1alpha1.AnnotationFenceAfter: "3m0s"},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("manager"), LeaseDurationSeconds: ptr.To[int32](30), RenewTime: &metav1.MicroTime{Time: noon},
		},
	}
	for _, edit := range edits {
		edit(l)
	}
	return l
}

func TestRead(t *testing.T) {
	got, ours := Read(aLease())
	want := Lease{
		Origin: "hub", Renewal: "manager 2026-01-01T12:00:00.000000Z", Renewed: noon, Version: "7",
		Duration: 30 * time.Second, LostTimeout: 20 * time.Minute, After: 3 * time.Minute,
	}
	if !ours || got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestReadWhatSomebodyWrote(t *testing.T) {
	for name, row := range map[string]struct {
		edit func(*coordinationv1.Lease)
		ours bool
		so   func(Lease) bool
	}{
		"another program's":   {func(l *coordinationv1.Lease) { l.Labels = nil }, false, nil},
		"of another name":     {func(l *coordinationv1.Lease) { l.Name = "jobferry-worker" }, false, nil},
		"no duration":         {func(l *coordinationv1.Lease) { l.Spec.LeaseDurationSeconds = nil }, true, func(w Lease) bool { return w.Duration == DefaultDuration }},
		"a negative duration": {func(l *coordinationv1.Lease) { *l.Spec.LeaseDurationSeconds = -1 }, true, func(w Lease) bool { return w.Duration == DefaultDuration }},
		"released":            {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }, true, func(w Lease) bool { return w.Released }},
		"registered":          {func(l *coordinationv1.Lease) { l.Spec = coordinationv1.LeaseSpec{} }, true, func(w Lease) bool { return !w.Released }},
		"held":                {func(*coordinationv1.Lease) {}, true, func(w Lease) bool { return !w.Released }},
		"never renewed":       {func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }, true, func(w Lease) bool { return w.Renewal == "manager" }},
		"rubbish": {func(l *coordinationv1.Lease) { l.Annotations[v1alpha1.AnnotationWorkerLostTimeout] = "soon" }, true,
			func(w Lease) bool { return w.LostTimeout == 0 }},
		"less than nothing": {func(l *coordinationv1.Lease) { l.Annotations[v1alpha1.AnnotationFenceAfter] = "-1s" }, true,
			func(w Lease) bool { return w.After == 0 }},
	} {
		got, ours := Read(aLease(row.edit))
		if ours != row.ours || ours && !row.so(got) {
			t.Errorf("%s: %+v, %v", name, got, ours)
		}
	}
}
