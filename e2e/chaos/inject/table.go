package inject

import (
	"context"
	"errors"

	"github.com/jobferry/jobferry/e2e/chaos/fleet"
	"github.com/jobferry/jobferry/e2e/chaos/schedule"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// fault is one that begins.
type fault struct {
	schedule.Fault
	ctx   context.Context
	fleet *fleet.Fleet
}

// starter begins a fault, and returns how to heal it; nil: there's nothing to heal.
type starter func(fault) (heal func() error, err error)

var table = map[schedule.Kind]starter{
	schedule.KillLeader:       func(f fault) (func() error, error) { return f.withLeader(f.kill) },
	schedule.FreezeLeader:     func(f fault) (func() error, error) { return f.withLeader(f.freeze) },
	schedule.KillManager:      func(f fault) (func() error, error) { return f.kill(f.manager().Component) },
	schedule.FreezeManager:    func(f fault) (func() error, error) { return f.freeze(f.manager().Component) },
	schedule.ResetHubLink:     func(f fault) (func() error, error) { return once(f.manager().Link.ResetOnce) },
	schedule.BlackHoleHubLink: func(f fault) (func() error, error) { return f.link(f.manager().Link, (*rig.Proxy).BlackHole) },
	schedule.KillHubAPIServer: func(f fault) (func() error, error) { return f.kill(f.fleet.Hub.Component(binaries.APIServer)) },
	schedule.KillHubEtcd:      func(f fault) (func() error, error) { return f.kill(f.fleet.Hub.Component(binaries.Etcd)) },

	schedule.RestoreHub: func(f fault) (func() error, error) {
		restore, err := f.fleet.BackUpHub()
		return f.restoring(restore), err
	},
	schedule.CopyHub: func(f fault) (func() error, error) { return f.fleet.CopyHub(f.ctx) },

	schedule.IsolateHub: func(f fault) (func() error, error) { return f.isolate() },

	schedule.ResetLink:     func(f fault) (func() error, error) { return once(f.worker().Proxy().ResetOnce) },
	schedule.HalfOpenLink:  func(f fault) (func() error, error) { return once(f.worker().Proxy().HalfOpen) },
	schedule.BreakLink:     func(f fault) (func() error, error) { return f.link(f.worker().Proxy(), (*rig.Proxy).Reset) },
	schedule.BlackHoleLink: func(f fault) (func() error, error) { return f.link(f.worker().Proxy(), (*rig.Proxy).BlackHole) },
	schedule.SlowLink: func(f fault) (func() error, error) {
		return f.link(f.worker().Proxy(), func(p *rig.Proxy) { p.Latency(f.Offset) })
	},

	schedule.KillAPIServer:         func(f fault) (func() error, error) { return f.kill(f.component(binaries.APIServer)) },
	schedule.FreezeAPIServer:       func(f fault) (func() error, error) { return f.freeze(f.component(binaries.APIServer)) },
	schedule.KillEtcd:              func(f fault) (func() error, error) { return f.killEtcd() },
	schedule.KillControllerManager: func(f fault) (func() error, error) { return f.kill(f.component(binaries.ControllerManager)) },
	schedule.KillScheduler:         func(f fault) (func() error, error) { return f.kill(f.component(binaries.Scheduler)) },
	schedule.KillKubelets:          func(f fault) (func() error, error) { return f.kill(f.component(binaries.Kwok)) },
	schedule.KillJobController:     func(f fault) (func() error, error) { return f.kill(f.worker().JobController) },
	schedule.FreezeJobController:   func(f fault) (func() error, error) { return f.freeze(f.worker().JobController) },
	schedule.SetClock:              fault.setClock,
	schedule.SkewClock:             fault.skewClock,

	schedule.PolicyStrips: func(f fault) (func() error, error) { return f.policy(ofWorker.Strips(f.marks()...)) },
	schedule.PolicyMarks: func(f fault) (func() error, error) {
		return f.policy(ofWorker.Mutates(`Object{metadata: Object.metadata{labels: {"cost-center": "17"}, annotations: {"example.org/seen": "true"}}}`))
	},
	schedule.PolicySetsTTL: func(f fault) (func() error, error) {
		return f.policy(ofWorker.Mutates(`Object{spec: Object.spec{ttlSecondsAfterFinished: 1}}`))
	},
	schedule.PolicySuspends: func(f fault) (func() error, error) {
		return f.policy(ofWorker.Mutates(`Object{spec: Object.spec{suspend: true}}`))
	},
	schedule.PolicyRefusesCreate: func(f fault) (func() error, error) {
		return f.policy(ofWorker.Refuses("CREATE", "not in this cluster"))
	},
	schedule.PolicyRefusesUpdate: func(f fault) (func() error, error) {
		return f.policy(ofWorker.Refuses("UPDATE", "not in this cluster"))
	},
	schedule.PolicyRefusesDelete: func(f fault) (func() error, error) {
		return f.policy(ofWorker.Refuses("DELETE", "not in this cluster"))
	},

	schedule.RestoreWorker: func(f fault) (func() error, error) {
		restore, err := f.fleet.BackUp(f.worker().Cluster)
		return f.restoring(restore), err
	},
	schedule.DeleteMirrors:   fault.deleteMirrors,
	schedule.DeletePods:      fault.deletePods,
	schedule.DeleteEndedPods: fault.deleteEndedPods,
	schedule.RemoveMarks:     fault.removeMarks,
	schedule.RemoveNodes:     fault.removeNodes,
	schedule.CordonNodes:     fault.cordonNodes,

	schedule.RotateSecret: func(f fault) (func() error, error) {
		return nil, retry(f.ctx, func() error { return f.fleet.Rotate(f.ctx, f.worker()) })
	},
	schedule.Drain: func(f fault) (func() error, error) {
		return f.spec(func(s *v1alpha1.WorkerClusterSpec, on bool) { s.Drain = on })
	},
	schedule.Cordon: func(f fault) (func() error, error) {
		return f.spec(func(s *v1alpha1.WorkerClusterSpec, on bool) { s.Cordoned = on })
	},
}

func (f fault) manager() *fleet.Manager { return f.fleet.Manager(f.Target) }
func (f fault) worker() *fleet.Worker   { return f.fleet.Worker(f.Target) }

func (f fault) component(name string) *rig.Component { return f.worker().Component(name) }

func (f fault) kill(c *rig.Component) (func() error, error) {
	return func() error { return f.fleet.Revive(c) }, f.fleet.Kill(c)
}

// restoring is how a backup is put back; nil: there's none.
func (f fault) restoring(restore func(context.Context) error) func() error {
	if restore == nil {
		return nil
	}
	return func() error { return restore(context.WithoutCancel(f.ctx)) }
}

func (f fault) setClock() (func() error, error) {
	return func() error { return f.worker().SetClock(0) }, f.worker().SetClock(f.Offset)
}

// skewClock ends with a start of the simulated kubelets: unlike real ones they would wait until
// their clock is again what it was.
func (f fault) skewClock() (func() error, error) {
	kubelets := f.component(binaries.Kwok)
	heal, err := f.setClock()
	return func() error {
		return errors.Join(heal(), f.fleet.Kill(kubelets), f.fleet.Revive(kubelets))
	}, err
}

// killEtcd ends with a start of the simulated kubelets: unlike real ones they don't try again to
// write a Pod's end that the API server has answered with an error.
func (f fault) killEtcd() (func() error, error) {
	etcd, kubelets := f.component(binaries.Etcd), f.component(binaries.Kwok)
	return func() error {
		return errors.Join(f.fleet.Revive(etcd), f.fleet.Kill(kubelets), f.fleet.Revive(kubelets))
	}, f.fleet.Kill(etcd)
}

// freeze is nothing if the process doesn't run.
func (f fault) freeze(c *rig.Component) (func() error, error) {
	if err := c.Freeze(); err != nil {
		return nil, nil // another fault has killed it
	}
	return func() error {
		_ = c.Thaw() // it fails if another fault has killed it meanwhile
		return nil
	}, nil
}

// withLeader hits the manager that leads; if none does now, the first.
func (f fault) withLeader(do func(*rig.Component) (func() error, error)) (func() error, error) {
	leader := f.fleet.Leader(f.ctx)
	if leader == nil {
		leader = f.fleet.Managers[0]
	}
	return do(leader.Component)
}

func (f fault) link(p *rig.Proxy, worsen func(*rig.Proxy)) (func() error, error) {
	worsen(p)
	return func() error {
		p.Heal()
		return nil
	}, nil
}

// isolate cuts the links to all workers.
func (f fault) isolate() (func() error, error) {
	for _, w := range f.fleet.Workers {
		w.Proxy().BlackHole()
	}
	return func() error {
		for _, w := range f.fleet.Workers {
			w.Proxy().Heal()
		}
		return nil
	}, nil
}

func once(do func()) (func() error, error) {
	do()
	return nil, nil
}
