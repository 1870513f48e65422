package placement

import (
	"fmt"
	"time"

	"github.com/jobferry/jobferry/pkg/api/preference"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// Reason names the filter that a cluster didn't pass.
type Reason string

const (
	// namespaceClosed: the Job's namespace on the hub is not dispatched.
	namespaceClosed Reason = "NamespaceClosed"
	// namespaceMismatch: the cluster takes no Jobs of this namespace.
	namespaceMismatch Reason = "NamespaceMismatch"
	// unlisted: the request allows other clusters only.
	unlisted Reason = "Unlisted"
	// unregistered: the request allows the cluster, but there is no such cluster.
	unregistered Reason = "Unregistered"
	// selectorMismatch: the Job's cluster selector doesn't match the cluster's labels.
	selectorMismatch Reason = "SelectorMismatch"
	// preferenceMismatch: no step of the Job's cluster preference matches the cluster's labels.
	preferenceMismatch Reason = "PreferenceMismatch"
	// notReady: the cluster isn't ready.
	notReady Reason = "NotReady"
	// cordoned: the cluster takes no new Jobs.
	cordoned Reason = "Cordoned"
	// featureMissing: the cluster's Kubernetes is older than something that the Job uses, or drops
	// it.
	featureMissing Reason = "FeatureMissing"
	// passedOver: the caller ruled the cluster out for this Job, say for a clash of names.
	passedOver Reason = "PassedOver"
	// notPreferred: the cluster's step of the Job's cluster preference isn't open yet.
	notPreferred Reason = "NotPreferred"
	// StockedOut: Pods like the Job's didn't start there in time.
	StockedOut Reason = "StockedOut"
	// NeverFits: no Pod of the Job would fit, even if all Pods that end by themselves had ended.
	NeverFits Reason = "NeverFits"
	// Insufficient: too little is free now.
	Insufficient Reason = "Insufficient"
	// Reserved: what is free is reserved for a Job that goes before this one.
	Reserved Reason = "Reserved"
)

// Passing reports whether the obstacle may disappear without a change of the Job, the cluster's
// settings or its nodes.
func (r Reason) Passing() bool {
	switch r {
	case notReady, cordoned, notPreferred, StockedOut, Insufficient, Reserved:
		return true
	default:
		return false
	}
}

// Rejection says why one cluster can't take the Job.
type Rejection struct {
	Cluster string
	Reason  Reason
	// Message without anything of this one cluster, so that equal ones can be counted together.
	Message string
	// Detail adds the numbers; empty when there is nothing to add.
	Detail string
	// Plugin of the scheduler, or of the API server's admission, that comes in the way; empty if
	// none does.
	Plugin string
	// Field of the Job that is in the way; empty if it isn't one field.
	Field string
	// Needed is how many Pods must fit at once; zero if they weren't counted.
	Needed int64
	// Panic is what judging the cluster ended in; nearly always empty.
	Panic string
	// HelpedBy are the kinds of changes in the cluster that may help the Job; zero: any may.
	HelpedBy change.Kinds
}

// IgnoresRoom reports whether it doesn't matter what nodes have free to the plugin that refused the
// nearest of them: to reserve that for the Job would only keep others away. Where other Pods are
// does matter, as nodes may be full besides.
func (r *Rejection) IgnoresRoom() bool {
	helpedBy := scheduling.ThatHelp(r.Plugin)
	return helpedBy&change.Room == 0 && helpedBy&(change.Admission|change.Devices|change.Volumes) != 0
}

// filter rules clusters out. It returns nil for those that pass.
type filter struct {
	reason Reason
	check  func(*ask, *Cluster) *objection
}

// objection becomes a Rejection.
type objection struct {
	message, detail, plugin, field string
	needed                         int64
	helpedBy                       change.Kinds
}

// filters in order; a cluster is reported with the first that it doesn't pass. What admins allow
// and what the user asked for come first, so that a cluster where the Job would never go isn't
// reported as not ready; what depends on a connection comes after that.
var filters = []filter{
	{namespaceClosed, checkNamespaceOpen},
	{namespaceMismatch, checkNamespace},
	{unlisted, checkListed},
	{selectorMismatch, checkSelector},
	{preferenceMismatch, checkPreference},
	{notReady, checkReady},
	{cordoned, checkCordon},
	{featureMissing, checkFeatures},
	{passedOver, checkPassedOver},
	{notPreferred, checkStep},
	{StockedOut, checkStockedOut},
	{NeverFits, checkEverFits},
	{Insufficient, checkFitsNow},
	{Reserved, checkReserved},
}

// A Job that was placed while its namespace was dispatched stays where it is.
func checkNamespaceOpen(a *ask, _ *Cluster) *objection {
	if !a.NamespaceClosed {
		return nil
	}
	return &objection{message: "not for Jobs of a namespace that isn't dispatched"}
}

// The cluster's admin says whose Jobs it takes.
func checkNamespace(a *ask, c *Cluster) *objection {
	if c.Namespaces == nil || c.Namespaces.Matches(a.Namespace) {
		return nil
	}
	return &objection{
		message: "not for Jobs of this namespace",
		detail:  fmt.Sprintf("spec.namespaceSelector %q doesn't match the namespace's labels {%s}", c.Namespaces, a.Namespace),
	}
}

// Among restricts the Job to some clusters.
func checkListed(a *ask, c *Cluster) *objection {
	if _, ok := a.rank[c.Name]; ok || a.Among == nil {
		return nil
	}
	return &objection{message: "not allowed for the Job's queue"}
}

// Selector restricts the Job to clusters with some labels.
func checkSelector(a *ask, c *Cluster) *objection {
	if a.Selector == nil || a.Selector.Matches(c.Labels) {
		return nil
	}
	return &objection{
		message: "didn't match the cluster selector",
		detail:  fmt.Sprintf("labels {%s} don't match %q", c.Labels, a.Selector),
		field:   "metadata.annotations[" + v1alpha1.AnnotationClusterSelector + "]",
	}
}

// A preference names all clusters that the user wants.
func checkPreference(a *ask, c *Cluster) *objection {
	if step, _ := a.Preference.StepOf(c.Labels, a.Since); step != preference.None {
		return nil
	}
	return &objection{
		message: "didn't match the cluster preference",
		detail:  fmt.Sprintf("labels {%s}", c.Labels),
		field:   "metadata.annotations[" + v1alpha1.AnnotationClusterPreference + "]",
	}
}

// The Job waits for the clusters of earlier steps first.
func checkStep(a *ask, c *Cluster) *objection {
	_, opens := a.Preference.StepOf(c.Labels, a.Since)
	if !opens.After(a.Now) {
		return nil
	}
	return &objection{
		message: "not preferred until " + opens.UTC().Format(time.RFC3339),
		field:   "metadata.annotations[" + v1alpha1.AnnotationClusterPreference + "]",
	}
}

// A cluster that isn't ready would keep the Job waiting for no one knows how long.
func checkReady(_ *ask, c *Cluster) *objection {
	if c.Ready {
		return nil
	}
	if c.NotReady == "" {
		return &objection{message: "not ready"}
	}
	return &objection{message: fmt.Sprintf("not ready (%s)", c.NotReady)}
}

// Cordoned, drained and full clusters take nothing new.
func checkCordon(_ *ask, c *Cluster) *objection {
	switch {
	case c.Drained:
		return &objection{message: "draining"}
	case c.Cordoned:
		return &objection{message: "cordoned"}
	case c.Full:
		return &objection{message: "full (TooManyMirrors)"}
	default:
		return nil
	}
}

// An API server drops fields that it doesn't know, or that are switched off there; the Job would
// run with another meaning.
func checkFeatures(a *ask, c *Cluster) *objection {
	for _, path := range a.Recent {
		if c.Drops[path] {
			return &objection{message: "dropping " + path, detail: c.runs(), field: path}
		}
	}
	missing, lacks := c.lacks(a.features)
	mate := ""
	for i := 0; i < len(a.Mates) && !lacks; i++ {
		missing, lacks = c.lacks(featuresOf(&a.Mates[i].Job.Spec))
		mate = forMate(a.Mates[i].Job.Name)
	}
	if !lacks {
		return nil
	}
	return &objection{
		message: fmt.Sprintf("too old for %s (Kubernetes 1.%d)%s", missing.name, missing.since, mate),
		detail:  c.runs(),
	}
}

// The caller knows of obstacles that concern this Job in this cluster.
func checkPassedOver(a *ask, c *Cluster) *objection {
	reason, ok := a.PassedOver[c.Name]
	if !ok {
		return nil
	}
	return &objection{message: reason}
}

// Another Job has waited there for its Pods already.
func checkStockedOut(_ *ask, c *Cluster) *objection {
	if !c.StockedOut {
		return nil
	}
	return &objection{message: "passed over: Pods like these didn't start there in time"}
}

// Where the Job can never run, waiting is no use.
func checkEverFits(a *ask, c *Cluster) *objection {
	if a.noRoomNeeded() || c.Capacity == nil || a.answerOf(c).Verdict != scheduling.Never {
		return nil
	}
	o := neverFits(a.answerOf(c))
	o.helpedBy = a.answerOf(c).HelpedBy(c.Capacity)
	return o
}

// A Job that can't have all the Pods that it needs at once waits, rather than wait in the cluster.
func checkFitsNow(a *ask, c *Cluster) *objection {
	if a.noRoomNeeded() || c.Capacity == nil || a.suits(a.answerOf(c)) {
		return nil
	}
	o := insufficient(a.answerOf(c))
	o.needed, o.helpedBy = a.answerOf(c).Needed(), a.answerOf(c).HelpedBy(c.Capacity)
	return o
}

func (a *ask) suits(answer *scheduling.Answer) bool {
	if a.RoomNow {
		return answer.Verdict == scheduling.FitsNow && !answer.Preempts
	}
	return answer.Verdict <= scheduling.FitsAfterScaleUp
}

// A Job that would take the room of one that goes before it waits.
func checkReserved(a *ask, c *Cluster) *objection {
	if !c.Reserved {
		return nil
	}
	o := &objection{message: "reserved for a Job that goes before this one"}
	if a.want > 0 && c.Capacity != nil {
		o.needed = a.answerOf(c).Needed()
	}
	return o
}
