package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
)

// maxNews is how many events are kept.
const maxNews = 50

// State is all that can be shown. The zero value is empty; New fills in what is known beforehand.
type State struct {
	// Began is when the demo was started.
	Began   time.Time
	Steps   []Step
	Workers []Worker
	Jobs    []Job
	News    []News
	// HubPods are the UIDs of all Pods that were ever seen on the hub. There must be none.
	HubPods []string
}

// News is an event on a hub Job, latest last in State.News.
type News struct {
	At           time.Time
	Job          string
	Reason, Note string
	Warning      bool
}

// New is the state before anything has happened.
func New(began time.Time, entries []scenario.Entry) State {
	s := State{Began: began}
	for _, e := range entries {
		s.Jobs = append(s.Jobs, newJob(e))
	}
	return s
}

// Clone is a copy that further changes don't reach.
func (s *State) Clone() State {
	c := *s
	c.Steps, c.Workers = slices.Clone(s.Steps), slices.Clone(s.Workers)
	c.Jobs, c.News = slices.Clone(s.Jobs), slices.Clone(s.News)
	c.HubPods = slices.Clone(s.HubPods)
	return c
}

// SawNews adds an event. An event that is told again doesn't count.
func (s *State) SawNews(n News) {
	same := func(o News) bool { return o.Job == n.Job && o.Reason == n.Reason && o.Note == n.Note }
	if slices.ContainsFunc(s.News, same) {
		return
	}
	s.News = append(s.News, n)
	s.News = s.News[max(0, len(s.News)-maxNews):]
}

// SawHubPod notes a Pod on the hub, where none should be.
func (s *State) SawHubPod(uid string) {
	if !slices.Contains(s.HubPods, uid) {
		s.HubPods = append(s.HubPods, uid)
	}
}

// Settled says whether every Job has ended, well or not.
func (s *State) Settled() bool {
	return !slices.ContainsFunc(s.Jobs, func(j Job) bool { return !j.Phase.Ended() })
}

// Problems says what is not as it should be, one line each; none means that the demo has succeeded.
func (s *State) Problems() []string {
	var problems []string
	for _, j := range s.Jobs {
		for _, wrong := range j.Problems() {
			problems = append(problems, fmt.Sprintf("Job %s: %s", j.Name, wrong))
		}
	}
	problems = append(problems, s.partedJobSets()...)
	if n := len(s.HubPods); n > 0 {
		problems = append(problems, fmt.Sprintf("hub: expected no Pods, saw %d", n))
	}
	return problems
}

// partedJobSets tells of JobSets whose Jobs aren't in one worker.
func (s *State) partedJobSets() (parted []string) {
	clusters := map[string]string{} // by JobSet
	for _, j := range s.Jobs {
		if j.JobSet == "" || j.Cluster == "" {
			continue
		}
		first, seen := clusters[j.JobSet]
		if !seen {
			clusters[j.JobSet] = j.Cluster
		} else if j.Cluster != first {
			parted = append(parted, fmt.Sprintf("JobSet %s: expected its Jobs in one worker, but they are in %s and %s", j.JobSet, first, j.Cluster))
		}
	}
	return parted
}

// UsableWorkers counts the workers that are Ready and have told what they can hold.
func (s *State) UsableWorkers() int {
	n := 0
	for _, w := range s.Workers {
		if w.Ready && w.Nodes > 0 {
			n++
		}
	}
	return n
}
