package workeraccess

import (
	"slices"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Settings tell how a worker is used. The zero value is a worker with the built-in Job controller
// whose namespaces exist, without access to its Pods.
type Settings struct {
	// Origin is the hub's.
	Origin v1alpha1.Origin
	// Account is the name of the hub's ServiceAccount.
	Account string
	// Expires: the token of the account expires, and the hub renews it.
	Expires bool
	// JobController is the WorkerCluster's spec.jobController; empty: BuiltIn.
	JobController v1alpha1.JobController
	// CreateNamespaces is spec.createNamespaces.
	CreateNamespaces bool
	// Capacity is spec.capacity; empty: Nodes.
	Capacity v1alpha1.CapacityMode
	// Carry is spec.carry.
	Carry []v1alpha1.CarriedKind
	// Logs lets users of the hub list the Pods of their Jobs, and read their logs.
	Logs bool
	// Exec lets users of the hub enter the Pods of their Jobs: run commands there, attach, and connect
	// to ports.
	Exec bool
	// Delete lets users of the hub delete the Pods of their Jobs, where the hub shows these.
	Delete bool
}

// Everything returns the settings that need every rule.
func Everything() Settings {
	return Settings{
		Origin:           anyOrigin,
		Account:          anyAccount,
		Expires:          true,
		JobController:    v1alpha1.JobControllerEmbedded,
		CreateNamespaces: true,
		Capacity:         v1alpha1.CapacityAutoscaled,
		Carry:            []v1alpha1.CarriedKind{v1alpha1.CarryConfigMaps, v1alpha1.CarrySecrets, v1alpha1.CarryServices, v1alpha1.CarryServiceAccounts},
		Logs:             true,
		Exec:             true,
		Delete:           true,
	}
}

// Need tells which settings need a rule.
type Need struct {
	// Text is for the documentation; empty: always.
	Text string
	// met reports whether settings need the rule; nil: always.
	met func(Settings) bool
}

// Met reports whether a worker with these settings needs the rule.
func (n Need) Met(s Settings) bool { return n.met == nil || n.met(s) }

var (
	always      = Need{}
	whenCreates = Need{"`createNamespaces`", func(s Settings) bool { return s.CreateNamespaces }}
	whenCounts  = Need{"`capacity: Nodes` or `Autoscaled`", func(s Settings) bool { return s.Capacity != v1alpha1.CapacityUnlimited }}
	whenGrows   = Need{"`capacity: Autoscaled`", func(s Settings) bool { return s.Capacity == v1alpha1.CapacityAutoscaled }}
	whenFenced  = Need{"`jobController: Embedded`", func(s Settings) bool { return s.JobController == v1alpha1.JobControllerEmbedded }}
	whenExpires = Need{"a token that expires", func(s Settings) bool { return s.Expires }}
	whenLogs    = Need{"logs", func(s Settings) bool { return s.Logs }}
	whenExec    = Need{"exec", func(s Settings) bool { return s.Exec }}
	whenDelete  = Need{"delete", func(s Settings) bool { return s.Delete }}
	whenPods    = Need{"logs or exec", func(s Settings) bool { return s.Logs || s.Exec }}
)

func whenCarries(kind v1alpha1.CarriedKind) Need {
	return Need{"`carry: " + string(kind) + "`", func(s Settings) bool { return slices.Contains(s.Carry, kind) }}
}
