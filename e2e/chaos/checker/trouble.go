package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// Trouble is a fault of a worker for as long as it has consequences.
type Trouble struct {
	Fault schedule.Fault
	From  time.Duration
	// To is when it was over; Forever: it isn't yet.
	To time.Duration
}

// Forever is the end of what hasn't ended.
const Forever = time.Duration(1<<63 - 1)

// felt is until when the fault has consequences.
func (t Trouble) felt() time.Duration {
	if t.To == Forever {
		return Forever
	}
	return t.To + aftermath(t.Fault.Kind)
}

// aftermath is how long a fault is felt after its end: servers start, connections are found dead,
// watches come back. Kubernetes' components look for an API server that was away for longer after
// up to a minute.
func aftermath(k schedule.Kind) time.Duration {
	switch k {
	case schedule.KillAPIServer, schedule.FreezeAPIServer, schedule.KillEtcd, schedule.RestoreWorker, schedule.RestoreHub:
		return time.Minute
	default:
		return 20 * time.Second
	}
}

// Begin takes in that a fault begins.
func (c *Checker) Begin(at time.Duration, f schedule.Fault) {
	c.trouble = append(c.trouble, Trouble{Fault: f, From: at, To: Forever})
	if !cutsOff(f.Kind) {
		return
	}
	for _, r := range c.records {
		for worker := range r.homes {
			r.disturbed = r.disturbed || r.ended == nil && hits(f, worker)
		}
	}
}

// End takes in that a fault is over.
func (c *Checker) End(at time.Duration, f schedule.Fault) {
	for i := range c.trouble {
		if c.trouble[i].Fault.Number == f.Number {
			c.trouble[i].To = at
		}
	}
}

// leaseTime is for how long a manager has tried to renew its Lease in vain before it ends by
// itself.
const leaseTime = 15 * time.Second

// Ended takes in that a process of the hub has ended by itself, as the machine was too busy for its
// Lease. It's started again at once.
func (c *Checker) Ended(at time.Duration, process string) {
	fault := schedule.Fault{Kind: schedule.KillManager, Target: process}
	c.trouble = append(c.trouble, Trouble{Fault: fault, From: max(at-leaseTime, 0), To: at})
}

// hits says whether a fault is one of a worker.
func hits(f schedule.Fault, worker string) bool {
	return f.Target == worker || f.Kind == schedule.IsolateHub
}

// isolated reports whether all workers have been unreachable for so long that a decision made
// before has been carried out.
func (c *Checker) isolated(at time.Duration) bool {
	for _, t := range c.trouble {
		if t.Fault.Kind == schedule.IsolateHub && at > t.From+settling && at < t.To {
			return true
		}
	}
	return false
}

// drained reports whether a worker is being drained.
func (c *Checker) drained(worker string, at time.Duration) bool {
	return slices.ContainsFunc(c.trouble, func(t Trouble) bool {
		return t.Fault.Kind == schedule.Drain && t.Fault.Target == worker && at > t.From && at < t.To
	})
}

// settling is how long it may take until a decision is seen.
const settling = 5 * time.Second

// cutsOff reports whether a fault makes a worker unreachable for the hub.
func cutsOff(k schedule.Kind) bool {
	switch k {
	case schedule.IsolateHub, schedule.RestoreWorker, schedule.ResetLink, schedule.BreakLink, schedule.BlackHoleLink, schedule.HalfOpenLink,
		schedule.KillAPIServer, schedule.FreezeAPIServer, schedule.KillEtcd:
		return true
	default:
		return false
	}
}

// cripples says whether a fault takes away what the fence of a worker needs: its API server, its
// Job controller, and the kubelets that end the Pods.
func cripples(k schedule.Kind) bool {
	switch k {
	case schedule.KillAPIServer, schedule.FreezeAPIServer, schedule.KillEtcd, schedule.KillJobController,
		schedule.FreezeJobController, schedule.KillKubelets:
		return true
	default:
		return false
	}
}

func setsClock(k schedule.Kind) bool { return k == schedule.SetClock || k == schedule.SkewClock }

// freezesJobController: what it knows when it continues is old.
func freezesJobController(k schedule.Kind) bool { return k == schedule.FreezeJobController }

// outOfTouch says with which fault a worker was out of touch before a Job was moved from it; empty:
// it wasn't.
func (c *Checker) outOfTouch(worker string, moved time.Duration) string {
	return c.find(worker, moved-c.options.LostAfter, moved, cutsOff)
}

// crippled says which part of a worker that the fence needs was down, from before a Job was moved
// from it until now.
func (c *Checker) crippled(worker string, moved, now time.Duration) string {
	return c.find(worker, moved-c.options.LostAfter, now, cripples)
}

func (c *Checker) find(worker string, from, to time.Duration, what func(schedule.Kind) bool) string {
	for _, t := range c.trouble {
		if hits(t.Fault, worker) && what(t.Fault.Kind) && t.From <= to && t.felt() >= from {
			return fmt.Sprintf("excused by %s at %s", t.Fault, stamp(t.From))
		}
	}
	return ""
}

// Troubles are all faults there were between two times.
func (c *Checker) Troubles(from, to time.Duration) []Trouble {
	var within []Trouble
	for _, t := range c.trouble {
		if t.From <= to && t.To >= from {
			within = append(within, t)
		}
	}
	return within
}
