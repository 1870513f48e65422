package dispatch

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/carry"
)

// secrets go along with the Job, unless its row says that nothing does.
var secrets = []carry.Kind{carry.Secret}

// A mirror that something goes along with starts when that has arrived, and not before.
func TestCarrying(t *testing.T) {
	hub := hubJob(placedOn("a"))
	halted := mirrorOf(hub, suspendedJob)
	started := mirrorOf(hub, running(0))
	job := hubJob(placedOn("a"), running(0))
	moved := hubJob(placedOn("a"), succeeded(1))
	seeded := mirrorOf(hub, suspendedJob, func(j *batchv1.Job) { j.Status.Succeeded = 1 })
	refused := map[string]string{"a": "refused what the Job needs"}
	blocked := Carry{Current: true, Blocked: []string{`secret "x" not found`}}
	rows := map[string]struct {
		hub     *batchv1.Job
		mirror  *batchv1.Job
		carry   Carry
		passed  map[string]string
		then    []string
		reports string
		after   time.Duration
		awaits  bool
		without bool // nothing goes along
	}{
		"created suspended":               {hub: hub, then: []string{"create suspended in a"}, reports: v1alpha1.EventMirrored},
		"created as ever":                 {hub: hub, without: true, then: []string{"create in a"}, reports: v1alpha1.EventMirrored},
		"carried before it's resumed":     {hub: hub, mirror: halted, then: []string{"carry to a"}},
		"resumed then":                    {hub: hub, mirror: halted, carry: Carry{Current: true}, then: []string{"patch [spec.suspend] in a"}},
		"held while something is missing": {hub: hub, mirror: halted, carry: blocked, reports: v1alpha1.EventFailedCarry},
		"carried again on a change":       {hub: job, mirror: started, then: []string{"carry to a"}},
		"runs, and something is missing":  {hub: job, mirror: started, carry: blocked, reports: v1alpha1.EventFailedCarry},
		"a note on the way":               {hub: job, mirror: started, carry: Carry{Current: true, Notes: []string{"used as it is"}}, reports: v1alpha1.EventNotCarried},
		"two notes on the way":            {hub: job, mirror: started, carry: Carry{Current: true, Notes: []string{"used as it is", "not copied"}}, reports: "NotCarried NotCarried"},
		"held, and suspended on the hub":  {hub: hubJob(placedOn("a"), suspendedJob), mirror: halted, carry: blocked, reports: v1alpha1.EventFailedCarry},
		"refused before it ran":           {hub: hub, mirror: halted, passed: refused, then: []string{"move from a"}, after: 30 * time.Second, awaits: true},
		"refused while it runs":           {hub: job, mirror: started, passed: refused},
		"seeded before it's carried":      {hub: moved, mirror: halted, then: []string{"seed 1 in a"}},
		"carried when it's seeded":        {hub: moved, mirror: seeded, then: []string{"carry to a"}},
		"nothing goes along":              {hub: job, mirror: mirrorOf(hub, running(0)), carry: Carry{Blocked: []string{"x"}}, without: true},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := look(row.hub, at("a", row.mirror))
			s.Assigned.Carry, s.PassedOver = row.carry, row.passed
			if !row.without {
				s.Assigned.Carry.Kinds = secrets
			}
			plan := Decide(s)
			checkActions(t, plan, row.then)
			var reasons []string
			for _, report := range plan.Reports {
				reasons = append(reasons, report.Reason)
			}
			if got := strings.Join(reasons, " "); got != row.reports {
				t.Errorf("reports %q, want %q", got, row.reports)
			}
			if row.after != 0 && plan.After != row.after || plan.AwaitsCapacity != row.awaits {
				t.Errorf("after %s, awaits room %t", plan.After, plan.AwaitsCapacity)
			}
		})
	}
}

// Of very many objects that hold the Job up, or aren't copied, a few are said.
func TestFewObjectsAreNamed(t *testing.T) {
	job, names := hubJob(placedOn("a"), running(0)), slices.Repeat([]string{strings.Repeat("x", 300)}, carry.MaxReferences)
	s := look(job, at("a", mirrorOf(job, running(0))))
	s.Assigned.Carry = Carry{Kinds: secrets, Current: true, Blocked: names, Notes: names}
	length := 0
	reports := Decide(s).Reports
	for _, report := range reports {
		length += len(report.Message)
	}
	if most := 2*(maxNotes+1) + 1; len(reports) > most || length > 350*most || !strings.Contains(reports[0].Message, "248 more") {
		t.Errorf("%d reports of %d bytes: %.200q", len(reports), length, reports[0].Message)
	}
}
