package view

import (
	"fmt"
	"time"

	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Changes are plain lines about what is visible in a state and wasn't, or wasn't so, in the one
// before. now is when the later one was seen.
func Changes(before, after state.State, now time.Time) []string {
	var lines []string
	lines = append(lines, stepChanges(before, after, now)...)
	lines = append(lines, workerChanges(before, after)...)
	lines = append(lines, jobChanges(before, after)...)
	lines = append(lines, newsChanges(before, after)...)
	if n := len(after.HubPods); n != len(before.HubPods) {
		lines = append(lines, fmt.Sprintf("hub     %s, expected none", count(n, "Pod", "Pods")))
	}
	for i, t := range lines {
		lines[i] = clean(fmt.Sprintf("%5s  %s", clock(now.Sub(after.Began)), t))
	}
	return lines
}

func stepChanges(before, after state.State, now time.Time) []string {
	var lines []string
	for i, step := range after.Steps {
		was := state.Step{}
		if i < len(before.Steps) {
			was = before.Steps[i]
		}
		note := ""
		if step.Note != "" {
			note = ": " + step.Note
		}
		switch {
		case step == was:
		case step.Failed:
			lines = append(lines, "step    "+step.Name+": failed"+note)
		case step.Done():
			lines = append(lines, fmt.Sprintf("step    %s: done in %s%s", step.Name, took(step.Took(now)), note))
		default:
			lines = append(lines, "step    "+step.Name+note)
		}
	}
	return lines
}

func workerChanges(before, after state.State) []string {
	known := map[string]state.Worker{}
	for _, w := range before.Workers {
		known[w.Name] = w
	}
	var lines []string
	for _, w := range after.Workers {
		was, found := known[w.Name]
		delete(known, w.Name)
		if line := workerLine(w); !found || line != workerLine(was) {
			lines = append(lines, "worker  "+line)
		}
	}
	for _, w := range before.Workers {
		if _, gone := known[w.Name]; gone {
			lines = append(lines, "worker  "+w.Name+": gone")
		}
	}
	return lines
}

func workerLine(w state.Worker) string {
	if w.Reason == v1alpha1.ReasonSecretMissing { // registration makes the WorkerCluster first
		return w.Name + ": waits for its Secret"
	}
	if !w.Ready {
		line := fmt.Sprintf("%s: not ready, %s", w.Name, w.Reason)
		if w.Message != "" {
			line += ": " + w.Message
		}
		return line
	}
	return fmt.Sprintf("%s: Ready, %s, %s, %s, free CPU %s", w.Name, w.Version,
		count(int(w.Nodes), "node", "nodes"), count(int(w.Jobs), "Job", "Jobs"), freeCPU(w))
}

func jobChanges(before, after state.State) []string {
	var lines []string
	for i, j := range after.Jobs {
		was := state.Job{}
		if i < len(before.Jobs) {
			was = before.Jobs[i]
		}
		if line := jobLine(j); line != jobLine(was) && j.Phase != state.Absent {
			lines = append(lines, "job     "+line)
		}
	}
	return lines
}

func jobLine(j state.Job) string {
	on := ""
	if j.Cluster != "" {
		on = " on " + j.Cluster
	}
	line := fmt.Sprintf("%s%s: %s, %s succeeded, %d active", j.Name, on, condition(j), done(j.Succeeded, j), j.Active)
	if j.Active > 0 {
		line += fmt.Sprintf(" (%d ready)", j.Ready)
	}
	if j.Failed > 0 {
		line += fmt.Sprintf(", %d failed", j.Failed)
	}
	if j.Indexes != "" {
		line += ", indexes " + j.Indexes
	}
	return line
}

func newsChanges(before, after state.State) []string {
	known := map[state.News]bool{}
	for _, n := range before.News {
		known[n] = true
	}
	var lines []string
	for _, n := range after.News {
		if !known[n] {
			lines = append(lines, fmt.Sprintf("event   %s: %s: %s", n.Job, n.Reason, n.Note))
		}
	}
	return lines
}
