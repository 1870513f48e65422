package scheduling

import (
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// MaxMates bounds the kinds of Pods that are judged beside those of one Job.
const MaxMates = 16

// Mate stands for Pods of other Jobs that must fit in the same worker at the same time.
type Mate struct {
	// Job has their namespace, labels and template.
	Job *batchv1.Job
	// Pods is how many of them run at once.
	Pods int64
}

// Group is a Job and its mates. It's judged in one worker after the other, like a Job.
type Group struct {
	own   *Job
	mates []member
}

// member is one kind of the Pods of a group.
type member struct {
	job    *Job
	name   string
	wanted int64
}

// groupPlugin stands for what the Pods of a group take from each other.
const groupPlugin = "Group"

var (
	tooFewBeside = Reason{groupPlugin, "too little room beside the Pods of its group", ""}
	crowded      = Reason{groupPlugin, "an idle worker is needed, as Pods of its group may be in each other's way", ""}
)

// notTogether is what isn't judged of a group that takes too much work: each member is by itself.
const notTogether = "the other Jobs of its group"

// NewGroup reads the mates of a Job; beyond MaxMates they're left out. The budget of work of the
// Job is that of the whole group, and so is its Expired.
func NewGroup(job *Job, mates []Mate) *Group {
	g := &Group{own: job}
	for i := range mates[:min(len(mates), MaxMates)] {
		if m := &mates[i]; m.Pods > 0 {
			if job.TooMuch() {
				break
			}
			read := NewJob(m.Job)
			*job.left -= read.reading
			read.left, read.lightly, read.Expired = job.left, job.lightly, job.Expired
			g.mates = append(g.mates, member{read, m.Job.Name, m.Pods})
		}
	}
	return g
}

// Judge says whether the Job, which wants a number of Pods at once, fits in a worker together with
// its mates. The numbers are the Job's own. Where a mate is in the way, the reasons are the mate's.
func (g *Group) Judge(s *Snapshot, wanted int64) (answer Answer) {
	defer contain(&answer, wanted)
	members := g.mates
	if wanted > 0 {
		members = slices.Insert(slices.Clone(members), 0, member{g.own, "", wanted})
	}
	answers, unjudged := g.judge(s, members)
	answer = Answer{Looked: s, Wanted: wanted, Now: wanted, Idle: wanted}
	if wanted > 0 {
		answer = answers[0]
	}
	for i := range answers {
		if answers[i].Verdict > answer.Verdict {
			inTheWay := answers[i]
			answer.Verdict, answer.Reasons, answer.Looked = inTheWay.Verdict, inTheWay.Reasons, inTheWay.Looked
			answer.Mate = &MateAnswer{members[i].name, inTheWay}
		}
		answer.Preempts = answer.Preempts || answers[i].Preempts
	}
	answer.Unjudged = unjudged
	return answer
}

// judge answers for each member. The worst verdict is that of the group.
func (g *Group) judge(s *Snapshot, members []member) (answers []Answer, unjudged []string) {
	t := &team{members: make([]teammate, len(members))}
	for i := range members {
		t.members[i] = teammate{member: members[i], snapshot: s.forMate(members[i].job, g.own)}
	}
	t.meet()
	for i := range t.members {
		m := &t.members[i]
		alone, judged := bounded(m.job, func(j *Job, b *budget) Answer { return judge(m.snapshot, j, m.wanted, b) })
		m.alone, m.job = alone, judged
		answers, unjudged = append(answers, alone), append(unjudged, judged.unjudged...)
		if judged.TooMuch() {
			return answers, unjudged
		}
	}
	if len(members) < 2 || s.NodesUnknown || s.CantJudge || s.Listing != nil || slices.ContainsFunc(answers, func(a Answer) bool { return a.NeverFits() }) {
		return answers, unjudged
	}
	t.meet()
	together, field := attempt(t.members[0].job, func(_ *Job, b *budget) []Answer { return t.judge(s, b) })
	if field != "" {
		return answers, append(unjudged, notTogether)
	}
	return together, unjudged
}

// forMate is what a mate is judged by: limits of a namespace are known of the Job's only.
func (s *Snapshot) forMate(mate, asking *Job) *Snapshot {
	if s.Admission == nil || mate.namespace == asking.namespace {
		return s
	}
	c := *s
	c.Admission = &Admission{PriorityClasses: s.Admission.PriorityClasses, RuntimeClasses: s.Admission.RuntimeClasses}
	return &c
}

// team is a group in one worker.
type team struct{ members []teammate }

// teammate is a member, with its answer as if it were alone.
type teammate struct {
	member
	snapshot *Snapshot
	alone    Answer
}

// meet tells all members of each other. Jobs are immutable: each gets one of its own.
func (t *team) meet() {
	for i := range t.members {
		met := *t.members[i].job
		met.mates, met.changes = nil, &kept[digest.Digest, changed]{}
		t.members[i].job = &met
	}
	for i := range t.members {
		for k := range t.members {
			if k != i {
				t.members[i].job.mates = append(t.members[i].job.mates, t.members[k].job)
			}
		}
	}
}

// judge answers for a group of which each member fits by itself, at least later.
func (t *team) judge(s *Snapshot, b *budget) []Answer {
	beside := t.beside(s, b)
	if !fit(beside) {
		if preempting := t.preempting(s, b); preempting != nil {
			return preempting
		}
	}
	if s.Autoscaling != nil && t.scalesUp(s.Autoscaling, beside) {
		return t.scaledUp(beside)
	}
	return beside
}

// fit reports whether all fit now.
func fit(answers []Answer) bool {
	return !slices.ContainsFunc(answers, func(a Answer) bool { return a.Verdict != FitsNow })
}

// beside answers for each member beside the others, on the nodes that there are.
func (t *team) beside(s *Snapshot, b *budget) []Answer {
	now := t.at(s, Now, b)
	var idle *gathering
	answers := make([]Answer, len(t.members))
	for i := range t.members {
		m := &now.members[i]
		answers[i] = Answer{Looked: s, Wanted: m.wanted, Now: now.fit(i), Idle: m.wanted, least: max(min(m.gang, m.wanted), 1)}
		if answers[i].Now >= m.wanted {
			continue
		}
		if idle == nil {
			idle = t.at(s, Idle, b)
		}
		now.compare(idle, i, &answers[i])
	}
	return answers
}

// compare completes the answer for a member that doesn't have all its Pods fit now. As many must
// fit as would in the idle worker. If the others could take what the idle worker has, the member
// needs what it would alone, in a worker that is idle for all its Pods may use.
func (g *gathering) compare(idle *gathering, i int, a *Answer) {
	m := &g.members[i]
	a.Idle = idle.fit(i)
	if a.Idle >= a.least {
		if a.Now < a.Needed() {
			a.Verdict, a.Reasons = FitsLater, append(m.reasons(), Count{Reason: tooFewBeside})
		}
		return
	}
	alone := m.judge(g.Snapshot, m.wanted)
	a.Contended, a.Now, a.Idle, a.Verdict = true, alone.Now, alone.Idle, alone.Verdict
	switch {
	case alone.Verdict != FitsNow:
		a.Verdict, a.Reasons = FitsLater, alone.Reasons
	case m.room() < idle.members[i].room():
		a.Verdict, a.Reasons = FitsLater, append(m.reasons(), Count{Reason: crowded})
	}
}

// preempting is the answer if all fit once Pods of a lower priority went, whichever of them goes.
// It is nil if they don't. The members must have one priority: none is to go for another.
func (t *team) preempting(s *Snapshot, b *budget) []Answer {
	if !s.Preemption {
		return nil
	}
	priority, _ := s.Admission.preemptor(t.members[0].job.spec)
	for i := range t.members {
		own, may := s.Admission.preemptor(t.members[i].job.spec)
		if !may || own != priority || t.members[i].job.gang > 1 {
			return nil
		}
	}
	with, without, changed := s.from(priority, b)
	if !changed {
		return nil
	}
	answers := t.beside(without, b)
	if !fit(answers) || !fit(t.beside(with, b)) {
		return nil
	}
	for i := range answers {
		answers[i].Preempts = true
	}
	return answers
}

// scalesUp reports whether the members fit after scale-up, as far as that is known: each does by
// itself, and the autoscaler can add nodes for those that have too little room.
func (t *team) scalesUp(room *autoscaling.Room, beside []Answer) bool {
	lacks := false
	for i := range t.members {
		m, a := &t.members[i], &beside[i]
		if m.alone.Verdict > FitsAfterScaleUp || m.alone.Preempts {
			return false
		}
		if a.Verdict == FitsNow && a.Now >= m.wanted && !a.Contended {
			continue
		}
		lacks = true
		if !slices.ContainsFunc(room.Nodes(m.job.shape, m.wanted), func(n *capacity.Node) bool { return m.job.shape.Slots(n.Object, &n.Free) > 0 }) {
			return false
		}
	}
	return lacks
}

func (t *team) scaledUp(beside []Answer) []Answer {
	for i := range beside {
		m, a := &t.members[i], &beside[i]
		if a.Verdict == FitsNow && a.Now >= m.wanted && !a.Contended {
			continue
		}
		a.Verdict, a.AfterScaleUp = FitsAfterScaleUp, max(m.alone.AfterScaleUp, m.alone.Now)
		a.Idle = max(a.Idle, m.alone.Idle)
	}
	return beside
}

// admittedBeside is how many Pods of a member the quotas leave beside those of the others.
func (g *gathering) admittedBeside(i int) int64 {
	m := &g.members[i]
	pods := int64(math.MaxInt64)
	for h := range m.shares {
		share := &m.shares[h]
		used := share.used
		if g.moment != Now {
			used = g.lasting(m.namespace, share.quota, share.name, g.work)
		}
		used = used.DeepCopy()
		for k := range g.members {
			if k != i {
				used.Add(g.members[k].allOf(share))
			}
		}
		pods = min(pods, times(share.hard, used, share.each))
	}
	return pods
}

// allOf is what all Pods of a member take of a share.
func (m *attendant) allOf(of *share) resource.Quantity {
	for i := range m.shares {
		if h := &m.shares[i]; h.quota == of.quota && h.name == of.name {
			all := h.each.DeepCopy()
			all.Mul(m.wanted)
			return all
		}
	}
	return resource.Quantity{}
}
