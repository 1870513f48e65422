package mirror

import (
	"fmt"
	"testing"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/mirrortest"
	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A worker writes a record into a mirror that names very many recent fields.
func TestRecentFieldsThatNoJobHas(t *testing.T) {
	for name, fields := range map[string]int{"as many as may be": maxRecent, "very many": 27_000} {
		hub := mirrortest.New("job").Obj()
		target := Target{Origin: "o", Recent: &recentfields.Fingerprints{}}
		m := Project(hub, target)
		rec, _ := readRecord(m)
		rec.Recent, rec.Generation = recentfields.Fingerprints{}, 1
		for i := range fields {
			rec.Recent[fmt.Sprint("s.", i)] = "x"
		}
		m.Annotations[v1alpha1.AnnotationProjected] = rec.String()
		SlimMirror(m)
		patched := false
		cost := costtest.Of(func() {
			var p PatchRecent
			if p, patched = Drift(hub, m, target).(PatchRecent); patched {
				p.Diff()
				p.Bytes(&Whole{Job: hub}, m)
			}
		})
		if cost > 32<<20 || patched != (fields == maxRecent) {
			t.Errorf("%s: %d MiB are allocated, patched: %v", name, cost>>20, patched)
		}
	}
}
