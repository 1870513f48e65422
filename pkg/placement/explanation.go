package placement

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// What an explanation may have: workers choose how many reasons they give, and some of the words; a
// Job chooses how many resources it requests.
const (
	maxExplained = 200 // clusters
	maxReasons   = 10  // of one cluster, and as many shortages
	maxWords     = 512 // bytes of one text
)

// Subject is what an explanation takes account of, beside what a placement does.
type Subject struct {
	// Placed are the clusters that the Job is placed on.
	Placed []string
	// Divisible: the Job may run in several clusters, so a cluster fits where one of its Pods does.
	Divisible bool
	// Suspended: the Job isn't placed before it's resumed.
	Suspended bool
}

// Explain says of each cluster whether the Job could run there now, and why not. It has nothing
// that a cluster's admin said about other tenants, and no names of nodes and Pods.
func Explain(request Request, subject Subject, clusters iter.Seq[Cluster]) v1alpha1.PlacementExplanation {
	a, e := newAsk(request), v1alpha1.PlacementExplanation{
		TypeMeta:  metav1.TypeMeta{Kind: "PlacementExplanation", APIVersion: v1alpha1.GroupVersion.String()},
		Namespace: request.Job.Namespace, Name: request.Job.Name, Workers: []v1alpha1.WorkerExplanation{},
	}
	e.PodsWanted = a.want
	if subject.Divisible {
		a.want = min(a.want, 1)
	}
	var d Decision
	rooms := map[string]*v1alpha1.WorkerExplanation{}
	for c := range clusters {
		a.consider(&c, &d)
		rooms[c.Name] = a.room(&c, e.PodsWanted)
		rooms[c.Name].CostPerHour = a.costOf(&c, e.PodsWanted)
	}
	a.conclude(&d)
	e.Message = text.Clean(subject.introduction()+d.Explain(), text.MaxMessage)
	for _, c := range d.Candidates {
		e.Workers = append(e.Workers, passed(rooms[c.Cluster], c))
	}
	for _, r := range d.Rejections {
		e.Workers = append(e.Workers, rejected(rooms[r.Cluster], r))
	}
	finish(&e, subject)
	return e
}

// costOf is what the Pods cost in a cluster for an hour, if it has prices.
func (a *ask) costOf(c *Cluster, pods int64) string {
	if len(c.Cost) == 0 {
		return ""
	}
	return strconv.FormatFloat(math.Round(a.cost(c)*float64(pods)*1e4)/1e4, 'f', -1, 64)
}

// introduction says what a placement is as long as there is none to be made.
func (s *Subject) introduction() string {
	switch {
	case len(s.Placed) > maxNamed:
		return fmt.Sprintf("Placed on %d workers. If it were placed now: ", len(s.Placed))
	case len(s.Placed) > 0:
		return "Placed on " + strings.Join(s.Placed, ", ") + ". If it were placed now: "
	case s.Suspended:
		return "Suspended: it's placed when it's resumed. If that were now: "
	default:
		return ""
	}
}

// room says how many of the wanted Pods the cluster's nodes take, if a filter has asked that.
func (a *ask) room(c *Cluster, wanted int64) *v1alpha1.WorkerExplanation {
	w := &v1alpha1.WorkerExplanation{Name: c.Name, Answer: v1alpha1.PlacementNotChecked, Message: "fits: its capacity isn't checked"}
	answer := a.answers[c.Name]
	switch {
	case answer == nil && wanted == 0:
		w.Answer, w.Message = v1alpha1.PlacementFitsNow, "fits: the Job runs no Pods"
		return w
	case answer == nil, c.Capacity.NodesUnknown && answer.Verdict == scheduling.FitsNow:
		return w
	}
	verdict, needed := answer.Verdict, answer.Needed()
	if verdict <= scheduling.FitsAfterScaleUp && a.want < wanted {
		all := a.job.Judge(c.Capacity, wanted)
		answer = &all
	}
	w.Answer, w.Nodes = answers[verdict], len(answer.Looked.Nodes)
	w.PodsNeeded, w.PodsNow = &needed, &answer.Now
	if answer.AfterScaleUp > 0 {
		w.PodsAfterScaleUp = &answer.AfterScaleUp
	}
	for i := range answer.Reasons {
		r := &answer.Reasons[i]
		w.NodeReasons = append(w.NodeReasons, v1alpha1.NodeReason{
			Plugin: r.Plugin, Message: text.Clean(r.Message, maxWords), Field: r.Field, Nodes: r.Nodes,
		})
	}
	shortages := scheduling.Shortages(answer.Looked, a.job, verdict)
	for _, s := range shortages[:min(len(shortages), maxReasons)] {
		w.Shortages = append(w.Shortages, v1alpha1.Shortage{
			Resource: s.Name, Requested: capacity.Quantity(s.Name, s.Requested), Most: capacity.Quantity(s.Name, s.Most),
			Short: capacity.Quantity(s.Name, s.Requested-s.Most),
		})
	}
	if w.Message = roomMessage(w, answer.Now, wanted); answer.Mate != nil {
		message, dot := strings.CutSuffix(roomMessage(w, answer.Mate.Now, answer.Mate.Wanted), ".")
		if w.Message = message + forMate(answer.Mate.Name); dot {
			w.Message += "."
		}
	}
	if answer.Preempts {
		w.Message += preempting
	}
	w.NodeReasons = w.NodeReasons[:min(len(w.NodeReasons), maxReasons)]
	return w
}

