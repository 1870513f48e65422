package schedule

import "time"

// role is a kind of target.
type role int

const (
	manager role = iota
	hub
	worker
)

// row is what can be drawn.
type row struct {
	kind Kind
	role role
	// part of the target that it hits; everywhere: of each worker.
	part       string
	everywhere bool
	// healing is how long it takes to heal.
	healing time.Duration
	// whole: it hits all parts of the target. besides: and these parts of all workers.
	whole   bool
	besides []string
	weight  int
	// least and most it lasts; most zero: it happens at once.
	least, most time.Duration
	// offsets to draw from.
	offsets []time.Duration
	// loses: it may be drawn to last longer than the loss of a worker takes.
	loses bool
	// alone: no worker is lost meanwhile, nor just before.
	alone bool
}

const (
	short = 500 * time.Millisecond
	some  = 4 * time.Second
	much  = 12 * time.Second
)

// What admins set of a worker's registration.
const (
	partSecret = "Secret"
	partSpec   = "spec"
)

// backupAge is how old a backup of the hub is at least when it's put back: docs/how-to/operate.md
// guarantees less for one that is less than 20 s old.
const backupAge = 25 * time.Second

// table is all that can be drawn.
var table = []row{
	{kind: KillLeader, role: hub, part: "managers", weight: 8, least: short, most: some},
	{kind: FreezeLeader, role: hub, part: "managers", weight: 5, least: some, most: much},
	{kind: KillManager, role: manager, part: "process", weight: 3, least: short, most: much},
	{kind: FreezeManager, role: manager, part: "process", weight: 2, least: short, most: much},
	{kind: ResetHubLink, role: manager, part: "link", weight: 3},
	{kind: BlackHoleHubLink, role: manager, part: "link", weight: 3, least: some, most: much},
	{kind: KillHubAPIServer, role: hub, part: "API server", weight: 5, least: short, most: some},
	{kind: KillHubEtcd, role: hub, part: "etcd", weight: 3, least: short, most: some},

	{kind: CopyHub, role: hub, part: "etcd", whole: true, besides: []string{"API server", "etcd", "link"}, healing: much, weight: 4, least: 3 * much, most: 5 * much, alone: true},

	{kind: RestoreHub, role: hub, part: "etcd", whole: true, besides: []string{partSecret, partSpec}, healing: 5 * much, weight: 4,
		least: backupAge, most: 3 * much, alone: true},

	{kind: IsolateHub, role: hub, part: "link", everywhere: true, weight: 3, least: some, most: much, loses: true},

	{kind: ResetLink, role: worker, part: "link", weight: 5},
	{kind: BreakLink, role: worker, part: "link", weight: 6, least: short, most: much, loses: true},
	{kind: BlackHoleLink, role: worker, part: "link", weight: 8, least: short, most: much, loses: true},
	{kind: SlowLink, role: worker, part: "link", weight: 5, least: some, most: 2 * much,
		offsets: []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond}},
	{kind: HalfOpenLink, role: worker, part: "link", weight: 6},

	{kind: KillAPIServer, role: worker, part: "API server", weight: 7, least: short, most: much, loses: true},
	{kind: FreezeAPIServer, role: worker, part: "API server", weight: 4, least: short, most: much, loses: true},
	{kind: KillEtcd, role: worker, part: "etcd", weight: 5, least: short, most: much},
	{kind: KillControllerManager, role: worker, part: "controller manager", weight: 4, least: short, most: much},
	{kind: KillJobController, role: worker, part: "Job controller", weight: 6, least: short, most: much},
	{kind: FreezeJobController, role: worker, part: "Job controller", weight: 4, least: short, most: much},
	{kind: KillScheduler, role: worker, part: "scheduler", weight: 3, least: short, most: much},
	{kind: KillKubelets, role: worker, part: "kubelets", weight: 3, least: short, most: much},
	{kind: SetClock, role: worker, part: "clock", weight: 6, least: some, most: 2 * much, offsets: []time.Duration{-40 * time.Second, -15 * time.Second, 15 * time.Second, 40 * time.Second}},
	{kind: SkewClock, role: worker, part: "clock", weight: 3, least: some, most: 2 * much,
		offsets: []time.Duration{-30 * time.Minute, -5 * time.Minute, 5 * time.Minute, 90 * time.Minute}},

	{kind: PolicyStrips, role: worker, part: "admission", weight: 3, least: some, most: 2 * much},
	{kind: PolicyMarks, role: worker, part: "admission", weight: 1, least: some, most: 2 * much},
	{kind: PolicySetsTTL, role: worker, part: "admission", weight: 2, least: some, most: 2 * much},
	{kind: PolicySuspends, role: worker, part: "admission", weight: 2, least: some, most: 2 * much},
	{kind: PolicyRefusesCreate, role: worker, part: "admission", weight: 2, least: some, most: 2 * much},
	{kind: PolicyRefusesUpdate, role: worker, part: "admission", weight: 2, least: some, most: 2 * much},
	{kind: PolicyRefusesDelete, role: worker, part: "admission", weight: 3, least: some, most: 3 * much},

	{kind: DeleteMirrors, role: worker, part: "mirrors", weight: 3},
	{kind: DeletePods, role: worker, part: "mirrors", weight: 2},
	{kind: DeleteEndedPods, role: worker, part: "mirrors", weight: 2},
	{kind: RemoveMarks, role: worker, part: "mirrors", weight: 3},
	{kind: RemoveNodes, role: worker, part: "nodes", weight: 3, least: some, most: 2 * much},
	{kind: CordonNodes, role: worker, part: "nodes", weight: 2, least: 2 * much, most: 10 * much},

	{kind: RestoreWorker, role: worker, part: "etcd", whole: true, healing: much, weight: 12, least: some, most: 2 * much},

	{kind: RotateSecret, role: worker, part: partSecret, weight: 5},
	{kind: Drain, role: worker, part: partSpec, weight: 3, least: some, most: 2 * much},
	{kind: Cordon, role: worker, part: partSpec, weight: 2, least: some, most: much},
}
