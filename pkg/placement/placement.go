package placement

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
	"github.com/jobferry/jobferry/pkg/util/text"
)

// Decision is the answer to a Request.
type Decision struct {
	// Cluster that the Job goes to; empty when none fits.
	Cluster string
	// Candidates that fit, best first.
	Candidates []Candidate
	// Rejections of the others, by name.
	Rejections []Rejection
	// Unjudged are the fields of the Job that some clusters weren't compared with, in order: that
	// would have taken too much work.
	Unjudged []string
	// Work is what the decision took, as a part of the most that it may take.
	Work float64
	// TooMuch: a Request that was to be judged lightly takes more work, and nothing is decided.
	TooMuch bool
}

// Place decides where a Job goes. The order of clusters doesn't matter; their names must differ.
func Place(request Request, clusters []Cluster) Decision {
	a := newAsk(request)
	d := Decision{Candidates: make([]Candidate, 0, len(clusters))}
	for i := range clusters {
		if a.consider(&clusters[i], &d); a.job.TooMuch() {
			return Decision{TooMuch: true}
		}
	}
	a.conclude(&d)
	d.Work = a.job.Work()
	return d
}

// consider adds a cluster to a decision.
func (a *ask) consider(c *Cluster, d *Decision) {
	defer func() {
		if answer := a.answers[c.Name]; answer != nil {
			d.Unjudged = append(d.Unjudged, answer.Unjudged...)
		}
	}()
	if rejection := a.reject(c); rejection != nil {
		d.Rejections = append(d.Rejections, *rejection)
		return
	}
	d.Candidates = append(d.Candidates, a.candidate(c))
}

// conclude makes a decision of what was added.
func (a *ask) conclude(d *Decision) {
	d.Rejections = append(d.Rejections, a.unregistered(d)...)
	slices.SortFunc(d.Rejections, func(a, b Rejection) int { return cmp.Compare(a.Cluster, b.Cluster) })
	slices.SortFunc(d.Candidates, order)
	slices.Sort(d.Unjudged)
	d.Unjudged = slices.Compact(d.Unjudged)
	if len(d.Candidates) > 0 {
		d.Cluster = d.Candidates[0].Cluster
	}
}

// MayFitLater reports whether some cluster that can't take the Job now may do so by itself later.
func (d Decision) MayFitLater() bool {
	return slices.ContainsFunc(d.Rejections, func(r Rejection) bool { return r.Reason.Passing() })
}

// ask is a Request with what is derived from it once for all clusters.
type ask struct {
	Request
	job      *scheduling.Job
	group    *scheduling.Group // nil: the Job has no mates
	want     int64
	features []feature
	rank     map[string]int
	requests corev1.ResourceList // of one Pod; nil: not asked for yet
	// answers keeps what one filter asked for the next, by cluster.
	answers map[string]*scheduling.Answer
}

func newAsk(request Request) *ask {
	a := &ask{
		Request:  request,
		job:      scheduling.NewJob(request.Job),
		want:     PodsWanted(request.Job),
		features: featuresOf(&request.Job.Spec),
		rank:     make(map[string]int, len(request.Among)),
		answers:  map[string]*scheduling.Answer{},
	}
	for i, name := range request.Among {
		if _, named := a.rank[name]; !named {
			a.rank[name] = i
		}
	}
	if a.job.Expired = request.Expired; request.Lightly {
		a.job.Lightly()
	}
	a.addMates()
	return a
}

// addMates takes those that run Pods. The group has the Job's budget of work.
func (a *ask) addMates() {
	a.Mates = slices.DeleteFunc(slices.Clone(a.Mates), func(m Mate) bool { return m.Pods <= 0 })
	a.Mates = a.Mates[:min(len(a.Mates), MaxMates)]
	if len(a.Mates) > 0 {
		a.group = NewGroup(a.job, a.Mates)
	}
}

// noRoomNeeded reports whether no Pod of the Job or its mates would run now.
func (a *ask) noRoomNeeded() bool { return a.want == 0 && a.group == nil }

func (a *ask) answerOf(c *Cluster) *scheduling.Answer {
	answer, ok := a.answers[c.Name]
	if !ok {
		answer = new(scheduling.Answer)
		if a.group != nil {
			*answer = a.group.Judge(c.Capacity, a.want)
		} else {
			*answer = a.job.Judge(c.Capacity, a.want)
		}
		a.answers[c.Name] = answer
	}
	return answer
}

func (a *ask) reject(c *Cluster) *Rejection {
	for _, f := range filters {
		if o := f.check(a, c); o != nil {
			r := &Rejection{
				Cluster: c.Name, Reason: f.reason, Message: text.Clean(o.message, maxWords), Detail: o.detail, Plugin: o.plugin, Field: o.field, Needed: o.needed, HelpedBy: o.helpedBy,
			}
			if answer := a.answers[c.Name]; answer != nil {
				r.Panic = answer.Panic
			}
			return r
		}
	}
	return nil
}

// unregistered reports the clusters that the request allows and that don't exist.
func (a *ask) unregistered(d *Decision) []Rejection {
	missing := map[string]bool{}
	for name := range a.rank {
		missing[name] = true
	}
	for i := range d.Candidates {
		delete(missing, d.Candidates[i].Cluster)
	}
	for i := range d.Rejections {
		delete(missing, d.Rejections[i].Cluster)
	}
	var rejections []Rejection
	for name := range missing {
		rejections = append(rejections, Rejection{Cluster: name, Reason: unregistered, Message: "not registered"})
	}
	return rejections
}
