package checker

import (
	"testing"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// What a restore of a worker's etcd undid may be done again there if the hub didn't know of it, or
// if it's begun before the manager has noticed; and nothing else.
func TestAfterARestore(t *testing.T) {
	for name, row := range map[string]struct {
		kind  schedule.Kind
		where string
		late  time.Duration
		knows bool
		want  []Rule
	}{
		"the hub didn't know":       {kind: schedule.RestoreWorker, where: "open", late: time.Minute},
		"it's begun at once":        {kind: schedule.RestoreWorker, where: "open", knows: true, late: time.Second},
		"it's begun later":          {kind: schedule.RestoreWorker, where: "open", knows: true, late: time.Minute, want: []Rule{Again}},
		"another worker's restore":  {kind: schedule.RestoreWorker, where: "fenced", late: time.Second, want: []Rule{Again}},
		"its etcd was killed alone": {kind: schedule.KillEtcd, where: "open", late: time.Second, want: []Rule{Again}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.place("open")
			restore := w.fault(row.where, row.kind)
			w.pass(time.Second)
			w.succeed(w.run("open", 2))
			if row.knows {
				w.hub(completed("2", 1))
			}
			w.pass(10 * time.Second)
			restore()
			w.pass(row.late)
			w.succeed(w.run("open", 2))
			w.expect(row.want...)
		})
	}
}