// preempting is said of numbers that are right once Pods of a lower priority have gone.
const preempting = ", after preemption of Pods of a lower priority"

// scalingUp is said of a cluster where not all Pods fit before its autoscaler has added nodes.
const scalingUp = ", after scale-up"

var answers = map[scheduling.Verdict]v1alpha1.PlacementAnswer{
	scheduling.FitsNow: v1alpha1.PlacementFitsNow, scheduling.FitsAfterScaleUp: v1alpha1.PlacementFitsAfterScaleUp,
	scheduling.FitsLater: v1alpha1.PlacementFitsLater,
	scheduling.Never:     v1alpha1.PlacementNever,
}

// roomMessage is in the manner of the scheduler's "0/3 nodes are available: 2 Insufficient cpu,
// ...".
func roomMessage(w *v1alpha1.WorkerExplanation, pods, wanted int64) string {
	now := fmt.Sprintf("%d of %d Pods fit now", pods, wanted)
	var head string
	switch {
	case w.Answer == v1alpha1.PlacementNever:
		head = "never fits"
	case pods >= wanted && w.Answer == v1alpha1.PlacementFitsLater:
		head = "not all Pods of the group fit now"
	case pods >= wanted:
		return "all Pods fit now"
	case w.PodsAfterScaleUp != nil:
		return fmt.Sprintf("%s, %d once the autoscaler has added nodes", now, *w.PodsAfterScaleUp)
	case pods > 0 || w.Answer == v1alpha1.PlacementFitsNow:
		head = now + ", no further one"
	default:
		head = "no Pod fits now"
	}
	return head + ": " + nodesMessage(w)
}

// nodesMessage counts the nodes by reason, the most frequent first.
func nodesMessage(w *v1alpha1.WorkerExplanation) string {
	if len(w.NodeReasons) == 0 {
		return "without nodes"
	}
	var others []string
	var nodes []group
	for _, r := range w.NodeReasons {
		if r.Nodes == 0 {
			others = append(others, r.Message)
			continue
		}
		nodes = append(nodes, group{r.Nodes, r.Message})
	}
	if len(nodes) == 0 {
		return strings.Join(others, ", ")
	}
	return fmt.Sprintf("0/%d nodes are available: %s.", w.Nodes, strings.Join(append(abridge(nodes, maxWords), others...), ", "))
}

// passed is a cluster that passed every filter.
func passed(w *v1alpha1.WorkerExplanation, c Candidate) v1alpha1.WorkerExplanation {
	w.Score = fmt.Sprintf("%.3f", float64(c.Score)/all)
	return *w
}

// rejected is a cluster that a filter ruled out. Room that was asked for says more than its filter.
func rejected(w *v1alpha1.WorkerExplanation, r Rejection) v1alpha1.WorkerExplanation {
	switch r.Reason {
	case NeverFits, Insufficient:
	case Reserved:
		w.Answer, w.Message = v1alpha1.PlacementFitsLater, r.Message
	default:
		w = &v1alpha1.WorkerExplanation{Name: r.Cluster, Answer: v1alpha1.PlacementExcluded, Message: text.Clean(r.Message, maxWords)}
	}
	w.Reason, w.Field = string(r.Reason), r.Field
	return *w
}

// finish puts the clusters that fit later before those that don't fit, and bounds the answer.
func finish(e *v1alpha1.PlacementExplanation, subject Subject) {
	for i := range e.Workers {
		e.Workers[i].Placed = slices.Contains(subject.Placed, e.Workers[i].Name)
	}
	slices.SortStableFunc(e.Workers, func(a, b v1alpha1.WorkerExplanation) int { return cmp.Compare(rankOf(&a), rankOf(&b)) })
	e.OmittedWorkers = max(len(e.Workers)-maxExplained, 0)
	e.Workers = e.Workers[:len(e.Workers)-e.OmittedWorkers]
}

// rankOf puts those where the Job is first, for the case that not all are listed.
func rankOf(w *v1alpha1.WorkerExplanation) int {
	switch {
	case w.Placed:
		return 0
	case w.Reason == "":
		return 1
	case w.Answer == v1alpha1.PlacementFitsLater:
		return 2
	case w.Answer == v1alpha1.PlacementNever:
		return 3
	default:
		return 4
	}
}
