package autoscaling

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

// unmadeClaims selects the NodeClaims that have no machine yet: Karpenter labels a NodeClaim with
// the instance type once it has one.
const unmadeClaims = "!" + corev1.LabelInstanceTypeStable

// maxValues bounds the values of a NodePool's or NodeClaim's requirements together; Karpenter names
// up to 600 instance types.
const maxValues = 1000

// NodeClaim is a node that Karpenter is about to make, as a worker says. Immutable.
type NodeClaim struct {
	// Offers are the machines that it may become.
	Offers Offers
	// Outcome is what has become of it.
	Outcome Outcome
	// Deleted is when it was, by the worker's clock; zero: it wasn't.
	Deleted time.Time
}

// Outcome of a NodeClaim.
type Outcome int

// Outcomes of NodeClaims.
const (
	// Pending: its machine is being made.
	Pending Outcome = iota
	// Made: it has a machine.
	Made
	// Failed: it's deleted without ever having had a machine. Karpenter does so when its cloud has
	// none.
	Failed
)

// Offers are machines of a NodePool, by the values of the labels that a cloud sells them by. A
// label that isn't there may have any value.
type Offers struct {
	Pool   string
	Values map[string][]string // sorted
}

// offered are the labels that a cloud sells machines by.
var offered = append([]string{corev1.LabelInstanceTypeStable}, varied...)

// nodeClaim is what is read of the object.
type nodeClaim struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
	} `json:"spec"`
	Status struct {
		ProviderID string             `json:"providerID"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// ReadNodeClaim reads an event of a watch of NodeClaims without a machine (karpenter.sh/v1), as
// JSON. False: it isn't a valid NodeClaim of a NodePool, or not one whose Offers can be told.
func ReadNodeClaim(event watch.EventType, object []byte) (NodeClaim, bool) {
	var read nodeClaim
	if err := json.Unmarshal(object, &read); err != nil {
		return NodeClaim{}, false
	}
	offers, is := read.offers()
	claim := NodeClaim{Offers: offers, Outcome: read.outcome(event)}
	if at := read.Metadata.DeletionTimestamp; at != nil {
		claim.Deleted = at.Time
	}
	return claim, is
}

// Read reads an event as ReadNodeClaim does, and reports whether it tells that a NodeClaim has got
// its machine, or has failed.
func (c *NodeClaim) Read(event watch.EventType, object []byte) bool {
	var is bool
	*c, is = ReadNodeClaim(event, object)
	return is && c.Outcome != Pending
}

func (c *nodeClaim) outcome(event watch.EventType) Outcome {
	launched := slices.ContainsFunc(c.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Launched" && c.Status == metav1.ConditionTrue
	})
	switch {
	case launched || c.Status.ProviderID != "":
		return Made
	case c.Metadata.DeletionTimestamp != nil:
		return Failed
	case event == watch.Deleted: // it isn't selected any more
		return Made
	default:
		return Pending
	}
}

func (c *nodeClaim) offers() (Offers, bool) {
	o := Offers{Pool: c.Metadata.Labels[LabelNodePool], Values: map[string][]string{}}
	if c.Metadata.UID == "" || !objectnames.IsDNSSubdomain(o.Pool) || len(c.Spec.Requirements) > maxTerms || valuesOf(c.Spec.Requirements) > maxValues {
		return o, false
	}
	for _, r := range c.Spec.Requirements {
		switch {
		case !slices.Contains(offered, r.Key), r.Operator == corev1.NodeSelectorOpExists:
		case r.Operator != corev1.NodeSelectorOpIn || o.Values[r.Key] != nil || !areLabels(r.Values):
			return o, false
		default:
			o.Values[r.Key] = slices.Sorted(slices.Values(r.Values))
		}
	}
	return o, true
}

// valuesOf counts those of some requirements.
func valuesOf(requirements []corev1.NodeSelectorRequirement) (count int) {
	for i := range requirements {
		count += len(requirements[i].Values)
	}
	return count
}

func areLabels(values []string) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, func(v string) bool {
		return len(v) > validation.LabelValueMaxLength
	})
}

// have reports whether a node with some labels may be one of the machines.
func (o *Offers) have(labels map[string]string) bool {
	for key, values := range o.Values {
		value, is := labels[key]
		if _, found := slices.BinarySearch(values, value); is && !found {
			return false
		}
	}
	return true
}

// contain reports whether each machine of others is one of these.
func (o *Offers) contain(others *Offers) bool {
	if o.Pool != others.Pool {
		return false
	}
	for key, values := range o.Values {
		of := others.Values[key]
		if len(of) == 0 || slices.ContainsFunc(of, func(v string) bool {
			_, found := slices.BinarySearch(values, v)
			return !found
		}) {
			return false
		}
	}
	return true
}

func (o *Offers) equal(other *Offers) bool {
	return o.Pool == other.Pool && maps.EqualFunc(o.Values, other.Values, slices.Equal)
}
