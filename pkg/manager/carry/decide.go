package carry

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// Operation is what the manager does in the worker about one object.
type Operation string

// The operations. All but Leave and Await write.
const (
	// Leave does nothing.
	Leave Operation = "Leave"
	// Await retries later: the object is being deleted.
	Await Operation = "Await"
	// Create creates Decision.Object.
	Create Operation = "Create"
	// Update replaces the object by Decision.Object, unless it has changed since it was read.
	Update Operation = "Update"
	// AddOwner applies Decision.Patch, a strategic merge patch.
	AddOwner Operation = "AddOwner"
	// Recreate deletes the object that was read, and creates Decision.Object: it's immutable.
	Recreate Operation = "Recreate"
)

// Snapshot is one object as it was read. The source must have been read after the existing object:
// then an Update that succeeds never takes a copy back in time.
type Snapshot struct {
	Ref Ref
	// Namespace is that of the Job.
	Namespace string
	// Source is the object on the hub; nil: there is none.
	Source Object
	// Size is about what the source takes in memory, if it isn't small.
	Size int64
	// Unreadable says why the manager may not read the source.
	Unreadable string
	// Existing is the object of that name in the worker; nil: there is none.
	Existing Object
}

// Rules are what decisions depend on besides the snapshot.
type Rules struct {
	// Origin is the id of this hub.
	Origin v1alpha1.Origin
	// HubKeys are those of labels that stay on the hub.
	HubKeys mirror.HubKeys
	// AccountAnnotations are those of ServiceAccounts that are carried.
	AccountAnnotations mirror.Keys
	// Mirror is the Job in the worker that the object is for.
	Mirror *batchv1.Job
	// Registers reports whether a Secret registers a worker.
	Registers func(*corev1.Secret) bool
	// Finished reports whether an owner doesn't need the object any more.
	Finished func(metav1.OwnerReference) bool
}

// Decision is the output of Decide.
type Decision struct {
	Do     Operation
	Object Object
	Patch  []byte
	// Blocked says why this object keeps the Job's Pods from starting; empty: it doesn't.
	Blocked string
	// Note is for the user; empty: there is none.
	Note string
}

// ruleTable is walked in order: the first that applies decides.
var ruleTable = []struct {
	when func(Snapshot, Rules) bool
	then func(Snapshot, Rules) Decision
}{
	// What takes too much to be compared stays as it is.
	{isTooLarge, tooLarge},
	// A foreign object is used as it is.
	{isForeign, leaveForeign},
	// What never leaves the hub counts as missing.
	{isPrivate, refuse},
	// The Job waits for what can't be read.
	{isUnreadable, unreadable},
	// Without a source, a copy serves the mirrors that own it already.
	{isMissing, missing},
	{func(s Snapshot, _ Rules) bool { return s.Existing == nil }, create},
	{func(s Snapshot, _ Rules) bool { return s.Existing.GetDeletionTimestamp() != nil }, await},
	{isCurrent, own},
	{func(s Snapshot, _ Rules) bool {
		return isFixed(s.Existing, s.Source) && !sameContent(s.Existing, s.Source)
	}, recreate},
	{func(Snapshot, Rules) bool { return true }, update},
}

// Decide decides about one object.
func Decide(s Snapshot, r Rules) Decision {
	for _, c := range ruleTable {
		if c.when(s, r) {
			d := c.then(s, r)
			if d.Note == "" {
				d.Note = withoutAnnotations(s, r)
			}
			return d
		}
	}
	return Decision{Do: Leave}
}

func isForeign(s Snapshot, r Rules) bool { return s.Existing != nil && !isCopy(s.Existing, r.Origin) }

func leaveForeign(s Snapshot, _ Rules) Decision {
	if s.Source == nil || sameContent(s.Existing, s.Source) {
		return Decision{Do: Leave}
	}
	return Decision{Do: Leave, Note: s.Ref.String() + " there isn't Jobferry's and differs from the hub's; it is used as it is"}
}

