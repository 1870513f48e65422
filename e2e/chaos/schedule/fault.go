package schedule

import (
	"fmt"
	"time"
)

// Fault is one fault.
type Fault struct {
	// Number in the order of the schedule, from 1.
	Number int
	Kind   Kind
	// Target is a worker, a manager, or the hub.
	Target string
	// At is when it begins, from the start of the run; For is how long it lasts: zero for what
	// happens at once.
	At, For time.Duration
	// Offset is that of a clock, or the delay of a slow link.
	Offset time.Duration
	// Loses: it lasts longer than it takes until a worker counts as lost.
	Loses bool
}

// String says it in a line.
func (f Fault) String() string {
	text := fmt.Sprintf("#%d %s: %s", f.Number, f.Target, f.Kind)
	if f.Offset != 0 {
		text += fmt.Sprintf(" by %s", f.Offset)
	}
	if f.For != 0 {
		text += fmt.Sprintf(" for %s", f.For)
	}
	return text
}

// Kind is a kind of fault.
type Kind string

// The kinds. A "kill" is a SIGKILL and a start after a while; a "freeze" a SIGSTOP and a SIGCONT.
const (
	// Of a manager.
	KillManager      Kind = "kill manager"
	FreezeManager    Kind = "freeze manager"
	ResetHubLink     Kind = "reset manager's hub link"
	BlackHoleHubLink Kind = "black hole on manager's hub link"
	// Of the hub.
	KillHubAPIServer Kind = "kill hub's API server"
	KillHubEtcd      Kind = "kill hub's etcd"
	// IsolateHub is a black hole on the links to all workers at once.
	IsolateHub Kind = "isolate hub"
	// CopyHub: a copy of the hub is started from a backup, with a manager of its own.
	CopyHub Kind = "copy of the hub"
	// RestoreHub: its etcd is put back to what it was when the fault began. Users write nothing
	// meanwhile.
	RestoreHub Kind = "restore hub's etcd"
	// Of the hub's leader election: whoever holds the Lease is killed.
	KillLeader   Kind = "kill leader"
	FreezeLeader Kind = "freeze leader"
	// Of the way between managers and a worker.
	ResetLink     Kind = "reset link"
	BreakLink     Kind = "link refuses connections"
	BlackHoleLink Kind = "black hole on link"
	SlowLink      Kind = "slow link"
	HalfOpenLink  Kind = "half-open watches"
	// Of a worker.
	KillAPIServer         Kind = "kill API server"
	FreezeAPIServer       Kind = "freeze API server"
	KillEtcd              Kind = "kill etcd"
	KillControllerManager Kind = "kill controller manager"
	KillJobController     Kind = "kill Job controller"
	FreezeJobController   Kind = "freeze Job controller"
	KillScheduler         Kind = "kill scheduler"
	KillKubelets          Kind = "kill kubelets"
	SetClock              Kind = "set clock"
	SkewClock             Kind = "set clock far off"
	// What a worker's admission does to mirrors.
	PolicyStrips        Kind = "policy removes marks"
	PolicyMarks         Kind = "policy adds labels and annotations"
	PolicySetsTTL       Kind = "policy sets a TTL"
	PolicySuspends      Kind = "policy suspends"
	PolicyRefusesCreate Kind = "policy refuses create"
	PolicyRefusesUpdate Kind = "policy refuses update"
	PolicyRefusesDelete Kind = "policy refuses delete"
	// RestoreWorker: its etcd is put back to what it was when the fault began.
	RestoreWorker Kind = "restore etcd"
	// What people and tools in a worker do that know nothing of Jobferry.
	DeleteMirrors   Kind = "janitor deletes mirrors"
	DeletePods      Kind = "janitor deletes running Pods"
	DeleteEndedPods Kind = "janitor deletes ended Pods"
	RemoveMarks     Kind = "person removes marks"
	RemoveNodes     Kind = "nodes vanish"
	CordonNodes     Kind = "nodes are cordoned"
	// What admins do to a worker's registration.
	RotateSecret Kind = "rotate Secret"
	Drain        Kind = "drain"
	Cordon       Kind = "cordon"
)
