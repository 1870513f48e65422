package checker

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// What the hub didn't know of a mirror when a janitor deleted it may be done again, and nothing else.
func TestAfterAJanitor(t *testing.T) {
	for name, row := range map[string]struct {
		kind  schedule.Kind
		where string
		knows string // what the hub knows
		want  []Rule
	}{
		"not known":            {kind: schedule.DeleteMirrors, where: "open"},
		"known":                {kind: schedule.DeleteMirrors, where: "open", knows: "2", want: []Rule{Again}},
		"another one":          {kind: schedule.DeleteMirrors, where: "open", knows: "1"},
		"in another worker":    {kind: schedule.DeleteMirrors, where: "fenced", want: []Rule{Again}},
		"it deleted Pods only": {kind: schedule.DeleteEndedPods, where: "open", want: []Rule{Again}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("open")
			w.succeed(w.run("open", 2))
			if row.knows != "" {
				w.hub(completed(row.knows, 1))
			}
			w.fault(row.where, row.kind)()
			gone := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: w.mirrorOn("open")}}
			w.see(Event{Where: "open", Job: gone, Gone: true})
			w.place("open")
			w.succeed(w.run("open", 2))
			w.expect(row.want...)
		})
	}
}