// MaxBytes is about what a source may take in memory: more than any does that hasn't very many
// keys.
const MaxBytes = 16 << 20

func isTooLarge(s Snapshot, _ Rules) bool { return s.Size > MaxBytes }

func tooLarge(s Snapshot, r Rules) Decision {
	if s.Ref.Optional || isForeign(s, r) || s.Existing != nil && isOwner(r.Mirror, s.Existing) {
		return Decision{Do: Leave}
	}
	return Decision{Do: Leave, Blocked: fmt.Sprintf(
		"%s has too many keys to be carried along: it takes more than %d MiB in memory: divide it into several", s.Ref, MaxBytes>>20)}
}

func isPrivate(s Snapshot, r Rules) bool { return private(s, r) != "" }

// private says why an object never leaves the hub; empty: it may.
func private(s Snapshot, r Rules) string {
	if service, is := s.Source.(*corev1.Service); is && service.Spec.ClusterIP != corev1.ClusterIPNone {
		return "isn't headless"
	}
	secret, ok := s.Source.(*corev1.Secret)
	switch {
	case !ok:
		return ""
	case secret.Type == corev1.SecretTypeServiceAccountToken, secret.Type == corev1.SecretTypeBootstrapToken:
		return "is of type " + string(secret.Type)
	case r.Registers(secret):
		return "registers a worker cluster"
	default:
		return ""
	}
}

func refuse(s Snapshot, r Rules) Decision {
	why := fmt.Sprintf("%s %s, and is never carried: create one in the worker", s.Ref, private(s, r))
	switch {
	case s.Existing != nil || s.Ref.Optional && s.Ref.Kind != Service:
		return Decision{Do: Leave}
	case s.Ref.Kind == Service:
		return Decision{Do: Leave, Note: why}
	default:
		return Decision{Do: Leave, Blocked: why}
	}
}

func isUnreadable(s Snapshot, _ Rules) bool { return s.Unreadable != "" }

// unreadable lets nothing start that might lack a Service which the hub has: the Job's Pods would
// fail, one after the other, as they don't find each other.
func unreadable(s Snapshot, _ Rules) Decision {
	if s.Existing != nil || s.Ref.Optional && s.Ref.Kind != Service {
		return Decision{Do: Leave}
	}
	return Decision{Do: Leave, Blocked: fmt.Sprintf("%s can't be read on the hub: %s", s.Ref, s.Unreadable)}
}

func isMissing(s Snapshot, _ Rules) bool { return s.Source == nil }

func missing(s Snapshot, r Rules) Decision {
	if s.Ref.Optional || s.Existing != nil && isOwner(r.Mirror, s.Existing) {
		return Decision{Do: Leave}
	}
	return Decision{Do: Leave, Blocked: fmt.Sprintf(
		"%s not found: create it on the hub in namespace %s, or make the reference to it optional", s.Ref, s.Namespace)}
}

func create(s Snapshot, r Rules) Decision {
	object := newCopy(s.Source, r)
	addOwner(object, r.Mirror)
	return Decision{Do: Create, Object: object}
}

func await(Snapshot, Rules) Decision { return Decision{Do: Await} }

func isCurrent(s Snapshot, r Rules) bool {
	return equality.Semantic.DeepEqual(s.Existing, updated(s.Existing, s.Source, r))
}

func own(s Snapshot, r Rules) Decision {
	if isOwner(r.Mirror, s.Existing) {
		return Decision{Do: Leave}
	}
	return Decision{Do: AddOwner, Object: s.Existing, Patch: ownerPatch(s.Existing, r)}
}

func recreate(s Snapshot, r Rules) Decision {
	object := newCopy(s.Source, r)
	object.SetOwnerReferences(slices.Clone(s.Existing.GetOwnerReferences()))
	addOwner(object, r.Mirror)
	return Decision{Do: Recreate, Object: object}
}

func update(s Snapshot, r Rules) Decision {
	object := updated(s.Existing, s.Source, r)
	addOwner(object, r.Mirror)
	return Decision{Do: Update, Object: object}
}
